"""The text of a kernel that integrates W members of an ensemble in lockstep, each with its own time and step.

A member's numbers stand in lane l of rows of W: S[row*W + l]. A loop over the lanes does one step of all of them. The rest is done lane
by lane: a finished member is written, and the next one takes its place. In strict mode a member has the bits that the integrator of one
system gives it. For that, the arithmetic here is that of odesim.stepper.drive, in the same order.
"""

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from odesim.engines.lanes import explicit_step, rosenbrock_loops, rosenbrock_step
from odesim.engines.lanes.events import event_texts, happen_text
from odesim.engines.lanes.feed import judged_texts, run_text
from odesim.engines.lanes.interpolant import interpolant_texts
from odesim.engines.lanes.lines import names
from odesim.engines.lanes.march import march_texts
from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.engines.lanes.save import save_texts
from odesim.stepper import control as step_control
from odesim.stepper.search_compiled import SEARCH
from odesim.targets.cache import functions_of, source_of
from odesim.targets.numba_module import key_for, own_imports

ARITHMETIC = ("exp2", "log2", "power")
CONTROL = "odesim.stepper.control"
HELPERS = "odesim.stepper.words"
EXACT = ("moment",)  # the same bits in lanes as in a run of one system, whatever else is contracted
SOURCES = (
    "odesim.engines.lanes.runtime",
    "odesim.stepper.powers",
    CONTROL,
    "odesim.runtime.memory",
    *SEARCH,
    "odesim.stepper.search_by_address",
)
RUNTIME = ("maximum", "minimum", "powi")


def kernel_text(plan: KernelPlan) -> str:
    """The text of the module: `run(table)` integrates members FIRST to END - 1 of a chunk."""
    rows = Rows(plan)
    body = "\n\n\n".join([right_text(plan), *step_loops(plan, rows), run_text(plan, rows)])
    return f"{head_text(plan, body)}\n\n\n{body}\n"


def step_loops(plan: KernelPlan, rows: Rows) -> list[str]:
    """The functions of a step, which lead to the feed."""
    events = [happen_text(plan.watch)] if plan.watch is not None else []
    kind: Any = rosenbrock_loops if plan.loops else rosenbrock_step if plan.stiff else explicit_step
    return [
        *events,
        kind.begin_text(plan, rows),
        kind.step_text(plan, rows),
        *march_texts(plan, rows),
        *interpolant_texts(plan),
        *save_texts(plan, rows),
        *event_texts(plan, rows),
        *judged_texts(plan, rows),
        *explicit_step.look_texts(plan, rows),
    ]


STIFF_SOURCES = (
    "odesim.engines.lanes.linear_systems",
    "odesim.engines.lanes.rosenbrock_step",
    "odesim.engines.lanes.rosenbrock_loops",
    "odesim.engines.lanes.interpolant",
    *(f"odesim.ir.{name}" for name in ("scalars", "slopes", "elimination")),
    "odesim.stepper.rosenbrock_methods",
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
    events = ["from odesim.engines.lanes.runtime import keep"] if plan.watch is not None else []
    if plan.watch is not None and not plan.called:
        events.append(f"from odesim.stepper.search import {'passed' if plan.discrete else 'search'}")
    return module_head(f"{plan.name}, {plan.width} lanes of {plan.method.name}{kind}", body, plan.strict, events)


def module_text(what: str, body: str, strict: bool) -> str:
    """The text of a module with its imports and compile options."""
    return f"{module_head(what, body, strict)}\n\n\n{body}\n"


def module_head(what: str, body: str, strict: bool, more: Sequence[str] = ()) -> str:
    """The imports that a body needs, with more lines of them, and its compile options."""
    used = set(re.findall(r"\w+", body))
    rules = {**functions_of(CONTROL), **functions_of(HELPERS)}
    control = [f"@{'exact' if name in EXACT else 'inlined'}\n{text}" for name, text in rules.items() if name in used]
    used |= set(re.findall(r"\w+", "\n".join(control)))
    math = [w for w in ("sqrt", "inf", "nan") if w in used]
    constants = [w for w in vars(step_control) if w.isupper() and w in used]
    runtime = [w for w in RUNTIME if w in used]
    mode = "False" if strict else '{"contract"}'
    lines = [f'"""{what}: generated, runtime {key_for(used)}, {own_key()}."""', ""]
    lines += [f"from math import {', '.join(math)}"] if math else []
    lines += ["from typing import Any"] if "Any" in used else []
    lines += [""]
    kinds = [w for w in ("float32", "float64", "int64") if w in used]
    lines += ["import numba as nb", *([f"from numba import {', '.join(kinds)}"] if kinds else []), ""]
    lines += [f"from odesim.runtime.stages import {', '.join(runtime)}"] if runtime else []
    lines += own_imports(used)
    arithmetic = [w for w in ARITHMETIC if w in used]
    lines += more
    lines += [f"from odesim.stepper.powers import {', '.join(arithmetic)}"] if arithmetic else []
    lines += [f"from {CONTROL} import {', '.join(constants)}"] if constants else []
    lines += [f"from odesim.runtime.memory import {'call, ' if 'call' in used else ''}doubles, ints", ""]
    lines += [f'options = dict(error_model="numpy", fastmath={mode}, no_cpython_wrapper=True, no_cfunc_wrapper=True)']
    lines += ["kernel, inlined = nb.njit(**options), nb.njit(forceinline=True, **options)"]
    lines += ["exact = nb.njit(forceinline=True, **{**options, 'fastmath': False})"] if "moment" in used else []
    return "\n\n\n".join(["\n".join(lines), *control])


def right_text(plan: KernelPlan) -> str:
    """The text of the right-hand side of one member."""
    f = plan.formulas
    arguments = ", ".join(["t", *names("y", f.states), *names("p", f.count)])
    end = f"    return ({', '.join(f.outputs)},)"
    return "\n".join(["@inlined", f"def right({arguments}):", *(f"    {line}" for line in f.lines), end])
