"""Values of restricted Python in LLVM's terms: kinds, conversions between these, operators and functions of numbers, as numba has them."""

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir

from odesim.base.errors import CodegenError
from odesim.runtime.kinds import F32, F64, I1, I64, VOID, Kind, Parts, Pointer, Vector

FLOATS = (F64, F32)
NUMBERS = (I1, I64, F32, F64)


@dataclass(frozen=True, eq=False)
class Known:
    """The kind of what is known when it is compiled: a function, a module, a type, a text."""

    thing: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


@dataclass(frozen=True, slots=True)
class Value:
    """A value: its kind, and what it is to LLVM."""

    kind: Kind
    parts: Parts

    @property
    def constant(self) -> Any:
        """The number that a value is, if it is known when it is compiled; else None."""
        return self.parts.constant if isinstance(self.parts, ir.Constant) else None


NONE = Value(VOID, None)


def constant(thing: Any) -> Value:
    """A Python object as a value."""
    if isinstance(thing, (bool, np.bool_)):
        return Value(I1, I1(int(thing)))
    if isinstance(thing, (int, np.integer)):
        if not -(2**63) <= thing < 2**63:
            raise CodegenError(f"{thing} is no int64")
        return Value(I64, I64(int(thing)))
    if isinstance(thing, (np.float32, float)):
        return Value(F32 if isinstance(thing, np.float32) else F64, (F32 if isinstance(thing, np.float32) else F64)(float(thing)))
    if isinstance(thing, tuple):
        return pack([constant(part) for part in thing])
    return NONE if thing is None else Value(Known(thing), None)


def pack(values: Sequence[Value]) -> Value:
    """A tuple of values as one."""
    return Value(tuple(v.kind for v in values), [v.parts for v in values])


def unpack(value: Value) -> list[Value]:
    """The values in a tuple."""
    if not isinstance(value.kind, tuple):
        raise CodegenError("what is unpacked is no tuple")
    return [Value(kind, parts) for kind, parts in zip(value.kind, value.parts, strict=True)]


def types_of(kind: Kind) -> list[Any]:
    """The types of LLVM of the numbers and pointers that a value of this kind consists of."""
    if isinstance(kind, tuple):
        return [t for k in kind for t in types_of(k)]
    if isinstance(kind, Vector):
        return [kind.dtype.as_pointer(), *[I64] * kind.rank]
    if isinstance(kind, Pointer):
        return [kind.dtype.as_pointer()]
    return [] if isinstance(kind, Known) or kind == VOID else [kind]


def flat(kind: Kind, parts: Parts) -> list[Any]:
    """The numbers and pointers that a value consists of."""
    if isinstance(kind, tuple):
        return [leaf for k, p in zip(kind, parts, strict=True) for leaf in flat(k, p)]
    if isinstance(kind, Vector):
        return [parts[0], *parts[1]]
    return [] if isinstance(kind, Known) or kind == VOID else [parts]


def gathered(kind: Kind, leaves: Iterator[Any]) -> Parts:
    """The parts of a value from what it consists of."""
    if isinstance(kind, tuple):
        return [gathered(k, leaves) for k in kind]
    if isinstance(kind, Vector):
        return next(leaves), [next(leaves) for _ in range(kind.rank)]
    return None if isinstance(kind, Known) or kind == VOID else next(leaves)


def unified(a: Kind, b: Kind) -> Kind:
    """The kind of a variable that has values of both."""
    if a == b:
        return a
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(map(unified, a, b))
    if a in NUMBERS and b in NUMBERS:
        return F64 if {a, b} == {I64, F32} else max(a, b, key=NUMBERS.index)
    raise CodegenError("a variable has values of two kinds")


def cast(builder: Any, value: Value, kind: Kind) -> Value:
    """A value as one of another kind."""
    if value.kind == kind:
        return value
    if isinstance(kind, tuple):
        return pack([cast(builder, v, k) for v, k in zip(unpack(value), kind, strict=True)])
    if value.kind not in NUMBERS or kind not in NUMBERS:
        raise CodegenError("a value of one kind is taken for another")
    x, known = value.parts, value.constant
    if known is not None and kind == F64:
        return Value(F64, F64(float(known)))
    if known is not None and kind == I64 and value.kind == I1:
        return Value(I64, I64(int(known)))
    if kind == I1:
        return truth(builder, value)
    if value.kind in FLOATS:
        return Value(kind, builder.fptosi(x, I64) if kind == I64 else builder.fpext(x, F64) if kind == F64 else builder.fptrunc(x, F32))
    if kind == I64:
        return Value(I64, builder.zext(x, I64))
    return Value(kind, builder.sitofp(x, kind) if value.kind == I64 else builder.uitofp(x, kind))


