"""The functions that feed lanes and threads with members, printed from their one text (feed.py) for a plan."""

from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from odesim.run.lane_plan import AT, REALS, KernelPlan, Rows
from odesim.stepper.codes import WORDS
from odesim.stepper.frames import Frames
from odesim.stepper.search_samples import MARKS
from odesim.stepper.statements import Text
from odesim.stepper.table import places
from odesim.targets.cache import source_of

UNSEEN = 64
"""The most steps without a look."""
LOOK = 256
"""Steps of a thread between two looks at whether the run should stop: what is asked lies in the memory of the host."""
MANY = 2.0
"""The side of what is to be searched alone."""
FLAGS = (
    "THREAD", "LOOPS", "SAVES", "EVENTS", "TERMINAL", "PARTS", "FIXED", "STIFF", "LOOKS", "MARCHES", "JOINED", "QUEUED", "CALLED",
    "DISCRETE", "LIMITED", "GIVEN_FIRST", "KEEPS", "BY_POWERS", "SUMS", "NOISE", "PAIRS", "BY_STATE",
)  # fmt: skip


@cache
def feed_text() -> Text:
    """The parsed text."""
    return Text(source_of("odesim.run.feed"))


def frames(width: int, rows: Mapping[str, int], **known: Any) -> Frames:
    """The text for lanes whose rows begin at these numbers of S; switches that are not named are off."""
    lists: dict[str, Any] = {"OWN": [], "BEFORE": [], "BEGUN": [], "READ": []}
    constants = {"W": width, "UNSEEN": float(UNSEEN), "LOOK": LOOK, "MANY": MANY, "MARKS": MARKS}
    return Frames(
        feed_text(), {**WORDS, **dict.fromkeys(FLAGS, False), **lists, **constants, **known}, rows, {"at": AT, "reals": places(REALS)}
    )


def start_rows(rows: Rows) -> list[int]:
    """The rows of a member that are known before it gets a lane."""
    return [*rows.f, *rows.slopes, rows.h, rows.code, *rows.g]


def feed_texts(plan: KernelPlan, rows: Rows, thread: bool = False) -> list[str]:
    """The functions for lanes, which end in run(table), or those for a thread, which end in member(at, S, T, zeros, i)."""
    w, f, watch, start = plan.width, plan.formulas, plan.watch, start_rows(rows)
    begins = {name: (row.start if isinstance(row, range) else row) * w for name, row in vars(rows).items() if isinstance(row, int | range)}
    own = enumerate(pairwise([*f.values.values(), f.count]))
    given = ("t0", "t1", "rtol", "atol")
    known: dict[str, Any] = {
        "THREAD": thread, "N": f.states, "SAVES": bool(plan.saves), "EVENTS": watch is not None, "PARTS": plan.parts, "FIXED": plan.fixed,
        "STIFF": plan.stiff, "LOOKS": plan.looks, "MARCHES": plan.marches, "JOINED": plan.joined, "QUEUED": plan.queued,
        "CALLED": bool(plan.called), "DISCRETE": plan.discrete, "LIMITED": plan.limited, "GIVEN_FIRST": not plan.chooses,
        "NOISE": plan.noise is not None, "PAIRS": plan.noise is not None and plan.noise.pairs,
        "BY_STATE": plan.by_state, "BY_POWERS": plan.by_powers, "SUMS": len(rows.sums), "BEFORE": [row * w for row in rows.last],
        "OWN": [(AT["PARAMS"] + 2 * k, rows.p[first] * w, end - first) for k, (first, end) in own if end > first],
        "KNOWN": [(k, row * w) for k, row in enumerate(start)], "STARTED": len(start),
        "OLD_ERROR": 0.0 if plan.stiff else "LOG2_LEAST_OLD",
        "GIVEN": given, "STEPPED": (*given, "most", *(("fixed", "rest", "total") if plan.fixed else ())),
    }  # fmt: skip
    if watch is not None:
        known |= {"TERMINAL": watch.terminal, "KEEPS": watch.keeps}
        begins["samples"] = rows.samples[0].start * w
        known |= {"SIZE": watch.size, "PIECES": watch.pieces, "ROOM": watch.room, "NAMES": watch.names}
    wanted = {"lower": watch, "higher": watch, "sample": watch and not plan.probed, "judged": not plan.fixed, "free": plan.marches}
    wanted |= {"push": plan.queued, "flush": plan.queued}
    ends = ("member",) if thread else ("fill", "run", *(("rates",) if plan.rounds else ()))
    return frames(w, {**begins, "count": rows.count * w}, **known).printed(*(name for name, want in wanted.items() if want), *ends)
