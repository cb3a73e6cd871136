"""The text of a kernel that integrates W members with one fixed step: all share the times, no lane waits for another.

Up to UNSEEN steps are taken without a look at the numbers, for a number that is not finite stays so. Where one shows, they are taken once
more, one by one and by the same machine code. A lane is marked at the step that failed, and the others have the bits that they had.
"""

from dataclasses import replace
from typing import Any

from odesim.engines.lanes.events import begin_lines, event_texts, happen_text
from odesim.engines.lanes.explicit_step import stage_lines
from odesim.engines.lanes.feed import ending_words, fill_lines
from odesim.engines.lanes.interpolant import blend_lines, interpolant_texts, load_lines, weight_lines
from odesim.engines.lanes.lines import at, call_right, load_numbers, real
from odesim.engines.lanes.plan import AT, KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.engines.template import fit, lane_where, put_state
from odesim.stepper.codes import WORDS, Code

UNSEEN = 64

# begin, march, dense, hold, back and bad are loops over lanes
RUN = """
@kernel
def fill(at, S, i, l):
    y0 = doubles(at[{Y0}])
    {fill}


@kernel
def mark(at, S, first, count, k, t):
    status, t_end, steps = ints(at[{STATUS}]), doubles(at[{T_END}]), ints(at[{STEPS}])
    found = 0
    for l in range(count):
        if S[{code} + l] == {RUNNING} and S[{wrong} + l] != 0.0:
            S[{code} + l] = {NON_FINITE}.0
            status[first + l], t_end[first + l], steps[first + l] = {NON_FINITE}, t, k
            found += 1
    return found


@nb.njit('void(int64)', **options)
def run(table):
    at = ints(table)
    S, out, save, saves = doubles(at[{STATE}]), doubles(at[{OUT}]), doubles(at[{SAVE}]), at[{SAVES}]
    status, t_end, steps, stop = ints(at[{STATUS}]), doubles(at[{T_END}]), ints(at[{STEPS}]), ints(at[{STOP}])
    reals, state, first, end = doubles(at[{REALS}]), doubles(at[{LAST}]), at[{FIRST}], at[{END}]
    t0, t1, step, rest, total = reals[0], reals[1], reals[4], reals[5], int(reals[6])
    todo = min(total, at[{MOST}])
    {event_arrays}
    for tile in range(first, end, {W}):
        if stop[0] != 0:
            return
        count = min({W}, end - tile)
        for l in range({W}):
            fill(at, S, min(tile + l, end - 1), l)
        begin(S, t0)
        bad(S)
        live = count - mark(at, S, tile, count, 0, t0)
        k, q, careful = 0, 0, 0
        {first_save}
        while k < todo and live > 0:
            h = step if k + 1 < total else rest
            ahead = 1
            {advance}
            if bad(S) > 0:
                if ahead > 1:
                    back(S)
                    careful = k + ahead
                    continue
                live -= mark(at, S, tile, count, k, moment(k, t0, t1, step, total))
            k += ahead
            {watching}
            {saving}
            {landing}
        for l in range(count):
            i = tile + l
            if S[{code} + l] == {RUNNING}:
                status[i], t_end[i], steps[i] = {OK} if todo == total else {MAX_STEPS}, moment(todo, t0, t1, step, total), todo
                {finish}
""".strip("\n")

ADVANCE = """
if k >= careful:
    ahead = max(1, min({unseen}, min(todo, total - 1) - k))
hold(S)
march(S, t0, t1, step, total, h, k, k + ahead)
""".strip("\n")

ADVANCE_TO_SAVE = """
t, new = moment(k, t0, t1, step, total), moment(k + 1, t0, t1, step, total)
due = save[q] if q < saves else inf
if due > new and k >= careful:
    most = min({unseen}, min(todo, total - 1) - k)
    while ahead < most and moment(k + ahead + 1, t0, t1, step, total) < due:
        ahead += 1
hold(S)
{advance}
""".strip("\n")

WITHIN = """
if due < new:
    dense(S, t, h, new)
else:
    {march}
""".strip("\n")
MARCH = "march(S, t0, t1, step, total, h, k, k + {ahead})"

