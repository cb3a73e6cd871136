"""Memories of signs whose sums are 0 now and then: they count as +1, in runs, in ensembles, and on every backend."""

from typing import Any

import numpy as np
import pytest

import odesim

SIGNS = np.array([-1.0, 1.0])


def classical(X: np.ndarray, s: np.ndarray, i: int) -> int:
    """The sum of neuron i, over patterns and the other neurons, in whole numbers."""
    return int(X[i] @ X.T @ s - X.shape[1] * s[i])


def cubes(X: np.ndarray, s: np.ndarray, i: int, m: int = 4) -> int:
    """What neuron i gains by +1, of fourth powers."""
    others = X.T @ s - X[i] * s[i]
    return int(((others + X[i]) ** m - (others - X[i]) ** m).sum())


def exponentials(X: np.ndarray, s: np.ndarray, i: int) -> float:
    """The same of exponentials, over the largest: patterns are counted for each overlap, so that a tie is 0."""
    others = X.T @ s - X[i] * s[i]
    counts = [int(X[i, others == z].sum()) for z in np.unique(others)]
    return sum(c * float(np.exp(z - others.max())) for c, z in zip(counts, np.unique(others), strict=True))


def patterns(d: int, N: int) -> np.ndarray:
    """X (d, N): random signs and, of each pattern, one that differs in neuron 0 alone, which gains 0 in every state."""
    rng = np.random.default_rng(d)
    X = rng.choice(SIGNS, (d, N // 2))
    near = X.copy()
    near[0] *= -1
    return np.hstack([X, near])[:, rng.permutation(N)]


CASES: dict[str, tuple[Any, int, int, dict[str, Any]]] = {
    "hopfield.classical": (classical, 30, 10, {}),
    "hopfield.dense": (cubes, 7, 10, {"m": 4}),
    "hopfield.dense:EXPONENTIAL": (exponentials, 7, 10, {}),
}


def after(name: str, starts: np.ndarray, steps: int) -> tuple[np.ndarray, int]:
    """Signs (start, d) after so many updates of one neuron, in whole numbers, and how many of them were ties."""
    gain, d, N, _ = CASES[name]
    X, ties, s = patterns(d, N).astype(int), 0, starts.astype(int)
    for member in s:
        for t in range(steps):
            value = gain(X, member, t % d)
            ties += value == 0
            member[t % d] = 1 if value >= 0 else -1
    return s, ties


@pytest.mark.parametrize("way", ["numpy", "numba", "ensemble"])
@pytest.mark.parametrize("name", CASES)
def test_a_tie_counts_as_one(name, way):
    """Four runs beside whole numbers, whose first neuron ties at each of two updates; d is no power of two."""
    _, d, N, own = CASES[name]
    starts = np.random.default_rng(0).choice(SIGNS, (4, d))
    want, ties = after(name, starts, 2 * d)
    assert ties >= 8
    params: dict[str, Any] = {"X": patterns(d, N), **own}
    found: Any
    if way == "ensemble":
        found = odesim.ensemble(name, params={**params, "s0": starts}, steps=2 * d, save=[2 * d])["s"].values[:, -1]
    else:
        found = [odesim.integrate(name, params={**params, "s0": s0}, steps=2 * d, save=2, backend=way).final["s"] for s0 in starts]
    np.testing.assert_array_equal(found, want)
