"""What the JoMA paper states of softmax attention with several queries and a temperature, and how far numbers reach."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.joma._joint_claims import FINE, small
from odesim.symbolic import Source

PAPER = "tian2023joma"
QUERIES, T, RATIO = 3, 0.7, 3.0
CASE = dict[str, Any]


def data(alike: bool) -> tuple[CASE, CASE]:
    """(parameters, state) of nine samples of five tokens, three for each of three queries. alike: samples of a query have equal tokens."""
    rng = np.random.default_rng(0)
    q = np.arange(9) % QUERIES
    X = rng.uniform(0, 1, (9, 5))
    params: CASE = {"X": X[q] if alike else X, "A": rng.standard_normal((4, 3)), "q": q, "y": np.arange(9) % 4}
    params |= {"pi": rng.dirichlet(np.ones(9)), "T": T, "eta_z": RATIO}
    return params, {"V": small(rng, 5, 3), "Xi": small(rng, QUERIES, 3), "Z": small(rng, 5, QUERIES)}


def slopes(params: CASE, state: CASE) -> CASE:
    """dV/dt, dXi/dt, dZ/dt of joma.joint_softmax, by one Euler step of 1."""
    how: CASE = {"method": "euler", "step": 1.0, "span": (0, 1), "backend": "numpy", "sizes": {"Mq": QUERIES}}
    run = odesim.integrate("joma.joint_softmax", params=params, initial=state, **how)
    return {name: run.final[name] - state[name] for name in state}


def of_query(params: CASE, m: int) -> tuple[CASE, float]:
    """(parameters of the samples of query m, their weight)."""
    own = params["q"] == m
    weight = float(params["pi"][own].sum())
    return params | {name: params[name][own] for name in ("X", "q", "y")} | {"pi": params["pi"][own] / weight}, weight


def logits(alike: bool, by_query: bool = True) -> Iterable[Measurement]:
    """dz_m/dt less (r/T)(sum_k v_k v_k' - b_m v . v'), v' of all samples or of those of query m, at a random state."""
    params, state = data(alike)
    all_of_them = slopes(params, state)
    for m in range(QUERIES):
        part, weight = of_query(params, m)
        moved = state["V"] * (weight * slopes(part, state)["V"] if by_query else all_of_them["V"])
        b = part["X"] * np.exp(state["Z"][:, m] / T)
        b = part["pi"] @ (b / b.sum(axis=1, keepdims=True))
        want = RATIO / T * (moved.sum(axis=1) - b * moved.sum())
        yield deviation(f"dz/dt of query {m} less the theorem's, T = .7, eta_z = 3 eta_w", all_of_them["Z"][:, m], want, 1e-12)


def conserved() -> Iterable[Measurement]:
    """The sum over tokens of the logits of each query, to t = 20."""
    params, state = data(alike=False)
    run = odesim.integrate("joma.joint_softmax", params=params, initial=state, sizes={"Mq": QUERIES}, span=(0, 20), save=21, **FINE)
    total = run.y["Z"].sum(axis=1)
    yield deviation("sum_l z_lm of each query, to t = 20", total, total[0], 1e-8)
    yield Measurement("largest change of a logit", float(np.abs(run.y["Z"] - run.y["Z"][0]).max()), 0.1, 0.0, ">=")


REACH = {"float64": 37.677, "float32": 13.321}
"""By type, |v| above which exp(v^2/2) overflows."""


def written_out(dtype: str) -> float:
    """The largest v (4 digits) at which exp(v^2/2) is finite in this type."""
    v = np.arange(0, 50, 1e-3)
    with np.errstate(over="ignore"):
        return float(v[np.isfinite(np.exp(v.astype(dtype) ** 2 / 2))].max())


def overflow() -> Iterable[Measurement]:
    """Where exp(v^2/2) ends, and how far past that normalised attention goes."""
    for dtype, reach in REACH.items():
        yield Measurement(f"largest v with exp(v^2/2) finite, {dtype}", written_out(dtype), reach, 1.1e-3)
        run = odesim.integrate(
            "joma.linear_softmax", params={"Delta": [0.5, -2.0, 1.0]}, span=(0, 60), save=3, dtype=dtype, backend="numpy", rtol=1e-5
        )
        v = np.abs(run.y["v"][:, 1])
        yield Measurement(f"largest |v| of normalised attention at t = 60 / that, {dtype}", float(v[2]) / reach, 2.0, 0.0, ">=")
        yield Measurement(f"its slope from t = 30 to 60, {dtype}", float(v[2] - v[1]) / 30, 2.0, 2e-4)


LAST = {"float64": 8.29, "float32": 5.42}
"""By type, v where 1 - t/t* is half a unit of the last digit of 1."""


def separation() -> Iterable[Measurement]:
    """v of the flow at the last time that the type tells from t*."""
    from scipy.special import erfcinv

    for dtype, last in LAST.items():
        ulp = float(np.finfo(dtype).eps) / 2
        yield Measurement(f"v at 1 - t/t* = {ulp:.2g}, {dtype}", float(np.sqrt(2) * erfcinv(ulp)), last, 5.1e-3)


def reached() -> Iterable[Measurement]:
    """v at the end of runs past t*, whose time is double in both types and both clocks, over that of double precision."""
    for dtype in LAST:
        for clock in ("ordinary", "rescaled"):
            run = odesim.integrate(
                "joma.linear", params={"Delta": 1.0}, span=(0, 2), dtype=dtype, clock=clock, backend="numpy", rtol=1e-6, atol=1e-9
            )
            yield Measurement(
                f"v at the end of a run / 8.29, {dtype}, clock {clock}", float(np.max(run.final["v"])) / 8.29, 1.0, 0.05, "<="
            )


SOFTMAX = (
    Claim(
        "joma.queries",
        Source(PAPER, "Theorem 1", "softmax attention, several queries, a temperature"),
        "slopes of joma.joint_softmax at a random state, three queries, T = .7, eta_z = 3 eta_w; a run to t = 20",
        printed=Statement(
            "dz/dt = (r/T)(sum_k v_k v_k' - b sum_k v_k . v_k') for each query, with v' of all samples",
            lambda: logits(alike=True, by_query=False),
            "rounding",
            fails=True,
        ),
        corrected=Statement(
            "so it is with v' of the samples of that query, b their mean attention; sum_l z_lm of each query is constant",
            lambda: (*logits(alike=True), *conserved()),
            "rounding; 100 times the relative tolerance 1e-10 of the run",
        ),
    ),
    Claim(
        "joma.one_kind",
        Source(PAPER, "Theorem 1", "softmax attention: its condition on samples"),
        "slopes of joma.joint_softmax at a random state, three queries, T = .7, eta_z = 3 eta_w",
        printed=Statement(
            "dz/dt = (r/T)(sum_k v_k v_k' - b sum_k v_k . v_k'), v' of the samples of a query",
            lambda: logits(alike=True),
            "rounding",
            when="samples of a query have the same tokens, whatever their classes",
            otherwise=lambda: logits(alike=False),
        ),
    ),
    Claim(
        "joma.reach",
        Source(PAPER, "Theorem 2", "its limits in numbers of double and of single precision; ours"),
        "joma.linear_softmax to t = 60 in both types; joma.linear past t*, and in the rescaled clock",
        printed=Statement(
            "at v = 8.29 (double), 5.42 (single) t is t*; exp(v^2/2) overflows at 37.677, 13.321, normalised attention does not",
            lambda: (*separation(), *reached(), *overflow()),
            "half a digit; 5 % of v, by which v grows while 1 - t/t* falls by half; 1e-4 of a slope, ten times rtol",
        ),
    ),
)
