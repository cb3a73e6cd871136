"""One system integrated by a lane kernel: the stiff methods in strict mode.

The kernel is the one that members of an ensemble have, so that a run has the bits of a member. odesim.stepper.report reads from here what
it reads from the runs of other integrators.
"""

import ctypes
import time
from collections.abc import Mapping
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import SolveError
from odesim.base.options import RunOptions
from odesim.base.signals import ctrl_c, not_counted
from odesim.ensembles.request import Chunk, EnsembleRequest, make_outputs
from odesim.inputs.bind import Numbers
from odesim.run.lane_plan import KernelPlan, Rows
from odesim.run.lanes import LaneEngine, kernel_name, lane_plan, no_strict
from odesim.stepper.codes import STATUSES, UNDONE, Code, Standing, Status
from odesim.stepper.laws import LawWatch, Worst
from odesim.stepper.problem import Problem, Progress, Raw, check_options, save_grid
from odesim.stepper.report import collect
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.targets.compiled import CompiledRHS
from odesim.transforms.clock import LONGEST, START, STOP

ROOM = 8192
"""Occurrences of each event that there is room for at first; where a run has more, it is done again. One interrupted keeps these."""
WAIT = 0.05  # s between two looks at the run
LEAVE = 2
_SEEN = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, ctypes.c_int64, ctypes.c_int64)


def alone(
    compiled: CompiledRHS, sizes: Mapping[str, int], method: str, span: tuple[float, float], times: Array, **options: Any
) -> EnsembleRequest:
    """The request of one member: its states at times (T,), and all events. options: rtol, atol, max_steps, step."""
    outputs = make_outputs(compiled.system, compiled.layout(sizes), compiled.lengths(*sizes.items()).events, {}, ROOM, clock=False)
    options_of_run = RunOptions(method, dtype=compiled.dtype, strict=compiled.strict, **options)
    return EnsembleRequest(compiled, dict(sizes), *span, times, options_of_run, outputs=outputs)


def strict_obstacle(request: EnsembleRequest, numbers: Numbers, varying: frozenset[str]) -> str:
    """The part of a request with a stiff method that has no strict mode; empty if all has.

    The request runs in lanes or, in the rescaled clock, one member after another.
    """
    if request.rescaled is not None:
        clocked: dict[str, Any] = {"params": {**numbers.params, START: numbers.t0, STOP: numbers.t1}, "t0": 0.0, "t1": LONGEST}
        end, step = np.array([LONGEST]), request.options.step
        request, varying = alone(request.rescaled, request.sizes, request.options.method, (0.0, LONGEST), end, step=step), frozenset()
        numbers = replace(numbers, **clocked)
    plan = lane_plan(request, numbers, varying)
    return plan if isinstance(plan, str) else ""


