"""The table that describes the steps of a run to the compiled search for zeros (by_address.py): addresses and whole numbers.

ROWS: samples of the functions. Component i of sample k of lane l is number (k + 1) BETWEEN + i GAP + l there, k = -1 to PIECES.
ASK: a function of (ASKED, theta, l, i), which puts the functions at theta of the step into the place of k = PIECES + 1; i: that of probe.
FACTS, ZEROS: as odesim.stepper.search has them, of SIZE components and with room for ROOM zeros. ANSWER (ANSWERS,): the results.
"""

ROWS, BETWEEN, GAP, SIZE, PIECES, FACTS, ZEROS, ROOM, ANSWER, ASK, ASKED = range(11)
TABLE_SIZE, ANSWERS = 11, 3
