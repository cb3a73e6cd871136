"""The step controller's power, inlined into loops over lanes."""

from typing import Any

from numba import njit

from odesim.solve.explicit import control

_compile: Any = njit  # some of its options are not in its type
power = _compile(error_model="numpy", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(control.power.py_func)
