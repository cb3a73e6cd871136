"""Functions in restricted Python that are compiled by LLVM, and operations of the machine that they call.

A function is compiled where another one that is compiled calls it (odesim.targets.front_end), once for each kinds of arguments. numba
compiles the same functions (odesim.runtime.by_numba): where the front end lacks something, where Python calls one, and as the truth of
tests. So a function means what it means to numba, with its error model of numpy.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any


class Function:
    """A Python function to be compiled. signature: of one that C may call; options: as of njit."""

    def __init__(self, py_func: Callable[..., Any], signature: str = "", **options: Any) -> None:
        self.py_func, self.signature, self.options = py_func, signature, options
        self.callback: Any = None  # what numba made for C, if it did: its code lives as long
        self.__name__, self.__doc__ = py_func.__name__, py_func.__doc__

    def __call__(self, *args: Any) -> Any:
        return self.by_numba(*args)

    @cached_property
    def by_numba(self) -> Any:
        """The same function compiled by numba."""
        from odesim.runtime.by_numba import dispatcher

        return dispatcher(self)

    @property
    def _numba_type_(self) -> Any:
        from odesim.runtime.by_numba import type_of

        return type_of(self.by_numba)


class Intrinsic:
    """An operation of the machine: rule(kinds of arguments) is its signature (result, kinds of arguments) and what writes it.

    That is emit(builder, Parts of each argument) -> Parts of the result. literal: it sees constants among its arguments.
    """

    def __init__(self, rule: Callable[..., Any], literal: bool = False) -> None:
        self.rule, self.literal = rule, literal
        self.__name__, self.__doc__ = rule.__name__, rule.__doc__

    @cached_property
    def by_numba(self) -> Any:
        """The same operation for numba."""
        from odesim.runtime.by_numba import intrinsic_of

        return intrinsic_of(self)

    @cached_property
    def _numba_type_(self) -> Any:
        from odesim.runtime.by_numba import type_of

        return type_of(self.by_numba)


def njit(signature: Any = "", **options: Any) -> Any:
    """Marks a function as one to be compiled: a decorator, with or without a signature such as "void(int64, float64)" and options.

    fastmath: {"contract"} or False; without it a function has that of the first that calls it. forceinline: inlined wherever it is called.
    loops: it has long loops over numbers, and is worth all passes of LLVM where others get few.
    """
    if callable(signature):
        return Function(signature)
    return lambda py_func: Function(py_func, signature, **options)


def intrinsic(rule: Any = None, *, literal: bool = False) -> Any:
    """A decorator that makes an Intrinsic of its rule."""
    return (lambda r: Intrinsic(r, literal)) if rule is None else Intrinsic(rule, literal)
