"""The text that feeds lanes with members: start, saved times, end, and the next member in the free lane."""

from itertools import pairwise

from odesim.run.lane_dense import saving_text
from odesim.run.lane_events import (
    ARRAYS,
    KEEPING,
    LANDING,
    LEAVING,
    PASSED,
    QUEUEING,
    SEARCH,
    SEARCH_HERE,
    STOPPING,
    WATCHING,
    counted,
    watching_words,
)
from odesim.run.lane_plan import AT, KernelPlan, Rows, at
from odesim.stepper.codes import WORDS, Code
from odesim.stepper.lanes import function
from odesim.stepper.template import Where, fit, lane_where, put_state

# fill puts member i into lane l; begin and step are loops over lanes (explicit_step.py)
RUN = """
@kernel
def fill(at, S, i, l):
    y0 = doubles(at[{Y0}])
    {head}
    {fill}


@nb.njit('void(int64)', **options)
def run(table):
    at = ints(table)
    S, start, out, state = doubles(at[{STATE}]), doubles(at[{START}]), doubles(at[{OUT}]), doubles(at[{LAST}])
    save, saves, reals = doubles(at[{SAVE}]), at[{SAVES}], doubles(at[{REALS}])
    status, t_end, stop = ints(at[{STATUS}]), doubles(at[{T_END}]), ints(at[{STOP}])
    steps, rejected = ints(at[{STEPS}]), ints(at[{REJECTED}])
    first, end, most = at[{FIRST}], at[{END}], float(at[{MOST}])
    t0, t1, rtol, atol = reals[0], reals[1], reals[2], reals[3]
    {head}
    {fixed}
    {event_arrays}
    {order}
    members, places = ints(at[{STATE}] + {members}), ints(at[{STATE}] + {places})
    for tile in range(first, end, {W}):
        for l in range({W}):
            fill(at, S, {a_member}, l)
        begin({begin_arguments})
        for l in range(min({W}, end - tile)):
            j = tile + l - first
            {keep}
    following, live, looked, waiting = first, 0, 0.0, 0
    for l in range({W}):
        members[l] = -1
        S[{code} + l] = {IDLE}.0
    while True:
        for l in range({W}):
            code = int(S[{code} + l])
            if code != {RUNNING}:
                i = members[l]
                if i >= 0:
                    {looking}
                    {landing}
                    {last_look}
                    {judging}
                    status[i], t_end[i] = code, S[{t} + l]
                    steps[i], rejected[i] = int(S[{steps} + l]), int(S[{rejected} + l])
                    {placed}
                    if code == {OK}:
                        {finish}
                    else:
                        {stopped}
                    live -= 1
                    members[l] = -1
                    S[{code} + l] = {IDLE}.0
                if following < end and stop[0] == 0:
                    i, j = {the_next}, following - first
                    following += 1
                    live += 1
                    members[l] = i
                    fill(at, S, i, l)
                    {take}
                    {begun}
                    {first_look}
                    {first_save}
        if live == 0 or stop[0] > 1:
            {leaving}
            return
        idle = {W} - live
        ended = idle
        while {going}:
            {marching}
            {counted} = step({step_arguments})
            {watching}
            {saving}
            {leave}
        {look}
""".strip("\n")

FIXED = "fixed, rest, total, careful = reals[4], reals[5], reals[6], 0"
MARCHING = """
if careful > 0:
    careful -= 1
else:
    ahead = free(S, t0, t1, fixed, total, most)
    if ahead > 0:
        if march(S, t0, t1, fixed, total, ahead) == 0:
            continue
        careful = ahead
""".strip("\n")
BEGUN = "S[{t} + l], S[{error} + l], S[{retry} + l], S[{steps} + l], S[{rejected} + l] = {numbers}"

LARGEST = ("q = abs(f) / ({} + rtol * abs(v))", "if q > most:", "    most, value, slope = q, v, f")

# a loop with a call in it keeps no constants in registers
LEAVE = """
if at[{SEEN}] != 0:
    break
""".strip("\n")

# a member that is alone stands in the first lane
LOOK = """
if at[{SEEN}] != 0 and S[{code}] == {RUNNING} and S[{steps}] > looked:
    looked, l, i = S[{steps}], 0, 0
    {stopped}
    call(at[{SEEN}], (0, S[{t}], at[{LAST}], 0))
""".strip("\n")

LAST_LOOK = """
if at[{SEEN}] != 0 and S[{steps}] > looked:
    {stopped}
    call(at[{SEEN}], (0, S[{t}], at[{LAST}], 0))
""".strip("\n")

# a lane whose member goes on stays as it is
JUDGING = """
if code == {STEP_TOO_SMALL}:
    code = judged({arguments})
""".strip("\n")
LOOK_AT = "look(S, l, t1, rtol, atol, most, float(at[{PILOT}]))"
LOOKING = """
if code == {MAX_STEPS}:
    {look_at}
    code = int(S[{code} + l])
    if code == {RUNNING}:
        continue
""".strip("\n")
FIRST_LOOK = "S[{limit} + l] = float(min(at[{PILOT}], at[{MOST}]))"

