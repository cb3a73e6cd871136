"""The plan of a lane kernel as data, the rows of its memory, and the lines of text that name them.

A row is a number of every lane: row r of lane l is S[r * W + l]. Steps (lane_kernel.py) say by name what lies in which row, and their
printer loads and stores.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from odesim.base.parsing import margin
from odesim.ir.elimination import SparseSystem, sparse_system
from odesim.ir.invariants import LinearInvariant, linear_invariants
from odesim.ir.scalars import Formulas
from odesim.run.lane_noise import LaneNoise
from odesim.run.lane_resets import ResetRules
from odesim.run.lane_systems import Factors, factor
from odesim.stepper.looped import Looped, Place
from odesim.stepper.readers import Switches, explicit_reader, implicit_reader
from odesim.stepper.rosenbrock_methods import Rosenbrock
from odesim.stepper.search_samples import STRAIGHT, TERMINAL, kinds, most_zeros
from odesim.stepper.statements import Reader, Row
from odesim.stepper.table import columns, places

# what a call is told: whole numbers and addresses (SEEN: a function that sees every step of a single stiff run, or 0). Where members run in
# parts, ORDER: which are meant by FIRST to END - 1, COUNT: how many all of them are, PART_START, PART_END: the part of each, PLACES: how
# many of its times are saved. Of lanes with loops, RIGHT, TABLE: the addresses of the right-hand side and of its table, NOTHING: of zeros,
# STATES: the components, CLOCK: the component that holds the time, or -1. NOISE: the key, halvings, then the members' numbers. ATOL: the
# absolute tolerance of each component, if states have their own. Of members that stop at events, MARKS: what is kept of each, ACTED:
# whether a compiled rule has acted, LISTED: how many events are listed, or -1, LISTED_T, LISTED_I, LISTED_N: those of the whole run. Then
# for each parameter its address and how far its members are apart; of lanes with loops, those of all own parameters together
LANES = columns(
    "STATE START Y0 Y0_STEP SUMS SUMS_STEP OUT LAST STATUS T_END STEPS REJECTED SAVE SAVES FIRST END MOST PILOT STOP REALS FACTS FOUND "
    "FOUND_T FOUND_I FOUND_N KEPT SEARCH SEARCHED ANSWER SEEN ORDER COUNT PART_START PART_END PLACES RIGHT TABLE NOTHING STATES CLOCK "
    "NOISE ATOL MARKS ACTED LISTED LISTED_T LISTED_I LISTED_N PARAMS PARAMS_GAP"
)
AT = places(LANES)
REALS = columns("T0 T1 RTOL ATOL LONGEST H0 FIXED REST TOTAL", np.float64)

MOST_WRITTEN = 6  # states of a stiff step without loops


Fact = tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class WatchedEvents:
    """Event functions as text, and the facts of each of their components, as odesim.stepper.search.keep has them.

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
        arguments = [time, *(state[d] for d in self.reads("y")), *(params.format(k) for k in self.reads("p"))]
        return f"{', '.join(f'{into}{i}' for i in range(self.size))}, = happen({', '.join(arguments)})"


