"""Checkpoints of a training in one npz file. A resumed training has the same bits as one that was never stopped."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError

PARTS = ("params", "optimizer", "pending")


@dataclass(frozen=True)
class Checkpoint:
    """The state of a training before the update of an iteration.

    times (T,): the iterations to record. written: number of rows in complete blocks on disk; pending {name: (R, n, *shape)}: later rows.
    params, optimizer {name: array}: states of model and optimizer. bad (R,): the first iteration with a loss that is not finite, -1 if
    there is none. seconds: time spent so far.
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
    """Writes the checkpoint to path; if the process ends meanwhile, path holds the complete previous one."""
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
    """The checkpoint at path. Raises ParamError if it is damaged or not a checkpoint."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            if any(part.compress_type != ZIP_STORED or part.file_size > path.stat().st_size for part in file.zip.infolist()):
                raise ParamError("it is compressed, which odesim does not do")
            arrays = {name: file[name] for name in file.files}
        numbers: dict[str, Any] = {name: arrays.pop(name) for name in ("iteration", "times", "written", "bad", "seconds")}
        parts: dict[str, Any] = {part: {} for part in PARTS}
        for name, array in arrays.items():
            part, _, array_name = name.partition("/")
            parts[part][array_name] = array
        numbers |= {"iteration": int(numbers["iteration"]), "written": int(numbers["written"]), "seconds": float(numbers["seconds"])}
        return _check_checkpoint(Checkpoint(**numbers, **parts))
    except ParamError as error:
        raise ParamError(f"{path} is not a checkpoint of a training: {error}") from None
    except Exception as error:  # a damaged zip file can make zipfile and zlib raise anything
        raise ParamError(f"{path} is not a checkpoint of a training: it is damaged, or a part is missing") from error


def _check_checkpoint(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, if it is consistent. Raises ParamError for iterations, rows or arrays that do not fit together."""
    times, counts = checkpoint.times, {len(checkpoint.bad), *(rows_of.shape[0] for rows_of in checkpoint.pending.values())}
    if not (times.ndim == 1 and times.dtype.kind == "i" and len(times) and times[0] == 0 and np.all(np.diff(times) > 0)):
        raise ParamError("its recorded iterations do not go up from 0")
    rows = {checkpoint.written + rows_of.shape[1] for rows_of in checkpoint.pending.values()} or {checkpoint.written}
    if checkpoint.iteration < 0 or checkpoint.written < 0 or rows != {int(np.searchsorted(times, checkpoint.iteration))}:
        raise ParamError(f"at iteration {checkpoint.iteration} it has {', '.join(map(str, sorted(rows)))} recorded ones")
    if len(counts) > 1 or checkpoint.bad.dtype.kind != "i" or not np.isfinite(checkpoint.seconds):
        raise ParamError("its arrays are not those of one number of seeds")
    return checkpoint
