"""The text by which a lane kernel watches event functions in all lanes at once.

It takes their values at the ends of the pieces of every step.
An explicit step takes these samples itself, while its stages are in registers.

Where a value changes its sign, or may have done so in between, that lane alone is searched (odesim.stepper.search). It is the same for
any method that has an interpolant.
"""

from odesim.engines.lanes.interpolant import between_lines, load_lines
from odesim.engines.lanes.invariants import restore_lines, touched
from odesim.engines.lanes.lines import at, real
from odesim.engines.lanes.plan import KernelPlan, WatchedEvents
from odesim.engines.lanes.queue import queue_texts
from odesim.engines.lanes.rows import Rows
from odesim.stepper.codes import WORDS
from odesim.stepper.search_sizes import MARKS


def param_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that load the parameters that the functions read."""
    assert plan.watch is not None
    given = [(k, at(rows.p[k], plan.width)) for k in plan.watch.reads("p")]
    return [f"p{k} = {text if k in plan.formulas.doubles else real(plan, text)}" for k, text in given]


def happen_text(watch: WatchedEvents) -> str:
    """The text of happen(t, states, parameters) -> (size,): the event functions of one member."""
    f = watch.formulas
    arguments = ", ".join(["t", *(f"y{d}" for d in watch.reads("y")), *(f"p{k}" for k in watch.reads("p"))])
    return "\n".join(
        ["@inlined", f"def happen({arguments}):", *(f"    {line}" for line in f.lines), f"    return ({', '.join(f.outputs)},)"]
    )


def mark_lines(i: int, pieces: int) -> list[str]:
    """Lines that mark component i where it passes zero or may: wherever odesim.stepper.search_samples.places_in finds a place.

    (2 g_k - g_j) g_j <= 0: from sample j to k the function falls to half, or passes zero.
    """
    a = [f"a{k}_{i}" for k in range(pieces + 1)]
    half = "({0} + {0} - {1}) * {1}".format
    falls = [f"({a[0]} - b_{i}) * {a[0]}", *(half(a[k], a[k - 1]) for k in range(1, pieces))]
    rises = [half(a[k + 1], a[k + 2]) for k in range(pieces - 1)]
    hints = [*(f"higher({fall}, {rise})" for fall, rise in zip(falls, rises, strict=False)), falls[-1]]
    least = [f"least = lower({a[0]} * {a[1]}, inf)", *(f"least = lower({a[k]} * {a[k + 1]}, least)" for k in range(1, pieces))]
    mark = f"marks += {2.0**i!r} if least <= 0.0 else 0.0" if i < MARKS else "others = others | (least <= 0.0)"
    return [*least, *(f"least = lower({hint}, least)" for hint in hints), mark]


def watched_lines(plan: KernelPlan, rows: Rows, start: str, state: dict[int, str]) -> list[str]:
    """Lines that sample the functions at the ends of all pieces of a step, and mark the lanes that need a search.

    They read h, new, taken and what the interpolant needs. start: the step's begin; state: its new state, by component. A lane needs a
    search if values of a component are not all on one side of zero or hint at a change of side. NaN is on no side.
    """
    watch, w = plan.watch, plan.width
    assert watch is not None
    size, samples = range(watch.size), rows.samples
    lines = [f"a0_{i} = {at(rows.g[i], w)}" for i in size]
    lines += [f"b_{i} = {at(rows.last[i], w)}" for i in size]
    lines += [f"{at(samples[0][i], w)}, {at(samples[1][i], w)} = b_{i}, a0_{i}" for i in size]
    for k in range(1, watch.pieces + 1):
        inside = k < watch.pieces
        lines += between_lines(plan, watch.reads("y"), k / watch.pieces) if inside else []
        read = {d: f"z{d}" if inside else state[d] for d in watch.reads("y")}
        lines.append(watch.call(f"{start} + {k / watch.pieces!r} * h" if inside else "new", read, f"a{k}_"))
        lines += [f"{at(samples[k + 1][i], w)} = a{k}_{i}" for i in size if k < watch.pieces - 1]
    lines += [f"{at(rows.g[i], w)} = a{watch.pieces}_{i} if taken else a0_{i}" for i in size]
    lines += [f"{at(rows.last[i], w)} = a{watch.pieces - 1}_{i} if taken else b_{i}" for i in size]
    more = watch.size > MARKS
    lines += ["marks = 0.0", *(["others = False"] if more else [])]
    lines += [line for i in size for line in mark_lines(i, watch.pieces)]
    lines += [f"more = {2.0**MARKS!r} if others else 0.0", "marks += more"] if more else []
    return [
        *lines,
        "marks = marks if taken else 0.0",
        f"{at(rows.marks, w)} = marks",
        "hits += 1 if marks > 0.0 else 0",
    ]


def watch_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of watch(S), which samples the functions in the last step of all lanes and returns how many lanes need a search."""
    watch, w = plan.watch, plan.width
    assert watch is not None
    lines = [f"before, h, new = {at(rows.before, w)}, {at(rows.step, w)}, {at(rows.done, w)}", "taken = new > -inf"]
    lines += [f"{at(rows.until, w)} = new", *param_lines(plan, rows)]
    lines += [] if plan.discrete else load_lines(plan, rows, watch.reads("y"))
    state = {d: real(plan, at(rows.y[d], w)) for d in watch.reads("y")}
    lines += watched_lines(plan, rows, "before", state)
    head = ["@kernel", "def watch(S):", "    hits = 0", f"    for l in range({w}):"]
    return "\n".join([*head, *(f"        {line}" for line in lines), "    return hits"])


