"""What is stated of deep linear networks, and of a student that learns a two-layer teacher online; what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import erf

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.symbolic import Source

GOLDT = "goldt2019dynamics"
FINEST: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-14, "backend": "numpy"}
START = {"Q": np.diag([0.25, 0.16]), "R": np.diag([1e-3, 5e-4])}
FIRST = {0: 0.440861168, 1: 0.208878051, 5: 0.0416002995, 10: 0.0348479242, 20: 0.034667043, 50: 0.0345521567, 100: 0.00767950233}
FIRST |= {150: 1.68998420e-05}
BOTH = {0: 0.427096377, 10: 0.0158067672, 100: 0.0141923994, 300: 0.00373408063}


def half_a_unit(value: float) -> float:
    """Half a unit of the ninth digit, the last one recorded of e_g."""
    return float(10 ** (np.floor(np.log10(value)) - 8) / 2)


def errors() -> Iterable[Measurement]:
    """Generalisation errors of two students and two teachers: first layer alone, and both layers."""
    given: dict[str, Any] = {"params": {"eta_2": 0.0}, "initial": {**START, "v": 1.0}}
    run = odesim.integrate("classics.committee", **given, span=(0, 150), save=list(FIRST), **FINEST)
    for t, e, want in zip(run.t, run.observables["e_g"], FIRST.values(), strict=True):
        yield Measurement(f"first layer, t = {t:g}", e, want, half_a_unit(want))
    given = {"params": {"eta": 0.5, "eta_2": 0.5}, "initial": {**START, "v": [0.8, 1.1]}}
    run = odesim.integrate("classics.committee", **given, span=(0, 300), save=list(BOTH), **FINEST)
    for t, e, want in zip(run.t, run.observables["e_g"], BOTH.values(), strict=True):
        yield Measurement(f"both layers, t = {t:g}", e, want, half_a_unit(want))
    for k, (want, half) in enumerate(((0.8370605, 5e-8), (1.06167472, 5e-9))):
        yield Measurement(f"v[{k}] at t = 300", run.final["v"][k], want, half)


def escape() -> Iterable[Measurement]:
    """When e_g falls below .02, from symmetry broken by 1e-3, 1e-4, 1e-5: the plateau is longer by as much each time."""
    times = []
    for small in (1e-3, 1e-4, 1e-5):
        given: dict[str, Any] = {"params": {"eta_2": 0.0}, "initial": {"Q": np.diag([0.2, 0.2]), "R": small * np.eye(2), "v": 1.0}}
        run = odesim.integrate("classics.committee", **given, span=(0, 300), save=2, events=["escape: e_g - 0.02"], **FINEST)
        found = run.events["escape"]
        times.append(float(found[-1]["t"]) if len(found) else np.nan)  # it never ends
    yield Measurement("second delay over first", (times[2] - times[1]) / (times[1] - times[0]), 1.0, 1e-3)


def online(N: int, seed: int, end: float) -> float:
    """e_g of online learning in N dimensions at time `end`, both students from START, first layer alone, eta = 1.5."""
    rng = np.random.default_rng(seed)
    teacher = np.linalg.qr(rng.standard_normal((N, 2)))[0].T * np.sqrt(N)
    free = np.linalg.qr(np.hstack([teacher.T, rng.standard_normal((N, 2))]))[0][:, 2:].T * np.sqrt(N)
    R, Q = START["R"], START["Q"]
    student = R @ teacher + np.linalg.cholesky(Q - R @ R.T) @ free
    for _ in range(round(end * N)):
        x = rng.standard_normal(N)
        fields = student @ x / np.sqrt(N)
        miss = erf(fields / np.sqrt(2)).sum() - erf(teacher @ x / np.sqrt(2 * N)).sum()
        student -= 1.5 / np.sqrt(N) * miss * (np.sqrt(2 / np.pi) * np.exp(-(fields**2) / 2))[:, None] * x
    C = np.vstack([student, teacher]) @ np.vstack([student, teacher]).T / N
    s = np.array([-1.0, -1, 1, 1])
    return float(s @ np.arcsin(C / np.sqrt(np.outer(1 + np.diag(C), 1 + np.diag(C)))) @ s / np.pi)


def finite_dimensions() -> Iterable[Measurement]:
    """32 trainings in N = 100 and 400 dimensions to t = 5, beside the equations."""
    given: dict[str, Any] = {"params": {"eta_2": 0.0}, "initial": {**START, "v": 1.0}}
    want = odesim.integrate("classics.committee", **given, span=(0, 5), save=2, **FINEST).observables["e_g"][-1]
    spreads = []
    for N in (100, 400):
        found = np.array([online(N, seed, 5.0) for seed in range(32)])
        error = found.std(ddof=1) / 32**0.5
        yield Measurement(f"mean in standard errors, N = {N}", (found.mean() - want) / error, 0.0, 3.0)
        spreads.append(found.std(ddof=1))
    # of 32 normal numbers each, one ratio of variances in a thousand is further from that of the laws than this, to either side
    reach = float(np.log(stats.f.ppf(0.999, 31, 31)) / 2)
    yield Measurement("ln of the ratio of the spreads", np.log(spreads[0] / spreads[1]), np.log(2), reach)


COMMITTEE = (
    Claim(
        "classics.committee_errors",
        Source(GOLDT, "eqs. S12 to S32", "numbers of an independent script, which the authors' integrator approaches"),
        "classics.committee, K = M = 2: first layer alone, and both",
        "the equations give e_g of a plateau and of specialisation",
        errors,
        "half a unit of the last digit",
        slow=True,
    ),
    Claim(
        "classics.plateau",
        Source("goldt2019dynamics", "Section 2", "after Saad and Solla 1995"),
        "classics.committee, symmetry broken by 1e-3, 1e-4 and 1e-5",
        "the plateau lasts in proportion to the logarithm of the first difference",
        escape,
        "of the order of the first difference, 1e-3",
        slow=True,
        depends=("classics.committee_errors",),
    ),
    Claim(
        "classics.finite_dimensions",
        Source(GOLDT, "Section 2", "N -> infinity"),
        "online learning in N = 100 and 400 dimensions, 32 seeds each, to t = 5",
        "e_g of a finite N is that of the equations, with a spread of order N^(-1/2)",
        finite_dimensions,
        "three standard errors; the F distribution at .999, which leaves the ratio 1 out",
        models=("classics.committee",),
        slow=True,
    ),
)


PAPER = "saxe2014exact"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-14, "backend": "numpy"}
STRENGTHS = np.array([3.0, 1.5, 0.5])


def sigmoids() -> Iterable[Measurement]:
    """Three modes of two layers from a = 1e-3, at t = 2 and 4."""
    run = odesim.integrate("classics.deep_linear_modes", params={"s": STRENGTHS}, span=(0, 4), save=[0, 2, 4], **FINE)
    grown = np.exp(2 * STRENGTHS * run.t[:, None])
    yield deviation("all modes", run.y["a"], STRENGTHS * grown / (grown - 1 + STRENGTHS / 1e-3), 1e-8)
    for row, digits in ((1, (2.9457207, 0.3180898, 0.00729583)), (2, (2.99999966, 1.48631082, 0.04931208))):
        for s, a, want in zip(STRENGTHS, run.y["a"][row], digits, strict=True):
            yield Measurement(f"s = {s:g} at t = {run.t[row]:g}", a, want, 6e-8 if row == 1 and s > 1 else 6e-9)


def half_times() -> Iterable[Measurement]:
    """When each of three modes of two layers from a = 1e-3 has half of its strength."""
    events = [f"half{k}: a[{k}] - {s / 2}" for k, s in enumerate(STRENGTHS)]
    run = odesim.integrate("classics.deep_linear_modes", params={"s": STRENGTHS}, span=(0, 10), save=2, events=events, **FINE)
    for k, s in enumerate(STRENGTHS):
        yield Measurement(f"s = {s:g}", run.events[f"half{k}"][0]["t"], np.log(s / 1e-3 - 1) / (2 * s), 1e-7)


def three_layers() -> Iterable[Measurement]:
    """The weakest mode of three layers, and the flow of the layers in other bases beside the modes."""
    run = odesim.integrate("classics.deep_linear_modes", params={"s": STRENGTHS, "L": 3}, span=(0, 20), save=[0, 10, 20], **FINE)
    yield Measurement("s = 0.5 at t = 10", run.y["a"][1, 2], 0.00785878, 6e-9)
    yield Measurement("s = 0.5 at t = 20", run.y["a"][2, 2], 0.45506421, 6e-9)
    left, _, right = np.linalg.svd(np.random.default_rng(0).normal(size=(3, 3)))
    first, second = (np.linalg.qr(np.random.default_rng(k).normal(size=(3, 3)))[0] for k in (1, 2))
    start = {"W1": 0.1 * first @ right, "W2": 0.1 * second @ first.T, "W3": 0.1 * left @ second.T}
    given: dict[str, Any] = {"params": {"Sigma": left @ np.diag(STRENGTHS) @ right}, "initial": start, "span": (0, 20)}
    flow = odesim.integrate("classics.deep_linear", save=[0, 10, 20], **given, **FINE)
    found = np.einsum("ji,tjk,lk->til", left, flow.observables["product"], right)
    yield deviation("modes of the layers", np.diagonal(found, axis1=1, axis2=2), run.y["a"], 1e-7)


def balance() -> Iterable[Measurement]:
    """W2^T W2 - W1 W1^T along a flow from random layers."""
    start = {name: np.random.default_rng(k).normal(size=(3, 3)) / 2 for k, name in enumerate(("W1", "W2", "W3"))}
    run = odesim.integrate("classics.deep_linear", initial=start, save=9, **FINE)
    W1, W2 = run.y["W1"], run.y["W2"]
    now = np.swapaxes(W2, 1, 2) @ W2 - W1 @ np.swapaxes(W1, 1, 2)
    yield deviation("change of the balance", now, now[0], 1e-8)


CLAIMS = (
    Claim(
        "classics.sigmoids",
        Source(PAPER, "Section 1.3", "two layers"),
        "classics.deep_linear_modes, s = 3, 1.5, .5 from 1e-3",
        "a(t) = s exp(2 s t) / (exp(2 s t) - 1 + s / a(0))",
        sigmoids,
        "half a unit of the last recorded digit and a bit",
    ),
    Claim(
        "classics.half_times",
        Source(PAPER, "Section 1.3", "two layers"),
        "classics.deep_linear_modes, s = 3, 1.5, .5 from 1e-3",
        "a mode has half of its strength at ln(s / a(0) - 1) / (2 s)",
        half_times,
        "1000 times the relative tolerance",
        depends=("classics.sigmoids",),
    ),
    Claim(
        "classics.three_layers",
        Source(PAPER, "Section 2", "L layers"),
        "classics.deep_linear from balanced layers in random bases, and classics.deep_linear_modes with L = 3",
        "each mode obeys da/dt = L a^(2 - 2/L) (s - a)",
        three_layers,
        "1000 times the tolerance of both runs",
    ),
    Claim(
        "classics.balance",
        Source(PAPER, "Section 2", "conserved quantities"),
        "classics.deep_linear from random layers",
        "W2^T W2 - W1 W1^T does not change",
        balance,
        "100 times the relative tolerance 1e-10",
    ),
    *COMMITTEE,
)
