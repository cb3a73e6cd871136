"""A training whose seeds are trained apart, on a dask cluster or one after another; at the end all are joined."""

import json
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np

from odesim.base.arrays import Array
from odesim.base.backends import find_backend
from odesim.base.cluster import Cluster, Task, unwanted
from odesim.base.errors import ClusterError, ParamError, StoreError, counted
from odesim.base.options import other_versions, versions
from odesim.base.signals import stop_signals
from odesim.lab.experiment import TrainingRequest
from odesim.lab.resume import attributes_of, check_same, check_unchanged, train_into
from odesim.lab.store import RUNNING, RunSink, checkpoint_file, read_trajectory, training_attributes
from odesim.lab.training.loop import INTERRUPTED, NON_FINITE, OK, Trajectory, check_count, check_save, outcome_sentence
from odesim.lab.training.record import Checkpoint, read_checkpoint, write_checkpoint
from odesim.lab.training.task import Experiment
from odesim.store.guard import read_document
from odesim.store.paths import Destination, RunLock, check_new_run, publish

# A training in parts: each seed is stored in a folder beside the run, and all are joined when they have come to their end.
#
# A seed has the bits that it has beside others, so the joined run is the one that one process stores, with its checkpoint.

PLAN = "parts.json"
TOKEN = 8  # characters of the token in names


def parts_folder(path: Path) -> Path:
    """The folder of the parts of the training at path."""
    return path.with_name(f"{path.name}.parts")


def part_of(folder: Path, seed: int, token: str) -> Path:
    """The training of one seed in the folder of parts.

    token: that of the plan. A worker that trains for a plan that was replaced, as after a lost connection, has another place to write.
    """
    return folder / f"seed-{seed}-{token[:TOKEN]}.zarr"


def check_no_parts(path: Path) -> None:
    """Raises StoreError where a training at path was begun in parts."""
    if has_parts(path):
        raise StoreError(f"{parts_folder(path)} holds a training that was begun: --resume continues it, --overwrite replaces it")


def has_parts(path: Path) -> bool:
    """Whether a training at path was begun in parts that are not joined yet."""
    with suppress(OSError, ValueError):  # what is no place for a run is said where it is written
        return (parts_folder(path) / PLAN).is_file()
    return False


def write_plan(folder: Path, plan: dict[str, Any]) -> None:
    """Makes the folder of parts, and writes what they are parts of: seeds, steps, and a token that tells this folder from others."""
    folder.mkdir(exist_ok=True)
    work = folder / f".{PLAN}.partial"
    work.write_text(json.dumps(plan), encoding="utf-8")
    work.replace(folder / PLAN)


def read_plan(folder: Path) -> dict[str, Any]:
    """The plan of the parts in the folder: seeds, steps, token. Raises StoreError if it cannot be read or is damaged."""
    try:
        plan = read_document(folder / PLAN)
    except OSError as error:
        raise StoreError(f"cannot read {folder / PLAN}: {error.strerror or error}") from None
    seeds, steps = plan.get("seeds"), plan.get("steps")
    if not isinstance(seeds, list) or not all(type(seed) is int for seed in seeds) or type(steps) is not int or not plan.get("token"):
        raise StoreError(f"{folder / PLAN} is damaged: it lacks the seeds, the steps or the token")
    return plan


def check_plan(folder: Path, seeds: Sequence[int]) -> dict[str, Any]:
    """The plan of the parts in the folder. Raises ParamError if they are of other seeds."""
    plan = read_plan(folder)
    if plan["seeds"] != list(seeds):
        raise ParamError(f"{folder} holds parts of a training of other seeds: --resume takes the same command")
    return plan


