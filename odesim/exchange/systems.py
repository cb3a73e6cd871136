"""A System as a document of JSON, and back: docs/howto/export.md says what is in it.

What a System holds as functions of Python becomes numbers: defaults of parameters, at the default sizes, and closed forms. Nothing of a
document is executed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from odesim.base.errors import ModelError, OdesimError, ParamError, nearest, no_such, value_text
from odesim.exchange.trees import Reader, Writer, domain_from_json, domain_to_json
from odesim.symbolic import parts
from odesim.symbolic.definition import GradientFlow
from odesim.symbolic.parts import Event, Param, Source, View
from odesim.symbolic.system import System

FORM = "odesim.system"
VERSION = 1
VIEWS = {kind.__name__: kind for kind in (parts.Lines, parts.Log, parts.Matrix, parts.Attention, parts.Points)}

FIELDS = (
    "format", "version", "name", "source", "time", "span", "discrete", "calculus", "step", "symbols", "arrays", "axes", "sizes",
    "parameters", "constraints", "equations", "initial", "noise", "events", "observables", "invariants", "display", "boundary", "growth",
    "loss", "sensitivities", "views", "functions", "check", "run", "closed_forms",
)  # fmt: skip
"""Fields of a document."""
PARTS = {
    "source": ("key", "where", "note"),
    "arrays": ("name", "shape", "assumptions", "kind", "along", "definition"),
    "parameters": ("symbol", "array", "default", "domain", "doc", "indexes", "cover"),
    "constraints": ("name", "expression", "sense", "tol"),
    "noise": ("state", "channels"),
    "events": ("name", "expression", "direction", "terminal", "doc", "resets", "at_start"),
    "invariants": ("name", "expression", "sense", "when", "tol"),
    "loss": ("expression", "rates"),
    "views": ("kind", "name"),
}
"""{field: the fields of each object that stands there}; pairs of expressions have their two besides."""


def system_to_json(system: System, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a System. defaults {parameter: its numbers at the default sizes}. Raises ModelError."""
    write = Writer()

    def pairs(what: Mapping[Any, Any], key: str, value: str) -> list[dict[str, Any]]:
        return [{key: write(k), value: write(e)} for k, e in what.items()]

    flow = system.equations if isinstance(system.equations, GradientFlow) else None
    document = {
        "axes": {write(i): write(n) for i, n in system.axes.items()},
        "sizes": {write(s): int(n) for s, n in system.sizes.items()},
        "parameters": [_param_to_json(p, defaults, write) for p in system.params],
        "constraints": [{"name": c.name, "expression": write(c.expr), "sense": c.sense, "tol": c.tol} for c in system.constraints],
        "equations": pairs(system.equations, "state", "next" if system.discrete else "rate"),
        "initial": pairs(system.initial, "state", "value"),
        "noise": [{"state": write(k), "channels": pairs(c, "channel", "factor")} for k, c in system.noise.items()],
        "events": [
            {
                "name": e.name, "expression": write(e.expr), "direction": e.direction, "terminal": e.terminal, "doc": e.doc,
                "resets": pairs(e.resets, "state", "value"), "at_start": e.at_start,
            }
            for e in system.events
        ],
        "observables": {name: write(e) for name, e in system.observables.items() if isinstance(e, sp.Basic)},
        "invariants": [
            {"name": v.name, "expression": write(v.expr), "sense": v.sense, "when": write(v.when), "tol": v.tol} for v in system.invariants
        ],
        "display": {name: write(e) for name, e in system.display.items()},
        "boundary": {write(i): kind for i, kind in system.boundary.items()},
        "growth": None if system.growth is None else write(system.growth),
        "loss": None if flow is None else {"expression": write(flow.loss), "rates": pairs(flow.rates, "state", "value")},
    }  # fmt: skip
    return {
        "format": FORM, "version": VERSION, "name": system.name, "source": vars(system.source), "time": system.time,
        "span": [float(t) for t in system.span], "discrete": system.discrete, "calculus": system.calculus, "step": system.step,
        "symbols": write.symbols, "arrays": write.arrays, **document,
        "sensitivities": {k: dict(v) for k, v in system.sensitivities.items()},
        "views": [{"kind": type(v).__name__, "name": v.name} for v in system.views],
        "functions": [name for name, e in system.observables.items() if not isinstance(e, sp.Basic)],
    }  # fmt: skip


