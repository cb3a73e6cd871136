"""Right-hand sides that are sums of products, each beside what one would write in numpy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any, TypeAlias

import numpy as np
from sympy import KroneckerDelta, S, Sum, sqrt

from odesim.symbolic import IndexedBase, Param, Source, System, gradient_flow, index, over, sizes, softmax

Numbers: TypeAlias = dict[str, np.ndarray]
NONE = Source("none", "a benchmark")
R = S.Reals


@dataclass(frozen=True)
class Case:
    """A System; the same in numpy: numpy(states, params) -> {state: rate}; its sizes; values(sizes, rng) -> states and parameters."""

    name: str
    system: System
    numpy: Callable[[Numbers, Any], Numbers]
    large: Mapping[str, int]
    small: Mapping[str, int]
    values: Callable[[Mapping[str, int], np.random.Generator], tuple[Numbers, dict[str, Any]]]


def _system(name: str, equations: dict[Any, Any], axes: dict[Any, Any], *params: Any, **integer: Any) -> System:
    """A System with starts 1 and parameters (array) of reals; integer: {name: Param}."""
    made = tuple(Param(p, 1.0, R, "an array") for p in params) + tuple(integer.values())
    return System(name, NONE, axes, equations, made, {key: 1.0 for key in equations})


def _normal(*shapes: tuple[str, str]) -> Callable[..., Any]:
    """values() of normal numbers: (name, letters of its sizes); names in capitals with an underscore before are states."""

    def values(n: Mapping[str, int], rng: np.random.Generator) -> tuple[Numbers, dict[str, Any]]:
        made = {name: rng.normal(size=[n[size] for size in letters]) / np.sqrt(n[letters[-1]]) for name, letters in shapes}
        return {k.strip("_"): v for k, v in made.items() if k[0] == "_"}, {k: v for k, v in made.items() if k[0] != "_"}

    return values


i, j, k, l, s, h, c, e = index("i j k l s h c e")
D, N, M, K, Q, H = sizes("D N M K Q H")


def arrays(**shapes: Any) -> list[IndexedBase]:
    """Arrays by name and shape."""
    return [IndexedBase(name, shape=shape) for name, shape in shapes.items()]


def topics() -> Case:
    """The population loss of masked sets: key l, query w; J_S[w, x] = B[w, x] P[S, x]."""
    WV, WK, WQ, P, T, B = arrays(WV=(D, D), WK=(D, D), WQ=(D, D), P=(N, D), T=(N, D), B=(D, D))
    w, x, a = index("w x a")
    logits = over(Sum, WK[a, l] * WQ[a, w], (a, D))
    attention = softmax(logits, (l, D), weight=T[s, l])
    output = over(Sum, WV[x, l] * attention, (l, D))
    hit = over(Sum, B[w, x] * P[s, x], (x, D))
    loss = over(Sum, hit * over(Sum, output**2, (x, D)) - 2 * over(Sum, B[w, x] * P[s, x] * output, (x, D)), (s, N), (w, D)) / N
    flow = gradient_flow(loss, {WV[i, j]: 1, WK[i, j]: 1, WQ[i, j]: 1})
    system = _system("benchmark.topics", flow, {i: D, j: D}, P, T, B)

    def numpy(y: Numbers, p: Any) -> Numbers:
        V, Kk, Qq = y["WV"], y["WK"], y["WQ"]
        E = np.exp(Kk.T @ Qq)
        A = p["T"][:, :, None] * E
        A /= A.sum(axis=1, keepdims=True)
        J = p["B"] * p["P"][:, None, :]  # (S, w, x)
        F = V @ A
        Rr = 2 * (F * J.sum(axis=2)[:, None, :] - J.transpose(0, 2, 1)) / len(A)
        G = V.T @ Rr
        dM = (A * (G - (A * G).sum(axis=1, keepdims=True))).sum(axis=0)
        return {"WV": -(Rr @ A.transpose(0, 2, 1)).sum(axis=0), "WK": -Qq @ dM.T, "WQ": -Kk @ dM}

    def values(n: Mapping[str, int], rng: np.random.Generator) -> tuple[Numbers, dict[str, Any]]:
        d, sets = n["D"], n["N"]
        P_, T_, B_ = (rng.dirichlet(np.ones(d), size=rows) for rows in (sets, sets, d))
        return {name: rng.normal(size=(d, d)) / d for name in ("WV", "WK", "WQ")}, {"P": P_, "T": T_, "B": B_}

    return Case("topics full", system, numpy, {"D": 101, "N": 45}, {"D": 7, "N": 3}, values)


def gibbs_blocks() -> Case:
    """One redrawn bit of log2 N: states that differ in that bit form a block."""
    pi, cond, blk = arrays(pi=(N,), cond=(M, N), blk=(M, N))
    block = over(Sum, KroneckerDelta(h, blk[s, k]) * pi[k], (k, N))
    rhs = over(Sum, cond[s, i] * over(Sum, KroneckerDelta(h, blk[s, i]) * block, (h, H)), (s, M)) / M - pi[i]
    which = Param(blk, lambda n: np.zeros((n["M"], n["N"])), S.Naturals0, "the block of a state", indexes=H, cover=False)
    system = _system("benchmark.gibbs", {pi[i]: rhs}, {i: N}, cond, blk=which)

    def numpy(y: Numbers, p: Any) -> Numbers:
        rate = -y["pi"]
        for share, of in zip(p["cond"], p["blk"], strict=True):
            rate = rate + share * np.bincount(of, y["pi"], minlength=p["H"])[of] / len(p["blk"])
        return {"pi": rate}

    def values(n: Mapping[str, int], rng: np.random.Generator) -> tuple[Numbers, dict[str, Any]]:
        states = np.arange(n["N"])
        bits = int(log2(n["N"]))
        of = np.array([(states >> b + 1 << b) + (states & (1 << b) - 1) for b in range(bits)])
        return {"pi": rng.dirichlet(np.ones(n["N"]))}, {"cond": rng.uniform(size=(bits, n["N"])), "blk": of}

    return Case("Gibbs, blocks of one bit", system, numpy, {"N": 1024, "M": 10, "H": 512}, {"N": 16, "M": 4, "H": 8}, values)


def gibbs_master() -> Case:
    p, P = arrays(p=(N,), P=(N, N))
    system = _system("benchmark.master", {p[i]: over(Sum, p[k] * P[k, i], (k, N)) - p[i]}, {i: N}, P)
    values = _normal(("_p", "N"), ("P", "NN"))
    return Case("Gibbs, p P - p", system, lambda y, q: {"p": y["p"] @ q["P"] - y["p"]}, {"N": 2000}, {"N": 8}, values)


def hopfield() -> Case:
    xi, X = arrays(xi=(D,), X=(N, D))
    p = softmax(over(Sum, X[k, j] * xi[j], (j, D)), (k, N))
    system = _system("benchmark.hopfield", {xi[i]: over(Sum, X[k, i] * p, (k, N)) - xi[i]}, {i: D}, X)

    def numpy(y: Numbers, q: Any) -> Numbers:
        z = q["X"] @ y["xi"]
        w = np.exp(z - z.max())
        return {"xi": q["X"].T @ (w / w.sum()) - y["xi"]}

    return Case("Hopfield, modern", system, numpy, {"N": 1000, "D": 512}, {"N": 8, "D": 4}, _normal(("_xi", "D"), ("X", "ND")))


def batched() -> Case:
    Z, U = arrays(Z=(N, D, D), U=(N, D, D))
    system = _system("benchmark.batched", {Z[s, i, j]: over(Sum, Z[s, i, k] * U[s, k, j], (k, D))}, {s: N, i: D, j: D}, U)
    values = _normal(("_Z", "NDD"), ("U", "NDD"))
    return Case("sum_k Z[s,i,k] U[s,k,j]", system, lambda y, p: {"Z": y["Z"] @ p["U"]}, {"N": 16, "D": 64}, {"N": 2, "D": 3}, values)


def matrix_vector() -> Case:
    x, p, X = arrays(x=(D,), p=(K,), X=(K, D))
    system = _system("benchmark.vector", {x[i]: over(Sum, X[k, i] * p[k], (k, K)) - x[i]}, {i: D}, X, p)
    values = _normal(("_x", "D"), ("X", "KD"), ("p", "K"))
    numpy = lambda y, q: {"x": q["X"].T @ q["p"] - y["x"]}  # noqa: E731
    return Case("sum_k X[k,i] p[k]", system, numpy, {"K": 1000, "D": 512}, {"K": 8, "D": 4}, values)


def matrix() -> Case:
    Y, A = arrays(Y=(D, D), A=(D, D))
    system = _system("benchmark.matrix", {Y[i, j]: over(Sum, A[i, k] * Y[k, j], (k, D))}, {i: D, j: D}, A)
    return Case("matrix product", system, lambda y, p: {"Y": p["A"] @ y["Y"]}, {"D": 256}, {"D": 3}, _normal(("_Y", "DD"), ("A", "DD")))


def galore() -> Case:
    """Mean over s of A_s - B_s W C_s, written as one sum."""
    W, A, B, C = arrays(W=(M, N), A=(K, M, N), B=(K, M, M), C=(K, N, N))
    rhs = over(Sum, A[s, i, j] - over(Sum, B[s, i, k] * W[k, l] * C[s, l, j], (k, M), (l, N)), (s, K)) / K
    system = _system("benchmark.galore", {W[i, j]: rhs}, {i: M, j: N}, A, B, C)
    numpy = lambda y, p: {"W": (p["A"] - p["B"] @ y["W"] @ p["C"]).mean(axis=0)}  # noqa: E731
    values = _normal(("_W", "MN"), ("A", "KMN"), ("B", "KMM"), ("C", "KNN"))
    return Case("GaLore, parametric gradient", system, numpy, {"K": 8, "M": 64, "N": 128}, {"K": 2, "M": 3, "N": 4}, values)


def factors() -> Case:
    """The flow of |U V^T - A|^2 / 2, from its loss."""
    U, V, A = arrays(U=(M, K), V=(N, K), A=(M, N))
    loss = over(Sum, (over(Sum, U[i, k] * V[j, k], (k, K)) - A[i, j]) ** 2, (i, M), (j, N)) / 2
    system = _system("benchmark.factors", gradient_flow(loss, {U[i, k]: 1, V[j, k]: 1}), {i: M, k: K, j: N}, A)

    def numpy(y: Numbers, p: Any) -> Numbers:
        rest = y["U"] @ y["V"].T - p["A"]
        return {"U": -rest @ y["V"], "V": -rest.T @ y["U"]}

    values = _normal(("_U", "MK"), ("_V", "NK"), ("A", "MN"))
    return Case("U V^T to A, from its loss", system, numpy, {"M": 256, "N": 256, "K": 32}, {"M": 4, "N": 3, "K": 2}, values)


def sphere() -> Case:
    x = IndexedBase("x", shape=(N, D))
    a = softmax(over(Sum, x[i, k] * x[j, k], (k, D)), (j, N))
    mean = over(Sum, a * x[j, c], (j, N))
    along = over(Sum, x[i, e] * over(Sum, a * x[j, e], (j, N)), (e, D))
    system = _system("benchmark.sphere", {x[i, c]: mean - along * x[i, c]}, {i: N, c: D})

    def numpy(y: Numbers, p: Any) -> Numbers:
        x = y["x"]
        z = x @ x.T
        w = np.exp(z - z.max(axis=1, keepdims=True))
        m = (w / w.sum(axis=1, keepdims=True)) @ x
        return {"x": m - (m * x).sum(axis=1, keepdims=True) * x}

    return Case("attention on the sphere", system, numpy, {"N": 1000, "D": 16}, {"N": 6, "D": 3}, _normal(("_x", "ND")))


def heads() -> Case:
    """Several heads of layer-normalised tokens."""
    x, WQ, WK, WV = arrays(x=(N, D), WQ=(H, K, D), WK=(H, K, D), WV=(H, D, D))
    d, b = index("d b")
    mean = lambda r: over(Sum, x[r, e], (e, D)) / D  # noqa: E731
    spread = lambda r: over(Sum, (x[r, e] - mean(r)) ** 2, (e, D)) / D  # noqa: E731
    u = lambda r, col: (x[r, col] - mean(r)) / sqrt(spread(r) + 1e-5)  # noqa: E731
    query, key = over(Sum, WQ[h, k, d] * u(i, d), (d, D)), over(Sum, WK[h, k, d] * u(j, d), (d, D))
    a = softmax(over(Sum, query * key, (k, K)), (j, N))
    value = over(Sum, WV[h, c, b] * u(j, b), (b, D))
    system = _system("benchmark.heads", {x[i, c]: over(Sum, a * value, (j, N), (h, H))}, {i: N, c: D}, WQ, WK, WV)

    def numpy(y: Numbers, p: Any) -> Numbers:
        x = y["x"]
        m = x - x.mean(axis=1, keepdims=True)
        u = m / np.sqrt((m * m).mean(axis=1, keepdims=True) + 1e-5)
        z = (u @ p["WQ"].transpose(0, 2, 1)) @ (u @ p["WK"].transpose(0, 2, 1)).transpose(0, 2, 1)
        w = np.exp(z - z.max(axis=2, keepdims=True))
        return {"x": ((w / w.sum(axis=2, keepdims=True)) @ (u @ p["WV"].transpose(0, 2, 1))).sum(axis=0)}

    values = _normal(("_x", "ND"), ("WQ", "HKD"), ("WK", "HKD"), ("WV", "HDD"))
    large, small = {"N": 256, "D": 64, "H": 4, "K": 16}, {"N": 4, "D": 3, "H": 2, "K": 2}
    return Case("heads and layer norm", system, numpy, large, small, values)


def deep_linear(layers: int = 6) -> Case:
    """The flow of |W_L ... W_1 - A|^2 / 2, from its loss."""
    W = [IndexedBase(f"W{n}", shape=(D, D)) for n in range(1, layers + 1)]
    A = IndexedBase("A", shape=(D, D))
    rows = index(" ".join(f"a{n}" for n in range(layers + 1)))
    product = W[0][rows[1], rows[0]]
    for n in range(1, layers):
        product = over(Sum, W[n][rows[n + 1], rows[n]] * product, (rows[n], D))
    loss = over(Sum, (product - A[rows[-1], rows[0]]) ** 2, (rows[-1], D), (rows[0], D)) / 2
    system = _system("benchmark.deep_linear", gradient_flow(loss, {w[i, j]: 1 for w in W}), {i: D, j: D}, A)

    def numpy(y: Numbers, p: Any) -> Numbers:
        w = [y[f"W{n}"] for n in range(1, layers + 1)]
        below = [np.eye(len(w[0]))]
        for a in w:
            below.append(a @ below[-1])
        back, found = below[-1] - p["A"], {}
        for n in reversed(range(layers)):
            found[f"W{n + 1}"] = -back @ below[n].T
            back = w[n].T @ back
        return found

    values = _normal(*((f"_W{n}", "DD") for n in range(1, layers + 1)), ("A", "DD"))
    return Case(f"deep linear, {layers} layers", system, numpy, {"D": 100}, {"D": 3}, values)


CASES = (
    topics, gibbs_blocks, gibbs_master, hopfield, batched, matrix_vector, matrix, galore, factors, sphere, heads, deep_linear
)  # fmt: skip
__all__ = ["CASES", "Case"]
