"""What people read says what is computed, without the shifts that cancel."""

import html
import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp

from odesim.display.document import html_page, latex_document
from odesim.display.formulas import Formulas, definitions_text, equations_text, latex, readable, text_of
from odesim.display.naming import BINDING, Display, Entropy, LogSumExp, SoftmaxAt
from odesim.display.page import page_of
from odesim.display.text import derived_text, describe
from odesim.symbolic import (
    Event,
    IndexedBase,
    MaxOver,
    Param,
    Source,
    System,
    entropy,
    gradient_flow,
    index,
    logsumexp,
    over,
    shifted_exp,
    sizes,
    softmax,
)
from odesim.symbolic.indices import base_name
from odesim.symbolic.layered import InverseOf
from odesim.symbolic.reductions import unevaluated
from tests.support.balls import BALLS
from tests.support.brute import value
from tests.support.models import CHEAPEST_FIRST, Shipped
from tests.support.systems import SYSTEMS

EACH = pytest.mark.parametrize("system", SYSTEMS.values(), ids=lambda s: s.name)


@EACH
def test_no_shift_is_shown(system):
    assert (r"\max" in latex(system)) == (system.name == "largest" or "Max(" in equations_text(system)) and "Shift" not in equations_text(
        system
    )
    assert latex(system).count("{") == latex(system).count("}")


def test_a_softmax_reads_as_one():
    assert equations_text(SYSTEMS["softmax"]) == "dv[m]/dt = (mu[m] - v[m])*softmax_m(v[m]^2/T)"


def test_a_maximum_that_counts_is_shown():
    """Only the shifts of softmax and logsumexp are left out."""
    (m, k), (M,) = index("m k"), sizes("M")
    w = IndexedBase("w", shape=(M,))
    assert text_of(over(MaxOver, w[k], (k, M)) - w[m]) == "max_k(w[k]) - w[m]"
    assert text_of(logsumexp(w[k], (k, M))) == "log(sum_k(exp(w[k])))"


def test_no_name_is_two_indices_at_once():
    (k,), (M,) = index("k"), sizes("M")
    w = IndexedBase("w", shape=(M,))
    inner = over(sp.Sum, w[k], (k, M))
    assert text_of(over(sp.Sum, w[k] * inner, (k, M))) == "sum_k(w[k]*sum_k'(w[k']))"
    assert text_of(w[k] * inner) == "w[k]*sum_k'(w[k'])" and text_of(inner**2) == "sum_k(w[k])^2"


def test_powers_of_sums_have_brackets():
    """The power belongs to the sum, not to its last factor."""
    (k,), (M,) = index("k"), sizes("M")
    w = IndexedBase("w", shape=(M,))
    assert Formulas(SYSTEMS["mean_field"]).latex(over(sp.Sum, w[k], (k, M)) ** 2).endswith(r"\right)^{2}")


def test_powers_of_softmax():
    """That of an entry of a softmax stands behind its bracket."""
    (k,), (M,) = index("k"), sizes("M")
    w = IndexedBase("w", shape=(M,))
    squares = Formulas(SYSTEMS["mean_field"]).latex(over(sp.Sum, softmax(w[k], (k, M)) ** 2, (k, M)))
    assert squares.endswith(r"\operatorname{softmax}_{k}\left({w}_{k}\right)^{2}")


MODELS = Shipped()


def spelled(e, axes):
    """e with softmax, logsumexp and entropy written out, innermost first."""
    if isinstance(e, BINDING):
        inner = {**axes, **{k: high - low + 1 for k, low, high in e.limits}}
        whole = unevaluated(type(e), spelled(e.function, inner), e.limits)
        return whole.written() if isinstance(whole, LogSumExp | Entropy) else whole
    if not e.args or isinstance(e, sp.Indexed):
        return e
    parts = e.func(*(spelled(a, axes) for a in e.args))
    return parts.written(axes[parts.args[2]]) if isinstance(parts, SoftmaxAt) else parts


SIGNED = ("hierarchy.multilayer", "joma.cluster", "joma.joint_exp", "reversal.full")


