"""A System as a document of JSON: what is read is what was written, its numbers are right, and a hostile document is refused."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import Rational, Symbol

import odesim
from odesim.base.errors import ModelError, OdesimError, ParamError
from odesim.exchange.systems import FIELDS, PARTS, VIEWS, system_from_json, system_to_json
from odesim.exchange.trees import LAYERS, Reader, Writer, domain_from_json, domain_to_json
from odesim.inputs.bind import bind
from odesim.inputs.registry import list_models, load_model
from odesim.symbolic import MaxOver, System, index, inverse, named, over, sizes, softmax, time
from odesim.symbolic.indices import IndexedBase
from tests.support.models import CHEAPEST_FIRST


def through_text(document: Any) -> Any:
    return json.loads(json.dumps(document, allow_nan=False))


@pytest.mark.first(12)
@pytest.mark.parametrize("name", CHEAPEST_FIRST)
def test_a_system_comes_back(name):
    """Every field that is symbols is the same, and all its default numbers are; what it is written as again is the same text."""
    system = load_model(name)
    numbers = bind(system)
    document = through_text(system_to_json(system, numbers.params))
    again = system_from_json(document)
    for field in fields(System):
        old, new = getattr(system, field.name), getattr(again, field.name)
        if field.name == "observables":
            old = {key: e for key, e in old.items() if isinstance(e, sp.Basic)}
        if field.name == "params":
            keys = ("symbol", "domain", "doc", "indexes", "cover")
            assert [[getattr(p, key) for key in keys] for p in old] == [[getattr(p, key) for key in keys] for p in new]
        elif field.name != "closed_forms":
            assert old == new and (not isinstance(old, dict) or list(old) == list(new)), field.name
    numbers_again = bind(again)
    assert numbers_again.sizes == numbers.sizes
    for old_values, new_values in ((numbers.params, numbers_again.params), (numbers.initial, numbers_again.initial)):
        for key, value in old_values.items():
            np.testing.assert_array_equal(new_values[key], value)
            assert np.asarray(new_values[key]).dtype == np.asarray(value).dtype
    assert through_text(system_to_json(again, numbers_again.params)) == {**document, "functions": []}


VALUES: dict[str, Any] = {"Add": lambda *a: sum(a), "Mul": lambda *a: np.prod(a), "Pow": lambda a, b: a**b, "exp": np.exp}


def value_of(e: Any, names: dict[str, Any]) -> float:
    """A document's expression by a reader of ten lines, which knows nothing of odesim: see docs/howto/export.md."""
    if isinstance(e, int | float):
        return e
    if isinstance(e, str):
        return names[e]
    word, *parts = e
    if word == "Rational":
        return parts[0] / parts[1]
    if word == "Element":
        return names[parts[0]][tuple(int(value_of(i, names)) for i in parts[1:])]
    if word == "Sum":
        body, (k, low, high) = parts
        return sum(value_of(body, {**names, k: j}) for j in range(int(value_of(low, names)), int(value_of(high, names)) + 1))
    return VALUES[word](*(value_of(part, names) for part in parts))


@pytest.mark.parametrize("name", ["joma.nonlinear", "joma.linear", "classics.deep_linear_modes"])
def test_a_strangers_reader_finds_the_checked_rates(name):
    """The rates under `check` are what a small reader of our own text computes. 1e-12: sums in another order."""
    document = through_text(odesim.to_json(name))
    check = document["check"]
    names = {**check["sizes"], "t": check["t"], **{k: np.array(v) for k, v in {**check["parameters"], **check["state"]}.items()}}
    for equation in document["equations"]:
        _, state, *places = equation["state"]
        rates = np.array(check["rates"][state])
        for at in np.ndindex(rates.shape):
            here = {**names, **dict(zip(places, at, strict=True))}
            assert value_of(equation["rate"], here) == pytest.approx(rates[at], rel=1e-12, abs=1e-14)


