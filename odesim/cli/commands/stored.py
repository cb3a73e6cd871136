"""`odesim status` and `odesim resume`: the progress of a stored run, and its continuation."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from odesim.cli.commands.rerun import MODEL
from odesim.cli.options.kinds import CLUSTER, Count, RunPlace
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.output.tables import echo

PATH = click.Path(path_type=Path)


@click.command("status", short_help="Explain a stored run: how far it is, how it ended.")
@click.argument("run", metavar="RUN", type=RunPlace())
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def status_command(run: Path, as_json: bool) -> int:
    """Print what RUN is and how far it has come, also while it is being computed.

    It explains each status that occurs, and its remedy. For an ensemble it counts the members with each status.
    """
    from odesim.cli.output.tables import table
    from odesim.store.inspected import inspect_run

    inspected = inspect_run(run)
    said, kind = inspected.attributes, inspected.kind
    if kind == "ensemble":
        from odesim.api.stored_ensemble import stored_run
        from odesim.cli.output.ensemble import json_object, run_text

        found = stored_run(run)
        if found.lost:
            say(found.message)
        echo(json.dumps(json_object(found), allow_nan=False) if as_json else run_text(found))
        return STOPPED if found.lost else DONE
    what = said["task" if kind == "training" else "model"]
    names = ("status", "message", "iteration", "steps", "t_end", "method", "backend", "optimizer", "seeds", "stats")
    rows = {"kind": kind, "of": what, **{name: said[name] for name in names if name in said}}
    echo(json.dumps(rows) if as_json else table([(name, value) for name, value in status_rows(rows)], indent=""))
    return DONE


def status_rows(said: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The known facts of one integration or one training, as rows of a table."""
    from odesim.cli.lab import lab_commands
    from odesim.cli.output.integration import COUNTS, steps_text

    for name, value in said.items():
        if name == "method":
            yield name, f"{value} on {said['backend']}"
        elif name == "stats" and None not in map(value.get, COUNTS):
            yield "steps", steps_text(value)
        elif name == "optimizer":
            yield name, lab_commands().optimizer_line(value)
        elif name == "seeds":
            yield name, ", ".join(map(str, value))
        elif name not in ("backend", "stats"):
            yield name, str(value)


@click.command("resume", short_help="Continue a stored run.")
@click.argument("run", metavar="RUN", type=RunPlace())
@click.option("--retry-failed", is_flag=True, help="Ensemble: integrate failed members again.")
@click.option("--method", metavar="NAME", help="Method for --retry-failed.")
@click.option(
    "--threads",
    metavar="N",
    type=Count(1),
    help="Number of threads; default 1, for a training as before. The bits of an ensemble do not depend on it.",
)
@click.option("--model", metavar="FILE.py", type=PATH, help=MODEL)
@CLUSTER
@click.option("--fail-fast", is_flag=True, help="Ensemble: stop after the first chunk in which a member failed.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no summary and no progress.")
def resume_command(run: Path, threads: int | None, as_json: bool, quiet: bool, **options: Any) -> int:
    """Continue RUN where it stopped. The result has the bits of a run that never stopped. A finished run stays as it is.

    Ensemble: the members that are not done are integrated. Training: it continues as with `odesim train --resume`, which can also make
    it longer. An integration cannot be continued, because it stores no state of its integrator.
    """
    from odesim.store.inspected import run_kind

    kind = run_kind(run)
    if kind == "ensemble":
        return resume_ensemble(run, threads or 1, as_json, quiet, options)
    for name, given in options.items():
        if given:
            from odesim.errors import ParamError

            raise ParamError(f"--{name.replace('_', '-')} is for ensembles, and {run} is {'a' if kind == 'training' else 'an'} {kind}")
    if kind == "training":
        from odesim.cli.lab import lab_commands

        return int(lab_commands().resume_stored(run, threads, as_json, quiet))
    return resume_integration(run, quiet or as_json)


def resume_ensemble(run: Path, threads: int, as_json: bool, quiet: bool, options: dict[str, Any]) -> int:
    """Integrates the members that are not done; returns the exit code."""
    from odesim.api.ensemble_request import make_execution
    from odesim.api.stored_ensemble import resume
    from odesim.base.cluster import connected
    from odesim.cli.output.ensemble import EnsembleProgress, print_run

    address, fail_fast = options.pop("cluster"), options.pop("fail_fast")
    with connected(address) as cluster, EnsembleProgress(run.name, False if quiet else None) as progress:
        found = resume(run, execution=make_execution(threads, progress.show, fail_fast, cluster), **options)
    finished = found.status == "failed" and not found.tally.new and not found.retried  # its failures were said when they came
    if found.status != "ok" and not finished:
        say(found.message)
    print_run(found, as_json, quiet)
    return DONE if found.status == "ok" or finished else STOPPED


def resume_integration(run: Path, quiet: bool) -> int:
    """Prints that an integration is complete, unless quiet. Raises ParamError for an unfinished one: its integrator is gone."""
    from odesim.errors import ParamError
    from odesim.store.inspected import inspect_run

    said = inspect_run(run).attributes
    if said["status"] in ("ok", "event"):
        if not quiet:
            echo(f"{run} is complete, to t = {said['t_end']:g}: there is nothing to continue")
        return DONE
    raise ParamError(
        f"{run} is an integration that ended as {said['status']} at t = {said['t_end']}, and cannot be continued: "
        "odesim rerun computes it again and compares; odesim integrate computes it anew"
    )
