"""Prints the text of a step as the driver of one small system by one method: stages and components written out, in registers.

The driver of all systems and methods (one_system.py) calls a right-hand side by its address, and adds stages by loops over any number of
terms and components. For four components that is two thirds of the time; written out, a step takes a third of it. But this driver is
compiled for each system, its sizes and the method, .15 s or more: only a run that is long already goes on with it (drive.py).

It goes on in the memory of the other one, with the same bits. What follows an accepted step reads that memory and is the same text. So a
step leaves its state and last stage there, and those of its stages that an interpolant needs where it is asked for one.
"""

from collections.abc import Sequence
from dataclasses import replace

from odesim.base.parsing import margin
from odesim.ir.scalars import WrittenRight
from odesim.stepper.lanes import Kinds, Written
from odesim.stepper.one_system import KINDS, Printer, driver_of
from odesim.stepper.readers import Switches, explicit_reader
from odesim.stepper.statements import Row, Stages, Statement, flat
from odesim.stepper.tableau import Method
from odesim.stepper.taylor import Taylor

TABLED = ("LAST", "ALL", "A", "C", "E", "SAVES")
"""What the text that follows a step looks up in the memory of the run, for it is that of every method."""


class Registers(Written):
    """A step of one system between loads of what it reads and stores of what the driver reads."""

    params: Sequence[str] = ()

    def at(self, row: Row, d: int = 0) -> str:
        return self.params[d] if row == "p" else f"{row_of(row)}[{d}]"


def row_of(row: Row) -> str:
    """The name of the memory of a row."""
    return f"{row}_row" if isinstance(row, str) else f"{row[0]}{row[1]}_row"


class WrittenOut(Printer):
    """Prints the driver of a right-hand side by a method. by_state: each state has its own absolute tolerance."""

    def __init__(self, right: WrittenRight, method: Method, switches: Switches, by_state: bool) -> None:
        self.exact = explicit_reader(method, Switches(adaptive=switches.adaptive), by_state=by_state)
        known = {**self.exact.known, **switches.known}
        super().__init__(replace(KINDS["explicit"], known={k: v for k, v in known.items() if k not in TABLED}), by_state)
        self.places, self.last, self.events, self.by_state = driver_of("explicit", by_state).numbers, method.last, switches.events, by_state
        self.series, self.adaptive = isinstance(method, Taylor), switches.adaptive
        n = right.formulas.states
        rows: dict[Row, range] = {"y": range(n), ("k", 0): range(n), "p": range(right.formulas.count)}
        rows.update({"atol": range(n)} if by_state else {})
        self.step = Registers(self.exact, 1, n, rows, {"n": str(n)}, Kinds(right.formulas.dtype))
        self.step.params = right.params

    def _part(self, name: str, statements: list[Statement]) -> list[str]:
        if name in ("begin", "first"):  # a run has begun
            return ["pass"]
        if name == "aim" and self.series:
            reach = self.step.lines(self.exact.read("reach")) if self.adaptive else []
            return [*self._places(), *reach, *super()._part(name, statements)]
        return self._stepped(statements) if name == "step" else super()._part(name, statements)

    def _stepped(self, statements: list[Statement]) -> list[str]:
        """Lines of a step and its judgement."""
        # what follows the first loop over stages: those for the interpolant alone, evaluated by address where they are needed
        dense = [s for s in statements if any(isinstance(part, Stages) for part in flat([s]))][-1:]
        needed = [*self._stored(*(("k", j) for j in range(1, self.last)))] or ["pass"]
        if self.series:
            needed = [*self.step.lines(self.exact.read("within")), *needed]
        return [
            *([] if self.series else self._places()),
            *self.step.lines(self.exact.read("step")),
            f"calls = calls + {float(self.last)}",
            *self._stored("z", ("k", self.last)),
            *(needed if self.events else ["if due < new:", *margin(needed)]),
            *self._lines([*dense, *self.reader.read("judge")]),
        ]

    def _places(self) -> list[str]:
        """Lines that name the memory of rows."""
        places = [f"{row}_row = doubles({row})" for row in ("y", "z", *(["atol"] if self.by_state else []))]
        return places + [f"k{j}_row = doubles(at[K] + order[{j}] * row)" for j in range(self.last + 1)]

    def _stored(self, *rows: Row) -> list[str]:
        """Lines that store components of rows."""
        return [f"{row_of(row)}[{d}] = {self.step.local(row, d)}" for row in rows for d in range(self.step.n)]


def written_text(right: WrittenRight, method: Method, switches: Switches, by_state: bool) -> str:
    """The text of the driver and its right-hand side, which follows the text of what all drivers call."""
    driver = WrittenOut(right, method, switches, by_state).driver()
    series = [right.series(method.order)] if isinstance(method, Taylor) else []
    return "\n\n\n".join([right.text, *series, driver.text, 'run = njit("int64(int64)", **options)(run)\n'])
