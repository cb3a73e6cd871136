"""Right-hand sides written by hand in numpy, straight from the papers: what the model files are held against."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from tests.support.chains import gibbs, gibbs_lumped, gibbs_training
from tests.support.truth_blocks import cluster, covariance, joint, multilayer, reduced_exp

Arrays = dict[str, Any]


def decoded(y: Arrays, q: Arrays) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """f (K, S), alpha (K, K+1) per column, copies (K+1,) of scan_snap.full."""
    K = len(q["psi"])
    c = q["P"] * np.exp(y["Z"][q["psi"]])
    f = c / np.linalg.norm(c, axis=1, keepdims=True)
    copies = np.append(np.ones(K), q["M"] - K)
    odds = np.exp(f @ y["Y"])
    return f, odds / (odds @ copies)[:, None], copies


def full_loss(y: Arrays, q: Arrays) -> float:
    """- sum_n p_n ln alpha_n,n."""
    alpha = decoded(y, q)[1]
    return float(-q["p"] @ np.log(np.diagonal(alpha)))


def full(t: float, y: Arrays, q: Arrays) -> Arrays:
    f, alpha, copies = decoded(y, q)
    e = np.eye(*alpha.shape) - alpha
    dY, dZ = np.zeros_like(y["Y"]), np.zeros_like(y["Z"])
    for n, m in enumerate(q["psi"]):
        g = y["Y"] @ (copies * e[n])
        dY += q["p"][n] * np.outer(f[n], e[n])
        dZ[m] += q["p"][n] * f[n] * (g - f[n] * (f[n] @ g))
    return {"Y": q["eta_Y"] * dY, "Z": q["eta_Z"] * dZ}


def full_decorrelated(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Lemma 3: Y' = F (F^T F)^-1 diag(p) e, for the columns f of F; Z as in scan_snap.full."""
    f, alpha, _ = decoded(y, q)
    e = np.eye(*alpha.shape) - alpha
    return full(t, y, q) | {"Y": q["eta_Y"] * np.linalg.pinv(f) @ (q["p"][:, None] * e)}


def symmetric(t: float, y: Arrays, q: Arrays) -> Arrays:
    a, b, d, z, u, v, zc = (y[name] for name in ("a", "b", "d", "z", "u", "v", "zc"))
    K, M, mc, ey, ez = q["K"], q["M"], q["mc"], q["eta_Y"], q["eta_Z"]
    ct, cc = q["p"] * np.exp(z), q["pc"] * np.exp(zc)
    rho = np.sqrt(ct @ ct + mc @ cc**2)
    fd, fc = ct / rho, cc / rho
    A, B, V = fd @ a + (mc * fc) @ u, fd @ b + (mc * fc) @ u, fd @ d + (mc * fc) @ v
    W = np.exp(A) + (K - 1) * np.exp(B) + (M - K) * np.exp(V)
    pa, pb, pd = np.exp(A) / W, np.exp(B) / W, np.exp(V) / W
    qa = ((K - 1) * np.exp(B) + (M - K) * np.exp(V)) / W
    gd, gc = a * qa - (K - 1) * b * pb - (M - K) * d * pd, (M - K) * pd * (u - v)
    s = fd @ gd + (mc * fc) @ gc
    return {
        "a": ey / K * fd * qa,
        "b": -ey / K * fd * pb,
        "d": -ey / K * fd * pd,
        "z": ez / K * fd * (gd - s * fd),
        "u": ey / K * fc * (M - K) * pd,
        "v": -ey * fc * pd,
        "zc": ez * q["k_m"] / K * fc * (gc - s * fc),
        "loss": -np.log(pa),
    }


