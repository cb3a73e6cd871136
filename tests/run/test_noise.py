"""Laws of runs with noise: exact laws of linear equations, orders on paired paths, equal bits, and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Sum, Symbol, cos, oo, sin, symbols, tanh

import odesim
from odesim.base.errors import OdesimError, SpecError
from odesim.base.options import RunOptions
from odesim.display.text import describe
from odesim.run.noise import options_of_noise
from odesim.symbolic import IndexedBase, Param, Source, System, gradient_flow, index, over, sgd_noise, sizes
from odesim.symbolic import time as t
from tests.support.matrix import slow_but

(i, k), (M, K) = index("i k"), sizes("M K")
x, g, c, o, w, p, q, A, B = symbols("x g c o w p q A B")
v, D, G = IndexedBase("v", shape=(M,)), IndexedBase("D", shape=(M,)), IndexedBase("G", shape=(K,))
a, b = symbols("a b", real=True)
REAL = Interval(-oo, oo)
PARAMS = (Param(a, 1.5, REAL, "rate"), Param(b, 0.8, REAL, "strength"))


def system(name: str, drift: dict[Any, Any], start: dict[Any, float], noise: dict[Any, Any], **more: Any) -> System:
    return System(f"noise.{name}", Source("k", ""), {}, drift, PARAMS, start, noise=noise, **more)


r = p * q - 1
ROOT = (0.02 * (2 * r**2 + 0.25)) ** 0.5
BALANCE = {p: -q * r, q: -p * r}, {p: 1.2, q: 0.5}, {p: {A: ROOT * q}, q: {A: ROOT * p}}
"""Two weights, one channel: p^2 - q^2 decays in Ito's sense, and is constant in Stratonovich's."""
# many equations in one System: a kernel is compiled for each method, and not for each equation
ZOO = system(
    "zoo",
    {x: -(b**2) * sin(x) * cos(x) ** 3, g: a * g, c: -(c**3), o: a * (0.4 - o), w: 0, **BALANCE[0]},
    {x: 0.3, g: 1.0, c: 1.0, o: 2.0, w: 0.0, **BALANCE[1]},
    {x: {B: b * cos(x) ** 2}, g: {B: b * g}, c: {B: b}, o: {B: b}, w: {B: 1}, **BALANCE[2]},
    observables={"balance": p**2 - q**2},
)
CALM = system("calm", {c: -(c**3), o: a * (0.4 - o), w: 0}, {c: 1.0, o: 2.0, w: 0.0}, {c: {B: b}, o: {B: b}, w: {B: 1}})
"""Of the zoo, what has additive noise."""
ALONE = system("alone", {x: ZOO.equations[x], g: a * g}, {x: 0.3, g: 1.0}, {x: {B: b * cos(x) ** 2}, g: {A: b * g}})
"""Of the zoo, two states with a channel each."""
BROWNIAN = system("brownian", {w: 0, q: 0}, {w: 0.0, q: 0.0}, {w: {B: 1}, q: {A: 1}})
"""The paths of these channels."""
OU = system("ou", {o: a * (0.4 - o), w: 0}, {o: 2.0, w: 0.0}, {o: {B: b}, w: {B: 1}})
FIELD = System(
    "noise.field", Source("k", ""), {i: M, k: K}, {v[i]: -a * v[i]}, PARAMS, {v[i]: 1.0}, {M: 3, K: 2},
    noise={v[i]: {D[i]: b, G[k]: b * v[i]}},
)  # fmt: skip
LEVELS = range(2, 7)


def model_for(method: str) -> System:
    return {"sra1": CALM, "sriw1": ALONE}.get(method, ZOO)


def ends(method: str, level: int, model: System | None = None) -> Any:
    """Final states {name: (4000,)} of the zoo on paths of seed 1, with 2^level steps on [0, 1] of the one path of a step of 1."""
    model = model or model_for(method)
    data = odesim.ensemble(model, members=4000, step=2.0**-level, halvings=level, method=method, seed=1, strict=True, save=5)
    return {name: data[name].values[:, -1] for name in model.states}


def order(errors: Any) -> float:
    """The power of the step that errors at LEVELS fall with."""
    return float(-np.polyfit(list(LEVELS), np.log2(errors), 1)[0])


STRONG = {
    "em": {"x": 0.5, "c": 1.0, "o": 1.0},
    "heun": {"x": 1.0, "g": 1.0, "c": 1.0, "o": 1.0},
    "milstein": {"x": 1.0, "c": 1.0},
    "sra1": {"c": 1.5, "o": 1.5},
    "sriw1": {"x": 1.5, "g": 1.5},
}
"""{method: {state: order}}: with noise that multiplies, and additive noise."""


# the order 0.5 of em and the calculus of heun are seen in their moments below
@pytest.mark.parametrize("method", slow_but(STRONG, ["milstein", "sriw1"]))
def test_strong_order(method: str) -> None:
    """The rms error against the solution on the same path falls with the order of theory, and B(1) is one number for all steps.

    x = atan(b B + tan x0) and the geometric motion g are known; the others are held against 2^10 steps. 0.15: of 4000 paths.
    """
    runs, fine = {level: ends(method, level) for level in LEVELS}, ends("sra1", 10) if "c" in STRONG[method] else {}
    w_end, of_g = (ends("em", 6, BROWNIAN)[name] for name in "wq") if method == "sriw1" else 2 * (runs[6]["w"],)
    exact = {**fine, "x": np.arctan(0.8 * w_end + np.tan(0.3)), "g": np.exp(1.5 - 0.32 + 0.8 * of_g)}
    for state, theory in STRONG[method].items():
        errors = [np.sqrt(np.mean((runs[level][state] - exact[state]) ** 2)) for level in LEVELS]
        assert order(errors) > theory - 0.15, state
    for run in (runs[2], fine, ends(method, 0)) if fine else ():
        np.testing.assert_allclose(run["w"], w_end, atol=1e-12)  # rounding of 2^10 additions


def test_additive_noise_is_that_of_sra1() -> None:
    """Where g is constant the weights of sriw1 are those of sra1: to rounding of 16 steps of 13 stages."""
    one, other = (ends(method, 4, CALM) for method in ("sra1", "sriw1"))
    for state in CALM.states:
        np.testing.assert_allclose(one[state], other[state], atol=1e-12)


RECORDED = {
    "em": (0.0451, 0.0307, 0.0216, 0.0152, 0.0107),
    "milstein": (0.0218, 0.0106, 0.00518, 0.00257, 0.00128),
    "sriw1": (0.00916, 0.00301, 0.00106, 0.000372, 0.000132),
}
"""Errors at t = 1 of x, b = .5, on LEVELS, by another program, of 20,000 paths."""


@pytest.mark.parametrize("method", RECORDED)
def test_errors_of_another_program(method: str) -> None:
    """Root mean squares of 4,000 paths, which have heavy tails: 8 %."""
    model = replace(ALONE, params=(PARAMS[0], Param(b, 0.5, REAL, "strength")))
    exact = np.arctan(0.5 * ends("em", 6, BROWNIAN)["w"] + np.tan(0.3))
    found = [np.sqrt(np.mean((ends(method, level, model)["x"] - exact) ** 2)) for level in LEVELS]
    np.testing.assert_allclose(found, RECORDED[method], rtol=0.08)


@pytest.mark.parametrize("steps", (8, 9))
def test_moments_of_euler(steps: int) -> None:
    """Mean and variance of em are those of its own recursion, within 4 standard errors: so its weak order is exactly that, 1."""
    h, n = 1 / steps, 100_000
    data = odesim.ensemble(ZOO, members=n, step=h, seed=5, method="em", strict=True, save=5)
    ou, motion = data.o.values[:, -1], data.g.values[:, -1]
    mean, variance = 2.0, 0.0
    for _ in range(steps):
        mean, variance = mean + 1.5 * (0.4 - mean) * h, variance * (1 - 1.5 * h) ** 2 + 0.64 * h
    assert abs(ou.mean() - mean) < 4 * np.sqrt(variance / n)
    assert abs(ou.var() - variance) < 4 * variance * np.sqrt(2 / n)
    mean, second = (1 + 1.5 * h) ** steps, ((1 + 1.5 * h) ** 2 + 0.64 * h) ** steps
    assert abs(motion.mean() - mean) < 4 * np.sqrt((second - mean**2) / n)


def test_moments_of_a_linear_drift() -> None:
    """Mean, variance and covariance of the exact law, recorded: 4 standard errors of 100,000 paths, by sra1 in steps of .05, off by h^2."""
    n, times = 100_000, np.array([0.5, 1.0, 2.0])
    model = replace(OU, params=(PARAMS[0], Param(b, 0.7, REAL, "strength")))
    found = odesim.ensemble(model, members=n, step=0.05, seed=7, span=(0.0, 2.0), save=[0, *times], strict=True).o.values[:, 1:]
    means, variances = (1.1557864844, 0.7570082562, 0.4796593094), (0.1268887405, 0.1552014455, 0.1629284705)
    decay = np.exp(-1.5 * times)
    np.testing.assert_allclose(0.4 + 1.6 * decay, means, atol=6e-11)
    np.testing.assert_allclose(0.49 / 3 * (1 - decay**2), variances, atol=6e-11)
    assert np.all(np.abs(found.mean(axis=0) - means) < 4 * np.sqrt(np.array(variances) / n) + 1e-3)
    assert np.all(np.abs(found.var(axis=0) - variances) < 4 * np.array(variances) * np.sqrt(2 / n) + 1e-3)
    covariance = 0.49 / 3 * (np.exp(-0.75) - np.exp(-2.25))
    assert covariance == pytest.approx(0.0599379969, abs=6e-11)
    doubt = 4 * np.sqrt((variances[0] * variances[1] + covariance**2) / n) + 1e-3
    assert abs(np.cov(found[:, :2].T)[0, 1] - covariance) < doubt


def test_calculus() -> None:
    """The balance decays in Ito's sense by either scheme, and is constant path by path in Stratonovich's."""
    more: dict[str, Any] = {"step": 0.0025, "span": (0.0, 10.0), "members": 400, "seed": 2, "strict": True, "save": 5}
    for method in ("em", "heun", "milstein"):
        data = odesim.ensemble(ZOO, method=method, observe="balance", **more).balance.values[:, -1]
        assert data.mean() == pytest.approx(1.127, abs=0.003)  # 1.19 exp(-.02 int (2 r^2 + .25)); off by h
    plain = system("balance", *BALANCE, calculus="stratonovich")
    data = odesim.ensemble(plain, **more)
    balance = data.p.values[:, -1] ** 2 - data.q.values[:, -1] ** 2
    np.testing.assert_allclose(balance, 1.19, atol=1e-4)  # h^2


# kernels with and without halvings that laws above have too
@pytest.mark.parametrize(
    ("method", "steps", "halvings"),
    slow_but(
        [(method, *at) for method in STRONG for at in ((64, 0), (37, 0), (64, 3))],
        [("em", 64, 0), ("heun", 37, 0), ("milstein", 64, 0), ("sra1", 64, 3), ("sriw1", 64, 3)],
        several=True,
    ),
)
def test_bits(method: str, steps: int, halvings: int) -> None:
    """Strict: a run is member 0, and no bit depends on threads, on chunks or on the other members."""
    more: dict[str, Any] = {"step": 1 / steps, "halvings": halvings, "save": 5, "strict": True, "seed": 3, "method": method}
    model = model_for(method)
    many = odesim.ensemble(model, members=300, threads=2, **more)
    run = odesim.integrate(model, **more)
    few = odesim.ensemble(model, members=21, **more)
    for name in model.states:
        assert np.array_equal(many[name].values[0], run.y[name])
        assert np.array_equal(many[name].values[:21], few[name].values)
        assert len(np.unique(few[name].values[:, -1])) == 21


def test_members_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that have no lanes are the same paths; channels may be arrays, of one element or of a sum."""
    more: dict[str, Any] = {"members": 5, "step": 0.01, "strict": True, "seed": 3}
    lanes = odesim.ensemble(FIELD, **more)
    monkeypatch.setattr("odesim.run.lanes.MOST_STATES", 0)
    np.testing.assert_array_equal(odesim.ensemble(FIELD, **more).v.values, lanes.v.values)


