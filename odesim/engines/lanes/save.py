"""The text that writes members at their saved times, from what a step leaves behind for its interpolant."""

from typing import Any

from odesim.engines.lanes.lines import at, combination
from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.engines.template import Where, fit, put_state
from odesim.solve.methods import Method

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
    """Lines that write what the last step passed."""
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


def horner(coefficients: list[str]) -> str:
    """c0 + theta (c1 + theta (c2 + ...))."""
    text = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        text = f"{c} + theta * ({text})"
    return text


def save_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """interpolate(S), the state of all lanes at their next saved times by the interpolant of the last step; or powers(S), the
    polynomial in theta that the interpolant is, computed once for all times that a step passes."""
    if not plan.saves:
        return []
    w = plan.width
    if not plan.by_powers:
        name = "interpolate"
        lines = [
            f"h, new, time = {at(rows.step, w)}, {at(rows.done, w)}, {at(rows.next_save, w)}",
            f"theta = (time - {at(rows.before, w)}) / h",
            *dense_weights(plan.method),
        ]
        inside = dense_states(plan, rows)
        lines += [f"{at(rows.saved[d], w)} = {text} if time < new else {at(rows.y[d], w)}" for d, text in enumerate(inside)]
    else:
        name, lines = "powers", [f"h = {at(rows.step, w)}"]
        for p, row in enumerate(rows.powers):
            weights = [(float(x), rows.stages[j]) for j, x in enumerate(plan.method.P[:, p]) if x != 0.0]
            sums = [" + ".join(f"{x!r} * {at(stage[d], w)}" for x, stage in weights) for d in range(plan.formulas.states)]
            lines += [f"{at(target, w)} = h * ({text})" for target, text in zip(row, sums, strict=True)]
    return ["\n".join(["@kernel", f"def {name}(S):", f"    for l in range({w}):", *(f"        {line}" for line in lines)])]


def dense_weights(m: Method) -> list[str]:
    """c<j>: what stage j counts for at theta."""
    lines = []
    for j in dense_stages(m):
        text = "0.0"
        for x in reversed(m.P[j].tolist()):
            text = f"(({text} + {x!r}) * theta)"
        lines.append(f"c{j} = h * {text}")
    return lines


def dense_states(plan: KernelPlan, rows: Rows) -> list[str]:
    """The components of the state at theta."""
    w, used = plan.width, dense_stages(plan.method)
    return [combination(plan, at(row, w), [(f"c{j}", at(rows.stages[j][d], w)) for j in used]) for d, row in rows.old.items()]


def dense_stages(m: Method) -> list[int]:
    """The stages that the interpolant reads."""
    return [j for j in range(m.stages) if any(m.P[j])]
