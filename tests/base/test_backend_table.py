"""The table of backends: its names are those of the methods and types that there are."""

from inspect import signature
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.backends import BACKENDS, DTYPES, ENSEMBLE, EXPLICIT, RUN, SERIES, STABILISED, STIFF, TRAINING, backends_for, find_backend
from odesim.base.errors import ParamError
from odesim.base.options import RunOptions
from odesim.stepper.methods import METHODS
from odesim.stepper.rosenbrock_methods import ROSENBROCK

USES = (RUN, ENSEMBLE, TRAINING)


def test_a_method_has_the_name_of_its_file():
    """Help and tables read the names without importing a method."""
    assert sorted(METHODS) == [*EXPLICIT] and all(METHODS[name].name == name for name in EXPLICIT)
    assert [*ROSENBROCK] == [*STIFF] and all(ROSENBROCK[name].name == name for name in STIFF)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_row_is_sound(name):
    """A backend has a use; what is strict is a method there; what is told is a phrase."""
    backend = BACKENDS[name]
    assert backend.name == name and backend.uses and set(backend.uses) <= set(USES) and set(backend.dtypes) <= set(DTYPES)
    for ability in backend.uses.values():
        assert set(ability.strict) <= set(ability.methods) <= {*EXPLICIT, *STIFF, *STABILISED, *SERIES} and ability.summary


@pytest.mark.parametrize("use", USES)
def test_a_backend_that_is_none_is_refused(use):
    """The sentence has the name, the use, the choices and the nearest spelling."""
    for name, backend in BACKENDS.items():
        if use in backend.uses:
            assert find_backend(name, use) is backend
        else:
            with pytest.raises(ParamError, match=f"no backend '{name}' in {use}; choose from {', '.join(sorted(backends_for(use)))}"):
                find_backend(name, use)
    with pytest.raises(ParamError, match=f"no backend 'cudo' in {use}.*; did you mean 'cuda'"):
        find_backend("cudo", use)


def test_the_default_serves_runs_and_ensembles():
    """A run that names no backend has one."""
    assert {RUN, ENSEMBLE} <= set(find_backend(RunOptions().backend).uses)


@pytest.mark.parametrize("name", [name for name in backends_for(RUN) if not BACKENDS[name].gpu])
def test_a_backend_computes_what_numpy_does(name):
    """The right-hand side that its row names, along a run: steps of equal size, which differ by rounding."""
    asked: dict[str, Any] = {"method": "tsit5", "step": 0.1, "span": (0.0, 1.0)}
    run, other = (odesim.integrate("particles.two_clusters", backend=backend, **asked) for backend in (name, "numpy"))
    np.testing.assert_allclose(run.y["r"], other.y["r"], rtol=1e-13)
    assert run.backend == name and np.ptp(run.y["r"]) > 0.01


@pytest.mark.parametrize(("call", "use"), [("integrate", RUN), ("ensemble", ENSEMBLE), ("train", TRAINING)])
def test_the_first_backend_is_the_default(call, use):
    """What help names as the default is what the functions take."""
    assert signature(getattr(odesim, call)).parameters["backend"].default == backends_for(use)[0]
