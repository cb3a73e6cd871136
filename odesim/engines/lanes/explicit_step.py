"""The text of one explicit step of all lanes: stages, error and control as in a single run."""

from odesim.engines.lanes.events import begin_lines, counted, watched_lines
from odesim.engines.lanes.lines import (
    at,
    call_right,
    combination,
    counted_lines,
    end_lines,
    fits_lines,
    load_numbers,
    load_state,
    longest,
    next_lines,
    real,
    span_arguments,
    span_lines,
)
from odesim.engines.lanes.plan import KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.stepper.codes import Code


def squares(what: str, old: str, new: str, n: int) -> list[str]:
    """total: the sum over d of (what_d / (atol + rtol max(|old_d|, |new_d|)))^2, not finite where new is not; up to 64 in sequence.

    More than 64 take 32 partial sums, as every norm does.
    """
    lanes = 32 if n > 64 else 1
    out = [f"total{j} = 0.0" for j in range(lanes)]
    for d in range(n):
        out += [f"a, b = abs({old}{d}), abs({new}{d})", f"q = {what}{d} / (atol + rtol * (a if a > b else b))"]
        out.append(f"total{d % lanes} += q * q + (b - b)")
    while lanes > 1:
        lanes //= 2
        out += [f"total{j} += total{j + lanes}" for j in range(lanes)]
    return [*out, "total = total0"]


