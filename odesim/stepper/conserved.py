"""Linear invariants that a Rosenbrock step of one system keeps."""

from collections.abc import Sequence

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.invariants import LinearInvariant, exact_sums

MOST_ROUNDS = 12
"""Invariants that share states, one after another: beyond it they take the time of the step."""


def conserved(invariants: Sequence[LinearInvariant], start: Array) -> Array:
    """Linear invariants with numbers as weights and their values at the start (n,) of a run, as control.move_back reads them.

    How many there are, and of each, in the order in which they are restored: its number of places, its value, the places, the weights.
    """
    groups = _apart(invariants)[-MOST_ROUNDS:]
    numbers = [float(sum(map(len, groups)))]
    for invariant in (i for group in groups for i in group):
        numbers += [len(invariant.places), float(exact_sums(invariant, start[None])[0]), *invariant.places, *invariant.weights]  # type: ignore[list-item]
    return np.array(numbers)


def _apart(invariants: Sequence[LinearInvariant]) -> list[list[LinearInvariant]]:
    """Groups of invariants that share no state, ordered after the groups they share states with."""
    groups: list[list[LinearInvariant]] = []
    used: list[set[int]] = []
    for invariant in invariants:
        places = set(invariant.places)
        after = max((k + 1 for k, states in enumerate(used) if states & places), default=0)
        if after == len(groups):
            groups.append([])
            used.append(set())
        groups[after].append(invariant)
        used[after] |= places
    return groups
