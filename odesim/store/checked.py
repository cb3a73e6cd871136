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
from odesim.store.schema import MEMBER

CHUNK = re.compile(r"(.*)/c(?:/(\d+))?(?:/\d+)*", re.ASCII)
META = "/zarr.json"
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
        if content is not None and key.endswith(META):
            self._remember(key.removesuffix(META), json.loads(content.to_bytes()))
        elif content is not None and (chunk := CHUNK.fullmatch(key)):
            if chunk[1] not in self.chunks:
                await self.get(chunk[1] + META, prototype)
            data: Any = content.as_numpy_array()
            await asyncio.to_thread(self._check, key, chunk[1], int(chunk[2] or 0), memoryview(data))
        return content

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


def checked_store(path: Path, *, read_only: bool) -> CheckedStore:
    """The zarr store of the run, or of a group in it, at path."""
    return CheckedStore(LocalStore(path, read_only=read_only), path)
