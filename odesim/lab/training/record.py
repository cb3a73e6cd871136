"""What a training records, in blocks that go to a sink so that memory is bounded, and the checkpoint from which it goes on."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from zipfile import ZIP_STORED

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.base.errors import ParamError, no_such
from odesim.lab.training.task import Observable, Params

LOSS = "loss"
MAX_RECORDED_ENTRIES = 1000  # entries of one seed: larger observables are recorded at the end only, unless requested
DEFAULT_ROWS = 1001  # default number of recorded iterations: both ends, and thousandths between


Fits = Callable[[int, int, int], int | None]
"""(rows, numbers of a row, bytes of a number): raises if they do not fit in memory; returns how many rows are kept, None for these."""


class Sink(Protocol):
    """The folder of recorded rows, of a floor above. open() comes first; a resumed training may write rows again, with the same bits."""

    def open(self, times: Array, rows: Mapping[str, Array]) -> int:
        """Prepares for times (T,) and rows like these {name: (R, *shape)}; returns the number of rows of a block."""

    def write(self, first: int, rows: Mapping[str, Array]) -> None:
        """Stores rows {name: (R, n, *shape)} from row `first` on, a multiple of the block."""

    def rows(self) -> Mapping[str, Array]:
        """{name: (R, T, *shape)} of all rows written, read when used."""


class Recorder:
    """Records rows: `written` of them are in complete blocks in the sink, `filled` more in the current block."""

    def __init__(
        self, observables: Sequence[Observable], observe: Iterable[str], times: Array, sink: Sink | None, fits: Fits | None = None
    ) -> None:
        names = [LOSS, *(o.name for o in observables)]
        for name in observe:
            if name not in names:
                raise ParamError(no_such("observable", name, names))
        self.observables, self.requested = tuple(observables), frozenset(observe)
        self.recorded = tuple(o for o in observables if not o.costly or o.name in self.requested)
        self.times, self.sink, self.fits = times, sink, fits
        self.written = self.filled = 0
        self.block: dict[str, Array] = {}

    def start(self, params: Params, loss: Array, *, written: int = 0, pending: Mapping[str, Array] | None = None) -> None:
        """Chooses observables by their sizes at these params, opens the sink, and takes over the rows of a checkpoint.

        Raises ParamError unless its pending rows {name: (R, n, *shape)} have these names, shapes and types.
        """
        rows = {LOSS: on_host(loss)}
        for o in self.recorded:
            value = on_host(o.function(params))
            if o.name in self.requested or value[0].size <= MAX_RECORDED_ENTRIES:
                rows[o.name] = value
        self.recorded = tuple(o for o in self.recorded if o.name in rows)
        shapes = {name: ((len(v), *v.shape[1:]), str(v.dtype)) for name, v in rows.items()}
        stored = {name: ((len(v), *v.shape[2:]), str(v.dtype)) for name, v in pending.items()} if pending else shapes
        for name in sorted({*shapes, *stored}):
            if shapes.get(name) != stored.get(name):
                raise ParamError(f"the checkpoint is of another training: of {name} it holds {stored.get(name)}, not {shapes.get(name)}")
        size = self.sink.open(self.times, rows) if self.sink else len(self.times)
        kept = self.fits(size, sum(v.size for v in rows.values()), max(v.itemsize for v in rows.values())) if self.fits else None
        if kept is not None and kept < size:
            self.times = recorded_iterations(int(self.times[-1]), kept)
            size = kept
        self.block = {name: np.empty((len(v), size, *v.shape[1:]), v.dtype) for name, v in rows.items()}
        self.written = written
        if pending:
            self.filled = pending[LOSS].shape[1]
            for name, values in pending.items():
                self.block[name][:, : self.filled] = values

    @property
    def rows(self) -> int:
        """Number of rows recorded so far."""
        return self.written + self.filled

    @property
    def next(self) -> int:
        """The next iteration to record; -1 after the last."""
        return int(self.times[self.rows]) if self.rows < len(self.times) else -1

    def add(self, loss: Array, params: Params) -> None:
        """Records a row; a complete block goes to the sink."""
        self.block[LOSS][:, self.filled] = on_host(loss)
        for o in self.recorded:
            self.block[o.name][:, self.filled] = on_host(o.function(params))
        self.filled += 1
        if self.sink and self.filled == self.block[LOSS].shape[1]:
            self.sink.write(self.written, self.block)
            self.written, self.filled = self.written + self.filled, 0

    def pending(self) -> dict[str, Array]:
        """{name: (R, n, *shape)} of the rows in the current block, as views."""
        return {name: values[:, : self.filled] for name, values in self.block.items()}

    def flush(self) -> None:
        """Writes the rows of the current block to the sink; they stay in the block, which is not complete."""
        if self.sink and self.filled:
            self.sink.write(self.written, self.pending())

    def final(self, loss: Array, params: Params) -> dict[str, Array]:
        """{name: (R, *shape)} of all observables, costly ones too, as copies."""
        return {LOSS: np.array(on_host(loss))} | {o.name: np.array(on_host(o.function(params))) for o in self.observables}


def recorded_iterations(steps: int, save: int | None = None) -> Array:
    """The iterations (T,) to record: `save` of 0 ... steps, spread evenly with both ends, or all if there are not more."""
    return np.unique(np.linspace(0, steps, min(save or DEFAULT_ROWS, steps + 1)).round().astype(np.int64))


def extend_iterations(times: Array, steps: int, save: int | None) -> Array:
    """The iterations (T,) to record of a longer training: times (T',) of the shorter one, then later ones."""
    later = recorded_iterations(steps, save)
    return np.concatenate([times, later[later > times[-1]]])


# Checkpoints of a training in one npz file. A resumed training has the same bits as one that was never stopped.

PARTS = ("params", "optimizer", "pending")
NUMBERS = ("iteration", "times", "written", "bad", "seconds")


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
    arrays |= {name: np.asarray(getattr(checkpoint, name)) for name in NUMBERS}
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
            # a compressed file of a stranger could unpack to more than the memory
            if any(part.compress_type != ZIP_STORED or part.file_size > path.stat().st_size for part in file.zip.infolist()):
                raise ParamError("it is compressed, which odesim does not do")
            arrays = {name: file[name] for name in file.files}
        numbers: dict[str, Any] = {name: arrays.pop(name) for name in NUMBERS}
        parts: dict[str, Any] = {part: {} for part in PARTS}
        for name, array in arrays.items():
            part, _, inner = name.partition("/")
            parts[part][inner] = array
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
