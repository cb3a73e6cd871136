"""`odesim integrate` and `odesim ensemble`: a model integrated once or as many members, printed, stored, drawn."""

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import ENSEMBLE, RUN
from odesim.base.errors import ParamError, StoreError
from odesim.base.options import Work, pick
from odesim.cli.options import OF_RUN, ModelKind, options
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.tables import Progress, echo

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from odesim.plot.choice import Choice
    from odesim.run.solution import Solution


def check_picture_place(out: Path | None, plot: Path | None, *, overwrite: bool = False) -> None:
    """Raises StoreError where the picture cannot be written, or what matplotlib raises that does not load, before anything is computed."""
    if plot:
        from odesim.plot.files import check_picture

        check_picture(plot, overwrite=overwrite)
        if out and out.absolute() == plot.absolute():
            raise StoreError(f"--out and --plot name the same {out}")
        import_module("odesim.plot.style")


def draw(figure: "Callable[[], Figure]", plot: Path | None) -> tuple[Path | None, str]:
    """Saves a picture; returns its path or None, and a sentence that says why it was not saved, or an empty one.

    The reason is that there is nothing to draw, as asked or at all, or that the disk has no room for it.
    """
    if plot is None:
        return None, ""
    from odesim.plot.files import save

    try:
        return save(figure(), plot), ""
    except (StoreError, ParamError) as error:  # the place was good before the run
        return None, str(error)


FINISHED = ("ok", "event")


@click.command("integrate", short_help="Integrate a model and print, store or draw the result.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@options(
    f"params sizes initial file {OF_RUN} events until_rest sensitivities max_seconds out overwrite plot all as_json quiet",
    RUN,
    quiet={"help": "Print no table and no progress."},
)
def integrate_command(
    model: str, out: Path | None, overwrite: bool, plot: Path | None, all: bool, as_json: bool, quiet: bool, **words: Any
) -> int:  # fmt: skip
    """Integrate MODEL: a name from `odesim list`, or the constant SYSTEM of FILE.py (FILE.py:OTHER for another one).

    A model file is Python code, and odesim executes it. What is not given has the default of the model; see `odesim show MODEL`.

    \b
    VALUE is one of
      0.3                          a number, for every entry of the array
      1,2,3   [[1, 2], [3, 4]]     an array
      @file.csv   @file.npy        a table; one row or column is a vector
      @file.csv[u]                 the column named u
      @file.safetensors[fc.weight] the tensor of this name; with .T transposed
      linspace(a,b)  logspace(a,b) evenly spaced a to b, or 10^a to 10^b
      uniform(a,b)   normal(m,s)   random numbers, from --seed
      loguniform(a,b)              random numbers with uniform logarithms

    \b
    EXPRESSION contains states, parameters, sizes, observables, t, numbers,
    + - * / **, brackets, exp(), log(), sqrt(), ..., and sum(v), max(v),
    min(v) of an array, and speed(). v[0] is one component; v[l] means every
    component.
      --event 'far: v[0] - 2'                     v[0] passes 2
      --event 'all: sum(v) - 9; direction up'     only upwards
      --event 'all: sum(v) - 9; terminal'         the run ends there

    Put quotes around parentheses in a shell: --set 'mu=uniform(0,1)'.
    """
    from odesim.cli.arguments import read_request
    from odesim.cli.results import nan_sentences, solution_object, solution_text
    from odesim.plot.choice import Choice
    from odesim.stepper.laws import CLAUSE

    request, choice = read_request(words, points=200, updates=1000), Choice(all=all)
    if out:
        from odesim.store.paths import check_new_run

        check_new_run(out, overwrite=overwrite)
    check_picture_place(out, plot, overwrite=overwrite)

    from odesim.api.integrate import integrate

    with Progress(model, False if quiet else None) as progress:
        solution = integrate(model, **request, progress=progress)
    if out or plot or as_json or not quiet:
        _ = solution.observables, solution.final_observables  # a model's own function may raise: before anything is written
    code = DONE if solution.status in FINISHED else STOPPED
    if code == STOPPED or CLAUSE in solution.message:  # a law is broken: the numbers may mean nothing
        say(solution.message)
    if out or plot or as_json or not quiet:
        for sentence in nan_sentences(solution):
            say(sentence)
    stored, lost = store_solution(solution, out, overwrite)
    drawn, undrawn = draw(lambda: import_module("odesim.plot.solution").figure_of_solution(solution, choice), plot)
    for sentence in filter(None, (lost, undrawn)):
        code = STOPPED
        say(sentence)
    if as_json:
        echo(json.dumps(solution_object(solution, stored, lost), allow_nan=False))
    elif not quiet:
        echo(solution_text(solution, stored, drawn))
    return code


def store_solution(solution: "Solution", out: Path | None, overwrite: bool) -> tuple[Path | None, str]:
    """The path of the stored run, and a sentence if it could not be stored completely."""
    if out is None:
        return None, ""
    from odesim.store.write import write_solution

    try:
        stored = write_solution(solution, out, overwrite=overwrite)
    except StoreError as error:  # the place was good before the run
        return None, str(error)
    return stored.path, "" if stored.complete else stored.sentence


