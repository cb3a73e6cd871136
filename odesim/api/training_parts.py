"""A training in parts: each seed is stored in a folder beside the run, and all are joined when they have come to their end.

A seed has the bits that it has beside others, so the joined run is the one that one process stores, with its checkpoint.
"""

import json
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, StoreError
from odesim.reference.protocols import Experiment
from odesim.reference.training.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from odesim.reference.training.trajectory import NON_FINITE, OK, Trajectory, outcome_sentence
from odesim.store.document import read_document
from odesim.store.trajectory import RunSink, checkpoint_file, read_trajectory

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
