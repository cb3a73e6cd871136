"""Right-hand sides of Scan & Snap, by hand in numpy, straight from the papers."""

import numpy as np

from tests.support.truth.arrays import Arrays


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
