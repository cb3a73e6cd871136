"""What is stated of linear networks that learn without negative pairs, as matrices and in their modes, BYOL and SimSiam; what holds."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import cumulative_trapezoid, quad
from sympy import Symbol, sqrt

import odesim
from odesim.lab.claims import Claim, Mark, Measurement, Statement, deviation
from odesim.models.self_supervised._parabola import rest_points
from odesim.symbolic import Source

PAPER, MODES, EMA, DIRECT = "tian2021understanding", *(f"self_supervised.{name}" for name in ("modes", "modes_ema", "direct_pred"))
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
LOW, HIGH = (float(root.real) for root in rest_points(0.04, 0.1))
"""p- and p+ of eta = .04, sigma2 = .1."""


def run(p: Any, s: Any, t: Any, model: str = MODES, **params: float) -> Any:
    """A run of modes from p and s (n,), kept at 0 and the times t."""
    initial = {"p": np.atleast_1d(p), "s": np.atleast_1d(s)}
    times = [0.0, *np.atleast_1d(t)]
    return odesim.integrate(model, initial=initial, sizes={"n": len(initial["p"])}, params=params, save=times, span=(0, times[-1]), **FINE)


def integral(sign: float) -> Iterable[Measurement]:
    """s - p^2/alpha of three modes beside exp(-2 eta t) sign (p(0)^2/alpha - s(0)), alpha = 1.7."""
    found = run((0.05, 0.3, 0.6), (0.5, 0.3, 0.7), np.arange(1, 31), alpha=1.7)
    c = sign * (found.y["p"][0] ** 2 / 1.7 - found.y["s"][0])
    yield deviation("s - p^2/alpha up to t = 30", found.observables["balance"], np.exp(-0.08 * found.t[:, None]) * c, 1e-8)


ENDS = {0.2: (0.6120087, 0.6120046), 0.227: (0.4886594, 0.4702914), 0.2273: (0.4858984, 0.0), 0.25: (0.0087387, 0.0)}
"""eta -> p at t = 50 and 2000 from (.6, .5), by two other integrators."""


def collapse() -> Iterable[Measurement]:
    """One mode from p = .6, s = .5 at four weight decays, around 1/(4 * 1.1) = .22727."""
    for eta, recorded in ENDS.items():
        p = run(0.6, 0.5, (50, 2000), eta=eta).y["p"][1:, 0]
        for t, found, want in zip((50, 2000), p, recorded, strict=True):
            yield Measurement(f"p at t = {t}, eta = {eta:g}", found, want, 1e-7)


def end(p: float, s: float) -> Measurement:
    """p at t = 600 from (p, s), which is p+ or 0: 0 for a start below p-."""
    return Measurement(f"p in the end from p = {p:g}, s = {s:g}", run(p, s, 600).y["p"][-1, 0], HIGH if p > LOW else 0.0, 1e-6)


def basin(starts: Iterable[tuple[float, float]]) -> Iterable[Measurement]:
    """The ends from these starts (p, s)."""
    return map(end, *zip(*starts, strict=True))


def on_the_parabola() -> Iterable[Measurement]:
    """Balanced starts on both sides of p- = .04193, and the time of two passages."""
    yield from basin((p, p**2) for p in (0.03, 0.041, 0.0425, 0.6))
    for first, last, want in ((0.05, 0.8, 53.2102063), (0.045, 0.5, 72.3547509)):
        events = [f"there: p[0] - {last}"]
        given: dict[str, Any] = {"initial": {"p": first, "s": first**2}, "sizes": {"n": 1}, "span": (0, 100), "save": 2}
        (passed,) = odesim.integrate(MODES, events=events, **given, **FINE).events["there"]
        yield Measurement(f"time from p = {first:g} to {last:g}", passed["t"], want, 1e-6)


def without_decay() -> Iterable[Measurement]:
    """Two modes without weight decay, alpha = 1, and one of alpha = 5."""
    for alpha, p0, s0 in ((1.0, (0.2, -0.3), (0.3, 0.2)), (5.0, (-0.3,), (0.05,))):
        found = run(p0, s0, 400, eta=0.0, alpha=alpha)
        want = np.array(s0) + ((1 / 1.1) ** 2 - np.square(p0)) / alpha
        yield deviation(f"p in the end, alpha = {alpha:g}", found.final["p"], 1 / 1.1, 1e-6)
        yield deviation(f"s in the end, alpha = {alpha:g}", found.final["s"], want, 1e-6)
    yield Measurement("s at t = 400 from (.2, .3)", run(0.2, 0.3, 400, eta=0.0).final["s"][0], 1.0864463, 1e-7)
    given: dict[str, Any] = {"initial": {"p": 0.2, "s": 0.3}, "params": {"eta": 0.0}, "sizes": {"n": 1}, "span": (0, 10), "save": 2}
    (passed,) = odesim.integrate(MODES, events=["there: p[0] - 0.6"], **given, **FINE).events["there"]
    time = quad(lambda p: 1 / ((0.26 + p**2) * (1 - 1.1 * p)), 0.2, 0.6)[0]  # s = .3 + p^2 - .2^2
    yield Measurement("time from p = .2 to .6", passed["t"], time, 1e-8)


def fast_predictor() -> Iterable[Measurement]:
    """A start p < 0 with small s, that a slow predictor loses; and a balanced end, whose p has forgotten alpha."""
    for alpha, want in ((1.0, 0.0), (5.0, 1 / 1.1)):
        s = float(run(-0.3, 0.05, 1000, eta=0.0, alpha=alpha).final["s"][0])
        yield Measurement(f"s in the end without decay, alpha = {alpha:g}", s, want and 0.05 + (want**2 - 0.09) / alpha, 1e-5)
    for alpha, p, s in ((0.2, 0.8672583, 3.7598026), (5.0, 0.8698670, 0.1503921)):
        found = run(0.05, 0.1, (30, 400), alpha=alpha)
        yield Measurement(f"p at t = 30, alpha = {alpha:g}", found.y["p"][1, 0], p, 1e-7)
        yield Measurement(f"s at t = 400, alpha = {alpha:g}", found.y["s"][2, 0], s, 1e-6)


def averaged() -> Iterable[Measurement]:
    """Two modes with a moving average, beside those without: (p, s, tau) at t = 20 and 200."""
    found = run((0.05, 0.35), (0.1, 0.1), (5, 20, 200), EMA, beta=0.4)
    recorded = np.array([[0.8370703, 0.7203716, 0.9751485], [0.8366285, 0.6954045, 0.9754292]])
    yield deviation("p, s, tau at t = 20", np.stack([found.y[name][2] for name in ("p", "s", "tau")], axis=-1), recorded, 1e-7)
    yield deviation("p in the end", found.final["p"], HIGH, 2e-6)
    yield deviation("s in the end", found.final["s"], HIGH**2, 2e-6)
    ahead = run((0.05, 0.35), (0.1, 0.1), 5).final["p"] - found.y["p"][1]
    yield Measurement("p at t = 5, less than without by at least", ahead.min(), 0.1, 0.0, ">=")


def target() -> Iterable[Measurement]:
    """tau on the parabola, from 0, beside its integral over a run kept at 4001 times; and p where tau = 1/2."""
    given: dict[str, Any] = {"initial": {"p": 0.6, "s": 0.36, "tau": 0.0}, "sizes": {"n": 1}, "span": (0, 20), "save": 4001}
    found = odesim.integrate(EMA, events=["half: tau[0] - 0.5"], **given, **FINE)
    p, tau = found.y["p"][:, 0], found.y["tau"][:, 0]
    filtered = 0.4 * np.exp(-0.4 * found.t) / p * cumulative_trapezoid(p * np.exp(0.4 * found.t), found.t, initial=0)
    yield deviation("tau beside the integral", tau, filtered, 1e-5)


def direct() -> Iterable[Measurement]:
    """s of three modes at t = 5 and 20 without eps, in the end with it; and a start below p-."""
    recorded: dict[float, dict[float, tuple[float, ...]]] = {
        0.0: {5.0: (0.7216850, 0.5315230, 0.0183645), 20.0: (0.7519603, 0.7519579, 0.7093765)},
        0.1: {20.0: (0.6214549, 0.6214508, 0.6195680), 200.0: ((HIGH / 1.1) ** 2,) * 3},
    }
    for eps, rows in recorded.items():
        for t, s in rows.items():
            yield deviation(f"s at t = {t:g}, eps = {eps:g}", directly((0.3, 0.1, 0.01), eps, t), s, 1e-7)
    for eps, want in ((0.0, (HIGH**2, 0.0)), (0.1, ((HIGH / 1.1) ** 2,) * 2)):
        yield deviation(f"s in the end from s = .5, .001, eps = {eps:g}", directly((0.5, 0.001), eps, 1000.0), want, 1e-6)


def directly(s: tuple[float, ...], eps: float, t: float) -> Any:
    """s (n,) at t of DirectPred."""
    given: dict[str, Any] = {"params": {"eps": eps}, "sizes": {"n": len(s)}, "span": (0, t), "save": 2}
    return odesim.integrate(DIRECT, initial={"w": np.sqrt(s)}, **given, **FINE).final_observables["s"]


DIGITS, LAST = "100 to 1000 times the relative tolerance", "a unit of the last recorded digit"
ONE = "self_supervised.modes, sigma2 = .1, eta = .04 unless said"
MODE_CLAIMS = (
    Claim(
        "self_supervised.integral",
        Source(PAPER, "eq. 14"),
        "self_supervised.modes, three modes off the parabola, alpha = 1.7",
        "s = p^2/alpha + exp(-2 eta t) c with c = p(0)^2/alpha - s(0)",
        partial(integral, 1.0),
        DIGITS,
        fails=True,
        corrected=Statement("s = p^2/alpha + exp(-2 eta t) c with c = s(0) - p(0)^2/alpha", partial(integral, -1.0), DIGITS),
    ),
    Claim(
        "self_supervised.collapse",
        Source(PAPER, "Section 3.2", "below eq. 16"),
        f"{ONE}; from p = .6, s = .5, eta = .2 to .25",
        "above eta = 1/(4 (1 + sigma2)) collapse is unavoidable, below it p+ is stable",
        collapse,
        LAST,
        marks=(Mark("p", (1 + sqrt(1 - 4 * (1 + Symbol("sigma2")) * Symbol("eta"))) / (2 + 2 * Symbol("sigma2"))),),
    ),
    Claim(
        "self_supervised.basin",
        Source(PAPER, "Section 3.2", "below eq. 16"),
        ONE,
        "modes with p(0) < p- collapse, those with p(0) > p- are learned",
        on_the_parabola,
        "rest states: 1e-6, as times are finite; times: 1e-6",
        when="they start on the parabola s = p^2/alpha; off it the edge is a curve, and s counts too",
        otherwise=partial(basin, ((0.01, 0.3), (0.01, 0.02), (0.02, 0.001))),
        depends=("self_supervised.integral",),
    ),
    Claim(
        "self_supervised.no_decay",
        Source(PAPER, "Section 3.2", "no weight decay"),
        "self_supervised.modes, eta = 0, starts above the parabola",
        "p -> 1/(1 + sigma2) and s -> s(0) + (p(end)^2 - p(0)^2)/alpha from every start s(0) > p(0)^2/alpha",
        without_decay,
        LAST,
    ),
    Claim(
        "self_supervised.fast_predictor",
        Source(PAPER, "Section 3.2", "observations 1 and 2"),
        "self_supervised.modes, alpha = .2, 1 and 5",
        "a faster predictor saves starts that collapse, but learns a smaller s: p+^2/alpha",
        fast_predictor,
        LAST,
        depends=("self_supervised.basin",),
    ),
    Claim(
        "self_supervised.moving_average",
        Source(PAPER, "Section 3.2", "observation 9"),
        "self_supervised.modes_ema, beta = .4, beside self_supervised.modes",
        "a moving average makes learning slower and ends at the same p+ and s",
        averaged,
        LAST,
    ),
    Claim(
        "self_supervised.target",
        Source(PAPER, "eq. 15"),
        "self_supervised.modes_ema, one mode on the parabola, tau(0) = 0",
        "tau(t) = beta exp(-beta t) int p exp(beta t') dt' / p(t)",
        target,
        "of the trapezoidal rule with steps of .005",
    ),
    Claim(
        "self_supervised.direct_pred_modes",
        Source(PAPER, "Section 4", "eq. 18 in the form of the paper's code"),
        "self_supervised.direct_pred, three modes and two",
        "a predictor that is set learns all modes to p+, and small ones, which collapse else, by eps",
        direct,
        LAST,
    ),
)


SIMSIAM, BYOL, NO_STOP = (f"self_supervised.{name}" for name in ("simsiam", "byol", "no_stop"))
P0, S0 = np.array([0.05, 0.3, 0.6]), np.array([0.5, 0.3, 0.7])
TABLE = {
    2.0: ((0.69146396, 0.65169885, 0.83798939), (0.90206394, 0.60366159, 0.99195511)),
    10.0: ((0.87750364, 0.87221300, 0.87491965), (0.99355379, 0.85511460, 0.91825624)),
    60.0: ((0.86742153, 0.86726893, 0.86733810), (0.75651442, 0.75388364, 0.75507350)),
}
"""t -> p and s of the modes that start at P0 and S0, by the matrices and by the modes with two other integrators."""


def rotation(seed: int, size: int) -> Any:
    """An orthogonal matrix (size, size)."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def aligned() -> tuple[Any, dict[str, Any]]:
    """(U (3, 3), start) of matrices with the eigenvectors U and the modes P0 and S0."""
    U, V = rotation(1, 3), rotation(2, 5)[:3]
    W = U @ np.diag(np.sqrt(S0)) @ V
    return U, {"W": W, "W_p": U @ np.diag(P0) @ U.T}


