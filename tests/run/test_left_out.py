"""Entries of weight 0 do not count in softmax and logsumexp, whatever is there: in every engine, to the last bit."""

from typing import Any

import numpy as np
import pytest
from sympy import Interval, Max, Piecewise, Sum, oo

import odesim
from odesim.symbolic import IndexedBase, Param, Source, System, index, logsumexp, over, sensitivities, sizes, softmax
from odesim.targets.compiled import compile_system

(m, k), (M,) = index("m k"), sizes("M")
x, c, w = IndexedBase("x", shape=(M,)), IndexedBase("c", shape=(M,)), IndexedBase("w", shape=(M,))
WEIGHTS = {
    "a mask": Piecewise((1, m < 3), (0, True)),
    "a mask with weights": Piecewise((w[m], m < 3), (0, True)),
    "weights": w[m],
    "weights of a state": w[m] * (1 + x[m] ** 2),
    "negative weights": -w[m],
    "the positive part": Max(w[m] * x[m], 0),
}


def system(weight: Any) -> System:
    """x' pulled by a weighted mean and a weighted logsumexp over logits x + c."""
    mean = over(Sum, softmax(x[m] + c[m], (m, M), weight=weight) * x[m], (m, M))
    top = logsumexp(x[m] + c[m], (m, M), weight=weight**2)
    real = Interval(-oo, oo)
    return System(
        name="test.left_out", source=Source("none", "made for the tests"), axes={m: M},
        equations={x[m]: mean - x[m] + top * softmax(x[m] + c[m], (m, M), weight=weight) / (2 + m)},
        params=tuple(Param(p, 1.0, real, "") for p in (c, w) if p == c or system_reads(weight)), initial={x[m]: 0.5 + m},
        sizes={M: 5}, span=(0.0, 2.0), observables={"mean": mean, "top": top},
    )  # fmt: skip


def system_reads(weight: Any) -> bool:
    return bool(weight.has(w))


# what stands where the weight is 0: as large, and much larger and smaller than what counts
OUT = (0.5, 742.0, 1e4, 1.7e308, -1e4, -1.7e308)
ENGINES: dict[str, dict[str, Any]] = {
    "numpy": {"backend": "numpy", "method": "tsit5"},
    "numba": {"method": "tsit5"},
    "strict": {"method": "dop853", "strict": True},
    "fixed steps": {"method": "rk4", "step": 0.1},
    "stiff": {"method": "rodas5p"},
    "lanes": {"method": "tsit5", "lanes": True},
    "stiff lanes": {"method": "rodas5p", "lanes": True},
    "fixed lanes": {"method": "euler", "step": 0.1, "lanes": True},
    "float32": {"method": "tsit5", "dtype": "float32", "rtol": 1e-4},
    "float32 in lanes": {"method": "tsit5", "dtype": "float32", "rtol": 1e-4, "lanes": True},
}


def ends(s: System, how: dict[str, Any]) -> np.ndarray:
    """For every entry of OUT what counts of x (3,), and the observables, at the end."""
    most = 3e38 if how.get("dtype") == "float32" else 1.8e308
    c = np.array([[0.3, -0.2, 0.1, *[np.clip(out, -most, most)] * 2] for out in OUT])
    asked, lanes = {name: value for name, value in how.items() if name != "lanes"}, "lanes" in how
    given = {"w": np.array([0.5, 1.0, 2.0, 0.0, 0.0])} if len(s.params) > 1 else {}
    if lanes:
        found = odesim.ensemble(s, params={"c": c, **given}, observe=["mean", "top"], save=2, **asked)
        assert all(found.attrs["status_names"][i] == "ok" for i in found.status.values)
        return np.column_stack([found["x"].values[:, -1, :3], found["mean"].values[:, -1], found["top"].values[:, -1]])
    runs = [odesim.integrate(s, params={"c": row, **given}, save=2, **asked) for row in c]
    assert all(run.status == "ok" for run in runs)
    return np.array([[*run.y["x"][-1][:3], run.observables["mean"][-1], run.observables["top"][-1]] for run in runs])