NOT_FOR_DEFAULTS = {
    "in_context.merged": "equal variances", "joma.cluster": "sigma is so small", "joma.linear_bterm": "b is uniform",
    "margin.next_token": "labels equally often", "optimisers.adam": "H = 0", "optimisers.adam_steps": "H = 0",
    "reversal.bilinear": "E E^T = 1", "scaling.diagonal": "G diagonal", "scaling.mirror": "G diagonal", "scaling.multi_index": "k = 2",
    "scan_snap.full": "no token is of two classes", "scan_snap.full_decorrelated": "eta_Z = 0", "scan_snap.symmetric": "pc = 0",
    "self_supervised.direct_pred": "eps = 0", "skills.mixture": "eta = 0",
}  # fmt: skip
"""{model: what its explicit closed form needs that its defaults are not}: it has no numbers in the document."""
WITHOUT_RATES = {"noise.area"}  # both of its equations are 0 beside the noise


@pytest.mark.parametrize("name", ["noise.double_well", "in_context.markov", "hopfield.dense"])
def test_a_check_is_off_rest(name):
    """Of runs that rest in the middle: the well of x - x**3 is left, others are checked at their start, or beside it."""
    check = through_text(odesim.to_json(name))["check"]
    if name == "noise.double_well":
        x = check["state"]["x"]
        assert x != 1 and check["rates"]["x"] == pytest.approx(x - x**3, rel=1e-12) and abs(check["rates"]["x"]) > 0.01
        return
    model = load_model(name)
    assert check["t"] == model.span[0]
    assert any(np.abs(np.array(check["rates"][k]) - model.discrete * np.array(y)).max() > 1e-3 for k, y in check["state"].items())


@pytest.mark.first(4)
@pytest.mark.parametrize("name", CHEAPEST_FIRST)
def test_a_document_runs_to_its_closed_forms(name, tmp_path):
    """What was read from the file ends where its run and its closed forms are. 1e-4: closed forms may be off by 1e-5, chaos takes more."""
    document = through_text(odesim.to_json(name))
    check = document["check"]
    scale = max(np.abs(np.array(values, float)).max() for values in check["state"].values())
    moves = (np.array(check["rates"][k], float) - (document["discrete"] * np.array(v, float)) for k, v in check["state"].items())
    # 1e-6: above rounding, so that a reader whose rates are all 0, or whose Map stays where it is, is seen
    assert max(np.abs(move).max() for move in moves) > 1e-6 * scale or name in WITHOUT_RATES
    (tmp_path / "system.json").write_text(json.dumps(document))
    if document["run"] is None:
        assert load_model(name).noise
        return
    for form in document["closed_forms"]:
        assert (form["states"] is None) == (form["kind"] == "implicit" or NOT_FOR_DEFAULTS.get(name, "?") in form["where"]), form["name"]
    times = document["run"]["t"]
    tolerances = {} if document["discrete"] else {"rtol": 1e-8, "atol": 1e-11}
    run = odesim.integrate(tmp_path / "system.json", save=times, backend="numpy", **tolerances)  # type: ignore[arg-type]
    for states in (document["run"]["states"], *(form["states"] for form in document["closed_forms"] if form["states"])):
        for state, rows in states.items():
            want = np.array(rows, float)
            np.testing.assert_allclose(run.y[state], want, rtol=1e-4, atol=1e-4 * (1 + np.abs(want).max()), err_msg=state)


def test_the_page_names_every_field():
    """And no table of fields lacks one that is written: documents of all models are read, and other fields refused."""
    page = (Path(__file__).parents[2] / "docs/howto/export.md").read_text()
    document = odesim.to_json("joma.linear")
    written = {*FIELDS, *(name for names in PARTS.values() for name in names), *document, *document["check"], *document["run"]}
    domains = ["Reals", "Integers", "Naturals", "Naturals0", "Interval", "Range", "FiniteSet", "Union"]
    words = ["state", "rate", "next", "value", "channel", "factor", "where", "kind", "states", *VIEWS, *LAYERS]
    assert [name for name in (*written, *words) if f"`{name}`" not in page] == []
    assert [word for word in domains if f'["{word}"' not in page] == []


