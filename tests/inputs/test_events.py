"""Events that people type: what an expression means, where its mistakes are, and that a stored run keeps them."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import lambertw

import odesim
from odesim.base.errors import ParamError
from odesim.inputs.events import parse_event
from odesim.inputs.expressions import Names
from tests.support.brute import value


@cache
def names_of(model: str) -> Names:
    """The names of a model."""
    return Names.of(odesim.load_model(model))


rng = np.random.default_rng(0)
v, mu, V, Delta, Z = rng.normal(size=3), rng.normal(size=3), rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), rng.normal(size=(2, 4))
psi, t = np.array([0, 1, 0]), 0.3
ENV = {"v": v, "mu": mu, "V": V, "Delta": Delta, "Z": Z, "psi": psi, "t": t, "l": 1, "k": 1, "n": 2, "m": 0, "M": 3, "K": 2, "S": 4, "Q": 2}

# the text and the same in numpy, with l = 1, k = 1, n = 2
MEANINGS = {
    "joma.nonlinear": (
        ("v[0] - 2", v[0] - 2),
        ("v[l] - mu[l]/2", v[1] - mu[1] / 2),
        ("-v[0]**2 + t", -(v[0] ** 2) + t),
        ("v[0]**-2 - 2**-1", v[0] ** -2 - 0.5),
        ("2**3**2*v[0]", 512 * v[0]),
        ("(-2)**2*v[0] - -1.5e-1", 4 * v[0] + 0.15),
        ("v[0]/2/4*3", v[0] / 2 / 4 * 3),
        ("1 - v[0] - 2 - 3", 1 - v[0] - 2 - 3),
        ("exp(v[1])*log(3 + v[1]**2)", np.exp(v[1]) * np.log(3 + v[1] ** 2)),
        ("abs(v[0]) + tanh(v[1]) - cos(t) + sqrt(M)", abs(v[0]) + np.tanh(v[1]) - np.cos(t) + 3**0.5),
        ("sum(v)", v.sum()),
        ("sum(v[l]*mu[l]) - sum(mu)**2", v @ mu - mu.sum() ** 2),
        ("max(v) - min(mu)", v.max() - mu.min()),
        ("max(v[0], v[1], .1)", max(v[0], v[1], 0.1)),
        ("min(v[l] - mu[l])", (v - mu).min()),
        ("gap[2] + sum(gap)", mu[2] - v[2] + (mu - v).sum()),
        ("erf(v[0])", math.erf(v[0])),
        ("asinh(v[0]) + acosh(2 + v[1]) - atanh(v[0]/9)", np.arcsinh(v[0]) + np.arccosh(2 + v[1]) - np.arctanh(v[0] / 9)),
        ("erfc(v[0])*sinc(v[1]) + sinc(2)", math.erfc(v[0]) * np.sinc(v[1] / np.pi) + np.sin(2) / 2),
        ("lambertw(1 + v[1]) + lambertw_lower(-.2)*v[0]", (lambertw(1 + v[1]) + lambertw(-0.2, -1) * v[0]).real),
        ("mod(v[0], .3) + mod(7, 4)", v[0] % 0.3 + 3),
        ("v[0] - pi*t", v[0] - np.pi * t),
        ("binomial(M + 1, 2)*v[0] - binomial(5, 2)", 6 * v[0] - 10),
    ),
    "joma.linear_multinode": (
        ("sum(V)", V.sum()),
        ("sum(V[l, k]**2, k) - max(Delta)", (V[1] ** 2).sum() - Delta.max()),
        ("sum(V[l, k]*V[l, 0], l)", V[:, 1] @ V[:, 0]),
        ("max(sum(abs(V[l, k]), k))", abs(V).sum(axis=1).max()),
    ),
    "scan_snap.full": (("Z[psi[n], 2]", Z[psi[2], 2]), ("sum(Z[psi[n], l], l)", Z[psi[2]].sum())),
}  # fmt: skip


@pytest.mark.parametrize(("model", "text", "meant"), [(m, *case) for m, cases in MEANINGS.items() for case in cases])
def test_an_expression_is_what_numpy_computes(model, text, meant):
    """To rounding; precedence is that of Python."""
    event = parse_event(f"x: {text}", names_of(model))
    assert value(event.expr, ENV) == pytest.approx(float(meant), rel=1e-13)


@pytest.mark.parametrize(
    ("options", "terminal", "direction"),
    [("", False, 0), ("; terminal", True, 0), (";direction  up;terminal", True, 1), ("; direction down", False, -1)],
)
def test_options(options, terminal, direction):
    event = parse_event(f" far away : v[0] - 2{options}", names_of("joma.nonlinear"))
    assert (event.name, event.terminal, event.direction) == ("far away", terminal, direction)


# the text, the number of the character, and what the sentence says
MISTAKES = (
    ("x", 2, "a colon is missing"),
    (": v[0]", 1, "the name is missing"),
    ("x:", 3, "a number, a name or a bracket is missing"),
    ("x: vv[0] - 1", 4, "no name 'vv'; choose from t, M, v, mu, entropy, gap, l; did you mean 'v'?"),
    ("x: v - 1", 4, "v is an array: write v[l]"),
    ("x: v[m]", 6, "m is no index of this axis, which has M places: write a whole number from 0 or l"),
    ("x: v[-1]", 6, "an index is missing"),
    ("x: v[0.5]", 6, "an index is missing"),
    ("x: v[0, 1]", 9, "too many indices: write v[l]"),
    ("x: v[0", 7, "']' is missing, to close the '[' at character 5"),
    ("x: mod(v[0])", 4, "mod() takes two arguments"),
    ("x: mod(v[0], v[0] - v[0])", 4, "mod() divides by 0"),
    ("x: atanh(2)*v[0]", 4, "atanh(2) is not a finite number"),
    ("x: exp(v[0], 1)", 12, "')' is missing, to close the '(' at character 7; ',' stands there"),
    ("x: (v[0]", 9, "')' is missing, to close the '(' at character 4"),
    ("x: v[0]^2", 8, "write ** for a power"),
    ("x: v[0] = 1", 9, "not an equation"),
    ("x: v[0] > 1", 9, "not a condition"),
    ("x: expp(v[0])", 4, "no function 'expp'; choose from abs, "),
    ("x: exp - v[0]", 4, "exp is a function: write exp(...)"),
    ("x: 2 v[0]", 6, "an operator is missing before 'v'"),
    ("x: v[0] * ", 10, "a number, a name or a bracket is missing"),
    ("x: v[0]/(1 - 1)", 8, "divides by 0"),
    ("x: v[0]*log(-1)", 9, "log(-1) is not a finite number"),
    ("x: v[0] + 1e999", 11, "1e999 is not a finite number"),
    ("x: v[0]**101", 8, "a power of more than 100"),
    ("x: ((2*v[0])**99)**99", 18, "a number becomes too large"),
    ("x: exp(exp(exp(9)))*v[0]", 8, "is not a finite number"),
    ("x: mu[0] - 1", 3, "nothing in this expression changes"),
    ("x: v[0] - v[0]", 3, "nothing in this expression changes"),
    ("x: l*v[0]", 4, "l is an index: it stands in [brackets] of an array"),
    ("x: M[0] + v[0]", 5, "M is a number and has no indices"),
    ("x: sum(v[0])", 4, "sum() of one number"),
    ("x: sum(v, v)", 11, "v is an array"),
    ("x: sum(v[l], 2)", 4, "sum() takes one expression and the indices to go over"),
    ("x: v[0]; termnal", 9, "choose from terminal, direction up, direction down, at start; did you mean 'terminal'?"),
    ("x: v[0]; direction", 9, "is no option of an event"),
    ("x: v[0]; y: v[1]", 9, "'y: v[1]' is a second event: give it an --event, or a text, of its own"),
    ("x: v[0]; terminal; terminal", 19, "terminal is given twice"),
    ("x: __import__('os').system('ls')", 15, "is no part of an expression"),
    ("x: v[0].real", 8, "'.' is no part of an expression"),
    ("x: v[0] if 1 else 2", 9, "an operator is missing before 'if'"),
    ("x: lambda: 1", 10, "':' is no part of an expression"),
    (f"x: {'(' * 50}v[0]{')' * 50}", 44, "nested more than 40 deep"),
    (f"x: {'-' * 900}v[0]{' ' * 200}", 1001, "1000 are the most"),
    (f"x: v[0]{'**2' * 90}", 127, "nested more than 40 deep"),
)


@pytest.mark.parametrize(("text", "character", "words"), MISTAKES, ids=[text[:30] for text, _, _ in MISTAKES])
def test_a_mistake_is_one_sentence_with_its_place(text, character, words):
    with pytest.raises(ParamError) as error:
        parse_event(text, names_of("joma.nonlinear"))
    assert f", character {character}: " in str(error.value) and words in str(error.value) and "\n" not in str(error.value)


def test_a_function_of_python_is_no_part_of_an_expression():
    with pytest.raises(ParamError, match="the observable stable_rank_V is a Python function"):
        parse_event("x: stable_rank_V - 2", names_of("joma.linear_multinode"))


def test_what_is_wrong_with_two_events():
    """Names are different; more than a hundred events are refused."""
    for texts, words in (
        (["half way: t - 1"], "has an event 'half way' already"),
        (["a: t - 1"] * 2, "'a' already"),
        (["a: t"] * 101, "most"),
        (["v: v[0] - 1"], "joma.nonlinear has something else called 'v'"),
        (["mu: v[0] - 1"], "something else called 'mu'"),
        (["far: v[99] - 1"], r"v\[99\] in the event 'far' is out of range"),
    ):
        with pytest.raises(ParamError, match=words):
            odesim.integrate("joma.nonlinear", backend="numpy", events=texts)


EVENTS = ("far: v[0] - .5; direction up", "full: sum(v) - 12; terminal", "gaps: gap[l] - 1")


def test_an_added_event_is_as_the_models_own():
    """Its zeros are zeros of the expression, to the tolerance."""
    run = odesim.integrate("joma.nonlinear", events=EVENTS, rtol=1e-9, atol=1e-12, backend="numpy")
    assert list(run.events) == ["half way", "far", "full", "gaps"] and run.status == "event"
    assert run.attrs["added_events"] == list(EVENTS) and run.attrs["event_docs"]["half way"]
    (far,) = run.events["far"]
    assert run.at(far["t"])["v"][0] == pytest.approx(0.5, abs=1e-7)  # the dense output of tolerance 1e-9
    assert run.at(run.t_end)["v"].sum() == pytest.approx(12, abs=1e-7)
    where = {e["index"][0]: e["t"] for e in run.events["gaps"]}
    assert all(run.attrs["params"]["mu"][i] - run.at(t)["v"][i] == pytest.approx(1, abs=1e-7) for i, t in where.items()) and where


def test_an_expression_may_be_infinite_at_the_start():
    """1/t = 2 at t = 1/2, to 1e-9: numbers of Python, which raise where numpy's are infinite, do not end the run."""
    run = odesim.integrate("joma.nonlinear", events="x: 1/t - 2", backend="numpy", span=(0, 1))
    assert [e["t"] for e in run.events["x"]] == [pytest.approx(0.5, abs=1e-9)]


@pytest.mark.slow
def test_a_member_has_the_events_of_a_run():
    """The same bits in strict mode."""
    how: dict[str, Any] = {"events": EVENTS, "rtol": 1e-9, "atol": 1e-12, "strict": True, "method": "tsit5"}
    batch = odesim.ensemble("joma.nonlinear", grid={"v": [0.05, 0.1]}, **how)
    alone = odesim.integrate("joma.nonlinear", initial={"v": 0.1}, **how)
    assert float(batch.far_t[1, 0]) == alone.events["far"][0]["t"] and float(batch.t_end[1]) == alone.t_end
    assert batch.attrs["added_events"] == list(EVENTS)
