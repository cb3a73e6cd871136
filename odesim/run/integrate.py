"""A run in segments: each ends where a condition of the right-hand side changes, and the next starts with a new first step.

Between two switches the conditions are held, so that every stage of a step sees one smooth right-hand side. Times that are known beforehand
end a segment exactly. The change of a condition on states is searched as an event is, and the segment ends there.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from odesim.base.arrays import Array, array_namespace
from odesim.base.backends import SERIES
from odesim.base.errors import SolveError, counted, no_such
from odesim.run.auto import ENDED, PILOT, compete, explicit_name, integrate_auto, looks_between, sentence
from odesim.stepper.codes import Status
from odesim.stepper.drive import ExplicitRun, NoisyRun, TaylorRun
from odesim.stepper.laws import with_broken
from odesim.stepper.methods import MAP, METHODS
from odesim.stepper.noise_methods import SCHEMES
from odesim.stepper.occurrences import MOMENT, TOGETHER, Events, components_since, joined, length_of, together
from odesim.stepper.problem import Problem, Raw, save_grid
from odesim.stepper.report import fewer_steps, largest, left
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.stabilised_methods import STABILISED

if TYPE_CHECKING:
    from odesim.run.event_functions import Point
    from odesim.run.resets import Effects, Resetting

OFTEN = 16
"""Changes of one condition within a MOMENT that count as ever faster ones."""
HELP = "make the jump there steep but smooth, such as tanh(x/width) for sign(x), or end the span before it"
COUNTS = ("steps", "rejected", "rhs_calls", "seconds", "compile_seconds")


def integrate_switched(problem: Problem, *, method: str, save: Array | None, **options: Any) -> Raw:
    """Integrates a problem with switches; arguments and result as of integrate_problem."""
    grid = save_grid(problem, save)
    if method != "auto":
        return Segments(problem, grid, method, options).advance()
    explicit = explicit_name(options.get("rtol", 1e-6), options.get("step"), between=looks_between(problem, grid))
    alone = options.get("step") is not None or hasattr(problem.rhs, "kernel")
    run = Segments(problem, grid, explicit if alone else "auto", options, explicit)
    raw, why = run.advance(), run.why
    if run.late:  # a run has one method, by whose name it can be repeated, as `Solution.at` does
        stiff = Segments(problem, grid, run.late, options).advance()
        since = f"from t = {run.t:.4g} on"
        if stiff.status in ENDED:
            raw, why = stiff, f"{since} {why}"
        else:
            raw = Segments(problem, grid, explicit, options).advance()
            why = f"stability limits them {since}, but {run.late} ends early ({stiff.status})"
    return replace(raw, auto="; ".join(filter(None, (f"{raw.method}: {sentence(raw)}", why))))


class Segments:
    """The segments of one run. why: how `auto` compares methods; late: the one that a later segment takes, before which this run ends."""

    def __init__(self, problem: Problem, save: Array, method: str, options: dict[str, Any], explicit: str = "") -> None:
        assert problem.switches is not None
        self.problem, self.save, self.method, self.explicit, self.options = problem, save, method, explicit or method, dict(options)
        self.switches = problem.switches
        self.own_events = len(problem.events) - self.switches.events
        self.most = int(self.options.pop("max_steps", 1_000_000))
        self.progress = self.options.pop("progress", None)
        inside = (self.switches.stops > problem.t0) & (self.switches.stops < problem.t1)
        self.ends = [*self.switches.stops[inside].tolist(), problem.t1]
        self.t, self.y, self.origin = problem.t0, problem.y0, problem.began
        self.resets = cast("Resetting | None", problem.resets)
        self.reset = -1  # the column of the event that set states at the start of this segment
        self.rows: list[Any] = []
        self.saved = 0
        self.events: dict[str, list[Events]] = {event.name: [] for event in problem.events[: self.own_events]}
        self.stats: dict[str, float] = dict.fromkeys(COUNTS[:3], 0) | dict.fromkeys(COUNTS[3:], 0.0)
        self.last = Raw(np.empty(0), self.y[None][:0], {}, Status.INTERRUPTED, "", self.t, self.y, self.explicit)
        self.why = self.late = ""
        self._run: ExplicitRun | None = None
        self._changes: dict[tuple[int, int], deque[float]] = {}

    def advance(self) -> Raw:
        """Runs all segments to the end."""
        try:
            status, message = self._advance()
        except KeyboardInterrupt:  # between two segments: within one it ends the run of that
            status, message = self._interrupted()
        times, rows = self.save[: self.saved], self.rows[0] if len(self.rows) == 1 else self._joined()
        if status is Status.OK:
            message = f"reached t = {self.t:.9g} in {counted(self.stats['steps'], 'step')}"
            message = with_broken(message, self.problem.laws, self.last.worst)
        elif not len(times) or times[-1] < self.t:
            xp = array_namespace(rows)
            times, rows = np.append(times, self.t), xp.concatenate([rows, xp.asarray(self.y)[None]])
        events = {name: joined(parts) for name, parts in self.events.items()}
        more: dict[str, Any] = {"t_last": self.t, "y_last": self.y.copy(), "stats": self.stats}
        return replace(self.last, t=times, y=rows, events=events, status=status, message=message, **more)

    def _joined(self) -> Any:
        rows = [part for part in self.rows if len(part)]
        return array_namespace(rows[0]).concatenate(rows) if rows else self.last.y[:0]

    def _advance(self) -> tuple[Status, str]:
        k, resets = 0, self.resets
        self.y, why = self.switches.begin(self.t, self.y, self.ends[0])
        if resets is not None and not why:
            effects = resets.begin(resets.stand(self.t, self.y), self.most)
            if ended_here := self._after(effects, np.zeros(effects.times.shape, bool), self.last, True):
                return ended_here
        while not why:
            begun = self.t
            raw = self._segment(self.ends[k])
            if raw is None:
                return self._interrupted()
            ended = [crossed_at(raw, event.name, event.shape) if event.terminal else [] for event in self.problem.events]
            if raw.status not in (Status.OK, Status.EVENT) or (any(ended[: self.own_events]) and resets is None):
                if resets is not None and raw.status is Status.STEP_TOO_SMALL and self._brief(begun) and self.reset >= 0:
                    return Status.SLIDING, resets.piles_up(self.t, self.reset)
                return raw.status, raw.message.replace(f"max_steps = {self._left(raw)} ", f"max_steps = {self.most} ")
            if self._near(self.ends[k]):
                self._hop(self.ends[k])
            part = k if self.t >= self.ends[k] else -1
            happened = self._collect(raw, part)
            if self.t >= self.problem.t1:
                return self._reset(happened, raw, part >= 0) or (Status.OK, "")
            k += self.t >= self.ends[k]
            if self._tried() >= self.most:
                acting = "a condition changes"
                if resets is not None and happened is not None and happened[0].any():
                    acting = f"the event {resets.name_of(int(happened[0][0].argmax()))} happens"
                what = f"allow more steps, {fewer_steps(self.options.get('step'))}"
                return Status.MAX_STEPS, f"max_steps = {self.most} reached at t = {self.t:.9g}, where {acting}; {what}"
            crossed = [(e, i) for e, components in enumerate(ended[self.own_events :]) for i in components]
            if self._chatters(crossed):
                what = self.switches.words(crossed[0])
                return Status.SLIDING, f"the solution crosses {what} ever faster, again and again, at t = {self.t:.9g}; {HELP}"
            if resets is None or crossed or part >= 0:
                self.y, why = self.switches.cross(self.t, self.y, crossed, self.ends[k])
            if not why and (ended_here := self._reset(happened, raw, part >= 0)):
                return ended_here
        return Status.SLIDING, why

    def _interrupted(self) -> tuple[Status, str]:
        return Status.INTERRUPTED, f"interrupted at t = {self.t:.9g}; the part before it is kept"

    def _collect(self, raw: Raw, part: int) -> "tuple[Array, Array, Point] | None":
        """The events (1, columns) that happen and those that are recorded where a segment has ended; None where no function is 0."""
        self.reset, resets = -1, self.resets
        if resets is None:
            return None
        at, recorded = resets.stand(self.t, self.y), np.zeros((1, len(resets.event_of)), bool)
        for e, event in enumerate(self.problem.events[: self.own_events]):
            recent = components_since(Events.of(raw.events[event.name]), event.shape, self.t - self._moment())
            recorded[0, [int(resets.first[e]) + i for i in recent]] = True
        roots, some = resets.collect(at, recorded, np.array([part]))
        return (roots, recorded, at) if some[0] else None

    def _reset(self, happened: "tuple[Array, Array, Point] | None", raw: Raw, known: bool) -> tuple[Status, str] | None:
        """Sets the states that events at the end of a segment set; how the run ends, if it does. known: a time known beforehand."""
        if self.resets is None or happened is None:
            return None
        roots, recorded, at = happened
        return self._after(self.resets.act(self.resets.stand(self.t, self.y, at.late), roots), recorded, raw, known)

    def _after(self, effects: "Effects", recorded: Array, raw: Raw, known: bool) -> tuple[Status, str] | None:
        """Goes on from what events have set; how the run ends, if it does. recorded (1, columns): those that the segment has."""
        assert self.resets is not None
        columns = [column for _, each in effects.acts for column in each.tolist()]
        for column in columns:
            e = int(self.resets.event_of[column])
            event, i = self.problem.events[e], column - int(self.resets.first[e])
            if not recorded[0, column]:
                at = np.array([np.unravel_index(i, event.shape)], np.int64) if event.shape else None
                self.events[event.name].append(Events(np.array([self.t]), at))
            recorded[0, column] = False  # the segment has recorded it, once
            self.reset = column if event.resets else self.reset
        if self.reset >= 0:
            self.y = self.origin = effects.y[0]
            here = self.t - (math.ulp(self.t) * TOGETHER[1] if known else self._moment())  # a known time is off by rounding only
            near = int(np.count_nonzero(self.save[: self.saved] >= here))
            for rows in self.rows[:-3:-1]:  # a hop may lie between
                for k in range(min(near, len(rows))):
                    rows[len(rows) - 1 - k] = array_namespace(rows).asarray(self.y)
                near -= min(near, len(rows))
        return effects.stopped.get(0) or self._ended(raw, [column for column in columns if self.resets.ends[column]])

    def _ended(self, raw: Raw, ends: list[int]) -> tuple[Status, str] | None:
        """How the run ends where these columns, of terminal events or of ends of sets, are among those that acted."""
        assert self.resets is not None
        if not ends:
            return None
        if self.reset < 0 and raw.status is Status.EVENT:
            return raw.status, raw.message
        where = f"t = {self.t:.9g}"
        if self.resets.guards[ends].all():
            return Status.LEFT_DOMAIN, f"{left(self.problem, self.y)[0]} at {where}, where an event set it; change its reset"
        names = " and ".join(dict.fromkeys(self.resets.functions.event(e).name for e in self.resets.event_of[ends].tolist()))
        return Status.EVENT, f"ended by the event {names} at {where}, where {largest(self.problem, self.y)} is the largest component"

    def _chatters(self, crossed: list[tuple[int, int]]) -> bool:
        """Whether one condition has changed so often within a moment that no step is left between two changes."""
        for which in crossed:
            times = self._changes.setdefault(which, deque(maxlen=OFTEN))
            times.append(self.t)
            if len(times) == OFTEN and self.t - times[0] <= length_of(MOMENT, self.t, self.problem.t0):
                return True
        return False

    def _brief(self, begun: float) -> bool:
        """Whether nothing but a moment has passed since this time."""
        return self.t - begun <= length_of(MOMENT, self.t, self.problem.t0)

    def _tried(self) -> int:
        return int(self.stats["steps"] + self.stats["rejected"])

    def _left(self, raw: Raw) -> int:
        return int(self.most - self._tried() + raw.stats["steps"] + raw.stats["rejected"])

    def _moment(self) -> float:
        return together(self.t, self.problem.t0, self.problem.rhs.dtype)

    def _near(self, end: float) -> bool:
        """Whether no more than a moment is left to this time."""
        return 0.0 < end - self.t <= self._moment()

    def _hop(self, end: float) -> Raw:
        """Goes on to a time so near that a straight line leads there."""
        slope = np.empty_like(self.y)
        self.problem.rhs(self.t, np.ascontiguousarray(self.y), slope)
        self.y = self.y + ((end - self.t) * slope).astype(self.y.dtype)
        later = int(np.searchsorted(self.save, end, side="right"))
        rows = self.last.y[:0]
        xp = array_namespace(rows)
        self.rows.append(xp.tile(xp.asarray(self.y), (later - self.saved, 1)))
        self.t, self.saved = end, later
        none = {name: Events(np.empty(0)) for name in self.last.events}
        return replace(self.last, events=none, status=Status.OK, t_last=end, y_last=self.y)

    def _segment(self, end: float) -> Raw | None:
        """Integrates to `end`, or to whatever stops the run before it; None where `auto` took a stiff method, but not from the start."""
        if self._near(end) and self.rows:
            return self._hop(end)
        later = np.searchsorted(self.save, end, side="right")
        laws = self.problem.laws and replace(self.problem.laws, before=self.last.watched)
        part = replace(self.problem, y0=self.y, t0=self.t, t1=end, switches=None, resets=None, laws=laws, origin=self.origin)
        options = {**self.options, "max_steps": self.most - self._tried(), "progress": self._share(end)}
        save = self.save[self.saved : later]
        raw = self._explicit(part, save, options) or integrate_problem(part, method=self.method, save=save, **options)
        self.why = raw.auto.partition("; ")[2] or self.why
        if self.method == "auto" and raw.method not in METHODS:
            if self.rows:
                self.late = raw.method if raw.status is not Status.INTERRUPTED else ""
                return None
            self.method = self.explicit = raw.method
        reached = int(np.searchsorted(self.save[self.saved : later], raw.t_last, side="right"))
        self.rows.append(raw.y[:reached])
        self.saved += reached
        for name, parts in self.events.items():
            parts.append(Events.of(raw.events[name]))
        for name in COUNTS:
            self.stats[name] += raw.stats[name]
        self.t, self.y, self.last = raw.t_last, raw.y_last, raw
        return raw

    def _explicit(self, part: Problem, save: Array, options: dict[str, Any]) -> Raw | None:
        """Runs a segment by an explicit method, in the memory of those before it: there may be very many short ones.

        `auto` compares it with another where the pilot does not end it. Returns None where the method is another one.
        """
        if self.explicit not in METHODS or hasattr(part.rhs, "kernel"):
            return None
        strict = options.pop("strict", False)
        if self._run is None:
            self._run = ExplicitRun(part, METHODS[self.explicit], save, **options)
        else:
            self._run.anew(part, save, options["max_steps"], options["progress"])
        if self._run.advance(PILOT if self.method == "auto" else math.inf):
            return self._run.raw()
        return compete(self._run, save, strict, options, until=self.problem.t1, late=bool(self.rows))

    def _share(self, end: float) -> Callable[[float], None] | None:
        """A progress function for a segment that reports the progress of the whole run."""
        if self.progress is None:
            return None
        start, span, tell = self.t, self.problem.t1 - self.problem.t0, self.progress
        return lambda part: tell((start + part * (end - start) - self.problem.t0) / span)


def crossed_at(raw: Raw, name: str, shape: tuple[int, ...]) -> list[int]:
    """The flat numbers of the components of an event at the end of a run."""
    return components_since(Events.of(raw.events[name]), shape, raw.t_last) if raw.status is Status.EVENT else []


METHOD_NAMES = ("auto", *METHODS, *SERIES, *ROSENBROCK, *STABILISED, *SCHEMES)
OF_OTHERS = {"rk45": "tsit5", "dopri5": "tsit5", "dopri8": "dop853", "lsoda": "auto", "bdf": "rodas5p", "radau": "rodas5p"}
"""What methods of other libraries, in lower case, are here."""


def no_such_method(name: str) -> str:
    """A sentence for a method that does not exist, with what stands here for one of another library: tsit5 for RK45."""
    return no_such("method", name, METHOD_NAMES, meant=OF_OTHERS.get(name.lower(), name.lower()))


def integrate_problem(problem: Problem, *, method: str = "auto", save: Array | None = None, strict: bool = False, **options: Any) -> Raw:
    """The run of a problem, kept at the times save (T,), increasing within the span (start and end where None).

    method: one of METHOD_NAMES, or that of a Map. options: step, rtol, atol, max_steps and progress, as ExplicitRun has them.
    strict: stiff methods do without LAPACK.
    Raises SolveError for options that make no sense, and what the right-hand side raised.
    """
    run: Any
    if method == MAP.name:
        run = ExplicitRun(problem, MAP, save, **options)
    elif method in SCHEMES:
        run = NoisyRun(problem, SCHEMES[method], save, **options)
    elif method not in METHOD_NAMES:
        raise SolveError(no_such_method(method))
    elif problem.switches is not None:
        return integrate_switched(problem, method=method, save=save, strict=strict, **options)
    elif method in ROSENBROCK:
        from odesim.stepper.rosenbrock_run import make_run

        run = make_run(problem, method, save, strict=strict, **options)
    elif method in STABILISED:
        from odesim.stepper.wide_run import StabilisedRun

        run = StabilisedRun(problem, STABILISED[method], save, **options)
    elif method in SERIES:
        run = TaylorRun(problem, save, **options)
    elif method == "auto":
        return integrate_auto(problem, save=save, strict=strict, **options)
    else:
        run = ExplicitRun(problem, METHODS[method], save, **options)
    run.advance()
    return run.raw()
