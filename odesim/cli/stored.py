"""Stored runs: `odesim status`, `resume`, `rerun`, `plot` and `export`; `export` also of models."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import ENSEMBLE, RUN
from odesim.base.errors import ParamError, StoreError
from odesim.base.options import Work
from odesim.base.signals import time_limit
from odesim.cli.lab import lab_commands
from odesim.cli.options import PATH, THREADS, OneOf, RealKind, completed, options
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.tables import Counter, Progress, echo, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from odesim.api.differences import Rerun
    from odesim.plot.choice import Choice

KEYS = ("same", "different", "first", "largest", "other", "message")


@click.command("rerun", short_help="Compute a stored run again and compare.")
@click.argument("run", metavar="RUN", type=PATH)
@options("threads model as_json quiet", threads=THREADS, quiet={"help": "Print no progress."})
def rerun_command(run: Path, threads: int | None, model: Path | None, as_json: bool, quiet: bool) -> int:
    """Compute RUN again from what it stores, and compare. RUN itself does not change.

    With the same code, every bit must be the same. With another version of odesim or of a library, the message names it and gives the
    largest difference, which must be within a few tolerances. The exit code is 3 if the runs differ by more.
    """
    rerun = computed(run, threads, model, False if quiet else None)
    if as_json:
        count = {f"{rerun.unit.split()[-1]}s": rerun.counted}
        echo(json.dumps({"run": str(run), **count} | {name: getattr(rerun, name) for name in KEYS}))
    elif rerun.passed:
        echo(rerun.message)
    if not rerun.passed:
        say(rerun.message)
    return DONE if rerun.passed else STOPPED


def computed(run: Path, threads: int | None, model: Path | None, watched: bool | None) -> "Rerun":
    """Reruns the stored run and shows progress; returns the comparison."""
    from odesim.store.schema import run_kind

    kind = run_kind(run)
    if kind == "ensemble":
        from odesim.api.rerun import rerun_ensemble
        from odesim.cli.results import EnsembleProgress

        with EnsembleProgress(run.name, watched) as members:
            return rerun_ensemble(run, model=model, threads=threads or 1, progress=members.show)
    if kind == "training":
        if model is not None:
            raise ParamError(f"--model is for runs of a model file, and {run} is a training")
        return lab_commands().rerun_stored(run, threads, watched)
    from odesim.api.rerun import rerun_integration

    with Progress(run.name, watched) as fraction:
        return rerun_integration(run, model=model, progress=fraction)


@click.command("status", short_help="Explain a stored run: how far it is, how it ended.")
@click.argument("run", metavar="RUN", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def status_command(run: Path, as_json: bool) -> int:
    """Print what RUN is and how far it has come, also while it is being computed.

    It explains each status that occurs, and its remedy. For an ensemble it counts the members with each status.
    """
    from odesim.store.schema import inspect_run

    inspected = inspect_run(run)
    attributes, kind = inspected.attributes, inspected.kind
    if kind == "ensemble":
        from odesim.api.stored import stored_run
        from odesim.cli.results import run_object, run_text

        ensemble = stored_run(run)
        if ensemble.lost:
            say(ensemble.message)
        echo(json.dumps(run_object(ensemble), allow_nan=False) if as_json else run_text(ensemble))
        return STOPPED if ensemble.lost else DONE
    what = attributes["task" if kind == "training" else "model"]
    names = ("status", "message", "iteration", "steps", "t_end", "method", "backend", "optimizer", "seeds", "stats")
    rows = {"kind": kind, "of": what, **{name: attributes[name] for name in names if name in attributes}}
    echo(json.dumps(rows) if as_json else table([(name, value) for name, value in status_rows(rows)], indent=""))
    return DONE


def status_rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The known facts of one integration or one training, as rows of a table."""
    from odesim.cli.results import COUNTS, steps_text

    for name, value in facts.items():
        if name == "method":
            yield name, f"{value} on {facts['backend']}"
        elif name == "stats" and None not in map(value.get, COUNTS):
            yield "steps", steps_text(value)
        elif name == "optimizer":
            yield name, lab_commands().optimizer_line(value)
        elif name == "seeds":
            yield name, ", ".join(map(str, value))
        elif name not in ("backend", "stats"):
            yield name, str(value)


