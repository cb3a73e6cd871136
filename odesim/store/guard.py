"""What may stand in the folder of a run, checked before zarr sees it: a run is data, perhaps a stranger's.

No link is followed, nothing but zarr v3 is read, nothing is decoded by an unlisted codec or into an unlisted type, and nothing takes more
memory than the files that are there account for.
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

from odesim.errors import StoreError
from odesim.store.document import read_document

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
MAX_CHUNK = 1 << 31  # bytes, which is what blosc can hold
EXPANSION, SLACK = 300, 1 << 26  # lz4 makes at most 255 bytes of one
CHUNK_KEY = re.compile(r"c(/(0|[1-9]\d{0,18}))*", re.ASCII)


@dataclass(frozen=True)
class ArrayFacts:
    """What the metadata of an array say, and how many of its chunks have a file. chunk: bytes of one, decoded; stored: of its files."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    dims: tuple[str | None, ...]
    files: int
    stored: int

    @property
    def chunk(self) -> int:
        return prod(self.chunks) * np.dtype(self.dtype).itemsize

    def count(self, rows: int | None = None, axis: int = 0) -> int:
        """How many chunks there are, of the first rows along an axis."""
        sizes = [n if rows is None or k != axis else rows for k, n in enumerate(self.shape)]
        return prod(-(-n // size) for n, size in zip(sizes, self.chunks, strict=True))


def inspect_arrays(path: Path) -> dict[str, ArrayFacts]:
    """{name inside the run at path, as params/mu: Facts} of every array. Raises StoreError for what no run of odesim holds."""
    arrays: dict[str, Mapping[str, Any]] = {}
    files: dict[str, list[int]] = {}
    todo = [("", 0)]
    try:
        while todo:
            folder, depth = todo.pop()
            if depth > DEPTH:
                raise StoreError(f"{path} is damaged: its folders are too deep")
            found = list(os.scandir(path / folder))
            names = {entry.name for entry in found}
            if bad := sorted(names & OTHER_META):
                raise StoreError(f"{path} is not a run of odesim: it holds {bad[0]}, and no metadata but those of zarr v3 are read")
            for entry in found:
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_symlink():
                    raise StoreError(f"{path} holds a symbolic link, {name[:200]!r}, and no link is followed inside a run")
                if entry.is_dir(follow_symlinks=False):
                    todo.append((name, depth + 1))
                elif not entry.is_file(follow_symlinks=False):
                    raise StoreError(f"{path} holds {name[:200]!r}, which is neither a file nor a folder")
                elif entry.name.isdecimal() or entry.name == "c":
                    _add_chunk_file(files, name, entry)
            if META in names and folder and (said := _array_metadata(path, folder)) is not None:
                arrays[folder] = said
    except FileNotFoundError:  # of a run that another process replaced meanwhile
        raise StoreError(f"{path} changed while it was read: try again") from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from None
    return {name: _facts(path, name, said, files.get(name, [])) for name, said in arrays.items()}


def _add_chunk_file(files: dict[str, list[int]], name: str, entry: "os.DirEntry[str]") -> None:
    """Adds the size of a file to those of the array whose chunk it may be."""
    array, mark, rest = name.partition("/c/")
    if name.endswith("/c"):
        array, mark, rest = name[:-2], "/c", ""
    if mark and CHUNK_KEY.fullmatch(f"c/{rest}".rstrip("/")):
        info = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(info.st_mode):
            files.setdefault(array, []).append(info.st_size)


def _array_metadata(path: Path, folder: str) -> dict[str, Any] | None:
    """The metadata of an array in the folder; None of a group. Raises StoreError for what odesim does not write."""
    file = path / folder / META
    said = read_document(file)

    def refuse(what: str, value: Any) -> NoReturn:
        raise StoreError(f"{path} is not read: {what} of {folder[:100]!r} is {str(value)[:80]!r}, which odesim does not write")

    if type(said.get("zarr_format")) is not int or said["zarr_format"] != 3:
        refuse("zarr_format", said.get("zarr_format"))
    if not isinstance(said.get("attributes", {}), dict):
        refuse("attributes", said["attributes"])
    kind = said.get("node_type")
    if kind == "group":
        if more := sorted(said.keys() - GROUP_KEYS):
            refuse("a part of the metadata", more[0])
        return None
    if kind != "array":
        refuse("node_type", kind)
    if more := sorted(said.keys() - ARRAY_KEYS):
        refuse("a part of the metadata", more[0])
    check_array_metadata(said, refuse)
    return said


def check_array_metadata(said: Mapping[str, Any], refuse: Any) -> None:
    """Calls refuse(part, value) for the first part of an array's metadata that odesim does not write."""
    shape, grid = said.get("shape"), said.get("chunk_grid")
    if not _is_shape(shape, 0):
        refuse("shape", shape)
    chunks = grid.get("configuration", {}) if isinstance(grid, dict) and grid.get("name") == "regular" and len(grid) == 2 else None
    chunks = chunks.get("chunk_shape") if isinstance(chunks, dict) and len(chunks) == 1 else None
    if not _is_shape(chunks, 1) or len(chunks) != len(shape):  # type: ignore[arg-type]
        refuse("chunk_grid", grid)
    dtype = said.get("data_type")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        refuse("data_type", dtype)
    if prod(chunks) * np.dtype(dtype).itemsize >= MAX_CHUNK:  # type: ignore[arg-type]
        refuse("chunk_grid", grid)
    keys = said.get("chunk_key_encoding")
    if keys not in ({"name": "default", "configuration": {"separator": "/"}}, {"name": "default"}):
        refuse("chunk_key_encoding", keys)
    if said.get("storage_transformers", []) != []:
        refuse("storage_transformers", said["storage_transformers"])
    fill = said.get("fill_value")
    if not (isinstance(fill, bool | int | float) or fill in INFINITE):
        refuse("fill_value", fill)
    if not _are_known_codecs(said.get("codecs")):
        refuse("codecs", said.get("codecs"))
    dims = said.get("dimension_names")
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
    """Whether they are bytes, and perhaps blosc after them, with the settings that odesim writes."""
    if not isinstance(value, list) or not 1 <= len(value) <= 2 or not all(isinstance(one, dict) for one in value):
        return False
    if value[0] not in ({"name": "bytes"}, {"name": "bytes", "configuration": {"endian": "little"}}):
        return False
    if len(value) == 1:
        return True
    settings = value[1].get("configuration")
    if value[1].get("name") != "blosc" or len(value[1]) != 2 or not isinstance(settings, dict):
        return False
    cname, numbers = settings.get("cname"), [settings.get(name, 0) for name in ("typesize", "clevel", "blocksize")]
    known = {"typesize", "cname", "clevel", "shuffle", "blocksize"}
    return (
        isinstance(cname, str)
        and cname in COMPRESSORS
        and settings.get("shuffle") in ("shuffle", "noshuffle", "bitshuffle")
        and all(type(n) is int and 0 <= n <= MAX_CHUNK for n in numbers)
        and settings.keys() <= known
    )


def _facts(path: Path, name: str, said: Mapping[str, Any], files: list[int]) -> ArrayFacts:
    """Facts of an array. Raises StoreError where its files cannot be what they say to hold."""
    dims = said.get("dimension_names") or [None] * len(said["shape"])
    chunks = said["chunk_grid"]["configuration"]["chunk_shape"]
    facts = ArrayFacts(tuple(said["shape"]), tuple(chunks), said["data_type"], tuple(dims), len(files), sum(files))
    if facts.files > facts.count() or facts.files * facts.chunk > EXPANSION * facts.stored + SLACK:
        raise StoreError(f"{path} is damaged: {name[:100]!r} would be of shape {str(facts.shape)[:80]}, and its files hold less")
    return facts