def modes_of_matrices() -> Iterable[Measurement]:
    """Matrices in random bases, in the basis they start in: the diagonals are the modes, and nothing else is there."""
    U, start = aligned()
    given: dict[str, Any] = {"span": (0, 60), "save": [0, *TABLE], **FINE}
    flow = odesim.integrate(SIMSIAM, initial=start, **given)
    modes = odesim.integrate(MODES, initial={"p": P0, "s": S0}, sizes={"n": 3}, **given)
    inside = {name: U.T @ rows @ U for name, rows in (("p", flow.y["W_p"]), ("s", flow.observables["F"]))}
    for name, rows in inside.items():
        diagonal = np.diagonal(rows, axis1=1, axis2=2)
        yield deviation(f"{name} of the matrices and of the modes", diagonal, modes.y[name], 1e-8)
        yield deviation(f"what leaves the basis, {name}", rows - diagonal[:, None] * np.eye(3), 0.0, 1e-9)
        yield deviation(f"{name} at t = 2, 10, 60", diagonal[1:], [row[name == "s"] for row in TABLE.values()], 1e-8)


def balance() -> Iterable[Measurement]:
    """W W^T - W_p^T W_p / alpha of a random start, with a moving average, alpha = 1.7, beside its start times exp(-2 eta t)."""
    rng = np.random.default_rng(6)
    start = {"W": rng.normal(size=(3, 5)) / 2, "W_p": rng.normal(size=(3, 3)) / 2, "W_a": rng.normal(size=(3, 5)) / 2}
    found = odesim.integrate(BYOL, initial=start, params={"alpha": 1.7, "beta": 0.3}, span=(0, 20), save=21, **FINE)
    W_p = found.y["W_p"]
    now = found.observables["F"] - np.swapaxes(W_p, 1, 2) @ W_p / 1.7
    yield deviation("balance up to t = 20", now, np.exp(-0.08 * found.t)[:, None, None] * now[0], 1e-8)
    yield Measurement("balance at the start, largest entry at least", np.abs(now[0]).max(), 0.5, 0.0, ">=")


