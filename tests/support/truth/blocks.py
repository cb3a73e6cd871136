"""Right-hand sides by hand, sample by sample, of models that are written from their loss: what backpropagation gives."""

from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, Any]
Pair = tuple[Callable[[Any], Any], Callable[[Any], Any]]

PHI: dict[str, Pair] = {  # phi, phi'
    "identity": (lambda u: u, np.ones_like),
    "softplus": (lambda u: np.log1p(np.exp(u)), lambda u: 1 / (1 + np.exp(-u))),
    "square": (lambda u: u * u, lambda u: 2 * u),
}


def attend(attention: str, x: np.ndarray, z: np.ndarray, T: float) -> tuple[np.ndarray, np.ndarray]:
    """(b (Mc,), db/dz (Mc, Mc)) of one sample."""
    if attention == "linear":
        return x * z / T, np.diag(x) / T
    b = x * np.exp(z / T)
    if attention == "exp":
        return b, np.diag(b) / T
    b = b / b.sum()
    return b, (np.diag(b) - np.outer(b, b)) / T


def joint(attention: str, phi: str = "identity") -> Callable[[float, Arrays, Arrays], Arrays]:
    """The right-hand side of joma.joint_<attention> with this activation."""
    value, slope = PHI[phi]

    def f(t: float, y: Arrays, q: Arrays) -> Arrays:
        V, Xi, Z = (y[name] for name in ("V", "Xi", "Z"))
        dV, dXi, dZ = np.zeros_like(V), np.zeros_like(Xi), np.zeros_like(Z)
        for x, weight, m, label in zip(q["X"], q["pi"], q["q"], q["y"], strict=True):
            b, J = attend(attention, x, Z[:, m], q["T"])
            u = b @ V + Xi[m]
            p = np.exp(q["A"] @ value(u))
            g = weight * (q["A"][label] - p @ q["A"] / p.sum()) * slope(u)
            dV += np.outer(b, g)
            dXi[m] += g
            dZ[:, m] += J.T @ (V @ g)
        return {"V": q["eta_w"] * dV, "Xi": q["eta_w"] * dXi, "Z": q["eta_z"] * dZ}

    return f


def multilayer(phi: str = "identity") -> Callable[[float, Arrays, Arrays], Arrays]:
    """The right-hand side of hierarchy.multilayer with this activation, all samples at once."""
    value, slope = PHI[phi]

    def f(t: float, y: Arrays, q: Arrays) -> Arrays:
        amplify = [np.exp(y[name] ** 2 / 2) for name in ("V1", "V2")]
        M = [y["V1"] * amplify[0], y["V2"] * amplify[1]]
        P1 = q["X"] @ M[0].T + y["xi1"]
        P2 = value(P1) @ M[1].T + y["xi2"]
        odds = np.exp(value(P2) @ y["U"].T)
        R = q["pi"][:, None] * (np.eye(len(y["U"]))[q["y"]] - odds / odds.sum(axis=1, keepdims=True))
        D2 = (R @ y["U"]) * slope(P2)
        D1 = (D2 @ M[1]) * slope(P1)
        return {
            "V1": amplify[0] * (D1.T @ q["X"]),
            "V2": amplify[1] * (D2.T @ value(P1)),
            "U": R.T @ value(P2),
            "xi1": D1.sum(axis=0),
            "xi2": D2.sum(axis=0),
        }

    return f


def reduced_exp(t: float, y: Arrays, q: Arrays) -> Arrays:
    """That of joma.joint_exp at the logits that Theorem 1 makes of the weights."""
    z = q["z0"] + q["eta_z"] / q["eta_w"] / (2 * q["T"]) * (y["V"] ** 2).sum(axis=1)
    one = {**q, "q": np.zeros(len(q["y"]), int)}
    d = joint("exp")(t, {"V": y["V"], "Xi": y["Xi"][None], "Z": z[:, None]}, one)
    return {"V": d["V"], "Xi": d["Xi"][0]}


def cluster(t: float, y: Arrays, q: Arrays) -> Arrays:
    """By Theorem 3 with the integrals of Gaussian noise and relu."""
    from scipy.stats import norm

    v, length = y["v"], np.linalg.norm(y["v"])
    k = (q["xbar"] @ v + y["xi"]) / (q["sigma"] * length)
    dv = sum(a * (norm.cdf(s) * x + q["sigma"] * norm.pdf(s) * v / length) for a, s, x in zip(q["a"], k, q["xbar"], strict=True))
    return {"v": dv, "xi": q["a"] @ norm.cdf(k)}


def covariance(t: float, y: Arrays, q: Arrays) -> Arrays:
    """By products of matrices."""
    amplify = [np.exp(y[name] ** 2 / 2) for name in ("V1", "V2")]
    M1, M2, U = y["V1"] * amplify[0], y["V2"] * amplify[1], y["U"]
    error = q["Sig_cx"] - U @ M2 @ M1 @ q["Sig_xx"]
    return {"V1": amplify[0] * ((U @ M2).T @ error), "V2": amplify[1] * (U.T @ error @ M1.T), "U": error @ (M2 @ M1).T}
