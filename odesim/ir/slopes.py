"""The partial derivatives of straight-line code: of every operation by its operands.

x1 = exp(y0*y0) - p0  ->  j0 = y0*y0, j1 = exp(j0), j2 = j1 - p0;  d j0 = (y0 + y0) d y0, d j1 = j1 d j0, d j2 = d j1
"""

from collections.abc import Callable, Iterable, Sequence
from math import pi, sqrt

from odesim.base.errors import CodegenError
from odesim.ir.scalars import COMPARISONS, Code, CodeBuilder, Formulas, Operand, Operation, is_number, parsed

TEXTS = {
    "exp": "f",
    "log": "1.0 / a",
    "log1p": "1.0 / (1.0 + a)",
    "expm1": "f + 1.0",
    "tanh": "1.0 - f*f",
    "erf": f"{2 / sqrt(pi)!r} * exp(-(a*a))",
    "erfc": f"{-2 / sqrt(pi)!r} * exp(-(a*a))",
    "lambertw": "exp(-f) / (1.0 + f)",
    "lambertw_lower": "exp(-f) / (1.0 + f)",
    "sqrt": "0.5 / f",
    "sin": "cos(a)",
    "cos": "-sin(a)",
    "tan": "1.0 + f*f",
    "asin": "1.0 / sqrt(1.0 - a*a)",
    "acos": "-1.0 / sqrt(1.0 - a*a)",
    "atan": "1.0 / (1.0 + a*a)",
    "sinh": "cosh(a)",
    "cosh": "sinh(a)",
    "asinh": "1.0 / sqrt(a*a + 1.0)",
    "acosh": "1.0 / (sqrt(a - 1.0) * sqrt(a + 1.0))",
    "atanh": "1.0 / ((1.0 - a) * (1.0 + a))",
    "sinc": "sinc_slope(a)",
    "abs": "1.0 if a > 0.0 else (-1.0 if a < 0.0 else a)",
    "floor": "0.0",
}
"""df/da of f(a)."""
RULES: dict[str, Operand] = {function: parsed(text) for function, text in TEXTS.items()}

Parts = Sequence[tuple[str, Callable[[], str]]]
"""(operand, how the operation changes with it) of an operation; a slope costs nothing until it is asked for."""
Guard = tuple[tuple[Operand, bool], ...]
"""The conditions, and how each turned out, under which a value is looked at."""

MOST_WAYS = 8
HOLDING = ("if", "maximum", "minimum", "abs")
"""Operations that may hold a value."""
STEEP = {"sqrt": "a != 0.0", "asin": "a*a != 1.0", "acos": "a*a != 1.0", "acosh": "a != 1.0"}
"""Where a function that is a number has a slope that is one; a power a^b: where a != 0 or b >= 1."""
BOUNDED = ("exp", "tanh", "atan", "atan2", "erf", "erfc")
SATURATING = (*BOUNDED, "/", "powi", "pow", "maximum", "minimum")
"""Operations that may be finite where an operand overflows; those of BOUNDED also at a pole."""
EXPONENTIALS, POLES = ("exp", "expm1", "sinh", "cosh", "pow"), ("/", "powi")
HUGE = "1e+300"
"""A slope that may overflow when it is multiplied by others."""


def derivatives(builder: CodeBuilder, name: str, operation: Operation) -> Parts:
    """The partial derivatives of an operation on names and numbers, whose value has this name. Raises CodegenError if there is no rule."""
    new, times = builder.name, builder.times
    match operation:
        case Operation("+", (str(a), str(b))):
            return (a, lambda: "1.0"), (b, lambda: "1.0")
        case Operation("-", (str(a), str(b))):
            return (a, lambda: "1.0"), (b, lambda: "-1.0")
        case Operation("*", (str(a), str(b))):
            return _half_power(builder, a, b) or ((a, lambda: b), (b, lambda: a))
        case Operation("/", (str(a), str(b))):
            return (a, lambda: new("/", "1.0", b)), (b, lambda: times(times("-1.0", name), new("/", "1.0", b)))
        case Operation("-", (str(a),)):
            return ((a, lambda: "-1.0"),)
        case Operation("if", (str(test), str(a), str(b))):
            return _chosen(builder, test, a, b)
        case Operation("maximum" | "minimum" as which, (str(a), str(b))):
            return _chosen(builder, new(">=" if which == "maximum" else "<=", a, b), a, b)  # of equal ones the first
        case Operation("powi", (str(a), str(n))):
            return ((a, lambda: "1.0" if n == "1" else times(repr(float(n)), new("powi", a, str(int(n) - 1)))),)
        case Operation("pow", (str(a), str(b))):
            return _power(builder, name, a, b)
        case Operation("atan2", (str(a), str(b))):

            def square() -> str:
                return new("+", new("*", a, a), new("*", b, b))

            return (a, lambda: new("/", b, square())), (b, lambda: times("-1.0", new("/", a, square())))
        case Operation("binomial", _):  # of whole numbers
            return ()
        case Operation(function, (str(a),)) if function in RULES:
            return ((a, lambda: builder.write(RULES[function], {"a": a, "f": name})),)
        case Operation(function, _) if function in (*COMPARISONS, "and", "or"):
            return ()
    raise CodegenError(f"no derivative of: {str(operation)[:60]}")


def _half_power(builder: CodeBuilder, x: str, root: str) -> Parts:
    """The derivatives of x*sqrt(a) where a is a factor of x: sqrt(a) by x, and (x/a)*sqrt(a)/2 by a, not 0*inf at a = 0; else none."""
    match builder.code.get(root):
        case Operation("sqrt", (str(a),)) if (rest := _without(builder, x, a)) is not None:
            return (x, lambda: root), (a, lambda: builder.times(builder.times("0.5", rest), root))
    return ()


