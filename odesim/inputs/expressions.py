"""Expressions that people type: arithmetic over the names of a System, read by recursive descent. Nothing in a text is executed.

    sum    = term { (+ | -) term }              power = atom [ ** sign ]
    term   = sign { (* | /) sign }              atom  = NUMBER | ( sum ) | NAME | NAME[index, ...] | FUNCTION(sum, ...)
    sign   = { + | - } power                    index = NAME of an index [ (+ | -) WHOLE NUMBER ] | WHOLE NUMBER
                                                      | NAME[index, ...] of an index parameter

sum(f), max(f) and min(f) of one argument go over all indices of f. Indices behind it, as in sum(V[l, k], k), name those to go over.
speed() is how fast all states move, by their size.
"""
# sympify() would be one line, and is eval() of what a stranger's shell script or stored run says; it also takes minutes for 9**9**9.
# So the reader is ours, bounded in length, depth and digits, and each mistake has the place where it stands.

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import sympy as sp
from sympy import Expr, IndexedBase, Symbol

from odesim.base.errors import counted, nearest, shorten
from odesim.symbolic.indices import BOUNDARIES, index, time
from odesim.symbolic.parts import key_indices
from odesim.symbolic.reductions import MaxOver, at, free_indices, over
from odesim.symbolic.system import System

NUMBER = r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
TOKEN = re.compile(rf"\s*(?:{NUMBER}|(?P<name>[^\W\d]\w*)|(?P<sign>\*\*|[-+*/()\[\],]))")
HINTS = {"^": "write ** for a power", "=": "an expression is meant, not an equation: write a - b for a = b"}
HINTS |= dict.fromkeys("<>", "an expression is meant, not a condition: write a - b for a > b")


@dataclass(frozen=True)
class Token:
    """A number, name or sign of the text, or "end"; at: its place, from 0."""

    kind: str
    text: str
    at: int


def tokens(text: str, at: int, fail: Callable[[int, str], NoReturn]) -> Iterator[Token]:
    """The tokens of text from the place `at` on, and one for its end. fail: as for parse_expression."""
    end = max(len(text.rstrip()), at)
    while at < end:
        match = TOKEN.match(text, at)
        if not match or match.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            hint = HINTS.get(text[at])
            fail(at, hint or f"{text[at]!r} is no part of an expression")
        yield Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        at = match.end()
    yield Token("end", "", end)


@dataclass(frozen=True)
class Thing:
    """The meaning of a name: a number or an array as an expression at these indices, or an index.

    extents: of its axes; () for a number. indexes: of an index parameter, the extent of the axis whose places it names.
    obstacle: why it cannot be used. changes: whether it is a state, or what a state's array is called.
    """

    name: str
    expression: Any = None
    indices: tuple[Symbol, ...] = ()
    extents: tuple[Any, ...] = ()
    index: Symbol | None = None
    indexes: Any = None
    obstacle: str = ""
    changes: bool = False

    def at(self, indices: tuple[Any, ...]) -> Expr:
        """The expression at these indices."""
        if isinstance(self.expression, IndexedBase):
            return self.expression[indices]
        return at(self.expression, dict(zip(self.indices, indices, strict=True))) if indices else self.expression

    @property
    def example(self) -> str:
        """How an element is written."""
        return f"{self.name}[{', '.join(map(str, self.indices)) or ', '.join('0' for _ in self.extents)}]"