def sample_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of sample(S, l, k, i): component i at the end of piece k of the last step of lane l."""
    watch, w = plan.watch, plan.width
    assert watch is not None
    lines = ["@kernel", "def sample(S, l, k, i):", f"    return S[({rows.samples[0].start} + (k + 1) * {watch.size} + i) * {w} + l]"]
    return "\n".join(lines)


def probe_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of probe(S, l, theta, i), component i of the functions inside the last step of lane l.

    Where it is called by address it is probe(address, theta, l, i), of the address of S, and returns nothing.
    """
    watch, w = plan.watch, plan.width
    assert watch is not None
    if plan.sampled:  # never called
        return "@kernel\ndef probe(S, l, theta, i):\n    return nan"
    restored = watch.terminal and bool(plan.invariants)  # only where a step ends does a run go on from another state than the interpolant's
    reads = sorted({*watch.reads("y"), *(touched(plan) if restored else ())})
    head, end = ["@kernel", "def probe(S, l, theta, i):"], f"return S[({rows.probed[0]} + i) * {w} + l]"
    if plan.probed:
        head = ["@nb.njit('void(int64, float64, int64, int64)', **options)", "def probe(address, theta, l, i):", "    S = doubles(address)"]
        end = "return"
    lines = [f"h = {at(rows.step, w)}", *load_lines(plan, rows, reads), *between_lines(plan, reads)]
    if restored:
        lines += ["if i < 0:", *(f"    {line}" for line in restore_lines(plan, rows, "z"))]
    lines += param_lines(plan, rows)
    lines.append(watch.call(f"{at(rows.before, w)} + theta * h", {d: f"z{d}" for d in watch.reads("y")}, "a"))
    lines += [f"{at(rows.probed[i], w)} = a{i}" for i in range(watch.size)]
    return "\n".join([*head, *(f"    {line}" for line in [*lines, end])])


