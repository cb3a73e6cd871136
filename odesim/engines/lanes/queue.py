"""The text by which components wait in a queue until there is one for each place of a vector, and are then searched together.

That is for events whose samples are enough (odesim.stepper.search). Where these show one zero and no dip, the vector finds it with
the arithmetic of one component alone. Where they show neither, or a fall at the end of the step that goes on, there is none. Components
whose samples show anything else, or whose zeros few Newton steps do not reach, are searched alone.
"""

from odesim.engines.lanes.lines import at
from odesim.engines.lanes.plan import AT, KernelPlan
from odesim.engines.lanes.rows import Rows
from odesim.engines.template import fit
from odesim.stepper.search_sizes import NEAR, SETTLED

STEPS = 3
"""Newton steps from the chord of a piece, which most often reach rounding."""
CLEAR = 0.01
"""Of the sample before: so far from zero a fall at the end of a step goes on without another look."""
MANY = 2.0
"""The side of what is to be searched alone."""

QUEUEING = """
if hits > 0:
    for l in range({W}):
        if S[{marks} + l] != 0.0:
            marks = int(S[{marks} + l])
            for i in range({size}):
                if (marks >> min(i, {MARKS})) & 1 != 0:
                    push(S, l, i, waiting, float({member}))
                    waiting += 1
                    if waiting == {W}:
                        flush(at, S, waiting, facts, zeros, kept, times, places_of, counts)
                        waiting = 0
""".strip("\n")

LEAVING = "flush(at, S, waiting, facts, zeros, kept, times, places_of, counts)"

FLUSH = """
@kernel
def push(S, l, i, q, member):
    for k in range(-1, {pieces} + 1):
        S[({queue} + 1 + k) * {W} + q] = sample(S, l, k, i)
    S[{origin} + q], S[{length} + q], S[{arrival} + q] = S[{before} + l], S[{step} + l], S[{done} + l]
    S[{owner} + q], S[{place} + q] = member, float(i)


@kernel
def flush(at, S, waiting, facts, zeros, kept, times, places_of, counts):
    roots(S)
    answer = doubles(at[{ANSWER}])
    for q in range(waiting):
        side, i, new, count = S[{side} + q], int(S[{place} + q]), S[{arrival} + q], 0
        if side == {MANY}:
            call(at[{SEARCH}], (at[{SEARCHED}], q, i, S[{origin} + q], S[{length} + q], new))
            count = int(answer[0])
        elif side != 0.0 and side * facts[i] >= 0.0:
            zeros[0], zeros[1], count = S[{zero} + q], float(i), 1
        keep(zeros, count, new, facts, {size}, int(S[{owner} + q]) * {names}, kept, times, places_of, counts)
""".strip("\n")


def queue_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """roots(S), push, queued and flush; nothing where components do not wait."""
    if not plan.queued:
        return []
    watch, w = plan.watch, plan.width
    assert watch is not None
    names = ("before", "step", "done", "origin", "length", "arrival", "owner", "place", "side", "zero")
    words = {name: getattr(rows, name) * w for name in names}
    more = {"W": w, "queue": rows.queue.start, "pieces": watch.pieces, "size": watch.size, "names": watch.names}
    return [roots_text(plan, rows), fit(FLUSH, **words, **more, **AT, MANY=MANY)]


def roots_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of roots(S): for all that wait, the time of the zero and its side, 1 upward, -1 downward.

    The side is 0 where there is no zero, MANY where it is not known.
    """
    assert plan.watch is not None
    w, n = plan.width, plan.watch.pieces
    pieces = range(n)
    lines = [f"g{k} = {at(row, w)}" for k, row in enumerate(rows.queue, -1) if k >= 0] + [f"b = {at(rows.queue[0], w)}"]
    lines += [f"q{k} = g{k} * g{k + 1}" for k in pieces]
    lines += ["many, j, lo, hi, wild = 0.0, 0.0, g0, g1, False"]
    for k in pieces:
        lines += [f"here = q{k} < 0.0", f"wild = wild | (q{k} == 0.0)", "many += 1.0 if here else 0.0"]
        lines += [f"j, lo, hi = {float(k)!r} if here else j, g{k} if here else lo, g{k + 1} if here else hi"] if k else []
    # a dip between samples of one sign: the function falls to half of the one before, and rises again
    falls = ["(g0 - b) * g0", *(f"(g{k} + g{k} - g{k - 1}) * g{k}" for k in range(1, n))]
    rises = [f"(g{k + 1} + g{k + 1} - g{k + 2}) * g{k + 1}" for k in range(n - 1)]
    lines += [f"wild = wild | (({falls[k]} <= 0.0) & ({rises[k]} <= 0.0) & (q{k} > 0.0))" for k in range(n - 1)]
    lines += [f"late = ({falls[-1]} <= 0.0) & (q{n - 1} > 0.0)"]
    lines += [f"c{k} = g{k}" for k in range(n + 1)]
    for m in range(1, n + 1):
        lines += [f"c{k} = (c{k} - c{k - 1}) * {1.0 / m!r}" for k in range(n, m - 1, -1)]
    lines += ["one = many == 1.0", f"s, fine, going = j + lo / (lo - hi) if one else {n - NEAR!r}, True, True"]
    coefficients = ", ".join(f"c{k}" for k in range(n + 1))
    for trial in range(STEPS):
        lines.append(f"p, slope = newton(s, {coefficients})")
        if trial == 0:
            lines += [f"over = (abs(p) > abs(g{n}) * 1.000001) & (abs(p) > {CLEAR!r} * abs(g{n - 1})) & (p * g{n} > 0.0)"]
        lines += ["step = p / slope", "s = s - step if going else s", "fine = fine & (j < s) & (s < j + 1.0)"]
        lines += [f"going = going & (not abs(step) < {SETTLED!r})"]
    lines += [
        f"theta = s / {n}",
        f"{at(rows.zero, w)} = {at(rows.origin, w)} + theta * {at(rows.length, w)} if theta < 1.0 else {at(rows.arrival, w)}",
        "side = 1.0 if lo < 0.0 else -1.0",
        f"side = side if fine & (not going) & (not late) else {MANY!r}",
        f"none = 0.0 if over | (not late) else {MANY!r}",
        f"side = side if one else (none if many == 0.0 else {MANY!r})",
        f"{at(rows.side, w)} = {MANY!r} if wild else side",
    ]
    value = [f"p, slope = c{n}, 0.0"]
    value += [line for k in reversed(pieces) for line in (f"slope = slope * (s - {float(k)!r}) + p", f"p = p * (s - {float(k)!r}) + c{k}")]
    newton = ["@inlined", f"def newton(s, {coefficients}):", *(f"    {line}" for line in value), "    return p, slope"]
    return "\n".join([*newton, "", "", "@kernel", "def roots(S):", f"    for l in range({w}):", *(f"        {line}" for line in lines)])
