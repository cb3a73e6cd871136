"""`odesim rerun`: computes a stored run again and compares."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from odesim.cli.options.kinds import Count, RunPlace
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.output.tables import echo

if TYPE_CHECKING:
    from odesim.api.differences import Rerun

MODEL = "The model file of RUN; its sha256 must be the one that RUN stores. Without this option no file is executed."
KEYS = ("same", "different", "first", "largest", "other", "message")


@click.command("rerun", short_help="Compute a stored run again and compare.")
@click.argument("run", metavar="RUN", type=RunPlace())
@click.option(
    "--threads",
    metavar="N",
    type=Count(1),
    help="Number of threads; default 1, for a training as before. The bits of an ensemble do not depend on it.",
)
@click.option("--model", metavar="FILE.py", type=click.Path(path_type=Path), help=MODEL)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def rerun_command(run: Path, threads: int | None, model: Path | None, as_json: bool, quiet: bool) -> int:
    """Compute RUN again from what it stores, and compare. RUN itself does not change.

    With the same code, every bit must be the same. With another version of odesim or of a library, the message names it and gives the
    largest difference, which must be within a few tolerances. The exit code is 3 if the runs differ by more.
    """
    found = computed(run, threads, model, False if quiet else None)
    if as_json:
        count = {f"{found.unit.split()[-1]}s": found.counted}
        echo(json.dumps({"run": str(run), **count} | {name: getattr(found, name) for name in KEYS}))
    elif found.passed:
        echo(found.message)
    if not found.passed:
        say(found.message)
    return DONE if found.passed else STOPPED


def computed(run: Path, threads: int | None, model: Path | None, watched: bool | None) -> "Rerun":
    """Reruns the stored run and shows progress; returns the comparison."""
    from odesim.store.inspected import run_kind

    kind = run_kind(run)
    if kind == "ensemble":
        from odesim.api.rerun import rerun_ensemble
        from odesim.cli.output.ensemble import EnsembleProgress

        with EnsembleProgress(run.name, watched) as members:
            return rerun_ensemble(run, model=model, threads=threads or 1, progress=members.show)
    if kind == "training":
        no_model(run, model)
        from odesim.cli.lab import lab_commands

        again: Rerun = lab_commands().rerun_stored(run, threads, watched)
        return again
    from odesim.api.rerun import rerun_integration
    from odesim.cli.progress import Progress

    with Progress(run.name, watched) as fraction:
        return rerun_integration(run, model=model, progress=fraction)


def no_model(run: Path, model: Path | None) -> None:
    """Raises ParamError if a model file is given for a training, which has none."""
    if model is not None:
        from odesim.errors import ParamError

        raise ParamError(f"--model is for runs of a model file, and {run} is a training")
