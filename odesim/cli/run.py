"""`odesim integrate` and `odesim ensemble`: a model integrated once or as many members, printed, stored, drawn."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import ENSEMBLE, RUN
from odesim.cli.options import CLUSTER, Count, ModelKind, RunPlace, completed, run_options
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.tables import Progress, echo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from odesim.plot.choice import Choice
    from odesim.solve.solution import Solution


def check_picture_place(out: Path | None, plot: Path | None, *, overwrite: bool = False) -> None:
    """Raises StoreError where the picture cannot be written, or what matplotlib raises that does not load, before anything is computed."""
    if plot:
        from odesim.base.errors import StoreError
        from odesim.plot.files import check_picture
        from odesim.store.paths import check_new_file

        check_new_file(check_picture(plot, overwrite=overwrite), overwrite=True)
        if out and out.absolute() == plot.absolute():
            raise StoreError(f"--out and --plot name the same {out}")
        import_module("odesim.plot.style")


def draw(figure: "Callable[[], Figure]", plot: Path | None) -> tuple[Path | None, str]:
    """Saves a picture; returns its path or None, and a sentence that says why it was not saved, or an empty one.

    The reason is that there is nothing to draw, as asked or at all, or that the disk has no room for it.
    """
    if plot is None:
        return None, ""
    from odesim.base.errors import ParamError, StoreError
    from odesim.plot.files import save

    try:
        return save(figure(), plot), ""
    except (StoreError, ParamError) as error:  # the place was good before the run
        return None, str(error)


PATH = click.Path(path_type=Path)
FINISHED = ("ok", "event")


@click.command("integrate", short_help="Integrate a model and print, store or draw the result.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.option("--set", "params", metavar="NAME=VALUE", multiple=True, shell_complete=completed("params"), help="Set a parameter.")
@click.option(
    "--size",
    "sizes",
    metavar="M=1000",
    multiple=True,
    shell_complete=completed("sizes"),
    help="Set a size. A size that follows from a given array need not be set.",
)
@click.option("--init", "initial", metavar="NAME=VALUE", multiple=True, shell_complete=completed("states"), help="Set an initial value.")
@click.option(
    "--params",
    "file",
    metavar="FILE.toml",
    type=PATH,
    help="Read tables [params], [sizes], [initial] and, above them, options from --span to --seed. The command line overrides the file.",
)
@run_options(RUN)
@click.option(
    "--event",
    "events",
    metavar="'NAME: EXPRESSION'",
    multiple=True,
    help="Add an event: a time at which EXPRESSION passes 0.",
)
@click.option(
    "--sensitivity",
    "sensitivities",
    metavar="NAME",
    multiple=True,
    shell_complete=completed("params", "states", ending=""),
    help="Also compute derivatives with respect to this parameter or initial value.",
)
@click.option("--out", metavar="RUN.zarr", type=PATH, help="Store the run.")
@click.option(
    "--overwrite", is_flag=True, help="Replace an existing run or picture. (odesim always replaces a picture that it drew itself.)"
)
@click.option("--plot", metavar="FILE.png", type=PATH, help="Draw the run as png, pdf or svg (by the extension).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no table and no progress.")
def integrate_command(
    model: str,
    params: tuple[str, ...],
    sizes: tuple[str, ...],
    initial: tuple[str, ...],
    file: Path | None,
    out: Path | None,
    overwrite: bool,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
    sensitivities: tuple[str, ...],
    events: tuple[str, ...],
    **options: Any,
) -> int:
    """Integrate MODEL: a name from `odesim list`, or the constant SYSTEM of FILE.py (FILE.py:OTHER for another one).

    A model file is Python code, and odesim executes it. What is not given has the default of the model; see `odesim show MODEL`.

    \b
    VALUE is one of
      0.3                          a number, for every entry of the array
      1,2,3   [[1, 2], [3, 4]]     an array
      @file.csv   @file.npy        a table; one row or column is a vector
      linspace(a,b)  logspace(a,b) evenly spaced a to b, or 10^a to 10^b
      uniform(a,b)   normal(m,s)   random numbers, from --seed

    \b
    EXPRESSION contains states, parameters, sizes, observables, t, numbers,
    + - * / **, brackets, exp(), log(), sqrt(), ..., and sum(v), max(v),
    min(v) of an array. v[0] is one component; v[l] means every component.
      --event 'far: v[0] - 2'                     v[0] passes 2
      --event 'all: sum(v) - 9; direction up'     only upwards
      --event 'all: sum(v) - 9; terminal'         the run ends there

    Put quotes around parentheses in a shell: --set 'mu=uniform(0,1)'.
    """
    from odesim.cli.arguments import make_run_arguments
    from odesim.cli.results import nan_sentences
    from odesim.cli.results import solution_json as json_text
    from odesim.cli.results import solution_text as table_text

    request = make_run_arguments(params, sizes, initial, options, file)
    check_outputs(out, plot, overwrite)

    from odesim.api.integrate import integrate

    numbers: dict[str, Any] = {
        "params": request.params,
        "sizes": request.sizes,
        "initial": request.initial,
        "span": request.span,
        "steps": request.steps,
    }
    numbers |= {"save": request.save, "sensitivities": sensitivities, "events": events}
    with Progress(model, False if quiet else None) as progress:
        solution = integrate(model, **numbers, progress=progress, **vars(request.run))
    if out or plot or as_json or not quiet:
        _ = solution.observables, solution.final_observables  # a model's own function may raise: before anything is written
    code = DONE if solution.status in FINISHED else STOPPED
    if code == STOPPED:
        say(solution.message)
    if out or plot or as_json or not quiet:
        for sentence in nan_sentences(solution):
            say(sentence)
    stored, lost = store_solution(solution, out, overwrite)
    drawn, undrawn = draw(lambda: solution_figure(solution), plot)
    for sentence in filter(None, (lost, undrawn)):
        code = STOPPED
        say(sentence)
    if as_json:
        echo(json_text(solution, stored, lost))
    elif not quiet:
        echo(table_text(solution, stored, drawn))
    return code


def check_outputs(out: Path | None, plot: Path | None, overwrite: bool) -> None:
    """Raises StoreError where a run or picture cannot be written, before anything is computed."""
    if out:
        from odesim.store.paths import check_new_run

        check_new_run(out, overwrite=overwrite)
    check_picture_place(out, plot, overwrite=overwrite)


def store_solution(solution: "Solution", out: Path | None, overwrite: bool) -> tuple[Path | None, str]:
    """The path of the stored run, and a sentence if it could not be stored completely."""
    if out is None:
        return None, ""
    from odesim.base.errors import StoreError
    from odesim.store import write_solution

    try:
        stored = write_solution(solution, out, overwrite=overwrite)
    except StoreError as error:  # the place was good before the run
        return None, str(error)
    return stored.path, "" if stored.complete else stored.sentence


def solution_figure(solution: "Solution") -> "Figure":
    """The picture of a run."""
    from odesim.plot.solution import figure_of_solution

    return figure_of_solution(solution)


PATH = click.Path(path_type=Path)


@click.command("ensemble", short_help="Integrate many members of a model and store them.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.option(
    "--vary",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=completed("params", "states"),
    help="Give each member its own value: random, or a row of a table.",
)
@click.option("--members", metavar="N", type=Count(1), help="Number of random members; with --grid or --zip at each of its points.")
@click.option(
    "--grid",
    metavar="NAME=POINTS",
    multiple=True,
    shell_complete=completed("params", "states"),
    help="Points of a parameter or initial value. Several --grid make all combinations.",
)
@click.option(
    "--zip",
    "zipped",
    metavar="NAME=POINTS",
    multiple=True,
    shell_complete=completed("params", "states"),
    help="Points that are taken together: the first of each, the second of each, ...",
)
@click.option("--shard", metavar="I/N", help="Compute part I of N; all parts share the run in --out.")
@click.option(
    "--out",
    metavar="RUN.zarr",
    type=RunPlace(),
    help="Store the members in this folder, or at a URL such as s3://BUCKET/RUN.zarr. With --plot alone, nothing else is kept.",
)
@click.option(
    "--set", "params", metavar="NAME=VALUE", multiple=True, shell_complete=completed("params"), help="Set a parameter of all members."
)
@click.option(
    "--size",
    "sizes",
    metavar="M=1000",
    multiple=True,
    shell_complete=completed("sizes"),
    help="Set a size. A size that follows from a given array need not be set.",
)
@click.option(
    "--init",
    "initial",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=completed("states"),
    help="Set an initial value of all members.",
)
@click.option(
    "--params",
    "file",
    metavar="FILE.toml",
    type=PATH,
    help="Read tables [params], [sizes], [initial] and, above them, options from --span to --seed. The command line overrides the file.",
)
@run_options(ENSEMBLE)
@click.option(
    "--observe",
    metavar="NAME[,NAME]|all",
    shell_complete=completed("observables", ending=""),
    help="Store these observables at the saved times; default: none.",
)
@click.option(
    "--max-events", metavar="K", type=Count(0), default=8, help="Keep the first K occurrences of each event; default 8. 0 looks for none."
)
@click.option(
    "--event",
    "events",
    metavar="'NAME: EXPRESSION'",
    multiple=True,
    help="Add an event: a time at which EXPRESSION passes 0.",
)
@click.option(
    "--sensitivity",
    "sensitivities",
    metavar="NAME",
    multiple=True,
    shell_complete=completed("params", "states", ending=""),
    help="Also compute derivatives with respect to this parameter or initial value.",
)
@click.option("--threads", metavar="N", type=Count(1), default=1, help="Number of threads; default 1. The bits do not depend on it.")
@CLUSTER
@click.option("--fail-fast", is_flag=True, help="Stop after the first chunk in which a member failed.")
@click.option(
    "--overwrite", is_flag=True, help="Replace an existing run or picture. (odesim always replaces a picture that it drew itself.)"
)
@click.option("--plot", metavar="FILE.png", type=PATH, help="Draw the members as png, pdf or svg (by the extension).")
@click.option("--var", metavar="NAME[,NAME]", help="Of --plot: draw these states and observables; default: all.")
@click.option("--x", metavar="NAME", help="Of --plot: put this varied number (mu, or mu[3]), or time, on the horizontal axis.")
@click.option("--y", metavar="NAME", help="Of --plot: put this varied number on the vertical axis: a map.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no summary and no progress.")
def ensemble_command(
    model: str,
    vary: tuple[str, ...],
    grid: tuple[str, ...],
    zipped: tuple[str, ...],
    members: int | None,
    shard: str | None,
    out: Path | None,
    params: tuple[str, ...],
    sizes: tuple[str, ...],
    initial: tuple[str, ...],
    observe: str | None,
    max_events: int,
    file: Path | None,
    threads: int,
    cluster: str | None,
    fail_fast: bool,
    overwrite: bool,
    plot: Path | None,
    var: str | None,
    x: str | None,
    y: str | None,
    as_json: bool,
    quiet: bool,
    sensitivities: tuple[str, ...],
    events: tuple[str, ...],
    **options: Any,
) -> int:
    """Integrate many members of MODEL, each with its own values, and store them in chunks as they finish.

    \b
    VALUE, of --vary, is one of
      uniform(a,b)   normal(m,s)   random for every entry, from --seed
      @file.npy   [[1, 2], [3, 4]] one row per member
    POINTS, of --grid and --zip, are
      1,2,3   @file.csv            each is the value of every entry
      linspace(a,b,n)  logspace(a,b,n)
    `odesim integrate --help` explains EXPRESSION, of --event.
    Put quotes around parentheses in a shell: --vary 'mu=uniform(0,1)'.

    Ctrl-C keeps the chunks that are done (exit code 3). `odesim resume RUN`
    continues the run; the result has the same bits.

    `odesim plot RUN` draws a stored run with more choices than --plot.

    With --backend cuda, all visible GPUs (CUDA_VISIBLE_DEVICES) share the
    members. With --strict, GPU and processor give the same bits.
    """
    from odesim.api.destination import Destination
    from odesim.api.ensemble import run_ensemble
    from odesim.api.ensemble_request import make_execution
    from odesim.base.cluster import connected
    from odesim.cli.arguments import Stored, choice_for, make_run_arguments, named, read_shard
    from odesim.cli.results import EnsembleProgress, print_run
    from odesim.ensembles.design import EnsembleArguments

    design: dict[str, Any] = {"vary": named("--vary", vary), "grid": named("--grid", grid), "zipped": named("--zip", zipped)}
    varied = {name for values in design.values() for name in values}
    request = make_run_arguments(params, sizes, initial, options, file, points=None, other=varied)
    numbers: dict[str, Any] = {
        "params": request.params,
        "initial": request.initial,
        "sizes": request.sizes,
        "span": request.span,
        "steps": request.steps,
    }
    kept: dict[str, Any] = {"save": request.save, "sensitivities": sensitivities, "observe": observe, "max_events": max_events}
    kept |= {"events": events}
    asked = EnsembleArguments(**numbers, **design, members=members, **kept)
    part = None if shard is None else read_shard(shard)
    check_places(out, plot, {"shard": shard, "cluster": cluster})
    check_picture_place(out, plot, overwrite=overwrite)
    words = {"var": var, "x": x, "y": y}
    check_words(plot, words)
    choice = choice_for(model, Stored(observe, sensitivities), varied, words) if any(word is not None for word in words.values()) else None
    with place_for(out) as folder:
        to = Destination(folder, overwrite=overwrite, shard=part)
        with connected(cluster) as workers, EnsembleProgress(model, False if quiet else None) as progress:
            run = run_ensemble(model, asked, request.run, to, make_execution(threads, progress.show, fail_fast, workers))
        run = replace(run, path=out)
        code = DONE if run.status == "ok" else STOPPED
        if code == STOPPED:
            say(run.message)
        drawn, undrawn = draw(lambda: ensemble_figure(folder, choice), plot)
    if undrawn:
        code = STOPPED
        say(undrawn)
    print_run(run, as_json, quiet, drawn)
    return code


def check_places(out: Path | None, plot: Path | None, shared: Mapping[str, str | None]) -> None:
    """Raises ParamError where neither a run nor a picture is asked for, or an option of a run that is `shared`, without its place."""
    from odesim.base.errors import ParamError

    if out is None and plot is None:
        raise ParamError("ensemble needs --out RUN.zarr, to store the members, or --plot FILE.png, to draw them")
    for name, word in shared.items():
        if out is None and word is not None:
            raise ParamError(f"--{name} needs the run that all {'shards' if name == 'shard' else 'workers'} share: --out RUN.zarr")


def check_words(plot: Path | None, words: Mapping[str, str | None]) -> None:
    """Raises ParamError if what to draw is said, and no picture is asked for."""
    from odesim.base.errors import ParamError

    for name, word in words.items():
        if word is not None and plot is None:
            raise ParamError(f"--{name} is an option of the picture: give --plot FILE.png too")


def place_for(out: Path | None) -> AbstractContextManager[Path]:
    """The folder of the run: out, or one that is removed when the picture is drawn."""
    return nullcontext(out) if out is not None else temporary_place()


@contextmanager
def temporary_place() -> Iterator[Path]:
    """A folder that does not exist yet, in one that is removed at the end."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="odesim-") as folder:
        yield Path(folder) / "run.zarr"


def ensemble_figure(run: Path, choice: "Choice | None" = None) -> "Figure":
    """The picture of a stored ensemble. Raises ParamError for a choice that it does not have."""
    from odesim.plot.ensemble import figure_of_ensemble
    from odesim.store.export import check_few_unstarted
    from odesim.store.paths import damage_errors
    from odesim.store.read import open_run

    check_few_unstarted(run)
    with damage_errors(run):
        return figure_of_ensemble(open_run(run), choice)
