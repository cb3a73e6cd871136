"""The text that writes members at their saved times with the interpolant of the last step."""

from typing import Any

from odesim.engines.lanes.interpolant import bent_lines, between_lines, horner, load_lines, powers_text
from odesim.engines.lanes.invariants import restore_lines
from odesim.engines.lanes.lines import at
from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.engines.template import Where, fit, put_state
from odesim.stepper.lanes import function, margin

SAVING = """
while due > 0:
    interpolate(S)
    due = 0
    for l in range({W}):
        if {member} >= 0 and S[{next} + l] <= S[{until} + l]:
            i, q = {member}, {saved}
            {put}
            {saved} = q + 1
            S[{next} + l] = save[q + 1] if q + 1 < saves else inf
            due += 1 if S[{next} + l] <= S[{until} + l] else 0
""".strip("\n")


SAVING_BY_POWERS = """
if due > 0:
    powers(S)
    for l in range({W}):
        time, new, last = S[{next} + l], S[{done} + l], S[{until} + l]
        if {member} >= 0 and time <= last:
            i, q, t, inverse = {member}, {saved}, S[{before} + l], 1.0 / S[{step} + l]
            {powers}
            while time < new and time <= last:
                theta = (time - t) * inverse
                {values}
                {put}
                q += 1
                time = save[q] if q < saves else inf
            if time == new and time <= last:
                {put_end}
                q += 1
                time = save[q] if q < saves else inf
            {saved} = q
            S[{next} + l] = time
""".strip("\n")


def saving_text(plan: KernelPlan, rows: Rows, where: Where) -> str:
    """Lines that write the saved times within the last step."""
    n, w = plan.formulas.states, plan.width
    words: dict[str, Any] = {"member": where.member, "saved": where.saved}
    words |= {name: getattr(rows, name) * w for name in ("until", "done", "before", "step")} | {"next": rows.next_save * w, "W": w}
    if not plan.by_powers:
        return fit(SAVING, put=put_state(where.out, rows.saved, w), **words)
    parts = [list(rows.old.values()), *rows.powers]
    names = [[f"c{p}_{d}" for p in range(len(parts))] for d in range(n)]
    # through a line of memory: read from the lanes, these would become one gather each, at several times the cost
    moved = [(rows.line * w + p * n + d, row, names[d][p]) for p, part in enumerate(parts) for d, row in enumerate(part)]
    lines = [f"S[{place}] = S[{row * w} + l]" for place, row, _ in moved] + [f"{name} = S[{place}]" for place, _, name in moved]
    return fit(
        SAVING_BY_POWERS,
        powers="\n".join(lines),
        values="\n".join(f"v{d} = {horner(names[d])}" for d in range(n)),
        put="\n".join(f"{where.out.format(d=d)} = v{d}" for d in range(n)),
        put_end=put_state(where.out, rows.y, w),
        **words,
    )


def save_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of interpolate(S), the state of all lanes at their next saved times by the interpolant of the last step; or powers(S)."""
    if not plan.saves:
        return []
    if plan.by_powers:
        return [powers_text(plan, rows)]
    w, states = plan.width, range(plan.formulas.states)
    if plan.discrete:  # has no time between two updates
        lines = [f"{at(row, w)} = {at(rows.y[d], w)}" for d, row in enumerate(rows.saved)]
        return [function("interpolate(S)", [f"for l in range({w}):", *margin(lines)])]
    lines = [
        f"h, new, time = {at(rows.step, w)}, {at(rows.done, w)}, {at(rows.next_save, w)}",
        f"theta = (time - {at(rows.before, w)}) / h",
        *(bent_lines(plan, rows) if plan.stiff else [*load_lines(plan, rows, states), *between_lines(plan, states)]),
        *restore_lines(plan, rows, "z"),
        *(f"{at(row, w)} = z{d} if time < new else {at(rows.y[d], w)}" for d, row in enumerate(rows.saved)),
    ]
    return [function("interpolate(S)", [f"for l in range({w}):", *margin(lines)])]
