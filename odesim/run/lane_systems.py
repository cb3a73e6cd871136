"""The text that solves the linear systems (1 - g J) x = b of a stiff step in all lanes, one operation a line.

Here g = gamma h.
There is no pivoting: the order is that of the structure. The digits that this costs show in the residual of a solution. A step whose
residual is not small is rejected; with a shorter step the matrix is nearer to 1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from odesim.ir.elimination import WORST, SparseSystem
from odesim.ir.scalars import Code, CodeBuilder, Operand, Operation, is_number, printed

Vector = dict[str, str]
"""{unknown: name}; 0 where it has none."""


@dataclass
class Factors:
    """A matrix after elimination, in factors.

    inverse {unknown: inverse of its pivot}, "1.0" where there is none. below: the factors by which its row is added to those below.
    beside: its row. Both are divided by the pivot.
    """

    linear: SparseSystem
    code: Code = field(default_factory=dict)
    inverse: dict[str, str] = field(default_factory=dict)
    below: dict[str, Vector] = field(default_factory=dict)
    beside: dict[str, Vector] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether the solution is one product for each unknown."""
        return not any(self.beside.values())

    def names(self) -> list[str]:
        """The names that solve reads."""
        entries = [e for part in (self.below, self.beside) for v in part.values() for e in v.values()]
        return [e for e in dict.fromkeys([*self.inverse.values(), *entries]) if not is_number(e)]

    def solve(self, b: Vector, into: str) -> tuple[list[str], Vector]:
        """Lines, and the names of x; the part of a state y<k> is <into><k>."""
        builder, x = CodeBuilder(f"{into}_"), dict(b)
        for name in self.linear.order:
            if name in x:
                for row, factor in self.below[name].items():
                    term = builder.times(factor, x[name])
                    x[row] = builder.plus(x[row], term) if row in x else term
        lines = printed(builder.code)
        for name in reversed(self.linear.order):
            terms = [product(self.inverse[name], x[name])] if name in x else []
            terms += [product(e, x[read]) for read, e in self.beside[name].items() if read in x]
            if terms:
                x[name] = f"{into}{name[1:]}" if name[0] == "y" else f"{into}_{name}"
                lines.append(f"{x[name]} = {' + '.join(map(str, terms))}")
        return lines, x


def product(a: Operand, b: str) -> Operand:
    """a*b in an expression."""
    return b if a == "1.0" else Operation("-", (b,)) if a == "-1.0" else Operation("*", (a, b))


def factor(linear: SparseSystem, g: str) -> Factors:
    """The elimination of 1 - g J with the diagonal entries as pivots."""
    builder = CodeBuilder("w")
    factors = Factors(linear, builder.code)
    rows = {name: {read: e for read, e in row.items() if read != "t"} for name, row in linear.rows.items()}
    for name in linear.order:
        entries, scale = rows.pop(name), g if name[0] == "y" else "1.0"
        loop = entries.pop(name, "0.0")
        inverse = "1.0" if loop == "0.0" else builder.name("/", "1.0", builder.name("-", "1.0", product(scale, loop)))
        scale = builder.times(scale, inverse)
        factors.inverse[name], factors.below[name] = inverse, {}
        factors.beside[name] = {read: builder.times(entry, scale) for read, entry in entries.items()}
        for other, row in rows.items():
            if name in row:
                entry = row.pop(name)
                # the row of a state stands times g, with its right-hand side
                factors.below[name][other] = builder.times(entry, builder.times(g, inverse) if other[0] == "y" else inverse)
                multiple = builder.times(entry, scale)
                for read, entry in entries.items():
                    term = builder.times(multiple, entry)
                    row[read] = builder.plus(row[read], term) if read in row else term
    return factors


def residual(linear: SparseSystem, g: str, b: Vector, x: Vector, good: str, atol: Callable[[int], str]) -> list[str]:
    """Lines that make `good` false where x does not solve the system with b to WORST of the size of its terms, row by row.

    State d counts from atol(d) up: numbers near 1e-308 have few digits (odesim.ir.linear_systems.refined).
    """
    size = {name: f"{v}_size" for name, v in x.items()}
    lines = [f"{size[name]} = abs({v})" + (f" + {atol(int(name[1:]))}" if name[0] == "y" else "") for name, v in x.items()]
    for name, row in linear.rows.items():
        terms = {read: e for read, e in row.items() if read in x}
        moved = " + ".join(str(product(e, x[read])) for read, e in terms.items())
        sizes = " + ".join(f"abs({e}) * {size[read]}" for read, e in terms.items())
        if terms and name[0] == "y":
            moved, sizes = f"{g} * ({moved})", f"{g} * ({sizes})"
        others = [*([size[name]] if name in x else []), *([f"abs({b[name]})"] if name in b else [])]
        if terms and others:
            right = f" - {b[name]}" if name in b else ""
            left = f"{x[name]} - " if name in x else "-"
            lines.append(f"{good} = {good} and abs({left}({moved}){right}) <= {WORST!r} * ({' + '.join([*others, sizes])})")
    return lines
