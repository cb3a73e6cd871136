"""The partial derivatives of every operation by its operands.

tanh(a), whose value is f  ->  1.0 - f*f
"""

from collections.abc import Callable, Sequence
from math import pi, sqrt

from odesim.base.errors import CodegenError
from odesim.ir.scalars import COMPARISONS, CodeBuilder, Operand, Operation, is_number, parsed
from odesim.ir.slopes import order_slope

TEXTS = {
    "exp": "f",
    "log": "1.0 / a",
    "log1p": "1.0 / (1.0 + a)",
    "expm1": "f + 1.0",
    "tanh": "1.0 - f*f",
    "erf": f"{2 / sqrt(pi)!r} * exp(-(a*a))",
    "erfc": f"{-2 / sqrt(pi)!r} * exp(-(a*a))",
    "erfinv": f"{sqrt(pi) / 2!r} * exp(f*f)",
    "loggamma": "digamma(a)",
    "digamma": "polygamma(1.0, a)",
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
    "sinc": "-spherical_jn(1.0, a)",
    "abs": "1.0 if a > 0.0 else (-1.0 if a < 0.0 else a)",
    "floor": "0.0",
}
"""df/da of f(a)."""
RULES: dict[str, Operand] = {function: parsed(text) for function, text in TEXTS.items()}

Parts = Sequence[tuple[str, Callable[[], str]]]
"""(operand, how the operation changes with it) of an operation; a slope costs nothing until it is asked for."""


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
        case Operation("spherical_jn" | "polygamma" | "besseli" | "besseli_ratio" as function, (str(n), str(a))) if is_number(n):
            return ((a, lambda: order_slope(builder, function, name, float(n), a)),)
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
