"""A wrong type or value of any argument of the public functions is one sentence of our own, never an exception of Python's or numpy's."""

import decimal
import fractions
import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import IndexedBase, Symbol

import odesim
from odesim.base.errors import OdesimError, ParamError, SolveError, SpecError
from odesim.symbolic import (
    ClosedForm,
    Constraint,
    Event,
    Invariant,
    Param,
    Source,
    System,
    index,
    logsumexp,
    over,
    sensitivities,
    sizes,
    softmax,
)  # fmt: skip
from tests.support.systems import REAL, SOURCE

(m,), (M,) = index("m"), sizes("M")
w, s = IndexedBase("w", shape=(M,)), IndexedBase("s", shape=(M,))
x, a = Symbol("x", real=True), Symbol("a", real=True)
PARTS: dict[str, Any] = {
    "name": "test.arguments", "source": SOURCE, "axes": {m: M}, "equations": {w[m]: -s[m] * w[m], x: -a * x},
    "params": (Param(a, 1.0, REAL, "a rate"), Param(s, 1.0, REAL, "rates")), "initial": {x: 1.0, w[m]: 1.0}, "sizes": {M: 2},
    "observables": {"square": x**2},
}  # fmt: skip
SYSTEM = System(**PARTS)
RUN: dict[str, Any] = {"method": "euler", "step": 0.5, "save": 2}


class Odd:
    """Nothing that anybody asks for."""

    def __repr__(self) -> str:
        return "<Odd>"