def test_seed() -> None:
    """Another seed is another path; the same seed in another model is the same one."""
    one, other = (odesim.integrate(OU, step=0.01, seed=seed, strict=True).y["w"][-1] for seed in (1, 2**32 + 1))
    assert one != other
    np.testing.assert_allclose(odesim.integrate(ZOO, step=0.01, seed=1, method="em", strict=True).y["w"][-1], one, atol=1e-14)


def test_general_noise() -> None:
    """Channels that mix: the covariance of s B(t) is s s^T t, of a sum over an index that the state does not have."""
    s = IndexedBase("s", shape=(M, K))
    values = np.array([[1.0, 0.5], [0.0, 2.0], [-1.0, 1.0]])
    mixed = System(
        "noise.mixed", Source("k", ""), {i: M, k: K}, {v[i]: 0}, (Param(s, 0.0, REAL, "strength"),), {v[i]: 0.0}, {M: 3, K: 2},
        noise={v[i]: {G[k]: s[i, k]}},
    )  # fmt: skip
    data = odesim.ensemble(mixed, members=20_000, params={"s": values}, step=0.5, seed=4).v.values[:, 0]
    law = values @ values.T
    doubt = np.sqrt((law**2 + np.outer(np.diag(law), np.diag(law))) / len(data))
    assert np.all(np.abs(np.cov(data.T) - law) < 4 * doubt)


