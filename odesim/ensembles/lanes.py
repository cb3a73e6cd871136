"""The text of a kernel that integrates W members of an ensemble in lockstep, each with its own time and step.

A member's numbers stand in lane l of rows of W: S[row*W + l]. A loop over the lanes does one step of all of them; the rest is
done lane by lane: what is finished is written, the next member takes its place. In strict mode a member has the bits that the
integrator of one system gives it: the arithmetic here is that of odesim.solve.explicit, in the same order.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from odesim.codegen.numba_ import OWN, PLAIN, check_strict, runtime_key
from odesim.codegen.straight import Formulas
from odesim.solve.tableau import Method

RUNTIME = ("maximum", "minimum", "powi")
# what a call is told: whole numbers and addresses, then for each parameter its address and how far its members are apart
SLOTS = (
    "STATE", "START", "Y0", "Y0_STEP", "OUT", "LAST", "STATUS", "T_END", "STEPS", "REJECTED", "SAVE", "SAVES", "FIRST", "END", "MOST",
    "STOP", "REALS", "PARAMS",
)  # fmt: skip
AT = {name: k for k, name in enumerate(SLOTS)}


@dataclass(frozen=True, eq=False)
class Plan:
    """What a kernel is made for. saves: members are kept at the times of a grid, not at the end only."""

    name: str
    formulas: Formulas
    method: Method
    width: int
    strict: bool
    saves: bool


class Rows:
    """Names of the rows of S, and how many there are."""

    def __init__(self, plan: Plan) -> None:
        n, m = plan.formulas.states, plan.method
        self.count = 0
        self.y, self.f, self.p = self._take(n), self._take(n), self._take(plan.formulas.count)
        (self.t, self.h, self.error, self.retry, self.steps, self.rejected, self.most, self.code) = self._take(8)
        self.old, self.stages = range(0), list[range]()
        self.next_save = self.before = self.step = self.done = -1
        if plan.saves:
            self.old = self._take(n)
            self.stages = [self._take(n) for _ in range(m.stages)]
            self.next_save, self.before, self.step, self.done = self._take(4)
            self.saved = self._take(n)

    def _take(self, count: int) -> range:
        first, self.count = self.count, self.count + count
        return range(first, self.count)


def at(row: int, width: int) -> str:
    """An element of S in the text."""
    return f"S[{row * width} + l]" if row else "S[l]"


def kernel_text(plan: Plan) -> str:
    """The module: `run(table)` integrates members FIRST to END - 1 of a chunk."""
    rows = Rows(plan)
    body = "\n\n\n".join([right_text(plan), begin_text(plan, rows), step_text(plan, rows), *save_text(plan, rows), run_text(plan, rows)])
    return f"{head_text(plan, body)}\n\n\n{body}\n"


@cache
def own_key() -> str:
    """8 hex digits of the source that the module inlines beside the runtime."""
    from odesim.solve.explicit import control, memory

    text = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in (control, memory))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def head_text(plan: Plan, body: str) -> str:
    """The imports that the body needs, and how it is compiled."""
    used = set(re.findall(r"\w+", body))
    plain = [w for w in PLAIN if w in used]
    if plan.strict:
        check_strict(plan.name, plain)
    math = [*plain, *(w for w in ("inf", "nan") if w in used)]
    runtime, own = ([w for w in words if w in used] for words in (RUNTIME, OWN))
    mode = "False" if plan.strict else '{"contract"}'
    what = f"{plan.name}, {plan.width} lanes of {plan.method.name}{', strict' if plan.strict else ''}"
    lines = [f'"""{what}: generated, runtime {runtime_key()}, {own_key()}."""', ""]
    lines += [f"from math import {', '.join(math)}", "", "import numba as nb", ""]
    lines += [f"from odesim.codegen.runtime import {', '.join(runtime)}"] if runtime else []
    lines += [f"from odesim.codegen.vmath import {', '.join(own)}"] if own else []
    lines += ["from odesim.ensembles.arithmetic import power", "from odesim.solve.explicit.memory import doubles, ints", ""]
    lines += [f'options = dict(error_model="numpy", fastmath={mode}, no_cpython_wrapper=True, no_cfunc_wrapper=True)']
    lines += ["kernel, inlined = nb.njit(**options), nb.njit(forceinline=True, **options)"]
    return "\n".join(lines)


def names(letter: str, count: int) -> list[str]:
    return [f"{letter}{k}" for k in range(count)]


def right_text(plan: Plan) -> str:
    """The right side of one member."""
    f = plan.formulas
    arguments = ", ".join(["t", *names("y", f.states), *names("p", f.count)])
    end = f"    return ({', '.join(f.outputs)},)"
    return "\n".join(["@inlined", f"def right({arguments}):", *(f"    {line}" for line in f.lines), end])


def call_right(plan: Plan, t: str, state: str, into: str, prefix: str = "p") -> str:
    """k0, k1, ... = right(t, z0, z1, ..., p0, ...)"""
    f = plan.formulas
    target = ", ".join(f"{into}{d}" for d in range(f.states)) + ("," if f.states == 1 else "")
    return f"{target} = right({', '.join([t, *(f'{state}{d}' for d in range(f.states)), *names(prefix, f.count)])})"


def load_rows(letter: str, rows: Iterable[int], width: int) -> list[str]:
    return [f"{letter}{k} = {at(row, width)}" for k, row in enumerate(rows)]


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


def combination(start: str, terms: list[tuple[str, str]]) -> str:
    """start + c0*k0 + c1*k1 + ..., one after another."""
    text = start
    for c, k in terms:
        text = f"({text} + {c} * {k})"
    return text[1:-1] if terms else text


def begin_text(plan: Plan, rows: Rows) -> str:
    """The derivative at the start and the first step of all lanes, Hairer, Norsett, Wanner I, II.4."""
    n, w, m = plan.formulas.states, plan.width, plan.method
    put = [f"{at(row, w)} = f{d}" for d, row in enumerate(rows.f)]
    lines = [
        *load_rows("y", rows.y, w),
        *load_rows("p", rows.p, w),
        call_right(plan, "t0", "y", "f"),
        *put,
        *(f"v{d} = f{d} - f{d}" for d in range(n)),
        f"finite = {' + '.join([f'(y{d} - y{d})' for d in range(n)] + [f'v{d}' for d in range(n)])} == 0.0",
        *squares("y", "y", "y", n),
        f"size = sqrt(total / {n})",
        *squares("f", "y", "y", n),
        f"slope = sqrt(total / {n})",
        "h = 0.01 * size / slope",
        "most = 100.0 * h",
        "fair = size > 1e-5 and slope > 1e-5 and h > 1e-12 * span",
        "h, most = (h if fair else 1e-6 * span), (most if fair else span)",
        "h = span if h > span else h",
        *(f"z{d} = y{d} + h * f{d}" for d in range(n)),
        call_right(plan, "t0 + h", "z", "g"),
        *(f"e{d} = -f{d} + g{d}" for d in range(n)),
        *squares("e", "y", "y", n),
        f"change = sqrt(total / {n}) / h",
        "steepest = change if change > slope and change < 1e300 else slope",
        f"guess = power(0.01 / steepest, {1 / max(m.error_order, 1)!r})",
        "guess = guess if 1e-15 < steepest and steepest < 1e300 else 1e-6 * span",
        f"{at(rows.h, w)} = guess if guess < most else most",
        f"{at(rows.code, w)} = 0.0 if finite else 5.0",
    ]
    return "\n".join(
        [
            *("@kernel", "def begin(S, t0, t1, rtol, atol):", "    span = t1 - t0", f"    for l in range({w}):"),
            *(f"        {line}" for line in lines),
        ]
    )


def stage_lines(plan: Plan, first: int, last: int) -> list[str]:
    """Stages first to last; z: the state of a stage, k<s>_<d>: its derivative."""
    n, m = plan.formulas.states, plan.method
    out = []
    for s in range(first, last + 1):
        weights = [(j, float(m.A[s, j])) for j in range(s) if m.A[s, j] != 0.0]
        if plan.strict:
            out += [f"c{j} = h * {a!r}" for j, a in weights]
            sums = [combination(f"y{d}", [(f"c{j}", f"k{j}_{d}") for j, _ in weights]) for d in range(n)]
        else:
            inner = [" + ".join(f"{a!r} * k{j}_{d}" for j, a in weights) for d in range(n)]
            sums = [f"y{d} + h * ({inner[d]})" for d in range(n)]
        out += [f"z{d} = {text}" for d, text in enumerate(sums)]
        c = float(m.c[s])
        out.append(call_right(plan, f"t + {c!r} * h" if c < 1.0 else "new", "z", f"k{s}_"))
        if s == m.last:
            out += [f"n{d} = z{d}" for d in range(n)]
    return out


def error_lines(plan: Plan) -> list[str]:
    """error: the norm of the estimate, NaN where the new state or its derivative is not finite."""
    n, m = plan.formulas.states, plan.method
    out: list[str] = []
    for row in range(2):
        weights = [(j, float(m.E[row, j])) for j in range(m.last + 1) if m.E[row, j] != 0.0]
        if not weights:
            continue
        if plan.strict:
            out += [f"c{j} = h * {a!r}" for j, a in weights]
            out += [f"e{d} = {combination('0.0', [(f'c{j}', f'k{j}_{d}') for j, _ in weights])}" for d in range(n)]
        else:
            out += [f"e{d} = h * ({' + '.join(f'{a!r} * k{j}_{d}' for j, a in weights)})" for d in range(n)]
        out += squares("e", "y", "n", n)
        if row == 0:
            out += [f"first = total / {n}", "error = sqrt(first)"]
        else:
            out += [f"total = total / {n}", "error = first / sqrt(first + 0.01 * total) if total != 0.0 else error"]
    if m.E[0, m.last] == 0.0:
        sums = " + ".join(f"(k{m.last}_{d} - k{m.last}_{d})" for d in range(n))
        out.append(f"error = error if {sums} == 0.0 else nan")
    return out


def step_text(plan: Plan, rows: Rows) -> str:
    """One step of all lanes; how many have come to an end."""
    n, w, m = plan.formulas.states, plan.width, plan.method
    lines = [
        *load_rows("y", rows.y, w),
        *load_rows("p", rows.p, w),
        *load_rows("k0_", rows.f, w),
        f"t, size = {at(rows.t, w)}, {at(rows.h, w)}",
        "last = t + 1.01 * size >= t1",
        "new = t1 if last else t + size",
        "small = (not last) and (new == t or size < 2.2e-15 * abs(t) or size < 2.2e-15 * (t - t0))",
        "h = new - t",
        *stage_lines(plan, 1, m.last),
        *error_lines(plan),
    ]
    if plan.saves:
        lines += stage_lines(plan, m.last + 1, m.stages - 1)
        if m.stages > m.last + 1:
            extra = " + ".join(f"(k{s}_{d} - k{s}_{d})" for s in range(m.last + 1, m.stages) for d in range(n))
            lines.append(f"error = nan if {at(rows.next_save, w)} < new and {extra} != 0.0 else error")
    lines += [
        f"running = {at(rows.code, w)} == 0.0",
        "fits = error <= 1.0",
        "accept = running and fits and not small",
        "less = error if error > 1e-10 else 1e-10",
        f"factor = 0.9 * power(less, {-m.gains[0]!r})",
        f"before, again = {at(rows.error, w)}, {at(rows.retry, w)}",
        f"factor = factor * power(before, {m.gains[1]!r}) if fits else factor",
        f"grow = ({m.factors[1]!r} if again == 0.0 else 1.0) if fits else 0.9",
        f"factor = {m.factors[0]!r} if factor < {m.factors[0]!r} else factor",
        "factor = factor if factor < grow else grow",
        "following = h * factor if error < inf else 0.25 * h",
        f"{at(rows.error, w)} = (less if less > 1e-4 else 1e-4) if accept else before",
        f"{at(rows.retry, w)} = 0.0 if fits else 1.0",
        f"{at(rows.h, w)} = size if small else following",
        f"ahead = {at(rows.steps, w)} + (1.0 if accept else 0.0)",
        f"back = {at(rows.rejected, w)} + (0.0 if accept or small else 1.0)",
        f"{at(rows.steps, w)}, {at(rows.rejected, w)} = ahead, back",
        f"{at(rows.t, w)} = new if accept else t",
        *(f"{at(row, w)} = n{d} if accept else y{d}" for d, row in enumerate(rows.y)),
        *(f"{at(row, w)} = k{m.last}_{d} if accept else k0_{d}" for d, row in enumerate(rows.f)),
        "code = 1.0 if accept and last else (4.0 if small else (3.0 if ahead + back >= most else 0.0))",
        f"code = code if running else {at(rows.code, w)}",
        f"{at(rows.code, w)} = code",
        "ended += 0 if code == 0.0 else 1",
    ]
    if plan.saves:
        lines += [f"{at(row, w)} = y{d}" for d, row in enumerate(rows.old)]
        lines += [f"{at(row, w)} = k{s}_{d}" for s in range(m.stages) for d, row in enumerate(rows.stages[s])]
        lines += [f"{at(rows.before, w)}, {at(rows.step, w)} = t, h", f"{at(rows.done, w)} = new if accept else -inf"]
        lines.append(f"due += 1 if accept and {at(rows.next_save, w)} <= new else 0")
    head = ["@kernel", "def step(S, t0, t1, rtol, atol, most):", "    ended, due = 0, 0", f"    for l in range({w}):"]
    return "\n".join([*head, *(f"        {line}" for line in lines), "    return ended, due"])


def save_text(plan: Plan, rows: Rows) -> list[str]:
    """The state of all lanes at their next saved times, by the interpolant of the last step."""
    if not plan.saves:
        return []
    n, w, m = plan.formulas.states, plan.width, plan.method
    lines = [
        f"h, new, time = {at(rows.step, w)}, {at(rows.done, w)}, {at(rows.next_save, w)}",
        f"theta = (time - {at(rows.before, w)}) / h",
    ]
    for j in range(m.stages):
        polynomial = [float(x) for x in m.P[j]]
        if any(polynomial):
            text = "0.0"
            for x in reversed(polynomial):
                text = f"(({text} + {x!r}) * theta)"
            lines.append(f"c{j} = h * {text}")
    used = [j for j in range(m.stages) if any(m.P[j])]
    for d in range(n):
        inside = combination(at(rows.old[d], w), [(f"c{j}", at(rows.stages[j][d], w)) for j in used])
        lines.append(f"{at(rows.saved[d], w)} = {inside} if time < new else {at(rows.y[d], w)}")
    return ["\n".join(["@kernel", "def interpolate(S):", f"    for l in range({w}):", *(f"        {line}" for line in lines)])]


def run_text(plan: Plan, rows: Rows) -> str:
    """Members FIRST to END - 1: starts in tiles of W, then lanes that are refilled until no member is left."""
    n, w, f = plan.formulas.states, plan.width, plan.formulas
    firsts = sorted(set(f.values.values()))
    ends = [*firsts[1:], f.count]
    values = []
    for k, (first, end) in enumerate(zip(firsts, ends, strict=True)):
        if end > first:
            values.append(f"source, gap = doubles(at[{AT['PARAMS'] + 2 * k}]), at[{AT['PARAMS'] + 2 * k + 1}]")
            values += [f"S[{rows.p[q] * w} + l] = source[i * gap + {q - first}]" for q in range(first, end)]
    member = [
        *(f"S[{row * w} + l] = y0[i * at[{AT['Y0_STEP']}] + {d}]" for d, row in enumerate(rows.y)),
        *values,
    ]
    fill = "\n".join(["@kernel", "def fill(at, S, i, l):", f"    y0 = doubles(at[{AT['Y0']}])", *(f"    {line}" for line in member)])
    start = n + 2
    keep = [f"start[j * {start} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.f)]
    keep += [f"start[j * {start} + {n}], start[j * {start} + {n + 1}] = S[{rows.h * w} + l], S[{rows.code * w} + l]"]
    take = [f"S[{row * w} + l] = start[j * {start} + {d}]" for d, row in enumerate(rows.f)]
    take += [
        f"S[{rows.h * w} + l], S[{rows.code * w} + l] = start[j * {start} + {n}], start[j * {start} + {n + 1}]",
        f"S[{rows.t * w} + l], S[{rows.error * w} + l] = t0, 1e-4",
        f"S[{rows.retry * w} + l] = S[{rows.steps * w} + l] = S[{rows.rejected * w} + l] = 0.0",
    ]
    out_end = [f"out[i * {n} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.y)]
    save_now = [f"out[(i * saves + q) * {n} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.saved)] if plan.saves else []
    saves_begin = (
        [
            "q = 0",
            "if saves > 0 and save[0] == t0:",
            *(f"    out[i * saves * {n} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.y)),
            "    q = 1",
            "places[l] = q",
            f"S[{rows.next_save * w} + l] = save[q] if q < saves else inf",
        ]
        if plan.saves
        else []
    )
    saving = (
        [
            "while due > 0:",
            "    interpolate(S)",
            "    due = 0",
            f"    for l in range({w}):",
            f"        if members[l] >= 0 and S[{rows.next_save * w} + l] <= S[{rows.done * w} + l]:",
            "            i, q = members[l], places[l]",
            *(f"            {line}" for line in save_now),
            "            places[l] = q + 1",
            f"            S[{rows.next_save * w} + l] = save[q + 1] if q + 1 < saves else inf",
            f"            due += 1 if S[{rows.next_save * w} + l] <= S[{rows.done * w} + l] else 0",
        ]
        if plan.saves
        else []
    )
    put_last = [f"state[i * {n} + {d}] = S[{row * w} + l]" for d, row in enumerate(rows.y)]
    write_end = [] if plan.saves else ["if code == 1:", *(f"    {line}" for line in out_end)]
    lines = [
        "at = ints(table)",
        f"S, start, y_out = doubles(at[{AT['STATE']}]), doubles(at[{AT['START']}]), doubles(at[{AT['OUT']}])",
        f"state = doubles(at[{AT['LAST']}])",
        f"out, save, saves = y_out, doubles(at[{AT['SAVE']}]), at[{AT['SAVES']}]",
        f"status, t_end = ints(at[{AT['STATUS']}]), doubles(at[{AT['T_END']}])",
        f"steps, rejected, stop = ints(at[{AT['STEPS']}]), ints(at[{AT['REJECTED']}]), ints(at[{AT['STOP']}])",
        f"reals, first, end, most = doubles(at[{AT['REALS']}]), at[{AT['FIRST']}], at[{AT['END']}], float(at[{AT['MOST']}])",
        "t0, t1, rtol, atol = reals[0], reals[1], reals[2], reals[3]",
        f"members = ints(at[{AT['STATE']}] + {8 * rows.count * w})",
        f"places = ints(at[{AT['STATE']}] + {8 * (rows.count + 1) * w})",
        f"for tile in range(first, end, {w}):",
        f"    for l in range({w}):",
        "        fill(at, S, min(tile + l, end - 1), l)",
        "    begin(S, t0, t1, rtol, atol)",
        f"    for l in range(min({w}, end - tile)):",
        "        j = tile + l - first",
        *(f"        {line}" for line in keep),
        "following, live = first, 0",
        f"for l in range({w}):",
        "    members[l] = -1",
        f"    S[{rows.code * w} + l] = 9.0",
        "while True:",
        f"    for l in range({w}):",
        f"        code = int(S[{rows.code * w} + l])",
        "        if code != 0:",
        "            i = members[l]",
        "            if i >= 0:",
        "                status[i] = code",
        f"                t_end[i] = S[{rows.t * w} + l]",
        f"                steps[i], rejected[i] = int(S[{rows.steps * w} + l]), int(S[{rows.rejected * w} + l])",
        *(f"                {line}" for line in write_end),
        "                if code != 1:",
        *(f"                    {line}" for line in put_last),
        "                live -= 1",
        "                members[l] = -1",
        "            if following < end and stop[0] == 0:",
        "                i, j = following, following - first",
        "                following += 1",
        "                live += 1",
        "                members[l] = i",
        "                fill(at, S, i, l)",
        *(f"                {line}" for line in take),
        *(f"                {line}" for line in saves_begin),
        f"            elif S[{rows.code * w} + l] == 0.0:",
        f"                S[{rows.code * w} + l] = 9.0",
        "    if live == 0:",
        "        return",
        f"    idle = {w} - live",
        "    ended = idle",
        "    while ended == idle:",
        "        ended, due = step(S, t0, t1, rtol, atol, most)",
        *(f"        {line}" for line in saving),
    ]
    body = "\n".join(["@nb.njit('void(int64)', **options)", "def run(table):", *(f"    {line}" for line in lines)])
    return f"{fill}\n\n\n{body}"
