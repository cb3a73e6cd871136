"""Kinds of values in compiled code, and what operations of the machine are written with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from llvmlite import ir

I64, I1, F64, F32 = ir.IntType(64), ir.IntType(1), ir.DoubleType(), ir.FloatType()
VOID = ir.VoidType()


@dataclass(frozen=True)
class Pointer:
    """The kind of a pointer to numbers."""

    dtype: Any


@dataclass(frozen=True)
class Vector:
    """The kind of a contiguous array with so many axes."""

    dtype: Any
    rank: int = 1


Kind: TypeAlias = Any
"""Of a value: I64, I1, F64, F32; a Pointer; a Vector; a tuple of kinds; VOID."""
Parts: TypeAlias = Any
"""What a value is to LLVM: one value, or of a Vector (data, its lengths), or of a tuple a list."""


def alloca(builder: Any, kind: Any) -> Any:
    """Room for a value in the function's frame."""
    with builder.goto_entry_block():
        return builder.alloca(kind)


@contextmanager
def counted(builder: Any, count: Any) -> Iterator[Any]:
    """A loop whose body is written inside this context, which gives the number of the pass: 0 to count - 1."""
    slot = alloca(builder, I64)
    builder.store(I64(0), slot)
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.load(slot)
    builder.cbranch(builder.icmp_signed("<", index, count), body, end)
    builder.position_at_end(body)
    yield index
    builder.store(builder.add(index, I64(1), flags=("nsw",)), slot)
    builder.branch(head)
    builder.position_at_end(end)
