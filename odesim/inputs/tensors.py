"""Weights in .safetensors files: the header is read and checked, then the bytes of one tensor; nothing of a file is executed.

The format, from https://github.com/huggingface/safetensors: 8 bytes with the length of the header, little-endian; the header, JSON as
{tensor: {"dtype", "shape", "data_offsets": [begin, end]}}, perhaps with a text-to-text "__metadata__"; then all numbers, row by row, which
the offsets, counted from the end of the header, cover without a gap and without an overlap. The file may be a stranger's, so that all of
this is checked before a number is read.
"""

import json
import math
import os
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, no_such

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1",
}  # fmt: skip
"""{its type: numpy's}. BF16 has none: it is the upper half of a float32."""
BRAIN = "BF16"
LONGEST_HEADER = 100_000_000
"""Bytes; the package safetensors refuses longer ones too."""


@dataclass(frozen=True)
class Tensor:
    """Where a tensor is in a file: its type, its shape, and its first byte and the one behind its last, from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class DamagedError(Exception):
    """The file is not in the format; the text says why."""


def read_tensor(path: str, name: str, where: str) -> Array:
    """The tensor `name` of a file as an array of its shape, float32 where it is bfloat16.

    Raises ParamError where there is none, its type is none of numpy's, or the file is damaged; OSError where it cannot be read.
    """
    with open(path, "rb") as file:
        try:
            tensors, start = read_header(file)
            if name not in tensors:
                raise ParamError(f"{where}: {path!r}: {no_such('tensor', name, tensors)}")
            tensor = tensors[name]
            if tensor.dtype not in (*DTYPES, BRAIN):
                known = ", ".join((*DTYPES, BRAIN))
                raise ParamError(f"{where}: tensor {name!r} of {path!r} has the type {tensor.dtype}, and what is read is {known}")
            file.seek(start + tensor.begin)
            data = file.read(tensor.end - tensor.begin)
        except DamagedError as error:
            raise ParamError(f"{where}: {path!r} is not a .safetensors file, or is damaged: {error}") from None
    if tensor.dtype == BRAIN:
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(tensor.shape)
    return np.frombuffer(data, DTYPES[tensor.dtype]).reshape(tensor.shape)


def read_header(file: BinaryIO) -> tuple[dict[str, Tensor], int]:
    """{name: tensor} and where the header ends. Raises DamagedError."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, LONGEST_HEADER):
        raise DamagedError("its header is longer than it")
    try:
        header = json.loads(file.read(length).decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise DamagedError("its header is not JSON") from None
    if not isinstance(header, dict):
        raise DamagedError("its header is no object of JSON")
    header.pop("__metadata__", None)
    tensors = {name: _tensor(name, entry) for name, entry in header.items()}
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin != end:
            raise DamagedError(f"tensor {name[:60]!r} does not begin where the one before it ends")
        end = tensor.end
    if end != size - 8 - length:
        raise DamagedError("it does not end with its last tensor")
    return tensors, 8 + length


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key is there twice")
    return table


def _tensor(name: str, entry: Any) -> Tensor:
    what = f"tensor {name[:60]!r}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise DamagedError(f"{what} has not just dtype, shape and data_offsets")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    whole = isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2
    if not isinstance(dtype, str) or not whole or not all(type(n) is int and n >= 0 for n in (*shape, *offsets)):
        raise DamagedError(f"the shape or the offsets of {what} are not whole numbers from 0")
    begin, end = offsets
    width = 2 if dtype == BRAIN else np.dtype(DTYPES[dtype]).itemsize if dtype in DTYPES else None
    if begin > end or (width is not None and end - begin != width * math.prod(shape)):
        raise DamagedError(f"the bytes of {what} are not those of its shape")
    return Tensor(dtype, tuple(shape), begin, end)