def test_minus_signs_stand_before_sums():
    """`-sum(-f) - sum(g)` reads as `sum(f) - sum(g)`, also in the models whose gradients have signs within sums."""
    (m, k), (M,) = index("m k"), sizes("M")
    v, w = IndexedBase("v", shape=(M,)), IndexedBase("w", shape=(M,))
    e = -over(sp.Sum, -w[k] * v[k], (k, M)) - over(sp.Sum, w[k] * over(sp.Sum, -2 * v[m], (m, M)), (k, M))
    assert text_of(e) == "sum_k(v[k]*w[k]) + sum_k(w[k]*sum_m(2*v[m]))"
    assert text_of(over(sp.Sum, v[k] - w[k], (k, M))) == "sum_k(v[k] - w[k])"
    shown = {name: equations_text(system) + "".join(definitions_text(system)) for name, system in ((name, MODELS[name]) for name in SIGNED)}
    assert not [name for name, text in shown.items() if re.search(r"sum_[\w',]+\(-", text)]


DEEP = ("induction.full", "joma.joint_softmax", "scan_snap.full", "scan_snap.full_decorrelated")
"""Softmax in softmax: every sum is computed anew for each term of the one around it."""


@pytest.mark.first(3)
@pytest.mark.parametrize(
    "name", [name for name in (*CHEAPEST_FIRST, *SYSTEMS) if name != "masked"]
)  # whose formula overflows as it is shown
def test_what_is_shown_has_the_value_of_the_formula(name):
    """Definitions in their order, then equations and laws in their terms, give what the expressions of the System give: to rounding.

    Each name that the System asks for stands in one of them.
    """
    system = SYSTEMS.get(name) or MODELS[name]
    sizes = {n: {"M": 4, "Q": 2, "L": 5}.get(n, 2 if name in DEEP else 3) for n in system.size_names}
    rng = np.random.default_rng(0)
    env: dict[str, Any] = {**sizes, "t": 0.3}
    for p in system.params:
        shape = tuple(int(value(sp.sympify(n), sizes)) for n in p.shape)
        env[p.name] = (
            np.arange(np.prod(shape)).reshape(shape) % 2
            if p.indexes is not None
            else int(rng.integers(2, 9))
            if p.integer and not shape
            else rng.uniform(0.3, 0.9, shape)
            if shape or p.domain.contains(2.5) == sp.false
            else rng.uniform(1.5, 2.5)
        )
    for n, shape in system.shapes.items():
        env[n] = rng.uniform(0.05, 0.4, tuple(int(value(sp.sympify(x), sizes)) for x in shape)) if shape else rng.uniform(0.05, 0.4)
    display = Display(system)
    for key, e in display.definitions().items():
        indices = key.indices if isinstance(key, sp.Indexed) else ()
        shape = tuple(int(value(sp.sympify(system.axes[i]), sizes)) for i in indices)
        made: Any = np.empty(shape)
        for at in np.ndindex(*shape):
            entry = e.args[0] if isinstance(e, InverseOf) else e
            made[at] = value(spelled(entry, system.axes), {**env, **{i.name: n for i, n in zip(indices, at, strict=True)}})
        made = np.linalg.inv(made) if isinstance(e, InverseOf) else made
        env[str(key.base.label) if indices else key.name] = made if indices else float(made)
    first = {**env, **{i.name: 1 for i in system.axes}}
    observables = [e for e in system.observables.values() if isinstance(e, sp.Expr)]
    formulas = [*system.equations.values(), *observables, *(v.expr for v in system.events), *(v.expr for v in system.invariants)]
    parts = [*display.definitions().values(), *map(display.shown, formulas)]
    assert set(system.display) <= {base_name(x) for e in parts for x in e.atoms(sp.Indexed, sp.Symbol)}
    distinct = system.observables.get("entropy_distinct")  # shown as 0/0 where no class has a token of its own, as here
    for e in (e for e in formulas if e is not distinct):
        for shown in (display.shown(e), readable(display.shown(e))):
            found = value(spelled(shown, system.axes), first)
            assert found == pytest.approx(value(e, first), rel=1e-10, abs=1e-14)  # random matrices are inverted


# gradients of a quotient, of two layers, of a norm
GRADIENTS = {
    "joma.joint_softmax": 260,
    "hierarchy.multilayer": 140,
    "hierarchy.covariance": 210,
    "joma.cluster": 170,
    "partitions.embeddings": 175,
    "classics.committee": 200,
    "ngrams.linear": 230,
    "topics.tied": 160,
    "self_supervised.no_stop": 180,
    "modular.energy": 250,
}


