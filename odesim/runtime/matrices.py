"""Matrix products by BLAS or by tiles of our own, and inverses of small matrices, as generated code calls them.

out (rows, columns) = a (rows, depth) b (depth, columns). A matrix is a vector of memory that begins with its first element, and the
distances in it between rows and between columns. So a turned matrix, a part of a larger array and a vector need no copy.

Products have tiles of four rows that stay in registers: faster than BLAS up to some hundred rows. Each element is summed from k = 0 up,
as one loop over k would, so its bits are those of such a loop. The columns of the second matrix that a tile needs are copied to the
stack, in parts of DEPTH rows. There neighbours in a row are neighbours in memory.

Inverses are by elimination with partial pivoting, without LAPACK: the same bits on every machine. An inverse X of A that rounding leaves
fewer than about two digits is refused. Its digits are lost where the condition max_i (|X| |A| d)_i / d_i, with d_i = max_j |X[i, j]|,
comes near 1 over the rounding unit. The scales of columns do not change this number, and those of rows change it little (Higham,
Accuracy and Stability of Numerical Algorithms, section 14.1). Elimination itself loses digits where its numbers grow far beyond those of
A, by up to 2^(n-1) (section 9.3). Then |A X v - v| is far above the rounding of |A| |X| |v|, for a vector v of the size of A's rows.
Such an X is refused too.
"""

from typing import Any

from llvmlite import binding, ir

from odesim.base.device import TILED, TURNED
from odesim.runtime.constants import GROWN, LOST, SMALL
from odesim.runtime.functions import intrinsic, njit
from odesim.runtime.kinds import F32, F64, I64, VOID, Kind, Vector, alloca, counted
from odesim.runtime.stages import BLOCK, contracting, strict
from odesim.runtime.sums import block_dot
from odesim.runtime.views import load, reload, store, vector

ROWS, WIDEST, DEPTH, FEW = 4, 3, 128, 128
"""Sizes of a tile.

ROWS: of a tile. WIDEST: the most registers in each of them. DEPTH: rows of the second matrix that are copied at a time, a third of a cache
of 32 KiB. FEW: up to so many rows of the first, columns of the second that fill the registers are read where they are.
"""

BYTES = 64 if binding.get_host_cpu_features().get("avx512f") else 32
"""Of a register."""


SIZES = {F64: 8, F32: 4}


