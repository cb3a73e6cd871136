"""Right-hand sides of models of learning (committee, induction, deep linear networks, GaLore), by hand in numpy, from the papers."""

import numpy as np

from tests.support.truth.arrays import Arrays


def committee(t: float, y: Arrays, q: Arrays) -> Arrays:
    """By the determinants of the covariance of all fields, students first."""
    K, s = len(y["v"]), np.concatenate([-y["v"], q["A"]])
    C = np.block([[y["Q"], y["R"]], [y["R"].T, q["T"]]])
    fields = range(len(s))

    def i3(a: int, b: int, c: int) -> float:
        """E g'(a) b g(c): g'(a) tilts the law of b and c, whose mean product is by Stein's lemma that of b and c times E g'(c)."""
        bc, cc = (C[x, c] - C[x, a] * C[a, c] / (1 + C[a, a]) for x in (b, c))
        return float(2 / np.pi * bc / np.sqrt((1 + C[a, a]) * (1 + cc)))

    def i4(a: int, b: int, c: int, d: int) -> float:
        """E g'(a) g'(b) g(c) g(d): an orthant probability of c and d under the law that the derivatives tilt."""
        two = np.eye(2) + C[np.ix_((a, b), (a, b))]
        rest = C[np.ix_((c, d), (c, d))] - C[np.ix_((c, d), (a, b))] @ np.linalg.solve(two, C[np.ix_((a, b), (c, d))])
        angle = np.arcsin(rest[0, 1] / np.sqrt((1 + rest[0, 0]) * (1 + rest[1, 1])))
        return float(4 / np.pi**2 * angle / np.sqrt(np.linalg.det(two)))

    pull = [[sum(s[j] * i3(i, b, j) for j in fields) for b in fields] for i in range(K)]
    dQ = np.empty((K, K))
    for i, k in np.ndindex(K, K):
        spread = sum(s[j] * s[l] * i4(i, k, j, l) for j in fields for l in fields)
        spread += q["sigma"] ** 2 * 2 / np.pi / np.sqrt(np.linalg.det(np.eye(2) + y["Q"][np.ix_((i, k), (i, k))]))
        dQ[i, k] = q["eta"] * (y["v"][i] * pull[i][k] + y["v"][k] * pull[k][i]) + q["eta"] ** 2 * s[i] * s[k] * spread
    dR = [[q["eta"] * y["v"][i] * pull[i][K + m] for m in range(len(q["A"]))] for i in range(K)]
    i2 = 2 / np.pi * np.arcsin(C / np.sqrt(np.outer(1 + np.diag(C), 1 + np.diag(C))))
    return {"Q": dQ, "R": np.array(dR), "v": q["eta_2"] * (i2 @ s)[:K]}


