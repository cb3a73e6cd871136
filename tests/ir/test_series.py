"""Taylor coefficients of solutions, held against derivatives that sympy takes of the right-hand side."""

import math
from operator import add, mul, truediv

import pytest
from sympy import Abs, Max, Rational, asinh, atan, cos, diff, erf, exp, log, sin, sinh, sqrt, symbols, tanh

from odesim.base.errors import CodegenError
from odesim.ir.scalars import Formulas, Operand, Operation
from odesim.ir.series import taylor_coefficients
from odesim.symbolic import System, time
from odesim.targets.compiled import compile_system
from odesim.targets.unroll import write_out
from tests.support.systems import SOURCE

x, y = symbols("x y")
t = time
AT = {t: Rational(3, 10), x: Rational(7, 10), y: Rational(2, 5)}
RIGHT = {
    "kepler": (y, -x / (x**2 + y**2) ** Rational(3, 2)),
    "exp, sin, tanh, time": (exp(-x * y) + sin(t * x), tanh(x) / (1 + y**2)),
    "roots, cos, log, powers": (sqrt(1 + x**2) * cos(y) ** 3, log(2 + x) * x**5),
    "a third, a base": (atan(x) + asinh(y), (1 + x**2) ** Rational(1, 3) * 2**y),
    "x^y, sinh, erf": (sinh(x / 3) - erf(y), x**y / (2 + sin(x))),
}


def value(operand: Operand, names: dict[str, float]) -> float:
    """The value of an operand."""
    if not isinstance(operand, Operation):
        return names[operand] if operand in names else float(operand)
    functions = {"+": add, "*": mul, "/": truediv, "-": lambda *a: -a[0] if len(a) == 1 else a[0] - a[1]}
    function = functions.get(operand.function) or getattr(math, operand.function)
    return float(function(*(value(o, names) for o in operand.operands)))


def formulas(*right: object) -> Formulas:
    """The straight-line code of x' and y'."""
    system = System(name="a.b", source=SOURCE, axes={}, equations=dict(zip((x, y), right, strict=True)), initial={x: 0.7, y: 0.4})
    return write_out(system, compile_system(system).program, {}, {})


@pytest.mark.parametrize("name", RIGHT)
def test_coefficients(name):
    """Coefficient n is the derivative n along the solution over n!, to the rounding of sums of n products of numbers of its size."""
    order, right = 5, RIGHT[name]
    series = taylor_coefficients(formulas(*right), order)
    names = {"t": 0.3, "y0": 0.7, "y1": 0.4}
    for c, operation in series.code.items():
        names[c] = value(operation, names)
    exact, now = [], right
    for n in range(2, order + 1):
        now = tuple(diff(e, t) + diff(e, x) * right[0] + diff(e, y) * right[1] for e in now)
        exact += [float(e.subs(AT).evalf(30)) / math.factorial(n) for e in now]
    assert [names[c] for c in series.outputs] == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize(("right", "what"), [(Abs(x), "abs"), (Max(x, y), "maximum")])
def test_what_is_not_smooth_is_refused(right, what):
    """By its name."""
    with pytest.raises(CodegenError, match=f"{what} has no Taylor series"):
        taylor_coefficients(formulas(right, y), 4)