def test_most_closed_forms_have_numbers():
    """A closed form of the first models, whose defaults they hold for, is in the document; one that is a relation is not."""
    forms = {name: odesim.to_json(name)["closed_forms"] for name in ("joma.linear", "joma.nonlinear")}
    assert forms["joma.linear"][0]["kind"] == "explicit" and forms["joma.linear"][0]["states"]["v"]
    assert forms["joma.nonlinear"][0]["kind"] == "implicit" and forms["joma.nonlinear"][0]["states"] is None


(i, j, k), (N, M) = index("i j k"), sizes("N M")
x, A = IndexedBase("x", shape=(N,)), IndexedBase("A", shape=(N, N), real=True)
a = Symbol("a", positive=True)
h = named("h", over(sp.Sum, A[i, k] * x[k], (k, N)), (i, N))
EXPRESSIONS = {
    "numbers": Rational(2, 3) * a + 0.1 * time - sp.pi,
    "nested sums": over(sp.Sum, A[i, k] * over(sp.Sum, A[k, j] * x[j], (j, N)), (k, N)),
    "partial sums": over(sp.Sum, x[k], (k, i + 1)) - over(MaxOver, x[k], (k, N)),
    "softmax": softmax(x[i], (i, N)),
    "two layers of one name": inverse(A[i, j], (i, N), (j, N))[0, 1] + inverse(A[i, j] + a, (i, N), (j, N))[1, 0],
    "a layer": h[i] + h[0],
    "a choice between conditions": sp.Piecewise((a, sp.ITE(a > 1, x[i] > 0, x[i] < 2)), (x[i], True)),
    "choices": sp.Piecewise((sp.Max(a, x[i]), (a > 1) & (x[i] <= 2)), (sp.sign(x[i]), sp.Ne(a, x[i])), (0, True)),
    "functions": sp.LambertW(a) + sp.jn(1, a) + sp.KroneckerDelta(i, 0) + sp.atan2(x[i], a) + sp.floor(a) + sp.Mod(a, 2),
}


@pytest.mark.parametrize("what", EXPRESSIONS)
def test_an_expression_comes_back(what):
    write = Writer()
    e = sp.sympify(EXPRESSIONS[what])
    text = through_text(write(e))
    assert Reader(write.symbols, through_text(write.arrays))(text) == e


DOMAINS = [
    sp.Interval(0, 1),
    sp.Interval.open(-sp.oo, 3),
    sp.S.Naturals0,
    sp.Range(1, sp.oo),
    sp.Range(0, 7),
    sp.FiniteSet(1, Rational(1, 2)),
]
DOMAINS += [sp.Union(sp.Interval(0, 1), sp.Interval(2, 3)), sp.S.Integers]


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_a_domain_comes_back(domain):
    assert domain_from_json(through_text(domain_to_json(domain))) == domain


def toy(**changes: Any) -> dict[str, Any]:
    """The document of dx/dt = -a*x, changed."""
    document: dict[str, Any] = {
        "format": "odesim.system", "version": 1, "name": "toy", "source": {"key": "k", "where": "w"}, "span": [0, 1],
        "discrete": False, "symbols": {"x": {"real": True}, "a": {"positive": True}}, "arrays": {}, "axes": {},
        "parameters": [{"symbol": "a", "default": 1.0, "domain": ["Interval", 0, ["Infinity"], True, True], "doc": "rate"}],
        "equations": [{"state": "x", "rate": ["Mul", -1, "a", "x"]}], "initial": [{"state": "x", "value": 1}],
    }  # fmt: skip
    return {**document, **changes}


