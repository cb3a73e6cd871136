"""Runs at the URL of an object store, such as s3://bucket/run.zarr, by fsspec: what a run needs of a pathlib.Path.

Where the store is and who asks (endpoint, keys) is in the environment, as fsspec and its packages read it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from odesim.base.errors import StoreError

OPTIONS: Mapping[str, Any] = {"use_listings_cache": False}  # others write meanwhile
BATCH = 64  # files that are written together


class RemotePath:
    """A folder or a file at a URL. It is no os.PathLike: what takes local paths only refuses it.

    fs: the filesystem of fsspec, where it is known; paths made from this one share it, and with it its connections.
    """

    def __init__(self, url: str, fs: Any = None) -> None:
        self.url, self._fs = url.rstrip("/"), fs

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"RemotePath({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)

    def __truediv__(self, name: object) -> RemotePath:
        return RemotePath(f"{self.url}/{name}", self._fs)

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The suffix of the name, with its dot."""
        return Path(self.name).suffix

    @property
    def parent(self) -> RemotePath:
        """The URL without its last part."""
        return RemotePath(self.url.rpartition("/")[0], self._fs)

    def with_name(self, name: str) -> RemotePath:
        """The URL with another last part."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> RemotePath:
        """The URL with another suffix."""
        return self.with_name(f"{Path(self.name).with_suffix(suffix)}")

    def absolute(self) -> RemotePath:
        """The URL itself."""
        return self

    def relative_to(self, folder: RemotePath) -> str:
        """The part of the URL after that of the folder."""
        return self.url.removeprefix(f"{folder.url}/")

    def place(self) -> tuple[Any, str]:
        """(filesystem of fsspec, path in it). Raises StoreError if there is none for this URL."""
        if self._fs is not None:
            return self._fs, str(self._fs._strip_protocol(self.url))
        scheme = self.url.partition("://")[0]
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise StoreError(f"{self} needs fsspec and its package for {scheme}: pip install 'odesim[s3]'") from None
        try:
            fs, path = url_to_fs(self.url, **OPTIONS)
        except Exception as error:
            # a package that is missing or a host that does not answer, in the words of fsspec; all else (a scheme that nobody knows, one
            # for archives or for what stands around another filesystem) it says of its own classes and of local files
            if isinstance(error, ImportError) or (isinstance(error, OSError) and error.filename is None):
                raise StoreError(f"{self} cannot be reached: {reason(error)}") from None
            raise StoreError(f"{self}: no runs are stored at {scheme}://, but at a URL such as s3://BUCKET/RUN.zarr") from None
        self._fs = fs
        return fs, str(path)

    def exists(self) -> bool:
        """Whether an object, or a folder with one, is there."""
        with reaching(self) as (fs, path):
            return bool(fs.exists(path))

    def size(self) -> int:
        """Bytes of the object. Raises FileNotFoundError if there is none."""
        with reaching(self) as (fs, path):
            return int(fs.info(path)["size"])

    def modified(self) -> float:
        """When the object was last written, in seconds. Raises FileNotFoundError if there is none."""
        with reaching(self) as (fs, path):
            return float(fs.modified(path).timestamp())

    def read_bytes(self, most: int | None = None) -> bytes:
        """The content of the object, or the first `most` bytes. Raises FileNotFoundError if there is none."""
        with reaching(self) as (fs, path):
            return bytes(fs.cat_file(path, 0, most) if most is not None and fs.info(path)["size"] > most else fs.cat_file(path))

    def sizes(self) -> dict[str, int]:
        """{path below this folder: bytes} of all objects in it; empty if there is no such folder."""
        with reaching(self) as (fs, path):
            try:
                objects = fs.find(path, detail=True)
            except FileNotFoundError:
                return {}
        start = path.strip("/") + "/"
        return {key.lstrip("/").removeprefix(start): int(info["size"]) for key, info in objects.items() if info["type"] == "file"}

    def write(self, contents: Mapping[str, bytes]) -> None:
        """Writes objects {path below this folder: content}."""
        with reaching(self) as (fs, path):
            try:
                fs.pipe({f"{path}/{name}": content for name, content in contents.items()})
            except FileNotFoundError as error:
                raise StoreError(f"cannot write into {self}: {error}") from None

    def delete(self, first: str = "") -> None:
        """Deletes all objects in this folder. first: the one to go before the others, if it is there."""
        with reaching(self) as (fs, path):
            if first and fs.exists(f"{path}/{first}"):
                fs.rm_file(f"{path}/{first}")
            if fs.exists(path):
                fs.rm(path, recursive=True)

    def store(self, *, read_only: bool = False) -> Any:
        """The zarr store of this folder."""
        from zarr.storage import FsspecStore

        with reaching(self):
            return FsspecStore.from_url(self.url, storage_options=dict(OPTIONS), read_only=read_only)


@contextmanager
def reaching(place: RemotePath) -> Iterator[tuple[Any, str]]:
    """A context with (filesystem of fsspec, path in it), which turns what a client of an object store raises into one StoreError.

    FileNotFoundError is passed on.
    """
    try:
        yield place.place()
    except (FileNotFoundError, StoreError):
        raise
    except Exception as error:  # each client has exceptions of its own
        raise StoreError(f"cannot reach {place}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """The words of an error on one line, or its type."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def as_place(path: Any) -> Path:
    """A Path, or for the text of a URL the RemotePath that stands for one. Raises StoreError for a URL of nothing."""
    if isinstance(path, RemotePath):
        return cast(Path, path)
    text = os.fspath(path)
    if text.rstrip("/").endswith(":") and "://" in text:
        raise StoreError(f"{text} names no run: give its URL, such as s3://BUCKET/RUN.zarr")
    return cast(Path, RemotePath(text)) if "://" in text else Path(text)


def upload(folder: Path, to: RemotePath, last: str) -> None:
    """Copies all files of a local folder to the URL, the one with the name `last` at the end."""
    names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    names.remove(last)
    for k in range(0, len(names), BATCH):
        to.write({name: (folder / name).read_bytes() for name in names[k : k + BATCH]})
    to.write({last: (folder / last).read_bytes()})
