"""The report of a run: its Status, one sentence, and its results."""

from typing import Any, Protocol

import numpy as np

from odesim.base.arrays import Array, array_namespace, entry
from odesim.base.errors import counted
from odesim.base.options import RunOptions
from odesim.stepper.codes import ENDS, Standing, Status
from odesim.stepper.control import runs_away
from odesim.stepper.laws import Worst, with_broken
from odesim.stepper.methods import MAP
from odesim.stepper.occurrences import Events
from odesim.stepper.problem import Problem, Raw, usable
from odesim.stepper.tableau import Method


class Left(Protocol):
    """The arrays that a driver has filled. save (T,), out (T + 1, n): as many of their rows as the standing says."""

    problem: Problem
    options: RunOptions
    save: Array
    out: Array

    @property
    def standing(self) -> Standing:
        """The Standing of the run."""

    @property
    def method(self) -> Any:
        """The integration method of the run; it has a name."""

    @property
    def t(self) -> float:
        """The last time reached."""

    @property
    def y(self) -> Array:
        """The state there (n,)."""

    def event_records(self) -> tuple[Array, Array]:
        """Times and component numbers of all events, in the order of time; half a number more where states below atol decide."""

    def worst(self) -> Worst:
        """The worst violation of each law."""

    def watched(self) -> Array | None:
        """The state of the watched laws, for a run that continues this one."""


def collect(state: Left, code: int, stats: dict[str, float]) -> Raw:
    """The results of a run that the driver left with this Code (RUNNING: interrupted)."""
    problem, standing, t, y = state.problem, state.standing, state.t, state.y
    status = ENDS[code] if code > 0 else Status.INTERRUPTED
    if status is Status.STEP_TOO_SMALL and blows_up(problem, state.options, t, y):
        status = Status.BLOW_UP
    saved = standing.saved
    times, rows = state.save, state.out
    if status is not Status.OK and (saved == 0 or times[saved - 1] < t):
        times = np.append(times[:saved], t)
        rows[saved] = array_namespace(rows).asarray(y)
        saved += 1
    events, last_event = _events(problem, state, status, t)
    if status is Status.EVENT and not last_event:
        status = Status.LEFT_DOMAIN
    worst = state.worst()
    message = with_broken(_message(problem, state, status, standing, t, last_event), problem.laws, worst)
    return Raw(
        times[:saved], rows[:saved], events, status, message, t, y.copy(), state.method.name, stats, worst=worst, watched=state.watched()
    )


def _events(problem: Problem, state: Left, status: Status, t: float) -> tuple[dict[str, Events], str]:
    """All events up to the last time reached, by name, and the name of the one that ended the run.

    The second is empty if a state left its set.
    """
    out: dict[str, Events] = {}
    if not problem.events:
        return out, ""
    times, numbers = state.event_records()
    if not len(times):
        return {e.name: Events(times, np.empty((0, len(e.shape)), np.int64) if e.shape else None, None) for e in problem.events}, ""
    reached = int(np.searchsorted(times, t, side="right"))
    times, marked = times[:reached], numbers[:reached]
    numbers = np.floor(marked).astype(np.int64)
    below = marked > numbers
    first, outside, ended = 0, False, []
    for event in problem.events:
        mine = (numbers >= first) & (numbers < first + event.size)
        at = np.stack(np.unravel_index(numbers[mine] - first, event.shape), axis=-1) if event.shape else None
        out[event.name] = Events(times[mine], at, below[mine] if below[mine].any() else None)
        if status is Status.EVENT and event.guard is not None and mine.any():
            outside = True
        elif status is Status.EVENT and event.terminal and mine.any():
            ended.append(event.name + ("" if at is None else str(at[-1].tolist())))
        first += event.size
    return out, "" if outside else " and ".join(ended)


def fewer_steps(step: float | None) -> str:
    """Advice by which a run needs fewer steps. step: the length of its steps, None where tolerances choose it."""
    return "loosen rtol or shorten the span" if step is None else "take longer ones or shorten the span"


