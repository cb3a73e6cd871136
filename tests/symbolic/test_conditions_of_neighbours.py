"""What is shown of a neighbour beyond the ends of its axis: the condition that it is inside."""

import pytest
from sympy import Symbol

from odesim.symbolic.indices import Inside


@pytest.mark.parametrize("c", [-3, -1, 1, 2])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_condition_is_shown_as_it_is(c: int, n: int) -> None:
    """For each place of an axis of n: whether the place c further is on it."""
    i = Symbol("i", integer=True)
    condition = Inside(i, c, n).readable()
    assert [bool(condition.subs(i, place)) for place in range(n)] == [place + c in range(n) for place in range(n)]
