"""The text of a kernel that integrates W members of an ensemble in lockstep, each with its own time and step.

A loop over the lanes does one step of all of them: the one text of an explicit step (explicit.py) or of a Rosenbrock step (implicit.py),
printed with components written out, or a large Rosenbrock step with loops (lanes.py, lane_implicit.py). The rest is done lane by lane: a
finished member is written, and the next one takes its place (lane_feed.py). In strict mode a member has the bits that the integrator of one
system gives it.

What a step leaves for its interpolant, and the samples of events, are taken while its stages are in registers. With one fixed step, lanes
take many steps without a look at the numbers. What is not finite stays so. Where it shows after some steps, they are taken once more, one
by one and by the step with all its checks. So a member ends at the step that failed, and has the bits that it would have by single steps.
A look at each step costs half of a step of tsit5 again and more than one of rk4 (Lorenz, 16 lanes: 2.8 ns in place of 1.8, 2.5 in place
of 1.1).
"""

import ast
import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np

from odesim.base.backends import STIFF
from odesim.base.parsing import margin, names_in
from odesim.ir.scalars import Formulas
from odesim.run.lane_dense import interpolant_texts, save_texts
from odesim.run.lane_events import begin_lines, event_texts, happen_text, param_lines, reset_texts, watched_lines
from odesim.run.lane_feed import feed_texts
from odesim.run.lane_implicit import LoopedImplicit, WrittenImplicit
from odesim.run.lane_noise import NoisyLanes, keys_line
from odesim.run.lane_pieces import in_pieces
from odesim.run.lane_plan import KernelPlan, Rows, at, lane_numbers, load_rows, names, over_lanes, reader_of, span_arguments
from odesim.stepper import control
from odesim.stepper.codes import Code
from odesim.stepper.lanes import Kinds, Written, function
from odesim.stepper.one_system import SEARCH_MODULES
from odesim.stepper.statements import Do, Each, Let, Reader, Right, Row, Statement
from odesim.stepper.tableau import Method, stable_up_to
from odesim.targets.cache import functions_of, source_of
from odesim.targets.numba_module import key_for, own_imports


def written(plan: KernelPlan, rows: Rows, reader: Reader) -> Written:
    """The printer of a plan's step, with its rows."""
    numbers, texts = lane_numbers(plan, rows)
    places: dict[Row, range] = {"y": rows.y, ("k", 0): rows.f, "p": rows.p, "bits": rows.bits}
    if plan.stiff:
        places = {"y": rows.y, "f": rows.f, "J": rows.slopes, "p": rows.p}
    places |= {name: range(row, row + 1) for name, row in numbers.items()}
    places.update({"atol": rows.atol} if plan.by_state else {})
    f = plan.formulas
    arguments = (reader, plan.width, f.states, places, texts, Kinds(f.dtype, frozenset(f.doubles), f.late if plan.strict else 0))
    if plan.noise is not None:
        return NoisyLanes(*arguments).of(plan.method, plan.noise)
    return WrittenImplicit(plan, rows, *arguments) if plan.stiff else Written(*arguments)


def begin_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of the start: the derivative and the first step of all lanes, and the values of events."""
    w, reader, watch = plan.width, reader_of(plan, events=False), begin_lines(plan, rows)
    if plan.loops:
        load = [*load_rows("y", rows.y, w), *load_rows("p", rows.p, w), *([f"t0 = {at(rows.start, w)}"] if plan.parts else [])]
        lines = [*LoopedImplicit(plan, rows).begin_lines(), *(over_lanes(w, [*load, *watch]) if watch else [])]
    else:
        lines = written(plan, rows, reader).lines(reader.read("begin"), {("k", 0), "f", "J", "h", "code"})
        # of a Map nothing has read them yet
        lines = over_lanes(w, [*lines, *(param_lines(plan, rows) if plan.discrete and watch else []), *watch])
    return function(f"begin(S, {span_arguments(plan)}, rtol, atol)", lines)


def step_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of one step of all lanes, which returns how many have ended."""
    w, reader = plan.width, reader_of(plan, events=plan.watch is not None)
    counts = "ended, saving, hits" if plan.joined else "ended, saving"
    head = f"{counts} = {', '.join('0' for _ in counts.split(', '))}"
    if plan.loops:
        lines = LoopedImplicit(plan, rows).step_lines()
    else:
        lines, logical = step_lines(plan, rows, reader), reader.logical
        pieces = in_pieces(lines, logical, rows.between, w) if plan.cut else [lines]
        lines = [line for piece in pieces for line in over_lanes(w, piece)]
    if plan.noise is not None:
        lines = [keys_line(rows.key0, w), *lines]
    fixed = ", fixed, rest, total" if plan.fixed else ""
    return function(f"step(S, {span_arguments(plan)}, rtol, atol, most{fixed})", [head, *lines, f"return {counts}"])