def reduced_symmetric(t: float, y: Arrays, q: Arrays) -> Arrays:
    """By Theorem 1 as it stands, with the K x K Gram matrix, for whole K: no use of the closed form of beta."""
    K, M, u, mc = int(q["K"]), q["M"], y["u"], q["mc"]
    ct2, cc2 = 1 / (1 / q["p"] ** 2 - y["S_d"]), 1 / (1 / q["pc"] ** 2 + y["S_c"])
    rho2 = ct2.sum() + mc @ cc2
    eps = mc @ cc2 / rho2
    q1, q0 = M / (M - 1), -M / (M - 1) ** 2
    inverse = np.linalg.inv((1 - eps) * np.eye(K) + eps * np.ones((K, K)))
    mix = inverse @ ((q1 - q0) * np.eye(K) + q0 * np.ones((K, K)))
    gamma = (M - 1) ** 2 / M * u / (M - 1 + np.exp(u))
    beta = -mix[0, 1] if K > 1 else 0.0
    xi = gamma * (mix[0, 0] - q1)
    return {
        "S_d": 2 * q["eta_Z"] / K * xi / rho2,
        "S_c": 2 * q["eta_Z"] / K * q["k_m"] * gamma * (K - 1) * beta * (1 - eps) / rho2,
        "B": q["eta_Z"] / K * xi,
        "u": M * q["eta_Y"] / K / (M - 1 + np.exp(u)),
    }


def theorem4(t: float, y: Arrays, q: Arrays) -> Arrays:
    M, u = q["M"], y["u"]
    h = u / M
    xi = (M - 1) ** 2 * h / (M - 1 + np.exp(M * h)) * np.exp(4 * y["z"]) / q["C0"]
    return {"z": -q["eta_Z"] * xi, "B": q["eta_Z"] * xi, "u": M * q["eta_Y"] / q["K"] / (M - 1 + np.exp(u))}


def linear(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"v": q["Delta"] * np.exp(y["v"] ** 2 / 2)}


