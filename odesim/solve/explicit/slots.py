"""Places in the three small arrays that hold the whole state of a run between two calls of the driver."""

# at (int64): addresses and what they need
STAGE, COMBINE, EVENTS, TABLE, K_, ROWS, COEF, WORK, BLOCK, G, OUT, WIDTH, AT_SIZE = range(13)

# count (int64); Y: which row of work (3, n) is the state, the other of the first two is the next one, the third is scratch;
# LAST: the number of the stage at the new point, which is the first stage of the next step; ROWS_ALL: stages with those for dense output
PHASE, SLICE, STOP, Y, STEPS, REJECTED, RHS_CALLS, SAVED, FOUND, MAX, LAST, ROWS_ALL, PIECES, RETRY, TOTAL, G_OLD, COUNT_SIZE = range(17)

# real (float64); H: the next step of an adaptive run; FIXED: the step of a run with a fixed step, else 0; FIXED_LAST: its last step
(T, T0, T1, H, FIXED, FIXED_LAST, RTOL, ATOL, ERROR_OLD, SAFETY, ALPHA, BETA, SHRINK, GROW, T_STOP, THETA_STOP, START_POWER, REAL_SIZE) = (
    range(18)
)

# what the driver answers
RUNNING, FINISHED, STOPPED_BY_EVENT, TOO_MANY_STEPS, TOO_SMALL, NOT_FINITE, BUFFER_FULL = range(7)
