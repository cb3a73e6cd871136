"""Results of `odesim integrate` and `odesim ensemble` as JSON for programs and as text for people."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.backends import BACKENDS
from odesim.base.errors import counted, escaped
from odesim.cli.tables import GLUE, Counter, echo, file_rows, number_text, shape_text, table, thousands
from odesim.run.solution import Solution
from odesim.stepper.occurrences import BELOW
from odesim.stepper.problem import least_rtol
from odesim.store.plain import events_to_plain, to_plain

if TYPE_CHECKING:
    import xarray

    from odesim.api.stored import EnsembleRun

# a table is a look at a result; --json and --out have all digits and all entries
ENTRIES = 4  # entries of an array, or times of an event, in a table
STATS = ("steps", "rejected", "rhs_calls", "seconds", "compile_seconds")


def solution_object(solution: Solution, out: Path | None, lost: str = "") -> dict[str, Any]:
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


def solution_text(solution: Solution, out: Path | None = None, picture: Path | None = None) -> str:
    """The result as text in 80 columns: final values, observables, events, invariants, statistics."""
    head = (
        f"{escaped(solution.model, '')}: {solution.status} at t = {number_text(solution.t_end)}, {counted(len(solution.t), 'saved time')}"
    )
    parts = [head, section("final", array_rows(solution.final)), section("observables", array_rows(solution.final_observables))]
    parts.append(
        section(
            "events", [(name, blow_up_text(solution, name) or event_text(occurrences)) for name, occurrences in solution.events.items()]
        )
    )
    worst = [(name, violation_text(value)) for name, value in solution.invariants.items()]
    parts.append(section("invariants, worst violation", worst))
    parts.append(section("run", [*run_rows(solution), *file_rows(out, picture)]))
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
    rtol, least = attributes.get("rtol", 1.0), least_rtol(str(attributes.get("dtype", "float64")))
    return [("rtol", f"{least:.2g}: {rtol:.2g} is below rounding")] * (attributes.get("step") is None and rtol < least)


COUNTS = ("steps", "rejected", "rhs_calls")


def steps_text(stats: Mapping[str, float]) -> str:
    """Steps taken and rejected, and right-hand sides computed: {each of COUNTS: a number}."""
    steps, rejected, calls = (stats[name] for name in COUNTS)
    return f"{steps:.0f}, {rejected:.0f} rejected, {counted(calls, 'right-hand side')}"


RETRIED = ("max_steps", "step_too_small")  # statuses for which another method may help


class EnsembleProgress(Counter):
    """A progress line: members done and failed, members per second, time left."""

    def show(self, done: int, total: int, failed: int) -> None:
        """Shows the line, ten times a second at most."""
        self.count(done, total, lambda: f"{failed} failed", "members")


def run_object(run: "EnsembleRun") -> dict[str, Any]:
    """The object that --json prints. `members`: of the run or shard; `new`: integrated by this command."""
    t = run.tally
    rate = t.new / run.seconds if run.seconds else None
    return {
        "model": run.model,
        "status": run.status,
        "message": run.message,
        "members": t.total,
        "done": t.done,
        "failed": t.failed,
        "counts": t.counts,
        "meanings": meanings(run),
        "new": t.new,
        "retried": run.retried,
        "seconds": run.seconds,
        "members_per_second": rate,
        "method": run.method,
        "methods": run.by_method,
        "auto": run.auto or None,
        "backend": run.backend,
        "out": str(run.path) if run.path else None,
    }


def print_run(run: "EnsembleRun", as_json: bool, quiet: bool, drawn: Path | None = None) -> None:
    """Prints the result of a run as JSON or text. drawn: path of its picture."""
    if as_json:
        echo(json.dumps(run_object(run), allow_nan=False))
    elif not quiet:
        echo(run_text(run, drawn))


def statistics_object(data: "xarray.Dataset") -> dict[str, Any]:
    """The object that --json prints of statistics over members: null for numbers that are not finite."""
    about = {name: data.attrs[name] for name in ("model", "members")} | {"statuses": data.attrs["statuses"]}
    return {**about, **{str(name): to_plain(values.values) for name, values in data.variables.items()}}


def statistics_text(data: "xarray.Dataset", out: Path | None, picture: Path | None) -> str:
    """Statistics at the last saved time as text in 80 columns."""
    statuses = data.attrs["statuses"]
    head = f"{escaped(data.attrs['model'], '')}: {sum(statuses.values())} of {counted(data.attrs['members'], 'member')} done"
    shown = {str(name): v for name, v in data.data_vars.items() if not str(name).endswith(("_count", "_edges", "_histogram"))}
    last, once = ({name: v for name, v in shown.items() if ("time" in v.dims) is timed} for timed in (True, False))
    levels = [("quantiles", ", ".join(f"{level:g}" for level in levels.values)) for levels in (data.get("quantile"),) if levels is not None]
    at = f"at t = {number_text(data['time'].values[-1])}"
    rows = [table(array_rows({name: v.isel(time=-1).values for name, v in last.items()}))] if last else []
    rows += [section("over time", array_rows({name: v.values for name, v in once.items()}))] if once else []
    return "\n".join(
        [head, table([(s, str(n)) for s, n in statuses.items()]), *[at] * bool(last), *rows, table([*levels, *file_rows(out, picture)])]
    ).rstrip()


def meanings(run: "EnsembleRun") -> dict[str, str]:
    """{status: meaning and remedy} of the statuses other than `ok` that members have."""
    again = f"; odesim resume {run.path} --retry-failed --method rodas5p tries such members again"
    counts = run.tally.counts
    return {
        s: text + again * (run.path is not None and s in RETRIED and run.may_be_stiff(s))
        for s, text in run.meanings.items()
        if counts.get(s) and s != "ok"
    }


def run_text(run: "EnsembleRun", drawn: Path | None = None) -> str:
    """The result as text in 80 columns: members by status, what this command did, the folder."""

    t = run.tally
    rows = [(name, str(n)) for name, n in t.counts.items() if n] + [("not done", str(t.total - t.done))] * (t.done < t.total)
    rate = f", {thousands(t.new / run.seconds)} a second" if t.new and run.seconds else ""
    computed = f"{counted(t.new, 'member')} in {run.seconds:.3g} s{rate}"
    explanation = [*(["what they mean", table(list(meanings(run).items()))] if meanings(run) else [])]
    on_gpu = run.backend in BACKENDS and BACKENDS[run.backend].gpu
    engine = "a thread of a GPU each" if on_gpu else "in lanes" if run.lanes else "one by one"
    counts = run.by_method
    methods = ", ".join(f"{name} {n}" for name, n in counts.items()) if len(counts) > 1 else next(iter(counts), run.method)
    rest = [*([("computed", computed)] if t.new or run.seconds else []), ("method", f"{methods}, {engine}")]
    rest += [("warning", str(missing)) for missing in t.not_numbers.values()]
    rest += [*[("auto", run.auto)] * bool(run.auto), *file_rows(run.path, drawn)]
    head = f"{escaped(run.model, '')}: {run.status}, {t.done} of {counted(t.total, 'member')}" + f" done, {t.failed} failed" * bool(
        t.failed
    )
    return "\n".join([head, table(rows), *explanation, "run", table(rest)])
