"""Right-hand sides of attention as particles, by hand in numpy, straight from the papers."""

import numpy as np

from tests.support.truth.arrays import Arrays


def particles_sphere(t: float, y: Arrays, q: Arrays) -> Arrays:
    x, dx = y["x"], np.zeros_like(y["x"])
    for i, token in enumerate(x):
        pull = np.zeros_like(token)
        for Q, K, V in zip(q["Q"], q["K"], q["V"], strict=True):
            e = np.array([np.exp(q["beta"] * (Q @ token) @ (K @ other)) * (1 if j <= i else 1 - q["causal"]) for j, other in enumerate(x)])
            pull += e / e.sum() @ (x @ V.T)
        dx[i] = pull - (pull @ token) * token
    return {"x": dx}


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


def particles_circle(t: float, y: Arrays, q: Arrays) -> Arrays:
    apart = y["theta"][:, None] - y["theta"]
    e = np.exp(q["beta"] * np.cos(apart))
    return {"theta": -(e * np.sin(apart)).sum(axis=1) / e.sum(axis=1)}


def particles_noisy_circle(t: float, y: Arrays, q: Arrays) -> Arrays:
    apart = y["theta"][:, None] - y["theta"]
    return {"theta": -q["K"] * (np.exp(q["beta"] * np.cos(apart)) * np.sin(apart)).mean(axis=1)}


def particles_density(t: float, y: Arrays, q: Arrays) -> Arrays:
    a, N, da = y["a"], len(y["a"]), np.zeros_like(y["a"])
    for k in range(N):
        pull = sum(q["w"][l] * a[l] * (a[abs(k - l)] - (a[k + l] if k + l < N else 0.0)) for l in range(1, N))
        da[k] = q["K"] * k / 2 * pull - q["kappa"] * k**2 * a[k]
    return {"a": da}


def particles_sphere_density(t: float, y: Arrays, q: Arrays) -> Arrays:
    a, N, da = y["a"], len(y["a"]), np.zeros_like(y["a"])
    for l in range(N):
        da[l] = -q["kappa"] * l * (l + q["d"] - 2) * a[l]
        for m in range(N):
            da[l] += q["K"] * q["w"][m] * a[m] * sum(q["B"][m, l, c] * a[c] for c in range(N))
    return {"a": da}


def particles_gamma(t: float, y: Arrays, q: Arrays) -> Arrays:
    g, beta, n = y["gamma"], q["beta"], q["n"]
    return {"gamma": 2 * np.exp(beta * g) * (1 - g) * ((n - 1) * g + 1) / (np.exp(beta) + (n - 1) * np.exp(beta * g))}


def particles_two_clusters(t: float, y: Arrays, q: Arrays) -> Arrays:
    r, m1, m2, e, f = y["r"], q["m1"], q["m2"], np.exp(q["beta"]), np.exp(q["beta"] * y["r"])
    return {"r": (1 - r**2) * f * (m2 / (m1 * e + m2 * f) + m1 / (m2 * e + m1 * f))}
