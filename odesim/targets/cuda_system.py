"""The kernel of one large system: right-hand side and events run by a team of threads, led by the integrator.

The integrator is the driver that odesim.stepper.one_system prints: its functions are translated, and what they ask of whole arrays is an
order to the team. So a GPU takes the steps that a CPU takes, and finds the same events.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array, Layout
from odesim.base.device import architecture, cupy_here, current_device, load_module
from odesim.base.parsing import margin
from odesim.ir.program import Program
from odesim.ir.sizes import extents
from odesim.symbolic.system import System
from odesim.targets.compiled import CompiledRHS
from odesim.targets.cuda_nests import ArrayType, TeamText
from odesim.targets.cuda_team import LEADER, PRODUCT, SUM, TEAM, TENSOR, WORKERS
from odesim.targets.cuda_text import Driver, ModuleScope, Translation, cuda_source
from odesim.targets.cuda_words import INT, REAL, SINGLE, named
from odesim.targets.expressions import whole
from odesim.targets.loop_plan import make_loop_plan
from odesim.targets.nest import BLOCK
from odesim.targets.numba_module import ModuleText, TableEntry, runtime_functions, scalar_parameters, table_entries
from odesim.targets.numba_text import LATE, ROWS, Kernel, RightSide
from odesim.targets.nvrtc import compile_cubin, options_for

STAGE_HEAD = (
    "odesim_team& team, long long table_, double t, long long y0_, long long k0_, long long rows0_, long long coef0_, "
    "long long ns_, long long s_, long long z0_"
)
VALUES_HEAD = "odesim_team& team, long long table_, double t, long long y0_, long long g0_"
VALUES = {"find_events": "events_all", "find_laws": "laws_all"}


def wide_text(
    system: System, right: Program, events: Program | None, laws: Program | None, driver: Driver, *, dtype: str, strict: bool
) -> ModuleText:
    """The CUDA source with the kernel `integrate(run table, mail, answer)`, which continues a run, and the layout of its address table."""
    shape = make_loop_plan(system, right, strict=True)
    late, shape = LATE if shape.local else 0, replace(shape, local=False)
    kernels: list[Kernel] = [RightSide(system, shape, dtype)]
    if events is not None:
        kernels.append(Kernel("find_events", system, events, dtype))
    if laws is not None:
        kernels.append(Kernel("find_laws", system, laws, dtype))
    numbers, slots = scalar_parameters(system), table_entries(system, kernels, ("part_", "state_"), blocks=False)
    scope = ModuleScope({}, runtime_functions())
    translation = Translation(by_hand=_by_hand(ORDERS))
    entry = REAL if dtype == "float64" else SINGLE
    teams = [_team_function(translation, scope, k, slots, numbers, entry, late) for k in kernels]
    there = {k.name for k in kernels}
    teams += [f"__device__ void {word}({VALUES_HEAD}) {{}}" for name, word in VALUES.items() if name not in there]
    orders = [*ORDERS, *(_sum_order(name, *of) for name, of in driver.sums.items())]
    lead, terms = Translation(by_hand=_by_hand(orders)), Translation()
    run = lead.function(driver.scope, "run", (INT,))
    sums = []
    for name, (rows, values) in driver.sums.items():
        term = terms.function(driver.scope, f"{name}_of", (REAL,) * (1 + len(rows) + len(values)))
        sums.append(_sum_of_team(name, rows, values, term.name))
    places = {"CALLS": "\n        ".join(order.worker(k) for k, order in enumerate(orders, 1))}  # first: it holds names of places
    places |= {**{name: str(place) for name, place in driver.places.items()}, "R": entry, "RUN": run.name}
    source = cuda_source(
        f"{system.name}, {dtype}{', strict' if strict else ''}: generated",
        TEAM, *([] if strict else [TENSOR]), PRODUCT, translation.text(), terms.text(), *sums, *teams, LEADER,
        *(_filled(order.leader(k), places) for k, order in enumerate(orders, 1)), lead.text(), _filled(WORKERS, places),
    )  # fmt: skip
    return ModuleText(source, slots, numbers, max(k.nests.scratch_blocks for k in kernels), 0, False)


def part_size(programs: list[Program], sizes: dict[str, int], slots: int) -> int:
    """The number of partial sums that part_ must hold: for each loop with sums, rows times blocks of 1024."""
    most = 1
    for program in programs:
        for s in program.statements():
            if s.bound is not None or s.op in ("sum", "max"):
                lengths = extents(tuple(program.extents[i] for i in s.loops), sizes)
                most = max(most, prod(lengths[:-1]) * -(-lengths[-1] // BLOCK))
    return most * slots


@dataclass(frozen=True)
class Order:
    """What the leader does not do itself: the function `name` with which it asks the team, and what each thread then calls.

    by: what the integrator's text calls, as a Translation has it. arguments: (name, type); the first is a table, of the run or of a
    right-hand side. In call {k} is the argument of number k, {every} all of them, and a the first as a table.
    """

    by: str
    name: str
    arguments: Sequence[tuple[str, str]]
    call: str
    result: str = ""

    def leader(self, number: int) -> str:
        """The leader's side of the order with this number."""
        in_mail = {REAL: "__double_as_longlong({})", TABLE: "(long long){}"}
        head = ", ".join(f"{kind} {named(x)}" for x, kind in self.arguments)
        mail = " ".join(f"m[{q}] = {in_mail.get(kind, '{}').format(named(x))};" for q, (x, kind) in enumerate(self.arguments))
        lines = ["long long* m = odesim_mail + 4;", mail, f"odesim_order({number});", *([f"return {self.result};"] if self.result else [])]
        return "\n".join([f"__device__ {REAL if self.result else 'void'} odesim_{self.name}({head}) {{", *margin(lines), "}"])

    def worker(self, number: int) -> str:
        """The side of a thread of the team."""
        mail = [f"__longlong_as_double(m[{q}])" if kind == REAL else f"m[{q}]" for q, (_, kind) in enumerate(self.arguments)]
        return f"if (what == {number}) {self.call.format(*mail, every=', '.join(mail))};"