def split(path: Path, part: Path, row: int, experiment: Experiment, attributes: dict[str, Any]) -> None:
    """Writes seed number `row` of the stored training at path as a training of its own, up to the last checkpoint.

    experiment, attributes: those of the seed alone.
    """
    state, rows = read_checkpoint(checkpoint_file(path)), read_trajectory(path).observables
    known = {name: values[row : row + 1, : state.written] for name, values in rows.items()}
    known = {name: np.concatenate([values, state.pending[name][row : row + 1]], axis=1) for name, values in known.items() if len(values)}
    count = next(iter(known.values())).shape[1]
    if not count:
        return  # the seed begins anew
    sink = RunSink(part, attributes, experiment)
    block = sink.open(state.times, {name: values[:, 0] for name, values in known.items()})
    written = count // block * block
    write_blocks(sink, known, block)
    one = slice(row, row + 1)
    pending = {name: values[:, written:] for name, values in known.items()}
    params = {name: a[one] for name, a in state.params.items()}
    optimizer = {name: a[one] if a.ndim else a for name, a in state.optimizer.items()}
    of_seed = replace(state, written=written, pending=pending, params=params, optimizer=optimizer, bad=state.bad[one])
    write_checkpoint(checkpoint_file(part), of_seed)
    sink.lock.release()


def join(parts: Sequence[Path], sink: RunSink) -> Trajectory:
    """Writes trainings of one seed each, all of them at their end, into the sink; the Trajectory of all."""
    every = [read_trajectory(part) for part in parts]
    first, states = every[0], [read_checkpoint(checkpoint_file(part)) for part in parts]
    block = sink.open(first.t, {name: np.concatenate([one.observables[name][:, 0] for one in every]) for name in first.observables})
    count = int(np.searchsorted(states[0].times, states[0].iteration))
    written, pending = count // block * block, {}
    for name in first.observables:  # one after another: all of them may be larger than the memory
        values = np.concatenate([one.observables[name] for one in every])
        write_blocks(sink, {name: values}, block)
        pending[name] = values[:, written:count].copy()
    joined = joined_trajectory(every, sink)
    sink.finish(joined)
    write_checkpoint(checkpoint_file(sink.path), joined_checkpoint(states, written, pending))
    return joined


def write_blocks(sink: RunSink, rows: dict[str, Array], block: int) -> None:
    """Writes all rows {name: (R, T, *shape)} into an open sink, block after block."""
    count = next(iter(rows.values())).shape[1]
    for k in range(ceil(count / block)):
        sink.write(k * block, {name: values[:, k * block : (k + 1) * block] for name, values in rows.items()})


def joined_trajectory(every: Sequence[Trajectory], sink: RunSink) -> Trajectory:
    """The Trajectory of trainings of one seed each, whose rows are in the sink. seconds: of the longest."""
    first = every[0]
    bad = {seed: i for one in every for seed, i in one.bad.items()}
    status = NON_FINITE if bad else OK
    return replace(
        first,
        observables=sink.rows(),
        final={name: np.concatenate([one.final[name] for one in every]) for name in first.final},
        seeds=tuple(seed for one in every for seed in one.seeds),
        status=status,
        message=outcome_sentence(status, first.iteration, first.steps, bad),
        bad=bad,
        stats={
            "seconds": max(one.stats["seconds"] for one in every),
            "steps_per_second": min(one.stats["steps_per_second"] for one in every),
        },
    )


def joined_checkpoint(states: Sequence[Checkpoint], written: int, pending: dict[str, Array]) -> Checkpoint:
    """The checkpoint of all seeds. written: rows in complete blocks on disk; pending {name: (R, n, *shape)}: later ones."""
    first = states[0]
    arrays: list[dict[str, Array]] = [
        {name: np.concatenate([get[name] for get in of]) if first_of[name].ndim else first_of[name] for name in first_of}
        for of, first_of in (([s.params for s in states], first.params), ([s.optimizer for s in states], first.optimizer))
    ]
    return replace(
        first,
        written=written,
        pending=pending,
        params=arrays[0],
        optimizer=arrays[1],
        bad=np.concatenate([state.bad for state in states]),
        seconds=max(state.seconds for state in states),
    )


def remove_parts(path: Path) -> None:
    """Deletes the parts of the training at path."""
    shutil.rmtree(parts_folder(path), ignore_errors=True)


# A training whose seeds are trained apart: on the workers of a dask cluster, or what a cluster left of it here, one after another.

