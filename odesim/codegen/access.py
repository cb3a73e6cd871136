"""Loads and stores that promise LLVM what numba cannot say: the arrays of one loop do not overlap.

Without the promise a loop over more than a few arrays is not vectorised: LLVM compares at most eight pairs of pointers at run time.
"""

from typing import Any

from llvmlite import ir
from numba import types

from odesim.codegen.intrinsics import intrinsic

STORES = 6
"""Arrays that one loop may write."""


def _promise(builder: Any, access: Any, loop: int, own: str) -> None:
    """Marks a load or store as reaching the arrays `own` of a loop and none of its others."""
    module = builder.module
    text = lambda s: ir.MetaDataString(module, s)  # noqa: E731
    domain = module.add_metadata([text("odesim")])
    names = ["read", *(f"write {q}" for q in range(STORES))]
    scopes = {name: module.add_metadata([text(f"odesim loop {loop} {name}"), domain]) for name in names}
    access.set_metadata("alias.scope", module.add_metadata([scopes[own]]))
    access.set_metadata("noalias", module.add_metadata([scopes[name] for name in names if name != own]))


def _address(context: Any, builder: Any, array_type: Any, array: Any, i: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [i])


@intrinsic(prefer_literal=True)
def load(typingctx: Any, loop: Any, a: Any, i: Any) -> Any:
    """a[i] of a contiguous array that the loop of this number only reads."""
    number = loop.literal_value

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_address(context, builder, signature.args[1], args[1], args[2]))
        _promise(builder, value, number, "read")
        return value

    return a.dtype(loop, a, types.int64), emit


@intrinsic(prefer_literal=True)
def store(typingctx: Any, loop: Any, q: Any, a: Any, i: Any, x: Any) -> Any:
    """a[i] = x, a the q-th contiguous array that the loop of this number writes and never reads."""
    number, place = loop.literal_value, q.literal_value

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = context.cast(builder, args[4], types.float64, signature.args[2].dtype)
        written = builder.store(value, _address(context, builder, signature.args[2], args[2], args[3]))
        _promise(builder, written, number, f"write {place}")
        return context.get_dummy_value()

    return types.void(loop, q, a, types.int64, types.float64), emit
