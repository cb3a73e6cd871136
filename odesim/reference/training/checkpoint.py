"""A training half-way, in one npz file that is replaced as a whole: what it goes on from has the bits of a run never stopped."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ParamError

PARTS = ("params", "optimizer", "pending")


@dataclass(frozen=True)
class Checkpoint:
    """The state before the update of an iteration.

    times (T,): the iterations to record. written: how many rows lie in whole blocks on disk; pending {name: (R, n, *shape)}: those after.
    params, optimizer {name: array}: the model's and the optimizer's state. bad (R,): the first iteration with a loss that is not
    finite, -1 where there is none. seconds: spent so far.
    """

    iteration: int
    times: Array
    written: int
    pending: Mapping[str, Array]
    params: Mapping[str, Array]
    optimizer: Mapping[str, Array]
    bad: Array
    seconds: float


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Puts the checkpoint at path: whenever the process ends, path holds this one or the one before, whole."""
    arrays: dict[str, Any] = {f"{part}/{name}": a for part in PARTS for name, a in getattr(checkpoint, part).items()}
    arrays |= {name: np.asarray(getattr(checkpoint, name)) for name in ("iteration", "times", "written", "bad", "seconds")}
    work = path.with_name(f".{path.name}.partial")
    try:
        with work.open("wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(work, path)
    except BaseException:
        work.unlink(missing_ok=True)
        raise


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint at path. Raises ParamError where it is none."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            if any(part.compress_type != ZIP_STORED or part.file_size > path.stat().st_size for part in file.zip.infolist()):
                raise ParamError("it is compressed, which odesim does not do")
            arrays = {name: file[name] for name in file.files}
        numbers: dict[str, Any] = {name: arrays.pop(name) for name in ("iteration", "times", "written", "bad", "seconds")}
        parts: dict[str, Any] = {part: {} for part in PARTS}
        for name, array in arrays.items():
            part, _, own = name.partition("/")
            parts[part][own] = array
        numbers |= {"iteration": int(numbers["iteration"]), "written": int(numbers["written"]), "seconds": float(numbers["seconds"])}
        return _check_checkpoint(Checkpoint(**numbers, **parts))
    except ParamError as error:
        raise ParamError(f"{path} is not a checkpoint of a training: {error}") from None
    except Exception as error:  # what a damaged zip file makes zipfile and zlib raise has no bound
        raise ParamError(f"{path} is not a checkpoint of a training: it is damaged, or a part is missing") from error


def _check_checkpoint(found: Checkpoint) -> Checkpoint:
    """found. Raises ParamError unless its recorded iterations go up and its rows are those before its iteration."""
    times, counts = found.times, {len(found.bad), *(held.shape[0] for held in found.pending.values())}
    if not (times.ndim == 1 and times.dtype.kind == "i" and len(times) and times[0] == 0 and np.all(np.diff(times) > 0)):
        raise ParamError("its recorded iterations do not go up from 0")
    rows = {found.written + held.shape[1] for held in found.pending.values()} or {found.written}
    if found.iteration < 0 or found.written < 0 or rows != {int(np.searchsorted(times, found.iteration))}:
        raise ParamError(f"at iteration {found.iteration} it has {', '.join(map(str, sorted(rows)))} recorded ones")
    if len(counts) > 1 or found.bad.dtype.kind != "i" or not np.isfinite(found.seconds):
        raise ParamError("its arrays are not those of one number of seeds")
    return found
