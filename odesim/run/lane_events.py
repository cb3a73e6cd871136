"""The text by which a lane kernel watches event functions in all lanes at once, and finds the zeros of some.

It takes their values at the ends of the pieces of every step. An explicit step takes these samples itself, while its stages are in
registers. Where a value changes its sign, or may have done so in between, that lane alone is searched (odesim.stepper.search). It is the
same for any method that has an interpolant.

Where samples are enough (affine events of explicit methods), components wait in a queue until there is one for each place of a vector,
and are then searched together. Where they show one zero and no dip, the vector finds it with the arithmetic of one component alone. Where
they show neither, or a fall at the end of the step that goes on, there is none. Components whose samples show anything else, or whose
zeros few Newton steps do not reach, are searched alone.
"""

from collections.abc import Iterable
from itertools import pairwise

from odesim.base.parsing import margin
from odesim.ir.scalars import Formulas
from odesim.run.lane_dense import between_lines, load_lines, restore_lines, touched
from odesim.run.lane_feed import MANY, Frames, feed_text
from odesim.run.lane_plan import AT, REALS, KernelPlan, Rows, WatchedEvents, at, call_right, over_lanes, real
from odesim.run.lane_resets import ranges
from odesim.stepper.codes import WORDS
from odesim.stepper.lanes import function
from odesim.stepper.search_samples import MARKS, NEAR, SETTLED
from odesim.stepper.table import places as table_places

STEPS = 3
"""Newton steps from the chord of a piece, which most often reach rounding."""
CLEAR = 0.01
"""Of the sample before: so far from zero a fall at the end of a step goes on without another look."""


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
    newton = function(f"newton(s, {coefficients})", [*value, "return p, slope"], "inlined")
    return "\n\n\n".join([newton, function("roots(S)", over_lanes(w, lines))])


def param_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that load the parameters that the functions read."""
    assert plan.watch is not None
    places = [(k, at(rows.p[k], plan.width)) for k in plan.watch.reads("p")]
    return [f"p{k} = {text if k in plan.formulas.doubles else real(plan, text)}" for k, text in places]


def happen_text(watch: WatchedEvents) -> str:
    """The text of happen(t, states, parameters) -> (size,): the event functions of one member."""
    f = watch.formulas
    arguments = ", ".join(["t", *(f"y{d}" for d in watch.reads("y")), *(f"p{k}" for k in watch.reads("p"))])
    return function(f"happen({arguments})", [*f.lines, f"return ({', '.join(f.outputs)},)"], "inlined")


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
    return [*lines, "marks = marks if taken else 0.0", f"{at(rows.marks, w)} = marks", "hits += 1 if marks > 0.0 else 0"]


def watch_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of watch(S), which samples the functions in the last step of all lanes and returns how many lanes need a search."""
    watch, w = plan.watch, plan.width
    assert watch is not None
    lines = [f"before, h, new = {at(rows.before, w)}, {at(rows.step, w)}, {at(rows.done, w)}", "taken = new > -inf"]
    lines += [f"{at(rows.until, w)} = new", *param_lines(plan, rows)]
    lines += [] if plan.discrete else load_lines(plan, rows, watch.reads("y"))
    state = {d: real(plan, at(rows.y[d], w)) for d in watch.reads("y")}
    lines += watched_lines(plan, rows, "before", state)
    return function("watch(S)", ["hits = 0", *over_lanes(w, lines), "return hits"])


def probe_text(plan: KernelPlan, rows: Rows) -> str:
    """The text of probe(S, l, theta, i), component i of the functions inside the last step of lane l.

    Where it is called by address it is probe(address, theta, l, i), of the address of S, and returns nothing.
    """
    watch, w = plan.watch, plan.width
    assert watch is not None
    if plan.sampled:  # never called
        return function("probe(S, l, theta, i)", ["return nan"])
    restored = watch.terminal and bool(plan.invariants)  # only where a step ends does a run go on from another state than the interpolant's
    reads = sorted({*watch.reads("y"), *(touched(plan) if restored else ())})
    lines = [f"h = {at(rows.step, w)}", *load_lines(plan, rows, reads), *between_lines(plan, reads)]
    if restored:
        lines += ["if i < 0:", *margin(restore_lines(plan, rows, "z"))]
    lines += param_lines(plan, rows)
    lines.append(watch.call(f"{at(rows.before, w)} + theta * h", {d: f"z{d}" for d in watch.reads("y")}, "a"))
    lines += [f"{at(rows.probed[i], w)} = a{i}" for i in range(watch.size)]
    if plan.probed:
        how = "njit('void(int64, float64, int64, int64)', **options)"
        return function("probe(address, theta, l, i)", ["S = doubles(address)", *lines, "return"], how)
    return function("probe(S, l, theta, i)", [*lines, f"return S[({rows.probed[0]} + i) * {w} + l]"])


