"""Observables of an ensemble that are not a number are named with the members and the first time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Interval, log, oo, symbols

import odesim
from odesim.ensembles.ledger import NotNumber, join_not_numbers, not_numbers_of
from odesim.symbolic import Event, Param, System
from tests.support.systems import SOURCE

SAVE = [0.0, 0.25, 0.75, 1.5, 2.0]


def falling() -> System:
    """x' = -a from 1, so that log x is a number up to t = 1/a."""
    x, a = symbols("x a")
    return System(
        name="test.falling",
        source=SOURCE,
        axes={},
        equations={x: -a},
        params=(Param(a, 1.0, Interval(0, oo), "rate"),),
        initial={x: 1.0},
        observables={"log": log(x), "twice": 2 * x},
        span=(0.0, 2.0),
    )


RATES = np.array([0.1, 0.45, 0.9, 3.0, 0.3, 0.6])  # log x is lost between two saved times


def test_members_that_lose_an_observable_are_counted() -> None:
    """As many members as lose it in exact arithmetic, the first of them and its first saved time."""
    lost = [i for i, rate in enumerate(RATES) if 1 - rate * SAVE[-1] < 0]
    time = next(t for t in SAVE if 1 - RATES[lost[0]] * t < 0)
    said = f"the observable 'log' is not a number in {len(lost)} members, first in member {lost[0]} at t = {time:g}"
    asked: dict[str, Any] = {"params": {"a": RATES}, "save": SAVE, "observe": ["log", "twice"]}
    assert odesim.ensemble(falling(), **asked).attrs["not_numbers"] == [said]
    assert odesim.ensemble(falling(), **{**asked, "params": {"a": RATES[:2]}}).attrs.get("not_numbers") is None


@pytest.mark.slow
def test_times_after_the_end_do_not_count() -> None:
    """A member that a terminal event ends before its observable is lost has none that is not a number."""
    (x,) = falling().equations
    ends = replace(falling(), events=(Event("small", x - 0.2, -1, True),))
    found = odesim.ensemble(ends, params={"a": RATES}, save=SAVE, observe=["log"])
    assert np.isnan(found["log"].values).any() and "not_numbers" not in found.attrs


@pytest.mark.parametrize("cut", range(len(RATES) + 1))
def test_parts_add_up(cut: int) -> None:
    """Members in two parts, whichever comes first, give what all of them at once do."""
    numbers = np.arange(len(RATES))
    times = np.where(RATES > 0.5, 1 + numbers / 4, np.inf)
    expected = {"log": NotNumber("log", 3, 2, 1.5)}
    assert not_numbers_of(numbers, {"log": times}) == expected
    for parts in ((slice(cut), slice(cut, None)), (slice(cut, None), slice(cut))):
        assert join_not_numbers(*(not_numbers_of(numbers[part], {"log": times[part]}) for part in parts)) == expected
