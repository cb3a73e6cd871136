"""Sequences of different tokens with a query that repeats one of them: the answer is the token after it."""

import numpy as np
from numpy.random import Generator

from odesim.lab.training.protocols import Batch


def draw_repeats(rng: Generator, count: int, *, N: int, V: int) -> Batch:
    """Tokens (count, N + 1), the last the query, targets (count,), and the places `answer` (count,) of the targets, 1 to N - 1."""
    tokens = np.argsort(rng.random((count, V)), axis=1)[:, :N]
    places, rows = rng.integers(1, N, size=count), np.arange(count)
    return {"tokens": np.column_stack([tokens, tokens[rows, places - 1]]), "targets": tokens[rows, places], "answer": places}
