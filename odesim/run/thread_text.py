"""The CUDA text of an ensemble: one thread integrates one member from start to end.

The functions are those of a lane kernel of width one (odesim.run.lane_kernel), translated; only what leads them is written here. A row
of S is one number of the thread: all places in S are constants, so that the compiler keeps them in registers.
"""

import re

from odesim.run.lane_dense import saving_text
from odesim.run.lane_events import ARRAYS, counted
from odesim.run.lane_feed import FIRST_LOOK, FIXED, JUDGING, ending_words, fill_lines, first_save, part_words
from odesim.run.lane_kernel import head_text, right_text, step_loops
from odesim.run.lane_plan import AT, KernelPlan, Rows
from odesim.stepper.codes import WORDS
from odesim.stepper.search_sizes import memory_size
from odesim.stepper.template import Where, fit
from odesim.targets.cuda_text import ModuleScope, Translation, cuda_source, module_scope
from odesim.targets.cuda_words import INT, REAL

THREADS = 64  # of a block: a thread's registers allow no more than a few hundred on a multiprocessor
MOST_NEAR = 4  # states all of whose rows are registers, where no events are watched
LOOK = 256  # steps between two looks at whether the run should stop: what is asked lies in the memory of the host
WHERE = Where("i", "saved", "out[(q * states + {d}) * count + i]", "out[{d} * count + i]", "state[{d} * count + i]")

# a search is rare: it reads T, which holds all of S, so that no number of S needs a register meanwhile
SEARCHED = {"searched": "T", "scratch": f"{ARRAYS.format(**AT, zeros='zeros')}\ncopy_all(T, S)", "again": "copy_all(S, T)"}
SAVE_ARRAYS = "out, save, saves = doubles(at[{OUT}]), doubles(at[{SAVE}]), at[{SAVES}]"

MEMBER = """
@kernel
def member(at, S, T, zeros, i):
    l, saved, states, count = 0, 0, {states}, at[{stride}]
    y0, reals = doubles(at[{Y0}]), doubles(at[{REALS}])
    {order}
    t0, t1, rtol, atol, most = reals[0], reals[1], reals[2], reals[3], float(at[{MOST}])
    {save_arrays}
    {fixed}
    {fill}
    begin(S, t0, t1, rtol, atol)
    {begun}
    {first_look}
    {first_save}
    trials = 0
    while S[{code} + l] == {RUNNING}:
        trials += 1
        if trials % {LOOK} == 0:
            if asked(at[{STOP}]) != 0:
                return
        {counted} = step({step_arguments})
        {watching}
        {saving}
        {looking}
    code = int(S[{code} + l])
    out, state, status, t_end = doubles(at[{OUT}]), doubles(at[{LAST}]), ints(at[{STATUS}]), doubles(at[{T_END}])
    steps, rejected = ints(at[{STEPS}]), ints(at[{REJECTED}])
    {landing}
    {judging}
    status[i], t_end[i] = code, S[{t} + l]
    steps[i], rejected[i] = int(S[{steps} + l]), int(S[{rejected} + l])
    {placed}
    if code == {OK}:
        {finish}
    else:
        {stopped}
""".strip("\n")

LOOKING = """
if S[{code} + l] == {MAX_STEPS}:
    look(S, l, t1, rtol, atol, most, float(at[{PILOT}]))
""".strip("\n")

KERNEL = """
template <class A, class B> __device__ __forceinline__ void odesim_copy(A* to, const B* from) {{
    {copies}
}}
__device__ __forceinline__ long long odesim_asked(long long place) {{ return *(volatile long long*)place; }}

{functions}

extern "C" __global__ void __launch_bounds__({threads}, 1) ensemble(long long table) {{
    long long* at = (long long*)table;
    const long long {turn} = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if ({turn} >= at[{END}]) return;{chosen}
    double S[{rows}], zeros[{zeros}];
    volatile double T[{searched}];  // not for registers
    {zeroed}
    {member}(at, S, T, zeros, i);
}}
""".strip("\n")


