"""Arrays over the same times, written to zarr in the order of time: as many rows as the disk has room for."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from odesim.base.arrays import Array


def write_rows(arrays: Mapping[str, Any], data: Mapping[str, Array]) -> tuple[int, OSError | None]:
    """How many rows of data {name: (T, *shape)} every zarr array now holds, and what stopped it before all of them.

    Where a chunk has no room, a part of it is found that has.
    """
    lengths = {name: (len(values), arrays[name].chunks[0]) for name, values in data.items()}
    done = dict.fromkeys(data, 0)
    for name, start, stop in blocks(lengths):
        try:
            arrays[name][start:stop] = data[name][start:stop]
        except OSError as error:
            rows = min(done.values())
            _clear(arrays, rows, max(stop, *done.values()))
            return _write_what_fits(arrays, data, rows, stop), error
        done[name] = stop
    return min(done.values()), None


def blocks(lengths: Mapping[str, tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """(name, start, stop) of every block along time: arrays of one chunk first, then all others in the order of time."""
    found = [(chunk < n, min(a + chunk, n), name, a) for name, (n, chunk) in lengths.items() for a in range(0, n, chunk)]
    for _, stop, name, start in sorted(found):
        yield name, start, stop


def _write_what_fits(arrays: Mapping[str, Any], data: Mapping[str, Array], rows: int, stop: int) -> int:
    """How many rows every array holds now: those it had, and the most that fit of the ones up to stop, which do not all fit."""

    def fits(count: int) -> bool:
        try:
            for name, array in arrays.items():
                array[rows : rows + count] = data[name][rows : rows + count]
        except OSError:
            return False
        return True

    good, bad = 0, stop - rows
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
        _clear(arrays, rows, rows + middle)  # a new chunk needs no room beside an old one
    return rows + good if fits(good) else rows


def _clear(arrays: Mapping[str, Any], start: int, stop: int) -> None:
    """Gives back the room of rows start to stop: a chunk of nothing but the fill value is no file."""
    for array in arrays.values():
        with suppress(OSError):  # the rest of a chunk may find no room either
            array[start:stop] = array.fill_value
