"""Sums and maxima in one fixed order, for any number of threads: the bits of a result depend on the numbers alone.

A vector is cut into blocks of 1024. Up to 64 numbers of a block are added in sequence, starting from 0. More go to 32 partial
sums, each starting from 0: partial l adds b[l], b[l + 32], b[l + 64], ... Then partials 16..31 are added onto 0..15, 8..15
onto 0..7, and so on to one. The block sums p[0:w] are combined by p[k] += p[k + h] with h = (w + 1)//2, then w = h, until w = 1.
Maxima are exact in any order; -0 counts as 0.

Why this order: 32 partials fill four registers of AVX-512 or one warp of a GPU, and hide the latency of an addition; a block of 8 KiB
stays in the first cache; a tree of blocks can be split among any number of threads. The error grows with the logarithm of the length.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir

from odesim.base.arrays import Array
from odesim.runtime.constants import BLOCK, LANES, SEQUENCE
from odesim.runtime.functions import intrinsic, njit
from odesim.runtime.kinds import F64, I64, Kind, alloca, counted

# without fastmath given, these would have that of their first caller
in_order = njit(fastmath=False)
_VECTOR = ir.VectorType(F64, LANES)


def emit_fold(start: float, combine: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """An emitter of code that combines b[0:n], or products of several arrays' elements, in 32 lanes, and then the lanes by halves.

    Elements of float32 become float64 first.
    """

    def emit(builder: Any, *args: Any) -> Any:
        *arrays, count = args

        def product(place: Any, vector: bool) -> Any:
            """The product of the arrays' elements at place: a vector of 32 from there on, or one element."""
            at = [builder.gep(data, [place]) for data, _ in arrays]
            single = at[0].type.pointee
            pack = ir.VectorType(single, LANES).as_pointer()
            values = [builder.load(builder.bitcast(p, pack), align=8 if single == F64 else 4) if vector else builder.load(p) for p in at]
            if single != F64:
                values = [builder.fpext(value, _VECTOR if vector else F64) for value in values]
            return reduce(builder.fmul, values)

        lanes = alloca(builder, _VECTOR)
        builder.store(ir.Constant(_VECTOR, [start] * LANES), lanes)
        rows = builder.sdiv(count, I64(LANES))
        with counted(builder, rows) as row:
            values = product(builder.mul(row, I64(LANES)), True)
            builder.store(combine(builder, builder.load(lanes), values), lanes)
        # a copy for the remainder: with a variable index the lanes above would not stay in registers
        copy = alloca(builder, _VECTOR)
        builder.store(builder.load(lanes), copy)
        first = builder.bitcast(copy, F64.as_pointer())
        done = builder.mul(rows, I64(LANES))
        with counted(builder, builder.sub(count, done)) as one:
            lane = builder.gep(first, [one])
            value = product(builder.add(done, one), False)
            builder.store(combine(builder, builder.load(lane), value), lane)
        folded, width = builder.load(copy), LANES
        while width > 1:
            width //= 2
            low, high = (ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(k, k + width))) for k in (0, width))
            folded = combine(builder, builder.shuffle_vector(folded, folded, low), builder.shuffle_vector(folded, folded, high))
        return builder.extract_element(folded, ir.IntType(32)(0))

    return emit


def emit_add(builder: Any, a: Any, b: Any) -> Any:
    """a + b."""
    return builder.fadd(a, b)


def emit_max(builder: Any, a: Any, b: Any) -> Any:
    """The larger of a and b, NaN if one of them is."""
    take = builder.or_(builder.fcmp_ordered(">", b, a), builder.fcmp_unordered("uno", b, b))
    return builder.select(take, b, a)


@intrinsic
def lanes_sum(b: Kind, n: Kind) -> Any:
    """The sum of b[0:n]: added in 32 lanes, then the lanes by halves."""
    return F64, [b, I64], emit_fold(0.0, emit_add)


@intrinsic
def lanes_dot(a: Kind, b: Kind, n: Kind) -> Any:
    """The sum of a[k]*b[k], k < n: added in 32 lanes, then the lanes by halves."""
    return F64, [a, b, I64], emit_fold(0.0, emit_add)


@intrinsic
def lanes_max(b: Kind, n: Kind) -> Any:
    """The maximum of b[0:n]; -inf for n = 0, NaN if there is one."""
    return F64, [b, I64], emit_fold(float("-inf"), emit_max)


@in_order
def block_sum(b: Array, n: int) -> float:
    """The sum of b[0:n], b contiguous float64, 0 <= n <= 1024."""
    if n > SEQUENCE:
        return lanes_sum(b, n)
    total = 0.0
    for k in range(n):
        total += b[k]
    return total


@in_order
def block_dot(a: Array, b: Array, n: int) -> float:
    """The sum of a[0:n]*b[0:n], both contiguous float64, 0 <= n <= 1024, with the bits of block_sum of the products."""
    if n > SEQUENCE:
        return lanes_dot(a, b, n)
    total = 0.0
    for k in range(n):
        total += a[k] * b[k]
    return total


@in_order
def block_max(b: Array, n: int) -> float:
    """The maximum of b[0:n], b contiguous float64; -inf for n = 0, NaN if there is one."""
    return lanes_max(b, n) + 0.0


@in_order
def tree_sum(p: Array, w: int) -> float:
    """The sum of the block sums p[0:w], w >= 1; p is overwritten."""
    while w > 1:
        h = (w + 1) // 2
        for k in range(w - h):
            p[k] += p[k + h]
        w = h
    return p[0]


@in_order
def tree_max(p: Array, w: int) -> float:
    """The maximum of the block maxima p[0:w]; p is unchanged."""
    return lanes_max(p, w) + 0.0


@in_order
def blocked_sum(x: Array) -> float:
    """The sum of x (n,), contiguous float64, block by block."""
    blocks = max(1, (x.size + BLOCK - 1) // BLOCK)
    p = np.empty(blocks)
    for j in range(blocks):
        block = x[j * BLOCK : (j + 1) * BLOCK]
        p[j] = block_sum(block, block.size)
    return tree_sum(p, blocks)


@in_order
def add_up(a: Any, before: int, n: int, after: int) -> None:
    """Adds to each element of a (before, n, after) its left neighbour along the middle axis, from the left."""
    for b in range(before):
        for i in range(1, n):
            for c in range(after):
                at = (b * n + i) * after + c
                a[at] = a[at] + a[at - after]


@in_order
def add_down(a: Any, before: int, n: int, after: int) -> None:
    """Adds to each element of a (before, n, after) its right neighbour along the middle axis, from the right."""
    for b in range(before):
        for i in range(1, n):
            for c in range(after):
                at = (b * n + n - 1 - i) * after + c
                a[at] = a[at] + a[at + after]
