"""The plan of a lane kernel as data, the rows of its memory, and the lines of text that name them.

A row is a number of every lane: row r of lane l is S[r * W + l]. Explicit steps (lane_kernel.py) say by name what lies in which row, and
their printer loads and stores; the templates of Rosenbrock steps use the lines here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from odesim.ir.elimination import SparseSystem, sparse_system
from odesim.ir.invariants import LinearInvariant, linear_invariants
from odesim.ir.scalars import Formulas
from odesim.run.lane_systems import Factors, factor
from odesim.stepper.codes import Code
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
    """Event functions as text, and the facts of each of their components, as odesim.stepper.lane_zeros has them.

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
    steps have a largest size. chooses: the first step follows from the state; else it is one number of the call. declared: linear
    invariants that the System declares.
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
    chooses: bool = True
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


class Rows:
    """The names of the rows of S, and their number."""

    def __init__(self, plan: KernelPlan) -> None:
        n, m = plan.formulas.states, plan.method
        self.count = 0
        self.y, self.f = self.take(n), self.take(0 if plan.discrete else n)
        self.slopes = self.take(len(plan.linear.constants) if plan.stiff else 0)  # f and these follow each other
        self.p = self.take(plan.formulas.count)
        self.sums = self.take(len(plan.invariants))
        (self.t, self.h, self.error, self.retry, self.steps, self.rejected, self.most, self.code) = self.take(8)
        self.old, self.stages = dict[int, int](), list[dict[int, int]]()
        self.powers, self.saved = list[range](), range(0)
        self.next_save = self.before = self.step = self.done = self.until = -1
        if plan.dense and not plan.sampled:
            some = plan.watch is not None and not (plan.saves or plan.loops or plan.watch.terminal)
            wanted = plan.watch.reads("y") if plan.watch is not None and some else range(n)
            self.old, *self.stages = (dict(zip(wanted, self.take(len(wanted)), strict=True)) for _ in range(1 + m.stages))
        if plan.saves or plan.watch is not None:
            self.before, self.step, self.done = self.take(3)
            self.until = self.done
        if plan.saves:
            (self.next_save,) = self.take(1)
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
        self.held = self.take(n + len(self.f) if plan.marches else 0)
        if plan.loops:
            self.loops = Loops(plan, self)

    def take(self, count: int) -> range:
        first, self.count = self.count, self.count + count
        return range(first, self.count)


MOST_FACTORS = 300
"""Lines of an elimination that is written out."""


class Loops:
    """The names of the further rows of S that loops need."""

    def __init__(self, plan: KernelPlan, rows: Rows) -> None:
        linear, n = plan.linear, plan.formulas.states
        found = factor(linear, "g")
        self.factors: Factors | None = found if len(found.code) <= MOST_FACTORS else None
        self.unknown = n + len(linear.sums)
        take = rows.take
        self.u = [range(r[0], r[0] + n) for r in rows.stages] or [take(n) for _ in range(plan.method.stages)]
        self.new, self.length, self.g, self.error, self.defect, self.accept = take(6)
        self.z, self.after, self.ahead = take(n), take(n), take(n + len(linear.constants))
        self.late, self.x = take(len(linear.sums)), take(self.unknown)  # right-hand sides of the sums; the last solution
        self.matrix = take(len(found.names()) if self.factors else self.unknown**2)


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


def call_right(plan: KernelPlan, t: str, state: str, into: str, prefix: str = "p") -> str:
    """The line k0, k1, ... = right(t, z0, z1, ..., p0, ...)."""
    f = plan.formulas
    target = ", ".join(f"{into}{d}" for d in range(f.states)) + ("," if f.states == 1 else "")
    return f"{target} = right({', '.join([t, *(f'{state}{d}' for d in range(f.states)), *names(prefix, f.count)])})"


def longest(plan: KernelPlan, rows: Rows) -> str:
    """The text of the largest step of a lane."""
    return at(rows.longest, plan.width) if plan.limited else "inf"


def end_lines(shortest: str = "") -> list[str]:
    """Lines for the end of the next step of `size` from t: new, h; whether it is the last one, or too small.

    shortest: what it must not be below either.
    """
    lost = f"(size < {shortest} or too_small(t, size, new, t0))" if shortest else "too_small(t, size, new, t0)"
    return ["new, last = step_end(t, size, t1)", f"small = (not last) and {lost}", "h = new - t"]


def fits_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines for whether the step with this `error` is accepted."""
    running = f"running = {at(rows.code, plan.width)} == {float(Code.RUNNING)}"
    return [running, "fits = error <= 1.0", "accept = running and fits and not small"]


def next_lines(plan: KernelPlan, rows: Rows, factors: tuple[float, float]) -> list[str]:
    """Lines for the size `following` of the next step by a rule's `factor`; factors: bounds of shrinking and growing."""
    again = f"{at(rows.retry, plan.width)} != 0.0"
    lines = [f"following = next_step(h, error, factor, {again}, {factors[0]!r}, {factors[1]!r})"]
    return lines + ([f"following = at_most(following, {longest(plan, rows)})"] if plan.limited else [])


def counted_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that update counts, time and code after a step that is accepted, rejected or too small."""
    w = plan.width
    limit = at(rows.most, w) if plan.looks else "most"
    running = float(Code.RUNNING)
    return [
        f"{at(rows.retry, w)} = 0.0 if fits else 1.0",
        f"{at(rows.h, w)} = size if small else following",
        f"ahead = {at(rows.steps, w)} + (1.0 if accept else 0.0)",
        f"back = {at(rows.rejected, w)} + (0.0 if accept or small or not running else 1.0)",
        f"{at(rows.steps, w)}, {at(rows.rejected, w)} = ahead, back",
        f"{at(rows.t, w)} = new if accept else t",
        f"code = {float(Code.MAX_STEPS)} if ahead + back >= {limit} else {running}",
        f"code = {float(Code.OK)} if accept and last else ({float(Code.STEP_TOO_SMALL)} if small else code)",
        f"code = code if running else {at(rows.code, w)}",
        f"{at(rows.code, w)} = code",
        f"ended += 0 if code == {running} else 1",
    ]


def span_arguments(plan: KernelPlan) -> str:
    """The arguments of a kernel for the span: each lane has its own if members run in parts."""
    return "start, end" if plan.parts else "t0, t1"


def span_lines(plan: KernelPlan, rows: Rows, length: bool = False) -> list[str]:
    """Lines that name a lane's own span. length: span too."""
    own = [f"t0, t1 = {at(rows.start, plan.width)}, {at(rows.end, plan.width)}"] if plan.parts else []
    return [*own, *(["span = t1 - t0"] if length else [])]