@intrinsic
def lanes_of(a: Kind) -> Any:
    """How many numbers of a vector's type a register holds."""
    return I64, [a], lambda builder, a_: I64(BYTES // SIZES[a.dtype])


def _make_stack(registers: int) -> Any:
    """A function that gives a vector of so many registers on the stack, which ends with the function that asked for it."""

    @intrinsic
    def stack(like: Kind) -> Any:
        """like: a vector of the same type."""

        def emit(builder: Any, _: Any) -> Any:
            room = alloca(builder, ir.ArrayType(like.dtype, registers * BYTES // SIZES[like.dtype]))
            return builder.bitcast(room, like.dtype.as_pointer()), [I64(0)]

        return Vector(like.dtype), [like], emit

    return stack


def _make_tile(width: int, contract: bool) -> Any:
    """The tile of `width` registers in a row. contract: multiply-adds are fused."""
    flags = ("contract",) if contract else ()

    @intrinsic
    def tile(out: Kind, a: Kind, b: Kind, steps: Kind, counts: Kind) -> Any:
        """Four rows of out = a b, or of out += a b where add is not 0; b: (depth, width of the tile).

        steps: between rows of out, rows and columns of a, rows of b. counts: the last row of a that there is (those beyond are it again),
        depth, add.
        """

        def emit(builder: Any, o: Any, p: Any, q: Any, steps: Any, counts: Any) -> None:
            number, size = out.dtype, SIZES[out.dtype]
            lanes = BYTES // size
            register = ir.VectorType(number, lanes)
            o, p, q = o[0], p[0], q[0]
            down, a_down, along, below = steps
            last, depth, add = counts

            def registers(start: Any, step: Any) -> list[Any]:
                begin = builder.gep(start, [step])
                return [builder.bitcast(builder.gep(begin, [I64(v * lanes)]), register.as_pointer()) for v in range(width)]

            def load(place: Any) -> Any:
                value = builder.load(place)
                value.align = size
                return value

            rows = [registers(o, builder.mul(I64(r), down)) for r in range(ROWS)]
            sums = [[alloca(builder, register) for _ in range(width)] for _ in range(ROWS)]
            pairs = [(place, total) for r in range(ROWS) for place, total in zip(rows[r], sums[r], strict=True)]
            with builder.if_else(builder.icmp_signed("!=", add, add.type(0))) as (again, anew):
                with again:
                    for place, total in pairs:
                        builder.store(load(place), total)
                with anew:
                    for _, total in pairs:
                        builder.store(ir.Constant(register, None), total)
            nearest = [builder.select(builder.icmp_signed("<", I64(r), last), I64(r), last) for r in range(ROWS)]
            starts = [builder.gep(p, [builder.mul(r, a_down)]) for r in nearest]
            empty, everywhere = ir.Constant(register, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
            with counted(builder, depth) as k:
                columns = [load(place) for place in registers(q, builder.mul(k, below))]
                for start, totals in zip(starts, sums, strict=True):
                    one = builder.load(builder.gep(start, [builder.mul(k, along)]))
                    all_ = builder.shuffle_vector(builder.insert_element(empty, one, ir.IntType(32)(0)), empty, everywhere)
                    for column, total in zip(columns, totals, strict=True):
                        product = builder.fmul(all_, column, flags=flags)
                        builder.store(builder.fadd(builder.load(total), product, flags=flags), total)
            for place, total in pairs:
                builder.store(builder.load(total), place).align = size

        return VOID, [out, a, b, (I64,) * 4, (I64,) * 3], emit

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


ROW = 4 * BLOCK  # columns that are read in one go


@intrinsic
def call_gemm(gemm: Kind, first: Kind, second: Kind, out: Kind, layout: Kind, add: Kind) -> Any:
    """Calls BLAS's gemm at this address, for matrices stored by columns: out (n, m) = first (n, k) second (k, m).

    It adds to out where add is not 0.
    layout: whether first and second are stored by rows (1); the distances between columns, or rows, of first, second and out; n, m, k.
    """

    def emit(builder: Any, address: Any, first: Any, second: Any, to: Any, whole_numbers: Any, add: Any) -> None:
        letter, number = ir.IntType(8), out.dtype

        def stored(value: Any) -> Any:
            slot = alloca(builder, value.type)
            builder.store(value, slot)
            return slot

        def chosen(flag: Any, kind: Any, no: Any, yes: Any) -> Any:
            return stored(builder.select(builder.icmp_signed("!=", flag, flag.type(0)), ir.Constant(kind, yes), ir.Constant(kind, no)))

        def whole(value: Any) -> Any:
            return stored(builder.trunc(value, ir.IntType(32)))

        turned = [chosen(flag, letter, ord("N"), ord("T")) for flag in whole_numbers[:2]]
        wide_a, wide_b, wide_c, *sizes = map(whole, whole_numbers[2:])
        one, again = stored(ir.Constant(number, 1.0)), chosen(add, number, 0.0, 1.0)
        sent = [*turned, *sizes, one, first[0], wide_a, second[0], wide_b, again, to[0], wide_c]
        function = ir.FunctionType(ir.VoidType(), [value.type for value in sent])
        builder.call(builder.inttoptr(address, function.as_pointer()), sent)

    return VOID, [I64, first, second, out, (I64,) * 8, I64], emit


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
                # a sum of neighbours goes to 32 lanes; else from k = 0 up, as in strict mode
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
        # cython_blas of scipy stores by columns and has no layout argument, unlike cblas
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


eliminating = njit(fastmath=False)


@eliminating
def has_grown(a: Any, x: Any, matrix: Any, start: int, n: int) -> bool:
    """Whether the inverse x[start:] of matrix[start:] (n, n) has errors of growth. a: room for 3 n + 2 numbers from start."""
    for i in range(n):
        largest = 0.0
        for k in range(n):
            largest = max(largest, abs(matrix[start + i * n + k]))
        # a factor of its own for each row: with equal ones errors could cancel by symmetry
        a[start + i] = largest * (1.0 + 0.0625 * (i * i % 11))
    for i in range(n):
        total = 0.0
        size = 0.0
        for k in range(n):
            total = total + x[start + i * n + k] * a[start + k]
            size = size + abs(x[start + i * n + k]) * a[start + k]
        a[start + n + i] = total
        a[start + 2 * n + i] = size
    grown = False
    for i in range(n):
        total = -a[start + i]
        size = 0.0
        for k in range(n):
            total = total + matrix[start + i * n + k] * a[start + n + k]
            size = size + abs(matrix[start + i * n + k]) * a[start + 2 * n + k]
        a[start + 3 * n] = size
        a[start + 3 * n + 1] = a[start + 3 * n] + abs(total) / GROWN
        grown = grown or a[start + 3 * n + 1] > a[start + 3 * n]
    return grown


@eliminating
def refuse_one(a: Any, x: Any, matrix: Any, start: int, n: int) -> None:
    """Divides the inverse x[start:] of matrix[start:] (n, n), n > 1, by 0 where its digits are lost. a: room for n^2 numbers from start."""
    for i in range(n):
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(x[start + i * n + j]))
        a[start + i] = largest
    for i in range(n):
        total = 0.0
        for j in range(n):
            total = total + abs(matrix[start + i * n + j]) * a[start + j]
        a[start + n + i] = total
    worst = 0.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total = total + abs(x[start + i * n + j]) * a[start + n + j]
        worst = max(worst, total / a[start + i])
    a[start] = 1.0 / (LOST * worst)
    a[start + 1] = 1.0 + a[start]
    if not a[start + 1] > 1.0 or (n > SMALL and has_grown(a, x, matrix, start, n)):
        zero = 0.0
        for k in range(n * n):
            x[start + k] = x[start + k] / zero


@eliminating
def invert_one(a: Any, x: Any, matrix: Any, start: int, n: int) -> None:
    """Writes the inverse of matrix[start:] (n, n) into x[start:]. Of one that is singular to rounding no entry is finite.

    a: its copy, which is destroyed.
    """
    for r in range(n):
        for k in range(n):
            x[start + r * n + k] = 1.0 if r == k else 0.0
    for c in range(n):
        top = start + c * n
        # the largest entry rises by exchanges on the way and not by a search: lanes do the same with choices (odesim.targets.unroll)
        for r in range(c + 1, n):
            row = start + r * n
            if abs(a[row + c]) > abs(a[top + c]):
                for k in range(n):
                    held = a[row + k]
                    a[row + k] = a[top + k]
                    a[top + k] = held
                    held = x[row + k]
                    x[row + k] = x[top + k]
                    x[top + k] = held
        pivot = a[top + c]
        for k in range(n):
            a[top + k] = a[top + k] / pivot
            x[top + k] = x[top + k] / pivot
        for r in range(n):
            if r != c:
                row = start + r * n
                factor = a[row + c]
                for k in range(n):
                    a[row + k] = a[row + k] - factor * a[top + k]
                    x[row + k] = x[row + k] - factor * x[top + k]

    if n > 1:
        refuse_one(a, x, matrix, start, n)


@eliminating
def invert(a: Any, x: Any, matrix: Any, count: int, n: int) -> None:
    """Inverts each of count matrices (count, n, n) into x, as invert_one does. a: their copies, which are destroyed."""
    for q in range(count):
        invert_one(a, x, matrix, q * n * n, n)
