"""A run in the rescaled clock s: integrated to the blow-up or the end of the span, and reported in the time t.

The problem is that of odesim.transforms.clock: the last component is t, and two events of its own end a run. How long it is in s is
not known beforehand, so that saved states come from a second run: the same steps, the same bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.base.memo import IdentityKey, Memo
from odesim.base.options import RunOptions
from odesim.inputs.bind import Numbers
from odesim.run.integrate import integrate_problem
from odesim.run.problem import parts_of, switched_problem
from odesim.stepper.codes import Status
from odesim.stepper.laws import CLAUSE, Laws, broken, with_broken
from odesim.stepper.methods import METHODS
from odesim.stepper.occurrences import Events
from odesim.stepper.problem import Problem, Raw
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.stabilised_methods import STABILISED
from odesim.symbolic.system import System
from odesim.targets.compiled import CompiledRHS
from odesim.transforms.clock import BLOW_UP, BLOW_UP_MARGIN, CLOCK, END, LONGEST, START, STOP, rescaled_clock_system

TABLE = 400
"""Points of t(s) from which saved times are looked up."""
LOOSER = (10.0, 100.0)
"""The tolerances of the runs that a blow-up time is compared with, in units of its own."""
LONGER = (2.0, 4.0)
"""Their fixed steps, where it has one."""
SAFETY = 2.0
"""Factor on an error that is estimated from two runs: of some 700 random systems 99 in 100 are then below the estimate."""
NEWTON = 12
AHEAD, PARTS, REST = 30, 20, 1e-3
"""How much later, in s, the solution is looked at again, in steps of 1/20; the part of its speed that counts as rest."""
_CLOCKS: Memo[System] = Memo()


@dataclass(frozen=True)
class Rescaled:
    """The results in t. blow_up: its time and the error estimate, None without a blow-up."""

    raw: Raw
    blow_up: tuple[float, float] | None


@dataclass(frozen=True)
class RescaledRun:
    """A problem in s with its options. blow_up, end: names of its own events; t1: the end of the span in t.

    nothing: the time that is left where a blow-up counts as reached, in units of the time since the start.
    """

    problem: Problem
    t0: float
    t1: float
    blow_up: str = BLOW_UP
    end: str = END
    nothing: float = BLOW_UP_MARGIN

    def integrate(self, grid: "Array | int", options: Mapping[str, Any], method: str) -> Rescaled:
        """The run, kept at the times grid (T,), or at that many points even in s, which are even in nothing else."""
        first = self._run(None, options, method)
        # the laws were watched: the runs that follow take the same steps, or are for an estimate
        return replace(self, problem=replace(self.problem, laws=None))._result(
            first, self.problem.laws, grid, {**options, "progress": None}
        )

    def _result(self, first: Raw, laws: Laws | None, grid: "Array | int", options: Mapping[str, Any]) -> Rescaled:
        """The results of the first run, in t."""
        status, t_last = self._ended(first), float(first.y_last[-1])
        if status is Status.BLOW_UP and comes_to_rest(self.problem, first.t_last, first.y_last):
            status = Status.STEP_TOO_SMALL
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
        marks = np.concatenate([*(event.t for event in first.events.values()), [first.worst[name][1] for name in flagged]])
        rows = self._rows(np.unique(np.concatenate([s, marks])), first, options)
        y = np.array([rows[float(at)] for at in s]).reshape(len(s), len(first.y_last))
        times = y[:, -1].astype(np.float64) if t is None else t
        times, y = self._closed(times, y, t_last, first.y_last, t is None or status is not Status.OK)
        blow_up = self._blow_up(first, options) if status is Status.BLOW_UP else None
        events = {
            name: Events(np.array([float(rows[float(at)][-1]) for at in event.t]), event.indices, event.below)
            for name, event in first.events.items()
            if name not in (self.blow_up, self.end)
        }
        events[self.blow_up] = Events(np.array([blow_up[0]] if blow_up else []), None)
        worst = {n: (off, float(rows[s_][-1]) if n in flagged else np.nan) for n, (off, s_) in first.worst.items()}
        message = with_broken(self._message(first, status, t_last, blow_up), laws, worst)
        words: dict[str, Any] = {"status": status, "message": message, "auto": first.auto.replace(" t = ", " s = "), "worst": worst}
        raw = replace(first, t=times, y=y[:, :-1], events=events, t_last=t_last, y_last=first.y_last[:-1], **words)
        return Rescaled(raw, blow_up)

    def _run(self, save: Array | None, options: Mapping[str, Any], method: str) -> Raw:
        return integrate_problem(self.problem, method=method, save=np.zeros(1) if save is None else save, **options)

    def _rows(self, s: Array, first: Raw, options: Mapping[str, Any]) -> dict[float, Array]:
        """{s: state (n,)} of the first run at these s, at both of its ends, and at further s requested."""
        rows = {0.0: first.y[0], first.t_last: first.y_last}
        if not set(s.tolist()) <= set(rows):
            problem = self.problem if first.status is not Status.INTERRUPTED else replace(self.problem, t1=first.t_last)
            run = replace(self, problem=problem)._run(s, options, first.method)
            rows = {**dict(zip(run.t.tolist(), run.y, strict=True)), **rows}
        return rows

    def _ended(self, run: Raw) -> Status:
        """The status in t of a run in s."""
        if run.status is Status.EVENT and len(run.events[self.blow_up]):
            return Status.BLOW_UP
        if run.status is Status.OK:  # all of s is used up and neither event has come: t stands still, its ticks are below its rounding
            return Status.STEP_TOO_SMALL
        return Status.OK if run.status is Status.EVENT and len(run.events[self.end]) else run.status

    def _blow_up(self, run: Raw, options: Mapping[str, Any]) -> tuple[float, float]:
        """The blow-up time t*, and its error, which is infinite where runs that are less exact do not blow up.

        Where the run stops, the time left, (1/g) / (d ln g/ds), is `nothing` of the time passed. t* is the sum of the two. Its error has
        three parts: the time left, the rounding of t, at most half a unit a step, and the error of the integration. Two runs that are less
        exact give an estimate of the last one.
        """
        left = self.nothing * (float(run.y_last[-1]) - self.t0)
        time = float(run.y_last[-1]) + left
        rounding = (4 + 0.5 * run.stats["steps"]) * float(np.finfo(run.y_last.dtype).eps) * abs(time)
        fixed = options.get("step") is not None
        off = []
        for factor in LONGER if fixed else LOOSER:
            other = self._run(None, looser(options, factor), run.method)
            off.append(float(other.y_last[-1]) - time if self._ended(other) is Status.BLOW_UP else np.inf)
        return time, left + rounding + (of_steps(off[0], off[1], order_of(run.method)) if fixed else of_tolerances(off[0], off[1]))

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
        steps = f"{counted(run.stats['steps'], 'step')} of the rescaled clock"
        if blow_up is not None:
            known = (
                f"to within {blow_up[1]:.1g}"
                if np.isfinite(blow_up[1])
                else "with an error that coarser runs, which end early, do not tell"
            )
            return f"the solution runs to infinity at t = {blow_up[0]:.12g}, {known}; {steps}"
        if status is Status.OK:
            return f"reached t = {t_last:.9g} in {steps}"
        if run.status is Status.OK:
            return (
                f"the rescaled clock stands still at t = {t_last:.9g}: the growth rate of the model is far above that of its states; "
                "declare one that is nearer, or take the ordinary clock"
            )
        if status is Status.STEP_TOO_SMALL and len(run.events[self.blow_up]):
            return f"the solution jumps at t = {t_last:.9g}, in less time than t resolves, and comes to rest; end the span before it"
        return f"{run.message.partition(CLAUSE)[0].replace(' t = ', ' s = ')} (rescaled clock; t = {t_last:.9g})"


def make_clock(system: System, numbers: Numbers, options: RunOptions) -> tuple[CompiledRHS, RescaledRun]:
    """The System in its rescaled clock, compiled, with numbers. Raises SpecError if it declares no growth rate."""
    other = rescaled_system(system)
    parts = parts_of(other, options.backend, options.dtype, options.strict)
    compiled, problem = switched_problem(parts, in_clock(numbers), options)
    return compiled, RescaledRun(problem, numbers.t0, numbers.t1)


def in_clock(numbers: Numbers) -> Numbers:
    """Numbers of a run in the rescaled clock, whose span in t is parameters, and t a state."""
    start = {**numbers.initial, CLOCK: np.array(numbers.t0)}
    return Numbers(numbers.sizes, {**numbers.params, START: numbers.t0, STOP: numbers.t1}, start, 0.0, LONGEST)


def rescaled_system(system: System) -> System:
    """The rescaled form of a System, made once a process."""
    return _CLOCKS(IdentityKey(system), lambda: rescaled_clock_system(system))


def comes_to_rest(problem: Problem, s: float, y: Array) -> bool:
    """Whether the state y (n,) at s, where a blow-up counts as reached, is at rest some AHEAD later.

    Then it is no blow-up, but a jump in t: towards infinity a component that moves goes on to move. The solution is followed by fixed steps
    of order 4, on which nothing but this depends. The last component is the time.
    """
    here, slope = y.astype(np.float64), np.empty_like(y)

    def rates(at: float, state: Array) -> Array:
        problem.rhs(at, state.astype(y.dtype), slope)
        return slope.astype(np.float64)

    with np.errstate(all="ignore"):
        begun = rates(s, here)[:-1]
        for k in range(AHEAD * PARTS):
            at, h = s + k / PARTS, 1 / PARTS
            k1 = rates(at, here)
            k2 = rates(at + h / 2, here + h / 2 * k1)
            k3 = rates(at + h / 2, here + h / 2 * k2)
            k4 = rates(at + h, here + h * k3)
            here = here + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            if not np.isfinite(here).all():
                return False
        left = rates(s + AHEAD, here)[:-1]
        return bool(np.abs(left).max() < REST * np.abs(begun).max())


def of_tolerances(first: float, second: float) -> float:
    """The error of a run from its differences to runs with 10 and 100 times the tolerance.

    It goes with the tolerance, about: it would be a ninth of the first difference and 1/99 of the second. The first is taken whole, and
    an eighth of the second, for where the first happens to be small.
    """
    return SAFETY * max(abs(first), abs(second) / 8)


def of_steps(first: float, second: float, order: int) -> float:
    """The error of a run from its differences to runs with 2 and 4 times the step, by Richardson's extrapolation.

    An error C h^q makes differences C h^q (2^q - 1) and C h^q (4^q - 1), whose quotient is 2^q + 1. That gives q, limited to at least 1/2
    and at most the order of the method. q is 1 where the differences have not the same sign. The second difference is used in case the
    first happens to be small.
    """
    if not np.isfinite(first) or not np.isfinite(second):
        return np.inf
    quotient = second / first if first else np.inf
    q = 1.0 if quotient < 0 else float(np.clip(np.log2(max(quotient - 1, 1e-9)), 0.5, order))
    return float(SAFETY * max(abs(first) / (2**q - 1), abs(second) / (4**order - 1)))


def order_of(name: str) -> int:
    """The order of a method."""
    methods: dict[str, Any] = {**METHODS, **ROSENBROCK, **STABILISED}
    return int(methods[name].order)


def looser(options: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """The options with tolerances, or else the fixed step, larger by this factor."""
    if options.get("step") is not None:
        return {**options, "step": options["step"] * factor}
    atol = options["atol"]
    atol = {n: (np.asarray(v) * factor).tolist() for n, v in atol.items()} if isinstance(atol, Mapping) else atol * factor
    return {**options, "rtol": options["rtol"] * factor, "atol": atol}
