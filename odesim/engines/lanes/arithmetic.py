"""The step controller's functions and the times of fixed steps, inlined into loops over lanes."""

from typing import Any

from numba import njit

from odesim.solve.explicit import control
from odesim.solve.explicit.places import LOG2_LEAST as LOG2_LEAST

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
