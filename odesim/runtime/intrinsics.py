"""Machine operations that Python has no function for: those on numbers vectorise in a loop; pointers and calls by address compile sooner
than arrays."""

from typing import Any

from llvmlite import ir

from odesim.runtime.functions import intrinsic
from odesim.runtime.kinds import F32, F64, I1, I64, VOID, Kind, Pointer


@intrinsic
def bits(x: Kind) -> Any:
    """The 64 bits of a float64 as an int64."""
    return I64, [F64], lambda builder, x: builder.bitcast(x, I64)


@intrinsic
def from_bits(i: Kind) -> Any:
    """The float64 with the 64 bits of an int64."""
    return F64, [I64], lambda builder, i: builder.bitcast(i, F64)


@intrinsic
def fma(a: Kind, b: Kind, c: Kind) -> Any:
    """The fused multiply-add a*b + c, rounded once: the same bits on every machine, for any fastmath option."""
    return F64, [F64] * 3, lambda builder, a, b, c: builder.fma(a, b, c)


@intrinsic
def rint(x: Kind) -> Any:
    """x rounded to the nearest integer, ties to even, as a float64."""
    return F64, [F64], lambda builder, x: builder.call(builder.module.declare_intrinsic("llvm.rint", [F64]), [x])


@intrinsic
def floor(x: Kind) -> Any:
    """The largest whole number not above x, as a float64; infinities and NaN are returned unchanged."""
    return F64, [F64], lambda builder, x: builder.call(builder.module.declare_intrinsic("llvm.floor", [F64]), [x])


@intrinsic
def select(condition: Kind, a: Kind, b: Kind) -> Any:
    """a where the condition holds, else b, without a branch: both are computed."""
    return F64, [I1, F64, F64], lambda builder, condition, a, b: builder.select(condition, a, b)


@intrinsic
def polynomial(x: Kind, coefficients: Kind) -> Any:
    """The polynomial coefficients[0] + coefficients[1]*x + ..., by fma: Horner's scheme in x^2 for even and for odd powers."""

    def emit(builder: Any, x: Any, terms: Any) -> Any:
        square = builder.fmul(x, x)
        halves = []
        for part in (terms[0::2], terms[1::2]):
            total = part[-1]
            for term in reversed(part[:-1]):
                total = builder.fma(total, square, term)
            halves.append(total)
        return builder.fma(halves[1], x, halves[0])

    return F64, [F64, coefficients], emit


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