TABLE = f"{INT}*"
AT_TIME = (("table", INT), ("t", REAL), ("y", INT))
STAGES = "(const @R@*){1}, (const @R@*)a[@K@], (const long long*)a[@ORDER@], (const double*)a[@COEF@], {2}, a[@N@]"
LAWS = ", ".join(f"({kind}*)a[@LAW_{x}@]" for x, kind in {"NOW": "const @R@", "BEST": REAL, "WORST": REAL, "TIME": REAL}.items())
LAWS = f"a[@LAW_SIZE@], (const long long*)a[@LAW_SENSE@], {LAWS}"
ORDERS = (
    Order("call STAGE", "stage", (*AT_TIME, *((x, INT) for x in ("k", "rows", "coef", "ns", "s", "z"))), "stage_all(team, {every})"),
    Order("call EVENTS_AT", "events", (*AT_TIME, ("g", INT)), "events_all(team, {every})"),
    Order("call LAWS_AT", "laws", (*AT_TIME, ("g", INT)), "laws_all(team, {every})"),
    Order("fill", "fill", (("at", TABLE), ("y", INT), ("ns", INT), ("target", INT)), f"odesim_fill_all(team, {STAGES}, (@R@*){{3}})"),
    Order("judge", "judge", (("at", TABLE), ("t", REAL), ("first", INT)), f"odesim_judge_all(team, {LAWS}, {{1}}, {{2}})"),
)  # fmt: skip


def _sum_order(name: str, rows: Sequence[str], numbers: Sequence[str]) -> Order:
    """The order of a sum over components, of which these are the rows and the numbers of a term."""
    arguments = (("at", TABLE), ("y", INT), ("ns", INT), *((f"{x}_row", INT) for x in rows), *((x, REAL) for x in numbers))
    terms = [*(f"(const @R@*){{{3 + q}}}" for q in range(len(rows))), *(f"{{{3 + len(rows) + q}}}" for q in range(len(numbers)))]
    call = f"odesim_{name}_all(team, {STAGES}, {', '.join(terms)}, (double*)a[@SUMS@])"
    return Order(name, name, arguments, call, "((volatile double*)at[@SUMS@])[32]")


def _sum_of_team(name: str, rows: Sequence[str], numbers: Sequence[str], term: str) -> str:
    """The function with which a team adds up; term: the function of a term."""
    words = {
        "NAME": name, "TERM": term, "COUNT": str(max(len(rows), 1)),
        "ROWS": ", ".join(f"const R* {x}_row" for x in rows), "NUMBERS": "".join(f"double {named(x)}, " for x in numbers),
        "LOAD": " ".join(f"entry_[{q}][u] = (double){x}_row[low + l + 32 * u];" for q, x in enumerate(rows)),
        "ENTRIES": ", ".join([*(f"entry_[{q}][u]" for q in range(len(rows))), *map(named, numbers)]),
    }  # fmt: skip
    return _filled(SUM, words)


