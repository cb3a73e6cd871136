"""The text of one explicit step of all lanes: odesim.stepper.explicit printed for W members.

What a step leaves for its interpolant, and the samples of events, are taken while its stages are in registers.
"""

import numpy as np

from odesim.engines.lanes.events import begin_lines, param_lines, watched_lines
from odesim.engines.lanes.lines import at, span_arguments
from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.stepper import control as stability
from odesim.stepper.codes import Code
from odesim.stepper.lanes import Kinds, Written, function, margin
from odesim.stepper.statements import Let, Reader, Row, explicit_reader, name
from odesim.stepper.tableau import Method, stable_up_to


def reader_of(plan: KernelPlan, events: bool) -> Reader:
    """The text for a plan. events: whether its stages serve a search."""
    return explicit_reader(plan.method, adaptive=not plan.fixed, saves=plan.saves, together=True, events=events)


def written(plan: KernelPlan, rows: Rows, reader: Reader) -> Written:
    """The printer of a plan's step, with its rows."""
    places: dict[Row, range] = {"y": rows.y, ("k", 0): rows.f, "p": rows.p}
    numbers = {"t": rows.t, "h": rows.h, "log_old": rows.error, "retry": rows.retry, "steps": rows.steps, "rejected": rows.rejected}
    numbers["code"] = rows.code
    numbers |= {"due": rows.next_save} if plan.saves else {}
    numbers |= {"most": rows.most} if plan.looks else {}
    numbers |= {"t0": rows.start, "t1": rows.end} if plan.parts else {}
    numbers |= {"longest": rows.longest} if plan.limited else {}
    places |= {name: range(row, row + 1) for name, row in numbers.items()}
    f = plan.formulas
    known = {"n": str(f.states), **({} if plan.limited else {"longest": "inf"})}
    return Written(reader, plan.width, f.states, places, known, Kinds(f.dtype, frozenset(f.doubles), f.late if plan.strict else 0))


def begin_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of the start: the derivative and the first step of all lanes, and the values of events."""
    reader = reader_of(plan, events=False)
    lines = written(plan, rows, reader).lines(reader.read("begin"), {("k", 0), "h", "code"})
    if plan.watch is not None:
        lines += [*(param_lines(plan, rows) if plan.discrete else []), *begin_lines(plan, rows)]  # of a Map nothing has read them yet
    return function(f"begin(S, {span_arguments(plan)}, rtol, atol)", over_lanes(plan.width, lines))


def step_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of one step of all lanes, which returns how many have ended."""
    w, reader = plan.width, reader_of(plan, events=plan.watch is not None)
    step = written(plan, rows, reader)
    accept = reader_of(plan, events=False).read("accept")
    stored: set[Row] = {"y", ("k", 0), "t", "h", "log_old", "retry", "steps", "rejected", "code"}
    lines = step.lines([*reader.read("aim", "step"), Let(["before"], name("t")), *accept], stored)
    lines.append(f"ended += 0 if code == {float(Code.RUNNING)} else 1")
    if plan.dense:
        lines += [f"{at(row, w)} = y{d}" for d, row in rows.old.items()]
        lines += [f"{at(row, w)} = k{s}_{d}" for s, stage in enumerate(rows.stages) for d, row in stage.items()]
    if plan.saves or plan.watch is not None:
        lines += [f"{at(rows.before, w)}, {at(rows.step, w)} = before, used", f"{at(rows.done, w)} = new if accept else -inf"]
    if plan.saves:
        lines.append(f"saving += 1 if accept and {at(rows.next_save, w)} <= new else 0")
    if plan.joined:
        lines += ["h, taken = used, accept", f"{at(rows.until, w)} = {at(rows.done, w)}"]
        lines += [f"n{d} = z{d}" for d in range(plan.formulas.states)]  # states inside the step are called z there
        lines += watched_lines(plan, rows, "before", {d: f"n{d}" for d in range(plan.formulas.states)})
    counts = "ended, saving, hits" if plan.joined else "ended, saving"
    head = [f"{counts} = {', '.join('0' for _ in counts.split(', '))}"]
    return function(
        f"step(S, {span_arguments(plan)}, rtol, atol, most{', fixed, rest, total' if plan.fixed else ''})",
        [*head, *over_lanes(w, lines), f"return {counts}"],
    )


def look_numbers(method: Method, dtype: str) -> dict[str, float]:
    """What a look at the stability of a method is measured by."""
    bound, small = stability.HELD * stable_up_to(method), float(np.sqrt(np.finfo(dtype).eps))
    limits = {"SHORT": stability.SHORT, "FEW": float(stability.FEW), "MANY": float(stability.MANY), "FAR": stability.FAR}
    return {**limits, "BOUND": bound, "SMALL": small}


def look_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of look(S, l, t1, rtol, atol, allowed, pilot): what lane l does whose member has come to its limit of steps."""
    if not plan.looks:
        return []
    reader = reader_of(plan, events=False)
    reader.known |= look_numbers(plan.method, plan.formulas.dtype)
    lines = written(plan, rows, reader).lines(reader.read("look"), {"code", "steps", "rejected", "most"})
    return [function("look(S, l, t1, rtol, atol, allowed, pilot)", lines)]


def over_lanes(width: int, lines: list[str]) -> list[str]:
    """Lines for every lane."""
    return [f"for l in range({width}):", *margin(lines)]
