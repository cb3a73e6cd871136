"""Where the numbers of members stand, and how the text of a lane kernel names them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from odesim.codegen.invariants.find import linear_invariants
from odesim.codegen.invariants.linear import LinearInvariant
from odesim.codegen.unrolled.elimination import Linear, linear_text
from odesim.codegen.unrolled.formulas import Formulas
from odesim.engines.lanes.events import Watch
from odesim.solve.rosenbrock import Rosenbrock

# what a call is told: whole numbers and addresses (SEEN: a function that sees every step of a single stiff run, or 0). Where members run
# in parts, ORDER: which are meant by FIRST to END - 1, COUNT: how many all of them are, PART_START, PART_END: the part of each, PLACES: how
# many of its times are saved. Then for each parameter its address and how far its members are apart
SLOTS = (
    "STATE", "START", "Y0", "Y0_STEP", "SUMS", "SUMS_STEP", "OUT", "LAST", "STATUS", "T_END", "STEPS", "REJECTED", "SAVE",
    "SAVES", "FIRST", "END", "MOST", "PILOT", "STOP", "REALS", "FACTS", "FOUND", "FOUND_T", "FOUND_I", "FOUND_N", "KEPT",
    "SEEN", "ORDER", "COUNT", "PART_START", "PART_END", "PLACES", "PARAMS",
)  # fmt: skip
MOST_WRITTEN = 6  # states of a stiff step without loops
AT = {name: k for k, name in enumerate(SLOTS)}


@dataclass(frozen=True, eq=False)
class Plan:
    """What a kernel is made for. method: a Method or a Rosenbrock. saves: members are kept at the times of a grid, not at the end only.

    watch: events, where there are. fixed: the step is given. parts: each member has a span of its own, and was saved before it. limited:
    steps have a largest size. declared: linear invariants that the System declares.
    """

    name: str
    formulas: Formulas
    method: Any
    width: int
    strict: bool
    saves: bool
    watch: Watch | None = None
    fixed: bool = False
    parts: bool = False
    limited: bool = False
    declared: tuple[LinearInvariant, ...] = ()

    @property
    def dense(self) -> bool:
        """Whether a step leaves behind what its interpolant needs."""
        return self.saves or self.watch is not None

    @property
    def by_powers(self) -> bool:
        """Whether the interpolant is written in powers of theta, once for all times that a step passes. One lane, a thread of a GPU, has
        no registers for these."""
        return self.saves and self.width > 1 and not (self.strict or self.fixed or self.stiff)

    @property
    def looks(self) -> bool:
        """Whether a lane looks at what limits the steps of its member."""
        return not (self.stiff or self.fixed or self.parts)

    @property
    def stiff(self) -> bool:
        return isinstance(self.method, Rosenbrock)

    @property
    def loops(self) -> bool:
        """Whether a stiff step is loops over rows: one of many operations, written out, would be long to compile."""
        return self.stiff and (self.formulas.states > MOST_WRITTEN or len(self.formulas.lines) > 10 * MOST_WRITTEN)

    @cached_property
    def linear(self) -> Linear:
        """The Jacobian of a stiff method in lines. Raises CodegenError where an operation has no derivative."""
        return linear_text(self.formulas)

    @cached_property
    def invariants(self) -> tuple[LinearInvariant, ...]:
        """What each step of a stiff method is to keep."""
        return linear_invariants(self.formulas, self.declared) if self.stiff else ()


class Rows:
    """Names of the rows of S, and how many there are."""

    def __init__(self, plan: Plan) -> None:
        n, m = plan.formulas.states, plan.method
        self.count = 0
        self.y, self.f = self.take(n), self.take(n)
        self.slopes = self.take(len(plan.linear.kept) if plan.stiff else 0)  # f and these follow each other
        self.p = self.take(plan.formulas.count)
        self.sums = self.take(len(plan.invariants))
        (self.t, self.h, self.error, self.retry, self.steps, self.rejected, self.most, self.code) = self.take(8)
        self.old, self.stages = dict[int, int](), list[dict[int, int]]()
        self.powers, self.saved = list[range](), range(0)
        self.next_save = self.before = self.step = self.done = self.until = -1
        if plan.dense:
            some = plan.watch is not None and not (plan.fixed or plan.saves or plan.loops or plan.watch.terminal)
            wanted = plan.watch.reads("y") if plan.watch is not None and some else range(n)
            self.old, *self.stages = (dict(zip(wanted, self.take(len(wanted)), strict=True)) for _ in range(1 + m.stages))
            self.before, self.step, self.done = self.take(3)
            self.until = self.done
        if plan.saves:
            (self.next_save,) = self.take(1)
            self.saved = self.take(n)
            self.powers = [self.take(n) for _ in range(m.P.shape[1] if plan.by_powers else 0)]
            self.line = self.take(-(-n * (len(self.powers) + 1) // plan.width)).start
        self.g = self.grid = range(0)
        if plan.watch is not None:
            size = plan.watch.size
            self.g, self.grid, self.probed = self.take(size), self.take(size * (plan.watch.pieces + 1)), self.take(size)
            self.hit, self.until, self.theta = self.take(3)
        if plan.parts:
            self.start, self.end = self.take(2)
        if plan.limited:
            (self.longest,) = self.take(1)
        if plan.fixed:
            self.old = self.old or dict(enumerate(self.take(n)))
            self.old_f = self.take(n)
            self.extra = self.take(int(plan.dense and m.stages > m.last + 1))
            (self.wrong,) = self.take(1)
        if plan.loops:
            from odesim.engines.lanes.rosenbrock_loops import Loops

            self.loops = Loops(plan, self)

    def take(self, count: int) -> range:
        first, self.count = self.count, self.count + count
        return range(first, self.count)


def span_arguments(plan: Plan) -> str:
    """The names of a kernel's arguments for the span: each lane has its own where members run in parts."""
    return "start, end" if plan.parts else "t0, t1"


