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
    "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0) * 1.0),
}


def sent_back(signal: str, score: np.ndarray, label: int) -> np.ndarray:
    """-dL/dscore (C,) of one sample: cross-entropy, squared loss, or a signal that stays."""
    own = np.eye(len(score))[label]
    if signal == "mse":
        return own - score
    p = np.exp(score) if signal == "ce" else np.ones(len(score))
    return own - p / p.sum()


def attend(attention: str, x: np.ndarray, z: np.ndarray, T: float) -> tuple[np.ndarray, np.ndarray]:
    """(b (Mc,), db/dz (Mc, Mc)) of one sample."""
    if attention == "linear":
        return x * z / T, np.diag(x) / T
    b = x * np.exp(z / T)
    if attention == "exp":
        return b, np.diag(b) / T
    b = b / b.sum()
    return b, (np.diag(b) - np.outer(b, b)) / T


def joint(attention: str, phi: str = "identity", signal: str = "ce") -> Callable[[float, Arrays, Arrays], Arrays]:
    """The right-hand side of joma.joint_<attention> with this activation and loss."""
    value, slope = PHI[phi]

    def f(t: float, y: Arrays, q: Arrays) -> Arrays:
        V, Xi, Z = (y[name] for name in ("V", "Xi", "Z"))
        dV, dXi, dZ = np.zeros_like(V), np.zeros_like(Xi), np.zeros_like(Z)
        for x, weight, m, label in zip(q["X"], q["pi"], q["q"], q["y"], strict=True):
            b, J = attend(attention, x, Z[:, m], q["T"])
            u = b @ V + Xi[m]
            g = weight * (sent_back(signal, q["A"] @ value(u), int(label)) @ q["A"]) * slope(u)
            dV += np.outer(b, g)
            dXi[m] += g
            dZ[:, m] += J.T @ (V @ g)
        return {"V": q["eta_w"] * dV, "Xi": q["eta_w"] * dXi, "Z": q["eta_z"] * dZ}

    return f


def multilayer(phi: str = "identity", depth: int = 2) -> Callable[[float, Arrays, Arrays], Arrays]:
    """The right-hand side of hierarchy.multilayer with this activation and number of layers, all samples at once."""
    value, slope = PHI[phi]

    def f(t: float, y: Arrays, q: Arrays) -> Arrays:
        layers = range(1, depth + 1)
        amplify = {s: np.exp(y[f"V{s}"] ** 2 / 2) for s in layers}
        h, P = {0: q["X"]}, {}
        for s in layers:
            P[s] = h[s - 1] @ (y[f"V{s}"] * amplify[s]).T + y[f"xi{s}"]
            h[s] = value(P[s])
        odds = np.exp(h[depth] @ y["U"].T)
        R = q["pi"][:, None] * (np.eye(len(y["U"]))[q["y"]] - odds / odds.sum(axis=1, keepdims=True))
        above, found = R @ y["U"], {"U": R.T @ h[depth]}
        for s in reversed(layers):
            D = above * slope(P[s])
            found |= {f"V{s}": amplify[s] * (D.T @ h[s - 1]), f"xi{s}": D.sum(axis=0)}
            above = D @ (y[f"V{s}"] * amplify[s])
        return found

    return f


def multilayer_loss(y: Arrays, q: Arrays, phi: str, depth: int) -> float:
    """The cross-entropy of hierarchy.multilayer, one sample and one node at a time, from weights as they act, M1, M2, ..."""
    value, total = PHI[phi][0], 0.0
    for x, weight, label in zip(q["X"], q["pi"], q["y"], strict=True):
        h = list(x)
        for s in range(1, depth + 1):
            h = [
                float(value(sum(w * a for w, a in zip(row, h, strict=True)) + own))
                for row, own in zip(y[f"M{s}"], y[f"xi{s}"], strict=True)
            ]
        score = [sum(w * a for w, a in zip(row, h, strict=True)) for row in y["U"]]
        total += weight * (np.log(np.sum(np.exp(score))) - score[int(label)])
    return total


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
