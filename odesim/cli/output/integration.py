"""Output of `odesim integrate`: JSON, or a short table."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.cli.output.tables import GLUE, number_text, shape_text, table
from odesim.errors import counted, escaped
from odesim.solve.solution import Solution
from odesim.stepper.occurrences import BELOW
from odesim.stepper.options import usable
from odesim.store.plain_data import events_to_plain, to_plain

ENTRIES = 4  # entries of an array, or times of an event, in a table
STATS = ("steps", "rejected", "rhs_calls", "seconds", "compile_seconds")


def json_object(solution: Solution, out: Path | None, lost: str = "") -> dict[str, Any]:
    """The object that --json prints: null for numbers that are not finite, a digest for an array of more than 1000 entries.

    lost: a sentence on results that could not be stored.
    """
    fields = to_plain(
        {
            "model": solution.model,
            "status": solution.status,
            "message": "; ".join(filter(None, (solution.message, *nan_sentences(solution), lost))),
            "t": float(solution.t_end),
            "final": solution.final,
            "observables": solution.final_observables,
            "events": None,
            "invariants": solution.invariants,
            "stats": {name: solution.stats[name] for name in STATS},
            "method": solution.method,
            "auto": solution.attrs.get("auto"),
            "clock": solution.attrs.get("clock", "ordinary"),
            "blow_up_error": solution.attrs.get("blow_up_error"),
            "backend": solution.backend,
            "out": out,
        }
    )
    return {**fields, "events": events_to_plain(solution.events)}


def nan_sentences(solution: Solution) -> list[str]:
    """A sentence for each observable that is NaN at a saved time, and for each added event that is NaN at all of them."""
    sentences = [f"the observable {name!r} is not a number at t = {t:.9g}" for name, t in solution.not_numbers.items()]
    undefined = solution.attrs.get("undefined_events", ())
    return sentences + [f"the event {name!r} is a number at no saved time: it cannot happen" for name in undefined]


def json_text(solution: Solution, out: Path | None, lost: str = "") -> str:
    """json_object on one line of ASCII."""
    return json.dumps(json_object(solution, out, lost), allow_nan=False)


def table_text(solution: Solution, out: Path | None = None, picture: Path | None = None) -> str:
    """The result as text in 80 columns: final values, observables, events, invariants, statistics."""
    head = (
        f"{escaped(solution.model, '')}: {solution.status} at t = {number_text(solution.t_end)}, {counted(len(solution.t), 'saved time')}"
    )
    parts = [head, section("final", array_rows(solution.final)), section("observables", array_rows(solution.final_observables))]
    parts.append(section("events", [(name, blow_up_text(solution, name) or event_text(found)) for name, found in solution.events.items()]))
    worst = [(name, violation_text(value)) for name, value in solution.invariants.items()]
    parts.append(section("invariants, worst violation", worst))
    files = [(name, str(path)) for name, path in (("stored", out), ("drawn", picture)) if path]
    parts.append(section("run", [*run_rows(solution), *files]))
    return "\n".join(part for part in parts if part)


def section(title: str, rows: Sequence[tuple[str, ...]]) -> str:
    """A title and a table under it; an empty string if there are no rows."""
    return f"{title}\n{table(rows)}" if rows else ""


def array_rows(arrays: Mapping[str, Array]) -> list[tuple[str, ...]]:
    """Rows (name, shape, values) of a table of arrays {name: array}."""
    return [(name, shape_text(values.shape), values_text(values)) for name, values in arrays.items()]


def values_text(values: Array) -> str:
    """The entries of an array in C order; of a long array the first and last entries and the range."""
    flat = np.ravel(values)
    if flat.size <= 2 * ENTRIES:
        return "  ".join(map(number_text, flat))
    ends = f"{'  '.join(map(number_text, flat[: ENTRIES - 1]))} ... {number_text(flat[-1])}"
    return f"{ends}  in{GLUE}[{number_text(flat.min())},{GLUE}{number_text(flat.max())}]"


def violation_text(worst: float | None) -> str:
    """The worst violation of a law as text. None: the law does not apply to this start."""
    if worst is None:
        return "not applicable to this start"
    return number_text(worst) if np.isfinite(worst) else "not finite"


def event_text(occurrences: Sequence[Mapping[str, Any]]) -> str:
    """Times of an event as text, with components."""
    times = [
        f"t = {number_text(e['t'])}"
        + (f" at {list(e['index'])}" if e["index"] is not None else "")
        + (" (below atol)" if BELOW in e else "")
        for e in occurrences[:ENTRIES]
    ]
    rest = occurrences[ENTRIES:]
    noise = sum(BELOW in e for e in rest)
    below = f", {noise} of them below atol" if noise else ""
    more = [f"{len(rest)} more{below}, the last at t = {number_text(occurrences[-1]['t'])}"] if len(rest) else []
    return ", ".join(part.replace(" ", GLUE) for part in [*times, *more]) or "none"


def blow_up_text(solution: Solution, name: str) -> str:
    """The time of a blow-up with its error, if the rescaled clock computed it; else an empty string."""
    error = solution.attrs.get("blow_up_error")
    if name != "blow_up" or error is None:
        return ""
    accuracy = f"to within {error:.1g}" if np.isfinite(error) else "error not known"
    return f"t = {solution.events[name][0]['t']:.12g}, {accuracy}".replace(" ", GLUE)


def run_rows(solution: Solution) -> list[tuple[str, str]]:
    """Rows of a table on how the run was computed: method, steps, seconds."""
    s, chosen = solution.stats, solution.attrs.get("auto")
    return [
        ("method", f"{solution.method} on {solution.backend}"),
        *([("auto", chosen)] if chosen else []),
        *tolerance_rows(solution.attrs),
        ("steps", steps_text(s)),
        ("seconds", f"{s['seconds']:.3g}, and {s['compile_seconds']:.3g} to compile"),
    ]


def tolerance_rows(attributes: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A row for a relative tolerance that is below rounding, with the one used in its place."""
    asked, least = attributes.get("rtol", 1.0), usable(0.0, 0.0, str(attributes.get("dtype", "float64")))[0]
    return [("rtol", f"{least:.2g}: {asked:.2g} is below rounding")] * (attributes.get("step") is None and asked < least)


COUNTS = ("steps", "rejected", "rhs_calls")


def steps_text(stats: Mapping[str, float]) -> str:
    """Steps taken and rejected, and right-hand sides computed: {each of COUNTS: a number}."""
    steps, rejected, calls = (stats[name] for name in COUNTS)
    return f"{steps:.0f}, {rejected:.0f} rejected, {counted(calls, 'right-hand side')}"