@click.command("resume", short_help="Continue a stored run.")
@click.argument("run", metavar="RUN", type=PATH)
@click.option("--retry-failed", is_flag=True, help="Ensemble: integrate failed members again.")
@click.option("--method", metavar="NAME", help="Method for --retry-failed.")
@options(
    "max_steps threads max_seconds model cluster fail_fast as_json quiet",
    ENSEMBLE,
    max_steps={"help": "The most steps of a member for --retry-failed."},
    threads=THREADS,
    fail_fast={"help": "Ensemble: stop after the first chunk in which a member failed."},
)
def resume_command(run: Path, threads: int | None, max_seconds: float | None, as_json: bool, quiet: bool, **options: Any) -> int:
    """Continue RUN where it stopped. The result has the bits of a run that never stopped. A finished run stays as it is.

    Ensemble: the members that are not done are integrated. Training: it continues as with `odesim train --resume`, which can also make
    it longer. An integration cannot be continued, because it stores no state of its integrator.
    """
    from odesim.store.schema import run_kind

    kind = run_kind(run)
    if kind == "ensemble":
        work = Work(threads or 1, max_seconds, bool(options.pop("fail_fast")))
        return resume_ensemble(run, work, as_json, quiet, options)
    for name, value in options.items():
        if value:
            raise ParamError(f"--{name.replace('_', '-')} is for ensembles, and {run} is {'a' if kind == 'training' else 'an'} {kind}")
    if kind == "integration":
        return resume_integration(run, quiet or as_json)
    with time_limit(max_seconds):
        return int(lab_commands().resume_stored(run, threads, as_json, quiet))


def resume_ensemble(run: Path, work: Work, as_json: bool, quiet: bool, options: dict[str, Any]) -> int:
    """Integrates the members that are not done; returns the exit code."""
    from odesim.api.ensemble_request import make_execution
    from odesim.api.stored import resume
    from odesim.base.cluster import connected
    from odesim.cli.results import EnsembleProgress, print_run

    with connected(options.pop("cluster")) as cluster, EnsembleProgress(run.name, False if quiet else None) as progress:
        ensemble = resume(run, execution=make_execution(work, progress.show, cluster), **options)
    finished = ensemble.status == "failed" and not ensemble.tally.new and not ensemble.retried  # its failures were said when they came
    if ensemble.status != "ok" and not finished:
        say(ensemble.message)
    print_run(ensemble, as_json, quiet)
    return DONE if ensemble.status == "ok" or finished else STOPPED


def resume_integration(run: Path, quiet: bool) -> int:
    """Prints that an integration is complete, unless quiet. Raises ParamError for an unfinished one: its integrator is gone."""
    from odesim.store.schema import inspect_run

    attributes = inspect_run(run).attributes
    if attributes["status"] in ("ok", "event"):
        if not quiet:
            echo(f"{run} is complete, to t = {attributes['t_end']:g}: there is nothing to continue")
        return DONE
    raise ParamError(
        f"{run} is an integration that ended as {attributes['status']} at t = {attributes['t_end']}, and cannot be continued: "
        "odesim rerun computes it again and compares; odesim integrate computes it anew"
    )


