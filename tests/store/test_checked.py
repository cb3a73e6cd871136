"""Chunks of a stored run that are not what the metadata of their array say: found before they are decoded, in lazy arrays too."""

import json
import pickle
import re
import shutil
import struct
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
import xarray as xr
from numcodecs.blosc import Blosc

import odesim
from odesim.base.errors import StoreError
from odesim.store.guard import CHECKSUM
from tests.support.strangers import READS, check_reading, copy, edit, make_runs

LARGEST = (1 << 31) - 64  # bytes that blosc can promise in a file of any size
MOST = 1 << 26


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """{kind: a good run}, in the current folder."""
    with pytest.MonkeyPatch.context() as patch:
        yield make_runs(tmp_path_factory.mktemp("runs"), patch)


def promised(size: int, content: bytes) -> bytes:
    """A compressed chunk whose header says that so many bytes come out of it."""
    return content[:4] + struct.pack("<I", size) + content[8:]


def size_of(content: bytes) -> int:
    return int(struct.unpack("<4xI", content[:8])[0])


def with_checksum(content: bytes) -> bytes:
    """A chunk as a stranger writes it, whose checksum is right whatever it holds."""
    return content + int(google_crc32c.value(content)).to_bytes(4, "little")


# what becomes of the content of a compressed chunk before its checksum
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a promise of 2 GB": lambda old: promised(LARGEST, old),
    "a promise of a byte": lambda old: promised(1, old),
    "another chunk, larger": lambda old: bytes(Blosc("zstd").encode(np.zeros(size_of(old) + 8, np.uint8))),
    "another chunk, smaller": lambda old: bytes(Blosc("zstd").encode(np.zeros(max(size_of(old) - 8, 1), np.uint8))),
    "cut": lambda old: old[:-1],
    "cut in its header": lambda old: old[:7],
    "longer": lambda old: old + b"?",
    "letters": lambda old: b"odesim" * len(old),
    "other data": lambda old: old[:20] + bytes(255 - byte for byte in old[20:]),
}


def chunks_of(run: Path) -> list[Path]:
    """The files of all chunks of a run."""
    return sorted(file for file in run.rglob("*") if file.is_file() and "c" in file.relative_to(run).parts)