def settle_text(plan: KernelPlan, rows: Rows) -> list[str]:
    """The text of settle(S, l): sets lane l to the state at the event that ended its member."""
    if plan.watch is None or not plan.watch.terminal:
        return []
    w, states = plan.width, range(plan.formulas.states)
    if plan.discrete:
        return [function("settle(S, l)", [f"{at(rows.t, w)} = {at(rows.until, w)}"])]
    lines = [f"h, theta = {at(rows.step, w)}, {at(rows.theta, w)}", f"{at(rows.t, w)} = {at(rows.until, w)}", "if theta < 1.0:"]
    inside = [*load_lines(plan, rows, states), *between_lines(plan, states), *restore_lines(plan, rows, "z")]
    lines += margin([*inside, *(f"{at(rows.y[d], w)} = z{d}" for d in states)])
    return [function("settle(S, l)", lines)]


def event_texts(plan: KernelPlan, rows: Rows) -> list[str]:
    """The functions of a kernel with events."""
    if plan.watch is None:
        return []
    watch = [] if plan.joined else [watch_text(plan, rows)]
    probe = [] if plan.discrete or plan.queued else [probe_text(plan, rows)]
    return [*watch, *probe, *settle_text(plan, rows), *([roots_text(plan, rows)] if plan.queued else [])]


def begin_lines(plan: KernelPlan, rows: Rows) -> list[str]:
    """Lines that set the functions' values at the start of a member."""
    if plan.watch is None:
        return []
    call = plan.watch.call("t0", {d: f"y{d}" for d in plan.watch.reads("y")}, "w")
    return [call, *(f"{at(row, plan.width)} = w{i}" for i, row in enumerate(rows.g))]


def reset_texts(plan: KernelPlan) -> list[str]:
    """The functions of the rules of events, which end in resets(table); none where they are not compiled."""
    rules, f = plan.resets, plan.formulas
    if rules is None:
        return []
    n, rows = f.states, rules.rows(f.count)
    rates = {f"rate_{name}": start for name, start, _ in ranges(rules.layout)}

    def values(name: str, formulas: Formulas, arguments: Iterable[str], put: Iterable[str]) -> str:
        """A function that loads what formulas read, computes them, and puts them."""
        first = sorted(formulas.values.items(), key=lambda each: -each[1])
        lines = [f"y{d} = S[y + {d}]" for d in formulas.reads("y")]
        for k in formulas.reads("p"):
            word, place = next((word, k - place) for word, place in first if place <= k)
            lines.append(f"p{k} = S[f + {rates[word] + place}]" if word in rates else f"p{k} = S[{rows['p'] + f.values[word] + place}]")
        return function(f"{name}({', '.join(['S', 't', 'y', *arguments])})", [*lines, *formulas.lines, *put], "unfused")

    def stored(formulas: Formulas) -> list[str]:
        return [f"S[into + {k}] = {out}" for k, out in enumerate(formulas.outputs)]

    put = list[str]()
    for column, (_, elements) in rules.sets.items():
        put += [f"if column == {column}:", *margin(f"S[into + {d}] = {rules.values.outputs[k]}" for d, k in elements)]
    loads = [*(f"z{d} = S[y + {d}]" for d in range(n)), *(f"p{k} = S[{rows['p'] + k}]" for k in range(f.count))]
    right = [*loads, call_right(plan, "t", "z", "k"), *(f"S[into + {d}] = k{d}" for d in range(n))]
    functions = [
        values("event_values", rules.functions, ["into"], stored(rules.functions)),
        values("event_rates", rules.rates, ["f", "into"], stored(rules.rates)),
        values("set_states", rules.values, ["into", "column"], put),
        function("derivatives(S, t, y, into)", right),
    ]
    places = {name: AT["PARAMS"] + 2 * k for k, name in enumerate(f.values)}
    held = [(s, e, c, *(places[w] for w in words), gap, d) for s, (e, c, words, gap, d) in enumerate(rules.held)]
    marks = enumerate(pairwise([*f.values.values(), f.count]))
    own = [(AT["PARAMS"] + 2 * k, rows["p"] + first, last - first) for k, (first, last) in marks if last > first]
    known = {**WORDS, **rules.constants, "HELD": held, "OWN": own, "SAVES": bool(plan.saves)}
    text = Frames(feed_text("one_reset"), known, rows, {"at": AT, "reals": table_places(REALS)})
    words = ("spacing_of", "side_of", "look_around", "write_found", "reset_member", "resets")
    return functions + text.printed(*words)
