"""Arrays of numpy and cupy: alignment, dtypes, and named arrays in one flat vector."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odesim.base.backends import DTYPES
from odesim.base.device import device_errors
from odesim.base.errors import ParamError, no_such

Array = NDArray[Any]
LINE, PAGE = 64, 4096  # bytes
# Fourth powers of what is smaller are numbers, and squares of what is larger, so that nothing needs a second look.
POWER, ROOT = 0.25, 0.5
FEW = 64  # numbers that Python looks at in less time than numpy does


def every_phase(n: int, most: int) -> Array:
    """Numbers (m,) of n items: 0, s, 2 s, ... in at most `most` strides s, and the last; no s has a factor 2 or 3.

    So what comes again after 2, 3, 4, 6, 8, ... items shows all its values; an even stride would make what alternates a constant.
    """
    stride = max(-(-(n - 1) // most), 1)
    while stride % 2 == 0 or stride % 3 == 0:
        stride += 1
    return np.append(np.arange(0, n - 1, stride), n - 1)


def entry(name: str, at: Iterable[Any]) -> str:
    """An entry of an array by name: `v[0, 1]`, or `v` of a number."""
    inside = ", ".join(map(str, at))
    return f"{name}[{inside}]" if inside else name


def array_namespace(*arrays: Any) -> ModuleType:
    """The module that computes with these arrays: cupy where one of them is on a GPU, else numpy."""
    cupy = sys.modules.get("cupy")
    if cupy is not None and any(isinstance(a, cupy.ndarray) for a in arrays):
        return cupy
    return np


def on_host(value: Any) -> Any:
    """value with its arrays of GPUs and of other libraries as numpy's, those inside lists and mappings too; anything else unchanged.

    Raises DeviceError where a copy fails, ParamError where a library does not hand out an array.
    """
    if hasattr(value, "__cuda_array_interface__") and hasattr(value, "get"):
        with device_errors("a copy of an array", "a smaller one"):
            return value.get()
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        return _from_dlpack(value)
    if isinstance(value, Mapping):
        return {name: on_host(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple) and any(type(inner) not in (float, int) for inner in value):
        return [on_host(inner) for inner in value]
    return value


ON_HOST = (1, 3)
"""DLPack's devices whose memory the processor reads: kDLCPU and kDLCUDAHost."""


def _from_dlpack(value: Any) -> Array:
    """The array of a library that speaks DLPack, such as a tensor of torch; copied from its GPU by cupy."""
    what = f"an array of {type(value).__module__.partition('.')[0]}"
    try:
        if value.__dlpack_device__()[0] in ON_HOST:
            return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # it needs a gradient, or has a type that numpy lacks
        raise ParamError(f"{what} is not handed out by DLPack: {error}") from None
    try:
        from cupy import from_dlpack
    except ImportError:
        raise ParamError(f"{what} lies on a GPU: copy it to the host, or install cupy") from None
    with device_errors("a copy of an array", "a smaller one"):
        return np.asarray(from_dlpack(value).get())


def extreme(values: Iterable[Any], dtype: str) -> bool:
    """Whether a number is so large that powers of it overflow in this dtype, or so small that its square is 0."""
    small, large = _usual(dtype)
    numbers = list[float]()
    for value in values:
        if not getattr(value, "ndim", 0):
            numbers.append(float(value))
        elif isinstance(value, np.ndarray) and value.size <= FEW:  # what lies on a GPU stays there
            numbers += value.ravel().tolist()
        elif extreme_entries(value, dtype).any():
            return True
    sizes = [size for size in map(abs, numbers) if 0 < size < np.inf]
    return bool(sizes) and not small <= min(sizes) <= max(sizes) <= large


def largest(named: Mapping[str, Any]) -> dict[str, float]:
    """{name: size of the largest number in its array}."""
    return {name: float(np.abs(a).max(initial=0.0)) if getattr(a, "ndim", 0) else abs(float(a)) for name, a in named.items()}


def extreme_entries(values: Any, dtype: str) -> Any:
    """Which entries of an array of numpy or cupy are extreme in this dtype; those that are not finite are not."""
    (small, large), sizes = _usual(dtype), abs(values)
    return ((sizes > large) & (sizes < np.inf)) | ((sizes > 0) & (sizes < small))


@cache
def _usual(dtype: str) -> tuple[float, float]:
    """The least and the largest size of a number that is not extreme."""
    return float(np.finfo(dtype).tiny) ** ROOT, float(np.finfo(dtype).max) ** POWER


