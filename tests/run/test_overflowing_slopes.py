"""Stiff methods on functions that stand still where a part of them overflows: their slope is 0 there, not 0 times infinity."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import special
from scipy.integrate import quad, solve_ivp
from scipy.special import expit
from sympy import Expr, Max, Min, Symbol, cosh, erf, exp, sinh, tanh

import odesim
from odesim.base.arrays import Array
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.symbolic import IndexedBase, Param, System, index, sizes, time
from tests.support.systems import REAL, SOURCE

(m,), (M,) = index("m"), sizes("M")
y = Symbol("y", real=True)
STARTS = np.concatenate([np.linspace(-1000, 1000, 29), [-709.9, -709.5, -355.1, 709.5, 710.2]])
FORMS: dict[str, tuple[Callable[[Any], Expr], Callable[[Array], Array]]] = {
    "sech": (lambda x: 1 / cosh(x) ** 2, lambda x: 4 * expit(2 * x) * expit(-2 * x)),
    "logistic": (lambda x: 1 / (1 + exp(-x)), expit),
    "steep": (lambda x: 3 / (1 + exp(-5 * x)) ** 2, lambda x: 3 * expit(5 * x) ** 2),
    "gumbel": (lambda x: exp(-exp(-x)), lambda x: np.exp(-np.exp(np.minimum(-x, 700)))),
    "tanh_sinh": (lambda x: tanh(sinh(x)), lambda x: np.tanh(np.sinh(np.clip(x, -700, 700)))),
    "erf_exp": (lambda x: erf(exp(x)), lambda x: special.erf(np.exp(np.minimum(x, 700)))),
    "clipped": (
        lambda x: Max(Min(exp(x), 2), 1 / (1 + exp(3 * x))),
        lambda x: np.maximum(np.exp(np.minimum(x, np.log(2))), expit(-3 * x)),
    ),
}
"""{name: (the function as a model writes it, the same without overflow)}."""
METHODS = pytest.mark.parametrize("method", sorted([*ROSENBROCK, "auto"], reverse=True))


@cache
def truth() -> dict[str, Array]:
    """{form: u (M,) at t = 8} of u' = f(u) - u by scipy."""

    def final(f: Callable[[Array], Array]) -> Array:
        return solve_ivp(lambda _, y: f(y) - y, (0, 8), STARTS, "DOP853", rtol=1e-11, atol=1e-11).y[:, -1]

    return {form: final(f) for form, (_, f) in FORMS.items()}


@pytest.mark.first(1)
@METHODS
def test_saturated_right_sides(method):
    """u' = f(u) - u from far out, through where parts of f overflow: as one system and as members, to 1000 tolerances."""
    states = {form: IndexedBase(form, shape=(M,)) for form in FORMS}
    equations = {x[m]: FORMS[form][0](x[m]) - x[m] for form, x in states.items()}
    system = System(name="far", source=SOURCE, axes={m: M}, equations=equations, params=(), initial=dict.fromkeys(equations, 0.0))
    options = {"method": method, "span": (0, 8), "rtol": 1e-8, "atol": 1e-8, "save": 2}
    run = odesim.integrate(system, initial=dict.fromkeys(FORMS, STARTS), **options)
    members = odesim.ensemble(system, initial=dict.fromkeys(FORMS, STARTS[:, None]), **options)
    assert run.status == "ok" and (members.status == 0).all()
    for form, want in truth().items():
        np.testing.assert_allclose(run.y[form][-1], want, atol=1e-5, err_msg=form)
        np.testing.assert_allclose(members[form].values[:, -1, 0], want, atol=1e-5, err_msg=form)


@METHODS
def test_saturated_in_time(method):
    """y' = 1/(1 + exp(1/(t - c))) - y/10, which jumps from 1 to 0 at c: to 1000 tolerances of the closed form by quadrature."""
    c = Symbol("c", real=True)
    system = System(
        name="tooth", source=SOURCE, axes={}, equations={y: 1 / (1 + exp(1 / (time - c))) - y / 10},
        params=(Param(c, 1.0, REAL, "place of the jump"),), initial={y: 0.0},
    )  # fmt: skip
    options = {"method": method, "span": (0, 3), "rtol": 1e-8, "atol": 1e-8, "save": 2}
    places = np.linspace(0.3, 2.7, 9)
    for k, place in enumerate(places):
        want = quad(lambda s, place=place: expit(-1 / (s - place)) * np.exp((s - 3) / 10), 0, 3, points=[place], epsabs=1e-12, limit=400)[0]
        run = odesim.integrate(system, params={"c": place}, **options)
        assert run.status == "ok" and run.y["y"][-1] == pytest.approx(want, abs=1e-5), k
