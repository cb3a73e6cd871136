"""Pointers and function calls by address in compiled code: cheaper to compile than arrays."""

from typing import Any

from llvmlite import ir

from odesim.runtime.functions import intrinsic
from odesim.runtime.intrinsics import bits, fma, from_bits
from odesim.runtime.kinds import F32, F64, I64, VOID, Kind, Pointer


def _pointer_to(number: Any, doc: str) -> Any:
    """An intrinsic that turns an address into a pointer to numbers."""

    def pointer(address: Kind) -> Any:
        return Pointer(number), [I64], lambda builder, address: builder.inttoptr(address, number.as_pointer())

    pointer.__doc__ = doc
    return intrinsic(pointer)


ints = _pointer_to(I64, "A pointer to int64 at address.")
doubles = _pointer_to(F64, "A pointer to float64 at address.")
floats = _pointer_to(F32, "A pointer to float32 at address.")


@intrinsic
def call(address: Kind, arguments: Kind) -> Any:
    """Calls the function at address, which returns nothing, with a tuple of int64 and float64 arguments."""
    kinds = [F64 if kind in (F32, F64) else I64 for kind in arguments]

    def emit(builder: Any, address: Any, values: Any) -> None:
        builder.call(builder.inttoptr(address, ir.FunctionType(ir.VoidType(), kinds).as_pointer()), values)

    return VOID, [I64, tuple(kinds)], emit


__all__ = ["bits", "call", "doubles", "floats", "fma", "from_bits", "ints"]