FIRST_SAVE = """
q = 0
if saves > 0 and save[0] == t0:
    {put}
    q = 1
{saved} = q
S[{next} + l] = save[q] if q < saves else inf
""".strip("\n")


FIRST_SAVE_OF_PARTS = """
q = done_before[i]
if q == 0 and saves > 0 and save[0] == {begins}:
    {put}
    q = 1
{saved} = q
S[{next} + l] = save[q] if q < saves else inf
""".strip("\n")


def part_words(plan: KernelPlan, rows: Rows, error: str, saved: str) -> dict[str, str]:
    """The words of the templates for members that run in parts, and for those with the whole span."""
    at_lane = {name: getattr(rows, name) * plan.width for name in ("t", "error", "retry", "steps", "rejected")}
    if not plan.parts:
        whole = {"order": "pass", "a_member": "min(tile + l, end - 1)", "the_next": "following", "placed": "pass"}
        return {**whole, "begun": BEGUN.format(**at_lane, numbers=f"t0, {error}, 0.0, 0.0, 0.0"), "begins": "t0"}
    begins = f"S[{rows.start * plan.width} + l]"
    return {
        "order": f"order, done_before = ints(at[{AT['ORDER']}]), ints(at[{AT['PLACES']}])",
        "a_member": "order[min(tile + l, end - 1)]",
        "the_next": "order[following]",
        "placed": f"done_before[i] = {saved}" if plan.saves else "pass",
        "begun": BEGUN.format(**at_lane, numbers=f"{begins}, {error}, 0.0, float(steps[i]), float(rejected[i])"),
        "begins": begins,
    }


def first_save(plan: KernelPlan, rows: Rows, where: Where, **words: object) -> str:
    """Lines that set the first saved time of a member, and write it if it is the start."""
    if not plan.saves:
        return "pass"
    text = FIRST_SAVE_OF_PARTS if plan.parts else FIRST_SAVE
    return fit(text, **{**words, "put": put_state(where.first, rows.y, plan.width), "saved": where.saved})


def run_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of fill and run(table): members FIRST to END - 1, started in tiles of W, then lanes refilled until no member is left."""
    w, where = plan.width, lane_where(plan.formulas.states)
    at_lane = {name: row * w for name, row in (("code", rows.code), ("t", rows.t), ("error", rows.error), ("retry", rows.retry))}
    at_lane |= {"steps": rows.steps * w, "rejected": rows.rejected * w, "next": rows.next_save * w, "until": rows.until * w}
    start = start_rows(rows)
    kept = [(f"start[j * {len(start)} + {k}]", f"S[{row * w} + l]") for k, row in enumerate(start)]
    words = {
        **AT,
        **WORDS,
        **at_lane,
        "W": w,
        "head": "pass",
        "fixed": FIXED if plan.fixed else "pass",
        "marching": MARCHING if plan.marches else "pass",
        "begin_arguments": "S, t0, t1, rtol, atol",
        "step_arguments": f"S, t0, t1, rtol, atol, most{', fixed, rest, total' if plan.fixed else ''}",
        "judging": "pass" if plan.fixed else fit(JUDGING, arguments="S, l, t0, rtol, atol", **WORDS),
        "counted": counted(plan),
        "leaving": LEAVING if plan.queued else "pass",
        "going": "ended == idle and stop[0] < 2" if plan.stiff else "ended == idle",  # explicit steps are short
        "ERROR": "0.0" if plan.stiff else "LOG2_LEAST_OLD",
        "members": 8 * rows.count * w,
        "places": 8 * (rows.count + 1) * w,
        "fill": "\n".join(fill_lines(plan, rows)),
        "keep": "\n".join(f"{a} = {b}" for a, b in kept),
        "take": "\n".join(f"{b} = {a}" for a, b in kept),
    }
    words |= ending_words(plan, rows, where) | part_words(plan, rows, str(words["ERROR"]), where.saved)
    looks = {"leave": LEAVE, "look": LOOK, "last_look": LAST_LOOK}
    seen = put_state(where.end, rows.y, w)
    words |= {name: fit(text, **AT, **WORDS, **at_lane, stopped=seen) if plan.stiff else "pass" for name, text in looks.items()}
    words["looking"] = fit(LOOKING, look_at=LOOK_AT.format(**AT), **words) if plan.looks else "pass"
    words["first_look"] = FIRST_LOOK.format(limit=rows.most * w, **AT) if plan.looks else "pass"
    words["first_save"] = first_save(plan, rows, where, **words)
    words["saving"] = saving_text(plan, rows, where) if plan.saves else "pass"
    return fit(RUN, **words)


def judged_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of judged(S, l, t0, rtol, atol): whether a step of lane l that became too small means a blow-up.

    The rule is that of odesim.stepper.report.
    """
    if plan.fixed:
        return []
    w, states = plan.width, plan.formulas.states
    begun = at(rows.start, w) if plan.parts else "t0"
    if w == 1:  # all places in S are constants
        each = [
            line
            for d in range(states)
            for line in (f"v, f = {at(rows.y[d], w)}, {at(rows.f[d], w)}", *largest(at(rows.atol[d], w) if plan.by_state else "atol"))
        ]
        lines = judged_end(each, at(rows.t, w), begun)
    else:
        atol = rows.atol.start * w if plan.by_state else None
        lines = judged_lines(at(rows.t, w), begun, rows.y.start * w, rows.f.start * w, str(states * w), w, atol)
    return [function("judged(S, l, t0, rtol, atol)", lines)]