def peak(call: Callable[[], object]) -> int:
    """The most bytes that Python and its packages allocated at once for call()."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["integration", "ensemble", "training"])
def test_each_chunk_is_held_against_its_array(kind, damage, runs, tmp_path):
    """Each chunk in turn is damaged after the run was opened: what is then read is right, or one StoreError, and takes no memory."""
    run = copy(runs[kind], tmp_path / "run.zarr")
    wanted, files, found = odesim.open_run(run).load(), chunks_of(run), 0
    for file in files:
        content = file.read_bytes()
        if len(content) < 24:  # of an older zarr: not compressed
            continue
        opened = odesim.open_run(run)
        file.write_bytes(with_checksum(DAMAGES[damage](content[:-4])))

        def read(opened: xr.Dataset = opened) -> None:
            nonlocal found
            try:
                assert opened.load().identical(wanted) or damage == "other data"  # some of which can be decompressed
            except StoreError as error:
                assert "is damaged" in str(error)
                found += 1

        assert peak(read) < MOST
        file.write_bytes(content)
    assert found >= len(files) // 3 or damage == "other data"  # parameters and the like are not read


@pytest.mark.parametrize("kind", ["integration", "ensemble", "training"])
def test_a_flipped_bit_is_no_number(kind, runs, tmp_path):
    """One bit in each chunk in turn: every one that is read is a sentence with the name of its file, and of members where it has some."""
    run = copy(runs[kind], tmp_path / "run.zarr")
    wanted, seen = odesim.open_run(run).load(), 0
    for k, file in enumerate(chunks_of(run)):
        content = bytearray(file.read_bytes())
        content[-5 - k % 8] ^= 1 << k % 8  # a number stands at the end of a chunk
        content_before = file.read_bytes()
        file.write_bytes(content)
        try:
            assert odesim.open_run(run).load().identical(wanted)
        except StoreError as error:
            seen += 1
            assert file.relative_to(run).as_posix() in str(error)
            name = file.relative_to(run).parts[0]
            assert ("members" in str(error)) == (kind == "ensemble" and name not in ("time", "points"))
        else:
            name = file.relative_to(run).parts[0]
            assert name not in wanted.variables
        file.write_bytes(content_before)
    assert seen >= 2


@pytest.mark.parametrize("kind", ["integration", "ensemble", "training"])
def test_a_run_without_checksums_opens(kind, runs, tmp_path):
    """A run of an older version, whose chunks have no checksum, holds the same numbers."""
    run = copy(runs[kind], tmp_path / "run.zarr")
    wanted = odesim.open_run(run).load()
    for file in chunks_of(run):
        file.write_bytes(file.read_bytes()[:-4])
    for file in run.rglob("zarr.json"):
        edit(file, lambda metadata: {**metadata, **({"codecs": metadata["codecs"][:-1]} if "codecs" in metadata else {})})
    assert odesim.open_run(run).load().identical(wanted)


@pytest.mark.parametrize("kind", ["integration", "ensemble", "training"])
def test_no_digit_of_a_manifest_is_another(kind, runs, tmp_path):
    """Numbers in the metadata of the run and of each array, one digit of which is changed: not one is read."""
    run = copy(runs[kind], tmp_path / "run.zarr")
    for file in sorted(run.rglob("zarr.json")):
        text = file.read_text()
        assert CHECKSUM in json.loads(text)["attributes"]
        digits = [found.end() - 1 for found in re.finditer(r"[\s\[:,-][\d.]*[1-8]", text)]
        for place in digits[:: max(1, len(digits) // 6)]:
            changed = f"{text[:place]}{int(text[place]) + 1}{text[place + 1 :]}"
            file.write_text(changed)
            if json.loads(changed) != json.loads(text):  # the 17th digit may not matter
                with pytest.raises(StoreError):
                    odesim.open_run(run)
        file.write_text(text)
    odesim.open_run(run)


@pytest.mark.parametrize("command", READS)
@pytest.mark.parametrize("kind", ["integration", "ensemble", "training"])
def test_no_command_takes_what_a_chunk_promises(kind, command, runs):
    """All chunks promise 2 GB: every command ends with a sentence, or does not need them."""
    run = copy(runs[kind], Path("run.zarr"))
    shutil.rmtree("good.zarr", ignore_errors=True)
    shutil.copytree(runs[kind], "good.zarr")
    for file in chunks_of(run):
        file.write_bytes(with_checksum(promised(LARGEST, file.read_bytes()[:-4])))
    assert peak(lambda: check_reading(command, "run.zarr", calls=None)) < 4 * MOST


def test_a_lazy_run_travels(runs):
    """A lazy Dataset that was pickled checks its chunks where it arrives."""
    run = copy(runs["integration"], Path("run.zarr"))
    opened = pickle.loads(pickle.dumps(odesim.open_run(run)))
    assert opened.compute().identical(odesim.open_run(run).load())
    for file in chunks_of(run):
        file.write_bytes(with_checksum(promised(LARGEST, file.read_bytes()[:-4])))
    with pytest.raises(StoreError, match="does not hold"):
        opened.compute()


def renamed(names: Any, metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata of an array with other names of its axes."""
    return {**metadata, "dimension_names": names}


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", ["integration", "ensemble", "training"])
def test_axes_of_other_names(kind, runs):
    """The axes of each array in turn have other names: rerun takes it for what it is, or says that the run is damaged."""
    for file in sorted(runs[kind].rglob("zarr.json")):
        rank = len(json.loads(file.read_text()).get("shape", ()))
        for names in (None, [None] * rank, ["time", "", "x"], ["seed", "x", "y"], [f"x{k}" for k in range(rank)]):
            if rank and (names is None or len(names) == rank):
                run = copy(runs[kind], Path("run.zarr"))
                edit(run / file.relative_to(runs[kind]), partial(renamed, names))
                check_reading("rerun", "run.zarr")