@pytest.mark.parametrize(("method", "square"), (("em", 1 / 2), pytest.param("heun", 1 / 4, marks=pytest.mark.slow)))
def test_channels_that_do_not_commute(method: str, square: float) -> None:
    """dx = dA, dw = x dB: strong order 1/2, with the errors of theory, and not better without the areas between A and B.

    Of a pair of steps h and h/2 on one path the mean square difference is half of that of h: T h square / 2.
    """
    model = replace(OU, equations={o: 0, w: 0}, noise={o: {A: 1}, w: {B: o}}, initial={o: 0.0, w: 0.0})
    n, steps, ends = 40_000, 0.25, []
    for level in range(1, 4):  # 0 would be a kernel of its own
        data = odesim.ensemble(model, members=n, step=steps / 2**level, halvings=level, method=method, seed=8)
        ends.append(data.w.values[:, -1])
    for level in range(1, 3):
        squares = (ends[level] - ends[level - 1]) ** 2
        assert abs(squares.mean() - steps / 2**level * square / 2) < 4 * squares.std() / n**0.5


def test_grid_with_paths_at_each_point() -> None:
    """members counts paths at each point of a grid."""
    data = odesim.ensemble(OU, grid={"b": [0.0, 1.0]}, members=3, step=0.1, save=5, strict=True)
    assert data.o.values[:3, -1].std() == 0.0 and len(np.unique(data.o.values[3:, -1])) == 3


