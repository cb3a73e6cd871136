"""Integrates members one after another in the rescaled clock, each to its blow-up or the end of the span."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.codegen.compiled import CompiledRHS
from odesim.engines.lanes.engine import member
from odesim.ensembles.request import Chunk, EnsembleRequest
from odesim.inputs.bind import Numbers
from odesim.run.clocked import RescaledRun
from odesim.run.engines import each, put_run
from odesim.run.problem import held_problem
from odesim.transforms.clock import BLOW_UP, BLOW_UP_MARGIN, CLOCK, END, LONGEST, START, STOP


@dataclass(frozen=True)
class ClockEngine:
    """The engine of one System and request, with the numbers that all members share. compiled: the System's rescaled form."""

    request: EnsembleRequest
    numbers: Numbers
    compiled: CompiledRHS

    def prepare(self) -> None:
        """Compiles the right-hand side, or loads it from the cache."""
        _ = self.compiled.functions

    def integrate(
        self, params: Mapping[str, Array], initial: Mapping[str, Array], count: int, stop: Array, pool: Any, into: Chunk | None = None
    ) -> Chunk:
        """Integrates count members: params and initial {name: (count, *shape)} are their own values. into: for the results."""
        chunk = into or self.request.allocate(count)
        chunk.y[...] = np.nan
        each(lambda i: self._one(chunk, i, member(params, i), member(initial, i)), count, stop, pool)
        return chunk

    def _one(self, chunk: Chunk, i: int, params: Mapping[str, Any], initial: Mapping[str, Any]) -> None:
        r, shared = self.request, self.numbers
        given = {**shared.params, **params, START: r.t0, STOP: r.t1}
        start = {**shared.initial, **initial, CLOCK: np.array(r.t0)}
        numbers = Numbers(shared.sizes, given, start, 0.0, LONGEST)
        problem = held_problem(self.compiled, r.held, numbers, laws=False)
        clock = RescaledRun(problem, r.t0, r.t1, BLOW_UP, END, BLOW_UP_MARGIN)
        told = clock.integrate(r.times, r.options.of_solver(), r.options.method)
        put_run(chunk, i, r, told.raw)
        if told.blow_up:
            chunk.blow_up[i] = told.blow_up
