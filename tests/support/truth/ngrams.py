"""Right-hand sides of n-grams and of parents by hand: chain by chain, token by token."""

import numpy as np

from tests.support.truth.arrays import Arrays

CHAINS, WEIGHTS = np.random.default_rng(5).dirichlet(np.ones(3), size=(3, 3)), np.array([0.5, 0.3, 0.2])
"""P (3, 3, 3) of three chains of three states, and how often each is met: whose moments the test gives."""


def linear(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Gradients by all entries of W and v of the squared error over CHAINS, then those of one entry of each kind."""
    k, v = 3, y["v"]
    W = float(y["w_o"]) * np.ones((k, k)) + (float(y["w_d"]) - float(y["w_o"])) * np.eye(k)
    dW, dv = np.zeros((k, k)), np.zeros(len(v))
    for P, weight in zip(CHAINS, WEIGHTS, strict=True):
        pi = np.linalg.matrix_power(P, 200)[0]
        steps = [np.linalg.matrix_power(P, l) for l in range(len(v))]
        for s in range(k):
            for after in range(k):
                seen = [[pi[r] * step[r, after] for r in range(k)] for step in steps]  # at lag l from token r
                lack = P[s, after] - sum(v[l] * seen[l][r] * W[s, r] for l in range(len(v)) for r in range(k))
                for l, r in np.ndindex(len(v), k):
                    dW[s, r] += weight * pi[s] * lack * v[l] * seen[l][r]
                    dv[l] += weight * pi[s] * lack * seen[l][r] * W[s, r]
    # the mean over all namings of the states
    return {"w_d": np.trace(dW) / k, "w_o": (dW.sum() - np.trace(dW)) / (k * (k - 1)), "v": dv}


def parent_row(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Each logit by the Jacobian of the softmax."""
    S = np.exp(y["A"]) / np.exp(y["A"]).sum()
    return {"A": np.array([sum(S[j] * ((i == j) - S[i]) * q["G"][i] for i in range(len(S))) for j in range(len(S))])}
