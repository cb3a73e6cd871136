"""The text of the linear systems of a stiff step, (shift - J) x = b, in all lanes at once: one operation a line.

There is no pivoting: the order is that of the structure. What it costs in digits is seen in the residual of a solution, and a step
whose residual is not small is rejected: a shorter one has a larger shift.
"""

from dataclasses import dataclass, field

from odesim.codegen.elimination import WORST, Linear
from odesim.codegen.flat import Text, is_number

Vector = dict[str, str]
"""{unknown: name}; 0 where it has none."""


@dataclass
class Factors:
    """A matrix eliminated: names of the inverse pivots, of what goes from a pivot's row to others below, and of its row.

    inverse of an unknown whose pivot is 1 is "1.0".
    """

    linear: Linear
    lines: list[str]
    inverse: dict[str, str] = field(default_factory=dict)
    below: dict[str, Vector] = field(default_factory=dict)
    beside: dict[str, Vector] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether a solution is a product each."""
        return not any(self.beside.values())

    def names(self) -> list[str]:
        """All that solve needs."""
        found = dict.fromkeys([*self.inverse.values(), *(e for part in (self.below, self.beside) for v in part.values() for e in v.values())])
        return [e for e in found if not is_number(e)]

    def solve(self, b: Vector, into: str) -> tuple[list[str], Vector]:
        """Lines, and the names of x; of a state y<k> it is into<k>."""
        text, x = Text(f"{into}_"), dict(b)
        for name in self.linear.order:
            if name in x:
                for row, factor in self.below[name].items():
                    term = text.times(factor, x[name])
                    x[row] = text.plus(x[row], term) if row in x else term
        lines = [f"{a} = {e}" for a, e in text.lines.items()]
        count = len(lines)
        for name in reversed(self.linear.order):
            total = x.get(name, "")
            for other, factor in self.beside[name].items():
                if other in x:
                    product = f"{factor} * {x[other]}" if factor not in ("1.0", "-1.0") else x[other]
                    total = f"{total} {'-' if factor == '-1.0' else '+'} {product}" if total else ("-" if factor == "-1.0" else "") + product
            if not total:
                x.pop(name, None)
                continue
            if self.inverse[name] != "1.0":
                total = f"{self.inverse[name]} * {total if ' ' not in total and total[0] != '-' else f'({total})'}"
            count += 1
            x[name] = f"{into}{name[1:]}" if name[0] == "y" else f"{into}_s{name[1:]}"
            lines.append(f"{x[name]} = {total}")
        return lines, x


def factor(linear: Linear, shift: str) -> Factors:
    """The elimination of shift - J."""
    text = Text("w")
    rows = {name: {read: e for read, e in row.items() if read not in (name, "t")} for name, row in linear.rows.items()}
    pivots = {}
    for name, row in linear.rows.items():
        first = shift if name[0] == "y" else "1.0"
        pivots[name] = minus(text, first, row[name]) if name in row else first
    found = Factors(linear, [])
    for name in linear.order:
        inverse = "1.0" if pivots[name] == "1.0" else text.name(f"1.0 / {pivots[name]}")
        own = rows.pop(name)
        found.inverse[name], found.beside[name], found.below[name] = inverse, own, {}
        for other, row in rows.items():
            if name in row:
                multiple = text.times(row.pop(name), inverse)
                found.below[name][other] = multiple
                for read, entry in own.items():
                    term = text.times(multiple, entry)
                    if read == other:
                        pivots[other] = minus(text, pivots[other], term)
                    else:
                        row[read] = text.plus(row[read], term) if read in row else term
    found.lines = [f"{a} = {b}" for a, b in text.lines.items()]
    return found


def minus(text: Text, a: str, b: str) -> str:
    """a - b."""
    return text.plus(a, repr(-float(b))) if is_number(b) else text.name(f"{a} - {b}")


def residual(linear: Linear, shift: str, b: Vector, x: Vector, good: str) -> list[str]:
    """Lines that make `good` false where x does not solve the system with b to WORST of the size of its terms, row by row."""
    lines = []
    for name, row in linear.rows.items():
        terms = [(f"{shift} * {x[name]}" if name[0] == "y" else x[name], "-")] if name in x else []
        terms += [(f"{e} * {x[read]}", "+") for read, e in row.items() if read in x]
        if name in b:
            terms.append((b[name], "+"))
        if not terms:
            continue
        rest = " ".join(f"{sign} {term}" for term, sign in terms)
        size = " + ".join(f"abs({term})" for term, _ in terms)
        lines.append(f"{good} = {good} and abs({rest.removeprefix('+ ')}) <= {WORST!r} * ({size})")
    return lines
