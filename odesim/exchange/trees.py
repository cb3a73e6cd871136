"""Expressions as JSON: lists whose first item says what they are, as ["Add", "beta", ["Element", "x", "i"]], and back.

A symbol is its name, a whole number a whole number, and one with a point or an exponent a number of float64. The index of a sum is its
name and its level, "k:1": sums inside each other never share one. What stands in a list is looked up in the table of classes that an
expression may have; nothing is evaluated as text.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import isfinite
from typing import Any

import sympy as sp
from sympy import Indexed, Symbol

from odesim.base.errors import ModelError, counted, nearest, value_text
from odesim.symbolic import functions, indices, reductions
from odesim.symbolic.functions import FUNCTIONS, OTHERS
from odesim.symbolic.layered import Inverse, Layer, Value
from odesim.symbolic.reductions import AtMax, BoundIndex, MaxOver, Shift, SumOver, canonical

REDUCTIONS: dict[str, Any] = {"Sum": SumOver, "MaxOver": MaxOver, "Shift": Shift, "AtMax": AtMax}
LAYERS: dict[str, type[Layer]] = {"layer": Layer, "value": Value, "inverse": Inverse}
CONSTANTS: dict[str, Any] = {
    "Pi": sp.pi, "E": sp.E, "EulerGamma": sp.EulerGamma, "Infinity": sp.oo, "NegativeInfinity": -sp.oo, "NaN": sp.nan,
    "True": sp.true, "False": sp.false,
}  # fmt: skip
_CONDITIONS = ("Equality", "Unequality", "StrictLessThan", "LessThan", "StrictGreaterThan", "GreaterThan", "And", "Or", "Not", "ITE")
FACTS = frozenset(("even", "odd", "prime", "composite", *Symbol("x", positive=True, integer=True).assumptions0))
"""What a symbol may be assumed to be, or not to be."""
LARGEST = 10_000
"""The largest exponent, and the most bits in the numbers of one sum or product: sympy computes numbers when they are read."""
MOST = 1000
COUNTING = ("binomial", "jn")
"""Functions that take long for whole numbers above MOST: sums and products of as many terms, or a recursion over an order."""
DEEPEST = 20
"""The most levels of an expression of numbers alone."""
WIDEST = 1100
"""Bits of a whole number: more are beyond float64, from 2**-1074 to 2**1024."""


def _class_named(name: str) -> Any:
    """Ours, or sympy's with this name, some of which are not among its public names."""
    piecewise, cfunctions = sp.functions.elementary.piecewise, import_module("sympy.codegen.cfunctions")
    homes = (functions, reductions, indices, sp, piecewise, cfunctions)
    return next(vars(home)[name] for home in homes if name in vars(home))


CLASSES: dict[str, Any] = {name: _class_named(name) for name in (*FUNCTIONS, *sorted(OTHERS), *_CONDITIONS, "ExprCondPair", "Tuple")}
"""{first item of a list: class of its expression}."""


@dataclass
class Writer:
    """Expressions to JSON. symbols: {name: its assumptions} and arrays: {key: what an array is} of all that was written."""

    symbols: dict[str, dict[str, bool]] = field(default_factory=dict)
    arrays: dict[str, dict[str, Any]] = field(default_factory=dict)
    _keys: dict[Any, str] = field(default_factory=dict)

    def __call__(self, e: Any) -> Any:
        """An expression as JSON. Raises ModelError where it has no form."""
        e = sp.sympify(e)
        if e.is_Integer:
            return int(e)
        if e.is_Rational:
            return ["Rational", int(e.p), int(e.q)]
        if e.is_Float:
            return float(e)
        for word, constant in CONSTANTS.items():
            if e is constant:
                return [word]
        if isinstance(e, BoundIndex):
            return f"{e.name}:{e.level}"
        if isinstance(e, Symbol):
            return self.symbol(e)
        if isinstance(e, Indexed):
            return ["Element", self.array(e.base), *map(self, e.indices)]
        for word, kind in REDUCTIONS.items():
            if type(e) is kind:
                return [word, self(e.function), *([self(part) for part in limit] for limit in e.limits)]
        name = type(e).__name__
        if CLASSES.get(name) is not type(e):
            raise ModelError(f"{name} in {value_text(e)} has no form in JSON")
        return [name, *map(self, e.args)]

    def symbol(self, s: Symbol) -> str:
        """The name of a symbol, whose assumptions are noted. Raises ModelError where another one has it."""
        facts = {fact: bool(holds) for fact, holds in sorted(s._assumptions_orig.items())}
        if self.symbols.setdefault(s.name, facts) != facts:
            raise ModelError(f"two symbols are called {s.name}, with other assumptions: give one of them another name")
        return str(s.name)

    def array(self, base: Any) -> str:
        """The key of an array, which is noted: its name, with a number where another one has that."""
        if base not in self._keys:
            name, number = str(base.label), 1
            key = name
            while key in self.arrays:
                number += 1
                key = f"{name}#{number}"
            self._keys[base], self.arrays[key] = key, {}
            what: dict[str, Any] = {"name": name, "shape": [self(n) for n in base.shape]}
            facts = {fact: bool(holds) for fact, holds in sorted(base.label._assumptions_orig.items())}
            if facts:
                what["assumptions"] = facts
            if isinstance(base, Layer):
                kind = next(word for word, layer in LAYERS.items() if type(base) is layer)
                what |= {"kind": kind, "along": [self(i) for i in base.along], "definition": self(base.definition)}
            self.arrays[key] = what
        return self._keys[base]


