"""A run in the rescaled clock s: integrated to the blow-up or to the end of the span, and told in the time t again.

The problem is that of odesim.symbolic.clock: the last component is t, and two events of its own end a run. How long it is in s is
not known beforehand, so that saved states come from a second run: the same steps, the same bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odesim.arrays import Array
from odesim.solve.found import Events
from odesim.solve.integrate import integrate_problem
from odesim.solve.laws import CLAUSE, Laws, broken, with_broken
from odesim.solve.problem import Problem, Raw, Status
from odesim.wording import many

LONGEST = 1e15
"""The span in s: more than any run takes."""
TABLE = 400
"""Points of t(s) from which saved times are looked up."""
LOOSER = (10.0, 100.0)
"""The tolerances of the runs that a blow-up time is compared with, in units of its own."""
NEWTON = 12


@dataclass(frozen=True)
class Rescaled:
    """A run told in t. blow_up: its time and the error estimate of that, None where it does not blow up."""

    raw: Raw
    blow_up: tuple[float, float] | None


@dataclass(frozen=True)
class Clock:
    """A problem in s, and how it is integrated. blow_up, end: the names of its own events; t1: the end of the span in t.

    nothing: the time that is left where a blow-up counts as reached, in units of the time since the start.
    """

    problem: Problem
    t0: float
    t1: float
    blow_up: str
    end: str
    nothing: float

    def integrate(self, grid: "Array | int", options: Mapping[str, Any], method: str) -> Rescaled:
        """The run, kept at the times grid (T,), or at that many points even in s, which are even in nothing else."""
        first = self._run(None, options, method)
        # the laws were watched: the runs that follow take the same steps, or are for an estimate
        return replace(self, problem=replace(self.problem, laws=None))._told(first, self.problem.laws, grid, {**options, "progress": None})

    def _told(self, first: Raw, laws: Laws | None, grid: "Array | int", options: Mapping[str, Any]) -> Rescaled:
        """The first run, in t."""
        status, t_last = self._ended(first), float(first.y_last[-1])
        s_last = first.t_last
        if status is Status.OK:
            t_last = self.t1
        if isinstance(grid, int):
            s, t = np.linspace(0.0, s_last, grid), None
        else:
            t = grid[grid <= t_last]
            s = np.where(t >= t_last, s_last, 0.0)
            between = (t > self.t0) & (t < t_last)
            s[between] = self._places(t[between], s_last, first, options)
        flagged = [law.name for law in broken(laws, first.worst)]
        marks = np.concatenate([*(found.t for found in first.events.values()), [first.worst[name][1] for name in flagged]])
        rows = self._rows(np.unique(np.concatenate([s, marks])), first, options)
        y = np.array([rows[float(at)] for at in s]).reshape(len(s), len(first.y_last))
        times = y[:, -1].astype(np.float64) if t is None else t
        times, y = self._closed(times, y, t_last, first.y_last, t is None or status is not Status.OK)
        blow_up = self._blow_up(first, options) if status is Status.BLOW_UP else None
        events = {
            name: Events(np.array([float(rows[float(at)][-1]) for at in found.t]), found.indices)
            for name, found in first.events.items()
            if name not in (self.blow_up, self.end)
        }
        events[self.blow_up] = Events(np.array([blow_up[0]] if blow_up else []), None)
        worst = {n: (off, float(rows[s_][-1]) if n in flagged else np.nan) for n, (off, s_) in first.worst.items()}
        message = with_broken(self._message(first, status, t_last, blow_up), laws, worst)
        said: dict[str, Any] = {"status": status, "message": message, "auto": first.auto.replace(" t = ", " s = "), "worst": worst}
        raw = replace(first, t=times, y=y[:, :-1], events=events, t_last=t_last, y_last=first.y_last[:-1], **said)
        return Rescaled(raw, blow_up)

    def _run(self, save: Array | None, options: Mapping[str, Any], method: str) -> Raw:
        return integrate_problem(self.problem, method=method, save=np.zeros(1) if save is None else save, **options)

    def _rows(self, s: Array, first: Raw, options: Mapping[str, Any]) -> dict[float, Array]:
        """{s: state (n,)} of the first run at these s, both of its ends, which it has itself, and what else is asked for."""
        found = {0.0: first.y[0], first.t_last: first.y_last}
        if not set(s.tolist()) <= set(found):
            problem = self.problem if first.status is not Status.INTERRUPTED else replace(self.problem, t1=first.t_last)
            run = replace(self, problem=problem)._run(s, options, first.method)
            found = {**dict(zip(run.t.tolist(), run.y, strict=True)), **found}
        return found

    def _ended(self, run: Raw) -> Status:
        """The status of a run in s, in t."""
        if run.status is Status.EVENT and len(run.events[self.blow_up]):
            return Status.BLOW_UP
        return Status.OK if run.status is Status.EVENT and len(run.events[self.end]) else run.status

    def _blow_up(self, run: Raw, options: Mapping[str, Any]) -> tuple[float, float]:
        """(t*, its error).

        Where the run stops the time left, (1/g) / (d ln g/ds), is `nothing` of the time passed: t* is the time there and that. It
        is wrong by the error of the integration of t, which goes with the tolerance: from runs at 10 and 100 times the tolerance it
        is about a ninth of the difference to the first, and of a tenth of that to the second, of which the larger is taken whole;
        beside that by rounding, and by what is left.
        """
        left = self.nothing * (float(run.y_last[-1]) - self.t0)
        found = float(run.y_last[-1]) + left
        error = left + 4 * float(np.finfo(run.y_last.dtype).eps) * abs(found)
        differences = []
        for factor in LOOSER:
            other = self._run(None, looser(options, factor), run.method)
            differences.append(abs(float(other.y_last[-1]) - found) if self._ended(other) is Status.BLOW_UP else np.inf)
        return found, error + max(differences[0], differences[1] * LOOSER[0] / LOOSER[1])

    def _places(self, t: Array, s_last: float, first: Raw, options: Mapping[str, Any]) -> Array:
        """The s (T,) at which the clock shows the times t (T,), by Newton's method on runs that are kept at the last guesses."""
        if not len(t) or s_last == 0:
            return np.zeros(len(t))
        table = self._run(np.linspace(0.0, s_last, TABLE), options, first.method)
        known = table.y[:, -1].astype(np.float64)
        keep = np.append(True, np.diff(np.maximum.accumulate(known)) > 0)
        s = np.interp(t, known[keep], table.t[keep])
        small = 4 * float(np.finfo(first.y_last.dtype).eps) * np.maximum(np.abs(t), abs(self.t1 - self.t0))
        slope = np.empty_like(first.y_last)
        for _ in range(NEWTON):
            places, back = np.unique(s, return_inverse=True)
            run = self._run(places, options, first.method)
            off = t - run.y[: len(places), -1][back].astype(np.float64)
            if np.all(np.abs(off) <= small):
                break
            tick = np.empty(len(places))
            for k, (at, row) in enumerate(zip(places, run.y, strict=False)):
                self.problem.rhs(float(at), np.ascontiguousarray(row), slope)
                tick[k] = slope[-1]
            moved = s + off / np.where(tick > 0, tick, np.inf)[back]
            s = np.clip(np.maximum.accumulate(moved), 0.0, s_last)
        return s

    @staticmethod
    def _closed(times: Array, y: Array, t_last: float, y_last: Array, with_end: bool) -> tuple[Array, Array]:
        """Saved times that increase, and their rows; near a blow-up many round to one. with_end: the last time reached is the last."""
        if with_end:
            before = times < t_last
            times, y = np.append(times[before], t_last), np.concatenate([y[before], y_last[None]])
        keep = np.append(True, np.diff(times) > 0)[: len(times)]
        return times[keep], y[keep]

    def _message(self, run: Raw, status: Status, t_last: float, blow_up: tuple[float, float] | None) -> str:
        """One sentence in t."""
        steps = f"{many(run.stats['steps'], 'step')} of the rescaled clock"
        if blow_up is not None:
            return f"the solution runs to infinity at t = {blow_up[0]:.12g}, to within {blow_up[1]:.1g}; {steps}"
        if status is Status.OK:
            return f"reached t = {t_last:.9g} in {steps}"
        return f"{run.message.partition(CLAUSE)[0].replace(' t = ', ' s = ')} (rescaled clock; t = {t_last:.9g})"


def looser(options: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Options of a run whose tolerances, or else whose fixed step, are larger."""
    if options.get("step") is not None:
        return {**options, "step": options["step"] * (2 if factor == LOOSER[0] else 4)}
    return {**options, "rtol": options["rtol"] * factor, "atol": options["atol"] * factor}
