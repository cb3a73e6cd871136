"""Spans and save times: the interval of a run and the times at which it is saved."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from odesim.base.errors import ParamError, apart, value_text
from odesim.inputs.grammar import parse_number, parse_numbers, show_text

if TYPE_CHECKING:
    from odesim.base.arrays import Array

MOST = 10**8  # save times; more is a typing mistake
# t0 has no logarithm: a geometric grid begins at t0 and goes on from there
FIRST = 1e-4  # of the span: the first time after t0 on a logarithmic grid


@dataclass(frozen=True)
class Save:
    """The times to save: `count` times with both ends, evenly or (log) geometrically spaced, or the listed times (T,)."""

    count: int = 0
    log: bool = False
    times: tuple[float, ...] = ()
    # of a Map, where nobody chose: each of so many updates is saved, and of more as many as every_phase() has, so that what alternates
    # is seen to
    updates: int = 0

    def __len__(self) -> int:
        """The number of saved times."""
        return len(self.times) or self.count


def parse_span(text: str) -> tuple[float, float]:
    """The span (t0, t1) written as T0:T1. Raises ParamError unless both are finite and t1 is later."""
    ends = text.split(":")
    if len(ends) != 2:
        raise ParamError(f"--span takes T0:T1, as in --span 0:10, not {show_text(text)}")
    return check_span(parse_numbers(ends, "--span"), "--span")


def check_span(span: Any, where: str = "span") -> tuple[float, float]:
    """The span (t0, t1) as floats. Raises ParamError unless it is two finite numbers, the second one larger."""
    try:
        t0, t1 = map(float, span)
    except (TypeError, ValueError, OverflowError):
        raise ParamError(f"{where} takes two numbers (t0, t1), not {value_text(span)}") from None
    if not (math.isfinite(t0) and math.isfinite(t1) and math.isfinite(t1 - t0)):
        raise ParamError(f"{where} {t0:g}:{t1:g} is not finite")
    if not t1 > t0:
        raise ParamError("{} {}:{} does not go forward: the end must be later than the start".format(where, *apart(t0, t1)))
    return t0, t1


def parse_save(text: str, where: str = "--save") -> Save:
    """The save times of a text: N (evenly spaced), log:N (geometric) or T1,T2,... (increasing; one time as T,). Raises ParamError."""
    s = text.strip()
    head, colon, tail = s.partition(":")
    if colon and head.strip() != "log":
        raise ParamError(f"{where} {show_text(s)}: write N, log:N or T1,T2,...")
    if colon or "," not in s:
        n = parse_number(tail if colon else s, where, "; write N, log:N or T1,T2,...")
        if isinstance(n, int):
            return Save(_check_count(n, f"{where} {s[:60]}"), log=bool(colon))
        alone = "" if colon else f"; the one time {s[:60]} is written with a comma, {where} {s[:60]},"
        raise ParamError(f"{where} {s[:60]}: a number of times is a whole number, without a point or exponent{alone}")
    parts = s.split(",")
    if len(parts) == 2 and not parts[1].strip():
        parts = parts[:1]
    return Save(times=_check_times(parse_numbers(parts, where), where))


def save_times(save: Any, t0: float, t1: float, *, whole: bool = False) -> "Array":
    """The times (T,) to save, increasing, within [t0, t1].

    save: None (both ends), a number N of evenly spaced times, a text such as "log:200", a Save, or the times themselves (T,).
    A time beyond an end by rounding is the end. A logarithmic grid is t0, then N - 1 geometric times from t0 + 1e-4 (t1 - t0) to t1.
    whole: only whole numbers, to which a grid is rounded, each once; a logarithmic one then begins with t0 + 1 at least.
    Raises ParamError.
    """
    import numpy as np

    from odesim.base.arrays import every_phase

    save = to_save(save)
    if not isinstance(save, Save) or save.times:
        times = _inside("save", np.array(save.times if isinstance(save, Save) else save), t0, t1)
        if whole and np.any(times != np.floor(times)):
            raise ParamError(f"save: {times[times != np.floor(times)][0]:g} is no time of a Map, which has whole numbers of updates")
        return times
    if save.count == 2 and not whole:  # what nobody asked for otherwise: both ends, also of a span too short for a grid
        return np.array([t0, t1])
    if save.log:
        first = max(FIRST * (t1 - t0), 1.0) if whole else FIRST * (t1 - t0)
        later = t0 + np.geomspace(first, t1 - t0, save.count - 1)
        grid = np.concatenate([[t0], later])
    else:
        every = whole and save.updates
        grid = t0 + every_phase(int(t1 - t0) + 1, save.updates) if every else np.linspace(t0, t1, save.count)
    grid[-1] = t1
    if whole:
        return np.unique(np.rint(grid))
    # at t0 = 1.7e9 neighbouring floats are 2e-7 apart
    if not np.all(np.diff(grid) > 0):
        raise ParamError(f"save: the span {t0:g}:{t1:g} is too short for {save.count} different times")
    return grid


def stop_times(stop_at: Any, t0: float, t1: float) -> tuple[float, ...]:
    """The times at which a step has to end, increasing, from a number, a list or an array. Raises ParamError."""
    if isinstance(stop_at, tuple) and not stop_at:
        return ()
    import numpy as np

    from odesim.base.arrays import on_host

    try:
        times = np.atleast_1d(np.asarray(on_host(stop_at), float))
    except (TypeError, ValueError, OverflowError):
        times = np.empty((0, 0))
    ParamError.unless(times.ndim == 1 and not isinstance(stop_at, str), "stop_at takes a time or a list of times", stop_at)
    return tuple(_inside("stop_at", np.unique(times), t0, t1).tolist())


def _inside(where: str, times: "Array", t0: float, t1: float) -> "Array":
    """Increasing times (T,) within [t0, t1], to which those beyond an end by rounding are moved. Raises ParamError."""
    import numpy as np

    from odesim.base.arrays import rounding, to_ends

    times = to_ends(times, t0, t1)
    outside = times[~((times >= t0) & (times <= t1))]
    for end, a, b in ((t0, times[1:2], times[:1]), (t1, times[-2:-1], times[-1:])):
        if outside.size and np.any((a == end) & (np.abs(b - end) <= rounding(t0, t1))):
            raise ParamError("{}: {} and {} are one time but for rounding, an end of the span".format(where, *apart(*sorted((a[0], b[0])))))
    if outside.size:
        raise ParamError("{}: {} lies outside the span {}:{}".format(where, *apart(outside[0], t0, t1)))
    return times


def to_save(save: Any) -> "Save | Array":
    """The argument `save` as a Save or an array of times (T,); its len() is the number of times. Raises ParamError."""
    if save is None:
        return Save(2)
    if isinstance(save, Save):
        return save
    import numpy as np

    from odesim.base.arrays import on_host

    save = on_host(save)
    if isinstance(save, str):
        return parse_save(save, "save")
    try:
        array = np.asarray(save, float)
    except (TypeError, ValueError, OverflowError):
        raise ParamError(f"save takes None, a number of times or the times, not {value_text(save)}") from None
    if array.ndim == 0:
        if not isinstance(save, int | np.integer) or isinstance(save, bool):
            raise ParamError(f"save takes a whole number of times or a list of times, not {value_text(save)}")
        return Save(_check_count(int(save), f"save {save}"))
    if array.ndim > 1 or not array.size:
        raise ParamError(f"save takes one row of times, not an array of shape {array.shape}")
    late = np.flatnonzero(~(np.isfinite(array) & np.append(True, array[1:] > array[:-1])))
    if late.size:
        _check_times(array[max(late[0] - 1, 0) : late[0] + 1].tolist(), "save")
    return array


def _check_count(n: int, where: str) -> int:
    if not 2 <= n <= MOST:
        raise ParamError(f"{where}: there must be at least 2 times, the start and the end, and at most {MOST}")
    return n


def _check_times(times: Sequence[float], where: str) -> tuple[float, ...]:
    for t in times:
        if not math.isfinite(t):
            raise ParamError(f"{where}: {t} is not a finite time")
    for a, b in pairwise(times):
        if not b > a:
            raise ParamError("{}: times must increase; {} follows {}".format(where, *apart(b, a)))
    return tuple(times)
