"""The arrays of one run: its whole state between two calls of the driver."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from odesim.base.arrays import Arena, Array
from odesim.base.options import RunOptions
from odesim.stepper.codes import Standing
from odesim.stepper.control import LOG2_LEAST_OLD, longest_step
from odesim.stepper.laws import Worst
from odesim.stepper.one_system import KINDS, driver_of
from odesim.stepper.problem import _MOST, Problem, fixed_steps, opening_step, search_facts, usable
from odesim.stepper.search_samples import memory_size, most_zeros
from odesim.stepper.table import ANSWERS, COUNTS, RUN, SEARCH, places

EVENT_ROOM = 64
LAW_ARRAYS = ("LAW_SENSE", "LAW_NOW", "LAW_BEST", "LAW_WORST", "LAW_TIME")


@lru_cache(maxsize=64)
def arena_of(n: int, width: int, rows: int, stages: int, numbers: int, samples: tuple[int, int], watched: int) -> Arena:
    """The places of the arrays of a run in its memory. width: bytes of a number of the state; samples: of events; watched: laws."""
    # one arena: rows that start at the same offset of different pages would fall into the same cache sets
    turns = places(RUN)
    sizes = {
        "COUNTS": COUNTS.itemsize,
        "STOP": 8,
        "NUMBERS": 8 * numbers,
        "ORDER": 8 * stages,
        "COEF": 8 * stages,
        "BLOCK": width * min(n, 1024),
        "SUMS": 8 * (32 + (n + 1023) // 1024),
        "G": 8 * samples[0] * samples[1],
        "FACTS": 8 * 2 * samples[1],
        "LOOKED": 8 * 2,
        **dict.fromkeys(LAW_ARRAYS, 8 * watched),
        "WORK": width * rows * n,
        "K": width * stages * n,
    }
    return Arena({turns[name]: size for name, size in sizes.items()})


class RunState:
    """The state of a run; `address` is that of its table, the driver's only argument.

    kind: of methods, one of KINDS (one_system.py). dtype: of all rows; "" for that of the right-hand side.
    The numbers of the run have the names that the text of the step gives them: state["steps"], state["t"].
    """

    dtype: ClassVar = ""
    kind: ClassVar = "explicit"

    def __init__(self, problem: Problem, method: Any, save: Array, options: RunOptions) -> None:
        self.problem, self.method, self.save, self.options = problem, method, save, options
        self._by_state = options.by_state
        self._places = driver_of(self.kind, self._by_state).places
        # one value more than the interpolant has powers; a map has no times between two updates
        self.pieces = max(4, method.P.shape[1]) if method.last else 1
        n, dtype = problem.rhs.layout.size, np.dtype(self.dtype or problem.rhs.dtype)
        self.stays: bool = getattr(problem.rhs, "stays", False)  # the saved rows are to stay on the device where they are computed
        # one row more, for the last state of a run that stops early
        self.out: Any = np.empty((0 if self.stays else len(save) + 1, n), dtype)
        self.table = np.zeros(RUN.itemsize // 8, np.int64).view(RUN)  # zeros of a type with 80 names take 20 times as long
        self.at, self.address = self.table[0], int(self.table.ctypes.data)
        self._zeros: list[tuple[Array, Array]] = []
        self._search, self._answer = np.zeros(1, SEARCH), np.empty(ANSWERS)
        self._fill_whole_numbers(n, dtype.itemsize)
        self._fill_arrays(n, dtype)
        self._fill_switches()
        self._fill_method()
        self._make_room()
        self._begin(options.max_steps)

    def __getitem__(self, name: str) -> float:
        """A number of the run, by its name in the text."""
        return self.numbers.item(self._places[name])

    def __setitem__(self, name: str, value: float) -> None:
        self.numbers[self._places[name]] = value

    def put(self, values: Mapping[str, float]) -> None:
        """Sets numbers of the run by their names."""
        numbers, places = self.numbers, self._places
        for name, value in values.items():
            numbers[places[name]] = value

    def anew(self, problem: Problem, save: Array, max_steps: int) -> None:
        """Starts another segment of the same run: only its span, start, saved times and allowed steps are new."""
        self.problem, self.save, self.options = problem, save, replace(self.options, max_steps=max_steps)
        self.out = np.empty((len(save) + 1, len(problem.y0)), self.work.dtype)
        at = self.at
        at["TIMES"], at["OUT"], at["SAVED_TIMES"] = save.ctypes.data, self.out.ctypes.data, len(save)
        self._zeros = []
        self.counts[:] = 0
        self.stopping[0] = 0
        self._order[:] = range(self.method.stages)
        self.work[0] = problem.y0
        self._go_on_with_laws()
        self._begin(max_steps)

    @property
    def searches(self) -> bool:
        """Whether steps are searched for events; those of a map have no inside."""
        return self.problem.rhs.n_events > 0 and self.method.last > 0

    def call_search(self, function: int, probe: int) -> None:
        """Makes the driver call the search at this address, which asks the probe at that one."""
        at, search = self.at, self._search[0]
        at["SEARCH"], at["SEARCHED"], at["ANSWER"] = function, self._search.ctypes.data, self._answer.ctypes.data
        for name in ("SIZE", "PIECES", "FACTS", "ZEROS", "ROOM", "ANSWER"):
            search[name] = at[name]
        search["ROWS"], search["BETWEEN"], search["GAP"] = at["G"], at["SIZE"], 1
        search["ASK"], search["ASKED"] = probe, self.address

    @property
    def t(self) -> float:
        """The last time reached."""
        return self["t"]

    @property
    def y(self) -> Array:
        """The state there (n,), a view."""
        return self.work[int(self["turn"])]

    def stop(self) -> None:
        """Makes the driver return after its current step."""
        self.stopping[0] = 1

    def drain_events(self) -> None:
        """Moves the events found so far out of the driver's buffer."""
        count = int(self.counts["FOUND"][0])
        pairs = self.room[: 2 * count].reshape(count, 2).copy()
        self._zeros.append((pairs[:, 0], pairs[:, 1]))
        self.counts["FOUND"] = 0

    def event_records(self) -> tuple[Array, Array]:
        """Times and component numbers of all events, in the order of time."""
        if not (self._zeros or self.counts["FOUND"][0]):
            return np.empty(0), np.empty(0)
        self.drain_events()
        times, numbers = (np.concatenate(parts) for parts in zip(*self._zeros, strict=True))
        order = np.argsort(times, kind="stable")
        return times[order], numbers[order]

    def watched(self) -> Array | None:
        """The state of the watched laws, for a run that continues this one."""
        return np.array([self.best, self.violations, self.law_times]) if self.problem.laws else None

    def worst(self) -> Worst:
        """The worst violation of each law so far."""
        laws = self.problem.laws
        return laws.worst(self.violations, self.law_times) if laws else {}

    @property
    def standing(self) -> Standing:
        """The Standing of the run."""
        return Standing(int(self["steps"]), int(self["rejected"]), int(self["saved"]), self["h"])

    def stats(self) -> dict[str, float]:
        """steps, rejected, rhs_calls."""
        return {"steps": int(self["steps"]), "rejected": int(self["rejected"]), "rhs_calls": int(self["calls"])}

    # -- filling the table

    def _fill_arrays(self, n: int, dtype: np.dtype) -> None:
        """Allocates one memory for all arrays in the table, and fills in their addresses."""
        at, laws, stages, size = self.at, self.problem.laws, self.method.stages, self.problem.rhs.n_events
        senses = laws.senses if laws else np.empty(0)
        watched, rows = len(senses), len(KINDS[self.kind].rows)
        arena = arena_of(n, dtype.itemsize, rows, stages, len(self._places), (self.pieces + 3, size), watched)
        self._memory = arena.memory(self.table.view(np.int64))
        at["TIMES"], at["OUT"] = self.save.ctypes.data, self.out.ctypes.data
        turns = places(RUN)

        def view(name: str, shape: Any, kind: Any = np.int64) -> Array:
            return np.ndarray(shape, kind, self._memory, arena.starts[turns[name]])

        self._memory[: arena.starts[turns["BLOCK"]]] = 0  # counts, numbers and weights
        self.counts, self.stopping, self._order = view("COUNTS", 1, COUNTS), view("STOP", 1), view("ORDER", stages)
        self.numbers, self.work = view("NUMBERS", len(self._places), np.float64), view("WORK", (rows, n), dtype)
        self.work[0], self._order[:] = self.problem.y0, np.arange(stages)
        if size:
            view("FACTS", 2 * size)[:] = search_facts(self.problem.events).ravel()
        self.best, self.violations, self.law_times = (view(slot, watched, np.float64) for slot in LAW_ARRAYS[2:])
        self.violations.fill(0.0)
        self.law_times.fill(self.problem.t0)
        if laws:
            view("LAW_SENSE", watched)[:] = senses
            at["LAWS_AT"], at["LAW_TABLE"], at["LAW_SIZE"] = laws.values.events, laws.values.table, watched
        self._go_on_with_laws()

    def _go_on_with_laws(self) -> None:
        """Continues the watch of the laws of an earlier run, if there was one."""
        laws = self.problem.laws
        if laws is not None and laws.before is not None:
            self.best[:], self.violations[:], self.law_times[:] = laws.before
            self.counts["LATER"] = 1

    def _fill_whole_numbers(self, n: int, width: int) -> None:
        rhs, m, at = self.problem.rhs, self.method, self.at
        at["STAGE"], at["COMBINE"], at["TABLE"] = rhs.stage, rhs.combine, rhs.table
        at["EVENTS_AT"], at["EVENTS_TABLE"] = rhs.events, rhs.events_table
        at["N"], at["WIDTH"] = n, width
        at["LAST"], at["ALL"], at["DEGREE"] = m.last, m.stages, m.P.shape[1]
        at["SAVED_TIMES"], at["SIZE"], at["PIECES"] = len(self.save), rhs.n_events, self.pieces

    def _fill_method(self) -> None:
        """The numbers and tables of the method."""
        m, at = self.method, self.at
        at["A"], at["C"], at["E"], at["P"] = m.addresses
        self.put(m.numbers)

    def _tolerances(self) -> tuple[float, Any]:
        """The tolerances of a step."""
        return usable(self.options, self.problem.rhs.layout, self.problem.rhs.dtype)

    def _fill_switches(self) -> None:
        """The tolerances, and the switches of the text, which stay as they are."""
        options, problem = self.options, self.problem
        rtol, atol = self._tolerances()
        self.atol = np.array(atol, self.work.dtype, ndmin=1)
        self.at["ATOL"], self.at["ATOLS"] = self.atol.ctypes.data, len(self.atol) if options.step is None else 0
        self.put({
            "rtol": rtol, **({} if self._by_state else {"atol": atol}),
            "longest": longest_step(options.max_step), "h0": opening_step(options.first_step, options.max_step),
            "ADAPTIVE": options.step is None, "CHOOSES": options.first_step is None,
            "EVENTS": problem.rhs.n_events > 0, "LAWS": len(self.violations) > 0,
        })  # fmt: skip

    def _begin(self, max_steps: int) -> None:
        """The numbers with which a segment begins."""
        p = self.problem
        self.put({
            "t0": p.t0, "t1": p.t1, "t": p.t0, "past": LOG2_LEAST_OLD, "most": float(min(max_steps, _MOST)), "SAVES": len(self.save) > 0,
            **dict.fromkeys(("phase", "turn", "calls", "steps", "rejected", "saved", "h", "code"), 0.0),
        })  # fmt: skip
        if self.options.step is not None:
            self["fixed"] = self.options.step
            self["total"], self["rest"] = fixed_steps(p.t0, p.t1, self.options.step)

    def _make_room(self) -> None:
        """The array for events, until they are drained: of two steps at least."""
        at, size = self.at, self.problem.rhs.n_events
        if not size:
            self.room = np.empty(0)
            return
        at["NEEDED"] = most_zeros(size, self.pieces)
        room = max(EVENT_ROOM, 2 * int(at["NEEDED"]))
        self.room = np.empty(memory_size(room, size, self.pieces))
        at["ZEROS"], at["ROOM"] = self.room.ctypes.data, room