def _param_to_json(p: Param, defaults: Mapping[str, Any], write: Writer) -> dict[str, Any]:
    table = callable(p.default) and not isinstance(p.default, sp.Basic)
    default = np.asarray(defaults[p.name]).tolist() if table else _number_of(p.default)
    symbol = {"array": write.array(p.symbol)} if p.shape else {"symbol": write.symbol(p.symbol)}
    indexes = None if p.indexes is None else write(p.indexes)
    return {**symbol, "default": default, "domain": domain_to_json(p.domain), "doc": p.doc, "indexes": indexes, "cover": p.cover}


def _number_of(default: Any) -> float | int:
    return int(default) if isinstance(default, int) else float(default)


@dataclass(frozen=True)
class Table:
    """A default that is a table of numbers, for the sizes that its document has. name, extents: of the parameter."""

    name: str
    extents: tuple[Any, ...]
    numbers: np.ndarray

    def __call__(self, sizes: Mapping[str, int]) -> np.ndarray:
        """The numbers. Raises ParamError for other sizes."""
        shape = tuple(int(sp.sympify(n).subs({s: sizes[s.name] for s in sp.sympify(n).free_symbols})) for n in self.extents)
        if shape != self.numbers.shape:
            raise ParamError(
                f"the default of {self.name} is a table of shape {self.numbers.shape}, not {shape}: give {self.name} its values"
            )
        return self.numbers.copy()


def system_from_json(document: Any) -> System:
    """The System of a document; its parts are checked as those of a model file are. Raises ModelError, SpecError."""
    if not isinstance(document, Mapping):
        raise ModelError(f"the document is no System: it is an object {{...}}, not {value_text(document)}")
    if document.get("format") != FORM:
        raise ModelError(f'the document is no System: it has no "format": {FORM!r}')
    if document.get("version") != VERSION:
        raise ModelError(f"the document is of version {value_text(document.get('version'))}, and this odesim reads version {VERSION}")
    try:
        _check_fields(document)
        return _system(_Fields(document))
    except OdesimError:
        raise
    except RecursionError:
        raise ModelError("the document has an expression that is nested too deeply") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"the document is no System: {type(error).__name__}: {error}") from error


def _only(items: Any, names: Sequence[str], where: str) -> None:
    """Raises ModelError where an object of a list has another field than these: a misspelt one would be lost."""
    for item in items:
        for name in item if isinstance(item, Mapping) else ():
            if name not in names:
                raise ModelError(no_such("field", str(name), names, where))


def _check_fields(document: Mapping[str, Any]) -> None:
    """Raises ModelError for a field of a document, or of one of its parts, that is none."""
    _only([document], FIELDS, "the document")
    for name, names in PARTS.items():
        part = document.get(name)
        if name == "arrays" and isinstance(part, Mapping):
            part = list(part.values())
        _only(part if isinstance(part, list) else [part], names, name)