def test_the_smallest_document():
    """exp(-1); 1e-6: 100 times the tolerance."""
    run = odesim.integrate(odesim.from_json(toy()), rtol=1e-8, atol=1e-10, backend="numpy")
    assert run.y["x"][-1] == pytest.approx(np.exp(-1), abs=1e-6)
    assert odesim.from_json(json.dumps(toy())).equations == odesim.from_json(toy()).equations


@pytest.mark.parametrize("name", toy())
def test_a_field_that_must_be_there(name):
    """The page lists what a document cannot lack, and toy() has nothing else."""
    says = {"equations": "equation", "initial": "initial value for x"}.get(name, name)
    with pytest.raises(OdesimError, match=says):
        odesim.from_json({key: value for key, value in toy().items() if key != name})


def parameter(**changes: Any) -> dict[str, Any]:
    return toy(parameters=[{"symbol": "a", "default": 1, "domain": ["Reals"], **changes}])


def rate(e: Any) -> dict[str, Any]:
    return toy(equations=[{"state": "x", "rate": e}])


def nested(word: str, levels: int, e: Any) -> Any:
    """[word, [word, ... e]]."""
    for _ in range(levels):
        e = [word, e]
    return e


HOSTILE: dict[str, tuple[Any, str]] = {
    "no object": ([], "is an object {...}, not []"),
    "another format": (toy(format="sbml"), "is no System"),
    "a later version": (toy(version=2), "version 2"),
    "an unknown function": (rate(["system", "x"]), "'system'"),
    "a near miss": (rate(["Exp", "x"]), "did you mean 'exp'?"),
    "an attribute": (rate(["Function", "x"]), "'Function'"),
    "code as a symbol": (toy(symbols={"__import__('os')": {}}), "must be a name"),
    "code as a name": (rate("__import__('os').system('id')"), "no symbol"),
    "an assumption that is none": (toy(symbols={"x": {"evil": True}, "a": {}}), "x cannot be 'evil'"),
    "a huge power": (rate(["Pow", 10, 10**12]), "too large"),
    "a tower of powers": (rate(["Pow", 10, ["Pow", 10, 9]]), "too large"),
    "a tower of functions": (rate(nested("exp", 6, 1)), "exp is beyond the numbers of float64"),
    "a tower of sinh": (rate(nested("sinh", 30, 1)), "sinh is beyond the numbers of float64"),
    "many functions of numbers": (rate(nested("sin", 100, 1)), "more than 20 levels of functions of numbers"),
    "a huge number": (rate(["Add", "x", 10**400]), "beyond the numbers of float64"),
    "a tiny ratio": (rate(["Rational", 1, 10**400]), "beyond the numbers of float64"),
    "a power of powers": (rate(["Pow", ["Pow", 10, 300], 9000]), "Pow is beyond the numbers of float64"),
    "a power of a product": (rate(["Pow", ["Mul", 2, "x"], 10**12]), "is too large"),
    "a smaller power of a product": (rate(["Pow", ["Mul", 2, "x"], 9000]), "beyond the numbers of float64"),
    "many terms": (rate(["Add", *(["Rational", 1, n] for n in range(1, 20_000))]), "Add of 19999 numbers has too many digits"),
    "many factors": (rate(["Mul", *[10**300] * 20_000]), "Mul of 20000 numbers has too many digits"),
    "a factorial": (rate(["binomial", 10**8, 10**7]), "binomial of 100000000 and 10000000 is too large"),
    "a huge order": (rate(["jn", 9999, 10_000]), "jn of 9999 and 10000 is too large"),
    "a ratio over 0": (rate(["Rational", 1, 0]), "two whole numbers, and q is not 0"),
    "a constant of something": (rate(["Pi", 3]), "Pi is a constant, and stands alone"),
    "an element of nothing": (rate(["Element"]), "begins with the key of an array"),
    "no arguments": (rate(["exp"]), "exp stands without arguments"),
    "half a span": (toy(span=[1]), "span of a document is [start, end]"),
    "an unknown field": (toy(hello=1), "no field 'hello' in the document"),
    "a misspelt field of a pair": (toy(initial=[{"state": "x", "vale": 1}]), "no field 'vale' in initial; choose from state, value"),
    "a misspelt field of a parameter": (parameter(dok="rate"), "no field 'dok' in parameters"),
    "a wrong number of arguments": (rate(["exp", "x", "x"]), "exp does not take"),
    "no expression": (rate(None), "an expression is"),
    "a truth": (rate(True), "which it cannot be"),
    "a truth inside": (rate(["exp", True]), "an expression is"),
    "assumptions against each other": (toy(symbols={"x": {"positive": True, "negative": True}, "a": {}}), "x cannot be positive, negative"),
    "infinity": (rate(float("inf")), "finite"),
    "deep nesting": (rate(nested("exp", 100_000, "x")), "nested too deeply"),
    "an array of itself": (
        toy(arrays={"h": {"name": "h", "shape": [2], "kind": "layer", "along": [], "definition": ["Element", "h", 0]}}) | {
            "equations": [{"state": "x", "rate": ["Element", "h", 0]}]
        },
        "defined by itself",
    ),
    "a missing array": (rate(["Element", "W", 0]), "no array 'W'"),
    "a sum over a free index": (rate(["Sum", "x", ["a", 0, 3]]), "a name and a level"),
    "a missing field": ({key: value for key, value in toy().items() if key != "parameters"}, "lacks 'parameters'"),
    "text for a number": (parameter(default="1"), "'default'"),
    "a ragged default": (parameter(default=[[1], [1, 2]]), "no array of numbers"),
    "a domain that is none": (parameter(domain=["Cantor"]), "a domain is"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_document_is_refused_in_a_sentence(what):
    document, says = HOSTILE[what]
    with pytest.raises(OdesimError, match=re.escape(says)) as error:
        odesim.from_json(document) if isinstance(document, dict) else system_from_json(document)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("text", "says"),
    {
        "[]": "an object {...}, not []", "1": "an object {...}, not 1", "null": "an object {...}, not None",
        "none.json": "no model file", '{"a":': "no JSON", "[" * 10_000: "nested too deeply",
    }.items(),
)  # fmt: skip
def test_a_text_that_is_no_document(text, says):
    with pytest.raises(ModelError, match=re.escape(says)):
        odesim.from_json(text)


def test_numbers_that_floats_have_are_read():
    """The largest and smallest powers of 2, a ratio, a function of functions: 1e-12 of what math says."""
    read = Reader({}, {})
    for text, value in (
        (["Pow", 2, 1023], 2.0**1023), (["Pow", 2, -1074], 2.0**-1074), (["exp", ["exp", ["exp", 1]]], np.exp(np.exp(np.exp(1)))),
        (["Pow", ["Rational", 2, 3], 500], (2 / 3) ** 500), (["Mul", -1, ["Infinity"]], -np.inf),
    ):  # fmt: skip
        assert float(read(text)) == pytest.approx(value, rel=1e-12)


def test_other_sizes_ask_for_values():
    """A default that is a table fits its own sizes; with another size the sentence names what is missing, and with values it runs."""
    again = odesim.from_json(odesim.to_json("joma.nonlinear"))
    with pytest.raises(ParamError, match=r"the default of mu is a table of shape \(10,\), not \(3,\): give mu its values"):
        odesim.integrate(again, sizes={"M": 3})
    assert odesim.integrate(again, params={"mu": [1.0, 2.0, 3.0]}, backend="numpy").y["v"].shape[1] == 3


def test_two_symbols_of_one_name_are_refused():
    write = Writer()
    with pytest.raises(ModelError, match="two symbols are called a"):
        write(Symbol("a") + Symbol("a", positive=True))


def test_every_model_is_listed():
    assert set(CHEAPEST_FIRST) == set(list_models())
