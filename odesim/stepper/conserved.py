"""Linear invariants that a Rosenbrock step of one system keeps."""

from collections.abc import Sequence

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.invariants import LinearInvariant, exact_sums

MOST_ROUNDS = 12
"""Invariants that share states, one after another: beyond it they take the time of the step."""


class ConservedInvariants:
    """Linear invariants with numbers as weights, and their values at the start (n,) of a run."""

    def __init__(self, invariants: Sequence[LinearInvariant], start: Array) -> None:
        self._rounds = [_Round(group, start) for group in _apart(invariants)[-MOST_ROUNDS:]]

    def restore(self, y: Array) -> Array:
        """y (n,) itself, moved so that the invariants, group by group, have their values."""
        for step in self._rounds:
            step.restore(y)
        return y


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


class _Round:
    """A group of invariants that share no state, restored together."""

    def __init__(self, group: Sequence[LinearInvariant], start: Array) -> None:
        sizes = [len(i.places) for i in group]
        self.places, self.weights = np.concatenate([i.places for i in group]), np.concatenate([i.weights for i in group])
        self.firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.members = np.repeat(np.arange(len(group)), sizes)
        self.values = np.array([float(exact_sums(i, start[None])[0]) for i in group])

    def restore(self, y: Array) -> None:
        parts = y[self.places]
        terms = self.weights * parts
        size = np.add.reduceat(terms * terms, self.firsts)
        rest = self.values - np.add.reduceat(terms, self.firsts)
        usable = (size > 0) & np.isfinite(rest)
        share = np.where(usable, rest, 0.0) / np.where(usable, size, 1.0)
        y[self.places] = parts + parts * (terms * share[self.members])
