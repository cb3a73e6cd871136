"""The text of states inside a step: the interpolant, the linear invariants that it keeps, and saved times.

weights(h, theta) and blend(y, c, k, c, k, ...) are functions of the kernel, which makes it quick to compile. Their arithmetic is that of a
single run, operation by operation.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.invariants import exact_sums, parameter_values, weight_operand
from odesim.run.lane_plan import KernelPlan, Rows, at
from odesim.run.lane_systems import product
from odesim.stepper.control import weight
from odesim.stepper.lanes import Kinds, function, margin
from odesim.stepper.rosenbrock_methods import Rosenbrock
from odesim.stepper.template import Where, fit, put_state


def weight_text(coefficients: Iterable[float]) -> str:
    """b(theta) as an expression with the operations of `weight`."""
    text = "0.0"
    for x in reversed(list(coefficients)):
        text = f"(({text} + {float(x)!r}) * theta)"
    return text


def bent_weight_text(method: Rosenbrock, j: int) -> str:
    """The weight of stage j of a Rosenbrock method as an expression in theta and rest = 1 - theta: operations of Rosenbrock.dense."""
    bent = "0.0"
    for x in reversed(method.H[:, j].tolist()):
        bent = f"({bent} * theta + {x!r})"
    return f"theta * ({float(method.weights[j])!r} + rest * {bent})"


def used_stages(plan: KernelPlan) -> list[int]:
    """The stages that the interpolant uses."""
    return [j for j in range(plan.method.stages) if any(plan.method.P[j])]


def length(plan: KernelPlan) -> str:
    """The factor of the stages' weights: the length of the step, or 1 for a stiff method, whose stages contain it."""
    return "" if plan.stiff else "h * "


def interpolant_texts(plan: KernelPlan) -> list[str]:
    """The texts of weights(h, theta), the weights of the stages, and blend(y, c, k, c, k, ...), a state inside a step."""
    if not plan.dense or (plan.watch is None and (plan.by_powers or plan.stiff)):
        return []
    used = used_stages(plan)
    lines = [f"c{j} = {length(plan)}{weight_text(plan.method.P[j])}" for j in used]
    lines.append(f"return ({', '.join(f'c{j}' for j in used)},)")
    weights = ["@inlined", "def weights(h, theta):", *(f"    {line}" for line in lines)]
    total = Kinds(plan.formulas.dtype).combined("y", [(f"c{j}", f"k{j}") for j in used])
    return ["\n".join(weights), f"@inlined\ndef blend(y, {', '.join(f'c{j}, k{j}' for j in used)}):\n    return {total}"]


def load_lines(plan: KernelPlan, rows: Rows, wanted: Iterable[int]) -> list[str]:
    """Lines that load the interpolant's inputs for the states wanted: y<d>, k<stage>_<d>."""
    states = list(wanted)
    lines = [f"y{d} = {at(rows.old[d], plan.width)}" for d in states]
    return lines + [f"k{j}_{d} = {at(rows.stages[j][d], plan.width)}" for d in states for j in used_stages(plan)]


def weight_lines(plan: KernelPlan, theta: float | None = None) -> list[str]:
    """Lines that set c<stage> from h and the name theta, or for a number."""
    used = used_stages(plan)
    if theta is None:
        return [f"{', '.join(f'c{j}' for j in used)}, = weights(h, theta)"]
    return [f"c{j} = {length(plan)}{weight(plan.method.P[j].tolist(), len(plan.method.P[j]), theta)!r}" for j in used]


def between_lines(plan: KernelPlan, wanted: Iterable[int], theta: float | None = None) -> list[str]:
    """Lines that set z<d>, the states wanted at the name theta of the last step, or at a number, from h and what was loaded."""
    return [*weight_lines(plan, theta), *blend_lines(plan, wanted)]


def blend_lines(plan: KernelPlan, wanted: Iterable[int]) -> list[str]:
    """Lines that set z<d>, the states wanted, from c<stage> and what was loaded."""
    used = used_stages(plan)
    return [f"z{d} = blend(y{d}, {', '.join(f'c{j}, k{j}_{d}' for j in used)})" for d in wanted]


def bent_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that set z<d>, all states at theta of the last step of a Rosenbrock method, in the form of Rosenbrock.dense."""
    m: Rosenbrock = plan.method
    lines = ["rest = 1.0 - theta", *(f"c{j} = {bent_weight_text(m, j)}" for j in range(m.stages))]
    stages = [[f"c{j} * {at(rows.stages[j][d], plan.width)}" for j in range(m.stages)] for d in rows.old]
    return lines + [f"z{d} = {' + '.join([at(row, plan.width), *stages[d]])}" for d, row in rows.old.items()]


def powers_text(plan: KernelPlan, rows: Rows) -> str:
    """powers(S): the polynomial in theta that the interpolant is, in all lanes, for all times that a step passes."""
    w, lines = plan.width, [f"h = {at(rows.step, plan.width)}"]
    for p, row in enumerate(rows.powers):
        weights = [(float(x), rows.stages[j]) for j, x in enumerate(plan.method.P[:, p]) if x != 0.0]
        sums = [" + ".join(f"{x!r} * {at(stage[d], w)}" for x, stage in weights) for d in range(plan.formulas.states)]
        lines += [f"{at(target, w)} = h * ({text})" for target, text in zip(row, sums, strict=True)]
    return "\n".join(["@kernel", "def powers(S):", f"    for l in range({w}):", *(f"        {line}" for line in lines)])


def horner(coefficients: Sequence[str]) -> str:
    """The expression c0 + theta (c1 + theta (c2 + ...)) of a state in these powers."""
    text = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        text = f"{c} + theta * ({text})"
    return text


def restore_lines(plan: "KernelPlan", rows: "Rows", state: str) -> list[str]:
    """Lines that move a state (named <state>0, ...) so that its invariants, one after another, have the values of the start."""
    wanted = sorted({k for invariant in plan.invariants for k in invariant.reads})
    lines = [f"p{k} = S[{rows.p[k] * plan.width} + l]" for k in wanted]
    for i, (invariant, row) in enumerate(zip(plan.invariants, rows.sums, strict=True)):
        terms = []
        for place, factor in zip(invariant.places, invariant.weights, strict=True):
            terms.append(f"m{i}_{place}")
            lines.append(f"m{i}_{place} = {product(weight_operand(factor), f'{state}{place}')}")
        lines += [
            f"rest = S[{row * plan.width} + l] - ({' + '.join(terms)})",
            f"size = {' + '.join(f'{m} * {m}' for m in terms)}",
            "part = rest / size if size > 0.0 and abs(rest) < inf else 0.0",
            *(f"{state}{d} = {state}{d} + {state}{d} * (m{i}_{d} * part)" for d in invariant.places),
        ]
    return lines


def touched(plan: "KernelPlan") -> list[int]:
    """The states that occur in an invariant."""
    return sorted({place for invariant in plan.invariants for place in invariant.places})


def start_sums(plan: "KernelPlan", states: Array, shared: Mapping[str, Any], own: Mapping[str, Array]) -> Array:
    """Values (N, invariants) of the invariants of members that start from states (N, n); (1, invariants) where all have the same.

    shared: parameters of all members. own {name: (N, *shape)}: parameters of each member.
    """
    firsts = plan.formulas.values
    columns = [exact_sums(i, states, parameter_values(firsts, i.reads, shared, own)) for i in plan.invariants]
    return np.stack(np.broadcast_arrays(*columns), axis=1) if columns else np.empty((1, 0))


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
