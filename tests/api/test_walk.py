"""How far a reader has to walk: the files of odesim that a warm call enters, and how often it goes from one to another; what it calls."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sympy import symbols

import odesim
from odesim.symbolic import Source, System

FILES, SWITCHES = 30, 120
"""Of a call whose method is named; a trial of `auto` goes on in slices, each of which is seen by the driver, its memory and the signals."""
MORE = 35


def walk(**words: Any) -> tuple[set[str], int]:
    """The files that odesim.integrate enters when all is compiled, and the switches between them."""
    for _ in range(2):
        odesim.integrate("joma.nonlinear", **words)
    home, entered = str(Path(odesim.__file__).parent), list[str]()

    def see(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(home) and entered[-1:] != [file]:
            entered.append(file)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        odesim.integrate("joma.nonlinear", **words)
    finally:
        sys.setprofile(before)
    return set(entered), len(entered)


@pytest.mark.parametrize(("method", "more"), [("tsit5", 0), ("auto", MORE)])
def test_a_warm_call_is_a_short_walk(method: str, more: int) -> None:
    """joma.nonlinear with its four events and its law: few files, and few switches between them."""
    files, switches = walk(method=method)
    assert len(files) <= FILES and switches <= SWITCHES + more, (len(files), switches, sorted(files))


CALLS, EACH = 560, 14
"""Of functions, Python's own too, around a short run of two states, and for each further one: a clock would say the same, if it could."""


def calls(n: int) -> int:
    """How many functions a warm call of odesim.integrate calls, for n states with names of their own."""
    x = symbols(f"x:{n}")
    decay = System("decay", Source("own", "test"), {}, {a: -a for a in x}, initial=dict.fromkeys(x, 1.0), span=(0.0, 1.0))
    for _ in range(2):
        odesim.integrate(decay, method="tsit5")
    events, before = list[str](), sys.getprofile()
    sys.setprofile(lambda _, event, __: events.append(event))
    try:
        odesim.integrate(decay, method="tsit5")
    finally:
        sys.setprofile(before)
    return sum(event.endswith("call") for event in events)


def test_a_short_run_is_a_short_call() -> None:
    """What comes around the steps is the most of a run of some microseconds, of which a loop makes thousands."""
    few, many = calls(2), calls(32)
    assert few <= CALLS and many - few <= 30 * EACH, (few, many)
