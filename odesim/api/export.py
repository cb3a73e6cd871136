"""A System for others: as a document of JSON, as code for numpy, JAX or C; and a System from a document."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odesim.api.integrate import integrate
from odesim.base.errors import ModelError, ParamError, no_such, value_text
from odesim.base.parsing import readable
from odesim.exchange.array_code import JAX, NUMPY, array_code, check_few
from odesim.exchange.c_code import c_code
from odesim.exchange.systems import system_from_json, system_to_json
from odesim.inputs.bind import Numbers, bind
from odesim.inputs.registry import load_model
from odesim.ir.passes import lower
from odesim.symbolic.system import System
from odesim.targets.numpy_text import ArrayFunction

LANGUAGES = {
    "numpy": lambda system, numbers: array_code(system, numbers, NUMPY),
    "jax": lambda system, numbers: array_code(system, numbers, JAX),
    "c": c_code,
}
"""{language of to_code(): (System, its numbers) -> the text of a file}."""
NEAR = 1e-5
"""The part by which a closed form may be off a run of tolerance 1e-9 over the default span: chaos and steep ends take four digits of it."""

RESTING = 1e-6
"""Rates up to this part of the largest state are rounding, or nearly, of a state at rest."""


@readable
def to_json(model: str | os.PathLike[str] | System) -> dict[str, Any]:
    """A System as a document: what `json.dump` writes, `odesim.from_json` and readers in other languages read.

    Parameters
    ----------
    model : str, path or System
        A name of `odesim.list_models`, a model file or a System.

    Returns
    -------
    dict
        Sizes, axes, parameters with domains and defaults, expressions as lists such as ["Add", "beta", 1], events, laws; and numbers to
        check a reader with: `check`, the right-hand side at one state, `run`, the states at three times, and closed forms at these. The
        how-to page on exporting models says what each part is.

    Raises
    ------
    ModelError
        An expression has no form in JSON, such as a function of your own.

    Examples
    --------
    >>> document = odesim.to_json("joma.linear")
    >>> document["initial"]
    [{'state': ['Element', 'v', 'l'], 'value': 0}]
    """
    system = load_model(model)
    numbers = bind(system)
    check_few(numbers)
    document = system_to_json(system, numbers.params)
    times, states = _run(system, numbers)
    t, y, rates = _check_point(system, numbers, times, states)
    document["check"] = {
        "sizes": numbers.sizes, "parameters": _lists(numbers.params), "t": t, "state": _lists(y),
        "rates": _lists(rates),
    }  # fmt: skip
    document["run"] = {"t": times, "states": _lists(states)} if times else None
    document["closed_forms"] = [
        {"name": form.name, "where": form.where, "kind": form.kind, "states": _closed_form(form, numbers, times, states)}
        for form in system.closed_forms
    ]
    return document


def _check_point(
    system: System, numbers: Numbers, times: Sequence[float], states: Mapping[str, np.ndarray]
) -> tuple[float, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A time, states and their rates: the middle of the run; where that is at rest the start; where that is too, a state beside it."""
    right_side = ArrayFunction(lower(system, numbers.sizes))
    start = dict(numbers.initial)
    points = [(times[1], {name: rows[1] for name, rows in states.items()})] if times else []
    for t, y in (*points, (numbers.t0, start), (numbers.t0, {name: _moved(values) for name, values in start.items()})):
        slopes = right_side(numbers.sizes, {"t": t, **numbers.sizes, **numbers.params, **y})
        rates = {name: slopes[f"d_{name}"] for name in system.states}
        if not _at_rest(system, y, rates):  # rates that are all rounding check no reader
            break
    return t, y, rates


def _at_rest(system: System, states: Mapping[str, Any], rates: Mapping[str, Any]) -> bool:
    """Whether no rate is above RESTING of the largest state; of a Map, no step."""
    moves = (np.max(np.abs(rates[n] - states[n] if system.discrete else rates[n]), initial=0.0) for n in states)
    return max(moves) <= RESTING * max(np.max(np.abs(y), initial=0.0) for y in states.values())


def _moved(values: Any) -> np.ndarray:
    """values times 1.05 to 1.15, each by another part, and in the place of 0 the parts: signs, and what is positive, stay."""
    parts = 0.05 + 0.1 * np.arange(np.size(values)).reshape(np.shape(values)) / max(np.size(values) - 1, 1)
    return np.where(np.equal(values, 0), parts, np.asarray(values) * (1 + parts))


