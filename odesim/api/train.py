"""`odesim.train`: a task by name, settings in, a Trajectory out; stored while it runs, and gone on with after a stop."""

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim import __version__
from odesim.base.arrays import Array, check_dtype
from odesim.base.gpu import array_module, device_name
from odesim.base.memory import check_fits, check_room
from odesim.base.signals import stopping
from odesim.base.wording import many
from odesim.errors import DeviceError, ParamError, StoreError, no_such, shown
from odesim.inputs.arguments import checked
from odesim.reference.protocols import Experiment, Optimizer, Task
from odesim.reference.settings import check_settings
from odesim.reference.tasks import load_task
from odesim.reference.training.checkpoint import read_checkpoint
from odesim.reference.training.optimizers import check_optimizer, used
from odesim.reference.training.train import check_count, check_save
from odesim.reference.training.train import train as train_experiment
from odesim.reference.training.trajectory import INTERRUPTED, Trajectory

if TYPE_CHECKING:
    from odesim.store.lock import RunLock
    from odesim.store.trajectory import RunSink

MOST_SEEDS = 100_000
LONG = 1e9  # seconds between two checkpoints
MOMENTUM = 0.9  # of --optimizer momentum, where the task has none
# what makes a training the one that is stored, beside the settings
IDENTITY = ("task", "model", "seeds", "dtype", "backend", "optimizer", "save", "observe")


@checked
def train(
    task: str | Task,
    *,
    settings: Mapping[str, Any] | None = None,
    model: str | None = None,
    steps: int | None = None,
    seeds: int | Iterable[int] = (0,),
    optimizer: str | None = None,
    rates: Mapping[str, float] | None = None,
    save: int | None = None,
    observe: Sequence[str] = (),
    dtype: str = "float64",
    backend: str = "numpy",
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint_every: float = 5.0,
    threads: int = 1,
    progress: Callable[[int, int, Array], None] | None = None,
) -> Trajectory:
    """A small transformer trained on a task, one run a seed, all at once; with numpy each has the bits it would have alone.

    task: its name, or a Task of your own. settings: {name: value} over its defaults, as `odesim train TASK --settings` lists them.
    model: one of the task's. steps: updates; without it the task's own number. seeds: one, or several such as range(5).
    optimizer: "sgd", "momentum", "adam" or "adamw". rates: {group of parameters: learning rate} over the task's.
    save: how many iterations are recorded, evenly spread; without it all, or 1001 of more.
    observe: costly or large observables to record at all of these, not at the end only.
    dtype: "float64" or "float32". threads: of numpy's matrix products; with another number a seed's bits may be others.
    backend: "numpy", or "cuda": cupy and an NVIDIA GPU, from the same start over the same batches; only rounding differs. A run goes on
    where it began, resume with another backend is refused.
    out: a folder for the run; overwrite replaces the one that is there, resume goes on with it where it stopped.
    checkpoint_every: seconds. progress: called with (updates done, steps, losses (R,)) after each.

    Ctrl-C and SIGTERM end the training as "interrupted", with what was computed. Raises an OdesimError with one sentence where
    the request is wrong.
    """
    found = as_task(task)
    array_module(backend)  # before anything is made
    experiment = make_experiment(
        found, settings or {}, model, check_seeds(seeds), optimizer, {} if rates is None else rates, check_dtype(dtype)
    )
    observe = (observe,) if isinstance(observe, str) else tuple(sorted(set(observe)))
    options: dict[str, Any] = {"dtype": dtype, "backend": backend, "save": save, "observe": observe, "threads": threads}
    options["progress"] = progress
    if not 0 <= checkpoint_every <= LONG:
        raise ParamError(f"checkpoint_every must be a number of seconds from 0 to {LONG:g}, not {checkpoint_every}")
    if out is None:
        if resume or overwrite:
            raise ParamError(f"{'resume' if resume else 'overwrite'} needs the folder of a run: --out RUN.zarr")
        with stopping() as stop:
            return train_experiment(experiment, steps=steps, stop=stop, fits=check_room, **options)
    if resume and overwrite:
        raise ParamError("--resume goes on with the run that is there, --overwrite replaces it; choose one")
    return train_into(Path(out), experiment, steps=steps, overwrite=overwrite, resume=resume, checkpoint_every=checkpoint_every, **options)


