"""Arrays at addresses, blocks of arrays, loads and stores in a loop, and places beside a place: where numba is slower or has no means.

These arrays do not own their memory, so none may outlive it. Nothing is checked.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import populate_array

from odesim.runtime.elementary import inlined
from odesim.runtime.intrinsics import intrinsic

STORES = 32
"""The most arrays that one loop writes."""


def array_at(context: Any, builder: Any, kind: Any, data: Any, shape: list[Any]) -> Any:
    """A contiguous array of this type at the pointer data, with this shape."""
    array = context.make_array(kind)(context, builder)
    width = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    size = context.get_constant(types.intp, width)
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None, parent=None)
    return array._getvalue()


def _at(dtype: Any, doc: str) -> Any:
    """An intrinsic that makes an array at an address, from a length or a shape."""

    def make(typingctx: Any, address: Any, shape: Any) -> Any:
        tuple_ = isinstance(shape, types.BaseTuple)
        kind = types.Array(dtype, len(shape) if tuple_ else 1, "C")

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = builder.inttoptr(args[0], context.get_data_type(dtype).as_pointer())
            lengths = cgutils.unpack_tuple(builder, args[1]) if tuple_ else [args[1]]
            return array_at(context, builder, kind, data, lengths)

        whole = types.UniTuple(types.int64, len(shape)) if tuple_ else types.int64
        return kind(types.int64, whole), emit

    make.__doc__ = doc
    return intrinsic(make)


ints = _at(types.int64, "The int64 array of this shape (or length) at address.")
float64 = _at(types.float64, "The float64 array of this shape (or length) at address.")
float32 = _at(types.float32, "The float32 array of this shape (or length) at address.")


def _data(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


@intrinsic
def part_of(typingctx: Any, a: Any, start: Any, shape: Any) -> Any:
    """The elements of a vector from start on, as an array of this shape (a tuple)."""
    kind = types.Array(a.dtype, len(shape), "C")

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = builder.gep(_data(context, builder, signature.args[0], args[0]), [args[1]])
        return array_at(context, builder, kind, data, cgutils.unpack_tuple(builder, args[2]))

    return kind(a, types.int64, types.UniTuple(types.int64, len(shape))), emit


@intrinsic
def block(typingctx: Any, a: Any, low: Any, high: Any) -> Any:
    """The block a[low:high] of a vector, 0 <= low <= high <= its length."""
    kind = types.Array(a.dtype, 1, "C")

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = builder.gep(_data(context, builder, signature.args[0], args[0]), [args[1]])
        return array_at(context, builder, kind, data, [builder.sub(args[2], args[1])])

    return kind(a, types.int64, types.int64), emit


@intrinsic
def vector(typingctx: Any, a: Any, start: Any) -> Any:
    """The memory of a contiguous array from its element `start` on, as a vector whose length nobody may ask for."""
    kind = types.Array(a.dtype, 1, "C")

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = builder.gep(_data(context, builder, signature.args[0], args[0]), [args[1]])
        return array_at(context, builder, kind, data, [context.get_constant(types.intp, 0)])

    return kind(a, types.int64), emit


@intrinsic
def row_block(typingctx: Any, a: Any, row: Any, low: Any, high: Any) -> Any:
    """The block a[row, low:high] of a matrix, 0 <= low <= high <= its width."""
    kind = types.Array(a.dtype, 1, "C")

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        matrix = context.make_array(signature.args[0])(context, builder, args[0])
        width = builder.extract_value(matrix.shape, 1)
        data = builder.gep(matrix.data, [builder.add(builder.mul(args[1], width), args[2])])
        return array_at(context, builder, kind, data, [builder.sub(args[3], args[2])])

    return kind(a, types.int64, types.int64, types.int64), emit


def _promise(builder: Any, access: Any, loop: int, group: str) -> None:
    """Promises LLVM that a load or store touches only the arrays of one group in a loop (metadata alias.scope and noalias).

    Without this a loop over more than a few arrays is not vectorised, because LLVM compares at most eight pairs of pointers.
    """
    module = builder.module
    text = lambda s: ir.MetaDataString(module, s)  # noqa: E731
    domain = module.add_metadata([text("odesim")])
    names = ["read", *(f"write {q}" for q in range(STORES))]
    scopes = {name: module.add_metadata([text(f"odesim loop {loop} {name}"), domain]) for name in names}
    access.set_metadata("alias.scope", module.add_metadata([scopes[group]]))
    access.set_metadata("noalias", module.add_metadata([scopes[name] for name in names if name != group]))


@intrinsic(prefer_literal=True)
def load(typingctx: Any, loop: Any, a: Any, i: Any) -> Any:
    """The element a[i] of a contiguous array that the loop with this number only reads."""
    number = loop.literal_value

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(builder.gep(_data(context, builder, signature.args[1], args[1]), [args[2]]))
        _promise(builder, value, number, "read")
        return value

    return a.dtype(loop, a, types.int64), emit


@intrinsic(prefer_literal=True)
def reload(typingctx: Any, loop: Any, q: Any, a: Any, i: Any) -> Any:
    """The element a[i] that the loop with this number has written before; a is the q-th array that it writes."""
    number, place = loop.literal_value, q.literal_value

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(builder.gep(_data(context, builder, signature.args[2], args[2]), [args[3]]))
        _promise(builder, value, number, f"write {place}")
        return value

    return a.dtype(loop, q, a, types.int64), emit


@intrinsic(prefer_literal=True)
def store(typingctx: Any, loop: Any, q: Any, a: Any, i: Any, x: Any) -> Any:
    """Stores a[i] = x; a is the q-th contiguous array that the loop with this number writes, and reads only by `reload`."""
    number, place = loop.literal_value, q.literal_value

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = context.cast(builder, args[4], types.float64, signature.args[2].dtype)
        written = builder.store(value, builder.gep(_data(context, builder, signature.args[2], args[2]), [args[3]]))
        _promise(builder, written, number, f"write {place}")
        return context.get_dummy_value()

    return types.void(loop, q, a, types.int64, types.float64), emit


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
