"""What a run is said to have given: one JSON object for programs, a short table for people."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.cli.output.tables import GLUE, number_text, shape_text, table
from odesim.errors import counted, escaped
from odesim.solve.solution import Solution
from odesim.store.plain_data import events_to_plain, to_plain

ENTRIES = 4  # of an array, or times of an event, that a table shows
STATS = ("steps", "rejected", "rhs_calls", "seconds", "compile_seconds")


def json_object(solution: Solution, out: Path | None, lost: str = "") -> dict[str, Any]:
    """The object that --json prints: numbers, null for what is not finite, a digest for an array above 1000 entries.

    lost: a sentence on what could not be stored.
    """
    said = to_plain(
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
    return {**said, "events": events_to_plain(solution.events)}


def nan_sentences(solution: Solution) -> list[str]:
    """A sentence for each observable that is NaN at a saved time."""
    return [f"the observable {name!r} is not a number at t = {t:.9g}" for name, t in solution.not_numbers.items()]


def json_text(solution: Solution, out: Path | None, lost: str = "") -> str:
    """json_object on one line of ASCII."""
    return json.dumps(json_object(solution, out, lost), allow_nan=False)


def table_text(solution: Solution, out: Path | None = None, picture: Path | None = None) -> str:
    """Final values, observables, events, invariants and counts of a run, in 80 columns."""
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
    """A title and a table under it; nothing where there are no rows."""
    return f"{title}\n{table(rows)}" if rows else ""


def array_rows(arrays: Mapping[str, Array]) -> list[tuple[str, ...]]:
    """(name, shape, values) of arrays; a long one is its ends and its range."""
    return [(name, shape_text(values.shape), values_text(values)) for name, values in arrays.items()]


def values_text(values: Array) -> str:
    """The entries of an array in C order; of many, the first and last with the least and the largest."""
    flat = np.ravel(values)
    if flat.size <= 2 * ENTRIES:
        return "  ".join(map(number_text, flat))
    ends = f"{'  '.join(map(number_text, flat[: ENTRIES - 1]))} ... {number_text(flat[-1])}"
    return f"{ends}  in{GLUE}[{number_text(flat.min())},{GLUE}{number_text(flat.max())}]"


def violation_text(worst: float | None) -> str:
    """How far a run was from a law; a law may not hold for runs from its start."""
    if worst is None:
        return "not applicable to this start"
    return number_text(worst) if np.isfinite(worst) else "not finite"


def event_text(found: Sequence[Mapping[str, Any]]) -> str:
    """When an event happened, and to which component."""
    times = [f"t = {number_text(e['t'])}" + (f" at {list(e['index'])}" if e["index"] is not None else "") for e in found[:ENTRIES]]
    more = [f"{len(found) - ENTRIES} more, the last at t = {number_text(found[-1]['t'])}"] if len(found) > ENTRIES else []
    return ", ".join(part.replace(" ", GLUE) for part in [*times, *more]) or "none"


def blow_up_text(solution: Solution, name: str) -> str:
    """The time of a blow-up that the rescaled clock found, with as many digits as its error leaves; else nothing."""
    error = solution.attrs.get("blow_up_error")
    if name != "blow_up" or error is None:
        return ""
    known = f"to within {error:.1g}" if np.isfinite(error) else "error not known"
    return f"t = {solution.events[name][0]['t']:.12g}, {known}".replace(" ", GLUE)


def run_rows(solution: Solution) -> list[tuple[str, str]]:
    """How a run was computed: method, counts and times."""
    s, chosen = solution.stats, solution.attrs.get("auto")
    return [
        ("method", f"{solution.method} on {solution.backend}"),
        *([("auto", chosen)] if chosen else []),
        ("steps", f"{s['steps']:.0f}, {s['rejected']:.0f} rejected, {counted(s['rhs_calls'], 'right-hand side')}"),
        ("seconds", f"{s['seconds']:.3g}, and {s['compile_seconds']:.3g} to compile"),
    ]