def step_lines(plan: KernelPlan, rows: Rows, reader: Reader) -> list[str]:
    """Lines of one step of lane l."""
    w, step, accept = plan.width, written(plan, rows, reader), reader_of(plan, events=False).read("accept")
    stored: set[Row] = {"y", ("k", 0), "f", "J", "t", "h", "past", "retry", "steps", "rejected", "code"}
    phases = ["aim", "step", "judge"]
    if plan.series is not None:
        phases = [*["reach"] * (not plan.fixed), *phases, *["within"] * plan.dense]
    lines = step.lines([*reader.read(*phases), Let(["before"], ast.Name("t")), *accept], stored)
    lines.append(f"ended += 0 if code == {float(Code.RUNNING)} else 1")
    if plan.dense:
        lines += [f"{at(row, w)} = y{d}" for d, row in rows.old.items()]
        lines += [f"{at(row, w)} = k{s}_{d}" for s, stage in enumerate(rows.stages) for d, row in stage.items()]
    if plan.saves or plan.watch is not None:
        lines += [f"{at(rows.before, w)}, {at(rows.step, w)} = before, used", f"{at(rows.done, w)} = new if accept else -inf"]
    if plan.saves:
        lines.append(f"saving += 1 if accept and {at(rows.due, w)} <= new else 0")
    if plan.joined:
        lines += ["h, taken = used, accept", f"{at(rows.until, w)} = {at(rows.done, w)}"]
        lines += [f"n{d} = z{d}" for d in range(plan.formulas.states)]  # states inside the step are called z there
        lines += watched_lines(plan, rows, "before", {d: f"n{d}" for d in range(plan.formulas.states)})
    return lines


def look_numbers(method: Method, dtype: str) -> dict[str, float]:
    """What a look at the stability of a method is measured by."""
    bound, small = control.HELD * stable_up_to(method), float(np.sqrt(np.finfo(dtype).eps))
    limits = {"SHORT": control.SHORT, "FEW": float(control.FEW), "MANY": float(control.MANY), "FAR": control.FAR}
    return {**limits, "BOUND": bound, "SMALL": small}


def look_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of look(S, l, t1, rtol, atol, allowed, pilot): what lane l does whose member has come to its limit of steps."""
    if not plan.looks:
        return []
    reader = reader_of(plan, events=False)
    reader.known |= look_numbers(plan.method, plan.formulas.dtype)
    lines = written(plan, rows, reader).lines(reader.read("look"), {"code", "steps", "rejected", "most"})
    return [function("look(S, l, t1, rtol, atol, allowed, pilot)", lines)]


def is_of_stages(s: Statement, last: int) -> bool:
    """Whether a statement of the text of a step is one of its stages, without what follows them."""
    match s:
        case Right(row=(_, int(stage))):
            return stage <= last
        case Let(names=["root"]):
            return True
    return isinstance(s, Each | Do)


def march_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The function march, which takes steps without a look at each; it returns 0 if all is finite."""
    if not plan.marches:
        return []
    w, last = plan.width, plan.method.last
    reader = reader_of(plan, events=False)
    step = written(plan, rows, reader)
    step.numbers = {**step.numbers, "used": "fixed"}
    step.places = {row: at_ for row, at_ in step.places.items() if row != "t"}  # the times of these steps are computed here
    stages = [s for s in reader.read("step") if is_of_stages(s, last)]
    steps = at(rows.steps, w)

    def one(k: str) -> list[str]:
        moment = f"{{}} = moment({steps} + {k}{{}}, t0, t1, fixed, total)".format
        lines = [moment("t", ""), moment("new", " + 1.0"), *step.lines(stages)]
        return (
            lines
            + [f"{at(row, w)} = z{d}" for d, row in enumerate(rows.y)]
            + [f"{at(row, w)} = k{last}_{d}" for d, row in enumerate(rows.f)]
        )

    if isinstance(step, NoisyLanes):  # noqa: SIM108, mypy narrows no expression on one line
        march = step.march(steps, one)
    else:
        march = ["for k in range(ahead):", *margin(over_lanes(w, one("k")))]
    pairs = [(at(a, w), at(b, w)) for a, b in zip((*rows.y, *rows.f), rows.held, strict=True)]
    finite = " + ".join(f"({here} - {here})" for here, _ in pairs)
    wrong = f"wrong += 1 if {at(rows.code, w)} == {float(Code.RUNNING)} and {finite} != 0.0 else 0"
    lines = [
        *over_lanes(w, [f"{held} = {here}" for here, held in pairs]),
        *march,
        "wrong = 0",
        *over_lanes(w, [wrong]),
        "if wrong > 0:",
        *(f"    {line}" for line in over_lanes(w, [f"{here} = {held}" for here, held in pairs])),
        "    return wrong",
        *over_lanes(w, [f"{steps} += ahead", f"{at(rows.t, w)} = moment({steps}, t0, t1, fixed, total)"]),
        "return 0",
    ]
    return [function("march(S, t0, t1, fixed, total, ahead)", lines)]


ARITHMETIC = ("exp2", "log2", "power")
CONTROL = "odesim.stepper.control"
EXACT = ("moment",)  # the same bits in lanes as in a run of one system, whatever else is contracted
SOURCES = ("odesim.stepper.powers", CONTROL, "odesim.runtime.intrinsics", *SEARCH_MODULES, "odesim.stepper.search_by_address")
RUNTIME = ("maximum", "minimum", "powi")