@click.command("plot", short_help="Draw a stored run.")
@click.argument("run", metavar="RUN", type=PATH)
@click.option(
    "--out",
    metavar="FILE",
    type=PATH,
    help="The picture, as png, pdf, svg or html (by the extension); default RUN.png. A picture that odesim drew is replaced.",
)
@click.option(
    "--animate", metavar="FILE", type=PATH, help="Draw an array over time instead: gif, or mp4 (which needs ffmpeg), by the extension."
)
@click.option(
    "--var",
    metavar="NAME[,NAME]",
    shell_complete=completed("stored", ending=""),
    help="Draw these states and observables; default: all. Of --animate: the array.",
)
@click.option(
    "--x",
    metavar="NAME",
    shell_complete=completed("varied", ending=""),
    help="Put this varied number of an ensemble (mu, or mu[3]), or time, on the horizontal axis.",
)
@click.option(
    "--y",
    metavar="NAME",
    shell_complete=completed("varied", ending=""),
    help="Put this varied number of an ensemble on the vertical axis: a map.",
)
@click.option("--at", metavar="T", type=RealKind(), help="Draw an ensemble at the saved time nearest to T; default: the last.")
@click.option("--index", metavar="I[,J]", help="Draw this component of an array.")
@click.option(
    "--log",
    metavar="xyc|none",
    help="Make these axes logarithmic (c: colours); default: by the values. Values <= 0 are left out and counted.",
)
@options("all")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def plot_command(run: Path, out: Path | None, animate: Path | None, quiet: bool, **options: Any) -> None:
    """Draw RUN, a folder into which `odesim integrate`, `ensemble` or `train` wrote with --out; or a file of netCDF.

    \b
    odesim plot RUN                        the picture, RUN.png
    odesim plot FILE.nc                    of `ensemble --reduce`, `rest`,
                                           `branch`, `lyapunov`, `export`,
                                           `sensitivity`, `screening`, `spectrum`
    odesim plot RUN --animate attention.gif --var c

    \b
    Of an ensemble:
      two varied numbers   a map: the value at the end over both
      one varied number    the value at the end against it
      others               median and middle 80 % of all members against
                           time; at a single time a histogram, of an
                           array a row for each component
    --x, --y and --at choose another one. Members without a value are
    hatched or crossed (3×: three of them), and counted.

    An animation shows a vector as bars or a line, a matrix as an image,
    unit vectors of 2 or 3 components as points on a circle or sphere, and a
    component of an ensemble over one or two varied numbers, at up to 200 of
    the saved times; of several seeds the mean.
    """
    from odesim.cli.arguments import read_choice
    from odesim.inputs.registry import list_models

    if str(run) in list_models() and not run.exists():
        raise StoreError(f"{run} is a model, not a run: `odesim integrate {run} --plot FILE.png` draws one of it")
    if animate:
        for name, value in {"--out": out, "--at": options["at"]}.items():
            if value is not None:
                raise click.UsageError(f"{name} is for a picture, and --animate draws a film; choose one", click.get_current_context())
        return animate_run(run, animate, read_choice(**options), quiet)
    from odesim.plot.files import check_picture, save
    from odesim.store.paths import damage_errors
    from odesim.store.schema import run_kind

    choice = read_choice(**options)
    picture = check_picture(out) if out else None
    kind = "file" if run.suffix == ".nc" and run.is_file() else run_kind(run)
    picture = picture or check_picture(beside(run, ".png"))
    with damage_errors(run, "drawn"):
        drawn = save(figure_of_run(run, kind, choice), picture)
    echo(f"drawn in {drawn}")


def animate_run(run: Path, film: Path, choice: "Choice", quiet: bool) -> None:
    """Draws the film of a stored run, with a line of progress."""
    from odesim.plot.film import animate, check_animation
    from odesim.store.paths import damage_errors

    check_animation(film)
    with damage_errors(run, "drawn"), Counter(film.name, False if quiet else None) as progress:
        drawn = animate(run, film, choice=choice, progress=lambda done, total: progress.count(done, total, lambda: "frames"))
    echo(f"drawn in {drawn}")


def figure_of_run(run: Path, kind: str, choice: "Choice") -> "Figure":
    """The picture of a stored run of any kind, or of a netCDF `file`. Raises ParamError for what it does not have."""
    from odesim.cli.run import ensemble_figure
    from odesim.store.export import read_netcdf
    from odesim.store.read import load_run, read_solution

    if kind == "ensemble":
        return ensemble_figure(run, choice)
    if kind == "integration":
        from odesim.plot.solution import figure_of_solution

        return figure_of_solution(read_solution(run), choice)
    from odesim.plot.methods import draw_dataset

    return draw_dataset(read_netcdf(run) if kind == "file" else load_run(run), choice, None)


def beside(run: Path, suffix: str) -> Path:
    """The run's path with another suffix. Raises StoreError if it has no name."""
    named = run if run.name and run.name != ".." else Path(os.path.abspath(run))
    if not named.name:
        raise StoreError(f"{run} has no name from which the name of the file could be made: give one with --out")
    return named.with_suffix(suffix)


# `odesim export`: a stored run as one file, or a model as a document or as code.

