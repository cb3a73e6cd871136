"""Options of a run that only make sense together, checked."""

from typing import Any

import numpy as np

from odesim.errors import ParamError, SolveError, no_such
from odesim.inputs.bind import Numbers
from odesim.solve import ROSENBROCK
from odesim.solve.methods import METHODS

RESCALED = "rescaled"


CLOCKS = ("ordinary", RESCALED)


ARRAYS = ("numpy", "cupy")


def check_strict(method: str, strict: bool, backend: str = "numba") -> None:
    """Raises SolveError for a method that the backend does not have, or not with the same bits on every machine."""
    if backend == "cuda" and method in ROSENBROCK:
        raise SolveError(
            f"{method} solves its linear systems on the processor: one large system on cuda takes {', '.join(METHODS)} or auto"
        )
    if strict and method in ROSENBROCK and backend != "numba":
        raise SolveError(f"{method} solves its linear systems with LAPACK on the backend {backend}: strict mode takes numba")


def check_clock(clock: Any, stop_at: Any = (), max_step: Any = None) -> None:
    """Raises SolveError for a clock that is none, or that is asked for what it cannot do."""
    if clock not in CLOCKS:
        raise SolveError(no_such("clock", str(clock), CLOCKS))
    if clock == RESCALED and np.size(stop_at):
        raise SolveError("stop_at names times of the ordinary clock; the rescaled one looks for the conditions of the model by itself")
    if clock == RESCALED and max_step is not None:
        raise SolveError("max_step is a time of the ordinary clock: the rescaled one has steps of its own kind")


def check_arrays(arrays: Any, backend: str, clock: str = "ordinary") -> None:
    """Raises ParamError for arrays that results cannot be in."""
    if arrays not in ARRAYS:
        raise ParamError(no_such("kind of arrays", str(arrays), ARRAYS))
    if arrays == "cupy" and backend != "cuda":
        raise ParamError(f"arrays='cupy' leaves results on the GPU of the backend cuda; those of the backend {backend} are numpy's")
    if arrays == "cupy" and clock == RESCALED:
        raise ParamError("arrays='cupy' is for the ordinary clock: the processor tells a run in the rescaled one in the time t")


def said_sizes(numbers: Numbers) -> str:
    """` (M = 1000, K = 3)`; nothing without sizes."""
    return f" ({', '.join(f'{name} = {n}' for name, n in numbers.sizes.items())})" if numbers.sizes else ""


def check_range(numbers: Numbers, dtype: str) -> None:
    """Raises ParamError where a number overflows this dtype."""
    if dtype == "float64":
        return
    most = float(np.finfo(dtype).max)
    for name, value in {**numbers.params, **numbers.initial}.items():
        if np.size(value) and float(np.max(np.abs(value))) > most:
            raise ParamError(f"{name} = {float(np.max(np.abs(value))):g} overflows {dtype}: numbers go up to {most:.2g}")
