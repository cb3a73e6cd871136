"""What is checked of a run's files before zarr opens them, because a run may come from a stranger.

Symbolic links and other formats than zarr v3 are refused, as are codecs and data types that are not listed here. So are arrays that
would take more memory than their files account for, and JSON that is large, deep, or holds numbers that overflow.
"""

import errno
import json
import math
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

import numpy as np

from odesim.base.errors import StoreError

META = "zarr.json"
CHECKSUM = "crc32"
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
MAX_ENTRIES = 1 << 53  # numbers of an array: above it a float64 no longer counts by one
MAX_CHUNK = 1 << 31  # bytes: the limit of blosc
EXPANSION, SLACK = 300, 1 << 26  # lz4 expands a byte to 255 at most
CHUNK = re.compile(r"(.+)/c(?:/(?:0|[1-9]\d{0,18}))*", re.ASCII)
MAX_BYTES = 1 << 26  # of a document
INT_BOUND = 1 << 63
DIGITS = 20  # of a whole number below INT_BOUND, with its sign: int() of a longer text takes quadratic time
FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # no links, no waiting for a pipe


def read_document(file: Path) -> dict[str, Any]:
    """The JSON object in the file. Raises StoreError for other content, OSError if the file cannot be read."""
    content = read_plain(file)
    if len(content) > MAX_BYTES:
        raise StoreError(f"{file} is damaged: it has more than {MAX_BYTES} bytes")
    try:
        value = json.loads(content.decode(), parse_constant=_refuse_constant, parse_float=_parse_float, parse_int=_parse_int)
        check_text(value)
    except RecursionError:
        raise StoreError(f"{file} is damaged: its brackets are too deep") from None
    except ValueError as error:
        raise StoreError(f"{file} is damaged: {' '.join(str(error).split())[:120]}") from None
    if not isinstance(value, dict):
        raise StoreError(f"{file} is damaged: it holds no JSON object")
    return without_checksum(value, file)


def with_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a group or an array, with a checksum of all of it among its attributes, where zarr and xarray let it be."""
    text = json.dumps(document, sort_keys=True)
    return {**document, "attributes": {**document.get("attributes", {}), CHECKSUM: f"{crc32(text.encode()):08x}"}}


def without_checksum(document: dict[str, Any], place: object) -> dict[str, Any]:
    """The metadata that were given a checksum, or that have none, as those of older versions. Raises StoreError where it differs."""
    attributes = document.get("attributes")
    if not isinstance(attributes, dict) or CHECKSUM not in attributes:
        return document
    plain = {**document, "attributes": {name: value for name, value in attributes.items() if name != CHECKSUM}}
    if with_checksum(plain) != document:
        raise StoreError(f"{place} is damaged: it is not what was written: its checksum, the attribute {CHECKSUM}, differs")
    return plain


def read_plain(file: Path) -> bytes:
    """The first MAX_BYTES + 1 bytes of a plain file. Raises StoreError for a link or what is no file."""
    try:
        handle = os.open(file, os.O_RDONLY | FLAGS)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StoreError(f"{file} is a symbolic link, and no link is followed inside a run") from None
        raise
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise StoreError(f"{file} is not a plain file")
        return stream.read(MAX_BYTES + 1)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} overflows")
    return number


def _parse_int(text: str) -> int:
    if len(text) > DIGITS or not -INT_BOUND <= (number := int(text)) < INT_BOUND:
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def check_text(value: Any) -> None:
    """Raises ValueError if a text inside the JSON value holds a NUL or a lone surrogate, which no file name can hold."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += [*item, *item.values()]
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, str):
            if "\0" in item:
                raise ValueError("a text holds a NUL character")
            item.encode()  # a UnicodeEncodeError is a ValueError


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
    arrays: dict[str, Mapping[str, Any]] = {}
    chunks: dict[str, list[int]] = {}
    try:
        for name, size in local_sizes(path).items():
            folder, _, last = name.rpartition("/")
            if last in OTHER_META:
                raise StoreError(f"{path} is not a run of odesim: it holds {last}, and no metadata but those of zarr v3 are read")
            if name.count("/") > DEPTH:
                raise StoreError(f"{path} is damaged: its folders are too deep")
            if last == META and folder and (metadata := _array_metadata(path, folder)) is not None:
                arrays[folder] = metadata
            elif chunk := CHUNK.fullmatch(name):
                chunks.setdefault(chunk[1], []).append(size)
    except FileNotFoundError:  # another process replaced the run meanwhile
        raise StoreError(f"{path} changed while it was read: try again") from None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from None
    return {name: _facts(path, name, metadata, chunks.get(name, [])) for name, metadata in arrays.items()}


def local_sizes(path: Path) -> dict[str, int]:
    """{path inside the folder: bytes} of all files in it. Raises StoreError for a link, or what is neither a file nor a folder."""
    sizes: dict[str, int] = {}
    folders = [("", 0)]
    while folders:
        folder, depth = folders.pop()
        if depth > DEPTH:  # before it is entered: a stranger's folders may have no end
            raise StoreError(f"{path} is damaged: its folders are too deep")
        for entry in list(os.scandir(path / folder)):
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                raise StoreError(f"{path} holds a symbolic link, {name[:200]!r}, and no link is followed inside a run")
            if entry.is_dir(follow_symlinks=False):
                folders.append((name, depth + 1))
            elif entry.is_file(follow_symlinks=False):
                sizes[name] = entry.stat(follow_symlinks=False).st_size
            else:
                raise StoreError(f"{path} holds {name[:200]!r}, which is neither a file nor a folder")
    return sizes


def _array_metadata(path: Path, folder: str) -> dict[str, Any] | None:
    """Metadata of the array in the folder, or None for a group. Raises StoreError for metadata that odesim does not write."""
    file = path / folder / META
    metadata = read_document(file)

    def refuse(what: str, value: object) -> NoReturn:
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


# zarr imports whatever codec or data type the metadata name, from any package that is installed: so only those that odesim writes pass
def check_array_metadata(metadata: Mapping[str, Any], refuse: Callable[[str, object], NoReturn]) -> None:
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
    """Whether the codecs are `bytes`, perhaps blosc with settings that odesim writes, and perhaps a checksum."""
    if not isinstance(value, list) or not all(isinstance(codec, dict) for codec in value):
        return False
    if len(value) > 1 and value[-1] == {"name": "crc32c"}:
        value = value[:-1]
    if not 1 <= len(value) <= 2 or value[0] not in ({"name": "bytes"}, {"name": "bytes", "configuration": {"endian": "little"}}):
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
    # a file of a kilobyte may say that it decodes to a terabyte
    if facts.files > facts.count() or facts.files * facts.chunk > EXPANSION * facts.stored + SLACK:
        raise StoreError(f"{path} is damaged: {name[:100]!r} would be of shape {str(facts.shape)[:80]}, and its files hold less")
    return facts
