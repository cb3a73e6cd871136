"""The text of one step of a Rosenbrock method in all lanes, as odesim.stepper.rosenbrock has it for one system.

The values f, J and df/dt at the start of a step stay in rows. From there a rejected step is tried again with another matrix.
"""

from collections.abc import Sequence

from odesim.ir.elimination import SparseSystem
from odesim.ir.scalars import printed, renamed
from odesim.run.lane_dense import restore_lines
from odesim.run.lane_events import begin_lines
from odesim.run.lane_plan import (
    KernelPlan,
    Rows,
    at,
    call_right,
    counted_lines,
    end_lines,
    fits_lines,
    load_rows,
    longest,
    next_lines,
    span_arguments,
    span_lines,
)
from odesim.run.lane_systems import Factors, factor, residual
from odesim.stepper.codes import Code
from odesim.stepper.control import LEAST_OLD, STIFF_GROW, STIFF_SHRINK
from odesim.stepper.rosenbrock import CHECKED
from odesim.stepper.rosenbrock_methods import Rosenbrock


def slope_lines(linear: SparseSystem, state: str, t: str) -> tuple[list[str], list[str]]:
    """Lines that compute f and J at a state (named <state>0, ...) and time; and the names of f."""
    names = {"t": t} | {f"y{d}": f"{state}{d}" for d in range(linear.states)}
    moved = {name: renamed(operation, names) for name, operation in linear.code.items()}
    return printed(moved), [names.get(f, f) for f in linear.outputs]


def mean_square(what: list[str], units: str = "r") -> str:
    """The expression of the mean of (what_d r_d)^2."""
    terms = [f"({e} * {units}{d}) * ({e} * {units}{d})" for d, e in enumerate(what)]
    return f"({' + '.join(terms)}) * {1 / len(what)!r}"


def zero(values: Sequence[str]) -> str:
    """The expression that is 0 if all names are finite, else NaN."""
    return " + ".join(f"0.0 * {x}" for x in values) or "0.0"


def first_step_lines(plan: KernelPlan, rows: Rows, f: list[str]) -> list[str]:
    """Lines that choose the first step from y0, ..., f and J, as odesim.stepper.control has it."""
    linear, w = plan.linear, plan.width
    y = [f"y{d}" for d in range(len(f))]
    finite = f"finite = {zero([*y, *f])} == 0.0"
    end = [f"{at(rows.code, w)} = {float(Code.RUNNING)} if finite else {float(Code.NON_FINITE)}", *begin_lines(plan, rows)]
    if not plan.chooses:
        return [finite, *end]
    bent, bend = linear.tangent(dict(zip(y, f, strict=True)), "1.0")
    return [
        *bent,
        finite,
        *(f"r{d} = 1.0 / (atol + rtol * abs({x}))" for d, x in enumerate(y)),
        f"size = sqrt({mean_square(y)})",
        f"slope = sqrt({mean_square(f)})",
        f"bend = sqrt({mean_square([bend[x] for x in y])})",
        "h, most = trial_step(size, slope, span)",
        "steep = steepest(slope, bend)",
        f"guess = power(0.01 / steep, {1 / plan.method.error_order!r})",
        f"{at(rows.h, w)} = first_step(guess, steep, most, t0, span, {longest(plan, rows)})",
        *end,
    ]


def begin_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of the start: f, J and the first step of all lanes."""
    linear, w = plan.linear, plan.width
    lines, f = slope_lines(linear, "y", "t0")
    text = [
        *span_lines(plan, rows, length=True),
        *load_rows("y", rows.y, w),
        *load_rows("p", rows.p, w),
        *lines,
        *(f"{at(row, w)} = {x}" for x, row in zip([*f, *linear.constants], [*rows.f, *rows.slopes], strict=True)),
        *first_step_lines(plan, rows, f),
    ]
    head = ["@kernel", f"def begin(S, {span_arguments(plan)}, rtol, atol):", f"    for l in range({w}):"]
    return "\n".join([*head, *(f"        {line}" for line in text)])


def weighted(start: str, weights: list[tuple[float, str]]) -> str:
    """The expression start + c0*u0 + c1*u1 + ..., one after another; products with 1 are left out."""
    terms = [u if c == 1.0 else f"{c!r} * {u}" for c, u in weights if c != 0.0]
    return " + ".join([*([start] if start else []), *terms]) or "0.0"


def stage_lines(plan: KernelPlan, factors: Factors, i: int) -> list[str]:
    """Lines for stage i: z, the state at which it is evaluated, and u<i>_d."""
    m: Rosenbrock = plan.method
    linear, n = plan.linear, plan.formulas.states
    out = []
    if i == 0:
        out += [f"k{d} = g * f{d}" for d in range(n)]
    else:
        row, before = m.A[i, :i].tolist(), [*m.A[i - 1, : i - 1].tolist(), 0.0]
        same = i > 1 and row[:-1] == before[:-1]  # all that the last stage saw, and its u
        for d in range(n):
            terms = [(a, f"u{j}_{d}") for j, a in enumerate(row)]
            out.append(f"z{d} = {weighted(f'z{d}', terms[-1:]) if same else weighted(f'y{d}', terms)}")
        alpha = float(m.alpha[i])
        out.append(call_right(plan, f"t + {alpha!r} * h" if alpha < 1 else "new", "z", "k"))
        for d in range(n):
            before = [(m.gamma * float(c), f"u{j}_{d}") for j, c in enumerate(m.C[i, :i])]
            out.append(f"k{d} = {weighted('', before)} + g * k{d}")
    b = {f"y{d}": f"k{d}" for d in range(n)}
    if linear.moves and m.d[i] != 0:
        out.append(f"later = {float(m.d[i])!r} * h")
        for name, row_ in linear.rows.items():
            if "t" in row_ and name in b:
                out.append(f"{b[name]} = {b[name]} + g * later * {row_['t']}")
            elif "t" in row_:
                b[name] = f"b_{name}"
                out.append(f"b_{name} = later * {row_['t']}")
    lines, x = factors.solve(b, f"u{i}_")
    out += lines
    out += [f"u{i}_{d} = 0.0" for d in range(n) if f"y{d}" not in x]
    if i == 0 and not factors.exact:
        out += residual(linear, "g", b, x, "good")
    return out


def defect_lines(plan: KernelPlan, factors: Factors) -> list[str]:
    """Lines for q<d>: the distance of the interpolant from the solution within the step (odesim.stepper.rosenbrock.Stages.defect)."""
    m: Rosenbrock = plan.method
    n = plan.formulas.states
    place, slope = m.dense(CHECKED).tolist(), m.dense_slope(CHECKED).tolist()
    out = [f"z{d} = {weighted(f'y{d}', [(c, f'u{j}_{d}') for j, c in enumerate(place)])}" for d in range(n)]
    out.append(call_right(plan, f"t + {CHECKED!r} * h", "z", "k"))
    out += [f"k{d} = {weighted('', [(m.gamma * c, f'u{j}_{d}') for j, c in enumerate(slope)])} - g * k{d}" for d in range(n)]
    lines, _ = factors.solve({f"y{d}": f"k{d}" for d in range(n)}, "q")
    return [*out, *lines]


def ahead_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines for the end of the next step: new, h, g = gamma h; whether it is the last one, or too small."""
    w = plan.width
    return [
        *span_lines(plan, rows),
        f"t, size = {at(rows.t, w)}, {at(rows.h, w)}",
        *end_lines("SHORTEST"),
        f"g = {plan.method.gamma!r} * h",
        f"ratio = SAFETY * h / {at(rows.error, w)}",  # of the last step: h * error^(-1/p)
    ]


