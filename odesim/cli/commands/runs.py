"""`odesim plot` and `odesim export`: a stored run as a picture, or as one file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.cli.options.kinds import OneOf, RealKind, RunPlace
from odesim.cli.options.names import completed
from odesim.cli.output.tables import echo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from odesim.plot.choice import Choice

PATH = click.Path(path_type=Path)
FORMATS = ("csv", "nc", "parquet")


@click.command("plot", short_help="Draw a stored run.")
@click.argument("run", metavar="RUN", type=RunPlace())
@click.option(
    "--out",
    metavar="FILE",
    type=PATH,
    help="The picture, as png, pdf or svg (by the extension); default RUN.png. A picture that odesim drew is replaced.",
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
@click.option("--quiet", is_flag=True, help="Show no progress.")
def plot_command(run: Path, out: Path | None, animate: Path | None, quiet: bool, **options: Any) -> None:
    """Draw RUN, a folder or a URL to which `odesim integrate`, `ensemble` or `train` wrote with --out.

    \b
    odesim plot RUN                        the picture, RUN.png
    odesim plot RUN --animate attention.gif --var c

    \b
    Of an ensemble:
      two varied numbers   a map: the value at the end over both
      one varied number    the value at the end against it
      others               median and middle 80 % of all members against
                           time, or histograms at a single time
    --x, --y and --at choose another one. Members without a value are
    hatched or crossed (3×: three of them), and counted.

    An animation shows a vector as bars or a line, a matrix as an image,
    unit vectors of 2 or 3 components as points on a circle or sphere, and a
    component of an ensemble over one or two varied numbers, at up to 200 of
    the saved times; of several seeds the mean.
    """
    from odesim.cli.options.picture import read_choice

    if animate:
        for name, value in {"--out": out, "--at": options["at"]}.items():
            if value is not None:
                raise click.UsageError(f"{name} is for a picture, and --animate draws a film; choose one", click.get_current_context())
        return animate_run(run, animate, read_choice(**options), quiet)
    from odesim.plot.files import check_picture, save
    from odesim.store.inspected import run_kind
    from odesim.store.paths import check_new_file, damage_errors

    choice = read_choice(**options)
    picture = check_new_file(check_picture(out), overwrite=True) if out else None
    kind = run_kind(run)
    picture = picture or check_new_file(check_picture(beside(run, ".png")), overwrite=True)
    with damage_errors(run, "drawn"):
        drawn = save(figure_of_run(run, kind, choice), picture)
    echo(f"drawn in {drawn}")


def animate_run(run: Path, film: Path, choice: "Choice", quiet: bool) -> None:
    """Draws the film of a stored run, with a line of progress."""
    from odesim.cli.progress import Counter
    from odesim.plot.animation import animate, check_animation
    from odesim.store.paths import check_new_file, damage_errors

    check_new_file(check_animation(film), overwrite=True)
    with damage_errors(run, "drawn"), Counter(film.name, False if quiet else None) as progress:
        drawn = animate(run, film, choice=choice, progress=lambda done, total: progress.count(done, total, lambda: "frames"))
    echo(f"drawn in {drawn}")


def figure_of_run(run: Path, kind: str, choice: "Choice") -> "Figure":
    """The picture of a stored run of any kind. Raises ParamError for a choice that it does not have."""
    if kind == "ensemble":
        from odesim.cli.commands import ensemble

        return ensemble.figure(run, choice)
    from odesim.store.read import load_run, read_solution

    if kind == "training":
        from odesim.plot.trajectory import figure_of_trajectory

        return figure_of_trajectory(choice.of_training(load_run(run)), choice=choice)
    from odesim.plot.solution import figure_of_solution

    return figure_of_solution(read_solution(run), choice)


@click.command("export", short_help="Write a stored run as csv, netCDF or parquet.")
@click.argument("run", metavar="RUN", type=RunPlace())
@click.option("--to", "form", metavar="csv|nc|parquet", type=OneOf("format", *FORMATS), help="The format; default: by --out.")
@click.option("--out", metavar="FILE", type=PATH, help="The file to write; default RUN.csv, RUN.nc, ...")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def export_command(run: Path, form: str | None, out: Path | None, overwrite: bool) -> None:
    """Write RUN as one file.

    \b
    csv  One line per saved time: t, v[0], v[1], ..., V[0][1], ...
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
    """
    from odesim.store import export_run
    from odesim.store.inspected import run_kind

    form = chosen_format(form, out)
    run_kind(run)
    echo(f"written to {export_run(run, form, out or beside(run, f'.{form}'), overwrite=overwrite)}")


def chosen_format(form: str | None, out: Path | None) -> str:
    """The format of the export: the one given, or that of the file's extension. Raises UsageError if there is none, or if they differ."""
    ending = out.suffix[1:].lower() if out else ""
    if form is None and ending not in FORMATS:
        wrong = f", not {str(out)!r}" if out else ""
        raise click.UsageError(
            f"export needs --to {'|'.join(FORMATS)}, or --out FILE with one of these extensions{wrong}", click.get_current_context()
        )
    if form is not None and ending in FORMATS and ending != form:
        raise click.UsageError(f"--to is {form}, and --out is a file of {ending}: choose one", click.get_current_context())
    return form or ending


def beside(run: Path, suffix: str) -> Path:
    """The run's path with another suffix, of a URL its name in the current folder. Raises StoreError if it has no name."""
    from odesim.store.remote import RemotePath

    if isinstance(run, RemotePath):
        run = Path(run.name)
    named = run if run.name and run.name != ".." else Path(os.path.abspath(run))
    if not named.name:
        from odesim.base.errors import StoreError

        raise StoreError(f"{run} has no name from which the name of the file could be made: give one with --out")
    return named.with_suffix(suffix)