def test_reduce() -> None:
    """Statistics without a member are those of the members, and their bits do not depend on threads."""
    more: dict[str, Any] = {"members": 9000, "step": 0.02, "save": 5, "strict": True, "seed": 6}
    every, names = odesim.ensemble(OU, **more).o.values, ("mean", "var", "quantiles")
    one, two = (odesim.ensemble(OU, reduce=names, threads=threads, **more) for threads in (1, 2))
    assert one.identical(two) and one.o_count.values.tolist() == [9000] * 5
    np.testing.assert_allclose(one.o_mean, every.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(one.o_var, every.var(axis=0, ddof=1), rtol=1e-11, atol=1e-13)
    quantiles = np.quantile(every[:, 1:], one["quantile"].values, axis=0)
    # 1e-3: numpy's go on between two of 9000 members
    assert np.all(np.abs(one.o_quantiles.values[:, 1:] - quantiles) < np.abs(quantiles - every[0, 1:]) / 64 + 1e-3)
    with pytest.raises(OdesimError, match="run an ensemble for each point"):
        odesim.ensemble(OU, reduce="mean", grid={"b": [0.0, 1.0]}, step=0.1)


def test_reduce_over_time() -> None:
    """What a member has once, of its saved times that lie anywhere on the grid; its statistics are those of the members."""
    more: dict[str, Any] = {"members": 9000, "step": 0.02, "save": [0.0, 0.1, 0.5, 0.52, 1.0], "strict": True, "seed": 6}
    data = odesim.ensemble(OU, **more)
    every, names = data.o.values, ("mean", "var", "min", "max", "histogram", "time_mean", "time_max", "time_min")
    one, two = (odesim.ensemble(OU, reduce=names, threads=threads, **more) for threads in (1, 2))
    assert one.identical(two) and one.o_time_mean_count == 9000
    for name, values in (
        ("o", every),
        ("o_time_mean", np.trapezoid(every, data.time.values, axis=1)),
        ("o_time_max", every.max(axis=1)),
        ("o_time_min", every.min(axis=1)),
    ):
        np.testing.assert_allclose(one[f"{name}_mean"], values.mean(axis=0), rtol=1e-13)
        np.testing.assert_allclose(one[f"{name}_var"], values.var(axis=0, ddof=1), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(one[f"{name}_max"], values.max(axis=0), rtol=1e-14)
        np.testing.assert_allclose(one[f"{name}_min"], values.min(axis=0), rtol=1e-14)
        last = values[:, -1] if values.ndim > 1 else values
        counts, edges = (one[f"{name}_{what}"].values for what in ("histogram", "edges"))
        counts, edges = (v[:, -1] if v.ndim > 1 else v for v in (counts, edges))
        edges[[0, -1]] += [-1e-9, 1e-9]  # means are rounded in another order
        assert np.array_equal(np.histogram(last, edges)[0], counts) and counts.sum() == 9000
    for given, sentence in (
        ({"reduce": "time_mean"}, "name a statistic of it too"),
        ({"reduce": ("mean", "time_mean"), "save": None}, "there is one: save more"),
        ({"reduce": "mode"}, "no statistic 'mode'"),
    ):
        with pytest.raises(OdesimError, match=sentence):
            odesim.ensemble(OU, **{**more, **given})


def test_not_finite() -> None:
    """A path that leaves all numbers ends with its status, at the step that failed, alone and in lanes alike."""
    more: dict[str, Any] = {"step": 0.1, "seed": 1, "strict": True, "method": "em", "initial": {"c": 30.0}, "save": 5}
    run, many = odesim.integrate(ZOO, **more), odesim.ensemble(ZOO, members=20, **more)
    assert run.status == "non_finite" and many.status_names[many.status.values[0]] == "non_finite"
    assert many.t_end.values[0] == run.t_end and many.steps.values[0] == run.stats["steps"]


def test_times_between_steps() -> None:
    """A number of times goes to steps; a listed time has to be one, in dense() too."""
    run = odesim.integrate(OU, step=0.25, save=4, strict=True)
    np.testing.assert_allclose(run.t, (0.0, 0.25, 0.75, 1.0))
    with pytest.raises(OdesimError, match=r"no end of a step of 0\.25"):
        odesim.integrate(OU, step=0.25, save=[0.3, 1.0])
    assert np.array_equal(run.dense(np.array([0.25, 0.5]))["o"][0], run.y["o"][1])


REFUSED: list[tuple[System, dict[str, Any], str]] = [
    (OU, {}, "needs a fixed step"),
    (OU, {"step": 0.1, "method": "tsit5"}, "which tsit5 does not take"),
    (OU, {"step": 0.1, "method": "rodas5p"}, "which rodas5p does not take"),
    (ZOO, {"step": 0.1, "method": "sra1"}, "sra1 is not for commuting noise"),
    (ZOO, {"step": 0.1, "method": "sriw1"}, "sriw1 is not for commuting noise"),
    (FIELD, {"step": 0.1, "method": "milstein"}, "milstein is not for general noise"),
    (OU, {"step": 0.1, "dtype": "float32"}, "is computed in float64"),
    (OU, {"step": 0.1, "events": "high: o - 3"}, "is not searched for events yet"),
    (OU, {"step": 0.1, "sensitivities": "a"}, "has no sensitivities"),
    (OU, {"step": 0.1, "stop_at": 0.5}, "has no stop_at"),
    (OU, {"step": 0.1, "halvings": 31}, "has at most 30 halvings"),
    (OU, {"step": 0.3, "halvings": 1, "save": 3}, "halvings need a span of whole steps"),
    (replace(OU, noise={}), {"method": "em", "step": 0.1}, "em is a scheme for noise"),
    (replace(OU, noise={}), {"halvings": 1, "step": 0.1}, "halvings are those"),
]


@pytest.mark.parametrize(("model", "options", "sentence"), REFUSED, ids=lambda x: str(x)[:40])
def test_refused(model: System, options: dict[str, Any], sentence: str) -> None:
    """What noise does not go with is one sentence, for a run and for an ensemble."""
    with pytest.raises(OdesimError, match=sentence):
        odesim.integrate(model, **options)
    with pytest.raises(OdesimError, match=sentence):
        odesim.ensemble(model, vary={"a": "uniform(1,2)"}, members=2, **options)


KINDS: list[tuple[dict[Any, Any], str, str, str]] = [
    ({o: {B: b}}, "additive", "sra1", "sra1"),
    ({o: {B: b * cos(t)}}, "additive in time", "em", "heun"),
    ({o: {B: b * o}}, "diagonal", "milstein", "heun"),
    ({o: {B: b * w}, w: {B: 1}}, "commuting", "milstein", "heun"),
    ({o: {B: b * w}, w: {A: 1}}, "general", "em", "heun"),
    ({o: {B: b * w}, w: {A: o}}, "general", "em", "heun"),
]


@pytest.mark.parametrize(("noise", "kind", "ito", "stratonovich"), KINDS, ids=lambda x: str(x))
def test_kinds(noise: dict[Any, Any], kind: str, ito: str, stratonovich: str) -> None:
    """The symbols decide the kind of the noise, and it decides the method of `auto`."""
    for calculus, method in (("ito", ito), ("stratonovich", stratonovich)):
        model = replace(OU, noise=noise, calculus=calculus)
        assert describe(model)["noise"] == {"calculus": calculus, "kind": kind, "step": None}
        assert options_of_noise(model, RunOptions(step=0.1)).method == method


def test_own_step() -> None:
    """A System may have a step of its own, which another one takes the place of; stored and shown it is a step like any."""
    own = replace(OU, step=0.1)
    assert describe(own)["noise"]["step"] == 0.1
    cases: tuple[tuple[dict[str, Any], int], ...] = (({}, 10), ({"step": 0.05}, 20))
    for given, steps in cases:
        run = odesim.integrate(own, strict=True, **given)  # as in test_seed: kernels are compiled once
        assert run.stats["steps"] == steps and run.attrs["step"] == 1 / steps
        assert odesim.ensemble(own, members=2, strict=True, **given).steps.values.tolist() == [steps, steps]


def test_declarations() -> None:
    """A wrong declaration is one sentence."""
    steps: tuple[tuple[Any, str], ...] = (
        (0, "step must be a number above 0"),
        (oo, "step must be a number above 0"),
        ("1", "must be a number"),
    )
    for step, sentence in steps:
        with pytest.raises(SpecError, match=sentence):
            replace(OU, step=step)
    with pytest.raises(SpecError, match="step is that of runs with noise"):
        replace(OU, noise={}, step=0.1)
    for noise, sentence in (
        ({o: b}, "must be a dict of channels"),
        ({o: {b: 1}}, "b is a parameter already"),
        ({o: {B: Symbol("q")}}, "no symbol 'q'"),
        ({Symbol("u"): {B: 1}}, "write a state as in its equation"),
        ({o: {D[i]: 1}}, "has the index i"),
    ):
        with pytest.raises(SpecError, match=sentence):
            replace(OU, noise=noise)
    with pytest.raises(SpecError, match="calculus must be one of"):
        replace(OU, calculus="backward")
    with pytest.raises(SpecError, match="no symbol 'B'"):
        replace(OU, equations={o: -o * B, w: 0})


L, (n, h, d) = IndexedBase, index("n h d")
N_, H, D_ = sizes("N H D")
X, Y = L("X", shape=(N_, D_)), L("Y", shape=(N_,))
W1, W2 = L("W1", shape=(H, D_)), L("W2", shape=(H,))
SAMPLE_LOSS = (over(Sum, W2[h] * tanh(over(Sum, W1[h, d] * X[n, d], (d, D_))), (h, H)) - Y[n]) ** 2 / 2
RATES = {W1[i, k]: a, W2[i]: 2 * a}


def of_batches(**how: Any) -> System:
    """Two layers by mini-batches of four, with rates of their own."""
    mean = over(Sum, SAMPLE_LOSS, (n, N_)) / N_
    return System(
        "noise.batches", Source("k", ""), {i: H, k: D_, n: N_}, gradient_flow(mean, RATES),
        (*PARAMS, Param(X, 0.0, REAL, "inputs"), Param(Y, 0.0, REAL, "labels")), {W1[i, k]: 0.0, W2[i]: 0.0}, {H: 2, D_: 3, N_: 7},
        noise=sgd_noise(SAMPLE_LOSS, RATES, (n, N_), step=b, batch=4, **how),
    )  # fmt: skip


@pytest.mark.parametrize("diagonal", (False, pytest.param(True, marks=pytest.mark.slow)))
def test_noise_of_mini_batches(diagonal: bool) -> None:
    """A step of em as long as the learning rate has the mean and covariance of a step of SGD, of batches drawn in numpy."""
    rng, runs = np.random.default_rng(3), 40_000
    x, y = rng.normal(size=(7, 3)), rng.normal(size=7)
    w1, w2 = rng.normal(size=(2, 3)), rng.normal(size=2)
    hidden = np.tanh(x @ w1.T)
    off = hidden @ w2 - y
    g1 = off[:, None, None] * (w2 * (1 - hidden**2))[:, :, None] * x[:, None]
    slopes = np.concatenate([1.5 * g1.reshape(7, -1), 3.0 * off[:, None] * hidden], axis=1)
    batches = -0.2 * slopes[rng.integers(0, 7, (runs, 4))].mean(axis=1)
    data = odesim.ensemble(
        of_batches(diagonal=diagonal), members=runs, params={"X": x, "Y": y, "b": 0.2}, initial={"W1": w1, "W2": w2}, span=(0.0, 0.2),
        step=0.2, seed=4,
    )  # fmt: skip
    moved = np.concatenate([data.W1.values.reshape(runs, -1) - w1.ravel(), data.W2.values.reshape(runs, -1) - w2], axis=1)
    want, found = np.cov(batches.T), np.cov(moved.T)
    variances = np.diag(want)
    np.testing.assert_array_less(np.abs(moved.mean(axis=0) - batches.mean(axis=0)), 4 * np.sqrt(2 * variances / runs))
    want = np.diag(variances) if diagonal else want
    # two samples each, whose products have a deviation of at most sqrt(3) of that of a normal: batches are no normals
    assert np.all(np.abs(found - want) < 4 * np.sqrt(4 * (want**2 + np.outer(variances, variances)) / runs))


def test_declarations_of_mini_batches() -> None:
    """A wrong call is one sentence."""
    wrong: tuple[tuple[Any, ...], ...] = (
        (SAMPLE_LOSS, {}, (n, N_), "takes the loss and"),
        (SAMPLE_LOSS, RATES, n, "sample is"),
        (W2[h] * 0 + over(Sum, W2[h] ** 2, (h, H)), {W2[i]: 1}, (n, N_), "does not depend on n"),
        (SAMPLE_LOSS, RATES, (k, N_), "free index n"),
    )
    for loss, rates, sample, sentence in wrong:
        with pytest.raises(SpecError, match=sentence):
            sgd_noise(loss, rates, sample, step=b)