def alignment() -> Iterable[Measurement]:
    """A random start that is not symmetric: asymmetry of W_p, commutator with F, and the eigenvalues in the end."""
    found = odesim.integrate(SIMSIAM, span=(0, 300), save=[0, 5, 20, 60, 300], **FINE)
    for name in ("asymmetry", "commutator"):
        seen = found.observables[name]
        for k, share in ((2, 0.02), (3, 1e-6)):
            yield Measurement(f"{name} at t = {found.t[k]:g}, part of the first", seen[k] / seen[0], share, 0.0, "<=")
    yield deviation("eigenvalues of W_p in the end", np.linalg.eigvalsh(found.final["W_p"]), HIGH, 1e-6)


def no_stop() -> Iterable[Measurement]:
    """One weight and one predictor without weight decay, at t = 5 and 50; and the rate of decay that H allows, of matrices."""
    given: dict[str, Any] = {"initial": {"W": [[1.0]], "W_p": [[0.5]]}, "sizes": {"n1": 1, "n2": 1}, "params": {"eta": 0.0}}
    found = odesim.integrate(NO_STOP, **given, span=(0, 50), save=[0, 5, 50], **FINE)
    yield deviation("w at t = 5, 50", found.y["W"][1:, 0, 0], (0.340736776, 5.897e-5), 1e-8)
    yield Measurement("p at t = 5", found.y["W_p"][1, 0, 0], 0.857571219, 1e-9)
    found = odesim.integrate(NO_STOP, span=(0, 40), save=41, **FINE)
    least = [
        np.linalg.eigvalsh(0.1 * (P.T @ P + np.eye(3)) + (P - np.eye(3)).T @ (P - np.eye(3)) + 0.04 * np.eye(3))[0] for P in found.y["W_p"]
    ]
    bound = found.observables["size"][0] * np.exp(-2 * min(least) * found.t)
    yield Measurement("|W|^2 over its bound, largest", (found.observables["size"] / bound).max(), 1.0, 1e-9, "<=")
    yield Measurement("least eigenvalue of H", min(least), 0.14, 0.0, ">=")