def kernel_text(plan: KernelPlan) -> str:
    """The text of the module: `run(table)` integrates members FIRST to END - 1 of a chunk."""
    rows = Rows(plan)
    series = [function_text("series", plan.series)] if plan.series is not None else []
    body = "\n\n\n".join(
        [function_text("right", plan.formulas), *series, *step_loops(plan, rows), *feed_texts(plan, rows), *reset_texts(plan)]
    )
    return f"{head_text(plan, body)}\n\n\n{body}\n"


def step_loops(plan: KernelPlan, rows: Rows) -> list[str]:
    """The functions of a step, which lead to the feed."""
    events = [happen_text(plan.watch)] if plan.watch is not None else []
    return [
        *events,
        *(LoopedImplicit(plan, rows).system_texts() if plan.loops else []),
        begin_text(plan, rows),
        step_text(plan, rows),
        *march_texts(plan, rows),
        *interpolant_texts(plan),
        *save_texts(plan, rows),
        *event_texts(plan, rows),
        *look_texts(plan, rows),
    ]


STIFF_SOURCES = (
    "odesim.run.lane_systems",
    "odesim.run.lane_implicit",
    "odesim.run.lane_dense",
    *(f"odesim.stepper.{name}" for name in ("step", "implicit", "statements", "readers", "lanes", "looped")),
    *(f"odesim.ir.{name}" for name in ("scalars", "slopes")),
    "odesim.stepper.tableau",
    *(f"odesim.stepper.rosenbrock_methods.{name}" for name in STIFF),
    CONTROL,
)


@cache
def stiff_key() -> str:
    """8 hex digits of the sources that write stiff steps, for runs whose members may later need a stiff kernel."""
    return hashlib.sha256("".join(map(source_of, STIFF_SOURCES)).encode()).hexdigest()[:8]


@cache
def own_key() -> str:
    """8 hex digits of the sources that the module inlines besides the runtime."""
    return hashlib.sha256("".join(map(source_of, SOURCES)).encode()).hexdigest()[:8]


def head_text(plan: KernelPlan, body: str) -> str:
    """The imports that the body needs, and its compile options."""
    kind = f"{', fixed step' if plan.fixed else ''}{', strict' if plan.strict else ''}"
    search = ["keep", *([] if plan.called else ["passed" if plan.discrete else "search"])]
    events = [f"from odesim.stepper.search import {', '.join(search)}"] if plan.watch is not None else []
    return module_head(f"{plan.name}, {plan.width} lanes of {plan.method.name}{kind}", body, plan.strict, events)


def module_text(what: str, body: str, strict: bool) -> str:
    """The text of a module with its imports and compile options."""
    return f"{module_head(what, body, strict)}\n\n\n{body}\n"


def module_head(what: str, body: str, strict: bool, more: Sequence[str] = ()) -> str:
    """The imports that a body needs, with more lines of them, and its compile options."""
    used = names_in(body)
    rules = functions_of(CONTROL)
    inlined = [f"@{'exact' if word in EXACT else 'inlined'}\n{text}" for word, text in rules.items() if word in used]
    used |= names_in("\n".join(inlined))
    math = [w for w in ("sqrt", "inf", "nan") if w in used]
    constants = [w for w in vars(control) if w.isupper() and w in used]
    runtime = [w for w in RUNTIME if w in used]
    mode = "False" if strict else '{"contract"}'
    lines = [f'"""{what}: generated, runtime {key_for(used)}, {own_key()}."""', ""]
    lines += [f"from math import {', '.join(math)}"] if math else []
    lines += ["from typing import Any"] if "Any" in used else []
    lines += [""]
    kinds = [w for w in ("float32", "float64", "int64") if w in used]
    lines += [*([f"from numpy import {', '.join(kinds)}"] if kinds else []), "from odesim.runtime.functions import njit"]
    lines += [f"from odesim.runtime.stages import {', '.join(runtime)}"] if runtime else []
    lines += own_imports(used)
    arithmetic = [w for w in ARITHMETIC if w in used]
    lines += more
    lines += [f"from odesim.stepper.powers import {', '.join(arithmetic)}"] if arithmetic else []
    lines += [f"from {CONTROL} import {', '.join(constants)}"] if constants else []
    lines += [f"from odesim.runtime.intrinsics import {'call, ' if 'call' in used else ''}doubles, ints", ""]
    lines += [f"options = dict(fastmath={mode})"]
    lines += ["kernel, inlined = njit(**options), njit(forceinline=True, **options)"]
    lines += ["unfused = njit(fastmath=False)"] if "unfused" in used else []
    lines += ["exact = njit(forceinline=True, **{**options, 'fastmath': False})"] if "moment" in used else []
    return "\n\n\n".join(["\n".join(lines), *inlined])


def function_text(name: str, f: Formulas) -> str:
    """The text of a function of the time, the state and the parameters of one member, as the right-hand side."""
    arguments = ", ".join(["t", *names("y", f.states), *names("p", f.count)])
    return function(f"{name}({arguments})", [*f.lines, f"return ({', '.join(f.outputs)},)"], "inlined")
