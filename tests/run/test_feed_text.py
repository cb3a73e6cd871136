"""Functions around a step as restricted Python: what is known is put in, and nothing else changes."""

import pytest

from odesim.run.lane_feed import Frames
from odesim.stepper.statements import Text

TEXT = """
def owner():
    return i if THREAD else members[l]


def put():
    for d in each(N):
        out[d] = S[row.y + d * W + l]


@kernel
def run(at, S, l):
    S[row.t + l] = at.START
    if SAVES and owner() > 0:
        put()
    for k, place in each(KNOWN):
        start[k] = S[place + l] + VALUE
    step(S, *GIVEN)
"""
HEAD = "@kernel\ndef run(at, S, l):\n    S[40 + l] = at[7]\n"
TAIL = "    start[0] = S[16 + l] + t1\n    step(S, t0, t1)"
KNOWN = {"N": 2, "W": 8, "THREAD": True, "SAVES": True, "KNOWN": [(0, 16)], "VALUE": "t1", "GIVEN": ("t0", "t1")}


@pytest.mark.parametrize(
    ("known", "between"),
    [
        ({}, "    if i > 0:\n        out[0] = S[0 + l]\n        out[1] = S[8 + l]\n"),
        ({"THREAD": False, "N": 1}, "    if members[l] > 0:\n        out[0] = S[0 + l]\n"),
        ({"SAVES": False}, ""),
    ],
)
def test_what_is_known_is_put_in(known, between):
    """Switches decide branches, loops of known length are written out, rows and columns are numbers, known texts are expressions."""
    frames = Frames(Text(TEXT), {**KNOWN, **known}, {"t": 40, "y": 0}, {"at": {"START": 7}})
    assert frames.printed("run") == [HEAD + between + TAIL]


def test_a_length_that_is_not_known_stays_a_loop():
    """The number of components of lanes with loops."""
    known = {name: value for name, value in KNOWN.items() if name != "N"}
    (text,) = Frames(Text(TEXT), known, {"t": 40, "y": 0}, {"at": {"START": 7}}).printed("run")
    assert "        for d in range(n):\n            out[d] = S[0 + d * 8 + l]\n" in text


def test_a_row_that_is_not_there_is_a_mistake():
    """It is found when the text is read."""
    with pytest.raises(AttributeError, match="no attribute 'y'"):
        Frames(Text(TEXT), KNOWN, {"t": 40}, {"at": {"START": 7}}).printed("run")
