"""The Taylor coefficients of the solution of y' = f(t, y), as straight-line code: every operation by its recurrence.

y0' = y0*y0  ->  c0 = y0*y0 (y'), c1 = 2 y0 c0 ((y^2)'), y0[2] = c1/2, ...

Products are sums over pairs of coefficients, powers and quotients follow from their differential equations, and c = g(a) from
n c_n = sum_k (k a_k) (g')_(n-k), where the derivative g' is that of odesim.ir.slopes, expanded in its turn. An expression on which time
has no bearing has one coefficient. Sums end with what is known last, so that a coefficient waits for two products only.

A. Jorba, M. Zou, A software package for the numerical integration of ODEs by means of high-order Taylor methods (2005), sec. 2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from odesim.base.errors import CodegenError
from odesim.ir.scalars import COMPARISONS, CodeBuilder, Formulas, Operand, Operation, is_number, renamed, weight_of, words_of
from odesim.ir.slopes import RULES

ZERO, ONE = "0.0", "1.0"
MOST = 10_000
"""Operations of all coefficients: beyond it compiling takes more than some ten seconds."""
NOT_SMOOTH = ("abs", "floor", "sinc")
"""Functions of RULES without a series: that have kinks or jumps, or a slope without a slope of its own."""


@dataclass(eq=False)
class Series:
    """Coefficients along the solution, each computed when it is first asked for. constant: all but the first are zero.

    power: (a, e) of a^e; scaled: (c, a) of c*a with a constant c.
    """

    rule: Callable[[int], Operand]
    constant: bool = False
    power: "tuple[Series, float] | None" = None
    scaled: "tuple[Series, Series] | None" = None
    known: list[str] = field(default_factory=list)


class Expansion:
    """The code of coefficients under construction."""

    def __init__(self, formulas: Formulas) -> None:
        self.builder, self.formulas, self.weight = CodeBuilder("c"), formulas, 0
        self._made, self._rates = dict[tuple[object, ...], Series](), dict[Series, Series]()
        time = [*"t", ONE]
        self.names = {"t": Series(lambda n: time[n] if n < 2 else ZERO)}
        self.states = [Series(self._state(d)) for d in range(formulas.states)]
        self.names |= {f"y{d}": state for d, state in enumerate(self.states)}
        for name, operation in formulas.code.items():
            self.names[name] = self._fixed(operation) if name in formulas.shifts else self.series(operation, self.names)
        self._rates |= {state: self.series(out, self.names) for state, out in zip(self.states, formulas.outputs, strict=True)}

    def at(self, a: Series, n: int) -> str:
        """Coefficient n as a name or a number."""
        if n and a.constant:
            return ZERO
        while len(a.known) <= n:
            a.known.append(self._name(a.rule(len(a.known))))
        return a.known[n]

    def _name(self, operand: Operand) -> str:
        """The name of an operand, or the number that it is."""
        if isinstance(operand, str):
            return operand
        self.weight += weight_of(operand)
        if self.weight > MOST:
            raise CodegenError(f"its Taylor coefficients take more than {MOST} operations")
        return self.builder.name(operand.function, *operand.operands)

    def _state(self, d: int) -> Callable[[int], Operand]:
        return lambda n: times(repr(1 / n), self.at(self._rates[self.states[d]], n - 1)) if n else f"y{d}"

    def _fixed(self, operation: Operation) -> Series:
        """What has no bearing on the value, as the shift of exponentials, stays as it is at the beginning."""
        read = {name: self.names[name] for name in words_of(operation) if name in self.names}
        return Series(lambda n: renamed(operation, {name: self.at(a, 0) for name, a in read.items()}), constant=True)

    def series(self, operand: Operand, names: Mapping[str, Series]) -> Series:
        """The series of an expression; each different operation has one."""
        if isinstance(operand, Operation):
            return self.make(operand.function, *(self.series(o, names) for o in operand.operands))
        return names[operand] if operand in names else self.number(operand)

    def number(self, text: str) -> Series:
        """A number or a parameter."""
        return self._made.setdefault((text,), Series(lambda n: text, constant=True))

    def make(self, function: str, *a: Series) -> Series:
        """The series of an operation on series."""
        if function in ("*", "+") and a[1].constant:
            a = a[::-1]
        key = (function, *a)
        if key not in self._made:
            self._made[key] = self._new(function, *a)
        return self._made[key]

    def _new(self, function: str, *a: Series) -> Series:
        first = Operation(function, tuple(self.at(x, 0) for x in a)) if all(x.constant for x in a) else None
        if first is not None:
            return Series(lambda n: first, constant=True)
        match function, a:
            case "+" | "-", _:
                return Series(lambda n: self._sum(function, [self.at(x, n) for x in a]))
            case "*", (x, y):
                return self._product(x, y)
            case "/", (x, y) if y.power is not None:
                return self.make("*", x, self._power(y.power[0], -y.power[1]))
            case "/", (x, y):
                return self._quotient(x, y)
            case "sqrt", (x,):
                return self._power(x, 0.5)
            case "powi", (x, n):
                return self._whole_power(x, int(self.at(n, 0)))
            case "pow", (x, e) if is_number(self.at(e, 0)):
                return self._power(x, float(self.at(e, 0)))
            case "pow", (x, e):
                return self.make("exp", self.make("*", e, self.make("log", x)))
            case "if", (test, x, y) if test.constant:  # of modes and parameters
                return Series(lambda n: self._chosen(self.at(test, 0), self.at(x, n), self.at(y, n)))
            case _, (x,) if function in RULES and function not in NOT_SMOOTH:
                return self._function(function, x)
        raise CodegenError(f"{'a condition' if function in (*COMPARISONS, 'if', 'and', 'or') else function} has no Taylor series")

    def _sum(self, sign: str, a: Sequence[str]) -> Operand:
        if len(a) == 1:
            return Operation("-", (a[0],)) if a[0] != ZERO else ZERO
        x, y = a
        if x == ZERO or y == ZERO:
            return x if y == ZERO else Operation("-", (y,)) if sign == "-" else y
        return Operation(sign, (x, y))

    def _chosen(self, test: str, x: str, y: str) -> Operand:
        return Operation("if", (test, x, y)) if x != y else x

    def _convolved(self, a: Series, b: Series, n: int, first: int = 0) -> Operand:
        """sum of a_k b_(n-k) from k = first on."""
        ends = sorted(range(first, n + 1), key=lambda k: max(k, n - k))
        return total([times(self.at(a, k), self.at(b, n - k)) for k in ends if not (k and a.constant) and not (n > k and b.constant)])

    def _product(self, x: Series, y: Series) -> Series:
        for a, b in ((x, y), (y, x)):
            if b.power is not None and b.power[0] is a:
                return self._power(a, b.power[1] + 1)
            if a.scaled is not None and not b.constant:
                return self.make("*", a.scaled[0], self.make("*", a.scaled[1], b))

        def rule(n: int) -> Operand:
            if x is not y:
                return self._convolved(x, y, n)
            twice = total([times(self.at(x, k), self.at(x, n - k)) for k in range((n - 1) // 2, -1, -1)])
            middle = times(self.at(x, n // 2), self.at(x, n // 2)) if n % 2 == 0 else ZERO
            return total([middle, times("2.0", twice)])

        return Series(rule, scaled=(x, y) if x.constant else None)

    def _inverse(self, a: Series) -> Operand:
        return self.builder.name("/", ONE, self.at(a, 0))

    def _quotient(self, x: Series, y: Series) -> Series:
        def rule(n: int) -> Operand:
            if n == 0:
                return Operation("/", (self.at(x, 0), self.at(y, 0)))
            rest = self._sum("-", [self.at(x, n), self._name(self._convolved(y, result, n, first=1))])
            return times(self._inverse(y), rest)

        result = Series(rule)
        return result

    def _power(self, x: Series, e: float) -> Series:
        """x^e by x c' = e c x'."""
        key = ("power", x, e)
        if key in self._made:
            return self._made[key]

        def rule(n: int) -> Operand:
            a = self.at(x, 0)
            if n == 0:
                return power_of(a, e)
            terms = [
                times(times(repr((k * e - (n - k)) / n), self.at(x, k)), self.at(result, n - k))
                for k in sorted(range(1, n + 1), key=lambda k: max(k, n - k))
            ]
            return times(self._inverse(x), total(terms))

        result = self._made[key] = Series(rule, power=(x, e))
        return result

    def _whole_power(self, x: Series, n: int) -> Series:
        """x^n by products: x may be 0."""
        if n < 0:
            return self.make("/", self.number(ONE), self._whole_power(x, -n))
        if n < 2:
            return x if n else self.number(ONE)
        half = self._whole_power(x, n // 2)
        square = self.make("*", half, half)
        return self.make("*", x, square) if n % 2 else square

    def _function(self, function: str, a: Series) -> Series:
        def rule(n: int) -> Operand:
            if n == 0:
                return Operation(function, (self.at(a, 0),))
            slope = self.series(RULES[function], {"a": a, "f": result})
            return times(repr(1 / n), self._convolved(self._rate(a), slope, n - 1))

        result = Series(rule)
        return result

    def _rate(self, a: Series) -> Series:
        """The derivative by time."""
        if a not in self._rates:
            self._rates[a] = Series(lambda n: times(repr(n + 1.0), self.at(a, n + 1)))
        return self._rates[a]


def power_of(a: str, e: float) -> Operand:
    """a^e, of halves by a square root and products."""
    root = Operation("sqrt", (a,))
    match e:
        case 0.5:
            return root
        case -0.5:
            return Operation("/", (ONE, root))
        case 1.5:
            return Operation("*", (a, root))
        case -1.5:
            return Operation("/", (ONE, Operation("*", (a, root))))
    return Operation("pow", (a, repr(e)))


def times(a: Operand, b: Operand) -> Operand:
    """The product, of which zeros and ones are left out."""
    if ZERO in (a, b):
        return ZERO
    return b if a == ONE else a if b == ONE else Operation("*", (a, b))


def total(terms: Sequence[Operand]) -> Operand:
    """The sum of the terms, one after another, without zeros."""
    some = [term for term in terms if term != ZERO]
    return reduce(lambda a, b: Operation("+", (a, b)), some) if some else ZERO


def taylor_coefficients(formulas: Formulas, order: int) -> Formulas:
    """The code of the coefficients 2 ... order of all states, one coefficient after another, at t, y0, ... of the formulas' f.

    Raises CodegenError where f is not smooth, or the code is too long.
    """
    expansion = Expansion(formulas)
    for n in range(order):  # in the order of the code: a chain of a thousand sums is deeper than Python's stack
        for name in formulas.code:
            expansion.at(expansion.names[name], n)
    outputs = tuple(expansion.at(state, n) for n in range(2, order + 1) for state in expansion.states)
    return replace(formulas, code=expansion.builder.code, outputs=outputs)