def span_lines(plan: Plan, rows: Rows, length: bool = False) -> list[str]:
    """Lines that give a lane's own span its names. length: span too."""
    own = [f"t0, t1 = {at(rows.start, plan.width)}, {at(rows.end, plan.width)}"] if plan.parts else []
    return [*own, *(["span = t1 - t0"] if length else [])]


def at(row: int, width: int) -> str:
    """An element of S in the text."""
    return f"S[{row * width} + l]" if row else "S[l]"


def names(letter: str, count: int) -> list[str]:
    return [f"{letter}{k}" for k in range(count)]


def load_rows(letter: str, rows: Iterable[int], width: int) -> list[str]:
    """Lines that give rows of S names."""
    return [f"{letter}{k} = {at(row, width)}" for k, row in enumerate(rows)]


def real(plan: Plan, text: str) -> str:
    """A number of S as the dtype of the states."""
    return f"float32({text})" if plan.formulas.dtype == "float32" else text


def load_state(plan: Plan, letter: str, rows: Iterable[int]) -> list[str]:
    """Lines that name the components of a state or of its derivative."""
    return [f"{letter}{k} = {real(plan, at(row, plan.width))}" for k, row in enumerate(rows)]


def load_numbers(plan: Plan, rows: Rows) -> list[str]:
    """Lines that name the state and the parameters."""
    numbers = [(k, at(row, plan.width)) for k, row in enumerate(rows.p)]
    given = [f"p{k} = {text if k in plan.formulas.doubles else real(plan, text)}" for k, text in numbers]
    return [*load_state(plan, "y", rows.y), *given]


def call_right(plan: Plan, t: str, state: str, into: str, prefix: str = "p") -> str:
    """k0, k1, ... = right(t, z0, z1, ..., p0, ...)"""
    f = plan.formulas
    target = ", ".join(f"{into}{d}" for d in range(f.states)) + ("," if f.states == 1 else "")
    return f"{target} = right({', '.join([t, *(f'{state}{d}' for d in range(f.states)), *names(prefix, f.count)])})"
