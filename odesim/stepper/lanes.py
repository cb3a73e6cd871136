"""Prints the statements of a step for W members that run side by side, in "lanes": number r of lane l is S[r*W + l].

There are two plans. Written out, which is this one, each component has names of its own, and all between a load and a store stays in
registers: these are worth a third of the time at W = 8 (joma.nonlinear, 4 states). The other has loops (looped.py).
"""

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from odesim.base.parsing import margin, parse
from odesim.runtime.constants import LANES, SEQUENCE
from odesim.stepper.control import slant
from odesim.stepper.statements import (
    Comb,
    Do,
    Each,
    If,
    Let,
    Reader,
    Right,
    Row,
    Statement,
    Sum,
    Take,
    While,
    copied,
    exposed,
    reads_writes,
    stage_of,
)

SPARE = "x"
"""The row of the state where the state of a stage lies that has no name in the text."""


@dataclass
class Placed(ast.NodeTransformer):
    """An expression with the text of its place for every row, number and combination."""

    rows: Collection[str]
    row: Callable[[Row], str]
    number: Callable[[str], str]
    comb: Callable[[Comb], str]
    component: int | None = None

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.row(node.id) if node.id in self.rows else self.number(node.id))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        row = stage_of(node)
        return ast.Name(self.row(row)) if row[0] in self.rows else super().generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == "slant" and self.component is not None:
            return ast.Constant(slant(self.component))
        arguments = [self.visit(a) for a in node.args]
        if isinstance(node.func, ast.Name) and node.func.id == "grid":  # the saved time of this number, infinity after the last
            place = f"int({ast.unparse(arguments[0])})"
            return parse(f"save[{place}] if {place} < saves else inf", "eval").body
        return ast.Call(node.func, arguments, [])

    def visit_Comb(self, node: Comb) -> ast.Name:
        return ast.Name(self.comb(node))


def comb_in(e: ast.expr) -> Comb | None:
    """The combination in an expression, which has at most one."""
    return next((n for n in ast.walk(e) if isinstance(n, Comb)), None)


def function(head: str, lines: Iterable[str], how: str = "kernel") -> str:
    """The text of a compiled function. how: its decorator."""
    return "\n".join([f"@{how}", f"def {head}:", *margin(lines)])


@dataclass(frozen=True)
class Kinds:
    """The types of numbers that are written out. doubles: parameters that are float64 whatever the states are.

    late: how many stages the right-hand side of one system adds to a state of float32 without rounding in between.
    """

    dtype: str
    doubles: frozenset[int] = frozenset()
    late: int = 0

    def real(self, text: str) -> str:
        """A number in the type of the states."""
        return f"float32({text})" if self.dtype == "float32" else text

    def loaded(self, row: Row, d: int, text: str) -> str:
        """Component d of a row, from memory, where all is float64."""
        return text if row == "p" and d in self.doubles else self.real(text)

    def combined(self, base: str, terms: Sequence[tuple[str, str]], late: int = 0) -> str:
        """base + c0 k0 + c1 k1 + ..., one after another; float32 is rounded after every four, but for the last `late` of them."""
        text, early = base, len(terms) - late
        for j, (c, k) in enumerate(terms):
            text = f"({text} + {c} * {k})" if text else f"({c} * {k})"
            if j + 1 == len(terms) or (j < early and ((j + 1) % 4 == 0 or j + 1 == early)):
                text = self.real(text[1:-1])
        return text


