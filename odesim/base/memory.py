"""Checks before a run that its arrays fit in memory: one sentence instead of a machine that swaps."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from odesim.base.errors import ParamError, counted

LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container: it may be less than the machine has
STATUS = Path("/proc/meminfo")
SMALL = 1 << 26  # bytes; less than this is not checked, because the check takes longer than a short run


def check_saves_fit(rows: int, entries: int, width: int) -> None:
    """Raises ParamError where `rows` saved times, of `entries` numbers with `width` bytes each, do not fit in memory."""
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
    """Raises ParamError where parts that are in memory at the same time do not fit.

    what: the subject of the message. parts: {a phrase: count of numbers}. width: bytes of a number.
    """
    need = width * sum(parts.values())
    if need <= SMALL:
        return
    free = free_bytes()
    if free is not None and need > free:
        largest = max(parts, key=lambda name: parts[name])
        raise ParamError(
            f"{what} would take {need / 1e9:.3g} GB, most of it for {largest}, more than the {free / 1e9:.3g} GB that are free"
        )


def free_bytes() -> int | None:
    """Bytes of memory that this process can still take; None where the system does not say."""
    limits = []
    with suppress(OSError, ValueError):
        limits += [1024 * int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):  # no such file, or `max`
        limits.append(int(LIMIT.read_text()))
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)
