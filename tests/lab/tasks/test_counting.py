"""The task counting: its counts by walking, seeds by themselves, and who can count."""

import numpy as np
import pytest

import odesim
from odesim.lab.tasks.counting import CLOSE, OPEN, draw_rows, wrong


@pytest.mark.parametrize(("length", "regions"), [(9, 2), (6, 3), (12, 1)])
def test_counts_are_those_of_a_walk(length: int, regions: int) -> None:
    """300 rows, bracket by bracket; all pairs of brackets come; the questions follow in order."""
    batch = draw_rows(np.random.default_rng(length), 300, length=length, regions=regions)
    for tokens, positions, targets in zip(batch["tokens"].tolist(), batch["positions"], batch["targets"].tolist(), strict=True):
        found, inside = [], False
        for token in tokens[:length]:
            if token in (OPEN, CLOSE):
                assert inside == (token == CLOSE)
                inside = not inside
                found += [0] * inside
            elif inside:
                found[-1] += token
        assert found == targets and not inside and tokens[length:] == [4 + n for n in range(regions)]
        np.testing.assert_array_equal(positions, length + np.arange(regions))
    places = {tuple(np.flatnonzero(row[:length] >= OPEN)) for row in batch["tokens"]}
    assert len(places) > 1 or 2 * regions == length


def test_wrong_counts() -> None:
    """Right answers err never, and a constant answer where the count is another."""
    targets = draw_rows(np.random.default_rng(0), 500, length=9, regions=2)["targets"][None]
    np.testing.assert_array_equal(wrong(np.eye(6)[targets], targets), np.zeros((1, 2)))
    constant = np.array([wrong(np.tile(np.eye(6)[c], (*targets.shape, 1)), targets) for c in range(6)])
    often = [[np.bincount(column, minlength=6) for column in rows.T] for rows in targets]
    np.testing.assert_allclose(constant, 1 - np.moveaxis(np.array(often), 2, 0) / targets.shape[1], atol=1e-15)


@pytest.mark.slow
def test_who_can_count() -> None:
    """After 800 steps of 1e-3: who sees the past alone counts, with positions or without; who sees all does less well, or cannot at all.

    At 3e-3 counting comes and goes, with the last bit of a machine's products.
    """
    ends = {}
    for sees, positions in (("past", "none"), ("past", "learned"), ("all", "learned"), ("all", "none")):
        run = odesim.train(
            "counting",
            settings={"sees": sees, "positions": positions, "lr": 1e-3},
            seeds=range(2),
            steps=800,
            save=3,
            observe=["error"],
            dtype="float32",
        )
        ends[sees, positions] = run.observables["error"][:, -1]
    assert np.all(ends["past", "none"] < 0.1) and np.all(ends["past", "learned"] < 0.15)
    assert np.all(ends["all", "learned"] > 0.07) and np.all(ends["all", "none"] > 0.5)