def settle_text(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of settle(S, l): sets lane l to the state at the event that ended its member."""
    if plan.watch is None or not plan.watch.terminal:
        return []
    w, states = plan.width, range(plan.formulas.states)
    if plan.discrete:
        return [f"@kernel\ndef settle(S, l):\n    {at(rows.t, w)} = {at(rows.until, w)}"]
    lines = [f"h, theta = {at(rows.step, w)}, {at(rows.theta, w)}", f"{at(rows.t, w)} = {at(rows.until, w)}", "if theta < 1.0:"]
    inside = [*load_lines(plan, rows, states), *between_lines(plan, states), *restore_lines(plan, rows, "z")]
    lines += [f"    {line}" for line in inside]
    lines += [f"    {at(rows.y[d], w)} = z{d}" for d in states]
    return ["\n".join(["@kernel", "def settle(S, l):", *(f"    {line}" for line in lines)])]


def event_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The functions of a kernel with events."""
    if plan.watch is None:
        return []
    watch = [CHOICES] if plan.joined else [CHOICES, watch_text(plan, rows)]
    probe = [] if plan.discrete or plan.queued else [probe_text(plan, rows)]
    sample = [] if plan.probed else [sample_text(plan, rows)]
    return [*watch, *sample, *probe, *settle_text(plan, rows), *queue_texts(plan, rows)]


def counted(plan: KernelPlan) -> str:
    """The results of a step: the numbers of lanes that have ended, are due to be saved and, if it samples events, need a search."""
    return "ended, due, hits" if plan.joined else "ended, due"


def begin_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that set the functions' values at the start of a member."""
    if plan.watch is None:
        return []
    call = plan.watch.call("t0", {d: f"y{d}" for d in plan.watch.reads("y")}, "w")
    return [call, *(f"{at(row, plan.width)} = w{i}" for i, row in enumerate(rows.g))]


# functions, for numba is lost among many branches
CHOICES = """
@inlined
def lower(a, b):
    return a if a < b else b


@inlined
def higher(a, b):
    return a if a > b else b
""".strip("\n")

ARRAYS = """
facts, zeros, kept = ints(at[{FACTS}]), {zeros}, at[{KEPT}]
times, places_of, counts = doubles(at[{FOUND_T}]), ints(at[{FOUND_I}]), ints(at[{FOUND_N}])
""".strip("\n")

WATCHING = """
if {hits} > 0:
    for l in range({W}):
        if S[{marks} + l] != 0.0 and {member} >= 0:
            {scratch}
            before, new = S[{before} + l], S[{done} + l]
            {search}
            {again}
            {keeping}
            {stopping}
""".strip("\n")

SEARCH = """
call(at[{SEARCH}], (at[{SEARCHED}], l, 0, int(S[{marks} + l]), before, S[{step} + l], new))
answer = doubles(at[{ANSWER}])
found, last, theta = int(answer[0]), answer[1], answer[2]
""".strip("\n")
SEARCH_HERE = """
found, last, theta = search(
    sample, probe, {searched}, l, facts, {size}, {pieces}, before, S[{step} + l], new, zeros, 0, {room}, int(S[{marks} + l])
)
""".strip("\n")
PASSED = "found, last, theta = passed(sample, {searched}, l, facts, {size}, new, zeros, 0, {room})"

KEEPING = "keep(zeros, found, last, facts, {size}, {member} * {names}, kept, times, places_of, counts)"

STOPPING = """
if theta >= 0.0:
    ended += 1 if S[{code} + l] == {RUNNING} else 0
    S[{code} + l], S[{until} + l], S[{theta} + l] = {EVENT}.0, last, theta
""".strip("\n")

LANDING = """
if code == {EVENT}:
    if S[{until} + l] >= t1:
        {finish}
    settle(S, l)
""".strip("\n")


def watching_words(plan: KernelPlan, rows: Rows) -> dict[str, object]:
    """The words of the templates above."""
    w = plan.width
    if plan.watch is None:
        return {}
    lanes = {n: getattr(rows, n) * w for n in ("marks", "before", "done", "step", "code", "until", "theta")}
    watch = plan.watch
    words = {
        "W": w,
        "MARKS": MARKS,
        "hits": "hits" if plan.joined else "watch(S)",
        "size": watch.size,
        "pieces": watch.pieces,
        "room": watch.room,
        "names": watch.names,
    }
    return lanes | WORDS | words