@dataclass(frozen=True, eq=False)
class KernelPlan:
    """The plan of a lane kernel. method: a Method or a Rosenbrock. saves: members are saved at the times of a grid, not at the end only.

    watch: events, where there are. fixed: the step is given. parts: each member has a span of its own, and was saved before it. resets: the
    rules of events, where they are compiled. limited: steps have a largest size. chooses: the first step follows from the state; else it is
    one number of the call. declared: linear invariants that the System declares. noise: where there is some, the method is a Scheme.
    by_state: each state has its own absolute tolerance. series: the Taylor coefficients, where the method takes them.
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
    rounds: bool = False
    resets: ResetRules | None = None
    limited: bool = False
    chooses: bool = True
    declared: tuple[LinearInvariant, ...] = ()
    noise: LaneNoise | None = None
    by_state: bool = False
    series: Formulas | None = None

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
    def functions(self) -> list[str]:
        """The functions of the kernel that are called by address."""
        return ["run", *(["probe"] if self.probed else []), *(["rates"] if self.rounds else []), *(["resets"] if self.resets else [])]

    @property
    def discrete(self) -> bool:
        """Whether nothing lies between two steps: an update of a map, or a step with noise."""
        return not self.stiff and (self.method.last == 0 or self.noise is not None)

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
    def cut(self) -> bool:
        """Whether each stage of a step is a loop over lanes of its own (odesim.run.lane_pieces)."""
        explicit = not (self.stiff or self.discrete or self.fixed) and self.series is None
        return explicit and self.width > 1 and self.formulas.dtype == "float64"

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


class Rows:
    """The names of the rows of S, and their number. further: those of a step with loops too, which follow."""

    def __init__(self, plan: KernelPlan, further: bool = True) -> None:
        n, m = plan.formulas.states, plan.method
        self.count = 0
        self.y, self.f = self.take(n), self.take(0 if plan.discrete else n)
        self.slopes = self.take(len(plan.linear.constants) if plan.stiff else 0)  # f and these follow each other
        self.p = self.take(plan.formulas.count)
        self.sums = self.take(len(plan.invariants))
        self.atol = self.take(n if plan.by_state else 0)
        (self.t, self.h, self.past, self.retry, self.steps, self.rejected, self.most, self.code) = self.take(8)
        self.old, self.stages = dict[int, int](), list[dict[int, int]]()
        self.powers, self.saved = list[range](), range(0)
        self.due = self.before = self.step = self.done = self.until = -1
        if plan.dense and not plan.sampled:
            some = plan.watch is not None and not (plan.saves or plan.loops or plan.watch.terminal)
            wanted = plan.watch.reads("y") if plan.watch is not None and some else range(n)
            self.old, *self.stages = (dict(zip(wanted, self.take(len(wanted)), strict=True)) for _ in range(1 + m.stages))
        if plan.saves or plan.watch is not None:
            self.before, self.step, self.done = self.take(3)
            self.until = self.done
        if plan.saves:
            (self.due,) = self.take(1)
            self.saved = self.take(n)
            self.powers = [self.take(n) for _ in range(m.P.shape[1] if plan.by_powers else 0)]
            self.line = self.take(-(-n * (len(self.powers) + 1) // plan.width)).start
        self.g = self.last = range(0)
        if plan.watch is not None:
            size = plan.watch.size
            self.samples = [self.take(size) for _ in range(plan.watch.pieces + 2)]  # from the last one before the step on
            self.last, self.g = self.samples[-2:]
            self.probed = self.take(size)
            self.marks, self.until, self.theta = self.take(3)
        if plan.queued and plan.watch is not None:
            self.queue = self.take(plan.watch.pieces + 2)  # from the last sample before the step on
            self.origin, self.length, self.arrival, self.owner, self.place, self.side, self.zero = self.take(7)
        if plan.parts:
            self.start, self.end = self.take(2)
        if plan.limited:
            (self.longest,) = self.take(1)
        if plan.noise is not None:
            self.member, self.key0, _, _ = self.take(4)
        self.held = self.take(n + len(self.f) if plan.marches else 0)
        paired = plan.noise.rates if plan.noise is not None and plan.marches and plan.noise.pairs else ()
        self.bits = self.take(2 * m.draws * len(paired) if paired else 0)
        self.between = self.take((m.stages + 1) * n + 16 if plan.cut else 0)  # stages, the new state, and numbers of the step
        self.plain = self.count
        if plan.loops and further:
            self.count = rows_of_loops(plan)
            self.loops = Loops(plan, self)

    def take(self, count: int) -> range:
        first, self.count = self.count, self.count + count
        return range(first, self.count)


@lru_cache(maxsize=64)
def rows_of(plan: KernelPlan) -> Rows:
    """The rows of a plan, made once a process: a call of lanes asks for them several times."""
    return Rows(plan)


MOST_FACTORS = 300
"""Lines of an elimination that is written out."""


def lane_numbers(plan: KernelPlan, rows: "Rows") -> tuple[dict[str, int], dict[str, str]]:
    """{number of the text of a step: its row}, and {number: text} of those that are no rows."""
    numbers = {"t": rows.t, "h": rows.h, "past": rows.past, "retry": rows.retry, "steps": rows.steps, "rejected": rows.rejected}
    numbers["code"] = rows.code
    numbers |= {"due": rows.due} if plan.saves else {}
    numbers |= {"most": rows.most} if plan.looks else {}
    numbers |= {"member": rows.member, "key0": rows.key0} if plan.noise is not None else {}
    numbers |= {"t0": rows.start, "t1": rows.end} if plan.parts else {}
    numbers |= {"longest": rows.longest} if plan.limited else {}
    numbers |= {"h0": rows.h} if not plan.chooses else {}  # a member is given it there
    return numbers, {"n": str(plan.formulas.states), **({} if plan.limited else {"longest": "inf"})}


def reader_of(plan: KernelPlan, events: bool) -> Reader:
    """The text of a step for a plan. events: whether its stages serve a search."""
    switches = Switches(adaptive=not plan.fixed, chooses=plan.chooses, together=True)
    if plan.stiff:  # states are saved, and events found, after the step
        return implicit_reader(plan.method, plan.formulas.states, switches, loops=plan.loops, by_state=plan.by_state)
    switches = replace(switches, saves=plan.saves, events=events, noisy=plan.noise is not None)
    return explicit_reader(plan.method, switches, by_state=plan.by_state)


def loop_arguments(plan: KernelPlan, rows: "Rows") -> tuple[Any, ...]:
    """The arguments of Looped for a Rosenbrock step; its further rows follow those of the plan."""
    numbers, texts = lane_numbers(plan, rows)
    there: dict[Row, int] = {"y": rows.y.start, "f": rows.f.start, "J": rows.slopes.start}
    there.update(numbers)
    there |= {("k", s): stage[0] for s, stage in enumerate(rows.stages)}
    there.update({"atol": rows.atol.start} if plan.by_state else {})
    arguments = ["rtol", "atol", "most", *([] if plan.parts else ["t0", "t1"])]
    head = [f"n = {texts.pop('n')}"]
    place = Place(there, rows.plain, texts, len(plan.linear.constants))
    return reader_of(plan, events=False), plan.width, plan.formulas.states, arguments, head, plan.strict, place


@lru_cache(maxsize=64)
def rows_of_loops(plan: KernelPlan) -> int:
    """The number of rows with those of a step with loops; kept, for it takes as long as all else of a short run."""
    return Looped(*loop_arguments(plan, Rows(plan, further=False))).count


class Loops:
    """The rows of S that linear systems need in lanes with loops. handed: a number for a function. late: right sides of the sums."""

    def __init__(self, plan: KernelPlan, rows: Rows) -> None:
        linear = plan.linear
        factors = factor(linear, "g")
        self.factors: Factors | None = factors if len(factors.code) <= MOST_FACTORS else None
        unknown = plan.formulas.states + len(linear.sums)
        (self.handed,) = rows.take(1)
        self.late, self.x = rows.take(len(linear.sums)), rows.take(unknown)  # x: the last solution
        self.matrix = rows.take(len(factors.names()) if self.factors else unknown**2)


def at(row: int, width: int) -> str:
    """The text of an element of S."""
    return f"S[{row * width} + l]" if row else "S[l]"


def names(letter: str, count: int) -> list[str]:
    return [f"{letter}{k}" for k in range(count)]


def load_rows(letter: str, rows: Iterable[int], width: int) -> list[str]:
    """Lines that name rows of S."""
    return [f"{letter}{k} = {at(row, width)}" for k, row in enumerate(rows)]


def real(plan: KernelPlan, text: str) -> str:
    """The text of a number of S in the dtype of the states."""
    return f"float32({text})" if plan.formulas.dtype == "float32" else text


def call_right(plan: KernelPlan, t: str, state: str, into: str) -> str:
    """The line k0, k1, ... = right(t, z0, z1, ..., p0, ...)."""
    f = plan.formulas
    target = ", ".join(f"{into}{d}" for d in range(f.states)) + ("," if f.states == 1 else "")
    return f"{target} = right({', '.join([t, *(f'{state}{d}' for d in range(f.states)), *names('p', f.count)])})"


def over_lanes(width: int, lines: Iterable[str]) -> list[str]:
    """Lines for every lane."""
    return [f"for l in range({width}):", *margin(lines)]


def span_arguments(plan: KernelPlan) -> str:
    """The arguments of a kernel for the span: each lane has its own if members run in parts."""
    return "start, end" if plan.parts else "t0, t1"