QUICK = {("a mask", engine) for engine in ("numba", "fixed lanes")} | {("weights of a state", engine) for engine in ("numpy", "stiff")}
PAIRS = [
    pytest.param(weight, engine, marks=() if (weight, engine) in QUICK else pytest.mark.slow)
    for weight in ("a mask", "weights of a state", "the positive part")
    for engine in ENGINES
]


@pytest.mark.first(1)
@pytest.mark.parametrize(("weight", "engine"), PAIRS)
def test_what_is_left_out_does_not_matter(weight, engine):
    """The same bits whatever it is."""
    found = ends(system(WEIGHTS[weight]), ENGINES[engine])
    np.testing.assert_array_equal(found[1:], found[:1].repeat(len(OUT) - 1, axis=0))


def brute(weight: str) -> tuple[float, float]:
    """(mean, top) of what counts, by numpy."""
    at, logit, w0 = np.array([0.5, 1.5, 2.5]), np.array([0.8, 1.3, 2.6]), np.array([0.5, 1.0, 2.0])
    weights = {"a mask": 0 * w0 + 1, "weights of a state": w0 * (1 + at**2), "negative weights": -w0, "the positive part": w0 * at}
    chosen = weights.get(weight, w0)
    share = chosen * np.exp(logit)
    return (share * at).sum() / share.sum(), np.log((chosen**2 * np.exp(logit)).sum())


@pytest.mark.first(8)
@pytest.mark.parametrize("out", [*OUT, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_value_is_that_of_the_rest(weight, out):
    """Right-hand side's parts against numpy on three entries: 10 roundings. Here the rest may also be infinite or not a number."""
    s = system(WEIGHTS[weight])
    rhs = compile_system(s, backend="numpy")
    values: dict[str, Any] = {
        "x": 0.5 + np.arange(5.0),
        "c": np.array([0.3, -0.2, 0.1, out, out]),
        "w": np.array([0.5, 1.0, 2.0, 0.0, 0.0]),
        "t": 0.0,
    }
    rate = rhs.arrays({"M": 5}, {name: values[name] for name in ("x", "t", *(p.name for p in s.params))})["d_x"]
    mean, top = brute(weight)
    np.testing.assert_allclose(rate[3:], mean - values["x"][3:], rtol=1e-14)
    share = (rate[:3] - mean + values["x"][:3]) * (2 + np.arange(3)) / top
    assert share.sum() == pytest.approx(1, rel=1e-14)


EXACT: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-14, "method": "dop853"}
STEPS: dict[str, Any] = {"method": "rk4", "step": 0.1, "backend": "numpy"}  # differentiating commutes with fixed steps


@pytest.mark.parametrize(
    ("weight", "how"),
    [
        pytest.param("weights", STEPS, id="weights, fixed steps"),
        *(pytest.param(w, EXACT, id=w, marks=pytest.mark.slow) for w in ("weights", "a mask with weights", "the positive part")),
    ],
)
def test_sensitivities_are_limits_of_differences(weight, how):
    """To c and w, those of what is left out too: where the weight is 0 its slope is exp(logit), not 0.

    Differences at 1e-5 are wrong by 1e-10 third slopes, of some 1e3 here.
    """
    s = sensitivities(system(WEIGHTS[weight]), "c", "w")
    at = {"c": np.array([0.3, -0.2, 0.1, 3.0, -2.0]), "w": np.array([0.5, 1.0, 2.0, 0.0, 0.0])}
    run: dict[str, Any] = {"save": 2, **how}
    found = odesim.integrate(s, params=at, **run)
    for name in ("c", "w"):
        got = found.y[f"dx_d{name}"][-1]
        for n in range(5):
            if weight == "the positive part" and name == "w" and n > 2:
                continue  # a kink
            pair = [
                odesim.integrate(system(WEIGHTS[weight]), params={**at, name: at[name] + e * np.eye(5)[n]}, **run) for e in (1e-5, -1e-5)
            ]
            quotient = (pair[0].y["x"][-1] - pair[1].y["x"][-1]) / 2e-5
            np.testing.assert_allclose(got[:, n], quotient, rtol=0, atol=1e-7 * np.abs(quotient).max())
