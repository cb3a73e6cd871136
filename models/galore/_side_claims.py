"""What the GaLore paper states of projections on both sides, of Algorithm 1 with Adam, and of few samples at late times."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sympy import Interval, Sum, oo

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.galore.parametric_gradient import SYSTEM as PLAIN
from odesim.models.galore.parametric_gradient import G, N, W, gradient, i, j, k, l, m, n, s
from odesim.symbolic import IndexedBase, Param, Source, System, at, index, over, sizes

PAPER = "zhao2024galore"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
a, b = index("a b")
(r,) = sizes("r")
P, Q = IndexedBase("P", shape=(m, r)), IndexedBase("Q", shape=(n, r))


def both_sides() -> System:
    """dW/dt = P P^T G Q Q^T, for directions P (m, r) and Q (n, r) that stay."""
    shadow = over(Sum, over(Sum, P[k, a] * at(G, {i: k, j: l}), (k, m)) * Q[l, b], (l, n))
    numbers = Interval(-oo, oo)
    return System(
        name="galore.both_sides",
        source=Source(PAPER, "Definition 3.6 and Theorem 3.8"),
        axes={i: m, j: n, k: m, l: n, s: N, a: r, b: r},
        equations={W[i, j]: over(Sum, P[i, a] * over(Sum, shadow * Q[j, b], (b, r)), (a, r))},
        params=(*PLAIN.params, Param(P, 1.0, numbers, "directions of rows"), Param(Q, 1.0, numbers, "directions of columns")),
        initial={W[i, j]: 0},
        sizes={m: 8, n: 9, N: 5, r: 3},
        span=(0.0, 20.0),
        observables={"shadow": shadow},
    )


def shadows() -> Iterable[Measurement]:
    """R = P^T G Q along the flow of the whole W, beside its own linear flow and the bound exp(-kappa t); what is left of G."""
    from scipy.linalg import expm

    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.standard_normal((size, 3)))[0] for size in (8, 9))
    Bs, Cs = (X @ X.transpose(0, 2, 1) / X.shape[1] for X in (rng.standard_normal((5, 8, 8)), rng.standard_normal((5, 9, 9))))
    params = {"A": rng.standard_normal((5, 8, 9)), "B": Bs, "C": Cs, "P": left, "Q": right}
    run = odesim.integrate(both_sides(), params=params, span=(0, 60), save=13, **FINE)
    R = run.observables["shadow"]
    small = [(left.T @ x @ left, right.T @ y @ right) for x, y in zip(Bs, Cs, strict=True)]
    S = np.mean([np.kron(x, y) for x, y in small], axis=0)
    own = [(expm(-S * t) @ R[0].ravel()).reshape(3, 3) for t in run.t]
    yield deviation("R less exp(-S t) R(0), S the mean of P^T B P and Q^T C Q, to t = 60", R, own, 1e-8)
    kappa = np.mean([np.linalg.eigvalsh(x)[0] * np.linalg.eigvalsh(y)[0] for x, y in small])
    size = np.linalg.norm(R, axis=(1, 2))
    yield Measurement("largest |R| / (exp(-kappa t) |R(0)|)", float((size / size[0] * np.exp(kappa * run.t)).max()), 1.0, 1e-9, "<=")
    yield Measurement("|R| at t = 60 / |R(0)|", float(size[-1] / size[0]), 0.01, 0.0, "<=")
    G_of = [np.linalg.norm(gradient(x, params["A"], Bs, Cs)) for x in (run.y["W"][0], run.y["W"][-1])]
    yield Measurement("|G| at t = 60 / |G(0)|", float(G_of[1] / G_of[0]), 0.5, 0.0, ">=")


RATE, STEPS = 0.02, 1500
Directions = Callable[[np.ndarray], np.ndarray]


def target() -> np.ndarray:
    """T (16, 24) of rank 4: the loss is |W - T|^2 / 2, its gradient with the sign turned T - W."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((16, 4)) @ rng.standard_normal((4, 24)) / 2


def all_of_them(G: np.ndarray) -> np.ndarray:
    """The directions with which Algorithm 1 is Adam itself."""
    return np.eye(len(G))


