"""One numbering of how runs stand."""

import numpy as np
import pytest

from odesim.stepper.codes import HANDED_OVER, STATUSES, UNDONE, WORDS, Code, Status, stored

# the numbers of stores that were written before: these do not change
KNOWN = ["ok", "event", "max_steps", "step_too_small", "non_finite", "blow_up", "interrupted", "sliding", "left_domain"]


@pytest.mark.parametrize("number", range(len(KNOWN)))
def test_a_status_keeps_its_number(number: int) -> None:
    """In arrays and stores it is its Code less one; what is not done, or left for another method, is below 0."""
    status = Status(KNOWN[number])
    assert (STATUSES[number], status.number, stored(status.code)) == (status, number, number)
    assert (UNDONE, HANDED_OVER) == (-1, -2)


def test_codes_above_zero_are_the_statuses() -> None:
    """Each way to end has words, and nothing else has; arrays of codes become arrays of numbers."""
    assert {code.name for code in Code if code > 0} == {status.name for status in Status}
    assert {name: Code[name] for name in WORDS} == WORDS
    np.testing.assert_array_equal(stored(np.array([Code.RUNNING, *(s.code for s in STATUSES)])), range(-1, len(STATUSES)))
