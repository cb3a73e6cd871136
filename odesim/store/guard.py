"""Checks the files of a run's folder before zarr opens them, because a run may come from a stranger.

Symbolic links and other formats than zarr v3 are refused, as are codecs and data types that are not listed here. So are arrays that
would take more memory than their files account for.
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from odesim.base.errors import StoreError
from odesim.store.document import read_document
from odesim.store.remote import RemotePath

META = "zarr.json"
OTHER_META = frozenset((".zarray", ".zgroup", ".zattrs", ".zmetadata"))  # of zarr v2, whose codecs may run code
DTYPES = frozenset(("bool", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))))
COMPRESSORS = frozenset(("blosclz", "lz4", "lz4hc", "zlib", "zstd"))
GROUP_KEYS = frozenset(("attributes", "node_type", "zarr_format"))
ARRAY_KEYS = GROUP_KEYS | {
    *("shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs", "dimension_names", "storage_transformers")
}
INFINITE = ("NaN", "Infinity", "-Infinity")
DEPTH = 40  # folders in one another: an array of 32 axes has 34
RANK = 32
MAX_ENTRIES = 1 << 53
MAX_CHUNK = 1 << 31  # bytes: the limit of blosc
EXPANSION, SLACK = 300, 1 << 26  # lz4 expands a byte to 255 at most
CHUNK_KEY = re.compile(r"c(/(0|[1-9]\d{0,18}))*", re.ASCII)


@dataclass(frozen=True)
class ArrayFacts:
    """Metadata of a stored array, the number of its chunk files and their total size `stored` in bytes."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    dims: tuple[str | None, ...]
    files: int
    stored: int

    @property
    def chunk(self) -> int:
        """Bytes of one decoded chunk."""
        return prod(self.chunks) * np.dtype(self.dtype).itemsize

    def count(self, rows: int | None = None, axis: int = 0) -> int:
        """Number of chunks. rows: only of these first rows along the axis."""
        sizes = [n if rows is None or k != axis else rows for k, n in enumerate(self.shape)]
        return prod(-(-n // size) for n, size in zip(sizes, self.chunks, strict=True))


def inspect_arrays(path: Path) -> dict[str, ArrayFacts]:
    """{name inside the run, such as params/mu: ArrayFacts} of all arrays in the folder path.

    Raises StoreError for files that no run of odesim holds.
    """
    if isinstance(path, RemotePath):
        return inspect_remote(path)
    arrays: dict[str, Mapping[str, Any]] = {}
    files: dict[str, list[int]] = {}
    folders = [("", 0)]
    try:
        while folders:
            folder, depth = folders.pop()
            if depth > DEPTH:
                raise StoreError(f"{path} is damaged: its folders are too deep")
            entries = list(os.scandir(path / folder))
            names = {entry.name for entry in entries}
            if bad := sorted(names & OTHER_META):
                raise StoreError(f"{path} is not a run of odesim: it holds {bad[0]}, and no metadata but those of zarr v3 are read")
            for entry in entries:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_symlink():
                    raise StoreError(f"{path} holds a symbolic link, {name[:200]!r}, and no link is followed inside a run")
                if entry.is_dir(follow_symlinks=False):
                    folders.append((name, depth + 1))
                elif not entry.is_file(follow_symlinks=False):
                    raise StoreError(f"{path} holds {name[:200]!r}, which is neither a file nor a folder")
                elif entry.name.isdecimal() or entry.name == "c":
                    _add_chunk_file(files, name, entry)
            if META in names and folder and (metadata := _array_metadata(path, folder)) is not None:
                arrays[folder] = metadata
    except FileNotFoundError:  # another process replaced the run meanwhile
        raise StoreError(f"{path} changed while it was read: try again") from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from None
    return {name: _facts(path, name, metadata, files.get(name, [])) for name, metadata in arrays.items()}


def inspect_remote(path: RemotePath) -> dict[str, ArrayFacts]:
    """inspect_arrays() of a run at a URL, from a list of its objects: there are no links."""
    arrays: dict[str, Mapping[str, Any]] = {}
    files: dict[str, list[int]] = {}
    for name, size in path.sizes().items():
        folder, _, last = name.rpartition("/")
        if last in OTHER_META:
            raise StoreError(f"{path} is not a run of odesim: it holds {last}, and no metadata but those of zarr v3 are read")
        if name.count("/") > DEPTH:
            raise StoreError(f"{path} is damaged: its folders are too deep")
        array, mark, rest = name.rpartition("/c/")
        if last == META and folder and (metadata := _array_metadata(path, folder)) is not None:  # type: ignore[arg-type]
            arrays[folder] = metadata
        elif mark and CHUNK_KEY.fullmatch(f"c/{rest}"):
            files.setdefault(array, []).append(size)
        elif name.endswith("/c"):
            files.setdefault(name.removesuffix("/c"), []).append(size)
    return {name: _facts(path, name, metadata, files.get(name, [])) for name, metadata in arrays.items()}  # type: ignore[arg-type]


def _add_chunk_file(files: dict[str, list[int]], name: str, entry: "os.DirEntry[str]") -> None:
    """Appends the size of a chunk file to files[array]; other files are ignored."""
    array, mark, rest = name.rpartition("/c/")
    if name.endswith("/c"):
        array, mark, rest = name[:-2], "/c", ""
    if mark and CHUNK_KEY.fullmatch(f"c/{rest}".rstrip("/")):
        info = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(info.st_mode):
            files.setdefault(array, []).append(info.st_size)


def _array_metadata(path: Path, folder: str) -> dict[str, Any] | None:
    """Metadata of the array in the folder, or None for a group. Raises StoreError for metadata that odesim does not write."""
    file = path / folder / META
    metadata = read_document(file)

    def refuse(what: str, value: Any) -> NoReturn:
        raise StoreError(f"{path} is not read: {what} of {folder[:100]!r} is {str(value)[:80]!r}, which odesim does not write")

    if type(metadata.get("zarr_format")) is not int or metadata["zarr_format"] != 3:
        refuse("zarr_format", metadata.get("zarr_format"))
    if not isinstance(metadata.get("attributes", {}), dict):
        refuse("attributes", metadata["attributes"])
    kind = metadata.get("node_type")
    if kind == "group":
        if unknown := sorted(metadata.keys() - GROUP_KEYS):
            refuse("a part of the metadata", unknown[0])
        return None
    if kind != "array":
        refuse("node_type", kind)
    if unknown := sorted(metadata.keys() - ARRAY_KEYS):
        refuse("a part of the metadata", unknown[0])
    check_array_metadata(metadata, refuse)
    return metadata


def check_array_metadata(metadata: Mapping[str, Any], refuse: Any) -> None:
    """Checks an array's metadata; calls refuse(part, value), which raises, for the first part that odesim does not write."""
    shape, grid = metadata.get("shape"), metadata.get("chunk_grid")
    if not _is_shape(shape, 0):
        refuse("shape", shape)
    chunks = grid.get("configuration", {}) if isinstance(grid, dict) and grid.get("name") == "regular" and len(grid) == 2 else None
    chunks = chunks.get("chunk_shape") if isinstance(chunks, dict) and len(chunks) == 1 else None
    if not _is_shape(chunks, 1) or len(chunks) != len(shape):  # type: ignore[arg-type]
        refuse("chunk_grid", grid)
    dtype = metadata.get("data_type")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        refuse("data_type", dtype)
    if prod(chunks) * np.dtype(dtype).itemsize >= MAX_CHUNK:  # type: ignore[arg-type]
        refuse("chunk_grid", grid)
    keys = metadata.get("chunk_key_encoding")
    if keys not in ({"name": "default", "configuration": {"separator": "/"}}, {"name": "default"}):
        refuse("chunk_key_encoding", keys)
    if metadata.get("storage_transformers", []) != []:
        refuse("storage_transformers", metadata["storage_transformers"])
    fill = metadata.get("fill_value")
    if not (isinstance(fill, bool | int | float) or fill in INFINITE):
        refuse("fill_value", fill)
    if not _are_known_codecs(metadata.get("codecs")):
        refuse("codecs", metadata.get("codecs"))
    dims = metadata.get("dimension_names")
    if dims is not None and not (
        isinstance(dims, list) and len(dims) == len(shape) and all(isinstance(d, str | None) for d in dims)  # type: ignore[arg-type]
    ):
        refuse("dimension_names", dims)


def _is_shape(value: Any, least: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= RANK
        and all(type(n) is int and least <= n <= MAX_ENTRIES for n in value)
        and prod(value) <= MAX_ENTRIES
    )


def _are_known_codecs(value: Any) -> bool:
    """Whether the codecs are `bytes`, or `bytes` and blosc, with settings that odesim writes."""
    if not isinstance(value, list) or not 1 <= len(value) <= 2 or not all(isinstance(codec, dict) for codec in value):
        return False
    if value[0] not in ({"name": "bytes"}, {"name": "bytes", "configuration": {"endian": "little"}}):
        return False
    if len(value) == 1:
        return True
    settings = value[1].get("configuration")
    if value[1].get("name") != "blosc" or len(value[1]) != 2 or not isinstance(settings, dict):
        return False
    cname, numbers = settings.get("cname"), [settings.get(name, 0) for name in ("typesize", "clevel", "blocksize")]
    keys = {"typesize", "cname", "clevel", "shuffle", "blocksize"}
    return (
        isinstance(cname, str)
        and cname in COMPRESSORS
        and settings.get("shuffle") in ("shuffle", "noshuffle", "bitshuffle")
        and all(type(n) is int and 0 <= n <= MAX_CHUNK for n in numbers)
        and settings.keys() <= keys
    )


def _facts(path: Path, name: str, metadata: Mapping[str, Any], files: list[int]) -> ArrayFacts:
    """ArrayFacts from metadata and the sizes of chunk files. Raises StoreError if the files are too small for the shape."""
    dims = metadata.get("dimension_names") or [None] * len(metadata["shape"])
    chunks = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    facts = ArrayFacts(tuple(metadata["shape"]), tuple(chunks), metadata["data_type"], tuple(dims), len(files), sum(files))
    if facts.files > facts.count() or facts.files * facts.chunk > EXPANSION * facts.stored + SLACK:
        raise StoreError(f"{path} is damaged: {name[:100]!r} would be of shape {str(facts.shape)[:80]}, and its files hold less")
    return facts
