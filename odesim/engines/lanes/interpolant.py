"""The text of a state inside a step, from the rows of the step: odesim.stepper.control for lanes.

weights(h, theta) and blend(y, c, k, c, k, ...) are functions of the kernel, which makes it quick to compile.
"""

from collections.abc import Iterable, Sequence

from odesim.engines.lanes.lines import at, combination
from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.stepper.control import weight
from odesim.stepper.rosenbrock_methods import Rosenbrock


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
    total = combination(plan, "y", [(f"c{j}", f"k{j}") for j in used])
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