class _Fields:
    """The fields of a document, with what reads their expressions."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document, self.read = document, Reader(self.get(document, "symbols", dict), self.get(document, "arrays", dict))

    @staticmethod
    def get(part: Any, name: str, kind: Any, default: Any = ...) -> Any:
        """The field of a part of the document. Raises ModelError where it is missing or of another type."""
        if not isinstance(part, Mapping) or (name not in part and default is ...):
            raise ModelError(f"the document lacks {name!r}")
        value = part.get(name, default)
        if value is not default and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise ModelError(f"{name!r} of the document is {value_text(value)}, which it cannot be")
        return value

    def __call__(self, name: str, kind: Any, default: Any = ...) -> Any:
        return self.get(self.document, name, kind, default)

    def pairs(self, part: Any, name: str, key: str, value: str) -> dict[Any, Any]:
        """{expression: expression} of a list of objects."""
        _only(self.get(part, name, list, []), (key, value), name)
        return {self.read(self.get(p, key, object)): self.read(self.get(p, value, object)) for p in self.get(part, name, list, [])}


def _system(of: _Fields) -> System:
    read, get = of.read, of.get
    number = (int, float)
    discrete = of("discrete", bool)
    equations: Any = of.pairs(of.document, "equations", "state", "next" if discrete else "rate")
    loss = of("loss", Mapping, None)
    if loss is not None:
        equations = GradientFlow(equations, read(get(loss, "expression", object)), of.pairs(loss, "rates", "state", "value"))
    events = tuple(
        Event(
            get(e, "name", str), read(get(e, "expression", object)), get(e, "direction", int, 0), get(e, "terminal", bool, False),
            get(e, "doc", str, ""), of.pairs(e, "resets", "state", "value"), get(e, "at_start", bool, False),
        )
        for e in of("events", list, [])
    )  # fmt: skip
    source = of("source", Mapping)
    span = of("span", list)
    if len(span) != 2 or not all(isinstance(t, number) and not isinstance(t, bool) for t in span):
        raise ModelError(f"the span of a document is [start, end], two numbers, not {value_text(span)}")
    fields: dict[str, Any] = {
        "sizes": {read(s): n for s, n in of("sizes", Mapping, {}).items()},
        "span": (float(span[0]), float(span[1])),
        "time": of("time", str, ""),
        "observables": {name: read(e) for name, e in of("observables", Mapping, {}).items()},
        "constraints": tuple(
            parts.Constraint(get(c, "name", str), read(get(c, "expression", object)), get(c, "sense", str), get(c, "tol", number, 0.0))
            for c in of("constraints", list, [])
        ),
        "invariants": tuple(
            parts.Invariant(
                get(v, "name", str), read(get(v, "expression", object)), get(v, "sense", str), read(get(v, "when", object, ["True"])),
                get(v, "tol", number, None),
            )
            for v in of("invariants", list, [])
        ),
        "events": events,
        "growth": None if of("growth", object, None) is None else read(of("growth", object)),
        "sensitivities": of("sensitivities", Mapping, {}),
        "display": {name: read(e) for name, e in of("display", Mapping, {}).items()},
        "discrete": discrete,
        "boundary": {read(i): kind for i, kind in of("boundary", Mapping, {}).items()},
        "noise": {read(get(c, "state", object)): of.pairs(c, "channels", "channel", "factor") for c in of("noise", list, [])},
        "calculus": of("calculus", str, "ito"),
        "step": of("step", number, None),
        "views": tuple(_view(v) for v in of("views", list, [])),
    }  # fmt: skip
    return System(
        of("name", str),
        Source(get(source, "key", str), get(source, "where", str), get(source, "note", str, "")),
        {read(i): read(n) for i, n in of("axes", Mapping).items()},
        equations,
        tuple(_param(p, of) for p in of("parameters", list)),
        of.pairs(of.document, "initial", "state", "value"),
        **fields,
    )


def _view(v: Any) -> View:
    kind = _Fields.get(v, "kind", str)
    if kind not in VIEWS:
        raise ModelError(f"views: there is no kind {kind!r}; choose from {', '.join(VIEWS)}{nearest(kind, VIEWS)}")
    return VIEWS[kind](_Fields.get(v, "name", str))


def _param(p: Any, of: _Fields) -> Param:
    symbol = of.read.array(p["array"]) if isinstance(p, Mapping) and "array" in p else of.read(of.get(p, "symbol", str))
    default = of.get(p, "default", (int, float, list))
    if isinstance(default, list):
        name = str(getattr(symbol, "label", symbol))
        try:
            numbers = np.array(default)
        except ValueError:
            numbers = np.array(None)
        if numbers.dtype.kind not in "if":
            raise ModelError(f"the default of {name} is no array of numbers")
        default = Table(name, tuple(symbol.shape), numbers)
    indexes = of.get(p, "indexes", str, None)
    domain = domain_from_json(of.get(p, "domain", list))
    return Param(
        symbol, default, domain, of.get(p, "doc", str, ""), None if indexes is None else of.read(indexes), of.get(p, "cover", bool, True)
    )
