"""Members integrated one after another by the integrator of one system: what lanes cannot do."""

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.arrays import Array
from odesim.bind import Numbers
from odesim.ensembles.lane_engine import member
from odesim.ensembles.result import Chunk, Request
from odesim.solve import ROSENBROCK, EventSpec, Linear, Problem, integrate_problem
from odesim.solve.rosenbrock.blas import few_blas_threads


@dataclass(frozen=True)
class SingleEngine:
    """One System and request, with the numbers that all members share."""

    request: Request
    numbers: Numbers

    def prepare(self) -> None:
        """Compiles, or loads what was compiled before."""
        _ = self.request.compiled.functions

    def integrate(self, params: Mapping[str, Array], initial: Mapping[str, Array], count: int, stop: Array, pool: Any) -> Chunk:
        """count members: params and initial {name: (count, *shape)} hold what is a member's own."""
        request = self.request
        chunk = Chunk.empty(count, len(request.times), request.layout.size)

        def one(i: int) -> None:
            if not stop[0]:
                self._one(chunk, i, member(params, i), member(initial, i))

        # around all threads: a thread that leaves the limit lifts it for the others
        with few_blas_threads(request.layout.size) if request.method in ROSENBROCK else nullcontext():
            for _ in (pool.map if pool is not None else map)(one, range(count)):
                pass
        return chunk

    def _one(self, chunk: Chunk, i: int, params: Mapping[str, Any], initial: Mapping[str, Any]) -> None:
        request, shared = self.request, self.numbers
        compiled = request.compiled
        bound = compiled.bind(shared.sizes, {**shared.params, **params})
        y0 = bound.layout.join({**shared.initial, **initial}, request.dtype)
        shapes = compiled.event_shapes(shared.sizes)
        events = tuple(EventSpec(e.name, s, e.direction, e.terminal) for e, s in zip(request.system.events, shapes, strict=True))

        def linear() -> Linear:
            return compiled.linear.bind(shared.sizes, {**shared.params, **params}, bound.layout)

        problem = Problem(bound, y0, request.t0, request.t1, events, request.system.name, linear)
        options: dict[str, Any] = {"method": request.method, "step": request.step, "max_steps": request.max_steps}
        raw = integrate_problem(problem, save=request.times, rtol=request.rtol, atol=request.atol, **options)
        reached = int(np.searchsorted(request.times, raw.t_last, side="right"))
        with suppress(ValueError):
            chunk.y[i, :reached] = raw.y[:reached]
        chunk.status[i], chunk.t_end[i] = Request.number(raw.status), raw.t_last
        chunk.steps[i], chunk.rejected[i] = int(raw.stats["steps"]), int(raw.stats["rejected"])
