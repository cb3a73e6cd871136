"""Taylor coefficients of solutions, held against the derivatives that mpmath takes numerically, of 50 digits."""

from typing import Any

import mpmath
import pytest

from odesim.base.errors import CodegenError
from odesim.ir.scalars import Formulas, Operation, parsed
from odesim.ir.series import NOT_SMOOTH, taylor_coefficients
from odesim.ir.slopes import RULES

ORDER = 6
AT = {"t": 0.3, "y0": 0.7, "y1": 0.4, "p0": 1.25}
FUNCTIONS = {
    **{name: getattr(mpmath, name) for name in RULES if hasattr(mpmath, name)},
    "powi": mpmath.power,
    "pow": mpmath.power,
    "lambertw_lower": lambda a: mpmath.lambertw(a, -1),
    "abs": abs,
}
ARGUMENTS = {"acosh": "1.0 + {}", "lambertw_lower": "-0.2*{}"}
"""In place of y0*y1 + t, .58, where a function is real."""
RIGHT = {
    **{name: (f"{name}({ARGUMENTS.get(name, '{}')})".format("(y0*y1 + t)"), "y0") for name in RULES if name not in NOT_SMOOTH},
    "kepler": ("y1", "-y0 / pow(y0*y0 + y1*y1, 1.5)"),
    "quotients": ("(y0 + t) / (p0 + y1*y1)", "1.0 / y0 - y1"),
    "whole powers": ("powi(y1, 3) - powi(y0, -2) + powi(y0, 1)", "powi(y0 - 0.7, 2)"),
    "powers of halves": ("pow(y0, 0.5) * y0", "y1 / pow(y0 + t, -1.5)"),
    "a power of others": ("pow(y0, 0.3) * y0", "pow(y0, y1)"),
    "a base": ("pow(p0, y0)", "pow(2.0, t)"),
    "a choice": ("y0*y0 if p0 > 1.0 else -y0", "y1 if p0 < 1.0 else t*y1"),
    "squares": ("(y0 + y1) * (y0 + y1)", "3.0 * (p0*y0) * (2.0*y1)"),
    "no time": ("p0*p0", "0.0"),
}


def formulas(*right: str) -> Formulas:
    """The straight-line code of y0' and y1'."""
    both = {f"x{d}": parsed(text) for d, text in enumerate(right)}
    code = {name: operand for name, operand in both.items() if isinstance(operand, Operation)}
    outputs = tuple(operand if isinstance(operand, str) else name for name, operand in both.items())
    return Formulas(code, outputs, states=2, values={}, count=1)


@pytest.mark.parametrize("name", RIGHT)
def test_coefficients(name):
    """With the polynomial that the coefficients make, coefficient n of f is n + 1 times coefficient n + 1 of the state.

    The tolerance is the rounding of the numbers in the code, as 1/3, of which each coefficient takes some.
    """
    right, series = RIGHT[name], taylor_coefficients(formulas(*RIGHT[name]), ORDER)
    with mpmath.workdps(50):
        known: dict[str, Any] = {**FUNCTIONS, **{name: mpmath.mpf(value) for name, value in AT.items()}}
        start = [eval(text, dict(known)) for text in right]
        exec("\n".join(series.lines), known)
        found = [known["y0"], known["y1"], *start, *(eval(c, known) for c in series.outputs)]
        states = [found[d::2] for d in (0, 1)]

        def rate(text: str, later: Any) -> Any:
            now = {f"y{d}": mpmath.polyval(states[d][::-1], later) for d in (0, 1)}
            return eval(text, known | now | {"t": known["t"] + later})

        for text, state in zip(right, states, strict=True):
            true = mpmath.taylor(lambda later, text=text: rate(text, later), 0, ORDER - 1)
            assert [float((n + 1) * c) for n, c in enumerate(state[1:])] == pytest.approx([float(x) for x in true], rel=1e-13, abs=1e-16)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("abs(y0)", "abs"),
        ("maximum(y0, y1)", "maximum"),
        ("1.0 if y0 > y1 else y0", "a condition"),
        ("sinc(y0)", "sinc"),
        ("floor(t)", "floor"),
    ],
)
def test_what_has_no_series_is_refused(text, what):
    """By its name."""
    with pytest.raises(CodegenError, match=f"{what} has no Taylor series"):
        taylor_coefficients(formulas(text, "y1"), 4)


def test_what_is_too_long_is_refused():
    """Before it is compiled."""
    with pytest.raises(CodegenError, match="more than 10000 operations"):
        taylor_coefficients(formulas(" + ".join(f"exp({k}.0*y0)" for k in range(200)), "y1"), 20)