def _message(problem: Problem, state: Left, status: Status, standing: Standing, t: float, event: str) -> str:
    step = state.options.step
    if status is Status.OK:
        return f"reached t = {t:.9g} in {counted(standing.steps, 'step')}"
    h = standing.h if step is None else step
    right, before = ("update", "do fewer updates") if state.method.name == MAP.name else ("derivative", "end the span before it")
    where = f"t = {t:.9g}"
    at_step = f"with a step of {h:.3g}" if h > 0 else "before the first step"
    what = f"where {largest(problem, state.y)} is the largest component"
    match status:
        case Status.EVENT:
            return f"ended by the event {event} at {where}, {what}"
        case Status.LEFT_DOMAIN:
            sentence, bounds = left(problem, state.y)
            # a decay that ends near 0, such as -q/(K + q) with a tiny K, steps below 0; with the assumption sympy makes q of Max(q, 0)
            advice = f"write the symbol without the assumption, and {bounds} where the right-hand side needs it"
            return f"{sentence} at {where}; {advice}, or {before}"
        case Status.INTERRUPTED:
            return f"interrupted at {where} {at_step}, {what}; the part before it is kept"
        case Status.MAX_STEPS:
            other = (
                " (where it is stiff, rodas5p needs far fewer)"
                if step is None and problem.linear and isinstance(state.method, Method)
                else ""
            )
            advice = f"allow more steps{other}, {fewer_steps(step)}"
            return f"max_steps = {state.options.max_steps} reached at {where} {at_step}, {what}; {advice}"
        case Status.BLOW_UP:
            where = f"{where} (step {h:.3g}), {what}"
            other = ", or find its time in the rescaled clock (--clock rescaled)" if problem.clocked else ""
            return f"the solution runs to infinity, as far as steps this short can tell, at {where}; end the span before it{other}"
        case Status.STEP_TOO_SMALL:
            return (
                f"the step fell to {h:.3g} at {where}, {what}; the solution leaves the domain of the right-hand side or has a kink there: "
                "end the span before it"
            )
        case _ if bad := not_finite(problem, t, state.y, right):
            remedy = f", or {before}" if standing.steps else ""
            return f"{bad} at {where}; change the initial values or the parameters{remedy}"
        case _ if standing.steps == 0 and step is None:
            return f"the state or its derivative is not finite at the start, {where}, {what}; change the initial values or the parameters"
        case _:
            return (
                f"the step from {where} {at_step} gives a value that is not finite, {what}; take a smaller step or end the span before it"
            )


def not_finite(problem: Problem, t: float, y: Array, right: str) -> str:
    """`the derivative of v[2] is inf (v[2] = 0)` for the first component of y (n,) or of its derivative that is not finite; else "".

    right: what the right-hand side is called.
    """
    with np.errstate(all="ignore"):
        slope = np.empty_like(y)
        problem.rhs(t, y, slope)
    for what, values in (("", y), (f"the {right} of ", slope)):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            name, i = component(problem, int(bad[0])), int(bad[0])
            others = f", as {bad.size - 1} others are" if bad.size > 1 else ""
            return f"{what}{name} is {float(values[i])}{f' ({name} = {float(y[i]):.6g})' if what else ''}{others}"
    return ""


def left(problem: Problem, y: Array) -> tuple[str, str]:
    """`w[2] = -1e-09 left [0, inf), which its symbol assumes,` for each state of y (n,) outside its set, and `Max(w, 0)`, inside it."""
    states, sentences, bounds = problem.rhs.layout.split(y), [], []
    for guard in (e.guard for e in problem.events if e.guard is not None):
        values = guard.sign * states[guard.state]
        if values.min() < 0:
            at = np.unravel_index(int(np.argmin(values)), values.shape)
            sentences.append(
                f"{entry(guard.state, at)} = {guard.sign * float(values[at]):.3g} left {guard.words}, which its symbol assumes,"
            )
            bounds.append(f"{'Max' if guard.sign > 0 else 'Min'}({guard.state}, 0)")
    if not sentences:
        return (
            f"the state, of which {largest(problem, y)} is the largest component, left a set that a symbol assumes",
            "Max(q, 0) for a q >= 0",
        )
    return " and ".join(sentences), " and ".join(bounds)


def largest(problem: Problem, y: Array) -> str:
    """`v[2] = 3.5` for the component of y (n,) that is largest in size, or one that is not finite."""
    if problem.rhs.layout.size == 0:
        return "nothing"
    i = int(np.argmax(np.where(np.isfinite(y), np.abs(y), np.inf)))
    return f"{component(problem, i)} = {float(y[i]):.6g}"


def component(problem: Problem, i: int) -> str:
    """`v[2]`: the i-th component of the flat state."""
    layout = problem.rhs.layout
    which = max(k for k in range(len(layout.names)) if layout.offsets[k] <= i)
    shape = layout.shapes[which]
    return entry(layout.names[which], np.unravel_index(i - layout.offsets[which], shape) if shape else ())


def blows_up(problem: Problem, options: RunOptions, t: float, y: Array) -> bool:
    """Whether a run that stands at y (n,), where its step has fallen to its smallest value, is about to reach infinity.

    The component that moves most in units of its tolerance must grow. The time |y/f| in which it would double must be no more than 1e5
    smallest steps, 2.2e-10 of the time passed. At a pole y = (t* - t)^-p that time is (t* - t)/p, at a logarithm (t* - t) log(1/(t* - t)).
    The step stops some 1 to 100 times below t* - t. Where only the derivative grows beyond bounds, y = y* - (t* - t)^q, the time is
    (t* - t)^(1-q) y*: for a square root 1e7 smallest steps.
    """
    rhs, slope = problem.rhs, np.empty_like(y)
    rtol, atol = usable(options, rhs.layout, rhs.dtype)
    with np.errstate(all="ignore"):
        rhs(t, y, slope)
        value, f = y.astype(np.float64), slope.astype(np.float64)
        weighed = np.abs(f) / (atol + rtol * np.abs(value))
        i = int(np.argmax(np.where(np.isnan(weighed), -1.0, weighed)))
    return runs_away(float(value[i]), float(f[i]), max(abs(t), t - problem.t0))
