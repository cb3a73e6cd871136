"""Matrix products that generated numba modules call: by BLAS, or by tiles and loops of our own in one fixed order.

out (rows, columns) = a (rows, depth) b (depth, columns). A matrix is a vector of memory that begins with its first element, and the
distances in it between rows and between columns. So a turned matrix, a part of a larger array and a vector need no copy.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from odesim.base.device import TILED, TURNED
from odesim.codegen.runtime.access import load, reload, store, vector
from odesim.codegen.runtime.intrinsics import intrinsic
from odesim.codegen.runtime.reduce import block_dot
from odesim.codegen.runtime.stages import BLOCK, contracting, strict
from odesim.codegen.runtime.tiles import make_tiled

ROW = 4 * BLOCK  # columns that are read in one go


@intrinsic
def call_gemm(typingctx: Any, gemm: Any, first: Any, second: Any, out: Any, layout: Any, add: Any) -> Any:
    """Calls BLAS's gemm at this address, for matrices stored by columns: out (n, m) = first (n, k) second (k, m).

    It adds to out where add is not 0.
    layout: whether first and second are stored by rows (1); the distances between columns, or rows, of first, second and out; n, m, k.
    """
    real = out.dtype

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, *arrays, layout_, add_ = args
        whole_numbers = cgutils.unpack_tuple(builder, layout_)
        letter, number = ir.IntType(8), context.get_value_type(real)

        def stored(value: Any) -> Any:
            slot = cgutils.alloca_once(builder, value.type)
            builder.store(value, slot)
            return slot

        def chosen(flag: Any, kind: Any, no: Any, yes: Any) -> Any:
            return stored(builder.select(builder.icmp_signed("!=", flag, flag.type(0)), ir.Constant(kind, yes), ir.Constant(kind, no)))

        def whole(value: Any) -> Any:
            return stored(builder.trunc(value, ir.IntType(32)))

        turned = [chosen(flag, letter, ord("N"), ord("T")) for flag in whole_numbers[:2]]
        wide_a, wide_b, wide_c, *sizes = map(whole, whole_numbers[2:])
        a, b, c = (context.make_array(kind)(context, builder, array).data for kind, array in zip(signature.args[1:4], arrays, strict=True))
        one, again = stored(ir.Constant(number, 1.0)), chosen(add_, number, 0.0, 1.0)
        sent = [*turned, *sizes, one, a, wide_a, b, wide_b, again, c, wide_c]
        function = ir.FunctionType(ir.VoidType(), [value.type for value in sent])
        builder.call(builder.inttoptr(address, function.as_pointer()), sent)
        return context.get_dummy_value()

    i = types.int64
    return types.void(i, first, second, out, types.UniTuple(i, 8), i), emit


def make_products(reorder: bool) -> tuple[Any, Any]:
    """The functions product and blas_product. reorder: long sums may be added in lanes, and multiply-adds are fused.

    Without it each element is summed from k = 0 up.
    """
    compiled = contracting if reorder else strict

    tiled = make_tiled(compiled, reorder)

    @compiled
    def by_row(out: Any, a: Any, b: Any, steps: Any, shape: Any, add: int) -> None:
        """The product of a row where neighbours in out and in a row of b are neighbours in memory.

        steps: in a, between rows of b.
        """
        along, below = steps
        depth, columns = shape
        for lo in range(0, columns, ROW):
            m = min(ROW, columns - lo)
            o = vector(out, lo)
            if add == 0:
                for j in range(m):
                    store(0, 0, o, j, 0.0)
            for k in range(0, depth - 3, 4):
                a0, a1, a2, a3 = a[k * along], a[(k + 1) * along], a[(k + 2) * along], a[(k + 3) * along]
                b0, b1 = vector(b, k * below + lo), vector(b, (k + 1) * below + lo)
                b2, b3 = vector(b, (k + 2) * below + lo), vector(b, (k + 3) * below + lo)
                for j in range(m):
                    x = (reload(1, 0, o, j) + a0 * load(1, b0, j)) + a1 * load(1, b1, j)
                    store(1, 0, o, j, (x + a2 * load(1, b2, j)) + a3 * load(1, b3, j))
            for k in range(depth - depth % 4, depth):
                a0, b0 = a[k * along], vector(b, k * below + lo)
                for j in range(m):
                    store(2, 0, o, j, reload(2, 0, o, j) + a0 * load(2, b0, j))

    @compiled
    def by_elements(out: Any, a: Any, b: Any, steps: Any, shape: Any, add: int) -> None:
        """The product, one element after the other."""
        down, beside, a_down, along, below, b_beside = steps
        rows, depth, columns = shape
        for i in range(rows):
            for j in range(columns):
                o, p, q = vector(out, i * down + j * beside), vector(a, i * a_down), vector(b, j * b_beside)
                if add == 0:
                    o[0] = 0.0
                if reorder and along == 1 and below == 1:
                    for lo in range(0, depth, BLOCK):
                        o[0] += block_dot(vector(p, lo), vector(q, lo), min(BLOCK, depth - lo))
                else:
                    for k in range(depth):
                        o[0] += p[k * along] * q[k * below]

    @compiled
    def product(out: Any, a: Any, b: Any, steps: Any, shape: Any, add: int) -> None:
        """out = a b, or out += a b where add is not 0. steps: between rows and columns of out, of a, of b; shape: rows, depth, columns."""
        down, beside, a_down, along, below, b_beside = steps
        rows, depth, columns = shape
        if rows > 1 and columns > 1 and (beside == 1 or down == 1):
            left, right, tile_steps, tile_shape = a, b, (down, a_down, along, below, b_beside), (rows, depth, columns)
            if beside != 1:  # the turned product; one call, so that tiles are compiled once
                left, right, tile_steps, tile_shape = b, a, (beside, b_beside, below, along, a_down), (columns, depth, rows)
            tiled(out, left, right, tile_steps, tile_shape, add)
        elif rows == 1 and beside == 1 and b_beside == 1:
            by_row(out, a, b, (along, below), (depth, columns), add)
        elif columns == 1 and down == 1 and a_down == 1:
            by_row(out, b, a, (below, along), (depth, rows), add)
        else:
            by_elements(out, a, b, steps, shape, add)

    @compiled
    def blas_product(gemm: int, out: Any, a: Any, b: Any, steps: Any, shape: Any, add: int) -> None:
        """The product by BLAS at the address gemm; by tiles or loops if it is small, a vector or in no form for BLAS."""
        down, beside, a_down, along, below, b_beside = steps
        rows, depth, columns = shape
        plain = (a_down == 1 or along == 1) and (below == 1 or b_beside == 1) and (down == 1 or beside == 1)
        most = TILED if (along if beside == 1 else below) == 1 else TURNED
        if gemm == 0 or rows == 1 or columns == 1 or rows * depth * columns <= most or not plain:
            product(out, a, b, steps, shape, add)
        elif beside == 1:  # to BLAS, which stores by columns, all matrices are turned: out' = b' a'
            turn_a, wide_a = (0, max(a_down, depth)) if along == 1 else (1, max(along, rows))
            turn_b, wide_b = (0, max(below, columns)) if b_beside == 1 else (1, max(b_beside, depth))
            call_gemm(gemm, b, a, out, (turn_b, turn_a, wide_b, wide_a, max(down, columns), columns, rows, depth), add)
        else:
            turn_a, wide_a = (0, max(along, rows)) if a_down == 1 else (1, max(a_down, depth))
            turn_b, wide_b = (0, max(b_beside, depth)) if below == 1 else (1, max(below, columns))
            call_gemm(gemm, a, b, out, (turn_a, turn_b, wide_a, wide_b, max(beside, rows), rows, columns, depth), add)

    return product, blas_product


product, blas_product = make_products(True)
product_strict, _ = make_products(False)