def truth(builder: Any, value: Value) -> Value:
    """Whether a number is not 0."""
    if value.kind == I1:
        return value
    if value.kind not in NUMBERS:
        raise CodegenError("what is no number is a condition")
    if value.constant is not None:
        return constant(bool(value.constant))
    if value.kind == I64:
        return Value(I1, builder.icmp_signed("!=", value.parts, I64(0)))
    return Value(I1, builder.fcmp_unordered("!=", value.parts, value.kind(0.0)))


FOLDED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Pow: lambda a, b: a**b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b,
    ast.Div: lambda a, b: a / b,
}
INTEGER: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
FLOAT: dict[type, str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
BITS: dict[type, str] = {ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor"}
SHIFTS: dict[type, str] = {ast.LShift: "shl", ast.RShift: "ashr"}
COMPARED: dict[type, str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def binary(builder: Any, op: type, a: Value, b: Value) -> Value:
    """a op b."""
    if isinstance(a.kind, tuple) and isinstance(b.kind, tuple) and op is ast.Add:
        return pack([*unpack(a), *unpack(b)])
    if a.kind not in NUMBERS or b.kind not in NUMBERS:
        raise CodegenError("an operator is for numbers")
    x, y = a.constant, b.constant
    if x is not None and y is not None and F32 not in (a.kind, b.kind) and op in FOLDED and not (op is ast.Div and y == 0):
        x, y = (bool(n) if v.kind == I1 else n for n, v in ((x, a), (y, b)))
        return constant(FOLDED[op](x, y))
    kind = unified(a.kind, b.kind)
    if op in BITS and kind in (I1, I64):
        return Value(kind, getattr(builder, BITS[op])(cast(builder, a, kind).parts, cast(builder, b, kind).parts))
    kind = I64 if kind == I1 else kind
    if op is ast.Div:
        kind = F64 if kind == I64 else kind
    a, b = cast(builder, a, kind), cast(builder, b, kind)
    if kind == I64 and op in (ast.FloorDiv, ast.Mod):
        return _divided(builder, op, a.parts, b)
    if kind == I64 and op is ast.Pow and b.constant is not None and b.constant >= 0:
        return reduce(lambda product, _: binary(builder, ast.Mult, product, a), range(b.constant), constant(1))
    names: dict[type, str] = {**INTEGER, **SHIFTS} if kind == I64 else FLOAT
    if op not in names:
        raise CodegenError(f"there is no {op.__name__} of these numbers")
    return Value(kind, getattr(builder, names[op])(a.parts, b.parts))


def _divided(builder: Any, op: type, x: Any, by: Value) -> Value:
    """The quotient rounded down, or the remainder with the sign of the divisor; 0 for a divisor of 0."""
    known = by.constant
    if known is not None and known > 0 and known & (known - 1) == 0:
        if op is ast.Mod:
            return Value(I64, builder.and_(x, I64(known - 1)))
        return Value(I64, builder.ashr(x, I64(known.bit_length() - 1)))
    zero = builder.icmp_signed("==", by.parts, I64(0))
    lost = builder.and_(builder.icmp_signed("==", x, I64(-(2**63))), builder.icmp_signed("==", by.parts, I64(-1)))  # no int64: 0
    safe = builder.select(builder.or_(zero, lost), I64(1), by.parts)
    rest = builder.srem(x, safe)
    other = builder.and_(builder.icmp_signed("!=", rest, I64(0)), builder.icmp_signed("<", builder.xor(rest, safe), I64(0)))
    if op is ast.Mod:
        return Value(I64, builder.select(other, builder.add(rest, safe), rest))
    quotient = builder.sub(builder.sdiv(x, safe), builder.zext(other, I64))
    return Value(I64, builder.select(builder.or_(zero, lost), I64(0), quotient))


def compared(builder: Any, op: type, a: Value, b: Value) -> Value:
    """a op b, a comparison."""
    if op in (ast.Is, ast.IsNot) and VOID in (a.kind, b.kind):
        return constant((a.kind == b.kind) is (op is ast.Is))
    if a.kind not in NUMBERS or b.kind not in NUMBERS or op not in COMPARED:
        raise CodegenError("a comparison is for numbers")
    if a.constant is not None and b.constant is not None:
        x, y, sign = a.constant, b.constant, COMPARED[op]
        return constant({"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}[sign])
    kind = unified(a.kind, b.kind)
    kind = I64 if kind == I1 else kind
    x, y = cast(builder, a, kind).parts, cast(builder, b, kind).parts
    if kind == I64:
        return Value(I1, builder.icmp_signed(COMPARED[op], x, y))
    return Value(I1, (builder.fcmp_unordered if op is ast.NotEq else builder.fcmp_ordered)(COMPARED[op], x, y))


def unary(builder: Any, op: type, a: Value) -> Value:
    """-a, +a, ~a, not a."""
    known = a.constant
    if op is ast.Not:
        a = truth(builder, a)
        return constant(not a.constant) if known is not None else Value(I1, builder.not_(a.parts))
    a = cast(builder, a, I64) if a.kind == I1 else a
    if op is ast.UAdd:
        return a
    if op is ast.Invert and a.kind == I64:
        return Value(I64, builder.not_(a.parts))
    if op is not ast.USub or a.kind not in NUMBERS:
        raise CodegenError("an operator is for numbers")
    if known is not None:
        return Value(a.kind, a.kind(-known))
    return Value(a.kind, builder.neg(a.parts) if a.kind == I64 else builder.fneg(a.parts))


def _of_llvm(name: str) -> Callable[[Any, Value], Value]:
    """A function of one float that is LLVM's intrinsic."""

    def write(builder: Any, x: Value) -> Value:
        x = x if x.kind == F32 else cast(builder, x, F64)
        return Value(x.kind, builder.call(builder.module.declare_intrinsic(f"llvm.{name}", [x.kind]), [x.parts]))

    return write


def _of_c(name: str) -> Callable[[Any, Value], Value]:
    """A function of one float of the C library; LLVM computes it where the argument is known."""

    def write(builder: Any, x: Value) -> Value:
        known = builder.module.globals.get(name)
        function = known or ir.Function(builder.module, ir.FunctionType(F64, [F64]), name)
        return Value(F64, builder.call(function, [cast(builder, x, F64).parts]))

    return write


def _absolute(builder: Any, x: Value) -> Value:
    if x.kind in FLOATS:
        return _of_llvm("fabs")(builder, x)
    x = cast(builder, x, I64)
    return Value(I64, builder.select(builder.icmp_signed("<", x.parts, I64(0)), builder.neg(x.parts), x.parts))


def _extreme(op: type) -> Callable[..., Value]:
    """min or max as Python has them: the first where neither is beyond the other."""

    def write(builder: Any, *values: Value) -> Value:
        best = values[0]
        for value in values[1:]:
            kind = unified(best.kind, value.kind)
            best, value = cast(builder, best, kind), cast(builder, value, kind)
            beyond = compared(builder, op, value, best)
            best = Value(kind, builder.select(beyond.parts, value.parts, best.parts))
        return best

    return write


def _float(builder: Any, x: Value) -> Value:
    """A number as a float; one of float32 stays so, and a text such as "-inf" is known."""
    if isinstance(x.kind, Known):
        return constant(float(x.kind.thing))
    return x if x.kind == F32 else cast(builder, x, F64)


def _to(kind: Kind) -> Callable[[Any, Value], Value]:
    return lambda builder, x: cast(builder, x, kind)


FUNCTIONS: dict[Any, Callable[..., Value]] = {
    abs: _absolute,
    max: _extreme(ast.Gt),
    min: _extreme(ast.Lt),
    int: _to(I64),
    bool: truth,
    float: _float,
    np.int64: _to(I64),
    np.float64: _to(F64),
    np.float32: _to(F32),
    math.isnan: lambda builder, x: compared(builder, ast.NotEq, x, x),
    math.sqrt: _of_llvm("sqrt"),
    math.floor: lambda builder, x: cast(builder, _of_llvm("floor")(builder, x), I64),
    **{getattr(math, name): _of_c(name) for name in ("cos", "sin", "exp", "log")},
}