def largest(atol: str) -> list[str]:
    """Lines that look whether a component with this absolute tolerance moves most."""
    return [LARGEST[0].format(atol), *LARGEST[1:]]


def judged_lines(t: str, begun: str, y: int, f: int, size: str, width: int, atol: int | None) -> list[str]:
    """Lines of `judged` as a loop over a state and its derivative, which begin at these numbers of S and have so many.

    atol: where the tolerances of states begin, if they have their own.
    """
    inside = [f"v, f = S[{y} + d + l], S[{f} + d + l]", *largest("atol" if atol is None else f"S[{atol} + d + l]")]
    return judged_end([f"for d in range(0, {size}, {width}):", *(f"    {line}" for line in inside)], t, begun)


def judged_end(each: list[str], t: str, begun: str) -> list[str]:
    """Lines of `judged` around those that find the component with the largest derivative."""
    return [
        "most, value, slope = -1.0, 0.0, 0.0",
        *each,
        f"passed = max(abs({t}), {t} - {begun})",
        f"return {Code.BLOW_UP} if runs_away(value, slope, passed) else {Code.STEP_TOO_SMALL}",
    ]


def ending_words(plan: KernelPlan, rows: Rows, where: Where, **searched: str) -> dict[str, str]:
    """The words of the templates for events and for the end of a member. searched: where a search reads a lane."""
    end = "pass" if plan.saves else put_state(where.first, rows.y, plan.width)
    words = {"stopped": put_state(where.end, rows.y, plan.width), "finish": end}
    words |= dict.fromkeys(("landing", "watching", "event_arrays"), "pass")
    if plan.parts:
        words["finish"] = f"{end}\n{words['stopped']}"
    if plan.watch is None:
        return words
    more = {**watching_words(plan, rows), "member": where.member, "searched": "S", "scratch": "pass", "again": "pass"}
    more |= {"zeros": f"doubles(at[{AT['FOUND']}])", **searched}
    terminal = plan.watch.terminal
    parts = {
        "keeping": KEEPING.format(**more) if plan.watch.keeps else "pass",
        "stopping": fit(STOPPING, **more) if terminal else "pass",
        "search": (PASSED if plan.discrete else SEARCH if plan.called else SEARCH_HERE).format(**AT, **more),
    }
    watching = QUEUEING if plan.queued else WATCHING
    words |= {"watching": fit(watching, **parts, **more), "event_arrays": ARRAYS.format(**AT, zeros=more["zeros"])}
    if terminal:
        words |= {"landing": fit(LANDING, finish=end, **more), "finish": f"{end}\n{words['stopped']}"}
    return words


def start_rows(rows: Rows) -> list[int]:
    """The rows of a member that are known before it gets a lane."""
    return [*rows.f, *rows.slopes, rows.h, rows.code, *rows.g]


def fill_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that load the state, the parameters and the invariants of member i: those of all members lie 0 apart."""
    firsts = [*plan.formulas.values.values(), plan.formulas.count]
    lines = [f"S[{row * plan.width} + l] = y0[i * at[{AT['Y0_STEP']}] + {d}]" for d, row in enumerate(rows.y)]
    for k, (first, end) in enumerate(pairwise(firsts)):
        address = AT["PARAMS"] + 2 * k
        lines.append(f"source, gap = doubles(at[{address}]), at[{address + 1}]")
        lines += [f"S[{rows.p[q] * plan.width} + l] = source[i * gap + {q - first}]" for q in range(first, end)]
    if plan.parts:
        for row, slot in ((rows.start, "PART_START"), (rows.end, "PART_END")):
            lines.append(f"S[{row * plan.width} + l] = doubles(at[{AT[slot]}])[i]")
    if plan.limited:
        lines.append(f"S[{rows.longest * plan.width} + l] = doubles(at[{AT['REALS']}])[4]")
    lines += [f"S[{row * plan.width} + l] = doubles(at[{AT['ATOL']}])[{d}]" for d, row in enumerate(rows.atol)]
    if not plan.chooses:
        lines.append(f"S[{rows.h * plan.width} + l] = doubles(at[{AT['REALS']}])[5]")
    if plan.noise is not None:
        lines.append(f"noise = doubles(at[{AT['NOISE']}])")
        shared = [(rows.key0 + k, str(k)) for k in range(3)]
        lines += [f"S[{row * plan.width} + l] = noise[{place}]" for row, place in (*shared, (rows.member, "3 + i"))]
    lines += [f"S[{row * plan.width} + l] = nan" for row in rows.last]
    if rows.sums:
        lines.append(f"sums = doubles(at[{AT['SUMS']}])")
    return lines + [f"S[{row * plan.width} + l] = sums[i * at[{AT['SUMS_STEP']}] + {k}]" for k, row in enumerate(rows.sums)]
