"""What generated numba modules call: arrays on addresses, linear combinations of stages, products of matrices."""

from typing import Any

import numba
import numpy as np
from numba import carray, types

from odesim.codegen.intrinsics import intrinsic
from odesim.codegen.reduce import block_max, block_sum, tree_max, tree_sum

BLOCK = 1024
inlined = numba.njit(error_model="numpy", forceinline=True)
strict = numba.njit(error_model="numpy")

STAGE = types.void(types.int64, types.float64, *[types.int64] * 7)
COMBINE = types.void(*[types.int64] * 9)
EVENTS = types.void(types.int64, types.float64, types.int64, types.int64)


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """The untyped pointer with this address."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), emit


@inlined
def ints(address: int, shape: Any) -> Any:
    """The int64 array of this shape (or length) at address."""
    return carray(pointer(address), shape, np.int64)


@inlined
def float64(address: int, shape: Any) -> Any:
    """The float64 array of this shape (or length) at address."""
    return carray(pointer(address), shape, np.float64)


@inlined
def float32(address: int, shape: Any) -> Any:
    """The float32 array of this shape (or length) at address."""
    return carray(pointer(address), shape, np.float32)


@intrinsic
def address_of(typingctx: Any, a: Any) -> Any:
    """Where the first element of an array lies."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(a), emit


@inlined
def part_of(a: Any, start: int, shape: Any) -> Any:
    """The part of a vector from start on, as an array of this shape; a[...].reshape(...) would call the run time."""
    return carray(pointer(address_of(a) + start * a.itemsize), shape, a.dtype)


@inlined
def powi(x: float, n: int) -> float:
    """x**n for n >= 1 by repeated squaring."""
    y = 1.0
    while n > 1:
        if n % 2:
            y = y * x
        x = x * x
        n //= 2
    return y * x


@inlined
def maximum(a: float, b: float) -> float:
    """The larger one; NaN where either is."""
    return a if a > b or a != a else b


@inlined
def minimum(a: float, b: float) -> float:
    """The smaller one; NaN where either is."""
    return a if a < b or a != a else b


@inlined
def next_terms(coef: Any, ns: int, j: int) -> Any:
    """(where to go on, how many, their numbers): up to four terms from j on whose coefficient is not 0; the last ones count."""
    used, a, b, c, d = 0, 0, 0, 0, 0
    while j < ns and used < 4:
        if coef[j] != 0.0:
            a, b, c, d = b, c, d, j
            used += 1
        j += 1
    return j, used, a, b, c, d


def make_combine(contract: bool) -> Any:
    """combine_block with or without fused multiply-adds."""
    compiled = numba.njit(error_model="numpy", fastmath={"contract"} if contract else False)

    @compiled
    def start(y: Any, used: int, ca: float, ka: Any, cb: float, kb: Any, cc: float, kc: Any, cd: float, kd: Any, out: Any) -> None:
        """out = y + the last `used` of four terms; out must not be y."""
        m = out.size
        if used == 4:
            for i in range(m):
                out[i] = (((y[i] + ca * ka[i]) + cb * kb[i]) + cc * kc[i]) + cd * kd[i]
        elif used == 3:
            for i in range(m):
                out[i] = ((y[i] + cb * kb[i]) + cc * kc[i]) + cd * kd[i]
        elif used == 2:
            for i in range(m):
                out[i] = (y[i] + cc * kc[i]) + cd * kd[i]
        elif used == 1:
            for i in range(m):
                out[i] = y[i] + cd * kd[i]
        else:
            for i in range(m):
                out[i] = y[i]

    @compiled
    def go_on(used: int, ca: float, ka: Any, cb: float, kb: Any, cc: float, kc: Any, cd: float, kd: Any, out: Any) -> None:
        """out += the last `used` of four terms."""
        m = out.size
        if used == 4:
            for i in range(m):
                out[i] = (((out[i] + ca * ka[i]) + cb * kb[i]) + cc * kc[i]) + cd * kd[i]
        elif used == 3:
            for i in range(m):
                out[i] = ((out[i] + cb * kb[i]) + cc * kc[i]) + cd * kd[i]
        elif used == 2:
            for i in range(m):
                out[i] = (out[i] + cc * kc[i]) + cd * kd[i]
        elif used == 1:
            for i in range(m):
                out[i] = out[i] + cd * kd[i]

    @compiled
    def combine_block(y: Any, K: Any, rows: Any, coef: Any, ns: int, lo: int, hi: int, out: Any) -> None:
        """out[0:hi-lo] = y[lo:hi] + sum_j coef[j] K[rows[j], lo:hi], one term after another, four a pass; y may be empty: 0."""
        out = out[: hi - lo]
        j = 0
        if y.size == 0:
            out[:] = 0.0
        else:
            j, used, a, b, c, d = next_terms(coef, ns, j)
            ka, kb, kc, kd = K[rows[a], lo:hi], K[rows[b], lo:hi], K[rows[c], lo:hi], K[rows[d], lo:hi]
            start(y[lo:hi], used, coef[a], ka, coef[b], kb, coef[c], kc, coef[d], kd, out)
        while j < ns:
            j, used, a, b, c, d = next_terms(coef, ns, j)
            ka, kb, kc, kd = K[rows[a], lo:hi], K[rows[b], lo:hi], K[rows[c], lo:hi], K[rows[d], lo:hi]
            go_on(used, coef[a], ka, coef[b], kb, coef[c], kc, coef[d], kd, out)

    return combine_block


