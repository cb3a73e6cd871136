"""Right-hand sides of hierarchical latent trees, by hand in numpy, straight from the papers."""

import numpy as np

from tests.support.truth.arrays import Arrays


def grouped(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Every one of the N^(L-1) - 1 leaves on its own, one of each group returned."""
    v, N, rho = y["v"], int(q["N"]), q["rho"]
    height = np.repeat(np.arange(1, len(v) + 1), [(N - 1) * N**h for h in range(len(v))])
    all_v = v[height - 1]
    P = (1 + rho ** (2 * height) - 2 * rho ** len(v) * q["rho0"]) / (1 - rho ** len(v) * q["rho0"]) / 2
    e = np.exp(all_v**2 / 2)
    d = (q["kappa"] * P - all_v) * e / e.sum()
    return {"v": d[[np.flatnonzero(height == h + 1)[0] for h in range(len(v))]]}


def occurrence(t: float, y: Arrays, q: Arrays) -> Arrays:
    step = np.array([[1 + q["rho"], 1 - q["rho"]], [1 - q["rho"], 1 + q["rho"]]]) / 2
    return {"c": y["c"] * (np.linalg.eigvalsh(step @ step)[0])}


def gated(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Token by token: every latent of a layer below the query's child of the root, with their covariance."""
    L, N, rho, found, r = len(y["v1"]) + 1, int(q["N"]), float(q["rho"]), {}, 1.0
    for s in range(1, 4):
        v, heights = y[f"v{s}"], np.arange(s, L)
        P = 1 - (1 - rho ** (2 * (heights - s + 1))) / (2 * (1 - rho ** (L - s) * q["rho0"]))
        places = np.arange(N ** (L - s))  # tokens of height s - 1; the query is the first
        levels = [places // N**k for k in range(L - s + 1)]
        up = np.array([[next(k for k in range(L - s + 1) if levels[k][a] == levels[k][b]) for b in places] for a in places])
        group = up[0, 1:] - 1  # component of each other token
        weight = np.exp(v[group] ** 2 / 2)
        found[f"v{s}"] = (q["kappa"] * r**2 * P - v) * np.exp(v**2 / 2) / weight.sum()
        w = np.append(1.0, v[group] * weight)
        covariance = np.where(up == 0, 1.0, r**2 * rho ** (2.0 * up))
        above = r * rho ** np.append(1.0, 2.0 * group + 1)
        r = float(w @ above / np.sqrt(w @ covariance @ w))
    return found
