"""Functions that compiled code calls by their addresses: the types of them, and those of Python behind one."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

_I, _F = ctypes.c_int64, ctypes.c_double
# arguments are addresses, whole numbers and times, as odesim.stepper.problem.BoundSystem has them
STAGE = ctypes.CFUNCTYPE(None, _I, _F, *[_I] * 7)
COMBINE = ctypes.CFUNCTYPE(None, *[_I] * 9)
VALUES = ctypes.CFUNCTYPE(None, _I, _F, _I, _I)
"""Of a table, a time, a state, and where the values go: events, laws, derivatives."""


class Callbacks:
    """Python functions as C functions. The first exception of one is kept until the C function that called it has returned."""

    def __init__(self) -> None:
        self._failure: BaseException | None = None
        self._alive: list[Any] = []

    def check(self) -> None:
        """Raises the exception of a function, once."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error

    def address(self, f: Callable[..., None], kind: Any, otherwise: Callable[..., None] = lambda *_: None) -> int:
        """The address of f as a C function of this kind. After an exception each call goes to `otherwise`.

        numpy's floating-point warnings are off within: a trial step may overflow, and is rejected.
        """

        def called(*arguments: Any) -> None:
            if self._failure is None:
                try:
                    with np.errstate(all="ignore"):
                        f(*arguments)
                    return
                except BaseException as error:  # ctypes can only drop it
                    self._failure = error
            otherwise(*arguments)

        function = kind(called)
        self._alive.append(function)
        return ctypes.cast(function, ctypes.c_void_p).value or 0