def beside(model: str, steps: int, seeds: int, **settings: Any) -> Any:
    """The task simsiam to t = steps / 100 beside a System, at five times."""
    return odesim.compare(model, task="simsiam", settings=settings, seeds=range(seeds), steps=steps, save=6)


def trained() -> Iterable[Measurement]:
    """16 trainings from P0 and S0 in the mean, at t = 2 and 10, beside the table; and 16 of two modes with a moving average, at t = 20."""
    found = beside(MODES, 1000, 16, p=P0, s=S0)
    for row, t in ((1, 2.0), (5, 10.0)):
        for name, wide, want in zip("ps", (5e-3, 1e-2), TABLE[t], strict=True):
            yield deviation(f"mean {name} at t = {t:g}, trained", found.training[name][:, row].mean(axis=0), want, wide)
            yield deviation(f"{name} there, flow", found.theory[name][0, row], want, 1e-6)
    found = beside(EMA, 2000, 16, p=[0.05, 0.35], s=[0.1, 0.1], n2=2, beta=0.4)
    at_20 = {"p": (0.8370703, 0.8366285), "s": (0.7203716, 0.6954045), "tau": (0.9751485, 0.9754292)}
    for name, both in at_20.items():
        yield deviation(f"mean {name} at t = 20, a moving average", found.training[name][:, -1].mean(axis=0), both, 1e-2)
        yield deviation(f"{name} there, flow", found.theory[name][0, -1], both, 1e-6)


