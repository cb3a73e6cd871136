"""The task composition: its answers entry by entry and as two hops, seeds by themselves, and how many layers it takes."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks.composition import draw_tables
from odesim.lab.tasks.hops import answers


def test_answers_entry_by_entry() -> None:
    """300 sequences of tables of five entries."""
    batch = draw_tables(np.random.default_rng(0), 300, entries=5)
    for row, answer in zip(batch["tokens"].tolist(), batch["targets"].tolist(), strict=True):
        f, g, x = row[:5], row[5:10], row[10]
        assert g[f[x]] == answer


def test_it_is_two_hops() -> None:
    """Written as pairs b g(b), then a f(a), then x, each of the three sets with letters of its own: two hops from x, f being one to one."""
    n, rng = 4, np.random.default_rng(1)
    for _ in range(50):
        f, g, x = rng.permutation(n), rng.integers(n, size=n), int(rng.integers(n))
        pairs = [letter for b in rng.permutation(n) for letter in (n + b, 2 * n + g[b])]
        pairs += [letter for a in rng.permutation(n) for letter in (a, n + f[a])]
        there = answers(np.array([[*pairs, x]]), np.array([2]), 3 * n)[0, -1]
        assert there == 2 * n + g[f[x]]


@pytest.mark.slow
def test_two_layers_compose() -> None:
    """After 1200 steps: one layer has the error of a guess by g, two layers none."""
    ends = []
    for layers in (1, 2):
        given: dict[str, Any] = {"settings": {"layers": layers}, "seeds": range(2), "dtype": "float32"}
        ends.append(odesim.train("composition", steps=1200, save=2, observe=["error"], **given).observables["error"][:, -1])
    assert np.all(ends[0] > 0.5) and np.all(ends[1] < 0.03)