@pytest.mark.first(11)
@pytest.mark.parametrize("name", CHEAPEST_FIRST)
def test_no_temporaries_are_shown_of_a_model(name):
    """Names in equations are those of the paper; temporaries stand in the program, which has them all."""
    text = equations_text(MODELS[name])
    assert not re.search(r"\br\d+\b", text) and len(text.splitlines()) == len(MODELS[name].equations)
    assert max(map(len, text.splitlines())) < GRADIENTS.get(name, 120)
    program = "\n".join(derived_text(MODELS[name]))
    word = "next" if MODELS[name].discrete else "d"
    assert all(f"{word}_{state}" in program for state in MODELS[name].states)


(l, k), (L,) = index("l k"), sizes("L")
x, w = IndexedBase("x", shape=(L,)), IndexedBase("w", shape=(L,))
shares = shifted_exp(x[l], (l, L), weight=w[l])
total = over(sp.Sum, shares, (l, L))
READ = (
    (softmax(x[l], (l, L)), "softmax_l(x[l])"),
    (softmax(x[l], (l, L), weight=w[l]), "softmax_l(x[l], weight=w[l])"),
    (logsumexp(x[k], (k, L), weight=w[k]) - x[l], "logsumexp_k(x[k], weight=w[k]) - x[l]"),
    (entropy(softmax(x[l] / 2, (l, L)), (l, L)), "entropy_l(softmax_l(x[l]/2))"),
    (over(sp.Sum, x[k] * softmax(x[k], (k, L)), (k, L)), "sum_k(x[k]*softmax_k(x[k]))"),
    (1 / softmax(x[l], (l, L)), "exp(-x[l])*sum_l'(exp(x[l']))"),
    (sp.exp(x[l]) / over(sp.Sum, w[k] * sp.exp(x[k]), (k, L)), "exp(x[l])/sum_k(w[k]*exp(x[k]))"),
    (sp.exp(x[0]) / over(sp.Sum, sp.exp(x[k]), (k, L)), "exp(x[0])/sum_k(exp(x[k]))"),
    (softmax(x[l], (l, L)) ** 2, "softmax_l(x[l])^2"),
    (shares / (total + 1 - sp.sign(total)), "softmax_l(x[l], weight=w[l])"),
    (entropy(shares / (total + 1 - sp.sign(total)), (l, L)), "entropy_l(softmax_l(x[l], weight=w[l]))"),
    (1 / (1 + x[l] - sp.sign(x[k])), "1/(1 + x[l] - sign(x[k]))"),
)


@pytest.mark.parametrize(("e", "words"), READ, ids=[words for _, words in READ])
def test_named_forms_are_recognised(e, words):
    """A softmax is one only where numerator and sum agree; what is no softmax stays a quotient."""
    system = System(
        name="a.b",
        source=Source("key", "eq. 1"),
        axes={l: L},
        equations={x[l]: -x[l]},
        params=(Param(w, 1.0, sp.Interval.open(0, sp.oo), ""),),
        initial={x[l]: 0},
    )
    assert Formulas(system).text(e) == words


def test_shared_sums_of_a_long_equation_get_names():
    """A System without names of its own: a sum that stands twice in a long right-hand side is named, below the equations."""
    total = over(sp.Sum, w[k] * x[k] ** 2, (k, L))
    rate = sum(((x[l] + n) * total**n / (n + w[l]) for n in range(1, 9)), sp.Integer(0))
    system = System(
        name="a.b",
        source=Source("key", "eq. 1"),
        axes={l: L},
        equations={x[l]: rate},
        params=(Param(w, 1.0, sp.Interval(-sp.oo, sp.oo), ""),),
        initial={x[l]: 0},
    )
    assert definitions_text(system) == "s1 = sum_k(w[k]*x[k]^2)" and equations_text(system).count("s1") == 8


def quartic(n: int, *, named: bool = True, **options: Any) -> System:
    """The gradient flow of the mean of n powers of differences."""
    rate = sp.Symbol("eta", nonnegative=True)
    loss = sum((over(sp.Sum, (x[l] - w[l] / m) ** (m + 2), (l, L)) / L for m in range(1, n + 1)), sp.S.Zero)
    return System(
        name="a.b",
        source=Source("key", "eq. 1"),
        axes={l: L},
        equations=gradient_flow(loss, {x[l]: rate}, **options),
        params=(Param(w, 1.0, sp.Interval(-sp.oo, sp.oo), ""), Param(rate, 1.0, sp.Interval(0, sp.oo), "")),
        initial={x[l]: 0.1},
        observables={"loss": loss} if named else {},
    )