# where events are watched every step leaves its stages behind
ADVANCE_AND_WATCH = """
t, new = moment(k, t0, t1, step, total), moment(k + 1, t0, t1, step, total)
hold(S)
dense(S, t, h, new)
""".strip("\n")

# a lane whose member an event has ended stays as it is, and is not looked at again
LANDING = """
if ended > 0:
    for l in range(count):
        i = tile + l
        if S[{code} + l] == {EVENT} and status[i] == {RUNNING}:
            status[i], t_end[i], steps[i] = {EVENT}, S[{until} + l], k
            if S[{until} + l] >= t1:
                {end}
            settle(S, l)
            {stopped}
            live -= 1
""".strip("\n")

FIRST_SAVE = """
if saves > 0 and save[0] == t0:
    for l in range(count):
        i = tile + l
        {put}
    q = 1
""".strip("\n")

SAVING = """
while q < saves and save[q] <= new:
    {saved}
    for l in range(count):
        i = tile + l
        if {saves_here}:
            {put}
    q += 1
""".strip("\n")


SAVED = """
if save[q] < new:
    interpolate(S, (save[q] - t) / h, h)
else:
    copy(S)
""".strip("\n")


def advance_to_save(plan: KernelPlan, text: str, ahead: str) -> str:
    """text, an ADVANCE_TO_SAVE, with the step to the next saved time, which a map never has within one."""
    march = MARCH.format(ahead=ahead)
    return fit(text, advance=march if plan.discrete else fit(WITHIN, march=march), unseen=UNSEEN)


def saved_text(plan: KernelPlan) -> str:
    """The lines that compute the state at the next saved time."""
    return "copy(S)" if plan.discrete else SAVED


def fixed_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The functions after the right-hand side: run(table) integrates members FIRST to END - 1 in tiles of W."""
    return [*fixed_loops(plan, rows), run_text(plan, rows)]


def fixed_loops(plan: KernelPlan, rows: Rows) -> list[str]:
    """The functions of a step of given length."""
    events = [happen_text(plan.watch), *event_texts(plan, rows)] if plan.watch is not None else []
    return [*interpolant_texts(plan), *step_loops(plan, rows), *dense_loops(plan, rows), *events]


def step_loops(plan: KernelPlan, rows: Rows) -> list[str]:
    """The texts of the functions for fixed steps.

    begin: the first derivative. march: steps first to end - 1. hold, back: keep the state before them, and go back to it.
    bad: the number of lanes that show numbers that are not finite.
    """
    w, before = plan.width, load_numbers(plan, rows)
    kept = [(at(a, w), at(b, w)) for a, b in zip((*rows.y, *rows.f), (*rows.old.values(), *rows.old_f), strict=True)]
    slope = [] if plan.discrete else [call_right(plan, "t0", "y", "f")]
    start = [*before, *slope, *(f"{at(row, w)} = f{d}" for d, row in enumerate(rows.f))]
    start += [f"{at(rows.code, w)} = {float(Code.RUNNING)}", *(f"{at(row, w)} = 0.0" for row in rows.extra), *begin_lines(plan, rows)]
    steps = [
        "t, new = moment(k, t0, t1, step, total), moment(k + 1, t0, t1, step, total)",
        *loop(w, step_lines(plan, rows, plan.method.last)),
    ]
    wrong = " + ".join(f"({at(row, w)} - {at(row, w)})" for row in (*rows.y, *rows.f, *rows.extra))
    look = [
        f"wrong = {wrong}",
        f"{at(rows.wrong, w)} = wrong",
        f"found += 1 if {at(rows.code, w)} == {Code.RUNNING} and wrong != 0.0 else 0",
    ]
    return [
        kernel("begin(S, t0)", loop(w, start)),
        kernel("march(S, t0, t1, step, total, h, first, end)", ["for k in range(first, end):", *(f"    {line}" for line in steps)]),
        kernel("hold(S)", loop(w, [f"{b} = {a}" for a, b in kept])),
        kernel("back(S)", loop(w, [f"{a} = {b}" for a, b in kept])),
        kernel("bad(S)", ["found = 0", *loop(w, look), "return found"]),
    ]


def dense_loops(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text, where it is needed, of dense: a step whose stages are kept; interpolate: the state at theta; copy: the new state."""
    n, w, m = plan.formulas.states, plan.width, plan.method
    lines = step_lines(plan, rows, m.stages - 1)
    lines += [f"{at(row, w)} = k{s}_{d}" for s, stage in enumerate(rows.stages) for d, row in stage.items()]
    extra = " + ".join(f"(k{s}_{d} - k{s}_{d})" for s in range(m.last + 1, m.stages) for d in range(n))
    lines += [f"{at(row, w)} = {extra}" for row in rows.extra]
    lines += [f"{at(rows.before, w)}, {at(rows.step, w)}, {at(rows.done, w)} = t, h, new"] if plan.watch is not None else []
    texts = [kernel("dense(S, t, h, new)", loop(w, lines))] if plan.dense or plan.watch is not None else []
    if plan.saves and not plan.discrete:
        inside = [*load_lines(plan, rows, range(n)), *blend_lines(plan, range(n))]
        inside += [f"{at(row, w)} = z{d}" for d, row in enumerate(rows.saved)]
        texts.append(kernel("interpolate(S, theta, h)", [*weight_lines(plan), *loop(w, inside)]))
    if plan.saves:
        texts.append(kernel("copy(S)", loop(w, [f"{at(a, w)} = {at(b, w)}" for a, b in zip(rows.saved, rows.y, strict=True)])))
    return texts


