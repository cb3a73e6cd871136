"""The text of a stiff step of many states: the lines of rosenbrock_step as loops over the rows of S, lanes innermost.

The right-hand side, the Jacobian and its elimination are a function each, compiled once. Where the elimination is very many operations
it is that of a dense matrix, in loops as well.
"""

from odesim.ir.scalars import printed
from odesim.run.lane_dense import restore_lines, touched
from odesim.run.lane_plan import KernelPlan, Rows, at, call_right, load_rows, span_arguments, span_lines
from odesim.run.lane_rosenbrock import ahead_lines, first_step_lines, judge_lines, power_lines, slope_lines, weighted
from odesim.run.lane_systems import residual
from odesim.stepper.rosenbrock import CHECKED
from odesim.stepper.rosenbrock_methods import Rosenbrock

DENSE = """
@kernel
def eliminate(S):
    for d in range(0, {size}, {w}):
        for l in range({w}):
            S[{matrix} + d + l] = 0.0
    for l in range({w}):
        g = S[{g} + l]
        {entries}
    for k in range({N}):
        row = {matrix} + k * {row}
        for l in range({w}):
            S[row + k * {w} + l] = 1.0 / S[row + k * {w} + l]
        for i in range(k + 1, {N}):
            low = {matrix} + i * {row}
            for l in range({w}):
                S[low + k * {w} + l] *= S[row + k * {w} + l]
            for j in range(k + 1, {N}):
                for l in range({w}):
                    S[low + j * {w} + l] -= S[low + k * {w} + l] * S[row + j * {w} + l]


@kernel
def solve(S, at):
    for d in range(0, {states}, {w}):
        for l in range({w}):
            S[{x} + {sums} + d + l] = S[at + d + l]
    for d in range(0, {sums}, {w}):
        for l in range({w}):
            S[{x} + d + l] = S[{late} + d + l]
    for k in range({N}):
        for i in range(k + 1, {N}):
            for l in range({w}):
                S[{x} + i * {w} + l] -= S[{matrix} + i * {row} + k * {w} + l] * S[{x} + k * {w} + l]
    for k in range({N} - 1, -1, -1):
        for j in range(k + 1, {N}):
            for l in range({w}):
                S[{x} + k * {w} + l] -= S[{matrix} + k * {row} + j * {w} + l] * S[{x} + j * {w} + l]
        for l in range({w}):
            S[{x} + k * {w} + l] *= S[{matrix} + k * {row} + k * {w} + l]
    for d in range(0, {states}, {w}):
        for l in range({w}):
            S[at + d + l] = S[{x} + {sums} + d + l]
""".strip("\n")


def lane_loop(name: str, arguments: str, lines: list[str], width: int) -> str:
    """The text of a function that runs these lines for each lane."""
    return "\n".join(["@kernel", f"def {name}({arguments}):", f"    for l in range({width}):", *(f"        {line}" for line in lines)])


def each(count: int, width: int, *body: str) -> list[str]:
    """Lines that run body for each lane of count rows, d apart."""
    inner = [f"        {line}" for line in body]
    return [f"for d in range(0, {count * width}, {width}):", f"    for l in range({width}):", *inner] if count else []


def offset(number: int) -> str:
    """A whole number as an argument: of a literal numba would compile the function once for each."""
    return f"int64({number})"


def row(first: range | int, width: int) -> str:
    """The text of an element of a row in such a loop, d beyond the first; of a row of its own for a number."""
    return f"S[{first.start * width} + d + l]" if isinstance(first, range) else at(first, width)


