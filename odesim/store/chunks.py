"""Files of the chunks of a zarr array. zarr reads a chunk whose file is missing as the fill value, without an error."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from odesim.base.errors import StoreError
from odesim.base.memo import ForkLock
from odesim.store.remote import RemotePath

# zarr's settings are those of a process: of two threads that set them at once one would leave its own behind
_SETTINGS = ForkLock()


@contextmanager
def every_chunk_written() -> Iterator[None]:
    """A context in which zarr writes a file also for a chunk of nothing but the fill value; one thread at a time."""
    import zarr

    with _SETTINGS, zarr.config.set({"array.write_empty_chunks": True}):
        yield


def chunk_files(path: Path, name: str, array: Any, chunk: int | None = None) -> Iterator[Path]:
    """Paths of the chunk files of the array `name` in the folder path. chunk: only those of this chunk along the first axis."""
    counts = [range(-(-n // size)) for n, size in zip(array.shape, array.chunks, strict=True)]
    if chunk is not None:
        counts[0] = range(chunk, chunk + 1)
    for index in product(*counts):
        yield path / name / array.metadata.encode_chunk_key(index)


def has_files(files: Iterable[Path]) -> bool:
    """Whether every file exists and is not empty."""
    try:
        return all(file.size() if isinstance(file, RemotePath) else file.stat().st_size for file in files)
    except OSError:
        return False


def check_array_files(path: Path, arrays: Mapping[str, Any]) -> None:
    """Raises StoreError if a chunk file of these arrays {name: array} in the folder path is missing: they are inputs, not results."""
    for name, array in arrays.items():
        if isinstance(path, RemotePath):
            sizes = (path / name).sizes()
            there = all(sizes.get(file.relative_to(path / name)) for file in chunk_files(path, name, array))  # type: ignore[arg-type]
        else:
            there = has_files(chunk_files(path, name, array))
        if not there:
            raise StoreError(f"{path} is damaged: of {name}, which was given, a file is missing")
