"""Indices into the arrays that hold members in lanes."""

LANES = 16
"""Members side by side: two vectors of 64 bytes hide each other's latency, and the loops of a right-hand side are longer."""

# at (int64): addresses of the right-hand side and its table, of the method (A, C, E, P as in odesim.stepper.slots), of arrays:
#   WORK: rows of LANES numbers, REAL: numbers of the call, NOTHING: zeros; Y0 (1 or count, N), Y0_STEP: how far members are apart;
#   OWN (count, M - N): parameters of members, K0 (count, N), H0, CODE0 (count,): what is known of members before they have a lane;
#   SAVE (SAVES,), OUT (count, SAVES, N), END_Y (count, N) or 0, STATUS, STEPS, REJECTED (int64), T_END, STOP (int64)
STAGE, TABLE, A, C, E, P, WORK, REAL, NOTHING, Y0, Y0_STEP, OWN, K0, H0, CODE0, SAVE, OUT, END_Y, STATUS, STEPS = range(20)
REJECTED, T_END, STOP = range(20, 23)
# numbers: rows of the right-hand side, states among them, the row of the time or -1; LAST, ROWS_ALL, DEGREE of the method; members FIRST
#   to END - 1; steps allowed, and those before the first look
M, N, CLOCK, LAST, ROWS_ALL, DEGREE, SAVES, FIRST, END, MOST, PILOT, IS_SAVING = range(23, 35)
AT_SIZE = 35

# real (float64)
T0, T1, RTOL, ATOL, LONGEST, ALPHA, BETA, SHRINK, GROW, START_POWER, BOUND, SMALL = range(12)
REAL_SIZE = 12

# WORK: rows of lanes, one number each
TIME, STEP, NEW, USED, OLD_ERROR, RETRY, LIMIT, TAKEN, REFUSED, NEXT, ERROR, TOTAL, FIRST_TOTAL, FITS, STATE_OF, MEMBER, SAVED = range(17)
FIXED_ROWS = 17
# then the state and its copy for a stage (M rows each), the new state and a sum (N rows each), ROWS_ALL + 1 derivatives (M rows each)
