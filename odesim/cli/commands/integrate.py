"""`odesim integrate`: integrates a model once."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import RUN
from odesim.cli.options.kinds import ModelKind
from odesim.cli.options.names import completed
from odesim.cli.options.table import run_options
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.output.tables import echo
from odesim.cli.pictures import check_picture_place, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from odesim.solve.solution import Solution

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
    from odesim.cli.options.run import make_run_arguments
    from odesim.cli.output.integration import json_text, nan_sentences, table_text
    from odesim.cli.progress import Progress

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
    stored, lost = store(solution, out, overwrite)
    drawn, undrawn = draw(lambda: figure(solution), plot)
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


def store(solution: "Solution", out: Path | None, overwrite: bool) -> tuple[Path | None, str]:
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


def figure(solution: "Solution") -> "Figure":
    """The picture of a run."""
    from odesim.plot.solution import figure_of_solution

    return figure_of_solution(solution)
