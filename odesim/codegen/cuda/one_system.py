"""The kernel of one large system: right-hand side and events run by a team of threads, led by the integrator.

The integrator is odesim.solve.explicit.loop itself: its functions are translated, and what they ask of whole arrays is an order to the
team. So a GPU takes the steps that a CPU takes, and finds the same events.
"""

import ast
from dataclasses import replace
from math import prod
from typing import Any

import sympy as sp

from odesim.base.parsing import parse
from odesim.codegen.cuda.phases import ArrayType, Phases
from odesim.codegen.cuda.product import PRODUCT, TENSOR
from odesim.codegen.cuda.scope import ModuleScope, module_scope
from odesim.codegen.cuda.source import Driver, cuda_source
from odesim.codegen.cuda.team import LEADER, TEAM, WORKERS
from odesim.codegen.cuda.translate import Translation
from odesim.codegen.cuda.words import INT, REAL, SINGLE, named
from odesim.ir.program import Program
from odesim.ir.sizes import extents
from odesim.symbolic.system import System
from odesim.targets.blocks import BLOCK, LATE
from odesim.targets.loop_plan import make_loop_plan
from odesim.targets.numba_module import ModuleText, head_text
from odesim.targets.numba_text import ROWS, Kernel, RightSide, TableEntry

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
    numbers = tuple(p.name for p in system.params if not p.shape)
    slots = [TableEntry("length", "n_"), *(TableEntry("size", name) for name in system.size_names), TableEntry("numbers", "numbers")]
    slots += [TableEntry("array", p.name, p.shape, p.integer) for p in system.params if p.shape]
    slots += [TableEntry("temporary", f"{k.name}.{r}", s) for k in kernels for r, s in k.temporaries.items()]
    slots += [TableEntry("scratch", "part_"), TableEntry("scratch", "state_")]
    body = "\n\n\n".join(k.definition() for k in kernels)
    scope = module_scope(f"{head_text(system, body, dtype, strict)}\n\n\n{body}\n")
    translation = Translation(own=_orders())
    entry = REAL if dtype == "float64" else SINGLE
    teams = [_team_function(translation, scope, k, tuple(slots), numbers, entry, late) for k in kernels]
    there = {k.name for k in kernels}
    teams += [f"__device__ void {word}({VALUES_HEAD}) {{}}" for name, word in VALUES.items() if name not in there]
    lead = Translation(own=_orders())
    run = lead.function(driver.scope, "run", (INT,))
    places = {**{name: str(place) for name, place in driver.places.items()}, "R": entry, "RUN": run.name}
    source = cuda_source(
        f"{system.name}, {dtype}{', strict' if strict else ''}: generated",
        TEAM, *([] if strict else [TENSOR]), PRODUCT, translation.text(),
        *teams, _filled(LEADER, places), lead.text(), _filled(WORKERS, places),
    )  # fmt: skip
    return ModuleText(source, tuple(slots), numbers, max(k.nests.scratch_blocks for k in kernels), 0, False)


def part_size(programs: list[Program], sizes: dict[str, int], slots: int) -> int:
    """The number of partial sums that part_ must hold: for each loop with sums, rows times blocks of 1024."""
    most = 1
    for program in programs:
        for s in program.statements():
            if s.bound is not None or s.op in ("sum", "max"):
                found = extents(tuple(program.extents[i] for i in s.loops), sizes)
                most = max(most, prod(found[:-1]) * -(-found[-1] // BLOCK))
    return most * slots


def _orders() -> dict[str, tuple[Any, str]]:
    return {
        "squares": (REAL, "odesim_squares"),
        "fill": (None, "odesim_fill"),
        "call STAGE": (None, "odesim_stage"),
        "call EVENTS": (None, "odesim_events"),
        "call LAWS": (None, "odesim_laws"),
        "judge": (None, "odesim_judge"),
    }


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
    nothing: Any = parse("def nothing(): pass").body[0]
    lengths = Phases(translation, scope, nothing, {}, {})
    lengths.types |= {s.name: INT for s in slots if s.kind == "size"}
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
            shape = tuple(lengths.length(str(sp.sympify(n))) for n in slot.shape)
            arrays[name] = ArrayType(kind, shape)
            lines.append(f"{kind}* {named(name)} = ({kind}*)at_[{place}];")
    if right:
        lines += [f"{entry} *x_ = ({entry}*)y0_, *k_ = ({entry}*)k0_, *y_ = ({entry}*)(z0_ ? z0_ : state_);"]
        lines += ["long long* rows_ = (long long*)rows0_;", "double* coef_ = (double*)coef0_;", f"{entry}* out_ = k_ + rows_[s_] * n_;"]
        if not kernel.plan.fused:  # type: ignore[attr-defined]
            lines += ["odesim_fill_all(team, x_, k_, rows_, coef_, ns_, n_, y_);", "odesim_wait(team);"]
    else:
        lines += [f"{entry} *y_ = ({entry}*)y0_, *out_ = ({entry}*)g0_;"]
    (node,) = [n for n in parse(kernel.definition()).body if isinstance(n, ast.FunctionDef)]
    lines += Phases(translation, scope, node, arrays, known, late).lines()
    head = f"__device__ void {'stage_all' if right else VALUES[kernel.name]}({STAGE_HEAD if right else VALUES_HEAD}) {{"
    return "\n".join([head, *(f"    {line}" for line in lines), "}"])
