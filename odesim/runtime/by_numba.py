"""Our functions and operations as numba's own: what a compiled module falls back on, and what tests hold our front end against."""

import inspect
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import make_intrinsic_template
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from odesim.runtime.kinds import F32, F64, I1, I64, VOID, Kind, Parts, Pointer, Vector

NUMBERS = {I64: types.int64, I1: types.boolean, F64: types.float64, F32: types.float32, VOID: types.void}


def dispatcher(function: Any) -> Any:
    """A function as numba's, compiled at its first call."""
    options: Any = {key: value for key, value in function.options.items() if key != "loops"}
    return numba.njit(error_model="numpy", **options)(function.py_func)


def address(function: Any) -> int:
    """The address of a function with a signature, compiled at once as one that C may call."""
    options: Any = {key: value for key, value in function.options.items() if key not in ("forceinline", "loops")}
    function.callback = numba.cfunc(function.signature, error_model="numpy", **options)(function.py_func)
    return int(function.callback.address)


def type_of(compiled: Any) -> Any:
    """The type of a function of numba where another one reads it."""
    if hasattr(compiled, "py_func"):
        return types.Dispatcher(compiled)
    return types.Function(make_intrinsic_template(compiled, compiled._defn, compiled._name, prefer_literal=compiled._prefer_literal))


def intrinsic_of(operation: Any) -> Any:
    """An operation as numba's."""

    def rule(typing_context: Any, *argument_types: Any) -> Any:
        result, kinds, emit = operation.rule(*map(kind_of, argument_types))

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            parts = [_parts(context, builder, *pair) for pair in zip(signature.args, values, strict=True)]
            return _value(context, builder, result, emit(builder, *parts))

        literal = [isinstance(g, types.IntegerLiteral) for g in argument_types]
        return numba_type(result)(
            *(g if is_one else numba_type(k) for g, k, is_one in zip(argument_types, kinds, literal, strict=True))
        ), generate

    rule_signature = inspect.signature(operation.rule)  # numba looks how many arguments there are
    first = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rule.__name__, rule.__signature__ = operation.__name__, rule_signature.replace(parameters=[first, *rule_signature.parameters.values()])  # type: ignore[attr-defined]
    return intrinsic(prefer_literal=operation.literal)(rule)


def kind_of(kind: Any) -> Kind:
    """The kind of a type of numba."""
    if isinstance(kind, types.Array):
        return Vector(kind_of(kind.dtype), kind.ndim)
    if isinstance(kind, types.CPointer):
        return Pointer(kind_of(kind.dtype))
    if isinstance(kind, types.BaseTuple):
        return tuple(map(kind_of, _parts_of(kind)))
    if isinstance(kind, types.Literal):
        kind = kind.literal_type
    return {numba_: ours for ours, numba_ in NUMBERS.items()}[kind]


def _parts_of(kind: Any) -> list[Any]:
    """The types of numba in that of a tuple."""
    return list(kind)


def numba_type(kind: Kind) -> Any:
    """The type of numba of a kind."""
    if isinstance(kind, Vector):
        return types.Array(numba_type(kind.dtype), kind.rank, "C")
    if isinstance(kind, Pointer):
        return types.CPointer(numba_type(kind.dtype))
    return types.Tuple([numba_type(k) for k in kind]) if isinstance(kind, tuple) else NUMBERS[kind]


def _parts(context: Any, builder: Any, kind: Any, value: Any) -> Parts:
    """A value of numba as Parts."""
    if isinstance(kind, types.IntegerLiteral):
        return I64(kind.literal_value)
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        return array.data, cgutils.unpack_tuple(builder, array.shape, kind.ndim)
    if isinstance(kind, types.BaseTuple):
        return [_parts(context, builder, k, builder.extract_value(value, i)) for i, k in enumerate(_parts_of(kind))]
    return value


def _value(context: Any, builder: Any, kind: Kind, parts: Parts) -> Any:
    """Parts as a value of numba."""
    if kind == VOID:
        return context.get_dummy_value()
    if not isinstance(kind, Vector):
        return parts
    data, shape = parts
    type_ = numba_type(kind)
    array = context.make_array(type_)(context, builder)
    size = ir.IntType(64)(context.get_abi_sizeof(context.get_data_type(type_.dtype)))
    strides = [size]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None, parent=None)
    return array._getvalue()
