"""A Solution travels: pickled it keeps what it knows, copied it can still compute more."""

import copy
import pickle

import numpy as np
import pytest

import odesim
from odesim.base.errors import SolveError

MODELS = ("joma.nonlinear", "joma.linear_multinode", "scan_snap.theorem4")  # events; functions as observables; numbers
SAVES = ([0.0, 0.5, 1.0], [0.25, 0.75])  # with the end, and without


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("save", SAVES, ids=str)
@pytest.mark.parametrize("travel", [lambda run: pickle.loads(pickle.dumps(run)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_a_copy_says_the_same(model, save, travel):
    """Every array bit for bit, at the saved times and at the end; events, invariants and all that is said of the run."""
    run = odesim.integrate(model, span=(0, 1), save=save, backend="numpy")
    other = travel(run)
    for kind in ("y", "observables", "final", "final_observables"):
        here, there = getattr(run, kind), getattr(other, kind)
        assert list(here) == list(there)
        for name, values in here.items():
            np.testing.assert_array_equal(there[name], values)
    for kind in ("events", "invariants", "stats", "status", "message", "t_end", "dims"):
        assert getattr(other, kind) == getattr(run, kind)
    assert all(not np.shares_memory(other.y[name], rows) for name, rows in run.y.items())


def test_more_times():
    """A copy in the process computes other times as the run does; a pickled one says that it cannot."""
    run = odesim.integrate("joma.nonlinear", span=(0, 1))
    np.testing.assert_array_equal(copy.deepcopy(run).at(0.3)["v"], run.at(0.3)["v"])
    with pytest.raises(SolveError, match="knows its saved times only"):
        pickle.loads(pickle.dumps(run)).at(0.3)