def thread_source(plan: KernelPlan) -> str:
    """The source with the kernel `ensemble(table)`, which integrates members 0 to END - 1. plan: of width one."""
    rows = Rows(plan)
    far, scope = distant_rows(plan, rows), thread_scope(plan)
    translation = Translation(own={"copy_all": (None, "odesim_copy"), "asked": (INT, "odesim_asked")}, apart=frozenset({"search"}))
    made = translation.function(scope, "member", (f"{INT}*", f"{REAL}*", f"volatile {REAL}*", f"{REAL}*", INT))
    watch = plan.watch
    words = {"threads": THREADS, "END": AT["END"], "rows": rows.count, "member": made.name, "turn": "i", "chosen": ""}
    if plan.parts:
        words |= {"turn": "turn", "chosen": f"\n    const long long i = ((const long long*)at[{AT['ORDER']}])[turn];"}
    words |= {"searched": rows.count if watch or far else 1, "zeros": memory_size(watch.room) if watch else 1}
    each = [k for k in range(rows.count) if k not in far] if watch else []  # line by line: a loop over S would keep it in memory
    words |= {"copies": " ".join(f"to[{k}] = from[{k}];" for k in each), "zeroed": " ".join(f"S[{k}] = 0.0;" for k in range(rows.count))}
    about = (
        f"{plan.name}, {plan.method.name}, {plan.formulas.dtype}{', fixed step' if plan.fixed else ''}{', strict' if plan.strict else ''}"
    )
    return cuda_source(f"{about}: one member a thread, generated", KERNEL.format(functions=translation.text(), **words))


def thread_scope(plan: KernelPlan) -> ModuleScope:
    """The Python functions of one member, before translation."""
    rows = Rows(plan)
    texts = [*step_loops(plan, rows), member_text(plan, rows)]
    far = distant_rows(plan, rows)
    body = "\n\n\n".join([right_text(plan), *(in_thread(text, far) for text in texts)])
    return module_scope(f"{head_text(plan, body)}\n\n\n{body}\n")


def distant_rows(plan: KernelPlan, rows: Rows) -> set[int]:
    """The rows that lie in T and not in S.

    With states between steps there are more rows than a thread has registers for. Then only the state and its derivative stay in S.
    """
    few = plan.watch is None and plan.formulas.states <= MOST_NEAR
    if plan.loops or few or not plan.dense:  # loops: all rows lie in memory anyway
        return set()
    return set(range(rows.count)) - {*rows.y, *rows.f, *rows.slopes}


def in_thread(text: str, far: set[int]) -> str:
    """A lane's function for a thread, with distant rows in T; `probe` and `sample` are called with a T that holds all of S."""
    text = text.replace(" + l]", "]").replace("S[l]", "S[0]")
    if "def probe(" in text or "def sample(" in text:
        return text
    text = re.sub(r"\bS\[(\d+)\]", lambda found: f"T[{found[1]}]" if int(found[1]) in far else found[0], text)
    return re.sub(r"\b(?!copy_all\b)(\w+)\(S(?=[,)])", r"\1(S, T", text)


def member_text(plan: KernelPlan, rows: Rows) -> str:
    """member(at, S, T, zeros, i), which integrates member i. T: where zeros of events are searched, a copy of S."""
    words = {name: getattr(rows, name) for name in ("code", "t", "error", "retry", "steps", "rejected", "until")}
    words |= AT | WORDS | {"next": rows.next_save, "LOOK": LOOK, "ERROR": "0.0" if plan.stiff else "LOG2_LEAST_OLD"}
    words |= {"states": plan.formulas.states, "fill": "\n".join(fill_lines(plan, rows))}
    words |= ending_words(plan, rows, WHERE, **SEARCHED) | part_words(plan, rows, str(words["ERROR"]), WHERE.saved)
    words |= {"counted": counted(plan), "fixed": FIXED if plan.fixed else "pass"}
    words["judging"] = "pass" if plan.fixed else fit(JUDGING, arguments="S, l, t0, rtol, atol", **WORDS)
    words["step_arguments"] = f"S, t0, t1, rtol, atol, most{', fixed, rest, total' if plan.fixed else ''}"
    words["stride"] = AT["COUNT"] if plan.parts else AT["END"]
    if plan.parts:
        slots = ("PLACES", "STEPS", "REJECTED")
        words["order"] = f"done_before, steps, rejected = {', '.join(f'ints(at[{AT[slot]}])' for slot in slots)}"
    words["looking"] = fit(LOOKING, **words) if plan.looks else "pass"
    words["first_look"] = FIRST_LOOK.format(limit=rows.most, **AT) if plan.looks else "pass"
    return fit(
        MEMBER,
        **words,
        first_save=first_save(plan, rows, WHERE, **words),
        save_arrays=SAVE_ARRAYS.format(**AT) if plan.saves else "pass",
        saving=saving_text(plan, rows, WHERE) if plan.saves else "pass",
    )