class Reader:
    """JSON to expressions, with the symbols and arrays of its document. Raises ModelError with the place of what is wrong."""

    def __init__(self, symbols: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        self.symbols = {name: self._symbol(name, facts) for name, facts in symbols.items()}
        self._arrays, self._known, self._open = arrays, dict[str, Any](), set[str]()

    def _symbol(self, name: str, facts: Any) -> Symbol:
        if not name.isidentifier() or not isinstance(facts, Mapping) or not all(isinstance(v, bool) for v in facts.values()):
            raise ModelError(f"symbols: {value_text(name)} must be a name with its assumptions, such as {{'positive': true}}")
        unknown = [fact for fact in facts if fact not in FACTS]
        if unknown:
            raise ModelError(f"symbols: {name} cannot be {value_text(unknown[0])}{nearest(unknown[0], FACTS)}")
        try:
            return Symbol(name, **facts)
        except sp.core.facts.InconsistentAssumptions as error:
            raise ModelError(f"symbols: {name} cannot be {', '.join(map(str, facts))}") from error

    def __call__(self, e: Any) -> Any:
        """The expression, its sums with canonical indices."""
        return canonical(self.read(e))

    def read(self, e: Any) -> Any:
        """The expression as it is written."""
        if isinstance(e, bool) or e is None:
            raise ModelError(f"an expression is a number, a name or a list, not {value_text(e)}")
        if isinstance(e, int):
            return _checked_number(sp.Integer(e), "a number")
        if isinstance(e, float):
            if not isfinite(e):
                raise ModelError(f'a number of an expression is finite, not {e}: write ["Infinity"] or ["NaN"]')
            return sp.Float(e)
        if isinstance(e, str):
            return self._named(e)
        if not isinstance(e, list) or not e or not isinstance(e[0], str):
            raise ModelError(f"an expression is a number, a name or a list that begins with a word, not {value_text(e)}")
        word, *parts = e
        if word in CONSTANTS:
            if parts:
                raise ModelError(f"{word} is a constant, and stands alone in its list: {value_text(e)}")
            return CONSTANTS[word]
        if word == "Rational":
            if len(parts) != 2 or not all(type(p) is int for p in parts) or not parts[1]:
                raise ModelError(f'["Rational", p, q] has two whole numbers, and q is not 0: {value_text(e)}')
            return _checked_number(sp.Rational(*parts), word)
        if word == "Element":
            if not parts:
                raise ModelError('["Element", array, i, ...] begins with the key of an array')
            return self._element(*parts)
        if word in REDUCTIONS:
            return self._reduction(REDUCTIONS[word], parts)
        if word not in CLASSES:
            known = [*CLASSES, *REDUCTIONS, *CONSTANTS, "Rational", "Element"]
            raise ModelError(f"no expression begins with {value_text(word)}{nearest(word, known)}")
        return self._applied(word, [self.read(p) for p in parts])

    def _named(self, text: str) -> Any:
        name, colon, level = text.partition(":")
        if colon:
            if not (name.isidentifier() and level.isdecimal() and len(level) < 6):
                raise ModelError(f"the index of a sum is a name and a level, such as k:1, not {value_text(text)}")
            return BoundIndex(name, int(level))
        if text not in self.symbols:
            raise ModelError(f"there is no symbol {value_text(text)}{nearest(text, self.symbols)}")
        return self.symbols[text]

    def _applied(self, word: str, parts: list[Any]) -> Any:
        _check_cheap(word, parts)
        try:
            e = CLASSES[word](*parts)
        except Exception as error:  # sympy's classes refuse arguments in many ways
            raise ModelError(
                f"{word} does not take {', '.join(map(value_text, parts))}" if parts else f"{word} stands without arguments"
            ) from error
        return _checked_number(e, word)

    def _element(self, key: Any, *places: Any) -> Any:
        base = self.array(key)
        if len(places) != len(base.shape):
            axes, count = counted(len(base.shape), "axis", "axes"), counted(len(places), "index", "indices")
            raise ModelError(f"{key} has {axes}, and an element of it {count}")
        return base[tuple(self.read(p) for p in places)]

    def _reduction(self, kind: type, parts: list[Any]) -> Any:
        body, *limits = parts or [None]
        if not limits or not all(isinstance(limit, list) and len(limit) == 3 for limit in limits):
            raise ModelError("a sum or maximum is [word, body, [index, first, last], ...]")
        read = [[self.read(part) for part in limit] for limit in limits]
        if not all(isinstance(k, BoundIndex) for k, _, _ in read):
            raise ModelError("the index of a sum is a name and a level, such as k:1")
        return kind(self.read(body), *read)

    def array(self, key: Any) -> Any:
        """The array of this key, read when it is first needed."""
        if key not in self._known:
            if not isinstance(key, str) or key not in self._arrays:
                raise ModelError(f"there is no array {value_text(key)}{nearest(str(key), self._arrays)}")
            if key in self._open:
                raise ModelError(f"the array {key} is defined by itself")
            self._open.add(key)
            self._known[key] = self._array(key, self._arrays[key])
        return self._known[key]

    def _array(self, key: str, what: Any) -> Any:
        if not isinstance(what, Mapping) or not isinstance(what.get("shape"), list) or not str(what.get("name")).isidentifier():
            raise ModelError(f"arrays: {key} needs a name and a shape")
        shape, facts = tuple(self.read(n) for n in what["shape"]), what.get("assumptions", {})
        if "kind" not in what:
            self._symbol(what["name"], facts)
            return indices.IndexedBase(what["name"], shape=shape, **facts)
        if what["kind"] not in LAYERS:
            raise ModelError(f"arrays: the kind of {key} is one of {', '.join(LAYERS)}, not {value_text(what['kind'])}")
        along = tuple(self.read(i) for i in what.get("along", []))
        return LAYERS[what["kind"]](what["name"], along, self(what.get("definition")), shape)


def _check_cheap(word: str, parts: list[Any]) -> None:
    """Raises ModelError for a function of numbers that sympy would compute at great length."""
    numbers = [p for p in parts if getattr(p, "is_number", False)]
    if word == "Pow" and any(abs(p) > LARGEST for p in parts[1:] if p in numbers):
        raise ModelError(f"{word} of {value_text(parts[0])} is too large: its exponent is a number of at most {LARGEST}")
    if word in COUNTING and any(p.is_Integer and abs(p) > MOST for p in numbers):
        raise ModelError(f"{word} of {' and '.join(map(value_text, parts))} is too large: a whole number there is at most {MOST}")
    if word in ("Add", "Mul"):
        bits = sum(int(n).bit_length() for p in numbers if p.is_Rational for n in ((p.q,) if word == "Add" else (p.p, p.q)) if abs(n) > 1)
        if bits > LARGEST:
            raise ModelError(f"{word} of {counted(len(numbers), 'number')} has too many digits: write them with a point")


def _checked_number(e: Any, word: str) -> Any:
    """e. Raises ModelError where it is, or begins with, a number beyond floats, or is many functions of numbers inside each other."""
    wide = any(p.is_Rational and max(abs(p.p), p.q).bit_length() > WIDEST for p in (e, *e.args) if isinstance(p, sp.Expr))
    if not wide and isinstance(e, sp.Expr) and e.is_number and not e.is_Rational:
        if _levels(e) > DEEPEST:
            raise ModelError(f"{word} stands over more than {DEEPEST} levels of functions of numbers: write their value")
        try:
            value = sp.Abs(e.evalf(15))
        except Exception:  # mpmath gives up in many ways; then a run says what is wrong
            return e
        wide = bool(value.is_Float and value > sys.float_info.max)
    if wide:
        raise ModelError(f"{word} is beyond the numbers of float64, which go up to 1.8e308")
    return e


def _levels(e: Any) -> int:
    """How many levels an expression has."""
    return 1 + max(map(_levels, e.args), default=0)


def domain_to_json(domain: sp.Set) -> Any:
    """A set of numbers: ["Interval", 0, 1, false, true] with the truths left open and right open, ["Naturals0"], ["Union", ...]."""
    for word in ("Integers", "Naturals", "Naturals0", "Reals"):
        if domain == getattr(sp.S, word):
            return [word]
    write = Writer()
    if isinstance(domain, sp.Interval):
        return ["Interval", write(domain.start), write(domain.end), bool(domain.left_open), bool(domain.right_open)]
    if isinstance(domain, sp.Range | sp.FiniteSet) and all(a.is_number for a in domain.args):
        return [type(domain).__name__, *map(write, domain.args)]
    if isinstance(domain, sp.Union):
        return ["Union", *map(domain_to_json, domain.args)]
    raise ModelError(f"the domain {domain} has no form in JSON")


def domain_from_json(e: Any) -> sp.Set:
    """The set. Raises ModelError."""
    read = Reader({}, {})
    match e:
        case ["Integers" | "Naturals" | "Naturals0" | "Reals" as word]:
            return getattr(sp.S, word)
        case ["Interval", low, high, bool(left), bool(right)]:
            return sp.Interval(read(low), read(high), left, right)
        case ["Range", *ends] if len(ends) == 3 and all(map(_is_end, ends)):
            return sp.Range(*map(read, ends))
        case ["FiniteSet", *numbers]:
            return sp.FiniteSet(*map(read, numbers))
        case ["Union", *parts] if parts:
            return sp.Union(*map(domain_from_json, parts))
    raise ModelError(f'a domain is such as ["Interval", 0, 1, false, false] or ["Naturals0"], not {value_text(e)}')


def _is_end(e: Any) -> bool:
    """Whether e is a whole number or an infinity."""
    return (isinstance(e, int) and not isinstance(e, bool)) or e in (["Infinity"], ["NegativeInfinity"])
