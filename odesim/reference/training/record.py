"""Rows of observables while a training runs: in blocks that go to a sink, so that memory has a bound."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.errors import ParamError, no_such
from odesim.reference.protocols import Observable, Params

LOSS = "loss"
MAX_RECORDED_ENTRIES = 1000  # entries of one seed: a larger observable is kept at the end only, unless it is asked for
DEFAULT_ROWS = 1001  # recorded iterations where nothing else is asked for


Fits = Callable[[int, int, int], None]  # raises where so many rows, of so many numbers, of so many bytes do not fit in memory


class Sink(Protocol):
    """Where rows go; open() comes first, and again rows that were written before may be written anew with the same bits."""

    def open(self, times: Array, rows: Mapping[str, Array]) -> int:
        """Makes room for times (T,) of rows like these {name: (R, *shape)}; how many rows a block has."""

    def write(self, first: int, rows: Mapping[str, Array]) -> None:
        """Takes the rows {name: (R, n, *shape)} that start at row first, a multiple of the block."""

    def rows(self) -> Mapping[str, Array]:
        """{name: (R, T, *shape)} of all rows written, read when asked for."""


class Recorder:
    """Recorded rows: `written` of them in whole blocks in the sink, `filled` more in the block at hand."""

    def __init__(
        self, observables: Sequence[Observable], observe: Iterable[str], times: Array, sink: Sink | None, fits: Fits | None = None
    ) -> None:
        names = [o.name for o in observables]
        for name in observe:
            if name != LOSS and name not in names:
                raise ParamError(no_such("observable", name, [LOSS, *names]))
        self.every = tuple(observables)
        self.named = frozenset(observe)
        self.watched = tuple(o for o in observables if not o.costly or o.name in self.named)
        self.times, self.sink, self.fits = times, sink, fits
        self.written = self.filled = 0
        self.block: dict[str, Array] = {}

    def start(self, params: Params, loss: Array, *, written: int = 0, pending: Mapping[str, Array] | None = None) -> None:
        """Chooses what is recorded by the sizes at these params, opens the sink, and takes over what a checkpoint holds."""
        rows = {LOSS: to_host(loss)}
        for o in self.watched:
            value = to_host(o.function(params))
            if o.name in self.named or value[0].size <= MAX_RECORDED_ENTRIES:
                rows[o.name] = value
        self.watched = tuple(o for o in self.watched if o.name in rows)
        if pending:
            check_pending(rows, pending)
        size = self.sink.open(self.times, rows) if self.sink else len(self.times)
        if self.fits:
            self.fits(size, sum(v.size for v in rows.values()), max(v.itemsize for v in rows.values()))
        self.block = {name: np.empty((len(v), size, *v.shape[1:]), v.dtype) for name, v in rows.items()}
        self.written = written
        if pending:
            self.filled = pending[LOSS].shape[1]
            for name, held in pending.items():
                self.block[name][:, : self.filled] = held

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.written + self.filled

    @property
    def next(self) -> int:
        """The iteration to record next; -1 after the last."""
        return int(self.times[self.rows]) if self.rows < len(self.times) else -1

    def add(self, loss: Array, params: Params) -> None:
        """Records one row; a whole block goes to the sink."""
        self.block[LOSS][:, self.filled] = to_host(loss)
        for o in self.watched:
            self.block[o.name][:, self.filled] = to_host(o.function(params))
        self.filled += 1
        if self.sink and self.filled == self.block[LOSS].shape[1]:
            self.sink.write(self.written, self.block)
            self.written, self.filled = self.written + self.filled, 0

    def pending(self) -> dict[str, Array]:
        """{name: (R, n, *shape)} of the rows that are in no whole block; views."""
        return {name: held[:, : self.filled] for name, held in self.block.items()}

    def flush(self) -> None:
        """Sends the rows at hand to the sink; they stay at hand, for the block that they begin."""
        if self.sink and self.filled:
            self.sink.write(self.written, self.pending())

    def final(self, loss: Array, params: Params) -> dict[str, Array]:
        """{name: (R, *shape)} of every observable, the costly ones too; copies."""
        return {LOSS: np.array(to_host(loss))} | {o.name: np.array(to_host(o.function(params))) for o in self.every}


def check_pending(rows: Mapping[str, Array], pending: Mapping[str, Array]) -> None:
    """Raises ParamError unless pending {name: (R, n, *shape)}, of a checkpoint, are rows like these {name: (R, *shape)}."""
    shapes = {name: ((len(v), *v.shape[1:]), str(v.dtype)) for name, v in rows.items()}
    found = {name: ((len(v), *v.shape[2:]), str(v.dtype)) for name, v in pending.items()}
    for name in sorted({*shapes, *found}):
        if shapes.get(name) != found.get(name):
            raise ParamError(f"the checkpoint is of another training: of {name} it holds {found.get(name)}, not {shapes.get(name)}")


def recorded_iterations(steps: int, save: int | None = None) -> Array:
    """The iterations (T,) to record: `save` of 0 ... steps, evenly spread with both ends; all of them where there are no more."""
    return np.unique(np.linspace(0, steps, min(save or DEFAULT_ROWS, steps + 1)).round().astype(np.int64))


def extend_iterations(times: Array, steps: int, save: int | None) -> Array:
    """The iterations (T,) to record where those of a shorter training are already: they stay, later ones are added."""
    more = recorded_iterations(steps, save)
    return np.concatenate([times, more[more > times[-1]]])


def to_host(a: Any) -> Array:
    """a in the computer's own memory."""
    return np.asarray(on_host(a))