def begin_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of the functions that a step calls, and of f, J and the first step of all lanes."""
    w, n, loops = plan.width, plan.formulas.states, rows.loops
    kept = range(rows.f[0], rows.f[0] + n + len(rows.slopes))
    lines = [
        f"for l in range({w}):",
        *(f"    {line}" for line in span_lines(plan, rows)),
        f"    {at(loops.new, w)} = t0",
        *each(n, w, f"{row(loops.after, w)} = {row(rows.y, w)}"),
        "jacobian(S)",
        *each(len(kept), w, f"{row(kept, w)} = {row(loops.ahead, w)}"),
        f"for l in range({w}):",
        *(
            f"    {line}"
            for line in [*load_rows("y", rows.y, w), *load_rows("p", rows.p, w), *load_rows("f", rows.f, w), *named(plan, rows)]
        ),
        *(f"    {line}" for line in span_lines(plan, rows, length=True)),
        *(f"    {line}" for line in first_step_lines(plan, rows, [f"f{d}" for d in range(n)])),
    ]
    begin = "\n".join(["@kernel", f"def begin(S, {span_arguments(plan)}, rtol, atol):", *(f"    {line}" for line in lines)])
    texts = [side_text(plan, rows), jacobian_text(plan, rows), *solver_texts(plan, rows), *later_text(plan, rows)]
    return "\n\n\n".join([*texts, *restore_text(plan, rows), begin])


def named(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that load the inputs of the Jacobian."""
    return [f"{name} = {at(r, plan.width)}" for name, r in zip(plan.linear.constants, rows.slopes, strict=True)]


def side_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of side(S, into, alpha): the right-hand side of the rows z, a part alpha of the step from t."""
    w, loops = plan.width, rows.loops
    time = f"time = {at(rows.t, w)} + alpha * {at(loops.length, w)} if alpha < 1.0 else {at(loops.new, w)}"
    lines = [*load_rows("z", loops.z, w), *load_rows("p", rows.p, w), time, call_right(plan, "time", "z", "k")]
    return lane_loop("side", "S, into, alpha", [*lines, *(f"S[into + {d * w} + l] = k{d}" for d in range(plan.formulas.states))], w)


def jacobian_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of jacobian(S): f and J at the state `after` and the time `new`, into `ahead`."""
    w, loops = plan.width, rows.loops
    lines, f = slope_lines(plan.linear, "n", "new")
    out = zip(loops.ahead, [*f, *plan.linear.constants], strict=True)
    load = [*load_rows("n", loops.after, w), *load_rows("p", rows.p, w), f"new = {at(loops.new, w)}"]
    return lane_loop("jacobian", "S", [*load, *lines, *(f"{at(r, w)} = {x}" for r, x in out)], w)


