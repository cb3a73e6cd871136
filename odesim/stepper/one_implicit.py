"""Prints the text of a Rosenbrock step, or of a stabilised one, as the driver of one system: elementwise loops, all else by address.

Rows are float64, whatever the type of the system. A combination of stages within an expression goes to a row of its own first (`part`).
"""

import ast
from functools import cache
from typing import Any, ClassVar

from odesim.stepper.one_system import Driver, Printer, Scalars, inner
from odesim.stepper.readers import CHECKED
from odesim.stepper.statements import Comb, Do, Each, Right, Row, Statement, Sum, Take, copied, name, names_in, unparsed

STABILISED = ("ALPHA", "BETA", "SHRINK", "GROW", "START_POWER", "MOST_STAGES", "SMALL")
METHOD = ("GAMMA", "PART", "START_POWER", "ERROR_POWER", "MOST_LESS", "SHRINK", "GROW")
TABLES = {
    "A": ("at[A] + 8 * {row} * ALL", "{row}"), "G": ("at[TO_SOLVE] + 8 * {row} * ALL", "{row}"),
    "CHECK": ("at[CHECKS]", "ALL"), "CHECK_SLOPE": ("at[CHECKS] + 8 * all_stages", "ALL"),
}  # fmt: skip
PAIRS = {"f": "f_z", "J": "J_z"}
"""Rows that take turns as the state and the new one do."""
IN_PLACE = ("drift", "restore")
"""What changes the row that it is given first."""


@cache
def implicit_driver(by_state: bool) -> Driver:
    """The driver of one system by a Rosenbrock method. by_state: each state has its own absolute tolerance."""
    known = {"IMPLICIT": True, "NOISY": False, "STABILISED": False, "LOOPS": False, "CHECKED": CHECKED}
    return _Printer("implicit", known, METHOD, TABLES, by_state).driver()


@cache
def stabilised_driver(by_state: bool) -> Driver:
    """The driver of one system by a stabilised method."""
    known = {"IMPLICIT": False, "NOISY": False, "STABILISED": True}
    return _StabilisedPrinter("stabilised", known, STABILISED, {}, by_state).driver()


class _Entries(Scalars):
    """An expression for component i: rows are read there. rows: all of the text."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "COMPONENT":
            return name("i")
        return name(f"doubles({node.id})[i]") if node.id in self.rows else super().visit_Name(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return name(f"doubles({_stage(node)})[i]") if unparsed(node.value) == "k" else super().generic_visit(node)  # type: ignore[return-value]

    def visit_Comb(self, _: Comb) -> ast.expr:
        return name("doubles(part)[i]")


class _Printer(Printer):
    """Prints statements on rows in memory: WORK holds them, the stages K, the Jacobian JACOBIANS."""

    rows: ClassVar = ("y", "z", "x", "f", "f_z", "b", "q", "unit", "within", "part")
    tables_of_stages: ClassVar = {"C": "times_of_stages", "DRIFTS": "drifts_of_stages"}

    jacobians: ClassVar = ["J, J_z = jacobian_row(at, turn), jacobian_row(at, 1.0 - turn)"]

    def _row_lines(self) -> list[str]:
        turns = ["f, f_z = at[WORK] + (3 + int(turn)) * row, at[WORK] + (4 - int(turn)) * row", *self.jacobians]
        return [line for line in super()._row_lines() if not line.startswith(("f ", "f_z "))] + turns

    def _statement(self, s: Statement) -> list[str]:
        match s:
            case Sum():
                return [*self._each("part", s.value), f"{s.name} = row_sum(at, part)"]
            case Right(row, time, state, keep):
                return [*self._each(keep, state), f"right(at, {self._number(time)}, {keep}, {self._address(row)})", "calls = calls + 1.0"]
            case Each(row, value):
                return self._each(row, value)
            case Take(row, source, _) if row in PAIRS:
                return [f"{row}, {source} = {source}, {row}"]
            case Do() if s.what not in self.watching:
                return self._do(s)
        return super()._statement(s)

    watching: ClassVar = ("begin_events", "sample_events", "find_events", "keep_samples", "begin_laws", "watch_laws")

    def _each(self, row: Row, value: ast.expr) -> list[str]:
        """Lines that set a row to an expression."""
        target = self._address(row)
        if self._is_row(value) and self._address_of(value) == target:
            return []
        if isinstance(value, Comb | ast.Name):
            return self._fill(value, target)
        combinations = [e for e in ast.walk(value) if isinstance(e, Comb)]
        lines = [line for e in combinations for line in self._fill(e, "part")]
        entry = unparsed(_Entries(self.reader.text.rows).visit(copied(value)))
        return [*lines, "for i in range(n):", *inner([f"doubles({target})[i] = {entry}"])]

    def _do(self, s: Do) -> list[str]:
        lines, arguments = list[str](), ["at"]
        for e in s.arguments:
            if self._is_row(e) and not (s.what in IN_PLACE and self._address_of(e) == self._address(s.names[0])):
                arguments.append(self._address_of(e))
            elif self._is_row(e) or names_in(e) & {*self.reader.text.rows} or any(isinstance(x, Comb) for x in ast.walk(e)):
                lines += self._each(s.names[0], e)  # goes where the result does
            else:
                arguments.append(self._number(e))
        rows = [r for r in s.names if isinstance(r, tuple) or r in self.reader.text.rows]
        numbers = [str(r) for r in s.names if r not in rows]
        call = f"{s.what}({', '.join([*arguments, *map(self._address, rows)])})"
        counted = ["calls = calls + 1.0"] if s.what == "linear" else []
        return [*lines, f"{', '.join(numbers)} = {call}" if numbers else call, *counted]

    def _is_row(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Subscript):
            return unparsed(e.value) == "k"
        return isinstance(e, ast.Name) and e.id in self.reader.text.rows

    def _address_of(self, e: ast.expr) -> str:
        return _stage(e) if isinstance(e, ast.Subscript) else unparsed(e)

    def _address(self, row: Row) -> str:
        return row if isinstance(row, str) else f"at[K] + {Scalars.names.get(str(row[1]), row[1])} * row"

    def _number(self, e: ast.expr) -> str:
        return unparsed(Scalars().visit(copied(e)))


class _StabilisedPrinter(_Printer):
    """Prints a step without linear systems."""

    rows: ClassVar = ("y", "z", "x", "f", "f_z", "w", "q", "way", "unit", "part")
    tables_of_stages: ClassVar[dict[str, str]] = {}
    jacobians: ClassVar[list[str]] = []


def _stage(e: ast.Subscript) -> str:
    return f"at[K] + {unparsed(Scalars().visit(copied(e.slice)))} * row"
