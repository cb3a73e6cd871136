"""The table of backends: its names are those of the methods and types that there are."""

from inspect import signature

import pytest

import odesim
from odesim.base.backends import BACKENDS, DTYPES, ENSEMBLE, EXPLICIT, RUN, STIFF, TRAINING, backends_for, find_backend
from odesim.base.errors import ParamError
from odesim.base.options import RunOptions
from odesim.stepper.methods import METHODS
from odesim.stepper.rosenbrock_methods import ROSENBROCK

USES = (RUN, ENSEMBLE, TRAINING)


def test_a_method_has_the_name_of_its_file():
    """Help and tables read the names without importing a method."""
    assert [method.name for table in (METHODS, ROSENBROCK) for method in table.values()] == [*EXPLICIT, *STIFF]


@pytest.mark.parametrize("name", BACKENDS)
def test_a_row_is_sound(name):
    """A backend has a use; what is strict is a method there; what is told is a phrase."""
    backend = BACKENDS[name]
    assert backend.name == name and backend.uses and set(backend.uses) <= set(USES) and set(backend.dtypes) <= set(DTYPES)
    for ability in backend.uses.values():
        assert set(ability.strict) <= set(ability.methods) <= {*EXPLICIT, *STIFF} and ability.summary


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


def test_a_backend_that_integrates_has_right_hand_sides():
    """The table of what computes right-hand sides has the backends that integrate a run, and no other."""
    from odesim.run.problem import BOUND

    assert set(BOUND) == set(backends_for(RUN))


@pytest.mark.parametrize(("call", "use"), [("integrate", RUN), ("ensemble", ENSEMBLE), ("train", TRAINING)])
def test_the_first_backend_is_the_default(call, use):
    """What help names as the default is what the functions take."""
    assert signature(getattr(odesim, call)).parameters["backend"].default == backends_for(use)[0]