@dataclass(frozen=True)
class Names:
    """The things by name: time, states, parameters, sizes, observables, indices. boundary: {index: what is beyond its ends}."""

    things: dict[str, Thing]
    axes: dict[Symbol, Any]
    boundary: dict[str, str]
    system: System

    @classmethod
    def of(cls, system: System) -> "Names":
        """The names of a System."""
        axes = dict(system.axes)
        sizes = {s for n in (*axes.values(), *(d for p in system.params for d in p.shape)) for s in sp.sympify(n).free_symbols}
        things = [Thing(time.name, time), *(Thing(s.name, s) for s in sorted(sizes, key=str))]
        for key in system.equations:
            indices = key_indices(key)
            name, extents = (str(key.base.label) if indices else str(key)), tuple(axes[i] for i in indices)
            things.append(Thing(name, key, indices, extents, changes=True))
        for p in system.params:
            over = [next((i for i, n in axes.items() if sp.expand(n - extent) == 0), None) for extent in p.shape]
            indices = tuple(i for i in over if i is not None)
            indices = indices if len(set(indices)) == len(p.shape) else ()
            things.append(Thing(p.name, p.symbol, indices, tuple(p.shape), indexes=p.indexes))
        for name, e in system.observables.items():
            if isinstance(e, sp.Basic):
                indices = system.observable_indices(name)
                things.append(Thing(name, e, indices, tuple(axes[i] for i in indices)))
            else:
                things.append(Thing(name, obstacle=f"the observable {name} is a Python function: an event needs an expression"))
        things += [Thing(i.name, index=i) for i in axes]
        return cls({thing.name: thing for thing in things}, axes, {i.name: kind for i, kind in system.boundary.items()}, system)

    def choices(self) -> list[str]:
        """The names that can be used."""
        return [name for name, thing in self.things.items() if not thing.obstacle]


# sympy writes 2**(10**9) out, digit for digit, before anybody can stop it
LARGEST_POWER = 100
MOST_BITS = 1000  # of the integers in an expression: sympy computes with all of their digits
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow,
}  # fmt: skip
PLAIN: dict[str, Callable[..., float]] = {
    "abs": abs, "sqrt": math.sqrt,
    **{name: getattr(math, name) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp", "log", "sin", "sinh", "tan", "tanh",
    )},
}  # fmt: skip


class NumberError(Exception):
    """A number that is not finite, or too large to compute with; the message is a sentence."""


def number(text: str) -> Expr:
    """A literal: a whole number of up to 15 digits is exact, every other one a float."""
    if text.isdigit() and len(text) <= 15:
        return sp.Integer(text)
    return finite(float(text), text)


def operate(sign: str, a: Expr, b: Expr) -> Expr:
    """a sign b. Raises NumberError."""
    if sign == "/" and b == 0:
        raise NumberError("this divides by 0")
    if sign == "**" and b.is_number and abs(b) > LARGEST_POWER:
        raise NumberError(f"a power of more than {LARGEST_POWER} is too large")
    if a.is_Rational and b.is_Rational and (sign != "**" or (b.is_Integer and (a != 0 or b >= 0))):
        return checked(OPERATORS[sign](a, b))
    if a.is_number and b.is_number:
        return computed(lambda: OPERATORS[sign](float(a), float(b)), f"{float(a):g} {sign} {float(b):g}")
    return checked(OPERATORS[sign](a, b))


def call(name: str, function: Callable[..., Any], *arguments: Expr) -> Expr:
    """function(*arguments). Raises NumberError."""
    if all(x.is_number for x in arguments):
        values = [float(x) for x in arguments]
        what = f"{name}({', '.join(f'{x:g}' for x in values)})"
        return computed(lambda: PLAIN[name](*values) if name in PLAIN else complex(function(*arguments).evalf()), what)
    return checked(function(*arguments))


def extreme(name: str, parts: tuple[Expr, ...]) -> Expr:
    """max or min of these. sympy is not asked which is larger: of long expressions that takes minutes."""
    if all(e.is_number for e in parts):
        return (max if name == "max" else min)(parts, key=float)
    return (sp.Max if name == "max" else sp.Min)(*parts, evaluate=False)


def computed(value: Callable[[], Any], what: str) -> Expr:
    """The finite number that value() gives, as a Float. Raises NumberError."""
    try:
        return finite(value(), what)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise NumberError(f"{what} is not a finite number") from None


def finite(value: Any, what: str) -> Expr:
    """A float, or a complex number that is real, as an expression. Raises NumberError for any other one, infinite and nan too."""
    if value.imag or not math.isfinite(value.real):
        raise NumberError(f"{what} is not a finite number")
    return sp.Float(value.real)