def judge_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines for accept, code and the next step from the squared norm `error`, `less` = error^(-1/p)."""
    w, p = plan.width, float(plan.method.error_order)
    most = LEAST_OLD ** (-1 / p)
    return [
        *fits_lines(plan, rows),
        "factor = gustafsson(less, ratio, fits)",
        *next_lines(plan, rows, (STIFF_SHRINK, STIFF_GROW)),
        f"{at(rows.error, w)} = h * (less if less < {most!r} else {most!r}) if accept else {at(rows.error, w)}",
        *counted_lines(plan, rows),
        *saved_lines(plan, rows),
    ]


def saved_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that keep the start of the step for `interpolate`."""
    w = plan.width
    where = [f"{at(rows.before, w)}, {at(rows.step, w)} = t, h", f"{at(rows.done, w)} = new if accept else -inf"]
    due = [f"due += 1 if accept and {at(rows.next_save, w)} <= new else 0"]
    return [*(where if plan.dense else []), *(due if plan.saves else [])]


def power_lines(plan: KernelPlan) -> list[str]:
    """Lines for less = error^(-1/p), of the larger of error and defect if the error is accepted; both are squared norms."""
    return [
        "error = (error if error >= defect else defect) if error <= 1.0 else error",
        "less = error if error > LEAST_SQUARE else LEAST_SQUARE",
        f"less = power(less, {-0.5 / plan.method.error_order!r})",
    ]


def step_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of one step of all lanes, which returns how many have ended."""
    m: Rosenbrock = plan.method
    linear, w, n = plan.linear, plan.width, plan.formulas.states
    factors, last = factor(linear, "g"), m.stages - 1
    slopes, f = slope_lines(linear, "n", "new")
    changed = [
        *((row, f"n{d}", f"y{d}") for d, row in enumerate(rows.y)),
        *((row, x, f"f{d}") for d, (row, x) in enumerate(zip(rows.f, f, strict=True))),
    ]
    changed += [(row, name, at(row, w)) for name, row in zip(linear.constants, rows.slopes, strict=True)]
    lines = [
        *load_rows("y", rows.y, w),
        *load_rows("p", rows.p, w),
        *load_rows("f", rows.f, w),
        *(f"{name} = {at(row, w)}" for name, row in zip(linear.constants, rows.slopes, strict=True)),
        *ahead_lines(plan, rows),
        f"good = {zero(linear.constants)} == 0.0",  # an infinite entry would solve every system by 0
        *printed(factors.code),
        *(line for i in range(m.stages) for line in stage_lines(plan, factors, i)),
        *(f"n{d} = z{d} + u{last}_{d}" for d in range(n)),
        *restore_lines(plan, rows, "n"),
        *(f"a, b = abs(y{d}), abs(n{d})\nr{d} = 1.0 / (atol + rtol * (a if a > b else b))" for d in range(n)),
        f"error = {mean_square([f'u{last}_{d}' for d in range(n)])} + {zero([f'n{d}' for d in range(n)])}",
        *defect_lines(plan, factors),
        f"defect = {mean_square([f'q{d}' for d in range(n)])}",
        *power_lines(plan),
        *slopes,
        f"error = error if good and {zero(f)} == 0.0 else nan",
        *judge_lines(plan, rows),
        *(f"{at(row, w)} = {a} if accept else {b}" for row, a, b in changed),
        *(f"{at(row, w)} = y{d}" for d, row in rows.old.items()),
        *(f"{at(row, w)} = u{s}_{d}" for s in range(len(rows.stages)) for d, row in rows.stages[s].items()),
    ]
    head = ["@kernel", f"def step(S, {span_arguments(plan)}, rtol, atol, most):", "    ended, due = 0, 0", f"    for l in range({w}):"]
    body = [f"        {inner}" for line in lines for inner in line.split("\n")]
    return "\n".join([*head, *body, "    return ended, due"])