class Written:
    """Lanes whose components are written out: all between a load and a store is a name, for a register to hold.

    places {row: its rows of S}: what is loaded before it is read, and stored when it is set. numbers: {name: text} of those that are no
    rows. A row is loaded where it is first read, not at the head: it would take a register through all stages.
    """

    def __init__(
        self, reader: Reader, width: int, n: int, places: Mapping[Row, Sequence[int]], numbers: Mapping[str, str], kinds: Kinds
    ) -> None:
        self.reader, self.width, self.n, self.places, self.numbers, self.kinds = reader, width, n, places, numbers, kinds

    def at(self, row: Row, d: int = 0) -> str:
        """The text of a number of lane l."""
        first = self.places[row][d] * self.width
        return f"S[{first} + l]" if first else "S[l]"

    def local(self, row: Row, d: int) -> str:
        """The name of component d."""
        return f"{row}{d}" if isinstance(row, str) else f"{row[0]}{row[1]}_{d}"

    def lines(self, statements: Sequence[Statement], stores: Collection[Row] = ()) -> list[str]:
        """Statements for lane l; stores: the rows that are stored when they are set."""
        waiting, out = exposed(statements) & set(self.places), list[str]()
        for s in statements:
            now = waiting & reads_writes(s)[0]
            out += [*self._loads(now), *self._statement(s, stores)]
            waiting -= now
        return out

    def _inner(self, statements: Iterable[Statement], stores: Collection[Row]) -> list[str]:
        """A block of a statement before which all that it reads was loaded: in a loop a number would be that of memory again."""
        return margin(line for s in statements for line in self._statement(s, stores))

    def _loads(self, rows: Iterable[Row]) -> list[str]:
        out: list[str] = []
        for row in sorted(rows, key=str):
            if self._vector(row):
                out += [f"{self.local(row, d)} = {self.kinds.loaded(row, d, self.at(row, d))}" for d in range(len(self.places[row]))]
            else:
                out.append(f"{row} = {self.at(row)}")
        return out

    def _vector(self, row: Row) -> bool:
        return isinstance(row, tuple) or row in self.reader.text.rows

    def _stores(self, names: Iterable[str], stores: Collection[Row]) -> list[str]:
        return [f"{self.at(x)} = {x}" for x in names if x in stores]

    def _value(self, e: ast.expr, d: int = 0) -> str:
        rows = self.reader.text.rows
        place = Placed(rows, lambda row: self.local(row, d), lambda x: self.numbers.get(x, x), lambda c: self._comb(c, d), d)
        return ast.unparse(place.visit(copied(e)))

    def _comb(self, c: Comb, d: int) -> str:
        base = self.local(c.base, d) if c.base else self.empty
        return f"({self.kinds.combined(base, [(f'c{j}', self.local(('k', j), d)) for j, _ in c.terms], self._late)})"

    _late, empty = 0, "0.0"  # what a combination without a base begins with: a Map has no -0

    def _weights(self, e: ast.expr) -> list[str]:
        """Lines that set c_j = factor w_j for the combination in an expression: the products come first, in both modes (see Comb)."""
        comb = comb_in(e)
        if comb is None:
            return []
        products = [(j, w if comb.factor is None else ast.BinOp(comb.factor, ast.Mult(), w)) for j, w in comb.terms]
        return [f"c{j} = {self._value(product)}" for j, product in products]

    def _statement(self, s: Statement, stores: Collection[Row]) -> list[str]:
        n = range(self.n)
        match s:
            case Let():
                return [f"{', '.join(s.names)} = {self._value(s.value)}", *self._stores(s.names, stores)]
            case Sum():
                return self._sum(s)
            case Right():
                return self._right(s, stores)
            case Each():
                return [*self._weights(s.value), *(f"{self.local(s.row, d)} = {self.kinds.real(self._value(s.value, d))}" for d in n)]
            case Take() if s.row == s.source:  # of a Map, which has no derivative to keep
                return []
            case Take():  # the names keep the old state: the search for events reads it
                old = self.at if self.reader.text.rows.get(str(s.row)) == "jacobian" else self.local
                count = range(len(self.places[s.row]))
                return [f"{self.at(s.row, d)} = {self.local(s.source, d)} if {s.when} else {old(s.row, d)}" for d in count]
            case Do():
                return self._do(s, stores)
            case If():
                out = [f"if {self._value(s.test)}:", *self._inner(s.yes, stores)]
                return [*out, "else:", *self._inner(s.no, stores)] if s.no else out
            case While():
                return [f"while {self._value(s.test)}:", *self._inner(s.body, stores)]
        raise TypeError(s)

    def _do(self, s: Do, stores: Collection[Row]) -> list[str]:
        match s:
            case Do(names, "series", [time, ast.Name(id=state)]):
                return [self._called("series", names, time, state)]
        raise TypeError(s)

    def _sum(self, s: Sum) -> list[str]:
        parts = LANES if self.n > SEQUENCE else 1
        out = [*self._weights(s.value), *(f"{s.name}_{j} = 0.0" for j in range(parts))]
        out += [f"{s.name}_{d % parts} += {self._value(s.value, d)}" for d in range(self.n)]
        while parts > 1:
            parts //= 2
            out += [f"{s.name}_{j} += {s.name}_{j + parts}" for j in range(parts)]
        return [*out, f"{s.name} = {s.name}_0"]

    def _right(self, s: Right, stores: Collection[Row]) -> list[str]:
        state, out = s.state.id if isinstance(s.state, ast.Name) else s.keep or SPARE, list[str]()
        if isinstance(s.state, Comb):
            self._late = self.kinds.late
            out += [*self._weights(s.state), *(f"{self.local(state, d)} = {self._value(s.state, d)}" for d in range(self.n))]
            self._late = 0
        return [*out, self._called("right", [s.row], s.time, state), *self._kept(s.row, stores)]

    def _called(self, function: str, rows: Sequence[Row], time: ast.expr, state: Row) -> str:
        """A line that sets rows by a function of a time and a state."""
        arguments = [self._value(time), *(self.local(state, d) for d in range(self.n)), *(f"p{q}" for q in range(len(self.places["p"])))]
        return f"{', '.join(self.local(row, d) for row in rows for d in range(self.n))}, = {function}({', '.join(arguments)})"

    def _kept(self, row: Row, stores: Collection[Row]) -> list[str]:
        """Lines that store a row that is to be stored when it is set."""
        return [f"{self.at(row, d)} = {self.local(row, d)}" for d in range(len(self.places.get(row, ())))] if row in stores else []
