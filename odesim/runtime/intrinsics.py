"""Machine operations that numba has no function for; all of them vectorise inside a loop."""

from typing import Any

from llvmlite import ir
from numba import extending, types

intrinsic: Any = extending.intrinsic  # its type stub counts the typing context as an argument of calls
_F64, _I64 = ir.DoubleType(), ir.IntType(64)


@intrinsic
def bits(typingctx: Any, x: Any) -> Any:
    """The 64 bits of a float64 as an int64."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], _I64)

    return types.int64(types.float64), emit


@intrinsic
def from_bits(typingctx: Any, i: Any) -> Any:
    """The float64 with the 64 bits of an int64."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], _F64)

    return types.float64(types.int64), emit


@intrinsic
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """The fused multiply-add a*b + c, rounded once: the same bits on every machine, for any fastmath option."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), emit


@intrinsic
def rint(typingctx: Any, x: Any) -> Any:
    """x rounded to the nearest integer, ties to even, as a float64."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.rint", [_F64]), args)

    return types.float64(types.float64), emit


@intrinsic
def floor(typingctx: Any, x: Any) -> Any:
    """The largest whole number not above x, as a float64; infinities and NaN are returned unchanged."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.floor", [_F64]), args)

    return types.float64(types.float64), emit


@intrinsic
def select(typingctx: Any, condition: Any, a: Any, b: Any) -> Any:
    """a where the condition holds, else b, without a branch: both are computed."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return types.float64(types.boolean, types.float64, types.float64), emit


@intrinsic
def polynomial(typingctx: Any, x: Any, coefficients: Any) -> Any:
    """The polynomial coefficients[0] + coefficients[1]*x + ..., by fma: Horner's scheme in x^2 for even and for odd powers."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, packed = args
        terms = [builder.extract_value(packed, k) for k in range(coefficients.count)]
        square = builder.fmul(x, x)
        halves = []
        for part in (terms[0::2], terms[1::2]):
            total = part[-1]
            for term in reversed(part[:-1]):
                total = builder.fma(total, square, term)
            halves.append(total)
        return builder.fma(halves[1], x, halves[0])

    return types.float64(types.float64, coefficients), emit
