"""Right-hand sides of self-supervised learning by hand: gradients of the loss of views, one product of matrices after another."""

import numpy as np

from tests.support.truth.arrays import Arrays


def modes(t: float, y: Arrays, q: Arrays) -> Arrays:
    """As printed, one mode at a time; a tau only where there is one."""
    out = {name: np.zeros_like(a) for name, a in y.items()}
    for j, (p, s) in enumerate(zip(y["p"], y["s"], strict=True)):
        tau = y["tau"][j] if "tau" in y else 1.0
        out["p"][j] = q["alpha"] * s * (tau - (1 + q["sigma2"]) * p) - q["eta"] * p
        out["s"][j] = 2 * p * s * (tau - (1 + q["sigma2"]) * p) - 2 * q["eta"] * s
        if "tau" in y:
            out["tau"][j] = q["beta"] * (1 - tau) - tau * out["s"][j] / (2 * s)
    return out


def matrices(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Lemma 1, with X = I and X' = sigma2 I."""
    W, W_p = y["W"], y["W_p"]
    W_a = {"W_a": W, **y}["W_a"]
    pull = -W_p @ W @ (np.eye(W.shape[1]) * (1 + q["sigma2"])) + W_a
    out = {"W_p": q["alpha"] * pull @ W.T - q["eta"] * W_p, "W": W_p.T @ pull - q["eta"] * W}
    return out | ({"W_a": q["beta"] * (W - W_a)} if "W_a" in y else {})


def no_stop(t: float, y: Arrays, q: Arrays) -> Arrays:
    """W' = -H W as in Theorem 2; W_p as with the stop-gradient, which it does not feel."""
    W, W_p = y["W"], y["W_p"]
    one = np.eye(len(W_p))
    H = q["sigma2"] * (W_p.T @ W_p + one) + (W_p - one).T @ (W_p - one) + q["eta"] * one
    return {"W": -H @ W, "W_p": matrices(t, y, q)["W_p"]}


def direct_pred(t: float, y: Arrays, q: Arrays) -> Arrays:
    """By s = w^2, whose rate is 2 w w'."""
    w = y["w"]
    out = np.zeros_like(w)
    for j, s in enumerate(w**2):
        p = np.sign(w[j]) * np.sqrt(s) + q["eps"] * max(w)
        out[j] = (2 * p * s * (1 - (1 + q["sigma2"]) * p) - 2 * q["eta"] * s) / (2 * w[j])
    return {"w": out}
