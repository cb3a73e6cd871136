"""Arrays of any library by one name, dtype rules, and the layout of named arrays in one flat vector."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odesim.base.gpu import device_errors
from odesim.errors import ParamError, no_such

Array = NDArray[Any]
DTYPES = ("float64", "float32")
LINE, PAGE = 64, 4096  # bytes


def array_namespace(*arrays: Any) -> ModuleType:
    """cupy where one of the arrays lies on a GPU, else numpy."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and any(isinstance(a, cupy.ndarray) for a in arrays):
        return cupy
    return np


def on_host(value: Any) -> Any:
    """value in this computer's own memory: an array on a GPU is copied, also inside a list or a mapping; all else stays as it is.

    Raises DeviceError where the GPU does not give it.
    """
    if hasattr(value, "__cuda_array_interface__") and hasattr(value, "get"):
        with device_errors("a copy of an array", "a smaller one"):
            return value.get()
    if isinstance(value, Mapping):
        return {name: on_host(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple) and any(type(inner) not in (float, int) for inner in value):
        return [on_host(inner) for inner in value]
    return value


def beside(like: Any, named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The named arrays where like lies: on a GPU, copied there unless they are, or as they are."""
    xp = array_namespace(like)
    return named if xp is np else {name: xp.asarray(a) for name, a in named.items()}


def aligned_empty(shape: int | tuple[int, ...], dtype: Any = np.float64, *, turn: int = 0) -> Array:
    """An array that starts on a cache line, not filled: a vector load that crosses lines costs two.

    turn: a small number that differs between arrays of one loop, so that their lines do not fall on each other in the cache.
    """
    count = prod(shape) if isinstance(shape, tuple) else shape
    size = count * np.dtype(dtype).itemsize
    if size < PAGE:
        return np.empty(shape, dtype)
    raw = np.empty(size + PAGE + LINE, np.uint8)
    start = -raw.ctypes.data % LINE + turn * 5 * LINE % PAGE
    return raw[start : start + size].view(dtype).reshape(shape)


def arena(sizes: Mapping[int, int]) -> tuple[Array, dict[int, int]]:
    """One memory for arrays of these sizes in bytes, and where in it each starts, on a cache line; by their keys.

    The key of a large array is its turn: those of one loop do not all start at the same place of a page.
    """
    starts, total = {}, 0
    for turn, size in sizes.items():
        total += (turn * 5 * LINE % PAGE - total) % PAGE if size >= PAGE else 0
        starts[turn] = total
        total += -(-size // LINE) * LINE
    return aligned_empty(max(total, PAGE), np.uint8), starts


def aligned(a: Array, *, turn: int = 0) -> Array:
    """a, or a copy of it that starts on a cache line."""
    if a.nbytes < PAGE or a.ctypes.data % LINE == 0:
        return a
    out = aligned_empty(a.shape, a.dtype, turn=turn)
    out[...] = a
    return out


def check_dtype(name: str) -> str:
    """name where it is one of DTYPES. Raises ParamError otherwise."""
    if name not in DTYPES:
        raise ParamError(no_such("dtype", str(name), DTYPES))
    return name


@dataclass(frozen=True)
class Layout:
    """Named arrays one after another, C order, in a flat vector y (n,).

    names (k,), shapes (k,): a scalar has shape ().
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each array starts, and at the end the length n: (k + 1,)."""
        out = [0]
        for shape in self.shapes:
            out.append(out[-1] + prod(shape))
        return tuple(out)

    @property
    def size(self) -> int:
        """n, the length of the flat vector."""
        return self.offsets[-1]

    def split(self, y: Array) -> dict[str, Array]:
        """Views {name: (*lead, *shape)} of y (*lead, n); the last axis is the flat one."""
        pieces = zip(self.names, self.shapes, self.offsets[:-1], self.offsets[1:], strict=True)
        return {name: y[..., a:b].reshape((*y.shape[:-1], *shape)) for name, shape, a, b in pieces}

    def join(self, parts: Mapping[str, Any], dtype: str = "float64") -> Array:
        """The flat vector (n,) of named arrays."""
        y = np.empty(self.size, dtype)
        for name, view in self.split(y).items():
            view[...] = parts[name]
        return y
