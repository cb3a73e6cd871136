"""Functions that generated numba modules call: linear combinations of stages, powers."""

from typing import Any

from odesim.runtime.functions import njit
from odesim.runtime.sums import block_dot, block_max, block_sum, tree_max, tree_sum
from odesim.runtime.views import block, load, row_block, store

BLOCK = 1024
# without fastmath given, these would have that of their first caller
inlined = njit(forceinline=True, fastmath=False)
strict = njit(fastmath=False)
contracting = njit(fastmath={"contract"})

STAGE = f"void(int64, float64{', int64' * 7})"
COMBINE = f"void(int64{', int64' * 8})"
EVENTS = "void(int64, float64, int64, int64)"


@inlined
def powi(x: float, n: int) -> float:
    """The power x**n, n >= 1, by repeated squaring."""
    y = 1.0
    while n > 1:
        if n % 2:
            y = y * x
        x = x * x
        n //= 2
    return y * x


@inlined
def maximum(a: float, b: float) -> float:
    """The larger of a and b; NaN where one of them is."""
    return a if a > b or a != a else b


@inlined
def minimum(a: float, b: float) -> float:
    """The smaller of a and b; NaN where one of them is."""
    return a if a < b or a != a else b


@inlined
def next_terms(coef: Any, ns: int, j: int) -> Any:
    """The next terms, up to four, from j on whose coefficient is not 0: (where to continue, how many, their four indices)."""
    used, a, b, c, d = 0, 0, 0, 0, 0
    while j < ns and used < 4:
        if coef[j] != 0.0:
            a = j if used == 0 else a
            b = j if used == 1 else b
            c = j if used == 2 else c
            d = j if used == 3 else d
            used += 1
        j += 1
    return j, used, a, b, c, d


def make_combine(contract: bool) -> Any:
    """The function combine_block, with or without fused multiply-adds."""

    @(contracting if contract else strict)
    def combine_block(y: Any, K: Any, rows: Any, coef: Any, ns: int, lo: int, hi: int, out: Any) -> None:
        """Sets out[0:hi-lo] = y[lo:hi] + sum_j coef[j] K[rows[j], lo:hi], one term after another; an empty y counts as 0.

        Each pass over memory adds four terms; where one to three are left, the first of them fills up with weight 0.
        """
        m = hi - lo
        if y.size == 0:
            for i in range(m):
                store(0, 0, out, i, 0.0)
        else:
            start = block(y, lo, hi)
            for i in range(m):
                store(1, 0, out, i, load(1, start, i))
        # out is read and written once for four terms: the loop is bound by memory, and float32 is rounded after each pass
        j = 0
        while j < ns:
            j, used, a, b, c, d = next_terms(coef, ns, j)
            if used == 0:
                return
            ca, ka = coef[a], row_block(K, rows[a], lo, hi)
            cb, kb = (coef[b], row_block(K, rows[b], lo, hi)) if used > 1 else (0.0, ka)
            if used > 2:
                cc, kc = coef[c], row_block(K, rows[c], lo, hi)
                cd, kd = (coef[d], row_block(K, rows[d], lo, hi)) if used > 3 else (0.0, ka)
                for i in range(m):
                    out[i] = (((out[i] + ca * ka[i]) + cb * kb[i]) + cc * kc[i]) + cd * kd[i]
            else:
                for i in range(m):
                    out[i] = (out[i] + ca * ka[i]) + cb * kb[i]

    return combine_block


combine_block = make_combine(True)
combine_block_strict = make_combine(False)


@strict
def scale_weights(coef: Any, rows: Any, ns: int, scales: Any, weights: Any) -> None:
    """Sets weights[j] = coef[j] * scales[rows[j], 0]: the weights of stages whose rows hold them unscaled."""
    for j in range(ns):
        weights[j] = coef[j] * scales[rows[j], 0] if coef[j] != 0.0 else 0.0


@strict
def constant_weight(coef: Any, rows: Any, ns: int, scales: Any, q: int) -> float:
    """The weight of the q-th constant array in a combination of stages: sum_j coef[j] * scales[rows[j], q]."""
    total = 0.0
    for j in range(ns):
        if coef[j] != 0.0:
            total += coef[j] * scales[rows[j], q]
    return total


@strict
def split_terms(weights: Any, ns: int, early: Any, late: Any, amounts: Any) -> Any:
    """Splits the terms of a combination into late and early ones: (number of late terms, whether there are early ones).

    late (LATE,): indices of the last terms whose weight is not 0. amounts (LATE,): their weights. early (ns,): the weights of the
    other terms. An odd number of late terms is made even by the first of them with weight 0, which halves the number of loops.
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
                amounts[terms] = weights[j]
                early[j] = 0.0
                terms += 1
            seen += 1
    for q in range(terms, late.size):
        late[q] = late[0] if terms > 0 else 0
        amounts[q] = 0.0
    return terms + terms % 2, skip > 0


@contracting
def add_scaled(weight: float, a: Any, out: Any) -> None:
    """Adds weight * a to out, both (m,)."""
    for i in range(a.size):
        out[i] += weight * a[i]


__all__ = [
    "BLOCK", "COMBINE", "EVENTS", "STAGE", "add_scaled", "block_dot", "block_max", "block_sum", "combine_block", "combine_block_strict",
    "constant_weight", "maximum", "minimum", "powi", "scale_weights", "split_terms", "tree_max", "tree_sum",
]  # fmt: skip