def test_the_range_of_an_index_stays_with_its_equation() -> None:
    """On a page and in a notebook it is part of the formula, which is the same in both."""
    system = MODELS["scan_snap.reduced"]
    page, notebook = html_page(system), system._repr_markdown_()
    formulas = [html.unescape(text) for text in re.findall(r"\\\[(.*?)\\\]", page)]
    assert formulas == re.findall(r"\$\$\n(.*?)\n\$\$", notebook)
    assert sum(r"\qquad" in text for text in formulas) >= len(system.equations)


def test_a_long_gradient_is_shown_as_one() -> None:
    """Where the loss has a name and the rate is the plain one; a short gradient, one in a metric, or of no named loss is written out."""
    words = "dx[l]/dt = -eta*dloss/dx[l]"
    long = quartic(12)
    assert equations_text(long) == words and definitions_text(long) == ""
    assert equations_text(pickle.loads(pickle.dumps(long))) == words
    assert r"\frac{\partial \mathrm{loss}}{\partial {x}_{l}}" in latex(long) and r"\frac{\partial" in html_page(long)
    changed = gradient_flow(long.observables["loss"], {x[l]: 1})
    changed[x[l]] -= x[l]
    others = (
        replace(long, equations=changed),
        quartic(1),
        quartic(12, named=False),
        quartic(12, metric={x[l]: "sphere"}),
        replace(long, equations=dict(long.equations)),
    )
    for system in (*others, replace(long, observables={"loss": 2 * long.observables["loss"]})):
        assert "dloss" not in equations_text(system) and "x[l]" in equations_text(system).partition("=")[2]


def test_description_is_plain_data():
    import json

    got = json.loads(json.dumps(describe(SYSTEMS["gathered"])))
    assert [p["name"] for p in got["parameters"]] == ["X", "b", "psi"]
    assert got["parameters"][2]["domain"] == "whole numbers from 0"
    assert [s["shape"] for s in got["states"]] == [["Q", "M"], ["K"]]


def test_text_of_a_relation():
    m = sp.Symbol("m", integer=True)
    assert text_of(sp.Piecewise((1, sp.Eq(m, 0)), (sp.Symbol("x") ** 2, True))) == "(1 if m = 0, else x^2)"


def test_resets_are_shown() -> None:
    """What an event sets stands in the description, and as a formula on the page."""
    assert describe(BALLS)["events"][0]["resets"] == {"v[i]": "-c*v[i]", "n": "n + 1"}
    rows = page_of(BALLS).sections["Events"]
    assert [row.formula.relation for row in rows if row.formula] == ["=", "<-", "<-"] and "states are set" in rows[0].words
    assert r"{v}_{i} \leftarrow - c \, {v}_{i}" in latex_document(BALLS) and r"\leftarrow" in html_page(BALLS)


def test_an_event_has_the_names_of_observables() -> None:
    """Also up to terms that do not move; and logarithms of sums that have none stay what they are."""
    (m, k), (M,) = index("m k"), sizes("M")
    w = IndexedBase("w", shape=(M,))
    free, twice = logsumexp(w[k], (k, M)), sp.Piecewise((2, k < 1), (1, True))
    risk = free + over(sp.Sum, w[m] ** 2, (m, M)) + sp.Rational(3, 2)
    watched = {"low": 2 * free - 1, "level": 2 * risk - 1, "half": free - w[m], "other": logsumexp(w[k], (k, M), weight=twice) - 1}
    system = System(
        name="test.watched",
        source=Source("none", "made for this test"),
        axes={m: M},
        equations={w[m]: -w[m]},
        params=(),
        initial={w[m]: 1},
        span=(0.0, 1.0),
        observables={"free": free, "risk": risk},
        events=tuple(Event(name, e) for name, e in watched.items()),
    )
    shown = {event["name"]: event["expression"] for event in describe(system)["events"]}
    assert shown == {
        "low": "2*free - 1",
        "level": "2*risk - 1",
        "half": "free - w[m]",
        "other": "logsumexp_k(w[k], weight=(2 if k < 1, else 1)) - 1",
    }
    assert "free" in html_page(system)
