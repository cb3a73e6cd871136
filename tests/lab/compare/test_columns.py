"""Columns of a recorded decoder in the order of the System's."""

import numpy as np
import pytest

from odesim.lab.networks.one_layer import collapse_columns
from odesim.lab.training.task import TrainingFacts


@pytest.mark.parametrize("init", ["zero", "torch"])
@pytest.mark.parametrize("others", [0, 1, 4])
def test_next_tokens_come_first(init: str, others: int) -> None:
    """The last K of M columns are those of next tokens, in their order; then the mean of the others, or all of them from a random start."""
    K, S, rows = 3, 5, 7
    Y = np.random.default_rng(0).normal(size=(2, 4, rows, others + K))
    facts = TrainingFacts("scan_snap", {"init": init}, {"P": np.full((K, S), 1 / S)}, {})
    found = collapse_columns({"Y": Y}, facts)
    for r, t, row in np.ndindex(2, 4, S):
        rest = [Y[r, t, row, j] for j in range(others)]
        mean = [sum(rest) / others if others else 0.0]
        if init == "zero" and others == 1:  # one column for all others is the System's own form
            assert found[r, t, row].tolist() == Y[r, t, row].tolist()
        else:
            want = [Y[r, t, row, others + k] for k in range(K)] + (rest if init == "torch" else mean)
            assert found[r, t, row] == pytest.approx(want, rel=1e-13)
