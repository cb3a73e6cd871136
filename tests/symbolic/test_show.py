"""What people read says what is computed, without the shifts that cancel."""

import numpy as np
import pytest
import sympy as sp

from odesim.symbolic import IndexedBase, MaxOver, index, logsumexp, over, sizes
from odesim.symbolic.show import LONG, describe, domain_text, equations_text, latex, named_sums, text_of
from tests.support.brute import value
from tests.support.systems import SYSTEMS, numbers

EACH = pytest.mark.parametrize("system", SYSTEMS.values(), ids=lambda s: s.name)


@EACH
def test_no_shift_is_shown(system):
    assert ("max" in latex(system)) == (system.name == "largest" or "Max(" in equations_text(system)) and "Shift" not in equations_text(
        system
    )
    assert latex(system).count("{") == latex(system).count("}")


def test_a_softmax_reads_as_one():
    assert equations_text(SYSTEMS["softmax"]) == "dv[m]/dt = (mu[m] - v[m])*exp(v[m]^2/T)/sum_m'(exp(v[m']^2/T))"


def test_a_maximum_that_counts_is_shown():
    """Only the shifts of softmax and logsumexp are left out."""
    (m, k), (M,) = index("m k"), sizes("M")
    w = IndexedBase("w", shape=(M,))
    assert text_of(over(MaxOver, w[k], (k, M)) - w[m]) == "-w[m] + max_k(w[k])"
    assert text_of(logsumexp(w[k], (k, M))) == "log(sum_k(exp(w[k])))"


def test_no_name_is_two_indices_at_once():
    (k,), (M,) = index("k"), sizes("M")
    w = IndexedBase("w", shape=(M,))
    inner = over(sp.Sum, w[k], (k, M))
    assert text_of(over(sp.Sum, w[k] * inner, (k, M))) == "sum_k(w[k]*sum_k'(w[k']))"
    assert text_of(w[k] * inner) == "w[k]*sum_k'(w[k'])" and text_of(inner**2) == "sum_k(w[k])^2"


def test_powers_of_sums_have_brackets():
    """The power belongs to the sum, not to its last factor."""
    assert r"\right)^{2}" in latex(SYSTEMS["mean_field"])


@pytest.mark.parametrize("name", sorted(SYSTEMS.keys() - {"masked"}))  # whose formula overflows as it is shown
def test_named_sums_have_the_value_of_the_equation(name):
    """Definitions put back in order give the right-hand side: the list below a long equation is complete and right."""
    system = SYSTEMS[name]
    x = numbers(system)
    rates, where = named_sums(system)
    assert (not where) == all(sp.count_ops(e) <= LONG for e in rates.values())
    env = dict(x.env)
    for target, e in where.items():
        indices = target.indices if isinstance(target, sp.Indexed) else ()
        shape = tuple(int(value(n, env)) for n in (target.base.shape if indices else ()))
        made = np.empty(shape)
        for at in np.ndindex(*shape):
            made[at] = value(e, {**env, **{i.name: n for i, n in zip(indices, at, strict=True)}})
        env[str(target.base.label) if indices else target.name] = made if indices else float(made)
    for key, e in rates.items():
        indices = key.indices if isinstance(key, sp.Indexed) else ()
        first = {**env, **{i.name: 0 for i in indices}}
        assert value(e, first) == pytest.approx(value(system.equations[key], first), rel=1e-12)


def test_description_is_plain_data():
    import json

    got = json.loads(json.dumps(describe(SYSTEMS["gathered"])))
    assert [p["name"] for p in got["parameters"]] == ["X", "b", "psi"]
    assert got["parameters"][2]["domain"] == "whole numbers from 0"
    assert [s["shape"] for s in got["states"]] == [["Q", "M"], ["K"]]


@pytest.mark.parametrize(
    ("domain", "words"),
    [(sp.Interval(0, 1), "[0, 1]"), (sp.Interval.open(0, sp.oo), "(0, inf)"), (sp.Interval(-sp.oo, sp.oo), "(-inf, inf)")],
)
def test_domains_in_words(domain, words):
    assert domain_text(domain) == words


def test_text_of_a_relation():
    m = sp.Symbol("m", integer=True)
    assert text_of(sp.Piecewise((1, sp.Eq(m, 0)), (sp.Symbol("x") ** 2, True))) == "(1 if m = 0, else x^2)"