def checked(e: Any) -> Expr:
    """e, if its numbers are finite and not too long. Raises NumberError."""
    if e.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise NumberError("this is not a finite number")
    if any(max(abs(n.p), n.q).bit_length() > MOST_BITS for n in e.atoms(sp.Rational)):
        raise NumberError("a number becomes too large")
    return e


# bounds far above what people type. Without them a text of 10^5 brackets ends in a RecursionError of Python's, and sympy's printers recurse
# several frames for each of ours.
LONGEST, DEEPEST, MOST_ARGUMENTS = 1000, 40, 8
FUNCTIONS: dict[str, Callable[..., Any]] = {
    # sympy would ask of its argument whether it is real, positive, ..., which takes minutes for long sums
    "abs": partial(sp.Abs, evaluate=False),
    "lambertw": sp.LambertW, "lambertw_lower": lambda x: sp.LambertW(x, -1),
    **{name: getattr(sp, name) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp", "log", "sin", "sinc",
        "sinh", "sqrt", "tan", "tanh",
    )},
}  # fmt: skip
PAIRS: dict[str, Callable[[Any, Any], Any]] = {"binomial": sp.binomial, "mod": sp.Mod}
"""Functions of two arguments."""
OVER = ("max", "min", "sum")
SPEED = "speed"
MOVES = sp.Dummy("speed", nonnegative=True)  # in its place while a text is read: right-hand sides may hold what a text may not, as nan
CALLS = tuple(sorted((*FUNCTIONS, *PAIRS, *OVER, SPEED)))


def speed(system: System) -> Expr:
    """How fast all states v of a System move, by their size: sqrt(sum of (dv/dt)^2 / (1 + sum of v^2)).

    Of a Map the change by an update takes the place of dv/dt.
    """
    totals = [sp.S.Zero, sp.S.One]
    for key, rhs in system.equations.items():
        axes = [(i, system.axes[i]) for i in key_indices(key)]
        for k, f in enumerate((rhs - key if system.discrete else rhs, key)):
            totals[k] += over(sp.Sum, f**2, *axes) if axes else f**2
    return sp.sqrt(totals[0] / totals[1])


def parse_expression(text: str, start: int, names: Names, fail: Callable[[int, str], NoReturn]) -> Expr:
    """The expression in text from the place `start` on. fail: called with the place of a mistake and a sentence; it raises."""
    return Reader(text, start, names, fail).whole()


