"""The kernel of lanes with loops: the one text of an explicit step, printed for W members, and the feed that gives lanes their members."""

from functools import lru_cache
from typing import Any

from odesim.run.lane_feed import FIRST_LOOK, JUDGING, LOOKING, RUN, judged_lines
from odesim.run.lane_kernel import look_numbers, module_text
from odesim.run.lane_plan import AT
from odesim.stepper.codes import WORDS
from odesim.stepper.lanes import Looped
from odesim.stepper.methods import METHODS
from odesim.stepper.statements import explicit_reader
from odesim.stepper.template import fit, lone_words

LANES = 16
"""Members side by side: two vectors of 64 bytes hide each other's latency, and the loops of a right-hand side are longer."""
MOST_ROWS = 512
"""The most rows of states and own parameters that lanes with loops may have.

With more rows the members side by side leave the cache, and a single run has matrix products of its own. 32 tokens on a sphere take 0.8 of
the time of single runs with 257 rows, and 1.5 of it with 1025.
"""
CAPACITY = MOST_ROWS + 5
"""Rows of W between two rows of the state: not a power of two, or all of them would fall on the same lines of the cache."""
ARGUMENTS = ("t0", "t1", "rtol", "atol", "longest", "h0", "allowed", "pilot")
HEAD = (f"n, clock = at[{AT['STATES']}] & {2 * MOST_ROWS - 1}, at[{AT['CLOCK']}]",)

RIGHT = """
@kernel
def right(at, state, stage):
    call(at[{RIGHT}], (at[{TABLE}], 0.0, at[{STATE}] + 8 * state, at[{STATE}] + 8 * stage, at[{NOTHING}], at[{NOTHING}], 0, 0, 0))
""".strip("\n")
JUDGED = """
@kernel
def judged(S, l, t0, rtol, atol, n):
    {lines}
""".strip("\n")

COPY = "for d in range({count}):\n    {target} = {source}"
SAVING = """
if due > 0:
    for l in range({W}):
        if members[l] >= 0 and {accept} != 0.0 and {next} <= {new}:
            save_lane(S, at, l, members[l], out, save, saves, {given})
accept(S, at, {given})
""".strip("\n")
FIRST_SAVE = """
first_save_lane(S, at, l, i, out, save, saves, {given})
""".strip("\n")


@lru_cache(maxsize=32)
def looped(method: str, saves: bool, strict: bool, chooses: bool, by_state: bool) -> Looped:
    """The printed step of a method. chooses: the first step follows from the state; else it is one number of the call.

    by_state: each state has its own absolute tolerance.
    """
    reader = explicit_reader(METHODS[method], adaptive=True, saves=saves, together=False, chooses=chooses, by_state=by_state)
    reader.known |= look_numbers(METHODS[method], "float64")
    return Looped(reader, LANES, CAPACITY, ARGUMENTS, HEAD, strict)


@lru_cache(maxsize=32)
def kernel_text(method: str, saves: bool, strict: bool, chooses: bool, by_state: bool) -> str:
    """The text of the module, one for all systems: `run(table)` integrates members FIRST to END - 1 of a chunk."""
    step, w = looped(method, saves, strict, chooses, by_state), LANES
    given = ", ".join(ARGUMENTS)
    number = {key: step.places[row] * w for key, row in NUMBERS.items() if row in step.places}

    def state(row: Any, d: str = "d * W") -> str:
        return f"S[{step.places[row] * w} + {d.replace('W', str(w))} + l]"

    def each(target: str, source: str, count: str = "n") -> str:
        return COPY.format(count=count, target=target, source=source)

    fill = [each(state("y"), f"y0[i * at[{AT['Y0_STEP']}] + d]"), f"source, gap = doubles(at[{AT['PARAMS']}]), at[{AT['PARAMS'] + 1}]"]
    fill += [each(state(row, "(n + d) * W"), "source[i * gap + d]", "gap") for row in step.read_by_right()]
    fill += [each(state("atol"), f"doubles(at[{AT['ATOL']}])[d]")] if by_state else []
    words: dict[str, Any] = {**AT, **WORDS, **number, "W": w, "members": 8 * step.count * w, "places": 8 * (step.count + 1) * w}
    words |= dict.fromkeys(lone_words(RUN), "pass")
    words |= {"fill": "\n".join(fill), "a_member": "min(tile + l, end - 1)", "the_next": "following", "counted": "ended, due"}
    known = (("h", "start[j * (n + 2)]"), ("code", "start[j * (n + 2) + 1]"))
    keep = [f"{source} = {step.at(row)}" for row, source in known] + [each("start[j * (n + 2) + 2 + d]", state(("k", 0)))]
    take = [f"{step.at(row)} = {source}" for row, source in known] + [each(state(("k", 0)), "start[j * (n + 2) + 2 + d]")]
    words |= {"keep": "\n".join(keep), "take": "\n".join(take), "begun": "\n".join(step.begun())}
    end = each("out[i * saves * n + d]", state("y"))
    words |= {"finish": "pass" if saves else end, "stopped": each("state[i * n + d]", state("y")), "going": "ended == idle"}
    limits = f"longest, h0, allowed, pilot = reals[4], reals[5], float(at[{AT['MOST']}]), float(at[{AT['PILOT']}])"
    words |= {"head": "\n".join([*HEAD, f"reals = doubles(at[{AT['REALS']}])", limits])}
    words |= {
        "begin_arguments": f"S, at, {given}",
        "step_arguments": f"S, at, {given}",
        "judging": fit(JUDGING, arguments="S, l, t0, rtol, atol, n", **WORDS),
    }
    words |= {
        "looking": fit(LOOKING, look_at=f"look_lane(S, at, l, i, {given})", **words),
        "first_look": FIRST_LOOK.format(limit=number["limit"], **AT),
    }
    words["saving"] = "pass"
    if saves:
        words["saving"] = SAVING.format(W=w, given=given, accept=step.at("accept"), next=step.at("due"), new=step.at("new"))
        words["first_save"] = FIRST_SAVE.format(given=given)
    y, f = (step.places[row] * w for row in ("y", ("k", 0)))
    judged = fit(
        JUDGED, lines="\n".join(judged_lines(step.at("t"), "t0", y, f, f"n * {w}", w, step.places["atol"] * w if by_state else None))
    )
    body = "\n\n\n".join([RIGHT.format(**AT), *step.functions(), judged, fit(RUN, **words)])
    return module_text(f"{w} lanes with loops of {method}{', strict' if strict else ''}", body, strict)


NUMBERS = {
    "code": "code",
    "t": "t",
    "h": "h",
    "error": "past",
    "retry": "retry",
    "steps": "steps",
    "rejected": "rejected",
    "limit": "most",
}
"""{word of the templates: row of the step}"""
