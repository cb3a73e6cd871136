"""Limits the threads of BLAS in a step."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

LARGE = 1000
"""States from which a factorisation, some 20 ms, is worth a second thread."""


@cache
def _controller() -> Any:
    """The controller of the loaded BLAS libraries; finding them takes a millisecond."""
    import scipy.linalg.lapack  # noqa: F401  has a BLAS of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def few_blas_threads(n: int) -> AbstractContextManager[Any]:
    """A context with one BLAS thread, for systems of fewer than LARGE states.

    The threads of a BLAS spin while they wait for a next call: on a busy machine a run of 300 states took 30 times the CPU time.
    """
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas") if n < LARGE else nullcontext()
    return limit
