"""The table of one run of one system: what each place of it holds.

A run lies in one table of 64-bit numbers, whose address is the driver's only argument: addresses of functions and arrays, and whole
numbers that do not change. What changes from step to step lies in two of its arrays. NUMBERS (float64) are those of the text, in the order
in which the driver's printer names them (one_system.py). COUNTS (int64) are two that operations on rows change.
"""

# functions of the system and their table, as odesim.solve.problem.BoundSystem has them; laws have a table of their own
STAGE, COMBINE, EVENTS_AT, TABLE, LAWS_AT, LAW_TABLE = range(6)
# the search for zeros (odesim.solve.step.by_address), its table and its results, where the processor calls it by its address
SEARCH, SEARCHED, ANSWER = range(6, 9)
# the method: A (ALL, ALL), C (ALL,), E (2, LAST + 1), P (ALL, DEGREE)
A, C, E, P, LAST, ALL, DEGREE = range(9, 16)
# rows: stages K (ALL, n), of which stage j is row ORDER[j]; states Y, Z of WORK (3, n) that take turns, and X, scratch; a block of a
# combination, and sums; weights COEF (ALL,)
K, ORDER, COEF, WORK, Y, Z, X, BLOCK, SUMS = range(16, 25)
# what is saved: TIMES (SAVED_TIMES,), OUT (SAVED_TIMES + 1, n)
TIMES, OUT, SAVED_TIMES = range(25, 28)
# events, SIZE components: samples -1 to PIECES of them, and one more, G (PIECES + 3, SIZE); FACTS (2, SIZE) and ZEROS, room for ROOM of
# them, as odesim.solve.step.search has them; NEEDED: zeros that one step may have; LOOKED (2,): begin and length of the step searched
G, FACTS, ZEROS, SIZE, PIECES, ROOM, NEEDED, LOOKED = range(28, 36)
# laws, LAW_SIZE components: of each its place among the senses, its value, what that is held against, the worst violation and its time
LAW_SIZE, LAW_SENSE, LAW_NOW, LAW_BEST, LAW_WORST, LAW_TIME = range(36, 42)
# the other arrays; STOP (1,): set from outside to make the driver return; N: components; WIDTH: bytes of one
NUMBERS, COUNTS, STOP, N, WIDTH = range(42, 47)
TABLE_SIZE = 47

# COUNTS: zeros in ZEROS; whether the laws were watched before, in a run that this one continues
FOUND, LATER = range(2)
COUNTS_SIZE = 2
