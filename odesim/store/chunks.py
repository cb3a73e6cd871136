"""Which chunks of a zarr array have their file: a chunk without one reads as the fill value, whatever was there before."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from odesim.errors import StoreError

WRITE_EMPTY = {"array.write_empty_chunks": True}  # zarr would drop a chunk that is the fill value alone


def chunk_files(path: Path, name: str, array: Any, chunk: int | None = None) -> Iterator[Path]:
    """The files of an array called name in the folder path, or of one chunk along its first axis."""
    counts = [range(-(-n // size)) for n, size in zip(array.shape, array.chunks, strict=True)]
    if chunk is not None:
        counts[0] = range(chunk, chunk + 1)
    for place in product(*counts):
        yield path / name / array.metadata.encode_chunk_key(place)


def has_files(files: Iterable[Path]) -> bool:
    """Whether all of them are there and hold something."""
    try:
        return all(file.stat().st_size for file in files)
    except OSError:
        return False


def check_array_files(path: Path, arrays: Mapping[str, Any]) -> None:
    """Raises StoreError where a file of these arrays in the folder path, which nothing can compute again, is missing."""
    for name, array in arrays.items():
        if not has_files(chunk_files(path, name, array)):
            raise StoreError(f"{path} is damaged: of {name}, which was given, a file is missing")
