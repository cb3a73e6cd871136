"""One zero of a function whose sign changes: the iteration, independent of who evaluates the function."""

from typing import Any

from numba import njit

_compile: Any = njit  # some of its options are not in its type
# fastmath is said: what says nothing takes over that of whoever calls it first
helper = _compile(error_model="numpy", fastmath=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@helper
def passes(a: float, b: float, direction: int) -> bool:
    """Whether a function that goes from a to b passes zero, or ends on it, in its direction. A zero at a was counted before."""
    return (a < 0.0 and b >= 0.0 and direction >= 0) or (a > 0.0 and b <= 0.0 and direction <= 0)


@helper
def guess(lo: float, hi: float, g_lo: float, g_hi: float, trial: int) -> float:
    """The next point between lo and hi: on the chord, every fourth time the midpoint. Not between them if they are neighbours."""
    theta = hi - g_hi * ((hi - lo) / (g_hi - g_lo))
    return lo + 0.5 * (hi - lo) if trial % 4 == 0 or not lo < theta < hi else theta


@helper
def narrowed(lo: float, hi: float, g_lo: float, g_hi: float, side: int, theta: float, g: float) -> tuple[float, float, float, float, int]:
    """(lo, hi, g_lo, g_hi, side) once the function is known to be g at theta: an end that stays twice counts half (Illinois).

    side: which end the step before moved, 1 the lower, 2 the upper, 0 none.
    """
    if g * g_lo > 0.0:
        return theta, hi, g, 0.5 * g_hi if side == 1 else g_hi, 1
    return lo, theta, 0.5 * g_lo if side == 2 else g_lo, g, 2