def step_lines(plan: KernelPlan, rows: Rows, last: int) -> list[str]:
    """Lines for a step with the stages to `last`, or an update of a map; the new state and derivative overwrite the old ones."""
    w, m = plan.width, plan.method
    if plan.discrete:  # 0.0 + as a single run adds the one term of its sum
        new = [f"{at(row, w)} = {real(plan, f'0.0 + k0_{d}')}" for d, row in enumerate(rows.y)]
        return [*load_numbers(plan, rows), call_right(plan, "t", "y", "k0_"), *new]
    lines = stage_lines(plan, rows, last)
    lines += [f"{at(row, w)} = z{d}" for d, row in enumerate(rows.y)]
    return [*lines, *(f"{at(row, w)} = k{m.last}_{d}" for d, row in enumerate(rows.f))]


def kernel(head: str, lines: list[str]) -> str:
    """The text of a function of the module."""
    return "\n".join(["@kernel", f"def {head}:", *(f"    {line}" for line in lines)])


def loop(width: int, lines: list[str]) -> list[str]:
    """Lines repeated for each lane."""
    return [f"for l in range({width}):", *(f"    {line}" for line in lines)]


def run_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of fill and run(table)."""
    w, where = plan.width, lane_where(plan.formulas.states)
    words: dict[str, Any] = {**AT, **WORDS, "W": w, "code": rows.code * w, "wrong": rows.wrong * w, "unseen": UNSEEN}
    words |= {"fill": "\n".join(fill_lines(plan, rows)), "until": rows.until * w}
    ending = ending_words(
        plan, rows, replace(where, member=f"(tile + l if l < count and S[{rows.code * w} + l] == {Code.RUNNING} else -1)")
    )
    words |= {
        "finish": ending["finish"],
        "event_arrays": ending["event_arrays"],
        "watching": "pass" if plan.watch is None else f"ended = 0\n{ending['watching']}",
    }
    first = put_state(where.first, rows.y, w)
    later = put_state(where.out, rows.saved, w)
    here = f"S[{rows.code * w} + l] == {Code.RUNNING}"
    words |= {"landing": "pass", "saves_here": here}
    if plan.watch is not None and plan.watch.terminal:
        words["saves_here"] = f"{here} or (status[i] == {Code.RUNNING} and save[q] <= S[{rows.until * w} + l])"
        words["landing"] = fit(LANDING, end="pass" if plan.saves else first, stopped=ending["stopped"], **words)
    words["first_save"] = fit(FIRST_SAVE, put=first, **words) if plan.saves else "pass"
    words["saving"] = fit(SAVING, put=later, saved=saved_text(plan), **words) if plan.saves else "pass"
    to_save = advance_to_save(plan, ADVANCE_TO_SAVE, "ahead")
    words["advance"] = fit(ADVANCE_AND_WATCH if plan.watch is not None else to_save if plan.saves else ADVANCE, **words)
    return fit(RUN, **words)
