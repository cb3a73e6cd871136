"""One method for all members of an ensemble, by a pilot of a few of them: by counts, never by a clock.

Members spread evenly over the whole design are integrated by the explicit method that the tolerance calls for, with 128 steps at
most, then 1024, then more. Where some of them need more than 1024 and a tolerance 100 times as loose makes their steps hardly
longer, stability holds them: then rodas5p does the same members, and the method whose work, extended to the end of the span, is
less is taken. The choice is the same for every shard, chunk and number of threads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odesim.arrays import Array
from odesim.codegen import work
from odesim.ensembles.lane_alone import strict_obstacle
from odesim.ensembles.lane_engine import WIDTH, lane_plan
from odesim.ensembles.lane_rows import Plan
from odesim.ensembles.members import Members
from odesim.ensembles.parts import part_obstacle
from odesim.ensembles.result import Chunk, Request
from odesim.errors import CodegenError
from odesim.solve.auto import LEAST, PILOT, SHARE, STIFF, explicit_name, rounded, step_cost
from odesim.solve.problem import Status
from odesim.solve.rosenbrock import ROSENBROCK
from odesim.solve.tableau import METHODS

MEMBERS = 8
RUNGS = (PILOT, 1024, 8192, 65536)
"""Steps allowed to the members of the pilot, one after another."""
LOOSER = 100.0
HELD = 1.4
"""Steps at a tolerance LOOSER times as large are 2.5 times (tsit5) or 1.8 times (dop853) as long where accuracy sets them."""
LANE = 4.0
"""A step of a Rosenbrock method in lanes, in steps of tsit5, beside the elimination of a dense Jacobian."""

EngineOf = Callable[[Request], Any]


def choose(request: Request, members: Members, engine_of: EngineOf) -> Request:
    """The request with the method that the pilot chose, and why. Its own method is not looked at."""
    if request.step is not None:
        return replace(request, method="tsit5", auto="tsit5: a fixed step was asked for")
    between = request.saves or bool(request.kept.events)
    pilot = Pilot(replace(request, method=explicit_name(request.rtol, None, between=between)), members, engine_of)
    method, why = pilot.choice()
    return replace(request, method=method, auto=f"{method}: {why}")


class Pilot:
    """A few members of an ensemble and what they take."""

    def __init__(self, request: Request, members: Members, engine_of: EngineOf) -> None:
        self.request, self.members, self.engine_of = request, members, engine_of
        count = members.source.count
        self.places = np.unique(np.linspace(0, count - 1, min(MEMBERS, count)).astype(np.int64))
        parts = [members.chunk(int(i), int(i) + 1) for i in self.places]
        self.params, self.initial = (stacked([part[k] for part in parts]) for k in range(2))

    def choice(self) -> tuple[str, str]:
        """(method, why)."""
        name, count = self.request.method, len(self.places)
        who = f"{count} members of {self.members.source.count}" if count > 1 else "the member"
        why, before = "", None
        rungs = [n for n in RUNGS if n < self.request.max_steps]
        for most in [*rungs, *([self.request.max_steps] if len(rungs) < len(RUNGS) else [])]:
            chunk = self.run(name, most)
            if before is not None:
                verdict = self.against(chunk, before, most)
                if verdict.won:
                    return STIFF, f"{who} {verdict.why}"
                why = verdict.why
                if verdict.final:
                    break
            before = chunk
            if not stopped(chunk):
                break
        steps = chunk.steps + chunk.rejected
        least, largest = rounded(steps.min()), rounded(steps.max())
        took = f"more than {rounded(most)} steps" if stopped(chunk) else f"{least if least == largest else f'{least} to {largest}'} steps"
        return name, f"{who} took {took}{why}"

    def run(self, method: str, most: int, looser: float = 1.0) -> Chunk:
        """The members by this method, with this many steps at most."""
        r = self.request
        engine = self.engine_of(replace(r, method=method, max_steps=most, rtol=r.rtol * looser, atol=r.atol * looser))
        engine.prepare()
        made: Chunk = engine.integrate(self.params, self.initial, len(self.places), np.zeros(1, np.int64), None)
        return made

    def against(self, chunk: Chunk, before: Chunk, most: int) -> "Verdict":
        """The stiff method beside the explicit one, which has come as far as chunk says; before: with the steps of the rung before."""
        name, count, total = self.request.method, len(self.places), self.projected(chunk, before)
        if total > HELD * self.projected(self.run(name, most, LOOSER), before):
            return Verdict(final=True)
        held = "; stability limits them"
        stiff = replace(self.request, method=STIFF)
        if self.request.strict and (what := strict_obstacle(stiff, self.members.shared, self.members.source.names)):
            return Verdict(f"{held}, and {STIFF} has no strict mode for {what}", final=True)
        if self.request.backend == "cuda" and not self.lanes(STIFF):
            return Verdict(f"{held}, and {STIFF} does not fit into a thread there", final=True)
        try:
            mine, its = self.step(name), self.step(STIFF)
        except CodegenError:
            return Verdict(f"{held}, and the Jacobian is too large for {STIFF}", final=True)
        budget = int(SHARE * total / count * mine / its)
        if budget < LEAST:
            return Verdict()
        rival = self.run(STIFF, min(budget, self.request.max_steps))
        need = float((rival.steps + rival.rejected).sum())
        if stopped(rival) and not (np.all(ahead(rival, chunk)) and need * its < float((chunk.steps + chunk.rejected).sum()) * mine):
            return Verdict(f"{held}, but {STIFF} is no faster")
        if not stopped(rival) and need * its > total * mine:
            return Verdict(f"{held}, but {STIFF} is no faster", final=True)
        more = "more than " if stopped(rival) else ""
        why = f"would take about {rounded(total / count)} steps of {name} each (stability, not accuracy, limits them), {more}"
        return Verdict(f"{why}{rounded(need / count)} of {STIFF}", won=True, final=True)

    def projected(self, chunk: Chunk, before: Chunk) -> float:
        """Steps that all members take to the end of the span, at the rate since the rung before."""
        steps, ran = chunk.steps + chunk.rejected, chunk.status == Request.number(Status.MAX_STEPS)
        since = np.maximum(steps - before.steps - before.rejected, 1)
        rate = np.maximum(chunk.t_end - before.t_end, 1e-300) / since
        left = np.where(ran, (self.request.t1 - chunk.t_end) / rate, 0.0)
        return float(np.sum(steps + np.minimum(left, 1e12)))

    def lanes(self, method: str) -> bool:
        """Whether members run in lanes, or in threads of a GPU, by this method."""
        return not part_obstacle(self.request) and isinstance(
            lane_plan(replace(self.request, method=method), self.members.shared, self.members.source.names), Plan
        )

    def step(self, method: str) -> float:
        """One step of a member in nanoseconds, by counting. Raises CodegenError where the Jacobian is too large."""
        r, compiled = self.request, self.request.right
        n, right = r.layout.size, work.right_side(compiled.program, r.sizes, "numba")
        lanes = self.lanes(method)
        if method != STIFF:
            return step_cost(METHODS[method], right, n) / (WIDTH if lanes else 1)
        bound = compiled.linear.bind(r.sizes, self.members.shared.params, r.layout)
        if not lanes:
            return work.stiff_step(bound, ROSENBROCK[STIFF].stages, right)
        return stiff_lanes_step(right, n, dense=bound.chain.plan.along is None) / WIDTH


@dataclass(frozen=True)
class Verdict:
    """What became of a comparison. final: more steps would change nothing."""

    why: str = ""
    won: bool = False
    final: bool = False


def ahead(rival: Chunk, chunk: Chunk) -> Array:
    """(N,): whether the rival's members are done, or later in time."""
    return (rival.status != Request.number(Status.MAX_STEPS)) | (rival.t_end > chunk.t_end)


def stopped(chunk: Chunk) -> bool:
    """Whether a member needs more steps."""
    return bool((chunk.status == Request.number(Status.MAX_STEPS)).any())


def stacked(parts: list[Mapping[str, Array]]) -> dict[str, Array]:
    """{name: (N, *shape)} of chunks of one member each."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def stiff_lanes_step(right: float, n: int, *, dense: bool) -> float:
    """One step of a Rosenbrock method in all lanes, in nanoseconds by counting. dense: whether the Jacobian of n states is."""
    return LANE * step_cost(METHODS["tsit5"], right, n) + (work.FLOP * (2 / 3 * n**3 + 16 * n**2) if dense else 0.0)
