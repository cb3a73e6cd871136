"""A training whose seeds are trained apart, on a dask cluster or one after another, each in a folder beside the run, and then joined.

A seed has the bits that it has beside others, so the joined run is the one that one process stores, with its checkpoint.
"""

import json
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
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
from odesim.lab.store import Progress, RunSink, attributes_of, checkpoint_file, read_trajectory, stored_before, train_into
from odesim.lab.training.loop import INTERRUPTED, NON_FINITE, OK, TrainingOptions, Trajectory, outcome_sentence
from odesim.lab.training.record import read_checkpoint, write_checkpoint
from odesim.lab.training.task import Experiment
from odesim.store.guard import read_document
from odesim.store.paths import Destination, RunLock, publish

PLAN = "parts.json"
TOKEN = 8  # characters of the token in names
PATIENCE = 60  # s to wait for another worker, which the cluster gave up, to let go of a seed


def parts_folder(path: Path) -> Path:
    """The folder of the parts of the training at path."""
    return path.with_name(f"{path.name}.parts")


def has_parts(path: Path) -> bool:
    """Whether a training at path was begun in parts that are not joined yet."""
    with suppress(OSError, ValueError):  # what is no place for a run is said where it is written
        return (parts_folder(path) / PLAN).is_file()
    return False


def check_no_parts(path: Path) -> None:
    """Raises StoreError where a training at path was begun in parts."""
    if has_parts(path):
        raise StoreError(f"{parts_folder(path)} holds a training that was begun: --resume continues it, --overwrite replaces it")


def remove_parts(path: Path) -> None:
    """Deletes the parts of the training at path."""
    shutil.rmtree(parts_folder(path), ignore_errors=True)


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


# From the training of all seeds to one of each, up to the last checkpoint, and back.


def split(path: Path, part: Path, row: int, experiment: Experiment, attributes: dict[str, Any]) -> None:
    """Writes seed number `row` of the stored training at path as a training of its own. experiment, attributes: of the seed alone."""
    state, rows, one = read_checkpoint(checkpoint_file(path)), read_trajectory(path).observables, slice(row, row + 1)
    known = {name: np.concatenate([values[one, : state.written], state.pending[name][one]], axis=1) for name, values in rows.items()}
    if not next(iter(known.values())).shape[1]:
        return  # the seed begins anew
    sink = RunSink(part, attributes, experiment)
    block = sink.open(state.times, {name: values[:, 0] for name, values in known.items()})
    written, pending = write_blocks(sink, known, block)
    params, optimizer = ({name: a[one] if a.ndim else a for name, a in named.items()} for named in (state.params, state.optimizer))
    of_seed = replace(state, written=written, pending=pending, params=params, optimizer=optimizer, bad=state.bad[one])
    write_checkpoint(checkpoint_file(part), of_seed)
    sink.lock.release()


