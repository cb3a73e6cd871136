"""Right-hand sides of topic structure, by hand in numpy, straight from the papers."""

from itertools import combinations

import numpy as np

from tests.support.truth.arrays import Arrays


def topics_full(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The gradients of the masked squared loss by hand, a document at a time: R is the slope of the output, A the attention."""
    V, K, Q = y["W_V"], y["W_K"], y["W_Q"]
    dV, dM, scale = np.zeros_like(V), np.zeros_like(V), np.sqrt(q["d_a"])
    for P, law in zip(q["P"], q["P_shown"], strict=True):
        A = law[:, None] * np.exp(K.T @ Q / scale)
        A /= A.sum(axis=0)
        J = q["B"] * P  # J[w, x]
        R = 2 * (V @ A * J.sum(axis=1) - J.T) / len(q["P"])
        dV -= R @ A.T
        G = V.T @ R
        dM += A * (G - (A * G).sum(axis=0))
    return {"W_V": dV, "W_K": -Q @ dM.T / scale, "W_Q": -K @ dM / scale}


def topics_stage1(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Each document pulls its output W_V P_shown to its words."""
    return {"W_V": sum(2 * np.outer(P - y["W_V"] @ law, law) for P, law in zip(q["P"], q["P_shown"], strict=True)) / len(q["P"])}


def topics_reduced(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The slopes of topics.full at the matrices that these numbers stand for, along each of the directions."""
    T, v, tau = (int(q[name]) for name in ("T", "v", "tau"))
    n, d = T * v, T * v + 1
    topics = np.pad(np.kron(np.eye(T), np.full((v, v), 1 / v)), ((1, 0), (1, 0)))
    word, mask = np.r_[0, np.ones(n)] / np.sqrt(n), np.eye(d)[0]
    P_t, P_w, U = topics - np.outer(word, word), np.diag(np.r_[0, np.ones(n)]) - topics, np.stack([mask, word], axis=1)
    P = np.array([np.r_[0, np.repeat(np.isin(np.arange(T), chosen), v)] / (tau * v) for chosen in combinations(range(T), tau)])
    B = np.full((d, d), q["p_r"] / n) + q["p_c"] * np.eye(d)
    B[0] = 1 - q["p_c"] - q["p_r"]
    full = {
        "W_V": y["a_w"] * P_w + y["a_t"] * P_t + np.outer(word, y["r_w"] * word + y["r_m"] * mask),
        "W_K": y["k_w"] * P_w + y["k_t"] * P_t + U @ y["K2"] @ U.T,
        "W_Q": y["q_w"] * P_w + y["q_t"] * P_t + U @ y["Q2"] @ U.T,
    }
    slopes = topics_full(t, full, {"P": P, "B": B, "P_shown": (1 - q["p_m"]) * P + q["p_m"] * P @ B.T, "d_a": q["d_a"]})
    out: Arrays = {"K2": U.T @ slopes["W_K"] @ U, "Q2": U.T @ slopes["W_Q"] @ U}
    for letter, name in (("a", "W_V"), ("k", "W_K"), ("q", "W_Q")):
        out |= {f"{letter}_w": (slopes[name] * P_w).sum() / (T * (v - 1)), f"{letter}_t": (slopes[name] * P_t).sum() / (T - 1)}
    return out | {"r_w": word @ slopes["W_V"] @ word, "r_m": word @ slopes["W_V"] @ mask}


def topics_tied(t: float, y: Arrays, q: Arrays) -> Arrays:
    """As stage 1 pulls E^T E, by the product rule."""
    pull = topics_stage1(t, {"W_V": y["E"].T @ y["E"]}, q)["W_V"]
    return {"E": y["E"] @ (pull + pull.T)}
