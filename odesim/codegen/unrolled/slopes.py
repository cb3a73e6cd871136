"""A right-hand side as single operations, with the partial derivatives of each by its operands.

x1 = exp(y0*y0) - p0  ->  j0 = y0*y0, j1 = exp(j0), j2 = j1 - p0;  d j0 = (y0 + y0) d y0, d j1 = j1 d j0, d j2 = d j1
"""

from collections.abc import Sequence

from odesim.ir.scalars import CodeBuilder, Formulas, Operation, is_number, parsed
from odesim.ir.slopes import Guard, derivatives, guards_of

HOLDING = ("if", "maximum", "minimum", "abs")
"""Operations that may hold a value."""
STEEP = {"sqrt": "a != 0.0", "asin": "a*a != 1.0", "acos": "a*a != 1.0", "acosh": "a != 1.0"}
"""Where a function that is a number has a slope that is one; a power a^b: where a != 0 or b >= 1."""


class Slopes:
    """The single operations of a right-hand side; `rows` has the partial derivatives of each by y0, y1, ..., t and other operations.

    rows: {operation: {name that it reads: its slope by that, a name or a number}}. outputs: the derivatives of the states, names or
    numbers.
    """

    def __init__(self, formulas: Formulas) -> None:
        self.builder = CodeBuilder("j")
        self.rows: dict[str, dict[str, str]] = {}
        known = dict[str, str]()
        for name, operation in formulas.code.items():
            known[name] = self.builder.write(operation, known, fresh=name in formulas.shifts)
        self.outputs = tuple(known.get(output, output) for output in formulas.outputs)
        shifts = {known[name] for name in formulas.shifts}
        self._held: set[str] = set()
        self._active = {"t", *(f"y{k}" for k in range(formulas.states))}
        self._guards = guards_of(self.builder.code, self.outputs)
        for name, operation in list(self.builder.code.items()):
            if operation.function in HOLDING or not self._held.isdisjoint(map(str, operation.operands)):
                self._held.add(name)
            slopes = {} if name in shifts else self._derive(name, operation)
            if slopes:
                self.rows[name] = slopes
                self._active.add(name)

    def _derive(self, name: str, operation: Operation) -> dict[str, str]:
        """The partial derivatives of an operation: 0 in a branch that is not taken, where they could be infinite."""
        found: dict[str, str] = {}
        for read, slope in derivatives(self.builder, name, operation):
            if read not in self._active:
                continue
            value = self._at_rest(operation, read, slope())
            if not is_number(value):
                value = self._taken(value, self._guards[name])
            if not _is_zero(value):
                found[read] = self.builder.plus(found[read], value) if read in found else value
        return {read: value for read, value in found.items() if not _is_zero(value)}

    def _at_rest(self, operation: Operation, read: str, slope: str) -> str:
        """The slope by what is read; 0 where a maximum holds that at a place where the operation is steep: else 0 times infinity."""
        text = "a != 0.0 or b >= 1.0" if operation.function == "pow" else STEEP.get(operation.function)
        if text is None or read not in self._held or read != operation.operands[0]:
            return slope
        smooth = self.builder.write(parsed(text), dict(zip("ab", map(str, operation.operands), strict=False)))
        return self.builder.name("if", smooth, slope, "0.0")

    def _taken(self, value: str, ways: Sequence[Guard]) -> str:
        """value if one of the paths is taken, else 0."""
        out = "0.0"
        for way in ways:
            chosen = value
            for condition, held in reversed(way):
                chosen = self.builder.name("if", condition, *((chosen, out) if held else (out, chosen)))
            out = chosen
        return out


def _is_zero(value: str) -> bool:
    return is_number(value) and float(value) == 0.0
