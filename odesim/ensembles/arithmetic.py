"""The step controller's functions and the times of fixed steps, inlined into loops over lanes."""

from typing import Any

from numba import njit

from odesim.codegen.intrinsics import bits, from_bits, polynomial
from odesim.solve.explicit import control
from odesim.solve.explicit.slots import LOG2_LEAST as LOG2_LEAST

# fastmath is said: what says nothing takes over that of whoever calls it first
OPTIONS = {"error_model": "numpy", "fastmath": False, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_compile: Any = njit  # some of its options are not in its type
log2, exp2 = _compile(**OPTIONS)(control.log2.py_func), _compile(**OPTIONS)(control.exp2.py_func)


@_compile(**OPTIONS)
def power(x: float, exponent: float) -> float:
    """x ** exponent for normal x > 0 to about 1e-5."""
    return exp2(exponent * log2(x))


@_compile(**OPTIONS)
def moment(k: int, t0: float, t1: float, step: float, total: int) -> float:
    """The time after k of `total` steps."""
    return t0 + k * step if k < total else t1


# log2(1.5 + x) for abs(x) <= 1/2, and 2^x for abs(x) <= 1/2: least squares at Chebyshev points
LOG2 = (
    0.5849627653299242,
    0.9617959717013117,
    -0.3206323327042662,
    0.1425263701688919,
    -0.07058967567451094,
    0.03746293751275111,
    -0.025123203286147852,
    0.01477872076608435,
)
EXP2 = (1.000000075495349, 0.6931472067106207, 0.2402210735583036, 0.05550327214208595, 0.009676037097875703, 0.0013400432165609313)
MAGIC = 1.5 * 2.0**52 + 1023.0  # adding it rounds to an integer n and leaves n + 1023 in the low bits


@_compile(**OPTIONS)
def root(x: float, exponent: float) -> float:
    """x ** exponent for normal x to 1e-5, results in 2^-1000..2^1000: what the size of a step needs, without a division."""
    i = bits(x)
    whole = float((i >> 52) - 1023)
    m = from_bits((i & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000) - 1.5
    goal = exponent * (whole + polynomial(m, LOG2))
    goal = 1000.0 if goal > 1000.0 else goal
    goal = goal if goal > -1000.0 else -1000.0
    z = goal + MAGIC
    r = goal - (z - MAGIC)
    return polynomial(r, EXP2) * from_bits(bits(z) << 52)
