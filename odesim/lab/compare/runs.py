"""`odesim.compare`: a training or data against a theory, or two runs against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odesim.api.integrate import integrate
from odesim.base.arrays import Array
from odesim.base.device import array_module, check_memory
from odesim.base.errors import ParamError, counted, no_such
from odesim.base.options import RunOptions
from odesim.base.signals import stop_signals
from odesim.inputs.arguments import check_arguments
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.lab.compare.comparison import Comparison, compare_sides
from odesim.lab.compare.data import ATOL, RTOL, DataRequest, compare_data
from odesim.lab.compare.ensembles import compare_ensembles, is_ensemble
from odesim.lab.compare.pairs import check_described, check_optimizer_fits, check_own, does_not_describe, find_pair, misfits
from odesim.lab.compare.recipes import find_recipe
from odesim.lab.compare.sides import ITERATIONS, KINDS, LOGARITHM, Side, TrainingClock, merge_sides, side_of_solution, side_of_training
from odesim.lab.experiment import as_task, check_seeds, make_experiment
from odesim.lab.tasks import load_task
from odesim.lab.training.loop import TrainingOptions, Trajectory
from odesim.lab.training.loop import train as train_experiment
from odesim.lab.training.record import LOSS
from odesim.lab.training.task import Experiment, Pair, Task, TrainingFacts
from odesim.run.problem import dimensions, named_slopes, parts_of, right_side
from odesim.run.solution import Solution
from odesim.symbolic.system import System, descent
from odesim.targets.observe import Observer

# The solution of a System at the iterations of a training: of its flow, or of gradient descent with its right-hand side.


def theory_of(
    system: System, experiment: Experiment, pair: Pair | None, trained: Side, clock: TrainingClock, map: str, facts: TrainingFacts
) -> Side:
    """The solution of a System at the recorded iterations; for each seed if every seed has its own parameters or start, or its path."""
    params, each = experiment.theory.get(system.name, {}), pair is not None and pair.per_seed
    links = pair.starts(facts) if pair else {}
    start = {name: link.make({s: trained.values(s)[:, :1] for s in link.sources}, facts)[:, 0] for name, link in links.items()}
    rows = [experiment.seeds.index(seed) for seed in trained.seeds] if each or start or system.noise else [0]
    sides = []
    for k, row in enumerate(rows):
        seed_params = {name: np.asarray(value)[row] if each else value for name, value in params.items()}
        initial = {name: values[k] for name, values in start.items()}
        if map == "flow":
            times = clock.times(trained.t)
            arguments: dict[str, Any] = {"span": (0.0, float(times[-1])), "seed": experiment.seeds[row], "rtol": RTOL, "atol": ATOL}
            arguments = {"steps": int(times[-1])} if system.discrete else arguments
            sides.append(side_of_solution(integrate(system, params=seed_params, initial=initial, save=times, **arguments)))
        else:
            sides.append(side_of_descent(system, seed_params, initial, trained.t, clock.step, facts.momentum))
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
    parts = parts_of(system, RunOptions.backend, RunOptions.dtype, False)
    slopes = named_slopes(right_side(parts.compiled_for(numbers.sizes), numbers))
    with np.errstate(all="ignore"):
        seen = parts.derived[Observer](step * reached, states, numbers.sizes, numbers.params, slopes)
    values = {name: np.asarray(value) for name, value in {**states, **seen}.items()}
    notes = () if len(reached) == len(iterations) else (f"the discrete map: {run.message}",)

    loaders = {name: partial(np.asarray, value[None], float) for name, value in values.items()}
    return Side(system.name, reached, "iterations", loaders, parts.derived[dimensions], notes=notes)


# Checks that a stored integration is the theory of a stored training: its settings and its parameters.


def doubts_of(solution: Solution, trajectory: Trajectory, pair: Pair, facts: TrainingFacts) -> tuple[str, ...]:
    """Sentences on settings of the training that the System does not describe, and on parameters that differ from the training's."""
    wrong = misfits(pair, facts)
    if wrong:
        return (does_not_describe(solution.model, facts.task, wrong),)
    from odesim.store.plain import to_plain

    experiment = experiment_again(trajectory)
    if to_plain(experiment.config) != to_plain(facts.config):  # of a text that is not stored
        return ()
    other = []
    for name, values in experiment.theory[solution.model].items():
        right, used = np.asarray(values)[0] if pair.per_seed else np.asarray(values), np.asarray(solution.attrs["params"][name])
        if pair.per_seed and len(trajectory.seeds) > 1:
            continue
        if right.shape != used.shape or not np.allclose(used, right, rtol=1e-6, atol=1e-12):
            other.append(f"{name} is {used:g}, not {right:g}" if right.shape == used.shape == () else name)
    return (f"the integration has other parameters than the training: {', '.join(other)}",) if other else ()