def linear_softmax(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(y["v"] ** 2 / 2)
    return {"v": q["Delta"] * e / e.sum()}


def linear_multinode(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"V": np.diag(np.exp((y["V"] ** 2).sum(axis=1) / 2)) @ q["Delta"]}


def nonlinear(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"v": (q["mu"] - y["v"]) * np.exp(y["v"] ** 2 / 2)}


def nonlinear_softmax(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(y["v"] ** 2 / q["T"])
    return {"v": (q["mu"] - y["v"]) * e / e.sum()}


def linear_attention(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"V": np.diag(y["z"]) @ q["Delta"], "z": (y["V"] * q["Delta"]).sum(axis=1)}


def linear_bterm(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp((y["v"] ** 2 - y["v"] @ y["v"] * q["b"]) / 2)
    return {"v": q["Delta"] * e / e.sum()}


def self_consistent(t: float, y: Arrays, q: Arrays) -> Arrays:
    b = np.exp(y["v"] ** 2 / 2)
    return {"v": b * (q["c"] - y["v"] * b)}


def nonlinear_log(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"L": np.exp((q["mu"] * (1 - np.exp(-y["L"]))) ** 2 / 2)}


def grouped(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Every one of the N^(L-1) - 1 leaves on its own, one of each group returned."""
    v, N, rho = y["v"], int(q["N"]), q["rho"]
    height = np.repeat(np.arange(1, len(v) + 1), [(N - 1) * N**h for h in range(len(v))])
    all_v = v[height - 1]
    P = (1 + rho ** (2 * height) - 2 * rho ** len(v) * q["rho0"]) / (1 - rho ** len(v) * q["rho0"]) / 2
    e = np.exp(all_v**2 / 2)
    d = (q["kappa"] * P - all_v) * e / e.sum()
    return {"v": d[[np.flatnonzero(height == h + 1)[0] for h in range(len(v))]]}


def reversal_row(t: float, y: Arrays, q: Arrays) -> Arrays:
    logits = np.zeros(int(q["M"]))
    logits[: int(q["r"])] = y["v"]
    p = np.exp(logits) / np.exp(logits).sum()
    return {"v": q["eta_Y"] / q["N"] * ((1 - q["r"] * p[0]) + q["r"] * p[-1])}  # of a target, less that of another token


def reversal_full(t: float, y: Arrays, q: Arrays) -> Arrays:
    dY = np.zeros_like(y["Y"])
    for source, target in zip(q["x1"], q["x3"], strict=True):
        p = np.exp(y["Y"][source])
        dY[source] -= p / p.sum()
        dY[source, target] += 1
    return {"Y": q["eta_Y"] / len(q["x1"]) * dY}


def reversal_bilinear(t: float, y: Arrays, q: Arrays) -> Arrays:
    E, dTheta = q["E"], np.zeros_like(y["Theta"])
    for source, target in zip(q["x1"], q["x3"], strict=True):
        p = np.exp(E @ (E[source] @ y["Theta"]))
        dTheta += np.outer(E[source], E[target] - p @ E / p.sum())
    return {"Theta": q["eta"] / len(q["x1"]) * dTheta}


def hopfield_update(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(q["beta"] * (y["xi"] @ q["X"]))
    return {"xi": q["X"] @ e / e.sum()}


def hopfield_modern(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"xi": (hopfield_update(t, y, q)["xi"] - y["xi"]) / q["tau"]}


def hopfield_potts(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(q["c"] * y["z"])
    return {"z": e / e.sum() - y["z"]}


def hopfield_two_patterns(t: float, y: Arrays, q: Arrays) -> Arrays:
    up, down = np.exp(q["beta"] * q["delta"] ** 2 * y["u"]), np.exp(-q["beta"] * q["delta"] ** 2 * y["u"])
    return {"u": (up - down) / (up + down) - y["u"]}


def hopfield_graded(t: float, y: Arrays, q: Arrays) -> Arrays:
    return {"u": np.array([sum(w * np.tanh(q["g"] * x) for w, x in zip(row, y["u"], strict=True)) for row in q["W"]]) - y["u"]}


def particles_sphere(t: float, y: Arrays, q: Arrays) -> Arrays:
    x, dx = y["x"], np.zeros_like(y["x"])
    for i, token in enumerate(x):
        pull = np.zeros_like(token)
        for Q, K, V in zip(q["Q"], q["K"], q["V"], strict=True):
            e = np.array([np.exp(q["beta"] * (Q @ token) @ (K @ other)) * (1 if j <= i else 1 - q["causal"]) for j, other in enumerate(x)])
            pull += e / e.sum() @ (x @ V.T)
        dx[i] = pull - (pull @ token) * token
    return {"x": dx}


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


def hopfield_two_layer(t: float, y: Arrays, q: Arrays) -> Arrays:
    e = np.exp(q["beta"] * y["h"])
    return {"v": (q["X"] @ (e / e.sum()) - y["v"]) / q["tau_v"], "h": (q["X"].T @ y["v"] - y["h"]) / q["tau_h"]}


def signs(energy: Callable[[np.ndarray, Arrays], float]) -> Any:
    """The next state: neurons of the group of step t take the sign of lower energy, +1 of two that are equal, given the others."""

    def step(t: float, y: Arrays, q: Arrays) -> Arrays:
        s, after = y["s"], np.array(y["s"])
        for i in range(len(s)):
            if i % int(q["B"]) == t % q["B"]:
                up, down = (np.where(np.arange(len(s)) == i, sign, s) for sign in (1.0, -1.0))
                after[i] = 1.0 if energy(up, q) <= energy(down, q) else -1.0
        return {"s": after}

    return step


hopfield_classical = signs(lambda s, q: -s @ q["W"] @ s / 2)
hopfield_dense = signs(lambda s, q: -sum(float(x @ s) ** int(q["m"]) for x in q["X"].T))


def particles_unnormalised(t: float, y: Arrays, q: Arrays) -> Arrays:
    x, dx = y["x"], np.zeros_like(y["x"])
    for i, token in enumerate(x):
        pull = np.zeros_like(token)
        for Q, K, V in zip(q["Q"], q["K"], q["V"], strict=True):
            for j, other in enumerate(x):
                pull += np.exp(q["beta"] * (Q @ token) @ (K @ other)) * (1 if j <= i else 1 - q["causal"]) * (V @ other) / len(x)
        dx[i] = pull - (pull @ token) * token
    return {"x": dx}


def particles_rescaled(t: float, y: Arrays, q: Arrays) -> Arrays:
    x = y["z"] @ y["E"].T
    e = np.exp((x @ q["Q"].T) @ (x @ q["K"].T).T)
    return {"z": (e / e.sum(axis=1, keepdims=True) @ y["z"] - y["z"]) @ q["V"].T, "E": q["V"] @ y["E"]}


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


def particles_circle(t: float, y: Arrays, q: Arrays) -> Arrays:
    apart = y["theta"][:, None] - y["theta"]
    e = np.exp(q["beta"] * np.cos(apart))
    return {"theta": -(e * np.sin(apart)).sum(axis=1) / e.sum(axis=1)}


def particles_gamma(t: float, y: Arrays, q: Arrays) -> Arrays:
    g, beta, n = y["gamma"], q["beta"], q["n"]
    return {"gamma": 2 * np.exp(beta * g) * (1 - g) * ((n - 1) * g + 1) / (np.exp(beta) + (n - 1) * np.exp(beta * g))}


def particles_two_clusters(t: float, y: Arrays, q: Arrays) -> Arrays:
    r, m1, m2, e, f = y["r"], q["m1"], q["m2"], np.exp(q["beta"]), np.exp(q["beta"] * y["r"])
    return {"r": (1 - r**2) * f * (m2 / (m1 * e + m2 * f) + m1 / (m2 * e + m1 * f))}


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


def reduced(t: float, y: Arrays, q: Arrays) -> Arrays:
    """Theorem 1 by its sums over pairs of classes, beta_nn' = -B_n'n of B = G^-1 Q, and xi_n as the sum over n' that defines it."""
    M, u, psi = q["M"], y["u"], q["psi"]
    K = len(psi)
    c = q["P"] * np.exp(y["Z"][psi])
    f = c / np.linalg.norm(c, axis=1, keepdims=True)
    Q = np.full((K, K), -M / (M - 1) ** 2)
    np.fill_diagonal(Q, M / (M - 1))
    beta = -np.linalg.solve(f @ f.T, Q).T
    gamma = (M - 1) ** 2 * u / M / (M - 1 + np.exp(u))
    dZ, dB = np.zeros_like(y["Z"]), np.zeros(K)
    for n, m in enumerate(psi):
        for other in set(range(K)) - {n}:
            overlap = f[n] @ f[other]
            dZ[m] += q["eta_Z"] / K * gamma * f[n] * beta[n, other] * (f[n] * overlap - f[other])
            dB[n] += q["eta_Z"] / K * gamma * beta[n, other] * overlap
    return {"Z": dZ, "B": dB, "u": M * q["eta_Y"] / K / (M - 1 + np.exp(u))}


def decoder(t: float, y: Arrays, q: Arrays) -> Arrays:
    """h by its own equation (Lemma 5), a class visited at every K-th step; gamma by its definition."""
    M, h = q["M"], y["u"] / q["M"]
    rest = M - 1 + np.exp(M * h)
    return {"u": M * q["eta_Y"] / rest / q["K"], "Gamma": q["eta_Z"] * (M - 1) ** 2 * h / rest}


def topics_full(t: float, y: Arrays, q: Arrays) -> Arrays:
    """The gradients of the masked squared loss by hand, a document at a time: R is the slope of the output, A the attention."""
    V, K, Q = y["W_V"], y["W_K"], y["W_Q"]
    dV, dM = np.zeros_like(V), np.zeros_like(V)
    for P, law in zip(q["P"], q["P_shown"], strict=True):
        A = law[:, None] * np.exp(K.T @ Q)
        A /= A.sum(axis=0)
        J = q["B"] * P  # J[w, x]
        R = 2 * (V @ A * J.sum(axis=1) - J.T) / len(q["P"])
        dV -= R @ A.T
        G = V.T @ R
        dM += A * (G - (A * G).sum(axis=0))
    return {"W_V": dV, "W_K": -Q @ dM.T, "W_Q": -K @ dM}


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
    slopes = topics_full(t, full, {"P": P, "B": B, "P_shown": (1 - q["p_m"]) * P + q["p_m"] * P @ B.T})
    out: Arrays = {"K2": U.T @ slopes["W_K"] @ U, "Q2": U.T @ slopes["W_Q"] @ U}
    for letter, name in (("a", "W_V"), ("k", "W_K"), ("q", "W_Q")):
        out |= {f"{letter}_w": (slopes[name] * P_w).sum() / (T * (v - 1)), f"{letter}_t": (slopes[name] * P_t).sum() / (T - 1)}
    return out | {"r_w": word @ slopes["W_V"] @ word, "r_m": word @ slopes["W_V"] @ mask}


def topics_tied(t: float, y: Arrays, q: Arrays) -> Arrays:
    """As stage 1 pulls E^T E, by the product rule."""
    pull = topics_stage1(t, {"W_V": y["E"].T @ y["E"]}, q)["W_V"]
    return {"E": y["E"] @ (pull + pull.T)}


RIGHT_SIDES: dict[str, Callable[[float, Arrays, Arrays], Arrays]] = {
    "scan_snap.full": full,
    "scan_snap.full_decorrelated": full_decorrelated,
    "scan_snap.symmetric": symmetric,
    "scan_snap.reduced_symmetric": reduced_symmetric,
    "scan_snap.theorem4": theorem4,
    "scan_snap.decoder": decoder,
    "scan_snap.reduced": reduced,
    "joma.linear": linear,
    "joma.linear_softmax": linear_softmax,
    "joma.linear_multinode": linear_multinode,
    "joma.nonlinear": nonlinear,
    "joma.nonlinear_softmax": nonlinear_softmax,
    "joma.linear_attention": linear_attention,
    "joma.linear_bterm": linear_bterm,
    "joma.self_consistent": self_consistent,
    "joma.nonlinear_log": nonlinear_log,
    "joma.joint_linear": joint("linear"),
    "joma.joint_exp": joint("exp"),
    "joma.joint_softmax": joint("softmax"),
    "galore.parametric_gradient": parametric_gradient,
    "galore.projected": projected,
    "hierarchy.grouped": grouped,
    "hierarchy.gated": gated,
    "hierarchy.occurrence": occurrence,
    "hierarchy.multilayer": multilayer(),
    "hierarchy.covariance": covariance,
    "joma.reduced_exp": reduced_exp,
    "joma.cluster": cluster,
    "gibbs.master": gibbs(together=True),
    "gibbs.parallel": gibbs(together=False),
    "gibbs.lumped": gibbs_lumped,
    "gibbs.training_flow": gibbs_training,
    "hopfield.update": hopfield_update,
    "hopfield.modern": hopfield_modern,
    "hopfield.potts": hopfield_potts,
    "hopfield.two_patterns": hopfield_two_patterns,
    "hopfield.graded": hopfield_graded,
    "hopfield.two_layer": hopfield_two_layer,
    "hopfield.classical": hopfield_classical,
    "hopfield.dense": hopfield_dense,
    "particles.unnormalised": particles_unnormalised,
    "particles.rescaled": particles_rescaled,
    "classics.committee": committee,
    "induction.full": induction_full,
    "induction.stages": induction_stages,
    "memory.softmax_regression": softmax_regression,
    "classics.deep_linear": deep_linear,
    "classics.deep_linear_modes": deep_linear_modes,
    "particles.sphere": particles_sphere,
    "particles.circle": particles_circle,
    "particles.gamma": particles_gamma,
    "particles.two_clusters": particles_two_clusters,
    "reversal.row": reversal_row,
    "reversal.full": reversal_full,
    "reversal.bilinear": reversal_bilinear,
    "topics.full": topics_full,
    "topics.stage1": topics_stage1,
    "topics.reduced": topics_reduced,
    "topics.tied": topics_tied,
}
"""Model -> function(t, states, parameters) that gives d state / dt; of a Map the next state."""


def entropy(p: np.ndarray) -> float:
    """- sum p ln p, with 0 ln 0 = 0."""
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())