def solver_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The texts of eliminate(S), solve(S, at) and check(S, atol), for the linear systems of a step.

    solve puts the solution in the place of the right-hand side. check makes `error` NaN where the solution of the first stage, whose
    right-hand side z still holds, is not one.
    """
    linear, w, loops, n = plan.linear, plan.width, rows.loops, plan.formulas.states
    states = [f"y{d}" for d in range(n)]
    load = [f"g = {at(loops.g, w)}", *load_rows("p", rows.p, w), *load_rows("y", rows.y, w), *named(plan, rows)]
    late = {name: f"b_{name}" for name in linear.sums if "t" in linear.rows[name]}
    loads_late = [f"{late[name]} = {at(r, w)}" for name, r in zip(linear.sums, loops.late, strict=True) if name in late]
    unknown = [*linear.sums, *states]
    if loops.factors is not None:
        names = loops.factors.names()
        eliminate = [*load, *printed(loops.factors.code), *(f"{at(r, w)} = {x}" for r, x in zip(loops.matrix, names, strict=True))]
        lines, x = loops.factors.solve({y: f"b{d}" for d, y in enumerate(states)} | late, "x")
        solve = [*(f"{name} = {at(r, w)}" for r, name in zip(loops.matrix, names, strict=True)), *loads_late]
        solve += [*(f"b{d} = S[at + {d * w} + l]" for d in range(n)), *lines]
        solve += [f"{at(r, w)} = {x.get(name, '0.0')}" for r, name in zip(loops.x, unknown, strict=True)]
        solve += [f"S[at + {d * w} + l] = {x[y]}" for d, y in enumerate(states)]
        found = [lane_loop("eliminate", "S", eliminate, w), lane_loop("solve", "S, at", solve, w)]
    else:
        place = {name: k for k, name in enumerate(unknown)}
        entries = list(load[1:])
        for name, k in place.items():
            entries.append(f"{at(loops.matrix[k * len(unknown) + k], w)} = 1.0")
            for read, e in linear.rows[name].items():
                if read != "t":
                    scaled = f"g * {e}" if name[0] == "y" else e
                    entries.append(f"{at(loops.matrix[k * len(unknown) + place[read]], w)} -= {scaled}")
        from odesim.run.lane_feed import fit

        words = {"w": w, "N": len(unknown), "row": len(unknown) * w, "size": len(loops.matrix) * w, "matrix": loops.matrix[0] * w}
        words |= {"g": loops.g * w, "states": n * w, "sums": len(linear.sums) * w, "x": loops.x[0] * w}
        words["late"] = loops.late.start * w
        found = [fit(DENSE, entries="\n".join(entries), **words)]
    if loops.factors is not None and loops.factors.exact:
        return found
    checked = {name: f"x_{name}" for name in unknown}
    lines = [
        *load,
        *loads_late,
        *load_rows("b", loops.z, w),
        *(f"{checked[name]} = {at(r, w)}" for r, name in zip(loops.x, unknown, strict=True)),
    ]
    lines += ["good = True", *residual(linear, "g", {y: f"b{d}" for d, y in enumerate(states)} | late, checked, "good")]
    return [*found, lane_loop("check", "S, atol", [*lines, f"{at(loops.error, w)} = {at(loops.error, w)} if good else nan"], w)]


def later_text(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of later(S, at, d): adds d h df/dt to a right-hand side that depends on t."""
    linear, w, loops = plan.linear, plan.width, rows.loops
    if not linear.moves:
        return []
    lines = [
        f"g, later = {at(loops.g, w)}, d * {at(loops.length, w)}",
        *load_rows("p", rows.p, w),
        *load_rows("y", rows.y, w),
        *named(plan, rows),
    ]
    for d in range(plan.formulas.states):
        if "t" in linear.rows[f"y{d}"]:
            lines.append(f"S[at + {d * w} + l] += g * later * {linear.rows[f'y{d}']['t']}")
    for name, r in zip(linear.sums, loops.late, strict=True):
        if "t" in linear.rows[name]:
            lines.append(f"{at(r, w)} = later * {linear.rows[name]['t']}")
    return [lane_loop("later", "S, at, d", lines, w)]


def stage_lines(plan: KernelPlan, rows: Rows, i: int) -> list[str]:
    """Lines for stage i: its state in z, its u in loops.u[i]."""
    m: Rosenbrock = plan.method
    w, n, loops = plan.width, plan.formulas.states, rows.loops
    u = [row(r, w) for r in loops.u]
    place, g = offset(loops.u[i].start * w), at(loops.g, w)
    later = [f"later(S, {offset(loops.z[0] * w) if i == 0 else place}, {float(m.d[i])!r})"] if plan.linear.moves else []
    if i == 0:
        checks = [] if loops.factors is not None and loops.factors.exact else ["check(S, atol)"]
        begin = each(n, w, f"{row(loops.z, w)} = {g} * {row(rows.f, w)}")
        return [*begin, *later, *each(n, w, f"{u[0]} = {row(loops.z, w)}"), f"solve(S, {place})", *checks]
    state = weighted(row(rows.y, w), [(float(a), u[j]) for j, a in enumerate(m.A[i, :i])])
    sums = weighted("", [(m.gamma * float(c), u[j]) for j, c in enumerate(m.C[i, :i])])
    return [
        *each(n, w, f"{row(loops.z, w)} = {state}"),
        f"side(S, {place}, {float(m.alpha[i])!r})",
        *each(n, w, f"{u[i]} = {sums} + {g} * {u[i]}"),
        *later,
        f"solve(S, {place})",
    ]


