"""The plan of a lane kernel: formulas, method and events, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from odesim.ir.elimination import SparseSystem, sparse_system
from odesim.ir.invariants import LinearInvariant, linear_invariants
from odesim.ir.scalars import Formulas
from odesim.stepper.rosenbrock_methods import Rosenbrock
from odesim.stepper.search_sizes import STRAIGHT, TERMINAL, kinds, most_zeros

# what a call is told: whole numbers and addresses (SEEN: a function that sees every step of a single stiff run, or 0). Where members run
# in parts, ORDER: which are meant by FIRST to END - 1, COUNT: how many all of them are, PART_START, PART_END: the part of each, PLACES: how
# many of its times are saved. Of lanes with loops, RIGHT, TABLE: the addresses of the right-hand side and of its table, NOTHING: of zeros,
# STATES: the components, CLOCK: the component that holds the time, or -1. Then for each parameter its address and how far its members are
# apart; of lanes with loops, those of all own parameters together
SLOTS = (
    "STATE", "START", "Y0", "Y0_STEP", "SUMS", "SUMS_STEP", "OUT", "LAST", "STATUS", "T_END", "STEPS", "REJECTED", "SAVE",
    "SAVES", "FIRST", "END", "MOST", "PILOT", "STOP", "REALS", "FACTS", "FOUND", "FOUND_T", "FOUND_I", "FOUND_N", "KEPT",
    "SEARCH", "SEARCHED", "ANSWER", "SEEN", "ORDER", "COUNT", "PART_START", "PART_END", "PLACES",
    "RIGHT", "TABLE", "NOTHING", "STATES", "CLOCK", "PARAMS",
)  # fmt: skip


MOST_WRITTEN = 6  # states of a stiff step without loops


AT = {name: k for k, name in enumerate(SLOTS)}


Fact = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class WatchedEvents:
    """Event functions as text, and the facts of each of their components, as odesim.engines.lanes.runtime has them.

    pieces: parts of a step at whose ends they are evaluated. keeps: zeros are kept, not only looked for to end a run.
    """

    formulas: Formulas
    facts: tuple[Fact, ...]
    pieces: int
    keeps: bool

    @property
    def size(self) -> int:
        """The number of components of all events."""
        return len(self.facts)

    @property
    def names(self) -> int:
        """The number of events, each with all its components."""
        return 1 + max(fact[2] for fact in self.facts)

    @property
    def room(self) -> int:
        """The number of zeros that a step may have."""
        return most_zeros(self.size, self.pieces)

    @property
    def lines(self) -> int:
        """The number of rows for values at the ends of all pieces."""
        return self.pieces * (len(self.formulas.code) + self.size)

    @property
    def terminal(self) -> bool:
        return any(fact[1] == TERMINAL for fact in self.facts)

    @property
    def sampled(self) -> bool:
        """Whether the samples of a step are all that a search in it needs."""
        return all(fact[1] == STRAIGHT for fact in self.facts)

    def reads(self, letter: str) -> list[int]:
        """Indices of the states (y) or parameters (p) that the functions read."""
        return self.formulas.reads(letter)

    def call(self, time: str, state: dict[int, str], into: str, params: str = "p{}") -> str:
        """The line into0, into1, ... = the functions at a time and state."""
        given = [time, *(state[d] for d in self.reads("y")), *(params.format(k) for k in self.reads("p"))]
        return f"{', '.join(f'{into}{i}' for i in range(self.size))}, = happen({', '.join(given)})"


@dataclass(frozen=True, eq=False)
class KernelPlan:
    """The plan of a lane kernel. method: a Method or a Rosenbrock. saves: members are saved at the times of a grid, not at the end only.

    watch: events, where there are. fixed: the step is given. parts: each member has a span of its own, and was saved before it. limited:
    steps have a largest size. declared: linear invariants that the System declares.
    """

    name: str
    formulas: Formulas
    method: Any
    width: int
    strict: bool
    saves: bool
    watch: WatchedEvents | None = None
    fixed: bool = False
    parts: bool = False
    limited: bool = False
    declared: tuple[LinearInvariant, ...] = ()

    @property
    def dense(self) -> bool:
        """Whether a step keeps what its interpolant needs."""
        return not self.discrete and (self.saves or self.watch is not None)

    @property
    def joined(self) -> bool:
        """Whether a step samples the events itself."""
        return self.watch is not None and not (self.stiff or self.discrete)

    @property
    def sampled(self) -> bool:
        """Whether a step leaves nothing behind but these samples."""
        return self.joined and self.watch is not None and self.watch.sampled and not self.saves

    @property
    def queued(self) -> bool:
        """Whether zeros of several steps are computed together."""
        return self.sampled and self.width > 1

    @property
    def called(self) -> str:
        """The function of odesim.stepper.search_by_address that searches a step; empty where none is called: on a GPU, and for a map."""
        if self.watch is None or self.discrete or self.width == 1:
            return ""
        return "search_polynomial" if self.queued else "search_step"

    @property
    def probed(self) -> bool:
        """Whether a search may ask for the events inside a step, which is then the function `probe` of the kernel."""
        return self.called == "search_step"

    @property
    def discrete(self) -> bool:
        """Whether a step is an update of a map, which has no interpolant."""
        return not self.stiff and self.method.last == 0

    @property
    def by_powers(self) -> bool:
        """Whether the interpolant is written in powers of theta, once for all times that a step passes.

        One lane, a thread of a GPU, has no registers for these.
        """
        return self.saves and self.width > 1 and not (self.strict or self.fixed or self.stiff)

    @property
    def marches(self) -> bool:
        """Whether lanes take steps of a fixed size without a look at each: where no events are watched, and not in a thread of a GPU."""
        return self.fixed and self.width > 1 and self.watch is None

    @property
    def looks(self) -> bool:
        """Whether a lane checks what limits the steps of its member."""
        return not (self.stiff or self.fixed or self.parts)

    @property
    def stiff(self) -> bool:
        return isinstance(self.method, Rosenbrock)

    @property
    def loops(self) -> bool:
        """Whether a stiff step is written as loops over rows: written out, one of many operations would take long to compile."""
        return self.stiff and (self.formulas.states > MOST_WRITTEN or len(self.formulas.code) > 10 * MOST_WRITTEN)

    @cached_property
    def linear(self) -> SparseSystem:
        """The Jacobian of a stiff method in straight-line code. Raises CodegenError if an operation has no derivative."""
        return sparse_system(self.formulas)

    @cached_property
    def invariants(self) -> tuple[LinearInvariant, ...]:
        """The invariants that each step of a stiff method keeps."""
        return linear_invariants(self.formulas, self.declared) if self.stiff else ()


def facts_of(directions: Sequence[int], terminal: Sequence[bool], affine: Sequence[bool], sizes: Sequence[int]) -> tuple[Fact, ...]:
    """The facts of all components of events of these sizes."""
    parts = enumerate(zip(directions, kinds(terminal, affine), sizes, strict=True))
    return tuple((direction, kind, e, i) for e, (direction, kind, size) in parts for i in range(size))
