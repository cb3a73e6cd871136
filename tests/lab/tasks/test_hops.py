"""The task hops: its answers by walking, chains that end, seeds by themselves, and what one layer can do."""

from functools import partial

import numpy as np
import pytest

import odesim
from odesim.lab.tasks.hops import answers, draw_letters, draw_sequences, wrong
from odesim.lab.training.randomness import Drawn


def walked(x: list[int], place: int, hops: int, none: int) -> int:
    """The answer by going back letter by letter."""
    for _ in range(hops):
        earlier = [p for p in range(place) if x[p] == x[place]]
        if not earlier:
            return none
        place = earlier[-1] + 1
    return x[place]


def test_answers_are_those_of_a_walk() -> None:
    """200 sequences of 3 and 5 letters, 0 to 6 hops from every place."""
    for letters in (3, 5):
        rng = np.random.default_rng(letters)
        x = draw_letters(rng, 200, letters, 17)
        assert np.all(x[:, 1:] != x[:, :-1]) and set(np.unique(x)) == set(range(letters))
        k = rng.integers(7, size=200)
        want = [[walked(row, place, hops, letters) for place in range(17)] for row, hops in zip(x.tolist(), k.tolist(), strict=True)]
        np.testing.assert_array_equal(answers(x, k, letters), want)


def test_batches_and_tests() -> None:
    """The first token says how many hops; in tests all numbers in turn; right answers err never, none where it is none."""
    stream = Drawn((0, 3), partial(draw_sequences, letters=4, hops=3, length=12), batch=40)
    batch = stream(2)
    assert batch["tokens"].shape == batch["targets"].shape == (2, 40, 13) and np.all(batch["targets"][..., 0] == -1)
    assert set(np.unique(batch["tokens"][..., 0])) == {4, 5, 6, 7} and batch["tokens"][..., 1:].max() == 3
    test = Drawn((0, 3), partial(draw_sequences, letters=4, hops=3, length=12, each=True), batch=0).test(32)
    np.testing.assert_array_equal(test["tokens"][0, :, 0] - 4, np.tile(range(4), 8))
    one_hot = np.eye(5)[np.maximum(test["targets"], 0)]
    np.testing.assert_array_equal(wrong(one_hot, test["targets"], 3), np.zeros((2, 4)))
    none = np.tile(np.eye(5)[4], (*test["targets"].shape, 1))
    missed = wrong(none, test["targets"], 3)
    assert np.all(missed[:, 0] == 1) and np.all(missed[:, 1:] < 1)


@pytest.mark.slow
def test_one_layer_is_no_induction_head() -> None:
    """After 1000 steps one layer copies but errs on one hop, which two layers do; two hops neither does. Ranges over two seeds."""
    ends = {}
    for layers in (1, 2):
        run = odesim.train("hops", settings={"layers": layers}, seeds=range(2), steps=1000, save=2, observe=["error"], dtype="float32")
        ends[layers] = run.observables["error"][:, -1]
    assert np.all(ends[1][:, 0] < 0.01) and np.all(ends[1][:, 1] > 0.15) and np.all(ends[2][:, 1] < 0.03) and np.all(ends[2][:, 2] > 0.2)