def on_same_device(like: Any, named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The named arrays on the device of `like`: copied to its GPU, or unchanged where `like` is on the host."""
    xp = array_namespace(like)
    return named if xp is np else {name: xp.asarray(a) for name, a in named.items()}


def aligned_empty(shape: int | tuple[int, ...], dtype: Any = np.float64, *, turn: int = 0) -> Array:
    """An uninitialised array that starts on a cache line, because a vector load that crosses two lines costs twice.

    turn: a small number that differs between the arrays of one loop, so that they do not compete for the same cache sets.
    """
    size = (prod(shape) if isinstance(shape, tuple) else shape) * np.dtype(dtype).itemsize
    if size < PAGE:
        return np.empty(shape, dtype)
    # a level-1 cache finds its set by the offset in a page: arrays of one loop that start at the same offset evict each other. 5 and the 64
    # lines of a page have no common factor, so that 64 arrays have starts of their own, and consecutive ones are not neighbours.
    raw = np.empty(size + PAGE + LINE, np.uint8)
    return np.ndarray(shape, dtype, raw, -raw.ctypes.data % LINE + turn * 5 * LINE % PAGE)


class Arena:
    """The places of arrays of these sizes in bytes in one block of memory, all on cache lines. starts {key: offset of an array}.

    The key of a large array is its turn (see aligned_empty), so that the arrays of one loop start at different offsets in a page.
    """

    def __init__(self, sizes: Mapping[int, int]) -> None:
        self.starts, total = dict[int, int](), 0
        for turn, size in sizes.items():
            total += (turn * 5 * LINE % PAGE - total) % PAGE if size >= PAGE else 0
            self.starts[turn] = total
            total += -(-size // LINE) * LINE
        self.size = max(total, PAGE)
        self._keys, self._offsets = (np.array(list(part), np.int64) for part in (self.starts, self.starts.values()))

    def memory(self, table: Array) -> Array:
        """A new block, with the addresses of its arrays in a table (k,) of int64, where their keys are their places."""
        raw = np.empty(self.size + LINE, np.uint8)
        address = raw.ctypes.data  # asked once: numpy makes an object for it, which takes a microsecond
        first = -address % LINE
        table[self._keys] = address + first + self._offsets
        return raw[first : first + self.size]


def aligned(a: Array, *, turn: int = 0) -> Array:
    """a, or a copy of it that starts on a cache line."""
    if a.nbytes < PAGE or a.ctypes.data % LINE == 0:
        return a
    out = aligned_empty(a.shape, a.dtype, turn=turn)
    out[...] = a
    return out


def shaped(name: str, value: Any, default: Array, lengths: str) -> Array:
    """A value as an array of the default's shape, or the default for None. lengths: what makes that shape. Raises ParamError."""
    array = default if value is None else np.atleast_1d(np.array(value, float))
    if array.shape != default.shape:
        raise ParamError(f"{name} has the shape {default.shape} with {lengths}, not {array.shape}")
    return array


def check_dtype(name: str) -> str:
    """name, which must be one of DTYPES. Raises ParamError otherwise."""
    if name not in DTYPES:
        raise ParamError(no_such("dtype", str(name), DTYPES))
    return name


@dataclass(frozen=True)
class Layout:
    """The positions of named arrays in a flat vector y (n,): one after another, each in C order.

    names (k,), shapes (k,): a scalar has shape ().
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The start of each array in the flat vector, then its length n: (k + 1,)."""
        out = [0]
        for shape in self.shapes:
            out.append(out[-1] + prod(shape))
        return tuple(out)

    @cached_property
    def size(self) -> int:
        """n, the length of the flat vector."""
        return self.offsets[-1]

    def split(self, y: Array) -> dict[str, Array]:
        """Views {name: (*lead, *shape)} of y (*lead, n); the last axis is the flat one."""
        ranges, lead = zip(self.names, self.shapes, self.offsets[:-1], self.offsets[1:], strict=True), y.shape[:-1]
        return {name: y[..., a:b].reshape(lead + shape) if shape else y[..., a] for name, shape, a, b in ranges}

    def join(self, parts: Mapping[str, Any], dtype: str = "float64") -> Array:
        """The flat vector (n,) of named arrays."""
        if not any(self.shapes):  # numbers alone, together: one by one, 28 of them take ten times as long
            return np.array([parts[name] for name in self.names], dtype)
        y = np.empty(self.size, dtype)
        for name, view in self.split(y).items():
            view[...] = parts[name]
        return y


def rows_where(mask: Array) -> Any:
    """The numbers of rows where a mask (N,) holds; a slice where it does everywhere, which copies nothing."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def put_rows(into: Array, rows: Array, values: Array) -> None:
    """into[rows] = values, of shapes (N, n) and (k, n), n > 0, as rows of bytes: numbers one by one take ten times as long."""
    whole = f"V{into.itemsize * into.shape[1]}"
    into.view(whole)[rows, 0] = np.ascontiguousarray(values, into.dtype).view(whole)[:, 0]


def rounding(t0: float, t1: float) -> float:
    """By how much times between these may be off that people wrote as sums, such as 0.1 + 0.2."""
    return float(4 * np.spacing(max(abs(t0), abs(t1))))


def to_ends(times: Array, t0: float, t1: float) -> Array:
    """Increasing times (T,), the last of which is t1 if it is beyond it by no more than rounding, and the first t0."""
    near, held = rounding(t0, t1), times.copy()
    for k, end, beyond in ((0, t0, t0 - times[:1]), (len(times) - 1, t1, times[-1:] - t1)):
        if 0 < beyond.sum() <= near:
            held[k] = end
    return held if np.all(np.diff(held) > 0) else times