def restore_text(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of restore(S): moves the state `after` so that its invariants have their values."""
    places, w = touched(plan), plan.width
    load = [f"n{d} = {at(rows.loops.after[d], w)}" for d in places]
    put = [f"{at(rows.loops.after[d], w)} = n{d}" for d in places]
    return [lane_loop("restore", "S", [*load, *restore_lines(plan, rows, "n"), *put], w)] if places else []


def step_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of one step of all lanes, which returns how many have ended."""
    m: Rosenbrock = plan.method
    w, n, loops = plan.width, plan.formulas.states, rows.loops
    u, g, z, after = [row(r, w) for r in loops.u], at(loops.g, w), row(loops.z, w), row(loops.after, w)
    place, slope = m.dense(CHECKED).tolist(), m.dense_slope(CHECKED).tolist()
    q = range(loops.ahead[0], loops.ahead[0] + n)  # where the new f comes later
    error, defect, accept = at(loops.error, w), at(loops.defect, w), at(loops.accept, w)
    kept = range(rows.f[0], rows.f[0] + n + len(rows.slopes))
    lines = [
        f"for l in range({w}):",
        *(f"    {line}" for line in ahead_lines(plan, rows)),
        f"    {at(loops.new, w)}, {at(loops.length, w)}, {g} = new, h, g",
        f"    {error}, {defect} = 0.0, 0.0",
        *each(len(rows.slopes), w, f"{error} += 0.0 * {row(rows.slopes, w)}"),  # an infinite entry would solve every system by 0
        "eliminate(S)",
        *(line for i in range(m.stages) for line in stage_lines(plan, rows, i)),
        *each(n, w, f"{after} = {z} + {u[-1]}"),
        *(["restore(S)"] if plan.invariants else []),
        *each(n, w, f"{z} = {weighted(row(rows.y, w), [(c, u[j]) for j, c in enumerate(place)])}"),
        f"side(S, {offset(q[0] * w)}, {CHECKED!r})",
        *each(n, w, f"{row(q, w)} = {weighted('', [(m.gamma * c, u[j]) for j, c in enumerate(slope)])} - {g} * {row(q, w)}"),
        *each(len(loops.late), w, f"{row(loops.late, w)} = 0.0"),
        f"solve(S, {offset(q[0] * w)})",
        *each(
            n,
            w,
            f"a, b = abs({row(rows.y, w)}), abs({after})",
            "r = 1.0 / (atol + rtol * (a if a > b else b))",
            f"e, q = {u[-1]} * r, {row(q, w)} * r",
            f"{error} += {1 / n!r} * e * e + 0.0 * b",
            f"{defect} += {1 / n!r} * q * q",
        ),
        "jacobian(S)",
        f"for l in range({w}):",
        f"    {at(loops.accept, w)} = 0.0",
        *each(n, w, f"{accept} += 0.0 * {row(q, w)}"),
        f"for l in range({w}):",
        *(f"    {line}" for line in [*ahead_lines(plan, rows), f"error, defect = {error}, {defect}", *power_lines(plan)]),
        f"    error = error if {accept} == 0.0 else nan",
        *(f"    {line}" for line in judge_lines(plan, rows)),
        f"    {accept} = 1.0 if accept else 0.0",
        *(each(n, w, f"{row(range(rows.old[0], rows.old[0] + n), w)} = {row(rows.y, w)}") if plan.dense else []),
        *each(n, w, f"{row(rows.y, w)} = {after} if {accept} == 1.0 else {row(rows.y, w)}"),
        *each(len(kept), w, f"{row(kept, w)} = {row(loops.ahead, w)} if {accept} == 1.0 else {row(kept, w)}"),
    ]
    head = ["@kernel", f"def step(S, {span_arguments(plan)}, rtol, atol, most):", "    ended, due = 0, 0"]
    return "\n".join([*head, *(f"    {line}" for line in lines), "    return ended, due"])
