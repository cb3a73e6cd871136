"""Tables of 64-bit numbers that compiled code reads: each declared once, by the names of its columns.

A table's address is the only argument of a driver, of the search for zeros, of a kernel of lanes. It holds addresses of functions and
arrays, and whole numbers that do not change. In Python it is an array with these columns, `at["N"]`; in compiled code, which knows the
places of the columns as constants, `at[N]`.
"""

from functools import cache
from typing import Any

import numpy as np

from odesim.base.arrays import Array


def columns(names: str, kind: type = np.int64) -> np.dtype:
    """The type of a table with these columns, of whole numbers or of float64."""
    return np.dtype([(name, kind) for name in names.split()])


@cache
def places(table: np.dtype) -> dict[str, int]:
    """{column: its place}."""
    assert table.fields is not None
    return {name: place[1] // 8 for name, place in table.fields.items()}


def constants(*tables: np.dtype) -> str:
    """Lines of Python that name the places."""
    return "\n".join(f"{name} = {place}" for table in tables for name, place in places(table).items())


def new_table(table: np.dtype, **values: Any) -> Array:
    """A table (1,) with these values, 0 elsewhere."""
    numbers = np.zeros(1, table)
    for name, value in values.items():
        numbers[name] = value
    return numbers


# One run of one system. What changes from step to step lies in two of its arrays: NUMBERS (float64), those of the text of the step in the
# order in which the driver's printer names them (one_system.py), and COUNTS (int64). Large arrays lie in a page by their places here.
RUN = columns(
    # functions of the system and their tables, as odesim.stepper.problem.BoundSystem has them
    "STAGE COMBINE TABLE EVENTS_AT EVENTS_TABLE COUNTS NUMBERS "
    # the method: A (ALL, ALL), C (ALL,), E (2, LAST + 1), P (ALL, DEGREE)
    "A C E P "
    # rows: stages K (ALL, n), of which stage j is row ORDER[j]; weights COEF (ALL,); states WORK (3, n), of which the first two take turns;
    # a block of a combination, and sums. Saved times, and OUT (SAVED_TIMES + 1, n)
    "K ORDER COEF WORK BLOCK SUMS TIMES OUT "
    # events, SIZE components: samples -1 to PIECES of them, and one more, G (PIECES + 3, SIZE); FACTS (2, SIZE) and ZEROS, room for ROOM
    # of them, as odesim.stepper.search has them; NEEDED: zeros that one step may have; LOOKED (2,): begin and length of the step searched
    "G FACTS ZEROS LOOKED NEEDED SIZE ROOM PIECES "
    # the search for zeros (search_by_address.py), its table and its results, where the processor calls it by its address
    "SEARCH SEARCHED ANSWER "
    # laws, LAW_SIZE components: their function and its table; of each its place among the senses, its value, what that is held against,
    # the worst violation and its time
    "LAWS_AT LAW_TABLE LAW_SIZE LAW_SENSE LAW_NOW LAW_BEST LAW_WORST LAW_TIME "
    # numbers; the addresses of the state, the new one and scratch; STOP (1,): set from outside to make the driver return
    "N WIDTH LAST ALL DEGREE SAVED_TIMES Y Z X STOP "
    # absolute tolerances in the type of states, ATOLS of them: one for all, one a component, or 0 where steps are fixed
    "ATOL ATOLS "
    # of an implicit run, whose rows are float64 and whose TABLE is this table: functions of the system and of its laws, and their tables;
    # whether its numbers are float32 (SINGLE), a state and two derivatives of that type, RAW (3, n), and the weight and row of one stage
    "IMPLICIT SYSTEM_STAGE SYSTEM_COMBINE SYSTEM_TABLE SYSTEM_EVENTS SYSTEM_EVENTS_TABLE SYSTEM_LAWS SYSTEM_LAW_TABLE SINGLE RAW ONE ZERO "
    # its linear systems (linear_steps.py): functions, the address that they are given first, a truth that they answer, and the numbers of a
    # Jacobian, of which there are two: JACOBIANS (2, JACOBIAN_SIZE). Linear invariants of the state, where there are some
    "LINEAR ALONG ELIMINATE DRIFT SOLVE SYSTEMS TRUTH JACOBIANS JACOBIAN_SIZE INVARIANTS "
    # its method: D (ALL,), G (ALL, ALL) and CHECK (2, ALL), as implicit.py has them
    "DRIFTS TO_SOLVE CHECKS "
    # the address of the table of noise
    "NOISE"
)

# FOUND: zeros in ZEROS; LATER: whether the laws were watched before, in a run that this one continues
COUNTS = columns("FOUND LATER")

# The noise of a run (noise_draw.py): which path it is; normal numbers XI (2, CHANNELS); WEIGHTS (stages, 5) of a scheme; where the right-
# hand side reads the LENGTH of a step, or 0; RATES (ARRAYS, 2): the address and length of each array of rates
NOISE = columns("MEMBER KEY0 KEY1 HALVINGS DRAWS CHANNELS XI WEIGHTS LENGTH ARRAYS RATES")

# The steps of a run, for the compiled search for zeros. ROWS: samples of the functions: component i of sample k of lane l is number
# (k + 1) BETWEEN + i GAP + l, k = -1 to PIECES. ASK: a function of (ASKED, theta, l, i), which puts the functions at theta of the step into
# the place of k = PIECES + 1; i: that of probe. FACTS, ZEROS: as odesim.stepper.search has them, of SIZE components and with room for ROOM
# zeros. ANSWER (ANSWERS,): the results
SEARCH = columns("ROWS BETWEEN GAP SIZE PIECES FACTS ZEROS ROOM ANSWER ASK ASKED")
ANSWERS = 3

# The linear systems of a run by compiled elimination (front_solver.py)
FRONTAL = columns(
    # functions of slopes and df/dt with their tables; Python's elimination and solution; BLAS's product
    "SLOPES SLOPES_TABLE TIME TIME_TABLE PIVOTED SOLVE_PIVOTED GEMM "
    # numbers: states, unknowns, slopes, fronts, entries, those in TANGENT, their order for J v; which solution comes NEXT
    "STATES UNKNOWNS COUNT FRONTS ENTRIES TANGENTS TANGENT NEXT "
    # of entries: factor, number of J, row, column, place in its front
    "FACTOR SOURCE ROW COLUMN PLACE "
    # fronts, as odesim.ir.fronts has them: the first entry, row, child, number left and factor of each; pivots
    "FIRST_ENTRY FIRST_ROW ROWS WIDTHS FIRST_CHILD FIRST_LEFT PLACES FIRST_FACTOR PIVOTS "
    # memory: entries, factors, a front, what is left of fronts, unknowns, these twice, those of a front; numbers for BLAS; -1, 1, and
    # the size from which each unknown counts
    "VALUES FACTORS FRONT LEFT X SIZES LOCAL WHOLE REALS"
)