class LaneRun:
    """A run of a stiff method in lanes, one of which is used; options as of odesim.stepper.rosenbrock_run.RosenbrockRun.

    What is left before its end begins again from the start when it is gone on with. Raises SolveError where lanes cannot do it.
    """

    goes_on = False

    def __init__(
        self,
        compiled: CompiledRHS,
        numbers: Numbers,
        problem: Problem,
        name: str,
        save: Array | None = None,
        *,
        progress: Progress | None = None,
        **options: Any,
    ) -> None:
        self.options = check_options(RunOptions(**options))
        begun = time.perf_counter()
        self.problem, self.method = problem, ROSENBROCK[name]
        self.save = save_grid(problem, save)
        # both ends are known without an interpolant
        self._inside = bool(np.any((self.save > problem.t0) & (self.save < problem.t1)))
        times = self.save if self._inside else np.array([problem.t1])
        request = alone(compiled, numbers.sizes, name, (problem.t0, problem.t1), times, **options)
        numbers = replace(numbers, initial=problem.rhs.layout.split(problem.y0), t0=problem.t0, t1=problem.t1)
        plan = lane_plan(request, numbers, frozenset())
        if not isinstance(plan, KernelPlan):
            raise SolveError(no_strict(name, plan))
        self._engine = LaneEngine(request, numbers, plan, problem.began[None])
        self._engine.prepare()
        self._rows, self._progress, self._seconds = Rows(plan), progress, 0.0
        self._leave()
        self._compile_seconds = time.perf_counter() - begun
        not_counted(self._compile_seconds)

    def _leave(self) -> None:
        """Sets up the memory of the lanes, with the state at the start in the first one, and empty results."""
        rows, width = self._rows, self._engine.plan.width
        self._memory, self._stop = self._engine.memory(), np.zeros(1, np.int64)
        self._lanes = self._memory[: rows.count * width].reshape(rows.count, width)
        self._lanes[rows.t], self._lanes[rows.y, 0] = self.problem.t0, self.problem.y0
        self._chunk = self._engine.request.allocate(1)
        self._watch = LawWatch(self.problem.laws, self.problem.rhs.dtype) if self.problem.laws else None
        self._failure: BaseException | None = None
        if self._watch:
            self._watch.look(self.problem.t0, self.problem.y0)

    def _number(self, row: int) -> float:
        """The number in a row of the first lane, the only one used."""
        return float(self._lanes[row, 0])

    @property
    def t(self) -> float:
        """The last time reached."""
        return self._number(self._rows.t)

    @property
    def y(self) -> Array:
        """The state there (n,)."""
        return self._lanes[self._rows.y, 0].copy()

    @property
    def standing(self) -> Standing:
        """The Standing of the run."""
        steps, rejected = (int(self._number(row)) for row in (self._rows.steps, self._rows.rejected))
        saved = int(np.searchsorted(self.save, self.t, side="right"))
        return Standing(steps, rejected, saved, self._number(self._rows.h))

    def _saved(self) -> Array:
        """(T + 1, n): the states at the saved times that were reached."""
        states = np.empty((len(self.save) + 1, len(self.problem.y0)))
        if self._inside:
            states[:-1] = self._chunk.y[0]
        else:
            states[:-1] = np.where(self.save[:, None] == self.problem.t0, self.problem.y0, self.y)
        return states

    def event_records(self) -> tuple[Array, Array]:
        """Times and component numbers of all events, in the order of time."""
        chunk, first, times, numbers = self._chunk, 0, [np.empty(0)], [np.empty(0, np.int64)]
        for e, event in enumerate(self.problem.events[: chunk.event_count.shape[1]]):
            there = min(int(chunk.event_count[0, e]), chunk.event_t.shape[2])
            times.append(chunk.event_t[0, e, :there])
            numbers.append(first + chunk.event_index[0, e, :there])
            first += event.size
        every, which = np.concatenate(times), np.concatenate(numbers)
        order = np.argsort(every, kind="stable")
        return every[order], which[order]

    def watched(self) -> Array | None:
        """The state of the watched laws, for a run that continues this one."""
        return self._watch.watched() if self._watch else None

    def worst(self) -> Worst:
        """The worst violation of each law so far."""
        return self._watch.worst() if self._watch else {}

    def advance(self, most: float = np.inf) -> bool:
        """Runs to the end, or until `most` steps were tried; whether the run has ended, Ctrl-C included."""
        begun, allowed = time.perf_counter(), int(min(most, self.options.max_steps))
        self._engine = replace(self._engine, request=self._engine.request.changed(max_steps=allowed))
        self._leave()
        with ctrl_c(self.stop), suppress(KeyboardInterrupt):
            self._watched()
            while self._overflows():
                outputs = replace(self._engine.request.outputs, max_events=int(self._chunk.event_count.max()))
                self._engine = replace(self._engine, request=replace(self._engine.request, outputs=outputs))
                self._leave()
                self._watched()
        self._seconds += time.perf_counter() - begun
        return self._status is not Status.MAX_STEPS or allowed == self.options.max_steps

    def stop(self) -> None:
        """Makes the kernel return after its current step."""
        self._stop[0] = LEAVE

    def _overflows(self) -> bool:
        chunk = self._chunk
        return self._status is not None and bool(np.any(chunk.event_count > chunk.event_t.shape[2]))

    @property
    def _status(self) -> Status | None:
        """The Code of the end; None if the run was interrupted."""
        number = int(self._chunk.status[0])
        return None if number == UNDONE else STATUSES[number]

    def _watched(self) -> None:
        """Runs the kernel in a thread of its own: in the main thread a signal would wait for its end."""
        p = self.problem
        with ThreadPoolExecutor(1) as worker:
            done = worker.submit(self._integrate)
            try:
                while not futures.wait([done], WAIT).done:
                    if self._progress is not None:
                        self._progress((self.t - p.t0) / (p.t1 - p.t0))
                done.result()
            finally:
                self.stop()  # whatever was raised here; the thread is waited for

    def _integrate(self) -> Chunk:
        seen = _SEEN(self._look) if self._watch else None
        address = ctypes.cast(seen, ctypes.c_void_p).value or 0 if seen else 0
        engine = replace(self._engine, lanes=self._memory, seen=address)
        chunk = engine.integrate({}, {}, 1, self._stop, None, self._chunk)
        if self._failure is not None:
            raise self._failure
        return chunk

    def _look(self, _: int, t: float, y: int, __: int) -> None:
        """Updates the laws with the state y at this address."""
        assert self._watch is not None
        try:
            n = len(self.problem.y0)
            self._watch.look(t, np.array((ctypes.c_double * n).from_address(y)))
        except BaseException as error:  # ctypes can only drop it
            self._failure = error
            self.stop()

    def raw(self) -> Raw:
        """The results of the run."""
        standing = self.standing
        # f and J at the start, and of every step tried the stages but the first, the check of the interpolant, the new point
        calls = 1 + standing.tried * (self.method.stages + 1)
        self.out = self._saved()
        stats: dict[str, float] = {"steps": standing.steps, "rejected": standing.rejected, "rhs_calls": calls}
        stats |= {"seconds": self._seconds, "compile_seconds": self._compile_seconds}
        code = Code.RUNNING if self._status is None else self._status.code
        return replace(collect(self, code, stats), kernel=kernel_name(self._engine.plan))
