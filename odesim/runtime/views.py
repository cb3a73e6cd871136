"""Arrays at addresses, blocks of arrays, loads and stores in a loop, and places beside a place.

These arrays do not own their memory, so none may outlive it. Nothing is checked.
"""

from typing import Any

from llvmlite import ir

from odesim.runtime.elementary import inlined
from odesim.runtime.functions import intrinsic
from odesim.runtime.kinds import F32, F64, I64, VOID, Kind, Vector

STORES = 32
"""The most arrays that one loop writes."""


def _at(number: Any, doc: str) -> Any:
    """An intrinsic that makes an array at an address, from a length or a shape."""

    def make(address: Kind, shape: Kind) -> Any:
        several = isinstance(shape, tuple)

        def emit(builder: Any, address: Any, shape: Any) -> Any:
            return builder.inttoptr(address, number.as_pointer()), shape if several else [shape]

        rank = len(shape) if several else 1
        return Vector(number, rank), [I64, (I64,) * rank if several else I64], emit

    make.__doc__ = doc
    return intrinsic(make)


ints = _at(I64, "The int64 array of this shape (or length) at address.")
float64 = _at(F64, "The float64 array of this shape (or length) at address.")
float32 = _at(F32, "The float32 array of this shape (or length) at address.")


@intrinsic
def part_of(a: Kind, start: Kind, shape: Kind) -> Any:
    """The elements of a vector from start on, as an array of this shape (a tuple)."""
    kind = Vector(a.dtype, len(shape))
    return kind, [a, I64, (I64,) * len(shape)], lambda builder, a, start, shape: (builder.gep(a[0], [start]), shape)


@intrinsic
def block(a: Kind, low: Kind, high: Kind) -> Any:
    """The block a[low:high] of a vector, 0 <= low <= high <= its length."""
    return Vector(a.dtype), [a, I64, I64], lambda builder, a, low, high: (builder.gep(a[0], [low]), [builder.sub(high, low)])


@intrinsic
def vector(a: Kind, start: Kind) -> Any:
    """The memory of a contiguous array from its element `start` on, as a vector whose length nobody may ask for."""
    return Vector(a.dtype), [a, I64], lambda builder, a, start: (builder.gep(a[0], [start]), [I64(0)])


@intrinsic
def row_block(a: Kind, row: Kind, low: Kind, high: Kind) -> Any:
    """The block a[row, low:high] of a matrix, 0 <= low <= high <= its width."""

    def emit(builder: Any, a: Any, row: Any, low: Any, high: Any) -> Any:
        data, (_, width) = a
        return builder.gep(data, [builder.add(builder.mul(row, width), low)]), [builder.sub(high, low)]

    return Vector(a.dtype), [a, I64, I64, I64], emit


def _promise(builder: Any, access: Any, loop: Any, group: str) -> Any:
    """Promises LLVM that a load or store touches only the arrays of one group in a loop (metadata alias.scope and noalias).

    Without this a loop over more than a few arrays is not vectorised, because LLVM compares at most eight pairs of pointers.
    """
    module = builder.module
    text = lambda s: ir.MetaDataString(module, s)  # noqa: E731
    domain = module.add_metadata([text("odesim")])
    names = ["read", *(f"write {q}" for q in range(STORES))]
    scopes = {name: module.add_metadata([text(f"odesim loop {loop.constant} {name}"), domain]) for name in names}
    access.set_metadata("alias.scope", module.add_metadata([scopes[group]]))
    access.set_metadata("noalias", module.add_metadata([scopes[name] for name in names if name != group]))
    return access


@intrinsic(literal=True)
def load(loop: Kind, a: Kind, i: Kind) -> Any:
    """The element a[i] of a contiguous array that the loop with this number only reads."""

    def emit(builder: Any, loop: Any, a: Any, i: Any) -> Any:
        return _promise(builder, builder.load(builder.gep(a[0], [i])), loop, "read")

    return a.dtype, [I64, a, I64], emit


@intrinsic(literal=True)
def reload(loop: Kind, q: Kind, a: Kind, i: Kind) -> Any:
    """The element a[i] that the loop with this number has written before; a is the q-th array that it writes."""

    def emit(builder: Any, loop: Any, q: Any, a: Any, i: Any) -> Any:
        return _promise(builder, builder.load(builder.gep(a[0], [i])), loop, f"write {q.constant}")

    return a.dtype, [I64, I64, a, I64], emit


@intrinsic(literal=True)
def store(loop: Kind, q: Kind, a: Kind, i: Kind, x: Kind) -> Any:
    """Stores a[i] = x; a is the q-th contiguous array that the loop with this number writes, and reads only by `reload`."""

    def emit(builder: Any, loop: Any, q: Any, a: Any, i: Any, x: Any) -> None:
        _promise(builder, builder.store(x, builder.gep(a[0], [i])), loop, f"write {q.constant}")

    return VOID, [I64, I64, a, I64, a.dtype], emit


@inlined
def wrap(i: int, n: int) -> int:
    """The place i on a ring."""
    if i >= 0 and i < n:
        return i
    return (i % n + n) % n


@inlined
def clip(i: int, n: int) -> int:
    """The place that is nearest to i."""
    return max(0, min(i, n - 1))


@inlined
def on_axis(i: int, n: int) -> bool:
    """Whether the axis has the place i."""
    return i >= 0 and i < n