def induction_stages(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The chain rule, as printed."""
    a, b, c, N, V = (float(x) for x in (y["a"], y["b"], y["c"], q["N"], q["V"]))
    D = (np.exp(a) - 1) / (np.exp(a) + N - 1)
    s2 = 1 / (1 + (N - 1) * np.exp(-b * D))
    Z = np.exp(c * s2) + (N - 1) * np.exp(c * (1 - s2) / (N - 1)) + V - N
    py, po = np.exp(c * s2) / Z, np.exp(c * (1 - s2) / (N - 1)) / Z
    slope = -c * (1 - py + po) * s2 * (1 - s2)
    return {"a": -slope * b * N * np.exp(a) / (np.exp(a) + N - 1) ** 2, "b": -slope * D, "c": s2 * (1 - py) - po * (1 - s2)}


def induction_full(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Backwards through both layers, one sequence and one query at a time."""
    P, W_2, W_3 = y["P"], y["W_2"], y["W_3"]
    one, out = np.eye(len(W_3)), {name: np.zeros_like(a) for name, a in y.items()}
    first = np.exp(P) / np.exp(P).sum(axis=1, keepdims=True)
    for x, place in ((x, place) for x in q["X"] for place in range(len(P))):
        carried = first @ one[x]
        second = np.exp(carried @ W_2[x[place]])
        second /= second.sum()
        seen = second @ one[x]
        odds = np.exp(W_3 @ seen)
        off = odds / odds.sum() - one[x[q["after"][place]]]
        pull = (W_3.T @ off)[x]
        pull = second * (pull - second @ pull)  # on the scores of the second layer
        to_first = np.outer(pull, W_2[x[place]][x])
        out["W_3"] -= np.outer(off, seen)
        out["W_2"][x[place]] -= pull @ carried
        out["P"] -= first * (to_first - (first * to_first).sum(axis=1, keepdims=True))
    return {name: a / (len(q["X"]) * len(P)) for name, a in out.items()}


def softmax_regression(t: float, y: Arrays, q: Arrays) -> Arrays:
    """One column of the matrix: the probability that the label lacks, for the label, and what each other class has too much."""
    lacks = (q["M"] - 1) * np.exp(-y["m"]) / (1 + (q["M"] - 1) * np.exp(-y["m"]))
    return {"m": q["p"] * (lacks + lacks / (q["M"] - 1))}


def deep_linear(t: float, y: Arrays, q: Arrays) -> Arrays:
    W1, W2, W3 = y["W1"], y["W2"], y["W3"]
    error = q["Sigma"] - W3 @ W2 @ W1
    return {"W1": (W3 @ W2).T @ error, "W2": W3.T @ error @ W1.T, "W3": error @ (W2 @ W1).T}


def deep_linear_modes(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"a": q["L"] * y["a"] ** (2 - 2 / q["L"]) * (q["s"] - y["a"])}


def parametric_gradient(t: float, y: Arrays, q: Arrays) -> Arrays:
    dW = np.zeros_like(y["W"])
    for A, B, C in zip(q["A"], q["B"], q["C"], strict=True):
        dW += (A - B @ y["W"] @ C) / len(q["A"])
    return {"W": dW}


def projected(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The gradient's least-squares fit by the columns of P."""
    G, P = parametric_gradient(t, y, q)["W"], y["P"]
    return {"W": P @ np.linalg.lstsq(P, G, rcond=None)[0], "P": np.zeros_like(P)}


def adam_map(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Algorithm 1, one step: directions at the start of a period by two polar factors, Adam on what they see."""
    G, P, b1, b2 = parametric_gradient(t, y, q)["W"], y["P"], float(q["b1"]), float(q["b2"])

    def polar(Y: np.ndarray) -> np.ndarray:
        U, _, Vt = np.linalg.svd(Y, full_matrices=False)
        return np.asarray(U @ Vt)

    if q["period"] > 0 and t % q["period"] == 0:
        P = polar(G @ (G.T @ polar(G @ q["Omega"])))
    h = P.T @ G
    M, V = b1 * y["M"] + (1 - b1) * h, b2 * y["V"] + (1 - b2) * h**2
    u = M / (1 - b1 ** (t + 1)) / (np.sqrt(np.maximum(V, 0) / (1 - b2 ** (t + 1))) + q["eps"])
    return {"W": y["W"] + q["eta"] * q["alpha"] * P @ u, "M": M, "V": V, "P": P}


def two_layer(t: float, y: Arrays, q: Arrays) -> Arrays:
    """By the chain rule, from the gradient by the product."""
    slope = y["a"] * y["b"] - q["s"]
    return {"a": -slope * y["b"], "b": -slope * y["a"]}


def sgd_least_squares(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Minus the gradient of f + second eta |grad f|^2 / 4, f = delta^T diag(lam) delta / 2."""
    curve = np.diag(q["lam"])
    return {"delta": -(curve + q["second"] * q["eta"] / 2 * curve @ curve) @ y["delta"]}


def skill_mixture(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Skill by skill, shares with their largest exponent taken out."""
    k = len(y["L"])
    p = np.exp(q["eta"] * (y["g"] - y["g"].max()))
    p /= p.sum()
    fall, gain = np.zeros(k), np.zeros(k)
    for teacher in range(k):
        for pupil in range(k):
            fall[pupil] -= p[teacher] * q["A"][teacher, pupil] * y["L"][pupil]
            gain[teacher] += q["A"][teacher, pupil] * y["L"][pupil]
    return {"L": fall, "g": gain}


def partition(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Pair by pair, either order of two tokens."""
    V = y["V"]
    rate = np.zeros_like(V)
    for a in range(len(V)):
        for b in range(len(V)):
            missed = q["f"][int(q["c"][a]), int(q["c"][b])] - V[a] @ V[b]
            rate[a] += 0.5 * q["seen"][a, b] * missed * V[b]
            rate[b] += 0.5 * q["seen"][a, b] * missed * V[a]
    return {"V": rate}