@click.command("ensemble", short_help="Integrate many members of a model and store them.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@options(
    f"vary members design grid zipped shard out params sizes initial file {OF_RUN} observe max_events events until_rest sensitivities "
    "threads max_seconds cluster fail_fast overwrite plot all",
    ENSEMBLE,
    out={"help": "Store the members in this folder. With --plot alone, nothing else is kept."},
    plot={"help": "Draw the members as png, pdf, svg or html (by the extension)."},
)
@click.option("--var", metavar="NAME[,NAME]", help="Of --plot: draw these states and observables; default: all.")
@click.option("--x", metavar="NAME", help="Of --plot: put this varied number (mu, or mu[3]), or time, on the horizontal axis.")
@click.option("--y", metavar="NAME", help="Of --plot: put this varied number on the vertical axis: a map.")
@click.option(
    "--reduce",
    metavar="NAME[,NAME]",
    help="Compute statistics over members, mean, var, min, max, quantiles or histogram, and keep no member; with time_mean, time_min or "
    "time_max those of what each member has over time too. --out FILE.nc stores them, --plot draws them.",
)
@options("as_json quiet")
def ensemble_command(
    model: str,
    out: Path | None,
    cluster: str | None,
    overwrite: bool,
    plot: Path | None,
    all: bool,
    var: str | None,
    x: str | None,
    y: str | None,
    reduce: str | None,
    as_json: bool,
    quiet: bool,
    **words: Any,
) -> int:
    """Integrate many members of MODEL, each with its own values, and store them in chunks as they finish.

    \b
    VALUE, of --vary, is one of
      uniform(a,b)   normal(m,s)   random for every entry, from --seed
      loguniform(a,b)              random, with uniform logarithms
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
    from odesim.api.ensemble import ensemble, ensemble_arguments, members_and_request, run_ensemble
    from odesim.api.ensemble_request import make_execution
    from odesim.base.cluster import connected
    from odesim.cli.arguments import choice_for, drawn_observables, read_choice, read_request
    from odesim.cli.results import EnsembleProgress, print_run
    from odesim.inputs.registry import load_model
    from odesim.store.paths import Destination, check_new_file

    if plot and words["observe"] is None:
        words["observe"] = drawn_observables(model, var)
    if reduce is not None:
        for name, word in (("cluster", cluster), ("shard", words["shard"]), ("fail-fast", words["fail_fast"]), ("x", x), ("y", y)):
            if word:
                raise ParamError(f"--{name} is for members, and --reduce keeps none")
        request, drawn_choice = (
            read_request(words, points=101),
            read_choice(var=var, x=None, y=None, at=None, index=None, log=None, all=all),
        )
        if out and out.suffix != ".nc":
            raise ParamError(f"--reduce keeps no member to store in {out}: its statistics go to --out FILE.nc")
        if out:
            check_new_file(out, overwrite=overwrite)
        check_picture_place(out, plot, overwrite=overwrite)
        with EnsembleProgress(model, False if quiet else None) as progress:
            data = ensemble(model, **request, reduce=reduce.split(","), progress=progress.show)
        return show_statistics(data, out, plot, drawn_choice, as_json=as_json, quiet=quiet)
    request = read_request(words)
    values, how = ensemble_arguments(**request)
    if not (out or plot):
        members_and_request(load_model(model), values, how)  # what is wrong comes before what is missing
    check_places(out, plot, {"shard": words["shard"], "cluster": cluster})
    check_picture_place(out, plot, overwrite=overwrite)
    shown = {"var": var, "x": x, "y": y}
    named = [name for name, word in shown.items() if word is not None]
    if named and plot is None:
        raise ParamError(f"--{named[0]} is an option of the picture: give --plot FILE.png too")
    varied = {*values.vary, *values.grid, *values.zipped}
    choice = choice_for(model, words["observe"], words["sensitivities"], varied, shown, all) if named or all else None
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(TemporaryDirectory(prefix="odesim-"))) / "run.zarr"
        to = Destination(folder, overwrite=overwrite, shard=request.get("shard"))
        with connected(cluster) as workers, EnsembleProgress(model, False if quiet else None) as progress:
            run = run_ensemble(model, values, how, to, make_execution(pick(Work, request), progress.show, workers))
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


def show_statistics(
    data: "xarray.Dataset", out: Path | None, plot: Path | None, choice: "Choice", *, as_json: bool, quiet: bool
) -> int:  # fmt: skip
    """Stores, draws and prints statistics over members; the exit code."""
    from odesim.cli.results import statistics_object, statistics_text
    from odesim.plot.files import write_atomically
    from odesim.store.export import write_netcdf

    if out:
        write_atomically(out, lambda path: write_netcdf(data, path, out))
    drawn, undrawn = draw(lambda: import_module("odesim.plot.statistics").figure_of_statistics(data, choice), plot)
    done = sum(data.attrs["statuses"].values())
    if undrawn:
        say(undrawn)
    if as_json:
        echo(json.dumps(statistics_object(data), allow_nan=False))
    elif not quiet:
        echo(statistics_text(data, out, drawn))
    return STOPPED if undrawn or done < data.attrs["members"] else DONE


def check_places(out: Path | None, plot: Path | None, shared: Mapping[str, str | None]) -> None:
    """Raises ParamError where neither a run nor a picture is asked for, or an option of a run that is `shared`, without its place."""
    if out is None and plot is None:
        raise ParamError("ensemble needs --out RUN.zarr, to store the members, or --plot FILE.png, to draw them")
    for name, word in shared.items():
        if out is None and word is not None:
            raise ParamError(f"--{name} needs the run that all {'shards' if name == 'shard' else 'workers'} share: --out RUN.zarr")


def ensemble_figure(run: Path, choice: "Choice | None" = None) -> "Figure":
    """The picture of a stored ensemble. Raises ParamError for a choice that it does not have."""
    from odesim.plot.ensemble import figure_of_ensemble
    from odesim.store.export import check_few_unstarted
    from odesim.store.paths import damage_errors
    from odesim.store.read import open_run

    check_few_unstarted(run)
    with damage_errors(run):
        return figure_of_ensemble(open_run(run), choice)
