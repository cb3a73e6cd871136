"""Formulas in which a part overflows unseen: no run, member or observable has a wrong number with status ok."""

from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import odesim
from odesim.base.errors import ParamError
from odesim.symbolic import IndexedBase, Param, System, index, sizes
from tests.support.matrix import slow_but
from tests.support.systems import REAL, SOURCE

c, u, w, y = sp.symbols("c u w y", real=True)
FORMS: dict[str, Any] = {  # whose value at large numbers is one, though a part of it may have none
    "unit": u / sp.sqrt(1 + u**2),
    "hill": u**2 / (1 + u**2),
    "root of a root": sp.sqrt(u**2 + sp.sqrt(1 + u**4)) / sp.Abs(u),
    "logistic": 1 / (1 + sp.exp(-u)),
    "lorentz": 1 / (1 + u**2),
    "gauss": u * sp.exp(-(u**2)),
    "arc": sp.atan(u**2),
    "direction": u / sp.sqrt(u**2 + w**2),
}
TINY = 1.2e-162
"""The parameter w: its square, as that of u where this is as small, has no digits."""
SPAN, TIMES = 200.0, (0.0, 100.0, 200.0)
STARTS = {  # (u at the start, c): u = u0 exp(c t), to at most 1e260
    "float64": ((3.0, 0.0), (1e10, 0.0), (1e200, 0.0), (-1e200, 0.0), (TINY, 0.0), (1e10, 0.5), (1e150, 1.0), (1e200, -1.0)),
    "float32": ((3.0, 0.0), (1e25, 0.0), (-1e25, 0.0), (1e-25, 0.0), (1e8, 0.2), (1e3, 0.01)),
}


@cache
def growing(form: str) -> System:
    """u' = c u, y' = f(u), and the observable f(u)."""
    params = (Param(c, 0.0, REAL, ""),) + ((Param(w, TINY, REAL, ""),) if FORMS[form].has(w) else ())
    equations = {u: c * u, y: FORMS[form]}
    return System("test.growing", SOURCE, {}, equations, params, {u: 1.0, y: 0}, span=(0.0, SPAN), observables={"f": FORMS[form]})


def right(form: str, start: float, rate: float, t: float) -> tuple[float, float]:
    """y and f at a time, in numbers whose exponents have no end."""
    f = sp.lambdify(u, FORMS[form].subs(w, sp.Float(TINY, 30)), "mpmath")
    with mpmath.workdps(30):
        now = f(start * mpmath.exp(rate * t))
        whole = (
            f(mpmath.mpf(start)) * t if not rate else mpmath.quad(lambda s: f(start * mpmath.exp(rate * s)), np.linspace(0, t, 41).tolist())
        )
        return float(whole), float(now)


def check(form: str, start: float, rate: float, status: str, t_end: float, ys: Any, fs: Any) -> None:
    """Every number up to t_end is right, and the end is reached where the status is ok."""
    assert status in ("ok", "non_finite", "step_too_small", "max_steps"), (form, start, rate, status)
    assert (status == "ok") == (t_end == SPAN)
    for t, value, f in zip(TIMES, ys, fs, strict=True):
        truth = right(form, start, rate, t)
        if t <= t_end:  # y to the tolerance of the run, in units of what f may add up to
            assert value == pytest.approx(truth[0], rel=1e-4, abs=1e-3), (form, start, rate, t)
            assert not np.isfinite(f) or f == pytest.approx(truth[1], rel=2e-3, abs=1e-12), (form, start, rate, t)
        else:
            assert np.isnan(value) and np.isnan(f)


