"""Prints the statements of a step for W members that run side by side, with loops over their components.

A row of the state is a loop and the numbers lie in memory: the text does not depend on the system, whose right-hand side is called by
address. Lanes that are written out (lanes.py) take two thirds of the time at 4 states. Loops compile once for all systems, and from some
hundred operations on they are faster than waiting for the compiler.
"""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from odesim.base.parsing import margin
from odesim.runtime.constants import LANES, SEQUENCE
from odesim.stepper.lanes import SPARE, Placed, comb_in, function
from odesim.stepper.statements import (
    Comb,
    Do,
    Each,
    If,
    Let,
    Out,
    Reader,
    Right,
    Row,
    Statement,
    Sum,
    Take,
    While,
    copied,
    exposed,
    flat,
    names_in,
    reads_writes,
    written,
)

Lines = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Place:
    """Where a known system of at most 64 components has its memory.

    there {row: its first row of W}: rows that lie elsewhere already; others begin at `first`. numbers {name: text}: those that are no rows.
    jacobian: how many numbers such a row takes.
    """

    there: Mapping[Row, int] = field(default_factory=dict)
    first: int = 0
    numbers: Mapping[str, str] = field(default_factory=dict)
    jacobian: int = 0


class Looped:
    """Lanes with loops over the components, n of which are known when run.

    A row of the state takes `capacity` rows of W: all rows then lie at constant distances, so that the compiler sees that they do not
    overlap and makes vectors of every loop. arguments: names that all members share, which are arguments of the functions. head: lines that
    define what the functions use besides: n, and clock, the component that holds the time, or -1. right(at, state, stage) evaluates the
    right-hand side, from the places of two rows of the state. place: of a system that is known.
    """

    def __init__(
        self, reader: Reader, width: int, capacity: int, arguments: Sequence[str], head: Sequence[str], strict: bool,
        place: Place | None = None,
    ) -> None:  # fmt: skip
        self.reader, self.width, self.capacity, self.arguments = reader, width, capacity, arguments
        self.place, self.few = place or Place(), place is not None
        self.numbers = {"COMPONENT": f"(i // {width})", **self.place.numbers}
        self.head, self.strict, self.common = head, strict, {"n", *arguments, *self.numbers}
        read, saves = reader.read, bool(reader.known["SAVES"])
        self.phases = {"begin": read("begin"), "step": read("aim", "step", "judge", *([] if saves else ["accept"]))}
        self.phases |= {"accept": read("accept")} if saves else {}
        self.single = {"first_save": read("first_save"), "save": read("save")} if saves else {}
        self.single |= {"look": read("look")} if "look" in reader.text.functions else {}
        self.places = self._places()

    # ---- memory

    def _places(self) -> dict[Row, int]:
        """{row: its first row of W}: numbers that one loop over lanes leaves for another, then the rows of the state."""
        every = [*self.phases.values(), *self.single.values()]
        vectors: set[Row] = {"y", ("k", 0)}
        vectors |= {row for phase in every for row in self._vectors(phase)}
        numbers = {"t", "code", "steps", "rejected"}.union(*(self._exposed(phase) for phase in self.single.values()))
        for phase in self.phases.values():
            numbers |= self._left(phase)
        places, count = dict(self.place.there), self.place.first
        named = [r for r in numbers if isinstance(r, str) and r not in self.reader.text.rows]
        for number in sorted(set(named) - places.keys()):
            places[number], count = count, count + 1
        self.partial, count = count, count + (0 if self.few else LANES)
        for row in sorted(vectors - places.keys(), key=str):
            places[row] = count
            count += self.length(row)
        self.count = count
        return places

    def length(self, row: Row) -> int:
        """How many rows of W a row of the text takes."""
        return self.place.jacobian if isinstance(row, str) and self.reader.text.rows[row] == "jacobian" else self.capacity

    def _vectors(self, statements: Iterable[Statement]) -> set[Row]:
        """The rows of the state that statements name; SPARE too, for states of stages that are not named."""
        out: set[Row] = set()
        for s in flat(statements):
            out |= {r for part in reads_writes(s) for r in part if isinstance(r, tuple) or r in self.reader.text.rows}
            out |= {SPARE} if isinstance(s, Right) and isinstance(s.state, Comb) and not s.keep else set()
        return out - {"p"}

    def read_by_right(self) -> list[Row]:
        """The rows of the state at which the right-hand side is evaluated."""
        every = [s for phase in (*self.phases.values(), *self.single.values()) for s in flat(phase) if isinstance(s, Right)]
        return sorted({s.state.id if isinstance(s.state, ast.Name) else s.keep or SPARE for s in every})

    def begun(self) -> list[tuple[int, str]]:
        """(place in lane 0, text) of the numbers that every member begins with, known without its state."""
        lets = [s for s in self.phases["begin"] if isinstance(s, Let) and not self._exposed([s]) and len(s.names) == 1]
        return [(self.places[s.names[0]] * self.width, self._value(s.value)) for s in lets if s.names[0] in self.places]

    def _exposed(self, statements: Iterable[Statement]) -> set[Row]:
        return exposed(statements) - self.common

    def _left(self, statements: Iterable[Statement]) -> set[Row]:
        """Numbers that one group of statements reads and another has set, and sums."""
        out: set[Row] = set()
        for group in self._groups(statements):
            out |= self._exposed(group) | {s.name for s in group if isinstance(s, Sum)}
            out |= self._left(group[0].yes) if isinstance(group[0], If) else set()
        return out

    def _groups(self, statements: Iterable[Statement]) -> list[list[Statement]]:
        """Runs of scalar statements, which share a loop over lanes; every other statement is alone."""
        groups: list[list[Statement]] = []
        for s in statements:
            if isinstance(s, Let) and groups and isinstance(groups[-1][0], Let):
                groups[-1].append(s)
            else:
                groups.append([s])
        return groups

    def at(self, row: Row, inside: str = "") -> str:
        """The text of a number of lane l; inside: the place in a row of the state, such as `i + `."""
        first = self.places[row] * self.width
        return f"S[{f'{first} + ' if first else ''}{inside}l]"

    # ---- expressions

    def _text(self, e: ast.expr, number: Callable[[str], str]) -> str:
        """An expression for component i // W of lane l."""
        place = Placed(
            self.reader.text.rows, lambda row: self.at(row, "i + "), lambda x: self.numbers.get(x, number(x)), self._comb(number)
        )
        return ast.unparse(place.visit(copied(e)))

    def _comb(self, number: Callable[[str], str]) -> Callable[[Comb], str]:
        def comb(c: Comb) -> str:
            factor = self._text(c.factor, number) if c.factor is not None else ""
            base = self.at(c.base, "i + ") if c.base else ""
            terms = [(self._text(w, number), self.at(("k", j), "i + ")) for j, w in c.terms]
            known = all(isinstance(w, ast.Constant) for _, w in c.terms)
            if self.strict or not known or not factor:
                products = [f"({factor} * {w}) * {k}" if factor else f"{w} * {k}" for w, k in terms]
                return "(" + " + ".join([*([base] if base else []), *products]) + ")"
            # memory is what this costs: one product a term less
            total = f"{factor} * ({' + '.join(f'{w} * {k}' for w, k in terms)})"
            return f"({base} + {total})" if base else f"({total})"

        return comb

    def _lane_number(self, x: str) -> str:
        """A number where it is used beside rows: in its place, if it has one."""
        return self.at(x) if x in self.places else x

    # ---- all lanes

    def _over_lanes(self, lines: list[str]) -> list[str]:
        return [f"for l in range({self.width}):", *margin(lines)] if lines else []

    def _nest(self, lines: list[str], count: int | str = "n") -> list[str]:
        return [f"for i in range(0, {count} * {self.width}, {self.width}):", *margin(self._over_lanes(lines))]

    def _loads(self, names: Iterable[Row]) -> list[str]:
        there = sorted(x for x in names if isinstance(x, str) and x in self.places and x not in self.reader.text.rows)
        return [f"{x} = {self.at(x)}{' != 0.0' if x in self.reader.logical else ''}" for x in there]

    def _stores(self, names: Iterable[Row]) -> list[str]:
        there = [x for x in names if isinstance(x, str) and x in self.places and x not in self.reader.text.rows]
        return [f"{self.at(x)} = {f'1.0 if {x} else 0.0' if x in self.reader.logical else x}" for x in there]

    def _value(self, e: ast.expr) -> str:
        return self._text(e, lambda x: x)

    def _lets(self, group: Sequence[Statement]) -> list[str]:
        lines = self._loads(self._exposed(group))
        for s in group:
            assert isinstance(s, Let)
            lines += [f"{', '.join(s.names)} = {self._value(s.value)}", *self._stores(s.names)]
        return lines

    def _lines(self, statements: Iterable[Statement]) -> list[str]:
        """Statements for all lanes."""
        out: list[str] = []
        for group in self._groups(statements):
            s = group[0]
            value = lambda e: self._text(e, self._lane_number)  # noqa: E731
            if isinstance(s, Let):
                out += self._over_lanes(self._lets(group))
            elif isinstance(s, Sum):
                out += self._sum(s, value(s.value))
            elif isinstance(s, Right):
                out += self._right(s, self._nest, self._over_lanes)
            elif isinstance(s, Each):
                out += self._nest([f"{self.at(s.row, 'i + ')} = {value(s.value)}"])
            elif isinstance(s, Take):
                row, count = self.at(s.row, "i + "), self.length(s.row)
                line = f"{row} = {self.at(s.source, 'i + ')} if {self.at(s.when)} != 0.0 else {row}"
                out += self._nest([line], "n" if count == self.capacity else count)
            elif isinstance(s, Do):
                out += self._do(s)
            elif isinstance(s, If):  # if any lane wants it; what is inside does no harm to the others
                wants = [*self._loads(names_in(s.test)), f"wanted += 1 if {self._value(s.test)} else 0"]
                out += ["wanted = 0", *self._over_lanes(wants), "if wanted > 0:", *margin(self._lines(s.yes))]
            else:
                raise TypeError(s)
        return out

    def _sum(self, s: Sum, value: str) -> list[str]:
        """A sum in the one order of all targets (odesim.runtime.sums): up to 64 numbers in sequence, more in 32 parts."""
        w, first = self.width, self.partial * self.width
        if self.few:
            return [*self._over_lanes([f"{self.at(s.name)} = 0.0"]), *self._nest([f"{self.at(s.name)} += {value}"])]
        return [
            f"parts = {LANES * w} if n > {SEQUENCE} else {w}",
            "for i in range(parts):",
            f"    S[{first} + i] = 0.0",
            *self._nest([f"S[{first} + (i & (parts - {w})) + l] += {value}"]),
            f"while parts > {w}:",
            "    parts //= 2",
            "    for i in range(parts):",
            f"        S[{first} + i] += S[{first} + parts + i]",
            *self._over_lanes([f"{self.at(s.name)} = S[{first} + l]"]),
        ]

    def _right(self, s: Right, nest: Lines, lanes: Lines) -> list[str]:
        lines, state = [], s.state.id if isinstance(s.state, ast.Name) else s.keep or SPARE
        if isinstance(s.state, Comb):
            lines = nest([f"{self.at(state, 'i + ')} = {self._text(s.state, self._lane_number)}"])
        return [*lines, *self._evaluate(s.row, s.time, state, lanes)]

    def _evaluate(self, row: Row, at: ast.expr, state: Row, lanes: Lines) -> list[str]:
        """Lines for the right-hand side itself."""
        time = [*self._loads(names_in(at)), f"S[{self.places[state] * self.width} + clock * {self.width} + l] = {self._value(at)}"]
        call = f"right(at, {self.places[state] * self.width}, {self.places[row] * self.width})"
        return ["if clock >= 0:", *margin(lanes(time)), call]

    def _do(self, s: Do) -> list[str]:
        raise TypeError(s)

    # ---- one lane

    def _one(self, statements: Iterable[Statement]) -> list[str]:
        """Statements for lane l alone; a right-hand side is that of all lanes, whose other results nobody reads."""
        out: list[str] = []
        for s in statements:
            nest = lambda lines: [f"for i in range(0, n * {self.width}, {self.width}):", *margin(lines)]  # noqa: E731
            match s:
                case Let():
                    out.append(f"{', '.join(s.names)} = {self._value(s.value)}")
                case Sum():
                    out += [f"{s.name} = 0.0", *nest([f"{s.name} += {self._value(s.value)}"])]
                case Right():
                    out += self._right(s, nest, list)
                case Each():
                    out += nest([f"{self.at(s.row, 'i + ')} = {self._value(s.value)}"])
                case Out():
                    comb = comb_in(s.value)
                    out += [f"w{j} = {self._value(w)}" for j, w in comb.terms] if comb else []
                    value = Comb(comb.base, comb.factor, [(j, ast.Name(f"w{j}")) for j, _ in comb.terms]) if comb else s.value
                    out += nest([f"out[(m * saves + int({s.place})) * n + i // {self.width}] = {self._value(value)}"])
                case If():
                    out += [f"if {self._value(s.test)}:", *margin(self._one(s.yes))]
                    out += ["else:", *margin(self._one(s.no))] if s.no else []
                case While():
                    out += [f"while {self._value(s.test)}:", *margin(self._one(s.body))]
                case _:
                    raise TypeError(s)
        return out

    # ---- functions

    def functions(self) -> list[str]:
        """begin, step and accept of all lanes; save and look of lane l, whose member is m."""
        arguments, out = ", ".join(["S", "at", *self.arguments]), []
        for phase, statements in self.phases.items():
            lines = self._lines(statements)
            if phase == "step":
                counts = [f"ended += 0 if {self.at('code')} == 0.0 else 1"]
                if "save" in self.single:
                    counts.append(f"due += 1 if {self.at('accept')} != 0.0 and {self.at('due')} <= {self.at('new')} else 0")
                lines = ["ended, due = 0, 0", *lines, *self._over_lanes(counts), "return ended, due"]
            out.append(function(f"{phase}({arguments})", [*self.head, *lines]))
        needed = {"code"}.union(*(self._exposed(phase) for phase in (*self.phases.values(), *self.single.values())))
        for phase, statements in self.single.items():
            keeps = sorted(written(statements) & needed, key=str)
            lines = [*self._loads(self._exposed(statements)), *self._one(statements), *self._stores(keeps)]
            more = "" if phase == "look" else "out, save, saves, "
            out.append(function(f"{phase}_lane(S, l, m, {more}{', '.join(['at', *self.arguments])})", [*self.head, *lines]))
        return out
