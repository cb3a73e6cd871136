"""Writes arrays over common times to zarr in the order of time, as many rows as fit on the disk."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from odesim.base.arrays import Array


def write_rows(arrays: Mapping[str, Any], data: Mapping[str, Array]) -> tuple[int, OSError | None]:
    """Writes data {name: (T, *shape)} to zarr arrays {name: array}; returns (rows that all arrays hold, the error or None).

    When the disk is full, as much of the last chunk is written as fits.
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
    """(name, start, stop) of all blocks along time: first arrays of one chunk, then the others in the order of time.

    lengths {name: (rows, rows of a chunk)}.
    """
    ordered = [(chunk < n, min(a + chunk, n), name, a) for name, (n, chunk) in lengths.items() for a in range(0, n, chunk)]
    for _, stop, name, start in sorted(ordered):
        yield name, start, stop


def _write_what_fits(arrays: Mapping[str, Any], data: Mapping[str, Array], rows: int, stop: int) -> int:
    """Writes as many of the rows from `rows` to stop as fit, found by bisection; returns the rows that every array holds."""

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
        _clear(arrays, rows, rows + middle)  # else the next trial needs room for the old and the new chunk
    return rows + good if fits(good) else rows


def _clear(arrays: Mapping[str, Any], start: int, stop: int) -> None:
    """Frees the disk space of rows start to stop by writing the fill value: such a chunk has no file."""
    for array in arrays.values():
        with suppress(OSError):  # rewriting the rest of a chunk may find the disk full too
            array[start:stop] = array.fill_value
