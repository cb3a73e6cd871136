"""Modular addition by hand: gradients of networks of weights, pair by pair; powers by two Fourier transforms of the weights."""

import numpy as np

from tests.support.truth.arrays import Arrays


def phases(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The gradient by all weights of the mean of -(theta_x + theta_y)^2 (xi_(x+y) - mean xi), along each wave and across it."""
    p, lam = int(q["p"]), q["lam"]
    j = np.arange(p)
    out = {name: np.zeros_like(a) for name, a in y.items()}
    for n in range(len(y["alpha"])):
        angles = 2 * np.pi * np.outer(np.arange(1, y["alpha"].shape[1] + 1), j) / p  # (K, p)
        waves = {w: angles + y[w][n][:, None] for w in ("phi", "psi")}
        theta, xi = y["alpha"][n] @ np.cos(waves["phi"]), y["beta"][n] @ np.cos(waves["psi"])
        up, xi_up = np.zeros(p), np.zeros(p)
        for a in range(p):
            for b in range(p):
                both = theta[a] + theta[b]
                right = xi[(a + b) % p] - xi.mean()
                up[a] += 2 * both * right
                up[b] += 2 * both * right
                xi_up += both**2 * ((j == (a + b) % p) - 1 / p)
        for size, angle, slope in (("alpha", "phi", up), ("beta", "psi", xi_up)):
            out[size][n] = 2 / p**3 * np.cos(waves[angle]) @ slope - lam * y[size][n]
            out[angle][n] = -2 / p**3 * np.sin(waves[angle]) @ slope / y[size][n]
    return out


def energy(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Slopes of the energy by w, pair by pair; what points outwards taken off, over |w|^4."""
    u, v, seen = y["u"], y["v"], q["seen"]
    M = len(u)
    s = np.array([[u[a] + v[(m - a) % M] for m in range(M)] for a in range(M)])
    mean = (seen * s**2).sum() / seen.sum()
    F = (seen * (s**2 - mean)).sum(axis=0)
    per_pair = 2 * seen * s * (F - (seen.sum(axis=0) @ F) / seen.sum())  # the mean has a slope too
    gu = per_pair.sum(axis=1)
    gv = np.zeros(M)
    for a in range(M):
        for m in range(M):
            gv[(m - a) % M] += per_pair[a, m]
    r2 = u @ u + v @ v
    along = (u @ gu + v @ gv) / r2
    return {"u": (gu - along * u) / r2**2, "v": (gv - along * v) / r2**2}


def powers(t: float, y: Arrays, q: Arrays) -> Arrays:
    """As printed, frequency by frequency."""
    U, V, M = y["U"], y["V"], 2 * len(y["U"]) + 1
    E = sum(M * a * b for a, b in zip(U, V, strict=True))
    return {
        "U": np.array([4 * a * (M * b - 2 * E) for a, b in zip(U, V, strict=True)]),
        "V": np.array([4 * b * (M * a - 2 * E) for a, b in zip(U, V, strict=True)]),
        "rest": -8 * E * y["rest"],
    }