def train_into(
    path: Path,
    experiment: Experiment,
    *,
    steps: int | None,
    dtype: str,
    backend: str,
    save: int | None,
    observe: Sequence[str],
    threads: int,
    overwrite: bool = False,
    resume: bool = False,
    checkpoint_every: float = 5.0,
    progress: Callable[[int, int, Array], None] | None = None,
) -> Trajectory:
    """The experiment trained into the folder path, or gone on with there. Raises an OdesimError."""
    save = check_save(save)
    about = {**identity(experiment, dtype, backend, save, observe), "config": experiment.config, "vocabulary": experiment.vocabulary}
    about["identity"] = digests(about)
    from odesim.store.lock import RunLock
    from odesim.store.trajectory import checkpoint_file

    lock = RunLock()
    try:
        sink, steps, done, state = place(path, experiment, {**about, "threads": threads}, steps, overwrite, resume, lock)
        if done:
            return done
        with stopping() as stop:
            trajectory = train_experiment(
                experiment,
                steps=steps,
                sink=sink,
                checkpoint=checkpoint_file(sink.path),
                checkpoint_every=checkpoint_every,
                resume_from=state,
                stop=stop,
                dtype=dtype,
                backend=backend,
                save=save,
                observe=observe,
                threads=threads,
                progress=progress,
                fits=check_room,
            )
            sink.finish(trajectory)
    except DeviceError as error:
        if not os.path.exists(checkpoint_file(path)):
            raise
        raise DeviceError(f"{error}; --resume goes on from the last checkpoint", kept=True) from error
    except OSError as error:
        more = "; --resume goes on from the last checkpoint" if os.path.exists(path) else ""
        raise StoreError(f"cannot write {path}: {error.strerror or error}{more}") from error
    finally:
        lock.release()
    return trajectory


def make_experiment(
    task: Task,
    given: Mapping[str, Any],
    model: str | None,
    seeds: tuple[int, ...],
    optimizer: str | None,
    rates: Mapping[str, float],
    dtype: str,
) -> Experiment:
    """The experiment of a task: settings checked, the optimizer's name and rates as asked for; its config says them. Raises ParamError."""
    if model is not None and model not in task.models:
        raise ParamError(no_such("model", model, task.models, task.name))
    chosen = any(setting.name == "optimizer" for setting in task.settings)
    if chosen and optimizer is not None:
        if given.get("optimizer", optimizer) != optimizer:
            raise ParamError(f"the optimizer is given twice: {optimizer} and --set optimizer={given['optimizer']}")
        given = {**given, "optimizer": optimizer}
    given = with_rates(task, given, rates)
    values = check_settings(task.name, task.settings, given)
    named = f"{many(len(seeds), 'seed')} of {task.name}" if len(seeds) > 1 else task.name
    check_fits(f"a training of {named} with these settings", task.room(values, len(seeds), model), 8)
    experiment = task.make(values, seeds=seeds, model=model, dtype=dtype)
    spec = experiment.optimizer
    if optimizer is not None and not chosen:
        momentum = spec.momentum or MOMENTUM if optimizer == "momentum" else spec.momentum
        spec = replace(spec, name=optimizer, momentum=momentum)
    config = dict(experiment.config)
    for group, rate in rates.items():
        if group not in spec.rates:
            raise ParamError(no_such("group of parameters", str(group), spec.rates, f"{task.name} ({experiment.model.name})"))
        own = rate_setting(group)
        if own in values and spec.rates[group] != rate:
            stands = f"{own}={rate:g} stands for {spec.rates[group]:g}"
            raise ParamError(f"the learning rate of {group} cannot be {rate:g} in {task.name}, where {stands}")
    spec = Optimizer(**{**vars(spec), "rates": {**spec.rates, **rates}})
    if "momentum" not in used(vars(spec)):
        default = next((setting.default for setting in task.settings if setting.name == "momentum"), None)
        if default is not None and values["momentum"] != default:
            raise ParamError(f"momentum={values['momentum']:g} has no meaning with the optimizer {spec.name}, which has betas instead")
        spec = replace(spec, momentum=0.0)
        config.pop("momentum", None)
    check_optimizer(spec)
    return replace(experiment, optimizer=spec, config=config)


def rate_setting(group: str) -> str:
    """The setting of a task that is the learning rate of a group of parameters, where there is one."""
    return f"eta_{group}"


def with_rates(task: Task, given: Mapping[str, Any], rates: Any) -> dict[str, Any]:
    """The settings given, with those that learning rates of groups are. Raises ParamError for one that is given twice."""
    if not isinstance(rates, Mapping):
        raise ParamError(f"rates are {{group of parameters: learning rate}}, not {rates!r}")
    names = {group: rate_setting(group) for group in rates if any(s.name == rate_setting(group) for s in task.settings)}
    for group, name in names.items():
        if given.get(name, rates[group]) != rates[group]:
            raise ParamError(f"the learning rate of {group} is given twice: {rates[group]} and --set {name}={given[name]}")
    return {**given, **{name: rates[group] for group, name in names.items()}}


def as_task(task: Any) -> Task:
    """A task by its name, or one that is given. Raises ParamError."""
    if not isinstance(task, str) and not all(hasattr(task, part) for part in ("name", "settings", "models", "room", "make")):
        raise ParamError(f"a task is a name or a Task, not {shown(task)}")
    found: Task = load_task(task) if isinstance(task, str) else task
    return found


