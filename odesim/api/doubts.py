"""Checks that a stored integration is the theory of a stored training: its settings and its parameters."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from odesim.api.experiment import make_experiment
from odesim.base.arrays import Array
from odesim.comparison.pair import Pair, TrainingFacts
from odesim.comparison.pairs import does_not_describe, misfits
from odesim.reference.tasks import load_task
from odesim.reference.training.trajectory import Trajectory
from odesim.solve.solution import Solution


def doubts_of(solution: Solution, trajectory: Trajectory, pair: Pair, facts: TrainingFacts) -> tuple[str, ...]:
    """Sentences on settings of the training that the System does not describe, and on parameters that differ from the training's."""
    wrong = misfits(pair, facts)
    if wrong:
        return (does_not_describe(solution.model, facts.task, wrong),)
    from odesim.store.write import to_plain

    made = make_experiment(load_task(facts.task), known_settings(trajectory), None, trajectory.seeds, None, {}, "float64")
    if to_plain(made.config) != to_plain(facts.config):  # of a text that is not stored
        return ()
    other = []
    for name, values in made.theory[solution.model].items():
        right, own = np.asarray(values)[0] if pair.per_seed else np.asarray(values), np.asarray(solution.attrs["params"][name])
        if pair.per_seed and len(trajectory.seeds) > 1:
            continue
        if right.shape != own.shape or not np.allclose(own, right, rtol=1e-6, atol=1e-12):
            other.append(f"{name} is {own:g}, not {right:g}" if right.shape == own.shape == () else name)
    return (f"the integration has other parameters than the training: {', '.join(other)}",) if other else ()


def known_settings(trajectory: Trajectory) -> dict[str, Any]:
    """The stored settings that the task has today; the others follow from these."""
    known = {setting.name for setting in load_task(trajectory.task).settings}
    return {name: value for name, value in trajectory.config.items() if name in known}


def exact_of(trajectory: Trajectory, place: Any) -> Mapping[str, Array]:
    """The exact population arrays of a task: those stored with the training, or computed again from its settings."""
    if isinstance(place, str | PathLike):
        from odesim.store.trajectory import read_exact

        return read_exact(Path(place))
    return make_experiment(load_task(trajectory.task), known_settings(trajectory), None, trajectory.seeds, None, {}, "float64").exact