def begin_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of the start: the derivative and the first step of all lanes, Hairer, Norsett, Wanner I, II.4."""
    n, w, m = plan.formulas.states, plan.width, plan.method
    put = [f"{at(row, w)} = f{d}" for d, row in enumerate(rows.f)]
    lines = [
        *(span_lines(plan, rows, length=True) if plan.parts else []),
        *load_numbers(plan, rows),
        call_right(plan, "t0", "y", "f"),
        *put,
        *(f"v{d} = f{d} - f{d}" for d in range(n)),
        f"finite = {' + '.join([f'(y{d} - y{d})' for d in range(n)] + [f'v{d}' for d in range(n)])} == 0.0",
        *squares("y", "y", "y", n),
        f"size = sqrt(total / {n})",
        *squares("f", "y", "y", n),
        f"slope = sqrt(total / {n})",
        "h, most = trial_step(size, slope, span)",
        *(f"z{d} = {real(plan, f'y{d} + h * f{d}')}" for d in range(n)),
        call_right(plan, "t0 + h", "z", "g"),
        *(f"e{d} = -f{d} + g{d}" for d in range(n)),
        *squares("e", "y", "y", n),
        f"steep = steepest(slope, sqrt(total / {n}) / h)",
        f"guess = power(0.01 / steep, {1 / max(m.error_order, 1)!r})",
        f"{at(rows.h, w)} = first_step(guess, steep, most, t0, span, {longest(plan, rows)})",
        f"{at(rows.code, w)} = {float(Code.RUNNING)} if finite else {float(Code.NON_FINITE)}",
        *begin_lines(plan, rows),
    ]
    return "\n".join(
        [
            *("@kernel", f"def begin(S, {span_arguments(plan)}, rtol, atol):", *([] if plan.parts else ["    span = t1 - t0"])),
            f"    for l in range({w}):",
            *(f"        {line}" for line in lines),
        ]
    )


def stage_lines(plan: KernelPlan, first: int, last: int) -> list[str]:
    """Lines for stages first to last; z: the state of a stage, k<s>_<d>: its derivative."""
    n, m = plan.formulas.states, plan.method
    out = []
    for s in range(first, last + 1):
        weights = [(j, float(m.A[s, j])) for j in range(s) if m.A[s, j] != 0.0]
        if plan.strict or plan.fixed:  # a fixed step: the products are computed once
            out += [f"c{j} = h * {a!r}" for j, a in weights]
            late = plan.formulas.late
            sums = [combination(plan, f"y{d}", [(f"c{j}", f"k{j}_{d}") for j, _ in weights], late) for d in range(n)]
        else:
            inner = [" + ".join(f"{a!r} * k{j}_{d}" for j, a in weights) for d in range(n)]
            sums = [real(plan, f"y{d} + h * ({inner[d]})") for d in range(n)]
        out += [f"z{d} = {text}" for d, text in enumerate(sums)]
        c = float(m.c[s])
        out.append(call_right(plan, f"t + {c!r} * h" if c < 1.0 else "new", "z", f"k{s}_"))
        if s == m.last:
            out += [f"n{d} = z{d}" for d in range(n)]
    return out


def error_lines(plan: KernelPlan) -> list[str]:
    """Lines for error, the norm of the estimate; NaN if the new state or its derivative is not finite."""
    n, m = plan.formulas.states, plan.method
    out: list[str] = []
    for row in range(2):
        weights = [(j, float(m.E[row, j])) for j in range(m.last + 1) if m.E[row, j] != 0.0]
        if not weights:
            continue
        if plan.strict:
            out += [f"c{j} = h * {a!r}" for j, a in weights]
            out += [f"e{d} = {combination(plan, '0.0', [(f'c{j}', f'k{j}_{d}') for j, _ in weights])}" for d in range(n)]
        else:
            out += [f"e{d} = h * ({' + '.join(f'{a!r} * k{j}_{d}' for j, a in weights)})" for d in range(n)]
        out += squares("e", "y", "n", n)
        if row == 0:
            out += [f"first = total / {n}", "error = sqrt(first)"]
        else:
            out += [f"total = total / {n}", "error = first / sqrt(first + 0.01 * total) if total != 0.0 else error"]
    if m.E[0, m.last] == 0.0:
        sums = " + ".join(f"(k{m.last}_{d} - k{m.last}_{d})" for d in range(n))
        out.append(f"error = nan if error <= 1.0 and {sums} != 0.0 else error")
    return out


def step_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of one step of all lanes, which returns how many have ended."""
    n, w, m = plan.formulas.states, plan.width, plan.method
    lines = [
        *load_numbers(plan, rows),
        *load_state(plan, "k0_", rows.f),
        *span_lines(plan, rows),
        f"t, size = {at(rows.t, w)}, {at(rows.h, w)}",
        *end_lines(),
        *stage_lines(plan, 1, m.last),
        *error_lines(plan),
    ]
    if plan.dense:
        for s in range(m.last + 1, m.stages):
            finite = " + ".join(f"(z{d} - z{d}) + (k{s}_{d} - k{s}_{d})" for d in range(n))
            lines += [*stage_lines(plan, s, s), f"wild = {'wild + ' if s > m.last + 1 else ''}{finite}"]
        if m.stages > m.last + 1:
            needed = "error <= 1.0" if plan.watch is not None else f"error <= 1.0 and {at(rows.next_save, w)} < new"
            lines.append(f"error = nan if {needed} and wild != 0.0 else error")
    lines += [
        *fits_lines(plan, rows),
        f"scale, before = log2(error if error > LEAST else LEAST), {at(rows.error, w)}",
        f"factor = SAFETY * exp2(pi_goal(scale, before, fits, {m.gains[0]!r}, {m.gains[1]!r}))",
        *next_lines(plan, rows, m.factors),
        f"{at(rows.error, w)} = (scale if scale > LOG2_LEAST_OLD else LOG2_LEAST_OLD) if accept else before",
        *counted_lines(plan, rows),
        *(f"{at(row, w)} = n{d} if accept else y{d}" for d, row in enumerate(rows.y)),
        *(f"{at(row, w)} = k{m.last}_{d} if accept else k0_{d}" for d, row in enumerate(rows.f)),
    ]
    if plan.dense:
        lines += [f"{at(row, w)} = y{d}" for d, row in rows.old.items()]
        lines += [f"{at(row, w)} = k{s}_{d}" for s, stage in enumerate(rows.stages) for d, row in stage.items()]
        lines += [f"{at(rows.before, w)}, {at(rows.step, w)} = t, h", f"{at(rows.done, w)} = new if accept else -inf"]
    if plan.saves:
        lines.append(f"due += 1 if accept and {at(rows.next_save, w)} <= new else 0")
    if plan.joined:
        lines += ["taken = accept", f"{at(rows.until, w)} = {at(rows.done, w)}"]
        lines += watched_lines(plan, rows, "t", {d: f"n{d}" for d in range(n)})
    counts = counted(plan)
    zeros = ", ".join("0" for _ in counts.split(", "))
    head = ["@kernel", f"def step(S, {span_arguments(plan)}, rtol, atol, most):", f"    {counts} = {zeros}", f"    for l in range({w}):"]
    return "\n".join([*head, *(f"        {line}" for line in lines), f"    return {counts}"])
