"""A small ensemble in chunks of a few members, in memory and on disk."""

from typing import Any

import numpy as np

import odesim
from odesim.api.ensemble import run_ensemble

MODEL = "joma.nonlinear"
SIZE = 8  # members in a chunk here
COUNT = 37
RUN: dict[str, Any] = {"vary": {"mu": "uniform(0.5,2.5)"}, "members": COUNT, "sizes": {"M": 3}, "span": (0.0, 2.0), "save": 3, "seed": 5}


def memory(**asked):
    return odesim.ensemble(MODEL, **{**RUN, **asked})


def begun(out, **asked):
    """What run_ensemble says of the run."""
    ways: dict[str, Any] = {"overwrite": False, "resume": False, "shard": None, "threads": 1, "progress": None, "fail_fast": False}
    how: dict[str, Any] = {"method": "auto", "step": None, "rtol": 1e-6, "atol": 1e-9, "backend": "numba", "dtype": "float64"}
    how |= {
        "strict": False,
        "max_steps": 1000,
        "params": {},
        "initial": {},
        "grid": {},
        "zipped": {},
        "observe": (),
        "max_events": 8,
        "clock": "ordinary",
    }
    return run_ensemble(MODEL, out, **{**ways, **how, **RUN, **asked})


def same(stored, held):
    """Every variable of the stored ensemble has the bits, the type and the axes that it has in memory."""
    assert set(held.variables) - {"member"} == set(stored.variables)
    for name, v in stored.variables.items():
        np.testing.assert_array_equal(v, held[name])
        assert (v.dtype, v.dims) == (held[name].dtype, held[name].dims)
