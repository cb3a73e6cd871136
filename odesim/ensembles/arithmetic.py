"""The step controller's power and the times of fixed steps, inlined into loops over lanes."""

from typing import Any

from numba import njit

from odesim.solve.explicit import control

# fastmath is said: what says nothing takes over that of whoever calls it first
OPTIONS = {"error_model": "numpy", "fastmath": False, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_compile: Any = njit  # some of its options are not in its type
power = _compile(**OPTIONS)(control.power.py_func)


@_compile(**OPTIONS)
def moment(k: int, t0: float, t1: float, step: float, total: int) -> float:
    """The time after k of `total` steps."""
    return t0 + k * step if k < total else t1
