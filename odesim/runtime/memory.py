"""Pointers and function calls by address in compiled code: cheaper to compile than arrays, and without numba's run time."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _pointer_to(kind: Any) -> Any:
    """An intrinsic that turns an address into a pointer to this type."""

    def pointer(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), generate

    return intrinsic(pointer)


ints = _pointer_to(types.int64)
doubles = _pointer_to(types.float64)
floats = _pointer_to(types.float32)


def _call(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Calls the function at address, which returns nothing, with a tuple of int64 and float64 arguments."""
    double = [isinstance(kind, types.Float) for kind in arguments.types]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [ir.DoubleType() if d else ir.IntType(64) for d in double])
        arguments_ = [
            context.cast(builder, builder.extract_value(values[1], i), kind, types.float64 if double[i] else types.int64)
            for i, kind in enumerate(arguments.types)
        ]
        builder.call(builder.inttoptr(values[0], function.as_pointer()), arguments_)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), generate


def _bits(typing_context: Any, x: Any) -> Any:
    """The 64 bits of a float64 as an int64."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _from_bits(typing_context: Any, x: Any) -> Any:
    """The float64 with these 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], ir.DoubleType())

    return types.float64(types.int64), generate


def _fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a*b + c, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fma(*values)

    return types.float64(types.float64, types.float64, types.float64), generate


call: Any = intrinsic(_call)
fma: Any = intrinsic(_fma)
bits: Any = intrinsic(_bits)
from_bits: Any = intrinsic(_from_bits)