combine_block = make_combine(True)
combine_block_strict = make_combine(False)


@numba.njit(error_model="numpy")
def scale_weights(coef: Any, rows: Any, ns: int, scales: Any, weights: Any) -> None:
    """weights[j] = coef[j] * scales[rows[j], 0]: what a stage counts for where its row holds it unscaled."""
    for j in range(ns):
        weights[j] = coef[j] * scales[rows[j], 0] if coef[j] != 0.0 else 0.0


@numba.njit(error_model="numpy")
def constant_weight(coef: Any, rows: Any, ns: int, scales: Any, q: int) -> float:
    """sum_j coef[j] * scales[rows[j], q]: what the q-th constant array of all stages counts for."""
    total = 0.0
    for j in range(ns):
        if coef[j] != 0.0:
            total += coef[j] * scales[rows[j], q]
    return total


@numba.njit(error_model="numpy")
def split_terms(weights: Any, ns: int, early: Any, late: Any) -> Any:
    """(how many terms are late, whether there are early ones): late (LATE,) names the last ones whose weight is not 0.

    early (ns,): the weights of the others.
    """
    count = 0
    for j in range(ns):
        early[j] = weights[j]
        count += weights[j] != 0.0
    skip = max(count - late.size, 0)
    terms, seen = 0, 0
    for j in range(ns):
        if weights[j] != 0.0:
            if seen >= skip:
                late[terms] = j
                early[j] = 0.0
                terms += 1
            seen += 1
    for q in range(terms, late.size):
        late[q] = 0
    return terms, skip > 0


@numba.njit(error_model="numpy", fastmath={"contract"})
def add_scaled(weight: float, a: Any, out: Any) -> None:
    """out += weight * a, both (m,)."""
    for i in range(a.size):
        out[i] += weight * a[i]


def _matmul(a: Any, b: Any, out: Any) -> None:
    """out (N, M) = a (N, K) @ b (K, M); each element is summed from k = 0 up, whatever the layout."""
    n, depth = a.shape
    m = b.shape[1]
    out[...] = 0.0
    for lo in range(0, m, BLOCK):
        hi = min(lo + BLOCK, m)
        for i in range(n):
            for k in range(0, depth - 3, 4):
                a0, a1, a2, a3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
                for j in range(lo, hi):
                    out[i, j] = (((out[i, j] + a0 * b[k, j]) + a1 * b[k + 1, j]) + a2 * b[k + 2, j]) + a3 * b[k + 3, j]
            for k in range(depth - depth % 4, depth):
                a0 = a[i, k]
                for j in range(lo, hi):
                    out[i, j] += a0 * b[k, j]


matmul = numba.njit(error_model="numpy", fastmath={"contract"})(_matmul)
matmul_strict = strict(_matmul)

__all__ = [
    "BLOCK", "COMBINE", "EVENTS", "STAGE", "block_max", "block_sum", "combine_block", "combine_block_strict", "float32", "float64",
    "ints", "matmul", "matmul_strict", "maximum", "minimum", "powi", "tree_max", "tree_sum",
]  # fmt: skip
