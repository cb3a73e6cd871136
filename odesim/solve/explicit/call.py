"""Calls of C functions by address, from compiled code."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def call(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Calls the function at address, which returns nothing, with a tuple of arguments: int64 and float64."""
    double = [isinstance(kind, types.Float) for kind in arguments.types]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [ir.DoubleType() if d else ir.IntType(64) for d in double])
        given = [
            context.cast(builder, builder.extract_value(values[1], i), kind, types.float64 if double[i] else types.int64)
            for i, kind in enumerate(arguments.types)
        ]
        builder.call(builder.inttoptr(values[0], function.as_pointer()), given)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), generate
