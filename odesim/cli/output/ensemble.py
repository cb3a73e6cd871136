"""Output of `odesim ensemble` and `odesim resume`: progress, and a table or JSON at the end."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.base.backends import BACKENDS
from odesim.base.errors import counted, escaped
from odesim.cli.output.tables import echo
from odesim.cli.progress import Counter

RETRIED = ("max_steps", "step_too_small")  # statuses for which another method may help

if TYPE_CHECKING:
    from odesim.api.stored_ensemble import EnsembleRun


class EnsembleProgress(Counter):
    """A progress line: members done and failed, members per second, time left."""

    def show(self, done: int, total: int, failed: int) -> None:
        """Shows the line, ten times a second at most."""
        self.count(done, total, lambda: f"{failed} failed", "members")


def json_object(run: "EnsembleRun") -> dict[str, Any]:
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
        echo(json.dumps(json_object(run), allow_nan=False))
    elif not quiet:
        echo(run_text(run, drawn))


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
    from odesim.cli.output.tables import table

    t = run.tally
    rows = [(name, str(n)) for name, n in t.counts.items() if n] + [("not done", str(t.total - t.done))] * (t.done < t.total)
    rate = f", {t.new / run.seconds:.3g} a second" if t.new and run.seconds else ""
    computed = f"{counted(t.new, 'member')} in {run.seconds:.3g} s{rate}"
    explanation = [*(["what they mean", table(list(meanings(run).items()))] if meanings(run) else [])]
    on_gpu = run.backend in BACKENDS and BACKENDS[run.backend].gpu
    engine = "a thread of a GPU each" if on_gpu else "in lanes" if run.lanes else "one by one"
    counts = run.by_method
    methods = ", ".join(f"{name} {n}" for name, n in counts.items()) if len(counts) > 1 else next(iter(counts), run.method)
    rest = [*([("computed", computed)] if t.new or run.seconds else []), ("method", f"{methods}, {engine}")]
    rest += [("warning", str(missing)) for missing in t.not_numbers.values()]
    rest += [("auto", run.auto)] * bool(run.auto) + [("stored", str(run.path))] * bool(run.path) + [("drawn", str(drawn))] * bool(drawn)
    head = f"{escaped(run.model, '')}: {run.status}, {t.done} of {counted(t.total, 'member')}" + f" done, {t.failed} failed" * bool(
        t.failed
    )
    return "\n".join([head, table(rows), *explanation, "run", table(rest)])
