"""The address table of a bound system: sizes, parameters and working memory, as generated code finds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array, aligned, arena
from odesim.codegen.extents import extents
from odesim.codegen.loops.blocks import BLOCK, LATE
from odesim.codegen.loops.kernels import ROWS, TableEntry
from odesim.codegen.loops.module import ModuleText


@dataclass(frozen=True)
class AddressTable:
    """entries (slots,) int64; kept: the arrays that its addresses point to, and the memory that others share; arrays: those of parameters
    by name."""

    entries: Array
    kept: tuple[Array, ...]
    arrays: dict[str, Array]

    @property
    def address(self) -> int:
        return int(self.entries.ctypes.data)


def make_table(
    text: ModuleText, sizes: Mapping[str, int], params: Mapping[str, Any], dtype: str, length: int, longest: int
) -> AddressTable:
    """The table for these numbers; length: of the flat state, longest: of all axes."""
    blocks = -(-longest // BLOCK)
    plain = {"length": length, "blocks": blocks}
    width = 8 if dtype == "float64" else 4
    scratch = _scratch(text, width, length, blocks)
    wanted = {}
    for place, slot in enumerate(text.slots):
        if slot.kind == "scratch":
            wanted[place] = scratch[slot.name]
        elif slot.kind == "temporary":
            wanted[place] = prod(extents(slot.shape, sizes)) * width
    memory, starts = arena(wanted)
    base = memory.ctypes.data
    entries, kept, arrays = np.empty(len(text.slots), np.int64), [memory], dict[str, Array]()
    for place, slot in enumerate(text.slots):
        if slot.kind in plain:
            entries[place] = plain[slot.kind]
        elif slot.kind == "size":
            entries[place] = sizes[slot.name]
        elif place in starts:
            entries[place] = base + starts[place]
        else:
            a = _numbers(slot, text, params, dtype)
            kept.append(a)
            arrays[slot.name] = a
            entries[place] = a.ctypes.data
    return AddressTable(entries, tuple(kept), arrays)


def _numbers(slot: TableEntry, text: ModuleText, params: Mapping[str, Any], dtype: str) -> Array:
    """The array of a parameter, or of all that are one number."""
    if slot.kind == "numbers":
        return np.array([params[name] for name in text.numbers], np.float64)
    return aligned(np.ascontiguousarray(params[slot.name], np.int64 if slot.integer else dtype), turn=len(slot.name))


def _scratch(text: ModuleText, width: int, length: int, blocks: int) -> dict[str, int]:
    """Bytes of each scratch array."""
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