Progress = Callable[[int, int, Array], None]
PATIENCE = 60  # s to wait for another worker, which the cluster gave up, to let go of a seed


@dataclass(frozen=True)
class PartJob:
    """The job of a worker that trains one seed: the request, the folder of parts, and the token by which it knows that folder.

    versions: those of the client, which a worker must have too.
    """

    request: TrainingRequest
    folder: str
    token: str
    checkpoint_every: float
    versions: dict[str, str] = field(default_factory=versions)

    def part(self, seed: int) -> Path:
        """The training of one seed."""
        return part_of(Path(self.folder), seed, self.token)


def train_spread(
    request: TrainingRequest,
    to: Destination,
    cluster: Cluster | None,
    *,
    checkpoint_every: float = 5.0,
    progress: Progress | None = None,
) -> Trajectory:
    """Trains each seed by itself into a folder of parts, and joins them. cluster: None for here, one after another.

    progress: called with (mean of updates done, steps, last losses (k,) of the seeds that came to their end). Raises an OdesimError;
    ClusterError where the training was interrupted, or the cluster is gone: then --resume goes on.
    """
    path = to.path.absolute()
    folder, lock, run_lock = parts_folder(path), RunLock(), RunLock()
    experiment = request.experiment()
    request = replace(request, options=replace(request.options, save=check_save(request.options.save)))
    try:
        about = attributes_of(experiment, request.options)
        steps, done = begin_training(path, replace(to, path=path), request, experiment, about)
        if done is not None:
            return done
        lock.acquire(folder)
        request = replace(request, options=replace(request.options, steps=steps))
        job = PartJob(request, str(folder), read_plan(folder)["token"], checkpoint_every)
        ended: dict[int, float] = {}

        def look() -> None:
            if progress:
                counts = [steps if seed in ended else iteration_of(job.part(seed)) for seed in request.seeds]
                progress(int(np.mean(counts)), steps, np.array(list(ended.values())))

        with stop_signals() as stop:
            for seed, loss in trained(job, cluster, stop, look):
                ended[seed] = loss
                look()
        if len(ended) < len(request.seeds):
            raise ClusterError(
                f"interrupted with {len(ended)} of {counted(len(request.seeds), 'seed')} trained; {resume_sentence(path)}", stored=True
            )
        sink = RunSink(path, about, experiment, replaces=True, lock=run_lock)
        joined = join([job.part(seed) for seed in request.seeds], sink)
        remove_parts(path)
        return joined
    except ClusterError as error:
        if str(error).startswith("interrupted"):
            raise
        raise ClusterError(f"{error}; {resume_sentence(path)}", stored=True) from error
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; {resume_sentence(path)}") from error
    finally:
        lock.release()
        run_lock.release()


def resume_sentence(path: Path) -> str:
    """The sentence that tells where an interrupted training is stored and which command continues it."""
    return f"what was computed is in {parts_folder(path)}: the same command with --resume continues it"


def begin_training(
    path: Path, to: Destination, request: TrainingRequest, experiment: Any, about: dict[str, Any]
) -> tuple[int, Trajectory | None]:
    """(steps, None) with the folder of parts there, begun or from the stored training at path; (steps, Trajectory) of one that is done.

    Raises StoreError or ParamError where something else is there.
    """
    folder, requested = parts_folder(path), request.options.steps
    if not (to.resume or to.overwrite):
        check_no_parts(path)
    if to.resume and has_parts(path):
        plan = check_plan(folder, request.seeds)
        steps = check_count(plan["steps"] if requested is None else requested, "steps", 0)
        write_plan(folder, {**plan, "steps": steps})
        return steps, None
    old = training_attributes(path) if to.joins else None
    if old is None:
        check_new_run(path, overwrite=to.overwrite)
    else:
        check_unchanged(path, old)
        check_same(path, old, about)
    steps = check_count(requested if requested is not None else old["steps"] if old else experiment.steps, "steps", 0)
    if old and steps < old["iteration"]:
        raise ParamError(f"{path} has {counted(old['iteration'], 'iteration')} already, more than the {steps} asked for")
    if old and steps == old["iteration"] == old["steps"] and old["status"] not in (INTERRUPTED, RUNNING):
        return steps, read_trajectory(path)
    work = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    token = uuid4().hex
    write_plan(work, {"seeds": list(request.seeds), "steps": steps, "token": token})
    if old is not None and checkpoint_file(path).exists():
        for row, seed in enumerate(request.seeds):
            alone = request.experiment((seed,))
            split(path, part_of(work, seed, token), row, alone, attributes_of(alone, request.options))
    publish(work, folder, overwrite=True)  # workers that were cancelled may still write into the one that is there
    return steps, None