def experiment_again(trajectory: Trajectory) -> Experiment:
    """The experiment of a training, from the stored settings that the task has today; the others follow from these."""
    task = load_task(trajectory.task)
    settings = {s.name: trajectory.config[s.name] for s in task.settings if s.name in trajectory.config}
    return make_experiment(task, settings, trajectory.seeds)


MAPS = ("flow", "discrete")
MAPPED = "a column of data is named as NAME=COLUMN, as in --map loss=train/loss"
COUNTED = ("SGD steps", ITERATIONS)  # units of which an iteration of plain descent takes one
Run = str | PathLike[str] | Solution | Trajectory


@check_arguments
def compare(
    model: Run | System | None = None,
    other: Run | None = None,
    *,
    recipe: str | None = None,
    task: str | Task | None = None,
    settings: Mapping[str, Any] | None = None,
    steps: int | None = None,
    seeds: int | Iterable[int] | None = None,
    map: str | None = None,
    clock: str = "effective",
    observables: Sequence[str] = (),
    align: Sequence[str] = (),
    save: int | None = None,
    backend: str | None = None,
    progress: Callable[[int, int, Array], None] | None = None,
    data: Any = None,
    columns: Mapping[str, str] | None = None,
    time: str = "",
    free: Iterable[str] | Mapping[str, Any] | None = None,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    lr: float | None = None,
    momentum: float = 0.0,
) -> Comparison:
    """Curves of a model beside those of a training or of data, or of two runs, with numbers for how far they agree.

    Parameters
    ----------
    model : str, path, System or run
        A System with task or data; or a run (Solution, Trajectory, Dataset or folder) with other.
    other : run
        Of two ensembles the members with the same numbers are compared, and stand for seeds.
    recipe : str
        A stored comparison, which has all of these; its `numbers` stand beside recorded ones.
    task : str, path or Task
        The System's parameters follow from its settings.
    settings, steps, seeds, save, backend, progress
        Of the training, as of `train`.
    map : "flow" or "discrete"
        The ODE at the clock's times (default), or gradient descent with the training's momentum on the System's own right-hand side.
    observables : list of str
        Those to compare; default: all in common that are recorded anyway.
    data : as of `fit`
        Curves of a training of your own; each of several is a seed.

    Returns
    -------
    Comparison
        print() shows it, with `doubts`: why a stored integration may not be theory of a stored training.

    Other Parameters
    ----------------
    clock : "effective" or "limit"
        With the lag of momentum at the start, or without it.
    align : list of str
        Axes of the training to be put in the order that fits best, seed by seed.
    columns, time, free, params, initial, sizes, span
        With data, as of `fit`: what is free is fitted first, and stands in `fit` of the Comparison.
    lr, momentum : float
        The column of times counts steps of descent at this rate; without lr it is the System's time.

    Raises
    ------
    OdesimError
        One sentence, if the request is wrong, or the System does not describe the task under these settings.

    Notes
    -----
    Seeds and columns of data are compared at the times of the one with fewest, the others interpolated linearly.

    Examples
    --------
    >>> comparison = odesim.compare("scan_snap.full", task="scan_snap", steps=20, map="discrete")
    >>> bool(comparison.passed({"loss": {"correlation": 0.01}}))
    True
    """
    names = {"observables": (observables,) if isinstance(observables, str) else tuple(dict.fromkeys(observables))}
    names["align"] = (align,) if isinstance(align, str) else tuple(dict.fromkeys(align))
    if clock not in KINDS:
        raise ParamError(no_such("clock", clock, KINDS))
    of_data = {"columns": columns, "free": free, "params": params, "initial": initial, "sizes": sizes, "span": span, "lr": lr}
    of_data |= {"time": time or None, "momentum": momentum or None}
    if data is None and (extra := [name for name, value in of_data.items() if value is not None]):
        raise ParamError(f"{extra[0]} belongs to a comparison with data, and no data are given (--data FILE)")
    if recipe is not None:
        if not isinstance(recipe, str):
            raise ParamError(f"recipe must be a name, not a {type(recipe).__name__}")
        stored = find_recipe(recipe)
        fixed: dict[str, Any] = {"model": model, "other": other, "task": task, "settings": settings or None}
        fixed |= {"steps": steps, "seeds": seeds, "map": map, "save": save, "data": data}
        fixed |= {name: value or None for name, value in names.items()}
        extra = [name for name, value in fixed.items() if value is not None] + ["clock"] * (clock != "effective")
        if extra:
            raise ParamError(f"{extra[0]}: the recipe {recipe!r} fixes it already")
        comparison = compare(stored.model, task=stored.task, **stored.options, backend=backend, progress=progress)
        return replace(comparison, numbers=stored.numbers(comparison))
    if model is None:
        raise ParamError("compare needs a model and its task or data, two runs, or a recipe")
    if task is None:
        of_training = {"settings": settings or None, "steps": steps, "seeds": seeds, "map": map, "save": save, "backend": backend}
        if extra := [name for name, value in of_training.items() if value is not None]:
            of_data_too = MAPPED if extra[0] == "map" else "data have been trained"
            instead = "two stored runs are compared as they are" if data is None else of_data_too
            raise ParamError(f"{extra[0]} belongs to a training, and no task is given; {instead}")
        if data is not None:
            if other is not None or isinstance(model, Solution | Trajectory):
                raise ParamError("data are compared with one model, not with a run: odesim plots and compares two stored runs without data")
            words: dict[str, Any] = {name: value for name, value in of_data.items() if value is not None}
            return compare_data(load_model(model), data, DataRequest(**words, kind=clock), **names)
        if other is None:
            raise ParamError("a comparison needs a model and a task (--task) or data (--data), or two stored runs")
        with np.errstate(over="ignore", invalid="ignore"):
            return compare_runs(model, other, clock, **names)
    if data is not None:
        raise ParamError("give a task, which is trained, or data, which are there, not both")
    if other is not None:
        raise ParamError("give a task for one model, or two runs without a task")
    if isinstance(model, Solution | Trajectory):
        raise ParamError("with a task, the first argument is a model by name, System or file, not a run")
    if map is not None and map not in MAPS:
        raise ParamError(no_such("map", map, MAPS))
    loaded = as_task(task)
    options = TrainingOptions(steps, save, backend=TrainingOptions.backend if backend is None else backend)
    array_module(options.backend)  # before anything is made
    experiment = make_experiment(loaded, settings or {}, check_seeds((0,) if seeds is None else seeds))
    return compare_training(load_model(model), experiment, options, map or "flow", clock, progress, **names)


