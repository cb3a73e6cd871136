"""The kernel of lanes with loops: the one text of an explicit step, printed for W members, and the feed that gives lanes their members."""

from functools import lru_cache

from odesim.run.lane_feed import frames
from odesim.run.lane_kernel import look_numbers, module_text
from odesim.run.lane_plan import AT
from odesim.stepper.lanes import Looped
from odesim.stepper.methods import METHODS
from odesim.stepper.statements import Switches, explicit_reader

LANES = 16
"""Members side by side: two vectors of 64 bytes hide each other's latency, and the loops of a right-hand side are longer."""
MOST_ROWS = 512
"""The most rows of states and own parameters that lanes with loops may have.

With more rows the members side by side leave the cache, and a single run has matrix products of its own. 32 tokens on a sphere take 0.8 of
the time of single runs with 257 rows, and 1.5 of it with 1025.
"""
CAPACITY = MOST_ROWS + 5
"""Rows of W between two rows of the state: not a power of two, or all of them would fall on the same lines of the cache."""
ARGUMENTS = ("t0", "t1", "rtol", "atol", "longest", "h0", "allowed", "pilot")
MASK = 2 * MOST_ROWS - 1
"""The compiler sees that there are no more components."""
HEAD = (f"n, clock = at[{AT['STATES']}] & {MASK}, at[{AT['CLOCK']}]",)


@lru_cache(maxsize=32)
def looped(method: str, saves: bool, strict: bool, chooses: bool, by_state: bool) -> Looped:
    """The printed step of a method. chooses: the first step follows from the state; else it is one number of the call.

    by_state: each state has its own absolute tolerance.
    """
    reader = explicit_reader(METHODS[method], Switches(saves=saves, chooses=chooses), by_state=by_state)
    reader.known |= look_numbers(METHODS[method], "float64")
    return Looped(reader, LANES, CAPACITY, ARGUMENTS, HEAD, strict)


@lru_cache(maxsize=32)
def kernel_text(method: str, saves: bool, strict: bool, chooses: bool, by_state: bool) -> str:
    """The text of the module, one for all systems: `run(table)` integrates members FIRST to END - 1 of a chunk."""
    step, w = looped(method, saves, strict, chooses, by_state), LANES
    rows = {row: place * w for row, place in step.places.items() if isinstance(row, str)} | {"f": step.places["k", 0] * w}
    given, read = ("at", *ARGUMENTS), [step.places[row] * w for row in step.read_by_right()]
    feed = frames(
        w, rows | {"count": step.count * w}, LOOPS=True, SAVES=saves, LOOKS=True, BY_STATE=by_state, MASK=MASK, READ=read,
        BEGUN=step.begun(), KNOWN=[(0, rows["h"]), (1, rows["code"])], STARTED="n + 2", GIVEN=given, STEPPED=given,
    )  # fmt: skip
    body = "\n\n\n".join([*step.functions(), *feed.printed("right", "judged", "fill", "run")])
    return module_text(f"{w} lanes with loops of {method}{', strict' if strict else ''}", body, strict)