OF_RUNS = ("csv", "nc", "parquet")
OF_MODELS = ("json", "numpy", "jax", "c")
NUMBERS = {"params": "--set", "sizes": "--size", "initial": "--init", "span": "--span"}


@click.command("export", short_help="Write a stored run as a table, or a model as a document or code.")
@click.argument("what", metavar="RUN|MODEL")
@click.option("--to", "form", metavar="csv|nc|parquet|json|numpy|jax|c", type=OneOf("format", *OF_RUNS, *OF_MODELS),
              help="The format; default: by --out.")  # fmt: skip
@options("params sizes initial span", RUN)
@click.option("--out", metavar="FILE", type=PATH, help="The file to write; default: RUN.csv, RUN.nc, ...; a model is printed.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def export_command(what: str, form: str | None, out: Path | None, overwrite: bool, **numbers: Any) -> None:
    """Write RUN as one file, or MODEL as text that needs no odesim.

    \b
    csv  One line per saved time: t, v[0], v[1], ..., "V[0, 1]", ...
         Numbers have all their digits. A text that a spreadsheet would
         execute starts with '.
         Training: the first index is the seed; arrays without times are
         left out. Ensemble: one line per member and time, for the members
         that were begun, with what varies; how each of them ended (t_end,
         steps, method) is in nc alone.
    nc   netCDF 3, with all arrays and attributes of RUN. Parameters and
         initial values are params_mu, initial_v, ...; each variable has
         an attribute `coordinates`.
    parquet
         The table of csv with typed columns; needs pyarrow.
    json MODEL as a document that odesim.from_json, `odesim integrate
         FILE.json` and other languages read. Nothing in it is executed.
    numpy, jax
         A module with right_hand_side(t, state, parameters), observables.
    c    A file of C11 with right_hand_side(t, state, rates, parameters).
         --set, --size, --init and --span give these three other numbers.
    """
    form = chosen_format(form, out)
    flags = [NUMBERS[name] for name, value in numbers.items() if value]
    if flags and form not in OF_MODELS[1:]:
        raise ParamError(f"{flags[0]} is for the formats {', '.join(OF_MODELS[1:])}, not {form}")
    if form in OF_RUNS:
        export_stored(Path(what), form, out, overwrite)
    else:
        export_model(what, form, out, overwrite, numbers)


def export_stored(run: Path, form: str, out: Path | None, overwrite: bool) -> None:
    """Writes a stored run as one file."""
    from odesim.store.export import export_run
    from odesim.store.schema import run_kind

    run_kind(run)
    echo(f"written to {export_run(run, form, out or beside(run, f'.{form}'), overwrite=overwrite)}")


def export_model(model: str, form: str, out: Path | None, overwrite: bool, numbers: dict[str, Any]) -> None:
    """Writes or prints a model as text."""
    from odesim.api.export import to_code, to_json
    from odesim.cli.arguments import read_request
    from odesim.plot.files import write_atomically
    from odesim.store.paths import check_new_file

    if out:
        check_new_file(out, overwrite=overwrite)
    with Progress(model, None):
        if form == "json":
            text = json.dumps(to_json(model), indent=1) + "\n"
        else:
            text = to_code(model, form, **read_request({**numbers, "file": None}))
    if not out:
        return echo(text.removesuffix("\n"))
    write_atomically(out, lambda path: path.write_text(text, encoding="utf-8"))
    echo(f"written to {out}")


def chosen_format(form: str | None, out: Path | None) -> str:
    """The format of the export: the one given, or that of the file's extension. Raises UsageError if there is none, or if they differ."""
    ending = out.suffix[1:].lower() if out else ""
    known = (*OF_RUNS, "json", "c")
    if form is None and ending not in known:
        wrong = f", not {str(out)!r}" if out else ""
        raise click.UsageError(
            f"export needs --to {'|'.join((*OF_RUNS, *OF_MODELS))}, or --out FILE with one of the extensions {', '.join(known)}{wrong}",
            click.get_current_context(),
        )
    if form is not None and ending in known and ending != form:
        raise click.UsageError(f"--to is {form}, and --out is a file of {ending}: choose one", click.get_current_context())
    return form or ending