def _without(builder: CodeBuilder, x: str, a: str) -> str | None:
    """The product x without one factor a; None where it has none."""
    if x == a:
        return "1.0"
    match builder.code.get(x):
        case Operation("-", (str(p),)) if (rest := _without(builder, p, a)) is not None:
            return builder.times("-1.0", rest)
        case Operation("*", (str(p), str(q))):
            for one, other in ((p, q), (q, p)):
                if (rest := _without(builder, one, a)) is not None:
                    return builder.times(rest, other)
        case Operation("powi", (str(base), str(n))) if base == a and int(n) > 1:
            return builder.name("powi", a, str(int(n) - 1))
    return None


def _chosen(builder: CodeBuilder, test: str, a: str, b: str) -> Parts:
    """The derivatives of a if the test holds, else those of b."""
    return (a, lambda: builder.name("if", test, "1.0", "0.0")), (b, lambda: builder.name("if", test, "0.0", "1.0"))


def _power(builder: CodeBuilder, name: str, a: str, b: str) -> Parts:
    """The derivatives of a^b, whose value is `name`."""
    new, times = builder.name, builder.times

    def base() -> str:
        """a, but 1 where a and a^b are 0, since 0*log(0) is 0."""
        return new("if", new("or", new("!=", name, "0.0"), new(">", a, "0.0")), a, "1.0")

    def less() -> str:
        return repr(float(b) - 1.0) if is_number(b) else new("-", b, "1.0")

    return (a, lambda: times(b, new("pow", a, less()))), (b, lambda: times(name, new("log", base())))


def guards_of(code: Code, outputs: Iterable[str]) -> dict[str, list[Guard]]:
    """{name: a Guard for each path from an output to this operation}."""
    guards: dict[str, list[Guard]] = {name: [()] for name in outputs}
    for name, operation in reversed(code.items()):
        ways = guards[name] = shortest(guards.get(name, [()]))
        match operation:
            case Operation("if", (test, yes, no)):
                parts = [(part, [(*way, (test, taken)) for way in ways]) for part, taken in ((yes, True), (no, False))]
            case _:
                parts = [(part, ways) for part in operation.operands]
        for part, paths in parts:
            guards.setdefault(str(part), []).extend(paths)
    return guards


def saturated(code: Code, shifts: set[str]) -> set[str]:
    """The operations that may overflow on the way to one that is finite then, as exp(-y) in 1/(1 + exp(-y)) for y < -709.

    There the slope of the whole is 0, and would be 0 times infinity. shifts: names of what keeps an exponential below 1.
    """
    under: dict[tuple[str, ...], set[str]] = {SATURATING: set(), BOUNDED: set()}
    for functions, names in under.items():
        for name, operation in reversed(code.items()):
            if name in names or operation.function in functions:
                names.update(map(str, operation.operands))
    shifts = shifts | {name for name, operation in code.items() if operation.function == "-" and operation.operands[0] in shifts}
    moving, large = set[str](), set[str]()
    for name, operation in code.items():
        operands = [*map(str, operation.operands)]
        if not moving.isdisjoint(operands) or any(operand[0] in "yt" for operand in operands):
            moving.add(name)
            of_shift = operation.function == "exp" and operands[0] in code and not shifts.isdisjoint(code[operands[0]].operands)
            grows = operation.function in EXPONENTIALS and not of_shift
            pole = operation.function in POLES and name in under[BOUNDED]
            if grows or pole or (operation.function != "/" and not large.isdisjoint(operands)):
                large.add(name)
    return {name for name in large & under[SATURATING] if code[name].function in (*EXPONENTIALS, *POLES, "*")}


def shortest(guards: Sequence[Guard]) -> list[Guard]:
    """The distinct paths, without those that include a shorter one; more than MOST_WAYS are replaced by their common part."""
    first: list[Guard] = []
    for guard in sorted(dict.fromkeys(guards), key=len):
        if not any(guard[: len(f)] == f for f in first):
            first.append(guard)
    return first if len(first) <= MOST_WAYS else [common(first)]


def common(guards: Sequence[Guard]) -> Guard:
    """The conditions that all paths begin with."""
    first, *rest = guards
    size = 0
    while size < len(first) and all(g[: size + 1] == first[: size + 1] for g in rest):
        size += 1
    return first[:size]


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
        # a slope in a branch that is not taken may be infinite, and 0 times it would be NaN: each is 0 unless its branch is taken
        self._guards = guards_of(self.builder.code, self.outputs)
        self._saturated = saturated(self.builder.code, shifts)
        for name, operation in list(self.builder.code.items()):
            if operation.function in HOLDING or not self._held.isdisjoint(map(str, operation.operands)):
                self._held.add(name)
            slopes = {} if name in shifts else self._derive(name, operation)
            if slopes:
                self.rows[name] = slopes
                self._active.add(name)

    def _derive(self, name: str, operation: Operation) -> dict[str, str]:
        """The partial derivatives of an operation: 0 in a branch that is not taken, where they could be infinite."""
        slopes: dict[str, str] = {}
        for read, slope in derivatives(self.builder, name, operation):
            if read not in self._active:
                continue
            value = self._at_rest(operation, read, slope())
            if name in self._saturated and not is_number(value):
                value = self.builder.name("if", self.builder.name("<=", self.builder.name("abs", name), HUGE), value, "0.0")
            if not is_number(value):
                value = self._taken(value, self._guards[name])
            if not _is_zero(value):
                slopes[read] = self.builder.plus(slopes[read], value) if read in slopes else value
        return {read: value for read, value in slopes.items() if not _is_zero(value)}

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
