"""The request of an ensemble, and the statuses of members."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.base.run_options import RunOptions
from odesim.codegen.compiled import CompiledRHS
from odesim.ensembles.chunk import Chunk
from odesim.ensembles.outputs import Outputs
from odesim.solve.codes import STATUSES, Status
from odesim.solve.methods import METHODS
from odesim.solve.methods.discrete import MAP
from odesim.solve.rosenbrock import ROSENBROCK
from odesim.symbolic.system import System
from odesim.transforms.modes import HeldSystem

__all__ = ["METHOD_NAMES", "Chunk", "EnsembleRequest", "meanings"]

METHOD_NAMES = (*METHODS, *ROSENBROCK, MAP.name)

# the meaning of each status, and what to do about it
_MEANINGS = {
    Status.OK: "reached the end of the span",
    Status.EVENT: "ended by a terminal event, at the time t_end",
    Status.MAX_STEPS: "took max_steps steps before the end; allow more steps, loosen rtol or, if the method is explicit, use a stiff one",
    Status.STEP_TOO_SMALL: "the step became too small: the solution leaves the domain of the right-hand side or has a kink at t_end; "
    "end the span before it",
    Status.NON_FINITE: "the start, its derivative or a fixed step is not finite; change the initial values, the parameters or the step",
    Status.BLOW_UP: "the solution runs to infinity near t_end; end the span before it",
    Status.INTERRUPTED: "was stopped before its end",
    Status.SLIDING: "reached a jump of the right-hand side to which both sides push it back, at t_end; make the jump steep "
    "but smooth, such as tanh(x/width) for sign(x); or an event that sets states happens there ever faster: end the span before it",
    Status.LEFT_DOMAIN: "a state left the set that its symbol assumes, at t_end; write the symbol without the assumption, or end the span "
    "before it",
}
_OF_FIXED_STEPS = {Status.MAX_STEPS: "took max_steps steps before the end; allow more steps, take longer ones or shorten the span"}
_OF_MAPS = {
    Status.OK: "did all updates",
    Status.MAX_STEPS: "did max_steps updates before the end; allow more, or do fewer",
    Status.NON_FINITE: "the start or the next update is not finite; change the initial values or the parameters, or do fewer updates",
    Status.LEFT_DOMAIN: "a state left the set that its symbol assumes, at t_end; write the symbol without it, or do fewer updates",
}


def meanings(system: System, options: RunOptions) -> list[str]:
    """The meaning of each of STATUSES for a member of an ensemble of this System with these options, with a remedy."""
    has_clock = system.growth is not None and not options.rescaled
    more = {Status.BLOW_UP: ", or find its time in the rescaled clock (--clock rescaled)"} if has_clock else {}
    found = {**_MEANINGS, **(_OF_FIXED_STEPS if options.step is not None else {}), **(_OF_MAPS if system.discrete else {})}
    return [found[status] + more.get(status, "") for status in STATUSES]


@dataclass(frozen=True)
class EnsembleRequest:
    """A compiled System and how its members are integrated from t0 to t1, with states saved at times (T,) and other outputs.

    auto: the rule by which each member gets its method, if they differ. rescaled: the compiled form of the System in the rescaled clock,
    if members run in it. held: the System, or its rescaled form, with switches held; running: its compiled form. look: steps after which
    lanes check whether stability limits the steps of a member; 0: never.
    """

    compiled: CompiledRHS
    sizes: dict[str, int]
    t0: float
    t1: float
    times: Array
    options: RunOptions
    outputs: Outputs = field(default_factory=Outputs)
    auto: str = ""
    rescaled: CompiledRHS | None = None
    held: HeldSystem | None = None
    running: CompiledRHS | None = None
    look: int = 0

    def changed(self, **options: Any) -> "EnsembleRequest":
        """The request with other run options."""
        return replace(self, options=replace(self.options, **options))

    @property
    def system(self) -> System:
        return self.compiled.system

    @property
    def right(self) -> CompiledRHS:
        """The right-hand side that steps see: its jumping conditions are held."""
        return self.running or self.compiled

    @property
    def switches(self) -> bool:
        """Whether runs stop on the way: at switches or at times of stop_at."""
        return bool(self.options.stop_at) or (self.held is not None and self.held.stops)

    @property
    def dtype(self) -> str:
        return self.compiled.dtype

    @property
    def strict(self) -> bool:
        return self.compiled.strict

    @cached_property
    def layout(self) -> Layout:
        return self.compiled.layout(self.sizes)

    @property
    def member_bytes(self) -> int:
        """Bytes of the outputs of one member."""
        states = len(self.times) * self.layout.size * np.dtype(self.dtype).itemsize
        return states + 8 * self.outputs.numbers(len(self.times))

    @property
    def saves(self) -> bool:
        """Whether other times than t1 are saved."""
        return len(self.times) != 1 or self.times[0] != self.t1

    def allocate(self, count: int, empty: Callable[[tuple[int, ...]], Array] = np.empty) -> Chunk:
        """A Chunk of `count` members that are not done, with y = empty(shape), uninitialised."""
        return self.outputs.allocate(count, len(self.times), self.layout.size, empty)
