"""The solution of a System at the iterations of a training: of its flow, or of gradient descent with its right-hand side."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from odesim.api.integrate import integrate
from odesim.base.arrays import Array
from odesim.base.options import RunOptions
from odesim.comparison.clock import TrainingClock
from odesim.comparison.pair import Pair, TrainingFacts
from odesim.comparison.side import Side, merge_sides, side_of_solution
from odesim.engines.problem import compiled_for, compiled_parts, right_side
from odesim.inputs.bind import bind
from odesim.reference.protocols import Experiment
from odesim.symbolic.system import System, descent

RTOL, ATOL = 1e-9, 1e-12  # of the theory: nothing of the difference is its own error


def theory_of(
    system: System, experiment: Experiment, pair: Pair | None, trained: Side, clock: TrainingClock, map: str, facts: TrainingFacts
) -> Side:
    """The solution of a System at the recorded iterations; for each seed if every seed has its own parameters or start."""
    params, each = experiment.theory[system.name], pair is not None and pair.per_seed
    links = pair.starts(facts) if pair else {}
    start = {name: link.make({s: trained.values(s)[:, :1] for s in link.sources}, facts)[:, 0] for name, link in links.items()}
    rows = [experiment.seeds.index(seed) for seed in trained.seeds] if each or start else [0]
    sides = []
    for k, row in enumerate(rows):
        own = {name: np.asarray(value)[row] if each else value for name, value in params.items()}
        initial = {name: values[k] for name, values in start.items()}
        if map == "flow":
            times = clock.times(trained.t)
            run = integrate(system, params=own, initial=initial, span=(0.0, float(times[-1])), save=times, rtol=RTOL, atol=ATOL)
            sides.append(side_of_solution(run))
        else:
            sides.append(side_of_descent(system, own, initial, trained.t, clock.step, facts.momentum))
    return merge_sides(sides)


def side_of_descent(
    system: System, params: Mapping[str, Any], initial: Mapping[str, Array], iterations: Array, step: float, momentum: float
) -> Side:
    """States and observables of a System under gradient descent with its right-hand side, at these iterations (T,)."""
    run = integrate(
        descent(system, step=step, momentum=momentum), params=params, initial=initial, steps=int(iterations[-1]), save=iterations
    )
    reached = run.t[np.isin(run.t, iterations)]
    states = {name: run.y[name][: len(reached)] for name in system.states}
    numbers = bind(system, params=params, initial=initial)
    _, observer, dims = compiled_parts(system, RunOptions.backend, RunOptions.dtype, False)
    compiled = compiled_for(system, numbers.sizes, RunOptions.backend, RunOptions.dtype, False)
    right = right_side(compiled, numbers)

    def slopes(t: float, now: Mapping[str, Array]) -> Mapping[str, Array]:
        out = np.empty(right.layout.size)
        right(t, right.layout.join(now), out)
        return right.layout.split(out)

    with np.errstate(all="ignore"):
        seen = observer(step * reached, states, numbers.sizes, numbers.params, slopes)
    values = {**states, **seen}
    notes = () if len(reached) == len(iterations) else (f"the discrete map: {run.message}",)

    def maker(name: str) -> Callable[[], Array]:
        return lambda: np.asarray(values[name], float)[None]

    return Side(system.name, reached, "iterations", {name: maker(name) for name in values}, dims, notes=notes)
