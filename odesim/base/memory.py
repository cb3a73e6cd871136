"""What a run takes in memory, asked before it begins: one sentence in place of a machine that swaps."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from odesim.errors import ParamError, counted

LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container, which may be less than the machine has
STATUS = Path("/proc/meminfo")
SMALL = 1 << 26  # bytes that nobody asks about: asking takes longer than a short run


def check_room(rows: int, entries: int, width: int) -> None:
    """Raises ParamError where rows saved times of entries numbers, of width bytes each, do not fit in memory."""
    need = rows * (entries * width + 8)
    if need <= SMALL:
        return
    free = free_bytes()
    if free is not None and need > free:
        raise ParamError(
            f"{counted(rows, 'saved time')} of {counted(entries, 'number')} would take {need / 1e9:.3g} GB, "
            f"more than the {free / 1e9:.3g} GB that are free"
        )


def check_fits(what: str, parts: Mapping[str, int], width: int) -> None:
    """Raises ParamError where what, whose parts {a phrase: numbers} of width bytes each are in memory at once, does not fit."""
    need = width * sum(parts.values())
    if need <= SMALL:
        return
    free = free_bytes()
    if free is not None and need > free:
        most = max(parts, key=lambda name: parts[name])
        raise ParamError(f"{what} would take {need / 1e9:.3g} GB, most of it for {most}, more than the {free / 1e9:.3g} GB that are free")


def free_bytes() -> int | None:
    """Bytes that this process could still take; None where the system does not say."""
    found = []
    with suppress(OSError, ValueError):
        found += [1024 * int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # no such file, or `max`
        found.append(int(LIMIT.read_text()))
    if not found and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)
