"""The text of the linear systems of a stiff step, (1 - g J) x = b with g = gamma h, in all lanes at once: one operation a line.

There is no pivoting: the order is that of the structure. What it costs in digits is seen in the residual of a solution, and a step
whose residual is not small is rejected: with a shorter one the matrix is nearer to 1.
"""

from dataclasses import dataclass, field

from odesim.codegen.unrolled.elimination import WORST, SparseSystem
from odesim.codegen.unrolled.operations import Operations, is_number

Vector = dict[str, str]
"""{unknown: name}; 0 where it has none."""


@dataclass
class Factors:
    """A matrix eliminated: by unknown, the inverse of its pivot ("1.0": none), what of its row goes to those below, and its row, both
    divided by the pivot."""

    linear: SparseSystem
    lines: list[str] = field(default_factory=list)
    inverse: dict[str, str] = field(default_factory=dict)
    below: dict[str, Vector] = field(default_factory=dict)
    beside: dict[str, Vector] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether a solution is a product each."""
        return not any(self.beside.values())

    def names(self) -> list[str]:
        """All that solve needs."""
        entries = [e for part in (self.below, self.beside) for v in part.values() for e in v.values()]
        return [e for e in dict.fromkeys([*self.inverse.values(), *entries]) if not is_number(e)]

    def solve(self, b: Vector, into: str) -> tuple[list[str], Vector]:
        """Lines, and the names of x; of a state y<k> it is <into><k>."""
        text, x = Operations(f"{into}_"), dict(b)
        for name in self.linear.order:
            if name in x:
                for row, factor in self.below[name].items():
                    term = text.times(factor, x[name])
                    x[row] = text.plus(x[row], term) if row in x else term
        lines = [f"{a} = {e}" for a, e in text.lines.items()]
        for name in reversed(self.linear.order):
            terms = [product(self.inverse[name], x[name])] if name in x else []
            terms += [product(e, x[read]) for read, e in self.beside[name].items() if read in x]
            if terms:
                x[name] = f"{into}{name[1:]}" if name[0] == "y" else f"{into}_{name}"
                lines.append(f"{x[name]} = {' + '.join(terms)}")
        return lines, x


def product(a: str, b: str) -> str:
    """a*b in an expression."""
    return {"1.0": b, "-1.0": f"-{b}"}.get(a, f"{a} * {b}")


def factor(linear: SparseSystem, g: str) -> Factors:
    """The elimination of 1 - g J, each unknown by its diagonal entry."""
    text, found = Operations("w"), Factors(linear)
    rows = {name: {read: e for read, e in row.items() if read != "t"} for name, row in linear.rows.items()}
    for name in linear.order:
        own, scale = rows.pop(name), g if name[0] == "y" else "1.0"
        loop = own.pop(name, "0.0")
        inverse = "1.0" if loop == "0.0" else text.name(f"1.0 / {text.name(f'1.0 - {product(scale, loop)}')}")
        scale = text.times(scale, inverse)
        found.inverse[name], found.below[name] = inverse, {}
        found.beside[name] = {read: text.times(entry, scale) for read, entry in own.items()}
        for other, row in rows.items():
            if name in row:
                entry = row.pop(name)
                # the row of a state stands times g, with its right-hand side
                found.below[name][other] = text.times(entry, text.times(g, inverse) if other[0] == "y" else inverse)
                multiple = text.times(entry, scale)
                for read, entry in own.items():
                    term = text.times(multiple, entry)
                    row[read] = text.plus(row[read], term) if read in row else term
    found.lines = [f"{a} = {b}" for a, b in text.lines.items()]
    return found


def residual(linear: SparseSystem, g: str, b: Vector, x: Vector, good: str) -> list[str]:
    """Lines that make `good` false where x does not solve the system with b to WORST of the size of its terms, row by row."""
    lines = []
    for name, row in linear.rows.items():
        terms = [product(e, x[read]) for read, e in row.items() if read in x]
        moved, sizes = " + ".join(terms), " + ".join(f"abs({term})" for term in terms)
        if terms and name[0] == "y":
            moved, sizes = f"{g} * ({moved})", f"{g} * ({sizes})"
        others = [v[name] for v in (x, b) if name in v]
        if terms and others:
            right = f" - {b[name]}" if name in b else ""
            left = f"{x[name]} - " if name in x else "-"
            size = " + ".join([*(f"abs({v})" for v in others), sizes])
            lines.append(f"{good} = {good} and abs({left}({moved}){right}) <= {WORST!r} * ({size})")
    return lines
