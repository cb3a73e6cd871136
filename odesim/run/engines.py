"""Engines of members without a kernel of their own: each member a single run, also in the rescaled clock; and two engines under `auto`.

Under `auto` members start with the explicit method. A lane looks at its member after 128 trials, and whenever their number has doubled.
Where stability holds the step and the rest is long (the rule of odesim.run.auto), the member is left there. The stiff method then begins
it again, for half of the work that the explicit one would need in all. Where it ends, or has come further in time than the explicit one
would have, its run to the end is the result. Else the explicit method begins again and looks later.
A member that took max_steps steps is tried in the same way. Every run begins at the member's start with the member's own numbers. So its
method and its bits do not depend on the other members, on chunks or on threads. No member is begun more often than there are looks.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from odesim.base.arrays import Array, array_namespace
from odesim.base.device import few_blas_threads
from odesim.base.errors import CodegenError
from odesim.base.options import RunOptions
from odesim.ensembles.request import METHOD_NAMES, Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.ir import sizes as costs
from odesim.run.auto import LEAST, SHARE, STIFF
from odesim.run.clocked import RescaledRun, in_clock
from odesim.run.integrate import integrate_problem
from odesim.run.lanes import WIDTH, member
from odesim.run.noise import noisy_problem
from odesim.run.problem import held_problem, make_costs, stiff_lanes_step
from odesim.stepper.codes import HANDED_OVER, UNDONE, Status
from odesim.stepper.methods import METHODS
from odesim.stepper.problem import Raw
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.tableau import step_cost
from odesim.targets.compiled import CompiledRHS
from odesim.transforms.events import Guard

LATER = 4
"""The next look at a member that the stiff method lost, in units of the last one."""
FEW = 1000
"""Steps that the stiff method is given at least where the explicit one took max_steps steps and stability does not limit them."""
MAX_STEPS = Status.MAX_STEPS.number
ENDED = [s.number for s in (Status.OK, Status.EVENT, Status.BLOW_UP)]


@dataclass(frozen=True)
class HandOver:
    """An engine of two engines, explicit and stiff, for the method auto.

    request: of the method auto. explicit: the engine in lanes, or in threads of a GPU. make(request): the engine of a request with another
    method, None where there is none. lanes(engine): whether that has lanes.
    """

    request: EnsembleRequest
    numbers: Numbers
    explicit: Any
    make: Callable[[EnsembleRequest], Any]
    lanes: Callable[[Any], bool]

    @property
    def members_at_once(self) -> int:
        """The number of members that make one call efficient."""
        return int(getattr(self.explicit, "members_at_once", 1))

    def prepare(self) -> None:
        """Compiles the explicit method, or loads it from the cache; the stiff one is compiled for the first member that needs it."""
        self.explicit.prepare()

    @cached_property
    def stiff(self) -> Any:
        """The engine of the stiff method; None if the system has none."""
        try:
            engine = self.make(self.request.changed(method=STIFF))
            _ = self.ratio if engine is not None else 0.0
        except CodegenError:
            return None
        if engine is not None:
            engine.prepare()
        return engine

    @cached_property
    def ratio(self) -> float:
        """The cost of a stiff step in explicit steps, by counting operations. Raises CodegenError if the Jacobian is too large."""
        r, compiled = self.request, self.request.right
        right = costs.right_side_cost(compiled.program, r.sizes, RunOptions.backend)
        bound = compiled.linear.bind(r.sizes, self.numbers.params, r.layout)
        mine = step_cost(METHODS[self.explicit.request.options.method], right, r.layout.size)
        if self.lanes(self.make(r.changed(method=STIFF))):
            return mine / stiff_lanes_step(right, bound)
        return mine / (WIDTH * make_costs(compiled, r.sizes, lambda: bound).stiff(ROSENBROCK[STIFF].stages))

    def integrate(
        self, params: Mapping[str, Array], initial: Mapping[str, Array], count: int, stop: Array, pool: Any, into: Chunk | None = None
    ) -> Chunk:
        """Integrates count members: params and initial {name: (count, *shape)} are their own values. into: for the results."""
        work_ = Work(self, params, initial, stop, pool)
        return work_.done(self.explicit.integrate(params, initial, count, stop, pool, into))


class Work:
    """One call of the engine, after the explicit run: members that go on with the stiff method, or explicitly again."""

    def __init__(self, engine: HandOver, params: Mapping[str, Array], initial: Mapping[str, Array], stop: Array, pool: Any) -> None:
        self.engine, self.params, self.initial, self.stop, self.pool = engine, params, initial, stop, pool

    def done(self, chunk: Chunk) -> Chunk:
        """The chunk after the explicit method, with every member at its end; those that an interrupt left are not done."""
        explicit = METHOD_NAMES.index(self.engine.explicit.request.options.method)
        chunk.method[...] = explicit
        while len(held := np.flatnonzero(chunk.status == HANDED_OVER)):
            if self.engine.stiff is None:
                self.again(chunk, held, 0)
                continue
            worth = allowance(chunk.steps[held], chunk.rejected[held])
            for each in np.unique(worth):
                self.challenge(chunk, held[worth == each], float(each))
        at = np.flatnonzero((chunk.status == MAX_STEPS) & (chunk.method == explicit))
        if len(at) and self.engine.stiff is not None:
            self.last(chunk, at, max(self.budget(self.engine.request.options.max_steps), FEW))
        return chunk

    def challenge(self, chunk: Chunk, at: Array, worth: float) -> None:
        """Integrates the members `at`, limited by stability, with the stiff method, for the work of so many explicit steps, or again."""
        budget, most = self.budget(worth), self.engine.request.options.max_steps
        over = chunk.steps[at] >= most
        if over.any():
            chunk.status[at[over]] = MAX_STEPS
            self.last(chunk, at[over], most)
            at = at[~over]
        if budget < LEAST:
            self.again(chunk, at, max(LATER * int(worth), int(LEAST / max(SHARE * self.engine.ratio, 1e-9))))
            return
        rest = (self.engine.request.t1 - chunk.t_end[at]) / np.maximum(chunk.rejected[at], 1)
        ahead, lost = self.trial(chunk, at, budget, chunk.t_end[at] + (worth - chunk.steps[at]) * rest)
        behind = np.setdiff1d(at[chunk.status[at] == HANDED_OVER], [*ahead, *lost])
        if len(ahead):
            part = self.run(self.engine.stiff, ahead, most)
            good = np.isin(part.status, [*ENDED, UNDONE])
            self.put(chunk, ahead[good], part.select(good))
            lost = np.concatenate([lost, ahead[~good]])
        self.again(chunk, lost, 0)
        self.again(chunk, behind, LATER * int(worth))

    def trial(self, chunk: Chunk, at: Array, budget: int, goals: Array) -> tuple[Array, Array]:
        """Tries the stiff method on the members `at` for a budget of steps; returns (ahead, lost), the members that it did not end.

        ahead: those that it has brought beyond their goals (k,) in time. lost: those that it cannot do. The members that it ended are put
        into the chunk.
        """
        part = self.run(self.engine.stiff, at, budget)
        good = np.isin(part.status, [*ENDED, UNDONE])
        further = (part.status == MAX_STEPS) & (part.t_end > goals)
        self.put(chunk, at[good], part.select(good))
        return at[further], at[~good & (part.status != MAX_STEPS)]

    def last(self, chunk: Chunk, at: Array, budget: int) -> None:
        """Integrates the members `at`, which took max_steps steps, with the stiff method; it counts if it ends or gets further.

        budget: steps in which it must end or come further.
        """
        most = self.engine.request.options.max_steps
        ahead, _ = self.trial(chunk, at, min(budget, most), chunk.t_end[at])
        if len(ahead):
            part = self.run(self.engine.stiff, ahead, most)
            good = np.isin(part.status, [*ENDED, UNDONE]) | (part.t_end > chunk.t_end[ahead])
            self.put(chunk, ahead[good], part.select(good))

    def budget(self, worth: float) -> int:
        """The number of steps of the stiff method that cost as much as so many explicit ones."""
        return int(min(SHARE * self.engine.ratio * worth, self.engine.request.options.max_steps))

    def again(self, chunk: Chunk, at: Array, look: int) -> None:
        """Integrates the members `at` with the explicit method from the start, the first look at stability so late; 0: none."""
        explicit = self.engine.explicit
        if len(at):
            self.put(chunk, at, self.run(explicit, at, explicit.request.options.max_steps, look))

    def run(self, engine: Any, at: Array, most: int, look: int = 0) -> Chunk:
        """Integrates the members `at`, with at most `most` steps."""
        limited = replace(engine, request=replace(engine.request.changed(max_steps=most), look=look))
        arrays_of = [{name: values[at] for name, values in arrays.items()} for arrays in (self.params, self.initial)]
        part: Chunk = limited.integrate(arrays_of[0], arrays_of[1], len(at), self.stop, self.pool)
        part.method[...] = METHOD_NAMES.index(engine.request.options.method)
        part.status[part.status == Status.INTERRUPTED.number] = UNDONE
        return part

    @staticmethod
    def put(chunk: Chunk, at: Array, part: Chunk) -> None:
        """Writes results of members; their states may be on a GPU."""
        if len(at):
            y = array_namespace(chunk.y).asarray(part.y)
            chunk.assign(at, replace(part, y=y))


def allowance(tried: Array, left: Array) -> Array:
    """Explicit steps (k,) whose work a trial of each member may cost. tried, left (k,): steps tried so far, and steps left.

    It is half of all steps, or those tried if that is more. It is rounded up to a power of two so that many members have the same.
    """
    return np.exp2(np.ceil(np.log2(np.maximum(tried, 0.5 * (tried + left.astype(np.float64))))))


@dataclass(frozen=True)
class SingleEngine:
    """Members one after another, each as a single run, for requests that lanes do not support. numbers: those that all members share."""

    request: EnsembleRequest
    numbers: Numbers

    def prepare(self) -> None:
        """Compiles the right-hand side, or loads it from the cache."""
        _ = self.request.right.functions

    def integrate(
        self, params: Mapping[str, Array], initial: Mapping[str, Array], count: int, stop: Array, pool: Any, into: Chunk | None = None
    ) -> Chunk:
        """Integrates count members: params and initial {name: (count, *shape)} are their own values. into: for the results."""
        request = self.request
        chunk = into or request.allocate(count)
        chunk.y[...] = np.nan
        # around all threads: a thread that leaves the limit lifts it for the others
        blas = request.options.method in ("auto", *ROSENBROCK) or (request.right.on.compiles and request.right.text.products)
        with few_blas_threads(request.layout.size) if blas else nullcontext():
            each(lambda i: self._one(chunk, i, member(params, i), member(initial, i)), count, stop, pool)
        return chunk

    def _numbers(self, params: Mapping[str, Any], initial: Mapping[str, Any]) -> Numbers:
        """The numbers of a member with these of its own."""
        shared, r = self.numbers, self.request
        return Numbers(shared.sizes, {**shared.params, **params}, {**shared.initial, **initial}, r.t0, r.t1)

    def _one(self, chunk: Chunk, i: int, params: Mapping[str, Any], initial: Mapping[str, Any]) -> None:
        request, numbers = self.request, self._numbers(params, initial)
        if request.channels:
            problem = noisy_problem(request.system, request.right, numbers, request.options, laws=False)
        else:
            problem = held_problem(request.right, request.held, numbers, stop_at=request.options.stop_at, laws=False)
        raw = integrate_problem(problem, method=request.options.method, save=request.times, **request.options.of_solver())
        put_run(chunk, i, request, raw)


def put_run(chunk: Chunk, i: int, request: EnsembleRequest, raw: Raw) -> None:
    """Writes the results of a single run as member i."""
    reached = int(np.searchsorted(request.times, raw.t_last, side="right"))
    chunk.y[i, :reached] = raw.y[:reached]
    chunk.status[i], chunk.t_end[i] = raw.status.number, raw.t_last
    shapes = request.compiled.lengths(*request.sizes.items()).events
    chunk.set_events(i, raw.events, {e.name: s for e, s in zip(request.system.events, shapes, strict=True) if not isinstance(e, Guard)})
    if chunk.y_end.size:
        chunk.y_end[i] = raw.y_last
    chunk.steps[i], chunk.rejected[i] = int(raw.stats["steps"]), int(raw.stats["rejected"])
    chunk.method[i] = METHOD_NAMES.index(raw.method)


def each(one: Callable[[int], None], count: int, stop: Array, pool: Any) -> None:
    """Calls one(i) for every member, in the pool's threads if there is a pool, until stop[0] is set."""

    def unless_stopped(i: int) -> None:
        if not stop[0]:
            one(i)

    for _ in (pool.map if pool is not None else map)(unless_stopped, range(count)):
        pass


@dataclass(frozen=True)
class ClockEngine(SingleEngine):
    """As SingleEngine, in the rescaled clock: each member to its blow-up or the end of the span. compiled: the System's rescaled form."""

    compiled: CompiledRHS

    def prepare(self) -> None:
        """Compiles the right-hand side, or loads it from the cache."""
        _ = self.compiled.functions

    def _one(self, chunk: Chunk, i: int, params: Mapping[str, Any], initial: Mapping[str, Any]) -> None:
        r = self.request
        problem = held_problem(self.compiled, r.held, in_clock(self._numbers(params, initial)), laws=False)
        clock = RescaledRun(problem, r.t0, r.t1)
        rescaled = clock.integrate(r.times, r.options.of_solver(), r.options.method)
        put_run(chunk, i, r, rescaled.raw)
        if rescaled.blow_up:
            chunk.blow_up[i] = rescaled.blow_up
