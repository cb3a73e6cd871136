"""The task flip_flop: its bits by walking, seeds by themselves, and what one layer can do."""

import numpy as np
import pytest

import odesim
from odesim.lab.tasks.flip_flop import IGNORE, READ, WRITE, draw_sequences, wrong
from odesim.lab.training.randomness import Drawn


def test_bits_are_those_of_a_walk() -> None:
    """300 sequences of three shares in turn: reads repeat the bit last written, and are asked; shares to four standard errors."""
    batch = draw_sequences(np.random.default_rng(0), 300, instructions=20, ignore=(0.8, 0.5, 0.1))
    kinds: list[list[int]] = [[], [], []]
    for n, (tokens, targets) in enumerate(zip(batch["tokens"].tolist(), batch["targets"].tolist(), strict=True)):
        kind, bit, memory = tokens[::2], tokens[1::2], None
        assert kind[0] == WRITE and kind[-1] == READ and set(bit) <= {0, 1}
        for place in range(20):
            memory = bit[place] if kind[place] == WRITE else memory
            assert targets[2 * place + 1] == -1 and targets[2 * place] == (memory if kind[place] == READ else -1)
            assert kind[place] != READ or bit[place] == memory
        kinds[n % 3] += kind[1:-1]
    for share, row in zip((0.8, 0.5, 0.1), kinds, strict=True):
        got = [np.mean(np.array(row) == kind) for kind in (IGNORE, WRITE, READ)]
        np.testing.assert_allclose(got, [share, (1 - share) / 2, (1 - share) / 2], atol=4 * 0.5 / len(row) ** 0.5)


def test_wrong_bits() -> None:
    """Right answers err never; of the bit before, a half of those after an ignored one, and none after a write: by sequence of a set."""
    test = Drawn((0, 3), lambda rng, n: draw_sequences(rng, n, instructions=12, ignore=(0.8, 0.98, 0.1)), batch=0).test(900)
    np.testing.assert_array_equal(wrong(test["targets"], test["targets"]), np.zeros((2, 3)))
    np.testing.assert_array_equal(wrong(1 - test["targets"], test["targets"]), np.ones((2, 3)))
    found = wrong(np.pad(test["tokens"][..., :-1], [(0, 0), (0, 0), (1, 0)]), test["targets"])
    # half of the share that is ignored; the first one, which writes, is before a read of twelve at most
    assert np.all(np.abs(found - [0.4, 0.49, 0.05]) < [0.06, 0.08, 0.02])


@pytest.mark.slow
def test_one_layer_cannot_know_what_was_written() -> None:
    """After 400 steps: one layer sees bits, not what stands before them, two layers do; dense sequences lag. Ranges over two seeds."""
    ends = {}
    for layers in (1, 2):
        run = odesim.train("flip_flop", settings={"layers": layers}, seeds=range(2), steps=400, save=5, observe=["error"], dtype="float32")
        ends[layers] = run.observables["error"]
    assert np.all(ends[1][:, -1, [0, 2]] > 0.1) and np.all(ends[2][:, -1, 0] < 0.03)
    assert ends[2][:, 2:, 2].mean() > 2 * ends[2][:, 2:, 0].mean()
