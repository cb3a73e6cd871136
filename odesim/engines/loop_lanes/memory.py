"""Rows of lanes in memory, and the right-hand side of all of them."""

from typing import Any

from numba import njit

from odesim.engines.loop_lanes.places import FIXED_ROWS, LANES, NOTHING, STAGE, TABLE, WORK, M, N
from odesim.runtime.memory import call, doubles
from odesim.stepper.codes import Code

_compile: Any = njit  # some of its options are not in its type
helper = _compile(error_model="numpy", fastmath={"contract"}, no_cpython_wrapper=True, no_cfunc_wrapper=True)
exported = _compile("void(int64)", error_model="numpy", fastmath={"contract"}, no_cpython_wrapper=True, no_cfunc_wrapper=True)

ROW = 8 * LANES
"""Bytes of a row."""
RUNNING, AT_END, AT_LIMIT, STUCK = float(Code.RUNNING), float(Code.OK), float(Code.MAX_STEPS), float(Code.STEP_TOO_SMALL)
EMPTY, WILD, UNBOUNDED, HELD_BACK = float(Code.IDLE), float(Code.NON_FINITE), float(Code.BLOW_UP), float(Code.HANDED_OVER)
"""Codes as rows of lanes hold them."""


@helper
def lane_row(at: Any, k: int) -> Any:
    """Row k of the numbers of lanes."""
    return doubles(at[WORK] + k * ROW)


@helper
def state_at(at: Any) -> int:
    """The address of the state (M rows)."""
    return at[WORK] + FIXED_ROWS * ROW


@helper
def stage_at(at: Any) -> int:
    """The address of the state of a stage (M rows)."""
    return at[WORK] + (FIXED_ROWS + at[M]) * ROW


@helper
def new_at(at: Any) -> int:
    """The address of the new state (N rows)."""
    return at[WORK] + (FIXED_ROWS + 2 * at[M]) * ROW


@helper
def sum_at(at: Any) -> int:
    """The address of a sum of derivatives (N rows)."""
    return at[WORK] + (FIXED_ROWS + 2 * at[M] + at[N]) * ROW


@helper
def slope_at(at: Any, s: int) -> int:
    """The address of derivative s (M rows)."""
    return at[WORK] + (FIXED_ROWS + 2 * at[M] + 2 * at[N] + s * at[M]) * ROW


@helper
def right(at: Any, state: int, slope: int) -> None:
    """Writes the right-hand side of all lanes at a state into a derivative, both as addresses of M rows."""
    call(at[STAGE], (at[TABLE], 0.0, state, slope, at[NOTHING], at[NOTHING], 0, 0, 0))


@helper
def copy_rows(source: int, target: int, rows: int) -> None:
    """Copies rows of lanes from one address to another."""
    x, y = doubles(source), doubles(target)
    for q in range(rows * LANES):
        y[q] = x[q]
