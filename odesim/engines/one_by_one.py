"""Integrates members one after another as single runs: for requests that lanes do not support."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import few_blas_threads
from odesim.engines.lanes.engine import member
from odesim.engines.problem import held_problem
from odesim.ensembles.request import METHOD_NAMES, Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.solve import integrate_problem
from odesim.stepper.problem import Raw
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.transforms.events import Guard


@dataclass(frozen=True)
class SingleEngine:
    """The engine of one System and request, with the numbers that all members share."""

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

    def _one(self, chunk: Chunk, i: int, params: Mapping[str, Any], initial: Mapping[str, Any]) -> None:
        request, shared = self.request, self.numbers
        numbers = Numbers(shared.sizes, {**shared.params, **params}, {**shared.initial, **initial}, request.t0, request.t1)
        problem = held_problem(request.right, request.held, numbers, stop_at=request.options.stop_at, laws=False)
        raw = integrate_problem(problem, method=request.options.method, save=request.times, **request.options.of_solver())
        put_run(chunk, i, request, raw)


def put_run(chunk: Chunk, i: int, request: EnsembleRequest, raw: Raw) -> None:
    """Writes the results of a single run as member i."""
    reached = int(np.searchsorted(request.times, raw.t_last, side="right"))
    with suppress(ValueError):
        chunk.y[i, :reached] = raw.y[:reached]
    chunk.status[i], chunk.t_end[i] = raw.status.number, raw.t_last
    shapes = request.compiled.event_shapes(request.sizes)
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
