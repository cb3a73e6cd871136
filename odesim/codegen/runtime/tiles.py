"""A matrix product in tiles of four rows that stay in registers: faster than BLAS up to some hundred rows.

Each element is summed from k = 0 up, as one loop over k would, so its bits are those of such a loop. The columns of the second matrix
that a tile needs are copied to the stack, in parts of DEPTH rows. There neighbours in a row are neighbours in memory.
"""

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils

from odesim.runtime.intrinsics import intrinsic
from odesim.runtime.views import array_at, vector

ROWS, WIDEST, DEPTH, FEW = 4, 3, 128, 128
"""Sizes of a tile.

ROWS: of a tile. WIDEST: the most registers in each of them. DEPTH: rows of the second matrix that are copied at a time, a third of a cache
of 32 KiB. FEW: up to so many rows of the first, columns of the second that fill the registers are read where they are.
"""

BYTES = 64 if binding.get_host_cpu_features().get("avx512f") else 32
"""Of a register."""


@intrinsic
def lanes_of(typingctx: Any, a: Any) -> Any:
    """How many numbers of a vector's type a register holds."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.IntType(64)(BYTES // (a.dtype.bitwidth // 8))

    return types.int64(a), emit


def _make_stack(registers: int) -> Any:
    """A function that gives a vector of so many registers on the stack, which ends with the function that asked for it."""

    @intrinsic
    def stack(typingctx: Any, like: Any) -> Any:
        """like: a vector of the same type."""
        kind = types.Array(like.dtype, 1, "C")

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number = context.get_value_type(like.dtype)
            with builder.goto_entry_block():  # numba's own alloca_once fills it with zeros at each call
                room = builder.alloca(ir.ArrayType(number, registers * BYTES // context.get_abi_sizeof(number)))
            return array_at(context, builder, kind, builder.bitcast(room, number.as_pointer()), [context.get_constant(types.intp, 0)])

        return kind(like), emit

    return stack


def _make_tile(width: int, contract: bool) -> Any:
    """The tile of `width` registers in a row. contract: multiply-adds are fused."""
    flags = ("contract",) if contract else ()

    @intrinsic
    def tile(typingctx: Any, out: Any, a: Any, b: Any, steps: Any, counts: Any) -> Any:
        """Four rows of out = a b, or of out += a b where add is not 0; b: (depth, width of the tile).

        steps: between rows of out, rows and columns of a, rows of b. counts: the last row of a that there is (those beyond are it again),
        depth, add.
        """

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            number, i64 = context.get_value_type(out.dtype), ir.IntType(64)
            size = context.get_abi_sizeof(number)
            lanes = BYTES // size
            register = ir.VectorType(number, lanes)
            places = (context.make_array(k)(context, builder, x).data for k, x in zip(signature.args[:3], args[:3], strict=True))
            o, p, q = places
            down, a_down, along, below = cgutils.unpack_tuple(builder, args[3])
            last, depth, add = cgutils.unpack_tuple(builder, args[4])

            def registers(start: Any, step: Any) -> list[Any]:
                begin = builder.gep(start, [step])
                return [builder.bitcast(builder.gep(begin, [i64(v * lanes)]), register.as_pointer()) for v in range(width)]

            def load(place: Any) -> Any:
                value = builder.load(place)
                value.align = size
                return value

            rows = [registers(o, builder.mul(i64(r), down)) for r in range(ROWS)]
            sums = [[cgutils.alloca_once(builder, register) for _ in range(width)] for _ in range(ROWS)]
            pairs = [(place, total) for r in range(ROWS) for place, total in zip(rows[r], sums[r], strict=True)]
            with builder.if_else(builder.icmp_signed("!=", add, add.type(0))) as (again, anew):
                with again:
                    for place, total in pairs:
                        builder.store(load(place), total)
                with anew:
                    for _, total in pairs:
                        builder.store(ir.Constant(register, None), total)
            nearest = [builder.select(builder.icmp_signed("<", i64(r), last), i64(r), last) for r in range(ROWS)]
            starts = [builder.gep(p, [builder.mul(r, a_down)]) for r in nearest]
            empty, everywhere = ir.Constant(register, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
            with cgutils.for_range(builder, depth) as loop:
                columns = [load(place) for place in registers(q, builder.mul(loop.index, below))]
                for start, totals in zip(starts, sums, strict=True):
                    one = builder.load(builder.gep(start, [builder.mul(loop.index, along)]))
                    all_ = builder.shuffle_vector(builder.insert_element(empty, one, ir.IntType(32)(0)), empty, everywhere)
                    for column, total in zip(columns, totals, strict=True):
                        product = builder.fmul(all_, column, flags=flags)
                        builder.store(builder.fadd(builder.load(total), product, flags=flags), total)
            for place, total in pairs:
                builder.store(builder.load(total), place).align = size
            return context.get_dummy_value()

        i = types.int64
        return types.void(out, a, b, types.UniTuple(i, 4), types.UniTuple(i, 3)), emit

    return tile


def make_tiled(compiled: Any, contract: bool) -> Any:
    """The function tiled, compiled by this decorator. contract: multiply-adds are fused."""
    stack, small_stack = _make_stack(DEPTH * WIDEST), _make_stack(ROWS * WIDEST)
    tile1, tile2, tile3 = (_make_tile(width, contract) for width in range(1, WIDEST + 1))

    @compiled
    def tiled(out: Any, a: Any, b: Any, steps: Any, shape: Any, add: int) -> None:
        """out = a b, or out += a b where add is not 0; neighbours in a row of out are neighbours in memory.

        steps: between rows of out, between rows and columns of a and of b; shape: rows, depth, columns.
        """
        down, a_down, along, below, beside = steps
        rows, depth, columns = shape
        lanes = lanes_of(out)
        copy, edge = stack(out), small_stack(out)
        for k0 in range(0, max(depth, 1), DEPTH):  # a sum of no terms is 0
            deep = min(DEPTH, depth - k0)
            again = add + k0
            lo = 0
            while lo < columns:
                wanted = -(-(columns - lo) // lanes)
                registers = 2 if wanted == WIDEST + 1 else min(wanted, WIDEST)  # twice two are quicker than three and one
                width = registers * lanes
                full = min(width, columns - lo)
                q, q_down = vector(b, k0 * below + lo * beside), below
                if beside != 1 or full < width or rows > FEW:
                    for k in range(deep):
                        c, d = vector(copy, k * width), vector(q, k * below)
                        for j in range(full):
                            c[j] = d[j * beside]
                        for j in range(full, width):
                            c[j] = 0.0
                    q, q_down = vector(copy, 0), width
                for i in range(0, rows, ROWS):
                    high = min(ROWS, rows - i)
                    to, p = vector(out, i * down + lo), vector(a, i * a_down + k0 * along)
                    o, o_down, whole = to, down, high == ROWS and full == width
                    if not whole:
                        o, o_down = vector(edge, 0), width
                        if again != 0:
                            for r in range(high):
                                for j in range(full):
                                    edge[r * width + j] = to[r * down + j]
                    between, counts = (o_down, a_down, along, q_down), (high - 1, deep, again)
                    if registers == 3:
                        tile3(o, p, q, between, counts)
                    elif registers == 2:
                        tile2(o, p, q, between, counts)
                    else:
                        tile1(o, p, q, between, counts)
                    if not whole:
                        for r in range(high):
                            for j in range(full):
                                to[r * down + j] = edge[r * width + j]
                lo += width

    return tiled
