"""A zarr store that holds each chunk against the shape of its array before anything decodes it: the file may come from a stranger.

It is a file of its own because its class needs zarr, whose import takes half a second: others import it when they open a run.
"""

import asyncio
import json
import re
from math import prod
from pathlib import Path
from struct import unpack_from
from typing import Any

import google_crc32c
import numpy as np
from numcodecs.blosc import Blosc
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore, WrapperStore

from odesim.base.errors import StoreError
from odesim.store.guard import META, with_checksum, without_checksum
from odesim.store.schema import MEMBER

CHUNK = re.compile(r"(.*)/c(?:/(\d+))?(?:/\d+)*", re.ASCII)
HEADER, LENGTHS = 16, "<4xI4xI"  # bytes of blosc's header; in it the sizes of what is decoded and of the whole
CHECKSUM = 4  # bytes of a crc32c, the last of a chunk


class CheckedStore(WrapperStore[Any]):
    """The store of a run. A chunk that is damaged, or larger than its array says, is a StoreError; so is a file that cannot be read.

    Lazy arrays read from it long after the run was opened, outside of all contexts that turn errors into sentences.
    """

    def __init__(self, store: Any, path: Path) -> None:
        super().__init__(store)
        self.path = path
        self.chunks: dict[str, tuple[int, set[str], range]] = {}
        """{array: (bytes of a decoded chunk, its codecs, first member of each chunk)}, from metadata that were read."""

    def _with_store(self, store: Any) -> "CheckedStore":
        return CheckedStore(store, self.path)

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """The content of a file, checked; None where there is none."""
        try:
            content: Buffer | None = await self._store.get(key, prototype, byte_range)
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error.strerror or error}") from error
        if content is not None and is_metadata(key):
            metadata = without_checksum(json.loads(content.to_bytes()), f"{self.path}: {key[:60]}")
            self._remember(key[: -len(META) - 1], metadata)
            return prototype.buffer.from_bytes(json.dumps(metadata).encode())
        if content is not None and (chunk := CHUNK.fullmatch(key)):
            if chunk[1] not in self.chunks:
                await self.get(f"{chunk[1]}/{META}", prototype)
            data: Any = content.as_numpy_array()
            await asyncio.to_thread(self._check, key, chunk[1], int(chunk[2] or 0), memoryview(data))
        return content

    async def set(self, key: str, value: Buffer) -> None:
        """Writes a file; metadata get a checksum."""
        await self._store.set(key, _sealed(key, value))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Writes a file that is not there; metadata get a checksum."""
        await self._store.set_if_not_exists(key, _sealed(key, value))

    def _remember(self, name: str, metadata: Any) -> None:
        if metadata.get("node_type") == "array":
            shape = metadata["chunk_grid"]["configuration"]["chunk_shape"]
            of_members = (metadata.get("dimension_names") or [None])[:1] == [MEMBER]
            members = range(0, metadata["shape"][0], shape[0]) if of_members else range(0)
            codecs = {codec["name"] for codec in metadata["codecs"]}
            self.chunks[name] = prod(shape) * np.dtype(metadata["data_type"]).itemsize, codecs, members

    def _check(self, key: str, name: str, number: int, content: memoryview) -> None:
        """Raises StoreError for a chunk of an array that is not what its metadata say, or not what was written."""
        size, codecs, members = self.chunks[name]
        where = f"{self.path} is damaged: {key[:60]}"
        if number < len(members):
            where += f", of members from {members[number]} on,"
        if "crc32c" in codecs:  # runs of older versions have none
            content, checksum = content[:-CHECKSUM], content[-CHECKSUM:]
            if google_crc32c.value(np.asarray(content)) != int.from_bytes(checksum, "little"):  # it takes no memoryview
                raise StoreError(f"{where} is not what was written: its checksum differs")
        compressed = "blosc" in codecs
        sizes = unpack_from(LENGTHS, content) if compressed and len(content) >= HEADER else (len(content), len(content))
        if sizes != (size, len(content)):
            raise StoreError(f"{where} does not hold {size} bytes")
        if compressed and self.read_only:
            try:
                Blosc().decode(content)
            except RuntimeError as error:
                raise StoreError(f"{where} cannot be decompressed") from error


def is_metadata(key: str) -> bool:
    """Whether a file has the metadata of an array or a group."""
    return key.rpartition("/")[2] == META


def _sealed(key: str, value: Buffer) -> Buffer:
    if not is_metadata(key):
        return value
    return value.from_bytes(json.dumps(with_checksum(json.loads(value.to_bytes())), indent=2).encode())


def checked_store(path: Path, *, read_only: bool) -> CheckedStore:
    """The zarr store of the run, or of a group in it, at path."""
    return CheckedStore(LocalStore(path, read_only=read_only), path)