def trained(job: PartJob, cluster: Cluster | None, stop: Callable[[], bool], look: Callable[[], None]) -> Iterator[tuple[int, float]]:
    """(seed, its last loss) of each seed as it comes to its end."""
    seeds = job.request.seeds
    if cluster is None:
        for seed in seeds:
            if stop() or (loss := train_part(job, seed, stop, look)) is None:
                return
            yield seed, loss
        return
    if find_backend(job.request.options.backend).gpu:
        cluster = cluster.with_gpus()
    name = experiment_name(job.request)
    tasks: Iterable[Task] = (Task(name, str(seed), (seed,)) for seed in seeds)
    for task, loss in cluster.results(partial(train_there, job), tasks, stop, look):
        yield task.arguments[0], loss


def experiment_name(request: TrainingRequest) -> str:
    """The name of the tasks of a training on dask's dashboard."""
    task = request.task if isinstance(request.task, str) else request.task.name
    return task.replace("-", "_") + " seeds"


def train_there(job: PartJob, seed: int) -> float:
    """Trains one seed on a worker, from its last checkpoint to its end; returns its last loss.

    Raises OSError where it cannot be written; the client then reports that of the run. Raises ClusterError if this worker has other
    versions of the code that computes, or another OdesimError.
    """
    folder = Path(job.folder)
    if other := ", ".join(f"{name} {here}, not {there}" for name, (there, here) in other_versions(job.versions, versions()).items()):
        raise ClusterError(f"a worker of the cluster, {platform.node()}, has {other}: its bits could be others")
    try:
        token = read_plan(folder)["token"]
    except StoreError:
        token = ""
    if token != job.token:
        raise StoreError(f"a worker of the cluster does not see {folder}: it must be a folder that all machines share")
    try:
        loss = train_part(job, seed, unwanted)
    except StoreError as error:
        if not isinstance(full := error.__cause__, OSError):
            raise
        raise OSError(full.errno, full.strerror, full.filename) from None  # a new one: its chain of errors must have an end, to travel
    if loss is None:
        raise InterruptedError("the task was cancelled")
    return loss


def train_part(job: PartJob, seed: int, stop: Callable[[], bool], look: Callable[[], None] | None = None) -> float | None:
    """Trains one seed into the folder of parts, from its last checkpoint; its last loss, None if it was stopped."""
    part = job.part(seed)
    wait_for(part)

    def tell(done: int, steps: int, loss: Array) -> None:
        if look is not None and done % max(steps // 100, 1) == 0:
            look()

    to, experiment, every = Destination(part, resume=True), job.request.experiment((seed,)), job.checkpoint_every
    trajectory = train_into(to, experiment, job.request.options, checkpoint_every=every, progress=tell, stop_requested=stop)
    return None if trajectory.status == INTERRUPTED else float(trajectory.final["loss"][0])


def wait_for(part: Path) -> None:
    """Waits until no other process writes into the part, at most a minute: then train_into() says so."""
    lock = RunLock()
    for _ in range(PATIENCE):
        try:
            if part.exists():
                lock.acquire(part)
            break
        except StoreError:
            sleep(1.0)
    lock.release()


def iteration_of(part: Path) -> int:
    """The iteration of the last checkpoint of a training, 0 before the first."""
    with suppress(OSError, KeyError, ValueError, BadZipFile), np.load(checkpoint_file(part), allow_pickle=False) as file:
        return int(file["iteration"])
    return 0