def check_seeds(seeds: Any) -> tuple[int, ...]:
    """Seeds (R,) as distinct whole numbers from 0 up. Raises ParamError."""
    if isinstance(seeds, str | bytes | Mapping | set | frozenset):
        raise ParamError(f"seeds are whole numbers in a row, such as range(5), not {shown(seeds)}")
    try:
        found = (seeds,) if isinstance(seeds, int | np.integer) else tuple(islice(seeds, MOST_SEEDS + 1))
    except TypeError:
        raise ParamError(f"seeds must be whole numbers, not {shown(seeds)}") from None
    if not 1 <= len(found) <= MOST_SEEDS:
        raise ParamError(f"there must be 1 to {MOST_SEEDS} seeds, not {'more' if found else 'none'}")
    for seed in found:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
            raise ParamError(f"a seed is a whole number from 0 up, not {shown(seed)}")
    if len(set(found)) < len(found):
        raise ParamError("a seed is given twice")
    return tuple(map(int, found))


def identity(experiment: Experiment, dtype: str, backend: str, save: int | None, observe: Sequence[str]) -> dict[str, Any]:
    """What two runs must have in common for one to go on with the other, and the versions."""
    values = (experiment.task, experiment.model.name, experiment.seeds, dtype, backend, asdict(experiment.optimizer), save, observe)
    return {**dict(zip(IDENTITY, values, strict=True)), "versions": versions(backend)}


def place(
    path: Path, experiment: Experiment, about: Mapping[str, Any], steps: int | None, overwrite: bool, resume: bool, lock: "RunLock"
) -> tuple["RunSink", int, Trajectory | None, Any]:
    """Where rows go, how many steps, the Trajectory of a run that is finished already, and the checkpoint to go on from.

    The lock is taken of a run that is there. Raises StoreError where nothing can be written there, or another process does,
    ParamError where another training is there.
    """
    from odesim.store.paths import check_run, is_run, is_taken
    from odesim.store.trajectory import RunSink, check_rows, checkpoint_file, read_trajectory, training_attributes

    if (resume or overwrite) and is_run(path):
        lock.take(path)
    old = training_attributes(path) if resume and is_taken(path) else None
    if old is None or not os.path.exists(checkpoint_file(path)):
        check_run(path, overwrite=overwrite or old is not None)
    if old is not None:
        check_unchanged(path, old)
        check_same(path, old, about)
    steps = check_count(steps if steps is not None else old["steps"] if old else experiment.steps, "steps", 0)
    if old and steps < old["iteration"]:
        raise ParamError(f"{path} has {many(old['iteration'], 'iteration')} already, more than the {steps} asked for")
    dims = {o.name: o.dims for o in experiment.model.observables}
    state = read_checkpoint(checkpoint_file(path)) if old and os.path.exists(checkpoint_file(path)) else None
    if old and state:
        check_rows(path, old, state.written)
    replaces = overwrite or old is not None
    sink = RunSink(path, about, experiment.seeds, dims, exact=experiment.exact, resume=state is not None, replaces=replaces, lock=lock)
    finished = old is not None and steps == old["iteration"] == old["steps"] and old["status"] not in (INTERRUPTED, "running")
    return sink, steps, read_trajectory(path) if finished else None, state


def digests(about: Mapping[str, Any]) -> dict[str, str]:
    """{what: digest} of what identifies a training: two agree where all of it is equal."""
    from odesim.store.manifest import digest_text
    from odesim.store.plain_data import plain

    return {name: digest_text(plain(about.get(name))) for name in (*IDENTITY, "config")}


def check_unchanged(path: Path, old: Mapping[str, Any]) -> None:
    """Raises StoreError where what the training at path says of itself is not what it was begun with."""
    then = old.get("identity")
    for name, now in digests(old).items():
        if then is not None and then.get(name) != now:
            raise StoreError(f"{path} was changed: its {name} is not what it was begun with")


def check_same(path: Path, old: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Raises ParamError where the training stored at path is another one, with the first thing that differs."""
    from odesim.store.plain_data import plain

    new = plain({name: about[name] for name in (*IDENTITY, "config")})
    pairs = [(f"setting {name}", old["config"].get(name), value) for name, value in new["config"].items()]
    pairs = [(name, old.get(name), new[name]) for name in ("task", "model")] + pairs
    pairs += [(name, old.get(name), new[name]) for name in IDENTITY if name not in ("task", "model")]
    for name, before, now in pairs:
        if before != now:
            raise ParamError(f"{path} was trained with {name} = {_short(before)}, not {_short(now)}; --resume takes the same command")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def versions(backend: str) -> dict[str, str]:
    """Versions of what computes, and the GPU where it is one."""
    more = {"cupy": array_module(backend).__version__, "gpu": device_name()} if backend == "cuda" else {}
    return {"odesim": __version__, "python": platform.python_version(), "numpy": np.__version__, **more}
