"""The step controller's power, inlined into loops over lanes."""

from numba import njit

from odesim.solve.explicit import control

power = njit(error_model="numpy", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(control.power.py_func)