def leading(rank: int) -> Directions:
    """The leading left singular vectors of G, so many."""
    return lambda G: np.asarray(np.linalg.svd(G)[0][:, :rank])


def algorithm_1(T: np.ndarray, directions: Directions, every: int, steps: int = STEPS) -> np.ndarray:
    """W after so many steps of Algorithm 1 with Adam, from 0. directions: P (16, r) of a gradient, looked up every so many steps."""
    from odesim.lab.training.optimizers import make_optimizer
    from odesim.lab.training.task import Optimizer

    W, eye = np.zeros_like(T), [np.eye(size)[None] for size in T.shape]
    P = directions(T)
    step = {"u": np.zeros((P.shape[1], T.shape[1]))}
    adam = make_optimizer(Optimizer("adam", {"all": RATE}), {"u": "all"}, step)
    for t in range(steps):
        G = gradient(W, T[None], *eye)
        P = directions(G) if t % every == 0 else P
        step["u"][:] = 0
        adam.update(step, {"u": -P.T @ G})
        W = W + P @ step["u"]
    return W


def error(W: np.ndarray) -> float:
    """The mean squared error of W over that of 0."""
    return float(((W - target()) ** 2).sum() / (target() ** 2).sum())


def trains(every: int) -> Iterable[Measurement]:
    """What is left of the mean squared error by two directions."""
    yield Measurement("error of r = 2 / error at the start", error(algorithm_1(target(), leading(2), every)), 1e-12, 0.0, "<=")


def others() -> Iterable[Measurement]:
    """Adam itself and four directions; what two that stay leave; all of them turned, beside Adam on a turned target."""
    T = target()
    for name, directions in (("Adam", all_of_them), ("r = 4", leading(4))):
        yield Measurement(f"error of {name} / error at the start", error(algorithm_1(T, directions, 50)), 1e-9, 0.0, "<=")
    values = np.linalg.svd(T, compute_uv=False) ** 2
    left = float(values[2:].sum() / values.sum())
    yield Measurement(
        "error of r = 2, never looked up again / share of the other squared singular values",
        error(algorithm_1(T, leading(2), STEPS)) / left,
        1.0,
        1e-6,
    )
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))[0]
    turned = algorithm_1(T, lambda G: turn, 50, 40)
    yield deviation(
        "r = m: W less that of Adam in turned coordinates, 40 steps", turned, turn @ algorithm_1(turn.T @ T, all_of_them, 50, 40), 1e-12
    )
    apart = float(np.abs(turned - algorithm_1(T, all_of_them, 50, 40)).max())
    yield Measurement("r = m: largest distance from Adam itself", apart, 0.05, 0.0, ">=")


SIDES = (
    Claim(
        "galore.both_sides",
        Source(PAPER, "Definition 3.6 and Theorem 3.8", "wording recalled; in continuous time"),
        "the flow dW/dt = P P^T G Q Q^T of galore.parametric_gradient's G, m = 8, n = 9, r = 3, N = 5, to t = 60",
        printed=Statement(
            "R = P^T G Q has a linear flow of its own, of P^T B P and Q^T C Q, and falls at least as exp(-kappa t); G does not fall",
            shadows,
            "100 times the relative tolerance 1e-10 of the run; half of G and a hundredth of R are ours",
        ),
    ),
    Claim(
        "galore.adam",
        Source(PAPER, "Algorithm 1", "with Adam; wording recalled"),
        "Algorithm 1 on |W - T|^2 / 2, W of 16 x 24, T of rank 4: 1500 steps of .02, directions looked up every 50",
        printed=Statement(
            "two directions train a target of rank four",
            lambda: trains(50),
            "none: rounding of the squares is below it",
            when="they are looked up again",
            otherwise=lambda: trains(STEPS),
        ),
        corrected=Statement(
            "two that stay leave the other singular values; with r = m it is Adam in turned coordinates, which is not Adam",
            others,
            "rounding over 40 steps; what Adam leaves after 1500",
        ),
        models=("galore.parametric_gradient",),
    ),
)