@pytest.mark.filterwarnings("ignore::odesim.base.errors.ToleranceWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("form", slow_but(FORMS, ("unit", "root of a root", "logistic")))
def test_runs(form: str, dtype: str) -> None:
    """From any start, to wherever it grows, a run is right up to its end, or refused at its start, which names the number."""
    for start, rate in STARTS[dtype]:
        options: dict[str, Any] = {"save": np.array(TIMES), "backend": "numpy", "dtype": dtype, "method": "tsit5", "max_steps": 1500}
        try:
            run = odesim.integrate(growing(form), params={"c": rate}, initial={"u": start}, **options)
        except ParamError as refused:
            assert "overflows in the right-hand side of y: at t = 0 it is" in str(refused) and rate <= 0
            continue
        values = ({t: v for t, v in zip(run.t, rows, strict=True)} for rows in (run.y["y"], run.observables["f"]))
        check(form, start, rate, run.status, run.t_end, *([float(each.get(t, np.nan)) for t in TIMES] for each in values))


@pytest.mark.parametrize("method", slow_but(("tsit5", "rodas5p"), ("tsit5",)))
@pytest.mark.parametrize("form", slow_but(FORMS, ("unit",)))
def test_members(form: str, method: str) -> None:
    """So is every member, which is never refused: it ends at the last saved time that is right, and others go on."""
    starts = np.array(STARTS["float64"])
    data = odesim.ensemble(growing(form), vary={"u": starts[:, 0], "c": starts[:, 1]}, save=np.array(TIMES), observe="f", method=method)
    names = data.attrs["status_names"]
    for i, (start, rate) in enumerate(STARTS["float64"]):
        check(form, start, rate, names[int(data.status[i])], float(data.t_end[i]), data["y"].values[i], data["f"].values[i])
    assert names[int(data.status[0])] == names[int(data.status[1])] == "ok"


def test_all_digits_may_cancel() -> None:
    """x' = c + w - x with c and w near 1e100 comes to rest: there its rate is rounding alone, another in any numbers, and no overflow."""
    x = sp.Symbol("x", real=True)
    large = 1e100 / 3, 1e100 / 7
    rest = System("test.rest", SOURCE, {}, {x: c + w - x}, (Param(c, large[0], REAL, ""), Param(w, large[1], REAL, "")), {x: 0})
    run = odesim.integrate(rest, span=(0.0, 800.0), save=9, method="rodas5p", backend="numpy", rtol=1e-10)
    assert run.status == "ok" and run.final["x"] == pytest.approx(sum(large), rel=1e-9)


def test_places_in_arrays_stay_whole() -> None:
    """z' = -z + 1e100 q[psi[n]] with psi = (1, 0, 1): large numbers beside an array of places end at 1e100 q[psi]."""
    (n, k), (N, K) = index("n k"), sizes("N K")
    z, q = IndexedBase("z", shape=(N,)), IndexedBase("q", shape=(K,))
    psi = IndexedBase("psi", shape=(N,), integer=True)
    params = (Param(psi, lambda _: [1, 0, 1], sp.Naturals0, "", indexes=K), Param(q, 1e100, REAL, ""))
    gathered = System("test.gathered", SOURCE, {n: N, k: K}, {z[n]: q[psi[n]] - z[n]}, params, {z[n]: 0}, sizes={N: 3, K: 2})
    run = odesim.integrate(gathered, params={"q": [1e100, 2e100]}, span=(0.0, 40.0), method="tsit5", backend="numpy")
    assert run.status == "ok" and run.final["z"] == pytest.approx([2e100, 1e100, 2e100], rel=1e-6)


@pytest.mark.parametrize(("size", "span"), [(1e-220, 1e120), (1e-300, 1e10)])
def test_slopes_below_the_least_number(size: float, span: float) -> None:
    """x' = -x / span: the slope of x = size is 0 in float64, and x would stay where it is; in other units it is refused no more."""
    x, k = sp.symbols("x k")
    model = System(name="test.slow", equations={x: -k * x}, params=(Param(k, 1.0),), initial={x: 1.0})
    with pytest.raises(ParamError, match=r"slopes below 2.2e-308.*give other units"):
        odesim.integrate(model, params={"k": 1 / span}, initial={"x": size}, span=(0.0, span))
    run = odesim.integrate(model, initial={"x": size}, span=(0.0, 1.0), atol=1e-3 * size)
    assert run.y["x"][-1] == pytest.approx(np.exp(-1.0) * size, rel=1e-5)
