"""The CUDA kernel of an ensemble: one thread a member, by the text that integrates members in lanes, with one lane.

A member's numbers stand in S, which the compiler keeps in registers: every place in it is a number. In memory neighbouring members
lie side by side, [save][state][member] and [entry][member], so that a warp reads and writes whole lines.
"""

from dataclasses import replace
from itertools import pairwise

from odesim.codegen.cuda import cuda_source
from odesim.codegen.cuda_words import INT, REAL
from odesim.codegen.transpile import Translation, module_scope
from odesim.ensembles.lane_rows import Plan, Rows
from odesim.ensembles.lane_run import fit
from odesim.ensembles.lane_step import begin_text, save_text, step_text
from odesim.ensembles.lanes import head_text, right_text

# what a launch is told: addresses, numbers, then for each array of starts and parameters its address, step and stride
SLOTS = ("OUT", "LAST", "STATUS", "T_END", "STEPS", "REJECTED", "SAVE", "SAVES", "COUNT", "MOST", "REALS", "GIVEN")
AT = {name: k for k, name in enumerate(SLOTS)}
BLOCK = 128  # threads

THREAD = """
@kernel
def thread(S, at, i):
    out, state, save, saves, count = doubles(at[{OUT}]), doubles(at[{LAST}]), doubles(at[{SAVE}]), at[{SAVES}], at[{COUNT}]
    status, t_end, steps, rejected = ints(at[{STATUS}]), doubles(at[{T_END}]), ints(at[{STEPS}]), ints(at[{REJECTED}])
    reals, most = doubles(at[{REALS}]), float(at[{MOST}])
    t0, t1, rtol, atol = reals[0], reals[1], reals[2], reals[3]
    {fill}
    begin(S, t0, t1, rtol, atol)
    S[{t}], S[{error}], S[{retry}], S[{steps}], S[{rejected}] = t0, 1e-4, 0.0, 0.0, 0.0
    {first_save}
    while S[{code}] == 0.0:
        ended, due = step(S, t0, t1, rtol, atol, most)
        {saving}
    code = int(S[{code}])
    status[i], t_end[i] = code, S[{t}]
    steps[i], rejected[i] = int(S[{steps}]), int(S[{rejected}])
    {finish}
    if code != 1:
        {stopped}
""".strip("\n")

FIRST_SAVE = """
q = 0
if saves > 0 and save[0] == t0:
    {put}
    q = 1
S[{next}] = save[q] if q < saves else inf
""".strip("\n")

SAVING = """
while S[{next}] <= S[{done}]:
    interpolate(S)
    {put}
    q += 1
    S[{next}] = save[q] if q < saves else inf
""".strip("\n")

KERNEL = """
extern "C" __global__ void __launch_bounds__({block}) members(long long* at, long long first, long long end) {{
    const long long i = first + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= end) return;
    double S[{rows}];
    {thread}(S, at, i);
}}
""".strip("\n")


def cuda_text(plan: Plan) -> str:
    """The CUDA source whose kernel `members(table, first, end)` integrates members first to end - 1."""
    plan = replace(plan, width=1)
    rows = Rows(plan)
    body = "\n\n\n".join([right_text(plan), begin_text(plan, rows), step_text(plan, rows), *save_text(plan, rows), thread_text(plan, rows)])
    translation = Translation()
    thread = translation.function(module_scope(f"{head_text(plan, body)}\n\n\n{body}\n"), "thread", (f"{REAL}*", f"{INT}*", INT))
    about = f"{plan.name}, {plan.method.name}{', strict' if plan.strict else ''}: generated"
    return cuda_source(about, translation.text(), KERNEL.format(block=BLOCK, rows=rows.count, thread=thread.name))


def thread_text(plan: Plan, rows: Rows) -> str:
    """What one thread does, in the language of the lanes."""
    n = plan.formulas.states

    def put(place: str, source: range) -> str:
        return "\n".join(f"{place.format(d=d)} = S[{row}]" for d, row in enumerate(source))

    single = {"code": rows.code, "t": rows.t, "error": rows.error, "retry": rows.retry, "steps": rows.steps, "rejected": rows.rejected}
    single |= {"next": rows.next_save, "done": rows.done}
    words: dict[str, object] = {**AT, **single, "fill": fill_text(plan, rows), "stopped": put("state[{d} * count + i]", rows.y)}
    saved = f"out[(q * {n} + {{d}}) * count + i]"
    words["finish"] = "pass" if plan.saves else "if code == 1:\n" + _indented(put("out[{d} * count + i]", rows.y))
    words["first_save"] = fit(FIRST_SAVE, put=put(saved, rows.y), **single) if plan.saves else "pass"
    words["saving"] = fit(SAVING, put=put(saved, rows.saved), **single) if plan.saves else "pass"
    return fit(THREAD, **words)


def fill_text(plan: Plan, rows: Rows) -> str:
    """Lines that load the start and the parameters of member i: entry k of an array at k*stride + i*step."""
    firsts = [*plan.formulas.values.values(), plan.formulas.count]
    lines = []
    for k, part in enumerate([rows.y, *(rows.p[first:end] for first, end in pairwise(firsts))]):
        address = AT["GIVEN"] + 3 * k
        lines.append(f"source, gap, stride = doubles(at[{address}]), at[{address + 1}], at[{address + 2}]")
        lines += [f"S[{row}] = source[{q} * stride + i * gap]" for q, row in enumerate(part)]
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