class Reader:
    """The reading of one text."""

    def __init__(self, text: str, start: int, names: Names, fail: Callable[[int, str], NoReturn]):
        if len(text) > LONGEST:
            fail(LONGEST, f"the expression has {len(text)} characters, and {LONGEST} are the most")
        self.names, self.fail, self.depth = names, fail, 0
        self.tokens = list(tokens(text, start, fail))
        self.next = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.next]

    def take(self, *texts: str) -> Token | None:
        """The next token, if it is one of these signs."""
        token = self.here
        if token.kind != "sign" or token.text not in texts:
            return None
        self.next += 1
        return token

    def need(self, text: str, of: Token) -> None:
        """Passes over a sign that has to be there, to close `of`."""
        if self.take(text) is None:
            self.fail(self.here.at, f"{text!r} is missing, to close the {of.text!r} at character {of.at + 1}{self._instead()}")

    def _instead(self) -> str:
        return "" if self.here.kind == "end" else f"; {shorten(self.here.text, 40)!r} stands there"

    def whole(self) -> Expr:
        """The whole text as one expression."""
        e = self.sum()
        if self.here.kind != "end":
            self.fail(self.here.at, f"an operator is missing before {shorten(self.here.text, 40)!r}")
        return e.xreplace({MOVES: speed(self.names.system)}) if MOVES in e.free_symbols else e

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """A context: one more level of brackets or exponents."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(self.here.at, f"the expression is nested more than {DEEPEST} deep")
        yield
        self.depth -= 1

    def sum(self) -> Expr:
        with self.deeper():
            return self.chain(("+", "-"), self.term)

    def term(self) -> Expr:
        return self.chain(("*", "/"), self.sign)

    def chain(self, signs: tuple[str, ...], operand: Callable[[], Expr]) -> Expr:
        """Operands with these signs between them, computed from left to right."""
        e = operand()
        while sign := self.take(*signs):
            e = self.compute(sign, partial(operate, sign.text, e, operand()))
        return e

    def sign(self) -> Expr:
        negative = False
        while sign := self.take("+", "-"):
            negative ^= sign.text == "-"
        e = self.power()
        return -e if negative else e

    def power(self) -> Expr:
        base = self.atom()
        if (sign := self.take("**")) is None:
            return base
        with self.deeper():
            return self.compute(sign, lambda: operate("**", base, self.sign()))

    def atom(self) -> Expr:
        token = self.here
        self.next += token.kind != "end"
        if token.kind == "number":
            return self.compute(token, lambda: number(token.text))
        if token.text == "(":
            e = self.sum()
            self.need(")", token)
            return e
        if token.kind != "name":
            self.fail(token.at, f"a number, a name or a bracket is missing{'' if token.kind == 'end' else f' before {token.text!r}'}")
        if self.here.text == "(":
            return self.call(token)
        if token.text == "pi" and "pi" not in self.names.things:
            return self.compute(token, lambda: number(repr(math.pi)))
        thing = self.thing(token)
        if self.here.text == "[":
            return self.element(token, thing)
        if thing.index:
            self.fail(token.at, f"{token.text} is an index: it stands in [brackets] of an array")
        if thing.extents:
            name = token.text
            self.fail(token.at, f"{name} is an array: write {thing.example} for its components, or sum({name}), max({name}), min({name})")
        return thing.at(())

    def thing(self, token: Token) -> Thing:
        """The Thing that a name stands for."""
        if token.text not in self.names.things:
            if token.text in CALLS:
                self.fail(token.at, f"{token.text} is a function: write {token.text}(...)")
            choices = self.names.choices()
            hint = nearest(token.text, [*choices, *CALLS])
            self.fail(token.at, f"no name {shorten(token.text, 40)!r}; choose from {', '.join(choices)}{hint}")
        thing = self.names.things[token.text]
        if thing.obstacle:
            self.fail(token.at, thing.obstacle)
        return thing

    def element(self, token: Token, thing: Thing) -> Expr:
        """Parses NAME[index, ...]."""
        bracket = self.take("[")
        assert bracket is not None
        if not thing.extents:
            self.fail(bracket.at, f"{token.text} is {'an index' if thing.index else 'a number'} and has no indices")
        indices = [self.index(thing, 0)]
        while self.take(","):
            indices.append(self.index(thing, len(indices)))
        self.need("]", bracket)
        if len(indices) != len(thing.extents):
            self.fail(bracket.at, f"{token.text} has {counted(len(thing.extents), 'index', 'indices')}: write {thing.example}")
        return thing.at(tuple(indices))

    def index(self, thing: Thing, place: int) -> Any:
        """One index of an array: its name, a whole number, or an element of an index parameter."""
        token = self.here
        if place >= len(thing.extents):
            self.fail(token.at, f"there are too many indices: write {thing.example}")
        extent = thing.extents[place]
        self.next += token.kind != "end"
        if token.kind == "number" and token.text.isdigit() and len(token.text) < 16:
            return sp.Integer(token.text)
        fits = [i.name for i, n in self.names.axes.items() if sp.expand(n - extent) == 0]
        hint = f"write a whole number from 0{f' or {fits[0]}' if fits else ''}"
        if token.kind != "name":
            self.fail(token.at, f"an index is missing: {hint}")
        other = self.thing(token) if token.text in self.names.things else Thing(token.text)
        if other.index and token.text in fits:
            return self.shifted(token, other.index, extent)
        if other.indexes is not None and self.here.text == "[" and sp.expand(other.indexes - extent) == 0:
            return self.element(token, other)
        self.fail(token.at, f"{shorten(token.text, 40)} is no index of this axis, which has {extent} places: {hint}")

    def shifted(self, token: Token, i: Symbol, extent: Any) -> Any:
        """The index i, or its neighbour i + NUMBER."""
        sign = self.take("+", "-")
        if sign is None:
            return i
        number = self.here
        self.next += number.kind == "number"
        if number.kind != "number" or not number.text.isdigit() or len(number.text) > 9:
            self.fail(number.at, f"a whole number is missing: write {i} {sign.text} 1")
        if i.name not in self.names.boundary:
            self.fail(sign.at, f"the model does not say what stands beyond the ends of {i}: its System needs boundary={{{i}: ...}}")
        kind = BOUNDARIES[self.names.boundary[i.name]]
        return kind(i, int(f"{sign.text}{number.text}"), extent)

    def call(self, token: Token) -> Expr:
        """Parses FUNCTION(sum, ...)."""
        bracket = self.take("(")
        assert bracket is not None
        if token.text not in CALLS:
            self.fail(token.at, f"no function {shorten(token.text, 40)!r}; choose from {', '.join(CALLS)}{nearest(token.text, CALLS)}")
        if token.text in OVER:
            return self.reduction(token, bracket)
        if token.text == SPEED:
            self.need(")", bracket)
            return MOVES
        arguments, function = [self.sum()], FUNCTIONS.get(token.text) or PAIRS[token.text]
        if token.text in PAIRS:
            if self.take(",") is None:
                self.fail(token.at, f"{token.text}() takes two arguments")
            arguments.append(self.sum())
        self.need(")", bracket)
        if token.text == "mod" and arguments[1].is_zero:
            self.fail(token.at, "mod() divides by 0")
        return self.compute(token, lambda: call(token.text, function, *arguments))

    def reduction(self, token: Token, bracket: Token) -> Expr:
        """sum, max or min over indices; max(a, b) and min(a, b) are the larger and the smaller."""
        (first, free), others, chosen = self.argument(), list[Expr](), list[Symbol]()
        while self.take(","):
            thing = self.names.things.get(self.here.text)
            if thing and thing.index is not None and not others:
                self.next += 1
                chosen.append(thing.index)
            else:
                others.append(self.sum())
        self.need(")", bracket)
        if others and (chosen or token.text == "sum" or len(others) >= MOST_ARGUMENTS):
            more = "" if token.text == "sum" else f", or 2 to {MOST_ARGUMENTS} expressions"
            self.fail(token.at, f"{token.text}() takes one expression and the indices to go over{more}")
        if others:
            return extreme(token.text, (first, *others))
        if missing := [k for k in chosen if k not in free]:
            self.fail(token.at, f"{token.text}() goes over {missing[0]}, which its expression does not have")
        if not free:
            self.fail(token.at, f"{token.text}() of one number: give it an array, or an expression with an index, such as v[l]")
        axes = [(k, extent) for k, extent in free.items() if not chosen or k in chosen]
        if token.text == "sum":
            return over(sp.Sum, first, *axes)
        return over(MaxOver, first, *axes) if token.text == "max" else -over(MaxOver, -first, *axes)

    def argument(self) -> tuple[Expr, Mapping[Symbol, Any]]:
        """The first argument of sum, max or min, an expression or the plain name of an array; and its free indices."""
        token = self.here
        if token.kind == "name" and self.tokens[self.next + 1].text in (")", ",") and token.text in self.names.things:
            thing = self.thing(token)
            if thing.extents:
                self.next += 1
                indices = thing.indices or index(" ".join(f"i{n}" for n in range(len(thing.extents))))
                return thing.at(indices), dict(zip(indices, thing.extents, strict=True))
        e = self.sum()
        free = free_indices(e, set(self.names.axes))
        return e, {i: extent for i, extent in self.names.axes.items() if i in free}

    def compute(self, token: Token, value: Callable[[], Expr]) -> Expr:
        """value(), whose mistakes are at this token."""
        try:
            return value()
        except NumberError as error:
            self.fail(token.at, str(error))
