"""Data of a block of lanes for the search for zeros of events: its memory, and the table that describes its steps."""

import numpy as np

from odesim.base.arrays import Array
from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.stepper.search_compiled import search_functions, search_table
from odesim.stepper.search_sizes import memory_size
from odesim.stepper.search_table import ANSWERS


class LaneSearch:
    """The search of one block. slots: the addresses that its kernel needs, by their names in odesim.engines.lanes.plan."""

    def __init__(self, plan: KernelPlan, memory: Array, facts: int, probe: int) -> None:
        """facts: the address of the facts of the events; probe: that of the function that computes them inside a step, or 0."""
        watch, rows, w = plan.watch, Rows(plan), plan.width
        room = watch.room if watch is not None else 0
        self._found, self._answer = np.empty(memory_size(room)), np.empty(ANSWERS)
        self.slots = {"FOUND": self._found.ctypes.data}
        if watch is None or not plan.called:
            return
        samples = {"ROWS": rows.samples[0].start, "BETWEEN": watch.size * w, "GAP": w}
        if plan.queued:  # one component in each lane
            samples = {"ROWS": rows.queue.start, "BETWEEN": w, "GAP": 0}
        samples["ROWS"] = memory.ctypes.data + memory.itemsize * samples["ROWS"] * w
        self._table = search_table(
            **samples, SIZE=watch.size, PIECES=watch.pieces, FACTS=facts, ZEROS=self.slots["FOUND"], ROOM=room,
            ANSWER=self._answer.ctypes.data, ASK=probe, ASKED=memory.ctypes.data,
        )  # fmt: skip
        self.slots |= {"SEARCH": search_functions()[plan.called], "SEARCHED": self._table.ctypes.data, "ANSWER": self._answer.ctypes.data}