class Silent:
    """Not even a text."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def wrong() -> Iterator[Any]:
    """Values of all kinds, each of which is wrong for most arguments."""
    nothing: list[Any] = [None, [], {}, (), "", b"x", Odd(), Silent(), int, np.float32, np.dtype("float32"), lambda: 0]
    numbers: list[Any] = [float("nan"), float("inf"), 2.5, -1, 0, 3, 10**400, 1j, True, decimal.Decimal("0.5"), fractions.Fraction(1, 2)]
    texts: list[Any] = ["no", "q" * 5000, "a\0b", "\udce4", Path("none")]
    numpy: list[Any] = [np.float32(2), np.int64(3), np.float64("nan"), np.True_, np.array(3), np.array([0.0, 1.0]), np.array(["a", "b"]),
                        np.array(None), np.array([Odd()])]  # fmt: skip
    lists: list[Any] = [[1, 2], ["a"], [None], (0, 1), (1, 0), (0, None), ("a", "b"), (0, 1, 2), {1}, range(3), (i for i in range(3))]
    dicts: list[Any] = [{"a": 1}, {"a": None}, {"a": "x"}, {1: 2}, {None: 1}, {"a": [{}]}, {"none": 1}, {"a": Odd()}, {"a": float("nan")},
                        {"s": [[1]]}, {"s": "@none.csv"}, {"a": 1j}, {"a": True}, {"a": lambda: 1}, {"a": Symbol("q")}, {"a": b"1"},
                        {"a": {1}}, {"M": "2"}, {"M": 2.5}, {M: 2}]  # fmt: skip
    yield from [*nothing, *numbers, *texts, *numpy, *lists, *dicts, sp.Integer(1), Symbol("q")]


def laid_out(call: Callable[[Any], Any]) -> list[str]:
    """What the call raised for each wrong value that is no sentence of ours."""
    bad = []
    for value in wrong():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                call(value)
        except OdesimError as error:
            told = str(error)
            if "\n" in told or len(told) > 600 or not told:
                bad.append(f"{type(value).__name__}: {told[:700]!r}")
        except Exception as error:
            bad.append(f"{type(value).__name__}: {type(error).__name__}: {error}"[:300])
    return bad


def keywords(call: Callable[..., Any], *left_out: str) -> list[str]:
    """Names of the keyword arguments, but for callbacks, whose own exceptions are theirs."""
    kinds = inspect.signature(call).parameters.values()
    return [p.name for p in kinds if p.kind is p.KEYWORD_ONLY and p.name not in (*left_out, "progress")]


@pytest.mark.parametrize("name", keywords(odesim.integrate))
def test_integrate(name):
    run = {"backend": "numpy", **RUN}
    assert laid_out(lambda value: odesim.integrate(SYSTEM, **{**run, name: value})) == []


@pytest.mark.parametrize(("name", "error"), [("method", SolveError), ("rtol", SolveError), ("sizes", ParamError), ("seed", ParamError)])
def test_a_wrong_type_is_an_error_of_its_layer(name, error):
    """How steps are taken is of the solver, all else of the numbers."""
    with pytest.raises(OdesimError) as refused:
        odesim.integrate(SYSTEM, **{**RUN, name: Odd()})
    assert refused.type is error


@pytest.mark.parametrize("name", keywords(odesim.ensemble, "out"))
def test_ensemble(name, tmp_path, monkeypatch):
    monkeypatch.setattr("odesim.api.ensemble.make_engine", stop)  # nothing is compiled
    run = {**RUN} if name in ("vary", "grid", "zipped", "members") else {**RUN, "params": {"a": [1.0, 2.0]}}
    assert laid_out(lambda value: odesim.ensemble(SYSTEM, **{**run, name: value})) == []


class CheckedError(OdesimError):
    """The request is right as far as it was read."""


def stop(*_: Any, **__: Any) -> Any:
    raise CheckedError("right so far")


@pytest.mark.parametrize("name", ["overwrite", "resume", "shard", "fail_fast", "out"])
def test_ensemble_in_a_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("odesim.api.stored.begin_stored", stop)
    run = {**RUN, "params": {"a": [1.0, 2.0]}, "out": tmp_path / "run.zarr"}
    assert laid_out(lambda value: odesim.ensemble(SYSTEM, **{**run, name: value})) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", keywords(odesim.train))
def test_train(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ("odesim.lab.train.train_experiment", "odesim.lab.train.train_into"):
        monkeypatch.setattr(place, stop)
    run: dict[str, Any] = {"steps": 2, "save": 2}
    assert laid_out(lambda value: odesim.train("scan_snap", **{**run, name: value})) == []
    assert laid_out(lambda value: odesim.train("scan_snap", **{**run, "out": "run.zarr", name: value})) == []


@pytest.mark.parametrize("name", keywords(odesim.compare))
def test_compare(name, monkeypatch):
    run = odesim.integrate(SYSTEM, backend="numpy", **RUN)
    assert laid_out(lambda value: odesim.compare(run, run, **{name: value})) == []
    monkeypatch.setattr("odesim.lab.compare.runs.compare_training", stop)
    task: dict[str, Any] = {"task": "scan_snap", "steps": 2, "save": 2}
    assert laid_out(lambda value: odesim.compare("scan_snap.full", **{**task, name: value})) == []


def test_first_arguments(tmp_path, monkeypatch):
    """Models, tasks, runs, times and tolerances."""
    monkeypatch.chdir(tmp_path)
    run = odesim.integrate(SYSTEM, backend="numpy", **RUN)
    both = odesim.compare(run, run)
    calls: dict[str, Callable[[Any], Any]] = {
        "integrate": lambda value: odesim.integrate(value, backend="numpy", **RUN),
        "ensemble": lambda value: odesim.ensemble(value, **RUN),
        "train": lambda value: odesim.train(value, steps=2),
        "compare": lambda value: odesim.compare(value, run),
        "compare with": lambda value: odesim.compare(run, value),
        "compare a model": lambda value: odesim.compare(value, task="scan_snap", steps=2),
        "load_model": odesim.load_model,
        "open_run": odesim.open_run,
        "at": run.at,
        "dense": run.dense,
        "passed": both.passed,
        "passed of one": lambda value: both.passed({"w": value}),
        "passed of a metric": lambda value: both.passed({"w": {"relative_l2": value}}),
    }
    assert {name: bad for name, call in calls.items() if (bad := laid_out(call))} == {}


GOOD: dict[type, dict[str, Any]] = {
    Param: {"symbol": s, "default": 1.0, "domain": REAL, "doc": "rates", "indexes": None},
    Source: {"key": "key", "where": "eq. 1", "note": ""},
    Constraint: {"name": "c", "expr": a, "sense": "==0", "tol": 0.0},
    Invariant: {"name": "i", "expr": x, "sense": "constant", "when": sp.true, "tol": None},
    Event: {"name": "e", "expr": x, "direction": 0, "terminal": False},
    ClosedForm: {"name": "f", "where": "always", "function": lambda t, y, params: {}, "kind": "explicit"},
}
FIELDS = {Constraint: "constraints", Invariant: "invariants", Event: "events", ClosedForm: "closed_forms"}


def built(**parts: Any) -> None:
    """Builds the System, and binds and shows it, which reads the rest of it."""
    system = System(**{**PARTS, **parts})
    system._repr_latex_()
    odesim.integrate(system, backend="numpy", **RUN).observables  # noqa: B018


@pytest.mark.first(2)
@pytest.mark.parametrize("kind", GOOD, ids=lambda kind: kind.__name__)
def test_parts_of_a_system(kind):
    def make(name: str, value: Any) -> None:
        part = kind(**{**GOOD[kind], name: value})
        if kind is Param:
            built(params=(PARTS["params"][0], part))
        else:
            built(**({"source": part} if kind is Source else {FIELDS[kind]: (part,)}))

    assert {name: bad for name in GOOD[kind] if (bad := laid_out(partial(make, name)))} == {}


@pytest.mark.parametrize("name", System.__dataclass_fields__)
def test_fields_of_a_system(name):
    """The field itself, a tuple of the value, and the value or the key of one of its items."""
    assert laid_out(lambda value: built(**{name: value})) == []
    assert laid_out(lambda value: built(**{name: (value,)})) == []
    if isinstance(PARTS.get(name), dict):
        first = next(iter(PARTS[name]))
        assert laid_out(lambda value: built(**{name: {**PARTS[name], first: value}})) == []
        hashable = lambda value: {**PARTS[name], value: 1} if getattr(value, "__hash__", None) else {}  # noqa: E731
        assert laid_out(lambda value: built(**{name: hashable(value)})) == []


def test_words_of_a_model_file():
    calls: dict[str, Callable[[Any], Any]] = {
        "index": index, "sizes": sizes,
        "over": lambda value: over(value, w[m], (m, M)),
        "over: body": lambda value: over(sp.Sum, value, (m, M)),
        "over: axis": lambda value: over(sp.Sum, w[m], value),
        "over: index": lambda value: over(sp.Sum, w[m], (value, M)),
        "over: extent": lambda value: over(sp.Sum, w[m], (m, value)),
        "softmax": lambda value: softmax(value, (m, M)),
        "softmax: axis": lambda value: softmax(w[m], value),
        "softmax: weight": lambda value: softmax(w[m], (m, M), value),
        "logsumexp": lambda value: logsumexp(value, (m, M)),
        "logsumexp: axis": lambda value: logsumexp(w[m], value),
        "logsumexp: weight": lambda value: logsumexp(w[m], (m, M), value),
        "sensitivities": lambda value: sensitivities(value, "a"),
        "sensitivities: name": lambda value: sensitivities(SYSTEM, value),
    }  # fmt: skip
    assert {name: bad for name, call in calls.items() if (bad := laid_out(call))} == {}


ASKED: dict[str, tuple[Any, str]] = {
    "method": (None, "method must be a text, not None"),
    "max_steps": (2.5, "max_steps must be a whole number, not 2.5"),
    "strict": ("no", "strict is True or False, not 'no'"),
    "dtype": (np.float32, "dtype must be a text, not <class 'numpy.float32'>"),
    "params": ([1.0], r"params must be a dict by name, such as \{'mu': 1.0\}, not \[1.0\]"),
    "initial": ({1: 2.0}, "initial is a dict by name, and 1 is no text: write '1'"),
    "progress": (3, "progress must be a function, not 3"),
    "sensitivities": ({"a": 1}, "sensitivities takes names"),
    "events": ([3], "events takes texts, such as 'far: v.0. - 2', not 3"),
    "seed": (True, "seed must be a whole number, not True"),
}


@pytest.mark.parametrize("name", ASKED)
def test_sentence(name):
    """The sentence says which argument, what it must be, and what it is."""
    value, message = ASKED[name]
    with pytest.raises(OdesimError, match=message):
        odesim.integrate(SYSTEM, **{"backend": "numpy", **RUN, name: value})


def test_numbers_of_numpy_are_numbers():
    """Integers, floats, flags and texts of numpy are taken as what they are."""
    plain = odesim.integrate(SYSTEM, backend="numpy", **RUN, rtol=0.5, max_steps=10, strict=True)
    numpy = {"rtol": np.float32(0.5), "max_steps": np.int64(10), "strict": np.True_, "method": np.str_("euler"), "step": np.float64(0.5)}
    same = odesim.integrate(SYSTEM, backend="numpy", save=2, **numpy)  # type: ignore[arg-type]
    np.testing.assert_array_equal(same.y["w"], plain.y["w"])
    assert type(same.attrs["max_steps"]) is int and type(same.attrs["strict"]) is bool and type(same.attrs["rtol"]) is float


def test_default_with_a_value_of_its_own():
    """`lambda sizes, b=b: ...` keeps its b: a default is called with the sizes, or with sizes and parameters, as many as it needs."""
    b = 3.0

    def made(default: Any) -> Any:
        params = (Param(a, 2.0, REAL, "a rate"), Param(s, default, REAL, "rates"))
        return odesim.integrate(System(**{**PARTS, "params": params}), backend="numpy", **RUN).attrs["params"]["s"].tolist()

    assert made(lambda sizes, b=b: [b] * sizes["M"]) == [3.0, 3.0]
    assert made(lambda sizes, params: [params["a"]] * sizes["M"]) == [2.0, 2.0]
    assert made(lambda *given: [len(given)] * given[0]["M"]) == [2.0, 2.0]
    with pytest.raises(SpecError, match=r"the default is called with \(sizes\) or \(sizes, params\), but takes 3 arguments"):
        made(lambda sizes, params, more: 1.0)