def _run(system: System, numbers: Numbers) -> tuple[list[float], dict[str, np.ndarray]]:
    """Start, middle and end of a run over the default span, at tight tolerance; nothing of one with noise, or that ends early."""
    if system.noise:
        return [], {}
    middle = numbers.t0 + (numbers.t1 - numbers.t0) / 2
    save = [numbers.t0, float(int(middle)) if system.discrete else middle, numbers.t1]
    tolerances: Any = {} if system.discrete else {"rtol": 1e-9, "atol": 1e-12}
    run = integrate(system, save=save, **tolerances)
    return (run.t.tolist(), dict(run.y)) if run.ok and len(run.t) == len(save) else ([], {})


def _closed_form(form: Any, numbers: Numbers, times: list[float], states: Mapping[str, np.ndarray]) -> Any:
    """The states {name: rows} of an explicit solution at these times; None where it is none, or does not hold for the defaults."""
    if form.kind != "explicit" or not times:
        return None
    with np.errstate(all="ignore"):
        rows = [form.function(t, dict(numbers.initial), numbers.params) for t in times]
    exact = {name: np.stack([np.asarray(row[name], float) for row in rows]) for name in rows[0]}
    near = (np.abs(exact[name] - states[name]) <= NEAR * np.maximum(np.abs(states[name]), 1) for name in exact)
    return _lists(exact) if all(map(np.all, near)) else None


def _lists(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as nested lists of numbers, with None for what is not finite, which JSON lacks."""
    return {name: _finite(np.asarray(v).tolist()) for name, v in values.items()}


def _finite(x: Any) -> Any:
    if isinstance(x, list):
        return [_finite(part) for part in x]
    return x if np.isfinite(x) else None


@readable
def from_json(document: Mapping[str, Any] | str | os.PathLike[str]) -> System:
    """The System of a document that `odesim.to_json` or `odesim export --to json` wrote. Nothing in it is executed.

    Parameters
    ----------
    document : dict, str or path
        The document, its text, or the file that it is in.

    Returns
    -------
    System
        Checked as that of a model file is. Defaults that were functions of sizes are tables of numbers, for the sizes of the document;
        observables that were functions of Python, and closed forms, are not there.

    Raises
    ------
    ModelError
        The document is no System, or has an expression that is none.

    Examples
    --------
    >>> system = odesim.from_json(odesim.to_json("joma.linear"))
    >>> system.equations == odesim.load_model("joma.linear").equations
    True
    """
    if isinstance(document, Mapping):
        return system_from_json(document)
    if isinstance(document, os.PathLike):
        return load_model(Path(document))
    if not isinstance(document, str):
        raise ModelError(f"a document is a dict, its text or a path, not {value_text(document)}")
    try:
        return system_from_json(json.loads(document))
    except RecursionError:
        raise ModelError("the document has an expression that is nested too deeply") from None
    except ValueError as error:
        if not document.lstrip().startswith(("{", "[")):
            return load_model(Path(document))
        raise ModelError(f"the text is no JSON: {error}") from None


@readable
def to_code(
    model: str | os.PathLike[str] | System,
    to: str,
    *,
    params: Mapping[str, Any] | None = None,
    initial: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
) -> str:
    """The right-hand side of a System as the text of a file that needs no odesim.

    Parameters
    ----------
    model : str, path or System
        A name of `odesim.list_models`, a model file or a System.
    to : "numpy", "jax" or "c"
        numpy and jax: a module with `right_hand_side(t, state, parameters)`, whose states and parameters are dicts of arrays, `observables`
        of the same arguments, and SIZES, PARAMETERS, INITIAL, SPAN. c: one file of C11 with
        `right_hand_side(t, state, rates, parameters)`.
    params, initial, sizes, span
        Numbers in the place of the model's defaults, as `odesim.integrate` takes them.

    Returns
    -------
    str
        The text. Events and noise are not in it; it says so.

    Raises
    ------
    CodegenError
        The language lacks a function of the right-hand side.
    ParamError
        A number is wrong, or there is no such language.

    Examples
    --------
    >>> print(odesim.to_code("joma.linear", "c", sizes={"M": 2}).splitlines()[-3].strip())
    d_v[l] = Delta[l]*exp(0.5*v[l]*v[l]);
    """
    if to not in LANGUAGES:
        raise ParamError(no_such("language", str(to), LANGUAGES))
    system = load_model(model)
    return LANGUAGES[to](system, bind(system, params=params, initial=initial, sizes=sizes, span=span))
