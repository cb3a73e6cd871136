"""BLAS: the matrix product of scipy's library for compiled code, and a limit on its threads."""

import ctypes
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

LARGE = 1000
"""States from which a factorisation, some 20 ms, is worth a second thread."""

TILED, TURNED = 4_000_000, 40_000
"""Multiplications of a matrix product up to which our own tiles take less time than BLAS; and where the first matrix is turned."""


@cache
def gemm_address(dtype: str) -> int:
    """The address of BLAS's dgemm (float64) or sgemm (float32), as C functions whose arguments are pointers."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__["dgemm" if dtype == "float64" else "sgemm"]
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer(capsule, name(capsule)))


@cache
def _controller() -> Any:
    """The controller of the loaded BLAS libraries; finding them takes a millisecond."""
    import scipy.linalg.lapack  # noqa: F401  has a BLAS of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context with one BLAS thread.

    The threads of a BLAS spin while they wait for the next call. On a busy machine a run of 300 states took 30 times the CPU time. And
    products by one thread have the same bits whatever the number of processors.
    """
    return _controller().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


def few_blas_threads(n: int) -> AbstractContextManager[Any]:
    """A context with one BLAS thread, for systems of fewer than LARGE states."""
    return one_blas_thread() if n < LARGE else nullcontext()