def trained_collapse() -> Iterable[Measurement]:
    """p of three modes of four trainings from p = .6, s = .5 at t = 50, below and above the critical decay."""
    for decay, wide in ((0.2, 5e-3), (0.25, 4e-3)):
        found = beside(MODES, 5000, 4, p=[0.6] * 3, s=[0.5] * 3, decay=decay)
        yield Measurement(f"mean p at t = 50, decay {decay:g}", found.training["p"][:, -1].mean(), ENDS[decay][0], wide)
        yield deviation("p there, flow", found.theory["p"][0, -1], ENDS[decay][0], 1e-6)


def trained_direct() -> Iterable[Measurement]:
    """Two modes of eight trainings from s = .5, .001 to t = 30, without eps and with it."""
    for eps, wide in ((0.0, 2e-5), (0.1, 0.015)):
        found = beside(DIRECT, 3000, 8, s=[0.5, 0.001], n2=2, predictor="set", eps=eps)
        seen, flow = (np.square(side["w"][:, -1]).mean(axis=0) for side in (found.training, found.theory))
        yield Measurement(f"small mode, mean s at t = 30, eps = {eps:g}", seen[1], flow[1], wide)
        yield Measurement(f"large mode, eps = {eps:g}", seen[0], (HIGH / (1 + eps)) ** 2, 6e-3)
    yield Measurement("small mode, s of the flow with eps", flow[1], 0.5, 0.0, ">=")


