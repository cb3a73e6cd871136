"""`odesim status`, `resume` and `rerun`: what can be asked of an ensemble on disk."""

import json
from pathlib import Path
from typing import Any

import click

from odesim.cli.kinds import Count
from odesim.cli.outcome import DONE, STOPPED, say

PATH = click.Path(path_type=Path)


@click.command("status", short_help="Say how far a stored run is.")
@click.argument("run", metavar="RUN", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def status_verb(run: Path, as_json: bool) -> int:
    """Say what RUN is and how far: of an ensemble the members by status, also while it is computed."""
    from odesim.cli.text import table
    from odesim.store.paths import attributes_of
    from odesim.store.read import check_present

    said: dict[str, Any] = attributes_of(check_present(run)) or {}
    if "members" in said:
        from odesim.cli.ensemble_result import json_object, run_text
        from odesim.facade_stored import look

        found = look(run)
        if found.lost:
            say(found.message)
        click.echo(json.dumps(json_object(found), allow_nan=False) if as_json else run_text(found))
        return STOPPED if found.lost else DONE
    kind, what = ("training", said.get("task")) if "task" in said else ("integration", said.get("model"))
    names = ("status", "message", "iteration", "steps", "t_end")
    rows = {"kind": kind, "of": what, **{name: said[name] for name in names if name in said}}
    click.echo(json.dumps(rows) if as_json else table([(name, str(value)) for name, value in rows.items()], indent=""))
    return DONE


@click.command("resume", short_help="Go on with a stored ensemble.")
@click.argument("run", metavar="RUN", type=PATH)
@click.option("--retry-failed", is_flag=True, help="Integrate members that failed again.")
@click.option("--method", metavar="NAME", help="By this method, with --retry-failed.")
@click.option("--threads", metavar="N", type=Count(1), default=1, help="Default 1; the bits do not depend on it.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first chunk with a member that failed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--quiet", is_flag=True, help="Print no summary and no progress.")
def resume_verb(run: Path, as_json: bool, quiet: bool, **options: Any) -> int:
    """Integrate the members of RUN that are not done; it ends with the bits of a run that never stopped.

    Of a finished run nothing is done. A training goes on with `odesim train TASK --out RUN --resume`.
    """
    from odesim.cli.ensemble_result import EnsembleProgress, show_run
    from odesim.facade_stored import resume

    with EnsembleProgress(run.name, False if quiet else None) as progress:
        found = resume(run, progress=progress.show, **options)
    finished = found.status == "failed" and not found.tally.new and not found.retried  # its failures were said when they came
    if found.status != "ok" and not finished:
        say(found.message)
    show_run(found, as_json, quiet)
    return DONE if found.status == "ok" or finished else STOPPED


@click.command("rerun", short_help="Compute a stored ensemble again and compare.")
@click.argument("run", metavar="RUN", type=PATH)
@click.option("--threads", metavar="N", type=Count(1), default=1, help="Default 1; the bits do not depend on it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def rerun_verb(run: Path, threads: int, as_json: bool, quiet: bool) -> int:
    """Compute every member of RUN again and compare all bits; RUN stays as it is. Exit code 3 where one differs."""
    from odesim.cli.ensemble_result import EnsembleProgress
    from odesim.facade_rerun import rerun

    with EnsembleProgress(run.name, False if quiet else None) as progress:
        found = rerun(run, threads=threads, progress=progress.show)
    if as_json:
        names = ("members", "different", "largest", "message")
        click.echo(json.dumps({"run": str(run), **{name: getattr(found, name) for name in names}}))
    elif found.same:
        click.echo(found.message)
    if not found.same:
        say(found.message)
    return DONE if found.same else STOPPED