def join(parts: Sequence[Path], sink: RunSink) -> Trajectory:
    """Writes trainings of one seed each, all of them at their end, into the sink; the Trajectory of all. seconds: of the longest."""
    every, states = [read_trajectory(part) for part in parts], [read_checkpoint(checkpoint_file(part)) for part in parts]
    first, state = every[0], states[0]

    def together(of_seeds: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        return {name: np.concatenate([one[name] for one in of_seeds]) if a.ndim else a for name, a in of_seeds[0].items()}

    block = sink.open(first.t, together([{name: rows[:, 0] for name, rows in one.observables.items()} for one in every]))
    written, pending = 0, dict[str, Array]()
    for name in first.observables:  # one after another: all of them may be larger than the memory
        values = np.concatenate([one.observables[name] for one in every])
        written, rest = write_blocks(sink, {name: values}, block, int(np.searchsorted(state.times, state.iteration)))
        pending |= rest
    bad = {seed: i for one in every for seed, i in one.bad.items()}
    status = NON_FINITE if bad else OK
    slowest = {name: fold(one.stats[name] for one in every) for name, fold in (("seconds", max), ("steps_per_second", min))}
    joined = replace(
        first,
        observables=sink.rows(),
        final=together([one.final for one in every]),
        seeds=tuple(seed for one in every for seed in one.seeds),
        status=status,
        message=outcome_sentence(status, first.iteration, first.steps, bad),
        bad=bad,
        stats=slowest,
    )
    sink.finish(joined)
    params, optimizer = together([s.params for s in states]), together([s.optimizer for s in states])
    not_finite, seconds = np.concatenate([s.bad for s in states]), max(s.seconds for s in states)
    of_all = replace(state, written=written, pending=pending, params=params, optimizer=optimizer, bad=not_finite, seconds=seconds)
    write_checkpoint(checkpoint_file(sink.path), of_all)
    return joined


def write_blocks(sink: RunSink, rows: dict[str, Array], block: int, count: int | None = None) -> tuple[int, dict[str, Array]]:
    """Writes all rows {name: (R, T, *shape)} into an open sink, block after block.

    Returns how many of the first `count` (all without it) are complete blocks, and copies of the others of these {name: (R, n, *shape)}.
    """
    total = next(iter(rows.values())).shape[1]
    for first in range(0, total, block):
        sink.write(first, {name: values[:, first : first + block] for name, values in rows.items()})
    count = total if count is None else count
    written = count // block * block
    return written, {name: values[:, written:count].copy() for name, values in rows.items()}


# The training of the parts: on the workers of a dask cluster, or what a cluster left of it here, one after another.


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
        """The training of one seed. A worker of a plan that was replaced, as after a lost connection, has another place to write."""
        return Path(self.folder) / f"seed-{seed}-{self.token[:TOKEN]}.zarr"


def train_spread(
    request: TrainingRequest, to: Destination, cluster: Cluster | None, *, checkpoint_every: float = 5.0, progress: Progress | None = None
) -> Trajectory:
    """Trains each seed by itself into a folder of parts, and joins them. cluster: None for here, one after another.

    progress: called with (mean of updates done, steps, last losses (k,) of the seeds that came to their end). Raises an OdesimError;
    ClusterError where the training was interrupted, or the cluster is gone: then --resume goes on.
    """
    path, seeds, experiment = to.path.absolute(), request.seeds, request.experiment()
    folder, lock, run_lock = parts_folder(path), RunLock(), RunLock()
    goes_on = f"what was computed is in {folder}: the same command with --resume continues it"
    try:
        about = attributes_of(experiment, request.options)
        options, done = begin_training(replace(to, path=path), request, experiment, about)
        if done is not None:
            return done
        lock.acquire(folder)
        job = PartJob(replace(request, options=options), str(folder), read_plan(folder)["token"], checkpoint_every)
        steps, ended = options.steps or 0, dict[int, float]()

        def look() -> None:
            if progress:
                counts = [steps if seed in ended else iteration_of(job.part(seed)) for seed in seeds]
                progress(int(np.mean(counts)), steps, np.array(list(ended.values())))

        with stop_signals() as stop:
            for seed, loss in trained(job, cluster, stop, look):
                ended[seed] = loss
                look()
        if len(ended) < len(seeds):
            raise ClusterError(f"interrupted with {len(ended)} of {counted(len(seeds), 'seed')} trained; {goes_on}", stored=True)
        joined = join([job.part(seed) for seed in seeds], RunSink(path, about, experiment, replaces=True, lock=run_lock))
        remove_parts(path)
        return joined
    except ClusterError as error:
        if str(error).startswith("interrupted"):
            raise
        raise ClusterError(f"{error}; {goes_on}", stored=True) from error
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; {goes_on}") from error
    finally:
        lock.release()
        run_lock.release()


def begin_training(
    to: Destination, request: TrainingRequest, experiment: Experiment, about: dict[str, Any]
) -> tuple[TrainingOptions, Trajectory | None]:
    """The options with steps, and the folder of parts is there, begun or from the stored training; or the Trajectory of one that is done.

    Raises StoreError or ParamError where something else is there.
    """
    path, folder, options = to.path, parts_folder(to.path), request.options
    if not (to.resume or to.overwrite):
        check_no_parts(path)
    if to.resume and has_parts(path):
        plan = read_plan(folder)
        if plan["seeds"] != list(request.seeds):
            raise ParamError(f"{folder} holds parts of a training of other seeds: --resume takes the same command")
        options = replace(options, steps=plan["steps"] if options.steps is None else options.steps)
        write_plan(folder, {**plan, "steps": options.steps})
        return options, None
    old, options, done = stored_before(to, experiment, about, options)
    if done:
        return options, done
    work = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    token = uuid4().hex
    write_plan(work, {"seeds": list(request.seeds), "steps": options.steps, "token": token})
    if old is not None and checkpoint_file(path).exists():
        for row, seed in enumerate(request.seeds):
            alone = request.experiment((seed,))
            split(path, PartJob(request, str(work), token, 0.0).part(seed), row, alone, attributes_of(alone, request.options))
    publish(work, folder, overwrite=True)  # workers that were cancelled may still write into the one that is there
    return options, None


def trained(job: PartJob, cluster: Cluster | None, stop: Callable[[], bool], look: Callable[[], None]) -> Iterator[tuple[int, float]]:
    """(seed, its last loss) of each seed as it comes to its end."""
    seeds, task = job.request.seeds, job.request.task
    if cluster is None:
        for seed in seeds:
            if stop() or (loss := train_part(job, seed, stop, look)) is None:
                return
            yield seed, loss
        return
    if find_backend(job.request.options.backend).gpu:
        cluster = cluster.with_gpus()
    name = (task if isinstance(task, str) else task.name).replace("-", "_") + " seeds"  # on dask's dashboard
    for of_seed, loss in cluster.results(partial(train_there, job), (Task(name, str(seed), (seed,)) for seed in seeds), stop, look):
        yield of_seed.arguments[0], loss


def train_there(job: PartJob, seed: int) -> float:
    """Trains one seed on a worker, from its last checkpoint to its end; returns its last loss.

    Raises OSError where it cannot be written; the client then reports that of the run. Raises ClusterError if this worker has other
    versions of the code that computes, or another OdesimError.
    """
    folder = Path(job.folder)
    if other := ", ".join(f"{name} {here}, not {there}" for name, (there, here) in other_versions(job.versions, versions()).items()):
        raise ClusterError(f"a worker of the cluster, {platform.node()}, has {other}: its bits could be others")
    token = ""
    with suppress(StoreError):
        token = read_plan(folder)["token"]
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
    """Trains one seed into the folder of parts, from its last checkpoint; its last loss, None if it was stopped.

    Another worker, which the cluster gave up, may write there still: it waits a minute at most, then train_into() says so.
    """
    part, lock = job.part(seed), RunLock()
    for _ in range(PATIENCE):
        try:
            if part.exists():
                lock.acquire(part)
            break
        except StoreError:
            sleep(1.0)
    lock.release()

    def tell(done: int, steps: int, loss: Array) -> None:
        if look is not None and done % max(steps // 100, 1) == 0:
            look()

    to, experiment, every = Destination(part, resume=True), job.request.experiment((seed,)), job.checkpoint_every
    trajectory = train_into(to, experiment, job.request.options, checkpoint_every=every, progress=tell, stop_requested=stop)
    return None if trajectory.status == INTERRUPTED else float(trajectory.final["loss"][0])


def iteration_of(part: Path) -> int:
    """The iteration of the last checkpoint of a training, 0 before the first."""
    with suppress(OSError, KeyError, ValueError, BadZipFile), np.load(checkpoint_file(part), allow_pickle=False) as file:
        return int(file["iteration"])
    return 0
