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

from odesim.errors import ParamError, no_such

Array = NDArray[Any]
DTYPES = ("float64", "float32")


def array_namespace(*arrays: Any) -> ModuleType:
    """cupy where one of the arrays lies on a GPU, else numpy."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and any(isinstance(a, cupy.ndarray) for a in arrays):
        return cupy
    return np


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