def _by_hand(orders: Iterable[Order]) -> dict[str, tuple[Any, str]]:
    """What is an order, as a Translation has it."""
    return {order.by: (REAL if order.result else None, f"odesim_{order.name}") for order in orders}


def _filled(text: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        text = text.replace(f"@{name}@", word)
    return text


def _team_function(
    translation: Translation,
    scope: ModuleScope,
    kernel: Kernel,
    slots: tuple[TableEntry, ...],
    numbers: tuple[str, ...],
    entry: str,
    late: int,
) -> str:
    """A kernel as a C++ function for a team of threads."""
    right = isinstance(kernel, RightSide)
    arrays = {"y_": ArrayType(entry, ("n_",)), "out_": ArrayType(entry, ("n_",))}
    known = {"t": REAL, "n_": INT}
    lines = ["long long* at_ = (long long*)table_;"]
    if right:
        arrays |= {
            "x_": ArrayType(entry, ("n_",)),
            "k_": ArrayType(entry, (str(ROWS), "n_")),
            "rows_": ArrayType(INT, ("n_",)),
            "coef_": ArrayType(REAL, ("n_",)),
        }
        known |= {"ns_": INT}
    lengths = TeamText(translation, scope, {}, {s.name: INT for s in slots if s.kind == "size"})
    for place, slot in enumerate(slots):
        owner, _, name = slot.name.rpartition(".")
        if slot.kind in ("length", "size"):
            known[slot.name] = INT
            lines.append(f"const long long {named(slot.name)} = at_[{place}];")
        elif slot.kind == "numbers":
            known |= {n: REAL for n in numbers}
            lines += [f"const double {named(n)} = ((double*)at_[{place}])[{k}];" for k, n in enumerate(numbers)]
        elif slot.kind == "scratch":
            lines.append(f"double* part_ = (double*)at_[{place}];" if name == "part_" else f"const long long state_ = at_[{place}];")
        elif not owner or owner == kernel.name:
            kind = INT if slot.integer else entry
            shape = tuple(lengths.value(whole(n)) for n in slot.shape)
            arrays[name] = ArrayType(kind, shape)
            lines.append(f"{kind}* {named(name)} = ({kind}*)at_[{place}];")
    if right:
        lines += [f"{entry} *x_ = ({entry}*)y0_, *k_ = ({entry}*)k0_, *y_ = ({entry}*)(z0_ ? z0_ : state_);"]
        lines += ["long long* rows_ = (long long*)rows0_;", "double* coef_ = (double*)coef0_;", f"{entry}* out_ = k_ + rows_[s_] * n_;"]
        if not kernel.plan.fused:  # type: ignore[attr-defined]
            lines += ["odesim_fill_all(team, x_, k_, rows_, coef_, ns_, n_, y_);", "odesim_wait(team);"]
    else:
        lines += [f"{entry} *y_ = ({entry}*)y0_, *out_ = ({entry}*)g0_;"]
    nodes = [node for nodes in kernel.nests.passes for node in nodes]
    lines += TeamText(translation, scope, arrays, known, late).lines(kernel.parts(), [*nodes, *kernel.stores()])
    head = f"__device__ void {'stage_all' if right else VALUES[kernel.name]}({STAGE_HEAD if right else VALUES_HEAD}) {{"
    return "\n".join([head, *margin(lines), "}"])


@dataclass(frozen=True)
class CudaRHS:
    """The right-hand side of a System for GPUs, compiled once for all sizes.

    driver: the text of the integrator, whether states have absolute tolerances of their own or not. kernels: {(number of a device,
    whether they have): kernel}.
    """

    compiled: CompiledRHS
    driver: Callable[[bool], Driver]
    kernels: dict[tuple[int, bool], Any] = field(default_factory=dict, compare=False)

    @cached_property
    def text(self) -> ModuleText:
        """The text where one tolerance is that of all states; the others have the same table of addresses."""
        return self.text_of(False)

    def text_of(self, by_state: bool) -> ModuleText:
        c = self.compiled
        return wide_text(c.system, c.program, c.events_program, c.laws_program, self.driver(by_state), dtype=c.dtype, strict=c.strict)

    def kernel(self, by_state: bool) -> Any:
        """`integrate` on the current device. Raises CodegenError without a GPU."""
        device, c = (current_device(), by_state), self.compiled
        if device not in self.kernels:
            text = self.text_of(True) if by_state else self.text
            code = compile_cubin(
                text.source, f"{c.system.name.replace('.', '_')}_wide", options_for(architecture(device[0]), c.strict)
            ).code
            self.kernels[device] = load_module(code).get_function("integrate")
        return self.kernels[device]

    def bind(self, sizes: Mapping[str, int], params: Mapping[str, Any], *, stays: bool = False) -> "BoundCuda":
        """The right-hand side with these numbers. stays: whether saved states remain on the device."""
        return BoundCuda(self, dict(sizes), dict(params), stays)


@dataclass(frozen=True)
class BoundCuda:
    """A right-hand side with sizes and parameters, its arrays on the device (odesim.stepper.problem.BoundSystem)."""

    right: CudaRHS
    sizes: dict[str, int]
    params: dict[str, Any]
    stays: bool = False
    parameters: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def refresh(self, names: Iterable[str]) -> None:
        """Copies parameters whose values have changed to the device again."""
        _ = self._arrays
        for name in names:
            if name in self.parameters:
                self.parameters[name][...] = cupy_here().asarray(self.params[name])

    @property
    def dtype(self) -> str:
        return self.right.compiled.dtype

    @cached_property
    def layout(self) -> Layout:
        return self.right.compiled.layout(self.sizes)

    @cached_property
    def n_events(self) -> int:
        return self.right.compiled.lengths(*self.sizes.items()).n_events

    def kernel(self, by_state: bool) -> Any:
        """The compiled kernel. by_state: each state has its own absolute tolerance."""
        return self.right.kernel(by_state)

    stage = combine = 1  # there are no such functions on the host

    @property
    def events(self) -> int:
        return int(self.n_events > 0)

    @property
    def table(self) -> int:
        """The address, on the device, of the length, sizes, and the addresses of parameters and work arrays."""
        return int(self._arrays[0].data.ptr)

    events_table = table

    @cached_property
    def _arrays(self) -> list[Any]:
        """The address table and the arrays it points to."""
        cp, text, compiled = cupy_here(), self.right.text, self.right.compiled
        programs = [p for p in (compiled.program, compiled.events_program, compiled.laws_program) if p is not None]
        scratch = {"part_": (part_size(programs, self.sizes, text.scratch), "float64"), "state_": (self.layout.size, self.dtype)}
        entries, kept = np.zeros(len(text.entries), np.int64), []
        for place, slot in enumerate(text.entries):
            if slot.kind == "length":
                entries[place] = self.layout.size
            elif slot.kind == "size":
                entries[place] = self.sizes[slot.name]
            else:
                if slot.kind == "scratch":
                    array = cp.zeros(*scratch[slot.name])
                elif slot.kind == "temporary":
                    array = cp.zeros(prod(extents(slot.shape, self.sizes)), self.dtype)
                elif slot.kind == "numbers":
                    array = cp.asarray(np.array([self.params[name] for name in text.numbers] or [0.0], np.float64))
                else:
                    array = cp.ascontiguousarray(cp.asarray(self.params[slot.name], np.int64 if slot.integer else self.dtype))
                    self.parameters[slot.name] = array
                kept.append(array)
                entries[place] = array.data.ptr
        return [cp.asarray(entries), *kept]

    def __call__(self, t: float, y: Array, out: Array) -> None:
        """Sets out (n,) to f(t, y (n,)), computed with numpy on the host: a single evaluation is not worth a launch."""
        rates = self.right.compiled.arrays(self.sizes, {**self.params, **self.layout.split(y), "t": t})
        for name, view in self.layout.split(out).items():
            view[...] = rates[f"d_{name}"]

    def check(self) -> None:
        """Does nothing: a kernel raises no exceptions."""

    @cached_property
    def laws(self) -> "DeviceLaws":
        """The invariants, whose function is part of the integration kernel."""
        return DeviceLaws(self)


@dataclass(frozen=True)
class DeviceLaws:
    """The invariants of a System on a GPU (odesim.stepper.laws.Values)."""

    bound: BoundCuda

    @property
    def events(self) -> int:
        return self.bound.stage

    @property
    def table(self) -> int:
        return self.bound.table

    @cached_property
    def n_events(self) -> int:
        return sum(prod(shape) for shape in self.bound.right.compiled.lengths(*self.bound.sizes.items()).laws)

    def check(self) -> None:
        """Does nothing: a kernel raises no exceptions."""