ROOM, FEWEST, COPIES = 2**28, 20, 8
"""Bytes that a training records where nobody says how often, and rows that it has anyway. Reversals of 641,600 numbers a row had 8.4 copies
of each at the peak, in the theory, its observables and both curves: 757 rows took more than 24 GB."""


def rows_kept(rows: int, entries: int, width: int, *, save: int | None) -> int:
    """How many of these rows: as many as ROOM has where nobody asked for a number. Raises ParamError if they do not fit in memory."""
    rows = min(rows, max(FEWEST, ROOM // (entries * width))) if save is None else rows
    if (need := COPIES * rows * entries * width) > ROOM:
        check_memory(need, f"a comparison at {counted(rows, 'iteration')} of {counted(entries, 'number')}")
    return rows


def compare_training(
    system: System,
    experiment: Experiment,
    options: TrainingOptions,
    map: str,
    kind: str,
    progress: Callable[[int, int, Array], None] | None,
    **names: tuple[str, ...],
) -> Comparison:
    """Compares a training with the System that describes it, at the parameters that the task gives. names: observables, align."""
    facts = TrainingFacts(experiment.task, experiment.config, experiment.exact, asdict(experiment.optimizer), experiment.model.name)
    pair = experiment.pair_for(system) if experiment.pair_for else find_pair(system.name, experiment.task)
    if experiment.pair_for and pair:
        check_own(system.name, facts, experiment.theory, pair)
    else:
        check_described(system.name, facts, experiment.theory)
    known_axes = [str(index) for index in system.axes]
    for axis in names["align"]:  # before anything is trained; axes of functions are axis_0, ...
        if axis not in known_axes and not axis.startswith("axis_"):
            raise ParamError(no_such("axis", axis, known_axes, system.name))
    if map == "discrete" and pair and not pair.linear:
        raise ParamError(f"{system.name} has no discrete map: descent on its states is another than on what is trained; use flow")
    timed = training_clock(system.time, pair, facts, kind if map == "flow" else None)
    options = replace(options, observe=to_observe(experiment, system, pair, facts, names["observables"]))
    with stop_signals() as stop:
        training = train_experiment(experiment, options, progress=progress, stop=stop, fits=partial(rows_kept, save=options.save))
    trained = side_of_training(training)
    theory = theory_of(system, experiment, pair, trained, timed, map, facts)
    discrete = "the discrete map" + " with momentum" * bool(facts.momentum)
    phrases = {
        "theory": system.name,
        "training": f"{trained.label}, {counted(training.iteration, 'iteration')}",
        "map": "its own steps" if system.discrete else "the flow" if map == "flow" else discrete,
        "clock": f"{timed}, i the iteration" if map == "flow" else "",
        "unit": "iterations" if map == "discrete" else system.time,
    }
    notes = (*(unit_notes(system.name, system.time) if map == "flow" and not experiment.pair_for else ()), *trained.notes)
    trained = replace(trained, t=trained.t if map == "discrete" else timed.times(trained.t), unit=phrases["unit"], notes=notes)
    return compare_sides(theory, trained, phrases=phrases, pair=pair, facts=facts, **names)


def to_observe(experiment: Experiment, system: System, pair: Pair | None, facts: TrainingFacts, wanted: Sequence[str]) -> tuple[str, ...]:
    """Observables that the training must record to be compared, even costly ones. Raises ParamError for one that cannot be compared."""
    links = {link.name: link.sources for link in pair.links} if pair else {}
    if not pair:
        known = {*map(str, system.states), *system.observables}
        links = {name: (name,) for name in [LOSS, *(o.name for o in experiment.model.observables)] if name in known}
    for name in wanted:
        if name not in links:
            raise ParamError(no_such("observable", name, links, f"both {system.name} and {experiment.task}"))
    needed = [source for name in wanted for source in links[name]]
    needed += [source for link in (pair.starts(facts).values() if pair else ()) for source in link.sources]
    return tuple(sorted(set(needed)))


def compare_runs(
    first: Run | System, second: Run | System, kind: str, *, observables: tuple[str, ...], align: tuple[str, ...]
) -> Comparison:
    """Compares two runs: of one kind as they are; of an integration and a training, the integration is the theory, on its own clock."""
    ensembles = [is_ensemble(run) for run in (first, second)]
    if all(ensembles):
        return compare_ensembles(first, second, {"observables": observables, "align": align})
    if any(ensembles):
        raise ParamError("one run is an ensemble and the other is not: compare two ensembles, or two single runs")
    runs = [(read_run(run), run) for run in (first, second)]
    phrases = {"map": "", "clock": "", "unit": ""}
    options: dict[str, Any] = {"observables": observables, "align": align}
    kinds = [isinstance(run, Trajectory) for run, _ in runs]
    if kinds[0] == kinds[1]:
        sides = [side_of_training(run) if isinstance(run, Trajectory) else side_of_solution(run) for run, _ in runs]
        phrases |= {"theory": named(*runs[0], sides[0]), "training": named(*runs[1], sides[1])}
        phrases["unit"] = sides[0].unit if sides[0].unit == sides[1].unit else ""
        return replace(compare_sides(*sides, phrases=phrases, **options), sides=("the first", "the second"))
    from odesim.lab.store import read_exact

    (trajectory, where), (solution, place) = sorted(runs, key=lambda run: isinstance(run[0], Solution))
    assert isinstance(trajectory, Trajectory) and isinstance(solution, Solution)
    exact = read_exact(Path(where)) if isinstance(where, str | PathLike) else experiment_again(trajectory).exact
    facts = TrainingFacts(trajectory.task, trajectory.config, exact, trajectory.attrs["optimizer"], trajectory.model)
    check_optimizer_fits(solution.model, facts)
    pair = find_pair(solution.model, trajectory.task)
    theory, trained = side_of_solution(solution), side_of_training(trajectory)
    if not pair and theory.unit not in ("", *COUNTED):
        raise ParamError(
            f"the time of {solution.model} is in {theory.unit!r}, and nothing says how much of it an iteration of {trajectory.task} takes"
        )
    clock = training_clock(theory.unit, pair, facts, kind)
    trained = replace(trained, t=clock.times(trained.t), unit=theory.unit, notes=(*unit_notes(solution.model, theory.unit), *trained.notes))
    phrases |= {"theory": named(solution, place, theory), "training": named(trajectory, where, trained)}
    phrases |= {"map": "the flow", "clock": f"{clock}, i the iteration", "unit": theory.unit}
    doubts = doubts_of(solution, trajectory, pair, facts) if pair else ()
    return replace(compare_sides(theory, trained, phrases=phrases, pair=pair, facts=facts, **options), doubts=doubts)


def unit_notes(model: str, unit: str) -> tuple[str, ...]:
    """A sentence on the clock of a training beside a System whose time has no unit; empty where it has one."""
    return () if unit else (f"the time of {model} has no unit: an iteration of plain descent is taken for 1 of it",)


def training_clock(unit: str, pair: Pair | None, facts: TrainingFacts, kind: str | None) -> TrainingClock:
    """The times of a System, with this unit, at the iterations of a training. kind: None for steps of plain descent, whatever the momentum.

    A System whose time is in iterations has them as they are; of one that has the optimizer in itself the clock has no momentum.
    """
    if unit == ITERATIONS:
        return TrainingClock()
    step = pair.step(facts) if pair else 1.0
    plain = kind is None or (pair and pair.optimizers)
    return TrainingClock(step) if plain else TrainingClock(step, facts.momentum, str(kind), unit.startswith(LOGARITHM))


def named(run: Solution | Trajectory, place: Any, side: Side) -> str:
    """The kind and name of a run, and the folder where it is stored."""
    where = f" ({place})" if isinstance(place, str | PathLike) else ""
    iterations = f", {counted(run.iteration, 'iteration')}" if isinstance(run, Trajectory) else ""
    return f"{side.label}{iterations}{where}"


def read_run(run: Run | System) -> Solution | Trajectory:
    """The run stored in a folder, or the run given. Raises StoreError if there is none, ParamError for anything else."""
    if isinstance(run, Solution | Trajectory):
        return run
    if not isinstance(run, str | PathLike):
        raise ParamError(f"a run is a Solution, a Trajectory or a folder, not {type(run).__name__}")
    from odesim.lab.store import read_trajectory
    from odesim.store.read import read_solution
    from odesim.store.schema import run_kind

    path = Path(run)
    return read_trajectory(path) if run_kind(path) == "training" else read_solution(path)