SAMPLED = "four standard errors of the seeds, and a part of the learning rate, .01"
CLAIMS = (
    *MODE_CLAIMS,
    Claim(
        "self_supervised.trained",
        Source(PAPER, "eqs. 11 and 12", "by SGD on sampled views"),
        "the task simsiam, rate .01, batches of 64, 16 seeds, beside self_supervised.modes and modes_ema",
        "trained networks follow the modes, in the mean",
        trained,
        SAMPLED,
        models=(MODES, EMA),
        depends=("self_supervised.modes_of_matrices",),
    ),
    Claim(
        "self_supervised.trained_collapse",
        Source(PAPER, "Section 3.2", "below eq. 16, by SGD on sampled views"),
        "the task simsiam, weight decay .2 and .25, four seeds, beside self_supervised.modes",
        "trained networks collapse above eta = 1/(4 (1 + sigma2)), and not below",
        trained_collapse,
        SAMPLED,
        depends=("self_supervised.collapse",),
    ),
    Claim(
        "self_supervised.trained_direct",
        Source(PAPER, "Section 4", "by SGD on sampled views, the predictor set in each step"),
        "the task simsiam with predictor=set, eight seeds, beside self_supervised.direct_pred",
        "a network with a predictor that is set learns a small mode by eps alone",
        trained_direct,
        SAMPLED,
        depends=("self_supervised.direct_pred_modes",),
    ),
    Claim(
        "self_supervised.modes_of_matrices",
        Source(PAPER, "eqs. 11 and 12"),
        "self_supervised.simsiam from common eigenvectors in random bases, beside self_supervised.modes",
        "with common eigenvectors the modes decouple",
        modes_of_matrices,
        "100 times the relative tolerance",
    ),
    Claim(
        "self_supervised.balance",
        Source(PAPER, "Theorem 1"),
        "self_supervised.byol from random matrices, alpha = 1.7, beta = .3",
        "W W^T = W_p^T W_p / alpha + exp(-2 eta t) C, whatever W_a does",
        balance,
        "100 times the relative tolerance",
    ),
    Claim(
        "self_supervised.alignment",
        Source(PAPER, "Section 3", "Assumption 3, Theorem 3, without the symmetry that it assumes"),
        "self_supervised.simsiam from random matrices",
        "W_p becomes symmetric, and its eigenspaces align with those of F",
        alignment,
        "none: bounds",
    ),
    Claim(
        "self_supervised.stop_gradient",
        Source(PAPER, "Theorem 2"),
        "self_supervised.no_stop, scalars and matrices",
        "without the stop-gradient W -> 0, as fast as the least eigenvalue of H",
        no_stop,
        "a unit of the last digit",
    ),
)
