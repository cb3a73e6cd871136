"""The task pcfg: its grammar, conditional entropies by inside messages, masks, and that levels are learned in their order."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks.pcfg import MASK, all_sentences, draw_masked, levels, masked


def messages(seen: dict[int, int], depth: int) -> Any:
    """P(letters seen) of {place: letter} for each root (4,), by inside messages up the tree."""
    up = [np.eye(4)[seen[place]] if place in seen else np.ones(4) for place in range(2**depth)]
    while len(up) > 1:
        up = [
            np.array([np.mean([left[(a + 2 * c) % 4] * right[(2 * a + c) % 4] for c in (0, 1)]) for a in range(4)])
            for left, right in zip(up[::2], up[1::2], strict=True)
        ]
    return up[0].mean()


@pytest.mark.parametrize("depth", [2, 3])
def test_levels_by_inside_messages(depth: int) -> None:
    """One letter from the block around it: the entropy of each answer's probability, over 60 sentences drawn; all are alike here."""
    rng, places = np.random.default_rng(1), 2**depth
    every = all_sentences(depth)
    assert len(np.unique(every, axis=0)) == len(every) == 4 * 2 ** (places - 1)
    for n, want in enumerate(levels(depth)):
        found = []
        for row in every[rng.integers(len(every), size=60)]:
            place = int(rng.integers(places))
            first = place - place % 2**n
            seen = {p: int(row[p]) for p in range(first, first + 2**n) if p != place}
            odds = np.array([messages(seen | {place: letter}, depth) for letter in range(4)])
            assert odds[row[place]] > 0  # the sentence is one of the messages' grammar
            odds = odds[odds > 0] / odds.sum()
            found.append(-(odds * np.log(odds)).sum() / np.log(4))
        # a letter of a pair has one bit left or, higher up, none: a mean of 60
        assert np.mean(found) == pytest.approx(want, abs=4 * max(np.std(found), 1e-12) / 60**0.5 + 1e-12)


def test_sentences_are_derivations() -> None:
    """Each drawn sentence reduces to one symbol by the eight rules, and its mask hides the target alone."""
    parent = {((a + 2 * c) % 4, (2 * a + c) % 4): a for a, c in product(range(4), range(2))}
    assert len(parent) == 8
    batch = draw_masked(np.random.default_rng(0), 200, depth=3)
    assert np.all((batch["tokens"] == MASK).sum(axis=1) == 1)
    for tokens, place, letter in zip(batch["tokens"].tolist(), batch["positions"][:, 0], batch["targets"][:, 0], strict=True):
        assert tokens[place] == MASK
        row = [*tokens[:place], letter, *tokens[place + 1 :]]
        while len(row) > 1:
            row = [parent[pair] for pair in zip(row[::2], row[1::2], strict=True)]
    same = masked(np.array([[0, 0, 1, 2]]), np.array([2]))
    np.testing.assert_array_equal(same["tokens"], [[0, 0, MASK, 2]])


def test_the_share_is_the_loss_of_all_cases() -> None:
    """Before any step, of two seeds at depth 1, where eight sentences of two letters are all there is."""
    run = odesim.train("pcfg", settings={"depth": 1, "width": 4, "mlp": 4, "layers": 1}, seeds=(0, 2), steps=0, observe=["share"])
    assert run.observables["share"].shape == (2, 1) and np.all(run.observables["share"] > 0.9)
    np.testing.assert_allclose(levels(1), [1, 0.5])
