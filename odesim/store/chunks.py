"""Zarr arrays of a run: created, opened, and the files of their chunks.

zarr reads a chunk whose file is missing as the fill value, without an error: so missing files are looked for.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import StoreError
from odesim.base.memo import ForkLock

# zarr's settings are those of a process: of two threads that set them at once one would leave its own behind
_SETTINGS = ForkLock()


def chunk_shape(shape: tuple[int, ...], itemsize: int, target: int) -> tuple[int, ...]:
    """Shape of a chunk of at most target bytes, if one entry has no more: complete in the last axes, cut along the first."""
    chunk = [max(n, 1) for n in shape]
    for axis, n in enumerate(chunk):
        rest = prod(chunk[axis + 1 :]) * prod(chunk[:axis]) * itemsize
        chunk[axis] = min(n, max(1, target // rest))
    return tuple(chunk)


def create_array(
    group: Any,
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    *,
    chunks: tuple[int, ...] = (),
    target: int = 0,
    dims: tuple[str, ...] | None = None,
    fill: float | None = None,
    every_chunk: bool = False,
    **more: Any,
) -> Any:
    """A new zarr array in the group, compressed by lz4 with shuffled bytes; its chunks end with a checksum, or a flipped bit were a number.

    chunks: their shape; or target: their bytes, see chunk_shape(); default zarr's. dims: names of the axes. fill: what a chunk without
    a file holds, by default NaN, or 0 for whole numbers. every_chunk: also chunks of nothing but that get a file. more: for zarr.
    """
    from zarr.codecs import BloscCodec, Crc32cCodec

    return group.create_array(
        name,
        shape=shape,
        dtype=dtype,
        chunks=chunks or (chunk_shape(shape, np.dtype(dtype).itemsize, target) if target else ()) or "auto",
        compressors=[BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"), Crc32cCodec()],
        dimension_names=dims,
        fill_value=fill if fill is not None else np.nan if np.issubdtype(dtype, np.floating) else 0,
        **({"config": {"write_empty_chunks": True}} if every_chunk else {}),
        **more,
    )


def write_group(group: Any, name: str, arrays: Mapping[str, Array], **how: Any) -> None:
    """Writes {name: array} as a group, which xarray does not read; writes nothing if there are no arrays. how: for create_array."""
    if arrays:
        inner = group.create_group(name)
        for key, values in arrays.items():
            create_array(inner, key, values.shape, values.dtype, **how)[...] = values


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
        return all(file.stat().st_size for file in files)
    except OSError:
        return False


def check_array_files(path: Path, arrays: Mapping[str, Any]) -> None:
    """Raises StoreError if a chunk file of these arrays {name: array} in the folder path is missing: they are inputs, not results."""
    for name, array in arrays.items():
        if not has_files(chunk_files(path, name, array)):
            raise StoreError(f"{path} is damaged: of {name}, which was given, a file is missing")


def open_group(path: Path, mode: Literal["r", "r+"] = "r") -> Any:
    """The zarr v3 group at path, opened without consolidated metadata; its chunks are checked when they are read."""
    import zarr

    from odesim.store.checked import checked_store

    return zarr.open_group(checked_store(path, read_only=mode == "r"), mode=mode, zarr_format=3, use_consolidated=False)


def create_group(path: Path, attributes: Mapping[str, Any] | None = None) -> Any:
    """A new zarr v3 group at path; its metadata, and those of what is created in it, have checksums."""
    import zarr

    from odesim.store.checked import checked_store

    return zarr.create_group(checked_store(path, read_only=False), zarr_format=3, attributes=dict(attributes or {}))
