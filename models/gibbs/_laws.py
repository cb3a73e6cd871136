"""Laws of sequences of tokens: their tables p (S,), in lexicographic order, from logarithms."""

from typing import Any

import numpy as np

from odesim.models.gibbs._kernels import length, sequences


def normalised(log_p: np.ndarray) -> np.ndarray:
    """exp(log_p), to sum 1."""
    p = np.exp(log_p - log_p.max())
    return np.asarray(p / p.sum())


def signs(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """All sequences (S, n) of -1 and 1. Raises ValueError unless q = 2."""
    q = int(params["q"])
    if q != 2:
        raise ValueError(f"the law is one of signs, for which q = 2, not {q}: give p (q^n numbers) too")
    return 2.0 * sequences(sizes["S"], q) - 1


def equal_pairs(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """exp(J sum_(i<j) x_i x_j + h sum_i x_i) of signs: all pairs alike; Curie-Weiss where J = b / n."""
    x = signs(sizes, params)
    total = x.sum(axis=1)
    return normalised(params["J"] * (total**2 - x.shape[1]) / 2 + params["h"] * total)


def ising(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """exp(x.J x / 2 + h.x) of signs, with couplings J (n, n) and fields h (n,)."""
    x = signs(sizes, params)
    if x.shape[1] != sizes["n"]:
        raise ValueError(f"n = {sizes['n']} signs have S = {2 ** sizes['n']} sequences, not {sizes['S']}")
    return normalised(np.einsum("si,ij,sj->s", x, params["J"], x) / 2 + x @ params["h"])


def mixture(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """Half a law of independent tokens that are 1 with probability 1/2 + delta, half one with 1/2 - delta."""
    x, delta = signs(sizes, params), float(params["delta"])
    with np.errstate(divide="ignore", invalid="ignore"):
        ones, zeros = (x > 0).sum(axis=1), (x < 0).sum(axis=1)
        up, down = np.log(0.5 + delta), np.log(0.5 - delta)
        return normalised(np.logaddexp(ones * up + zeros * down, ones * down + zeros * up))


def two_points(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """All tokens 0, or all of them q - 1, with probability (1 - e) / 2 each; else any sequence."""
    S, e = sizes["S"], float(params["e"])
    length(S, int(params["q"]))
    p = np.full(S, e / S)
    p[0] += (1 - e) / 2
    p[-1] += (1 - e) / 2
    return p


def dirichlet(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """A law drawn uniformly from all laws, by its seed."""
    length(sizes["S"], int(params["q"]))
    return np.random.default_rng(int(params["seed"])).dirichlet(np.ones(sizes["S"]))
