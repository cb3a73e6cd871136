"""The address table of a bound system, through which generated code finds sizes, parameters and working memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array, aligned, arena
from odesim.base.device import TURNED, gemm_address
from odesim.ir.sizes import extents
from odesim.targets.blocks import BLOCK, LATE
from odesim.targets.numba_module import ModuleText
from odesim.targets.numba_text import ROWS, TableEntry


@dataclass(frozen=True)
class AddressTable:
    """An address table and the memory that it points to.

    entries: int64, one for each entry of the ModuleText. references: the arrays behind the addresses, kept alive.
    arrays: {parameter: its array}. blas: whether BLAS computes products.
    """

    entries: Array
    references: tuple[Array, ...]
    arrays: dict[str, Array]
    blas: bool

    @property
    def address(self) -> int:
        return int(self.entries.ctypes.data)


def make_table(
    text: ModuleText, sizes: Mapping[str, int], params: Mapping[str, Any], dtype: str, length: int, longest: int
) -> AddressTable:
    """The address table for these numbers. length: of the flat state. longest: the length of the longest axis."""
    blocks = -(-longest // BLOCK)
    lengths = {"length": length, "blocks": blocks}
    width = 8 if dtype == "float64" else 4
    scratch = _scratch(text, width, length, blocks)
    byte_sizes = {}
    for n, entry in enumerate(text.entries):
        if entry.kind == "scratch":
            byte_sizes[n] = scratch[entry.name]
        elif entry.kind == "temporary":
            byte_sizes[n] = prod(extents(entry.shape, sizes)) * width
    memory, starts = arena(byte_sizes)
    base = memory.ctypes.data
    large = any(prod(extents(product, sizes)) > TURNED for product in text.products)
    table, references, arrays = np.empty(len(text.entries), np.int64), [memory], dict[str, Array]()
    for n, entry in enumerate(text.entries):
        if entry.kind in lengths:
            table[n] = lengths[entry.kind]
        elif entry.kind == "size":
            table[n] = sizes[entry.name]
        elif entry.kind == "blas":
            table[n] = gemm_address(dtype) if large else 0
        elif n in starts:
            table[n] = base + starts[n]
        else:
            a = _parameter_array(entry, text, params, dtype)
            references.append(a)
            arrays[entry.name] = a
            table[n] = a.ctypes.data
    return AddressTable(table, tuple(references), arrays, large)


def _parameter_array(entry: TableEntry, text: ModuleText, params: Mapping[str, Any], dtype: str) -> Array:
    """The array of a parameter, or one array of all scalar parameters."""
    if entry.kind == "numbers":
        return np.array([params[name] for name in text.numbers], np.float64)
    return aligned(np.ascontiguousarray(params[entry.name], np.int64 if entry.integer else dtype), turn=len(entry.name))


def _scratch(text: ModuleText, width: int, length: int, blocks: int) -> dict[str, int]:
    """{scratch array: its size in bytes}."""
    return {
        "work_": 8 * text.scratch * BLOCK,
        "part_": 8 * text.scratch * blocks,
        "scales_": 8 * ROWS * text.scales,
        "weights_": 8 * ROWS,
        "early_": 8 * ROWS,
        "late_": 8 * LATE,
        "amounts_": 8 * LATE,
        "base_": width * BLOCK,
        "state_": width * (BLOCK if text.local else length),
    }
