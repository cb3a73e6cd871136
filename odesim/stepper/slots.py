"""The table of one run of one system: what each place of it holds.

A run lies in one table of 64-bit numbers, whose address is the driver's only argument: addresses of functions and arrays, and whole
numbers that do not change. What changes from step to step lies in two of its arrays. NUMBERS (float64) are those of the text, in the order
in which the driver's printer names them (one_system.py). COUNTS (int64) are two that operations on rows change.
"""

# functions of the system and their table, as odesim.stepper.problem.BoundSystem has them
STAGE, COMBINE, EVENTS_AT, TABLE = range(4)
COUNTS, NUMBERS = range(4, 6)
# the method: A (ALL, ALL), C (ALL,), E (2, LAST + 1), P (ALL, DEGREE)
A, C, E, P = range(6, 10)
# rows: stages K (ALL, n), of which stage j is row ORDER[j]; weights COEF (ALL,); states WORK (3, n), of which the first two take turns;
# a block of a combination, and sums. Saved times, and OUT (SAVED_TIMES + 1, n). Large arrays lie in a page by these numbers (base.arrays)
K, ORDER, COEF, WORK, BLOCK, SUMS, TIMES, OUT = range(10, 18)
# events, SIZE components: samples -1 to PIECES of them, and one more, G (PIECES + 3, SIZE); FACTS (2, SIZE) and ZEROS, room for ROOM of
# them, as odesim.stepper.search has them; NEEDED: zeros that one step may have; LOOKED (2,): begin and length of the step searched
G, FACTS, ZEROS, LOOKED, NEEDED, SIZE, ROOM, PIECES = range(18, 26)
# the search for zeros (search_by_address.py), its table and its results, where the processor calls it by its address
SEARCH, SEARCHED, ANSWER = range(26, 29)
# laws, LAW_SIZE components: their function and its table; of each its place among the senses, its value, what that is held against, the
# worst violation and its time
LAWS_AT, LAW_TABLE, LAW_SIZE, LAW_SENSE, LAW_NOW, LAW_BEST, LAW_WORST, LAW_TIME = range(29, 37)
# numbers; the addresses of the state, the new one and scratch; STOP (1,): set from outside to make the driver return
N, WIDTH, LAST, ALL, DEGREE, SAVED_TIMES, Y, Z, X, STOP = range(37, 47)
TABLE_SIZE = 47

# COUNTS: zeros in ZEROS; whether the laws were watched before, in a run that this one continues
FOUND, LATER = range(2)
COUNTS_SIZE = 2
