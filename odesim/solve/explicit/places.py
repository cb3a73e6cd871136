"""Indices into the three small arrays that hold the state of a run between two calls of the driver."""

# at (int64): what does not change. Addresses of the system's functions and of arrays:
#   COUNT, REAL: the other two; A (ROWS_ALL, ROWS_ALL), C, E (2, LAST + 1), P (ROWS_ALL, DEGREE): the method; K, ROWS, COEF: stages;
#   WORK (3, n): two states that take turns and scratch; BLOCK (1024,), SUMS; SAVE (SAVES,), OUT (SAVES + 1, n);
#   G (PIECES + 3, SIZE): samples -1 to PIECES of the events, and one more, in float64; FACTS (2, SIZE), ZEROS: as
#   odesim.solve.step.search has them.
# Then numbers: LAST: the stage at the new point, the first stage of the next step; 0 of a map, where
#   stage 0 is the new state; ROWS_ALL: stages with those for dense output;
#   WIDTH: bytes of a component; PIECES: parts of a step searched for events; ROOM: of ZEROS;
#   NEEDED: zeros that one step may have; MAX: steps allowed; TOTAL: fixed steps to the end.
STAGE, COMBINE, EVENTS, TABLE, COUNT, REAL, A, C, E, P, K, ROWS, COEF, WORK, BLOCK, SUMS, SAVE, OUT = range(18)
G, FACTS, ZEROS, NEEDED, N, WIDTH, LAST, ROWS_ALL, DEGREE, SAVES, SIZE, ROOM, PIECES, MAX, TOTAL = range(18, 33)
# laws: the addresses of their function and of its table, how many components; of each its place among the senses, its value, what that is
# held against, the worst violation and its time (LAW_SIZE,)
LAWS, LAW_TABLE, LAW_SIZE, LAW_SENSE, LAW_NOW, LAW_BEST, LAW_WORST, LAW_TIME = range(34, 42)
# where the processor searches events: the addresses of search_step (odesim.solve.step.by_address), of its table and of its results
SEARCH, SEARCHED, ANSWER = range(42, 45)
AT_SIZE = 45

# count (int64): Y: which of the first two rows of WORK is the state; RETRY: whether the last step was rejected;
#   LATER: whether the laws were watched before; STOP: set from outside; SLICE: steps before the driver returns
PHASE, SLICE, STOP, Y, STEPS, REJECTED, RHS_CALLS, SAVED, FOUND, RETRY, LATER = range(11)
COUNT_SIZE = 11

# real (float64): H: the next step of an adaptive run; FIXED, FIXED_LAST: a fixed step, else 0, and the last one;
#   LONGEST: that no step is above; LOG_OLD: log2 of the last accepted error norm; T_STOP, THETA_STOP: where a terminal event lies;
#   LENGTH: of the step that is searched
T, T0, T1, H, FIXED, FIXED_LAST, RTOL, ATOL, LOG_OLD, ALPHA, BETA, SHRINK, GROW, START_POWER, T_STOP, THETA_STOP, LONGEST = range(17)
LENGTH = 17
REAL_SIZE = 18
