"""Checks of options that depend on each other."""

import numpy as np

from odesim.base.arrays import check_dtype
from odesim.base.backends import BACKENDS, METHODS, find_backend
from odesim.base.errors import ParamError, SolveError, no_such
from odesim.base.run_options import CLOCKS, RunOptions
from odesim.inputs.bind import Numbers

ARRAYS = tuple(dict.fromkeys(kind for backend in BACKENDS.values() for kind in backend.arrays))


def check_run_options(options: RunOptions, use: str) -> None:
    """Raises an OdesimError for an unknown backend, clock or dtype, and for what the backend does not support in this use."""
    backend, method = find_backend(options.backend, use), options.method
    check_clock(options)
    if check_dtype(options.dtype) not in backend.dtypes:
        raise ParamError(f"the backend {backend.name} has no {options.dtype}; it has {', '.join(backend.dtypes)}")
    ability = backend.uses[use]
    if method in METHODS and method not in ability.methods:
        others = [name for name, other in BACKENDS.items() if use in other.uses and method in other.uses[use].methods]
        has = f"it has {', '.join(ability.methods)} and auto"
        elsewhere = f"; {', '.join(others)} can do {method}" if others else ""
        raise SolveError(f"{method} is no method of the backend {backend.name} for {use}; {has}{elsewhere}")
    if options.strict and method in METHODS and method not in ability.strict:
        others = [name for name, other in BACKENDS.items() if use in other.uses and method in other.uses[use].strict]
        elsewhere = f"; {method} has one on {', '.join(others)}" if others else ""
        raise SolveError(
            f"{method} has no strict mode on the backend {backend.name}, where {', '.join(ability.strict)} have one{elsewhere}"
        )


def check_clock(options: RunOptions) -> None:
    """Raises SolveError for an unknown clock, or one that does not go with the other options."""
    if options.clock not in CLOCKS:
        raise SolveError(no_such("clock", str(options.clock), CLOCKS))
    if options.rescaled and np.size(options.stop_at):
        raise SolveError("stop_at names times of the ordinary clock; the rescaled one looks for the conditions of the model by itself")
    if options.rescaled and options.max_step is not None:
        raise SolveError("max_step is a time of the ordinary clock: the rescaled one has steps of its own kind")


def check_array_kind(arrays: str, options: RunOptions) -> None:
    """Raises ParamError for a library of arrays that results cannot be in. The backend must exist."""
    if arrays not in ARRAYS:
        raise ParamError(no_such("kind of arrays", str(arrays), ARRAYS))
    if arrays not in options.on.arrays:
        able = ", ".join(name for name, backend in BACKENDS.items() if arrays in backend.arrays)
        raise ParamError(
            f"arrays={arrays!r} leaves results on the GPU of the backend {able}; those of the backend {options.backend} are numpy's"
        )
    if arrays == "cupy" and options.rescaled:
        raise ParamError("arrays='cupy' is for the ordinary clock: the processor tells a run in the rescaled one in the time t")


def sizes_text(numbers: Numbers) -> str:
    """The sizes as ` (M = 1000, K = 3)`; empty without sizes."""
    return f" ({', '.join(f'{name} = {n}' for name, n in numbers.sizes.items())})" if numbers.sizes else ""


def check_range(numbers: Numbers, dtype: str) -> None:
    """Raises ParamError if a number overflows this dtype."""
    if dtype == "float64":
        return
    most = float(np.finfo(dtype).max)
    for name, value in {**numbers.params, **numbers.initial}.items():
        if np.size(value) and float(np.max(np.abs(value))) > most:
            raise ParamError(f"{name} = {float(np.max(np.abs(value))):g} overflows {dtype}: numbers go up to {most:.2g}")
