"""Options of a run: each field is known wherever a run is asked for, told, stored and computed again."""

from dataclasses import fields, replace
from inspect import signature
from typing import Any

import pytest

import odesim
from odesim.base.options import CLOCKS, IN_FILES, NAMES, OPTIONS, RESCALED, RunOptions, Values, Work, options_of

# another value than the default for every field
OTHER: dict[str, Any] = {
    "method": "dop853",
    "step": 0.125,
    "rtol": 1e-3,
    "atol": 0.0,
    "max_steps": 77,
    "max_step": 0.5,
    "first_step": 0.25,
    "stop_at": (0.25, 0.75),
    "backend": "numpy",
    "dtype": "float32",
    "strict": True,
    "clock": RESCALED,
    "seed": 3,
    "halvings": 2,
}


@pytest.mark.parametrize("call", [odesim.integrate, odesim.ensemble], ids=lambda call: call.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_an_option_is_an_argument(name, call):
    """What people call takes every option by its name, with the default of the field."""
    assert signature(call).parameters[name].default == getattr(RunOptions(), name)


@pytest.mark.parametrize("name", NAMES)
def test_attributes_hold_every_option(name):
    """An option survives its way into attributes and back, alone and with all others."""
    assert OTHER[name] != getattr(RunOptions(), name)
    for options in (replace(RunOptions(), **{name: OTHER[name]}), RunOptions(**OTHER)):
        assert options_of(options.attributes()) == options
        assert options_of(options.numbers()) == options
        rest = {key: value for key, value in options.attributes().items() if key != name}
        with pytest.raises(KeyError, match=name):
            options_of(rest)


def test_every_option_has_another_value_here():
    """The table above names the fields and no others."""
    assert set(OTHER) == set(NAMES) == {f.name for f in fields(RunOptions)}
    assert set(CLOCKS) == {RunOptions().clock, OTHER["clock"]}


def test_an_option_is_on_the_command_line_and_in_files():
    """The table of the commands has a row for every option; `integrate` and `ensemble` take it."""
    from odesim.cli.options import OF_RUN
    from odesim.cli.run import ensemble_command, integrate_command

    assert set(IN_FILES) == {*NAMES, "span", "steps", "save"}
    assert set(OF_RUN.split()) == set(IN_FILES)
    for command in (integrate_command, ensemble_command):
        taken = {p.name: p for p in command.params}
        for name in NAMES:
            assert f"--{name.replace('_', '-')}" in taken[name].opts and (taken[name].default is None or OPTIONS[name].many)
            assert getattr(taken[name], "help", "")


@pytest.mark.parametrize("name", OPTIONS)
def test_a_row_is_an_argument_and_an_option(name):
    """Every row of the table is an argument of ensemble, with the default of the row, and an option of its command, with the row's help."""
    from odesim.cli.run import ensemble_command

    (row,) = (row for table in (Values, RunOptions, Work) for row in fields(table) if row.name == name)
    default = signature(odesim.ensemble).parameters[name].default
    assert default == row.default or (default is None and row.default_factory is dict) or (name == "observe" and default == ())
    (taken,) = (p for p in ensemble_command.params if p.name == name)
    shown = OPTIONS[name].help
    assert getattr(taken, "help", "") == (shown if isinstance(shown, str) else shown["an ensemble"])
    assert "{" not in str(getattr(taken, "help", ""))


@pytest.mark.slow
def test_a_result_has_every_option():
    """attrs of a Solution, where the method and the backend stand beside them; those of an ensemble have what netCDF can hold."""
    run = odesim.integrate("joma.nonlinear", sizes={"M": 3}, stop_at=0.5, seed=2)
    assert options_of({**run.attrs, "method": "auto", "backend": run.backend}) == RunOptions(stop_at=(0.5,), seed=2)
    many = odesim.ensemble("joma.nonlinear", params={"mu": [[0.5] * 3, [1.0] * 3]}, method="tsit5", stop_at=0.5, seed=2).attrs
    lacks = dict.fromkeys(("step", "max_step", "first_step"))  # netCDF has no null
    assert options_of({**lacks, **many}) == RunOptions(method="tsit5", stop_at=(0.5,), seed=2)


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_ensemble_is_identified_by_every_option(name):
    """Another value of an option is another identity."""
    from odesim.store.manifest import option_digests

    plain = RunOptions().numbers()
    other = {**plain, name: RunOptions(**OTHER).numbers()[name]}
    differ = {key for key, value in option_digests(plain).items() if option_digests(other)[key] != value}
    assert differ == {name}
