"""The inputs and results of integrators: numbers and addresses only."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.base.errors import SolveError, apart, counted
from odesim.base.options import REST, RunOptions
from odesim.ir.fronts import Entries
from odesim.ir.invariants import LinearInvariant
from odesim.ir.linear_systems import Jacobian
from odesim.stepper.codes import Status
from odesim.stepper.control import longest_step
from odesim.stepper.laws import BoundValues, Laws, Values, Worst
from odesim.stepper.occurrences import Events
from odesim.stepper.search_samples import kinds

Progress = Callable[[float], None]


class BoundSystem(Values, Protocol):
    """A right-hand side with its parameters, as addresses of C functions.

    real is float64 or float32 as dtype says, i64 arguments are addresses or integers:
      stage(i64 table, f64 t, i64 y, i64 K, i64 rows, i64 coef, i64 ns, i64 s, i64 z)
          z = y + sum_{j<ns} coef[j] k_j (zero coefficients skipped), then f(t, z) into row rows[s] of K; where the address z
          is 0 the state is not wanted
      combine(i64 table, i64 y, i64 K, i64 rows, i64 coef, i64 ns, i64 lo, i64 hi, i64 dst)
          dst[0:hi-lo] = (y[lo:hi] unless y is 0) + sum_{j<ns} coef[j] k_j[lo:hi]; hi - lo <= 1024
      events(i64 table, f64 t, i64 y, i64 g)    g (n_events,) real; 0 where there are none
    y, z (n,) real; K (stages, n) real, its content known to the system alone; rows int64, coef float64.
    """

    @property
    def layout(self) -> Layout: ...
    @property
    def dtype(self) -> str: ...
    @property
    def stage(self) -> int: ...
    @property
    def combine(self) -> int: ...
    @property
    def events_table(self) -> int:
        """The table that events takes."""

    @property
    def scales(self) -> bool:
        """Whether a row of K is not the right-hand side itself."""

    def __call__(self, t: float, y: Array, out: Array) -> None:
        """out (n,) = f(t, y (n,))."""


@dataclass(frozen=True)
class Guarded:
    """A state and the set that it must not leave: sign * state is its distance from the end. words: the set."""

    state: str
    sign: int
    words: str


@dataclass(frozen=True)
class EventSpec:
    """One event, an array of this shape: zero crossings upward (1), downward (-1) or both (0).

    guard: the state and the set whose boundary it is; None for an event of the System's own. resets: whether it sets states, and so ends a
    segment of a run without ending the run. affine: whether it is affine in the state and in time.
    """

    name: str
    shape: tuple[int, ...] = ()
    direction: int = 0
    terminal: bool = False
    guard: Guarded | None = None
    resets: bool = False
    affine: bool = False

    def __post_init__(self) -> None:
        if self.direction not in (-1, 0, 1):
            raise SolveError(f"the direction of event {self.name!r} must be -1, 0 or 1, not {self.direction}")

    @cached_property
    def size(self) -> int:
        """The number of components of this event."""
        return math.prod(self.shape)


@lru_cache(maxsize=64)
def search_facts(events: tuple[EventSpec, ...]) -> Array:
    """The facts of each component of the events for odesim.stepper.search, (2, size)."""
    counts = [event.size for event in events]
    facts = [[e.direction for e in events], kinds([e.terminal for e in events], [e.affine for e in events])]
    return np.repeat(np.array(facts, np.int64).reshape(2, len(events)), counts, axis=1)


class Derivatives(Protocol):
    """The derivatives of a right-hand side f(t, y), in float64."""

    def prepare(self) -> None:
        """Does the work that is needed once, before the clock of a run starts."""

    def jacobian(self, t: float, y: Array) -> Any:
        """df/dy at y (n,): a Jacobian, or Products."""

    def time_slope(self, t: float, y: Array) -> Array | None:
        """df/dt (n,), None where f does not depend on t."""

    def invariants(self) -> Sequence[LinearInvariant]:
        """Sums of components that every solution conserves, which a step is to conserve too."""


class ByProducts(Derivatives, Protocol):
    """Derivatives whose Jacobian is known by its products. has_matrix: whether it may be had as a matrix too."""

    @property
    def has_matrix(self) -> bool: ...

    def matrix(self, t: float, y: Array) -> Jacobian:
        """df/dy at y (n,) as a matrix."""


@dataclass(frozen=True)
class Costs:
    """Costs of operations in nanoseconds, by counting and never by a clock: choices that depend on them are the same everywhere.

    right: one right-hand side. derivation: what precedes the first stiff step. stiff: a step of a Rosenbrock method of that many stages;
    compiled: one of a strict run in lanes; both raise CodegenError where the Jacobian is too large.
    """

    right: Callable[[], float]
    derivation: Callable[[], float]
    stiff: Callable[[int], float]
    compiled: Callable[[], float] = lambda: math.inf


class StiffRun(Protocol):
    """A run of a stiff method, as odesim.stepper.rosenbrock_run has it."""

    goes_on: bool
    """Whether it goes on from where it was left, and does not begin again."""

    @property
    def t(self) -> float:
        """The last time reached."""

    def advance(self, most: float = ...) -> bool:
        """Runs to the end, or until `most` steps were tried since the start; whether the run has ended."""

    def raw(self) -> "Raw":
        """The results of the run."""


class Switches(Protocol):
    """Conditions of a right-hand side that are held between switches: set while a run stands at a switch, never within a step.

    stops (k,): increasing times at which conditions on time change, or at which a run is to stop for other reasons.
    events: how many of a problem's events, the last ones, are the zeros of conditions on states.
    """

    @property
    def stops(self) -> Array: ...
    @property
    def events(self) -> int: ...

    def free(self) -> None:
        """Releases every condition."""

    def begin(self, t: float, y: Array, end: float) -> tuple[Array, str]:
        """Holds the conditions at the start (t, y) of a run for a segment to `end`: y, and why no segment can begin there, or ""."""

    def words(self, crossed: tuple[int, int]) -> str:
        """In words, the boundary that a component of an event stands for: `the boundary of the condition x > 0`."""

    def cross(self, t: float, y: Array, crossed: Sequence[tuple[int, int]], end: float) -> tuple[Array, str]:
        """Holds the conditions where a segment has ended in (t, y), for one to `end`: y, and why no segment can begin there, or "".

        crossed: the components, (event, flat number), that ended it. The returned y has other sensitivities, if it holds any.
        """


class Resets(Protocol):
    """The events that a run stops at, and what they set: begins with the run, and acts where its segments end (odesim.run.resets)."""

    def piles_up(self, t: float, column: int) -> str:
        """In words, that a component of an event happens ever faster at t. column: its number among those of all events."""


@dataclass(frozen=True)
class CompiledSlopes:
    """The Jacobian as compiled code: the places of its entries, functions of their numbers and of df/dt, None where these are 0."""

    entries: Entries
    slopes: BoundValues | None
    time: BoundValues | None


@dataclass(frozen=True)
class Noise:
    """The noise of a run: arrays of rates that its right-hand side reads, and the place of the length of a step, where it reads that.

    A run is the path of a seed and a member; a step is one of 2^halvings parts of a step of it (odesim.runtime.normals).
    """

    arrays: tuple[Array, ...]
    length: Array | None = None
    member: int = 0
    seed: int = 0
    halvings: int = 0


@dataclass(frozen=True)
class Problem:
    """y' = rhs(t, y) from y0 (n,) at t0 to t1; the events lie one after another in the vector g that rhs computes.

    linear: makes the derivatives of rhs, which a stiff method needs. slopes: the same compiled; products: the same, with products for a
    Jacobian; each where that is to be taken.
    costs: the costs by which `auto` weighs methods.
    lanes(problem, name, save, **options): makes the strict run of a stiff method, by a compiled kernel. It raises SolveError where there
    is none. laws: watched at the end of every step. clocked: whether there is a rescaled clock to be advised.
    switches: conditions that are held. resets: its events (odesim.run.resets), if a run stops at any.
    origin (n,): the state whose linear invariants a stiff step keeps, if it is not y0. There the run that this one continues began, or an
    event set it to that state.
    """

    rhs: BoundSystem
    y0: Array
    t0: float
    t1: float
    events: tuple[EventSpec, ...] = ()
    ref: str = ""
    linear: Callable[[], Derivatives] | None = None
    slopes: Callable[[], "CompiledSlopes | None"] = lambda: None
    products: Callable[[], "ByProducts | None"] = lambda: None
    costs: Costs | None = None
    lanes: Callable[..., StiffRun] | None = None
    laws: Laws | None = None
    clocked: bool = False
    switches: Switches | None = None
    resets: Resets | None = None
    origin: Array | None = None
    noise: Noise | None = None

    @property
    def began(self) -> Array:
        """The state (n,) at the start of the whole run."""
        return self.y0 if self.origin is None else self.origin

    def __post_init__(self) -> None:
        n = self.rhs.layout.size
        if np.shape(self.y0) != (n,):
            raise SolveError(f"the initial state has shape {np.shape(self.y0)}, the system ({n},)")
        if not (math.isfinite(self.t0) and math.isfinite(self.t1) and self.t0 < self.t1):
            raise SolveError(f"the span must go forward between finite times, not {self.t0:g}:{self.t1:g}")
        total = sum(event.size for event in self.events)
        if total != self.rhs.n_events:
            raise SolveError(f"the events have {counted(total, 'component')}, the system computes {self.rhs.n_events}")


@dataclass(frozen=True)
class Raw:
    """A finished or stopped run.

    t (T,) and y (T, n): the saved times that were reached; where the run stopped early, also the last time reached.
    events: {name: Events}, each in the order of time.
    stats: steps, rejected, rhs_calls, seconds, compile_seconds. auto: why this method, where `auto` chose it.
    kernel: what names the code that integrated, where that is not the right-hand side's own. worst: how far it was from the problem's laws;
    watched: what a run that goes on with it is to know of them.
    """

    t: Array
    y: Array
    events: dict[str, Events]
    status: Status
    message: str
    t_last: float
    y_last: Array
    method: str
    stats: dict[str, float] = field(default_factory=dict)
    auto: str = ""
    kernel: str = ""
    worst: Worst = field(default_factory=dict)
    watched: Array | None = None


def check_options(options: RunOptions) -> RunOptions:
    """The checked options. Raises SolveError for values that are impossible."""
    step, rtol, atol, max_steps, max_step = options.step, options.rtol, options.atol, options.max_steps, options.max_step
    first = options.first_step
    for name, length, what in (("max_step", max_step, "bounds"), ("first_step", first, "is the first of")):
        if length is not None and not (math.isfinite(length) and length > 0):
            raise SolveError(f"{name} must be a finite number above 0, not {length}")
        if length is not None and step is not None:
            raise SolveError(f"{name} {what} adaptive steps, and step makes them all of one size: give one of them")
    if first is not None and max_step is not None and first > max_step:
        raise SolveError(f"first_step = {first:g} is longer than max_step = {max_step:g}")
    if step is not None and not (math.isfinite(step) and step > 0):
        raise SolveError(f"the step must be a finite number above 0, not {step}")
    if not (math.isfinite(rtol) and rtol > 0):
        raise SolveError(f"rtol must be a finite number above 0, not {rtol}")
    for name, value in atol.items() if isinstance(atol, Mapping) else () if 0 <= atol < math.inf else (("", atol),):
        bad = np.ravel(value)[~(np.isfinite(value) & (np.asarray(value) >= 0)).ravel()]
        if bad.size:
            raise SolveError(f"atol{name and f' of {name}'} must be a finite number, 0 or above, not {bad[0]}")
    if max_steps < 1:
        raise SolveError(f"max_steps must be at least 1, not {max_steps}")
    return options


def save_grid(problem: Problem, save: Array | None) -> Array:
    """The saved times (T,), a copy."""
    times = np.array([problem.t0, problem.t1] if save is None else save, dtype=np.float64)
    ends = times[:: max(len(times) - 1, 1)].tolist() if times.ndim == 1 else []
    if times.ndim != 1 or not (times[1:] > times[:-1]).all() or not all(map(math.isfinite, ends)):
        raise SolveError("the times to save must be finite and increasing")
    if ends and (ends[0] < problem.t0 or ends[-1] > problem.t1):
        raise SolveError("the times to save must lie in {}:{}, not in {}:{}".format(*apart(problem.t0, problem.t1, ends[0], ends[-1])))
    return times


_MOST = 2**62


def usable(options: RunOptions, layout: Layout, dtype: str) -> tuple[float, Any]:
    """The tolerances used for error norms: not below rounding, and positive where a component stays 0. atol: a number, or by state (n,)."""
    rtol, atol = max(options.rtol, least_rtol(dtype)), options.atol
    if not isinstance(atol, Mapping):
        return rtol, max(atol, 1e-300)
    rest = atol.get(REST, RunOptions.atol)
    each = layout.join({name: atol.get(name, rest) for name in layout.names}, dtype).astype(np.float64)
    # a number of the dtype: rows hold it so, and lanes as float64
    return rtol, np.maximum(each, max(1e-300, float(np.finfo(dtype).tiny)))


@cache
def least_rtol(dtype: str) -> float:
    """The relative tolerance below which rounding hides the error of a step."""
    return 4 * float(np.finfo(dtype).eps)


def opening_step(first: float | None, most: float | None) -> float:
    """The first step where it is given, which no limit of steps lets be longer; 0 where it follows from the rule of control.first_step."""
    return 0.0 if first is None else min(first, longest_step(most))


def fixed_steps(t0: float, t1: float, step: float) -> tuple[int, float]:
    """The number of fixed steps from t0 to t1, and the size of the last one.

    Steps end at t_k = t0 + k step, and at last at t1. A last step that differs from the others by rounding only is as long as they.
    """
    # times far from 0 have few digits of a short step: a last one of their rounding would have no length
    off = min(1e-9 + 8e-16 * max(abs(t0), abs(t1)) / step, 0.5)
    total = min(max(1, math.ceil((t1 - t0) / step - off)), _MOST)
    rest = t1 - (t0 + (total - 1) * step)
    return total, step if abs(rest - step) <= off * step else rest
