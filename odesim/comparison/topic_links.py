"""Quantities of the Systems topics.* from what a training of the task topics records."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.lab.compare.links import Link, TrainingFacts, same_quantity

WEIGHTS = ("W_V", "W_K", "W_Q")
TOPIC_SETTINGS: Mapping[str, tuple[Any, ...]] = {"mixture": ("sets",), "keys": ("all",), "loss": ("squared",)}
SYMMETRIC_START: Mapping[str, tuple[Any, ...]] = {**TOPIC_SETTINGS, "init": ("symmetric",)}


def time_of_matrices(facts: TrainingFacts) -> float:
    """The time of topics.* of one iteration: the learning rate."""
    return float(facts.optimizer["rates"]["W"])


def parts(W: Array, T: int) -> dict[str, Array]:
    """The parts w, t and U (R, T, ...) of matrices (R, T, d, d).

    w: of contrasts within topics. t: of topics. U: the rest, in mask and mean word.
    """
    n = W.shape[-1] - 1
    v = n // T
    U = np.zeros((n + 1, 2))
    U[0, 0], U[1:, 1] = 1, n**-0.5
    blocks = W[..., 1:, 1:].reshape(*W.shape[:-2], T, v, T, v)
    own = np.einsum("...aiai->...", blocks)  # the trace
    topic = np.einsum("...aiaj->...", blocks) / v
    mean = W[..., 1:, 1:].sum(axis=(-2, -1)) / n
    return {"w": (own - topic) / max(n - T, 1), "t": (topic - mean) / max(T - 1, 1), "U": U.T @ W @ U}


def part(name: str, source: str, letter: str, place: tuple[int, int] | None = None) -> Link:
    """A Link to a number of topics.reduced, or to its two by two matrix."""

    def make(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
        found = parts(seen[source], facts.config["T"])[letter]
        return found if place is None else found[:, :, place[0], place[1]]

    return Link(name, (source,), make, doc=f"of the training's {source}")


SAME = tuple(map(same_quantity, (*(f"norm_{name}" for name in WEIGHTS), *WEIGHTS)))
NUMBERS = (
    *(part(f"{letter}_{kind}", source, kind) for letter, source in zip("akq", WEIGHTS, strict=True) for kind in "wt"),
    part("r_w", "W_V", "U", (1, 1)),
    part("r_m", "W_V", "U", (1, 0)),
    part("K2", "W_K", "U"),
    part("Q2", "W_Q", "U"),
)
