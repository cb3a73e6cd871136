"""The table that describes a step of a stiff run to the compiled search for zeros (zeros.py).

Addresses of ROWS (PIECES + 3, SIZE), samples -1 to PIECES of the functions and, in the last row, where they were asked for; of FACTS
and ZEROS, as odesim.solve.step.search has them; of STEP; of ASK, a function of (0, theta, 0, 0) that puts the functions at theta into
the last row. Then numbers. STEP: the times from which and to which, the length; then the time and the theta of the first terminal zero.
"""

ROWS, FACTS, ZEROS, STEP, ASK, SIZE, PIECES, ROOM = range(8)
