"""`odesim integrate`: integrates a model once."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import RUN
from odesim.cli.options.kinds import ModelKind
from odesim.cli.options.table import run_options
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.output.tables import echo

if TYPE_CHECKING:
    from odesim.solve.solution import Solution

PATH = click.Path(path_type=Path)
FINISHED = ("ok", "event")


@click.command("integrate", short_help="Integrate a model and print, store or draw the result.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.option("--set", "params", metavar="NAME=VALUE", multiple=True, help="A parameter.")
@click.option("--size", "sizes", metavar="M=1000", multiple=True, help="A size; those that given arrays fix need none.")
@click.option("--init", "initial", metavar="NAME=VALUE", multiple=True, help="An initial value.")
@click.option(
    "--params",
    "file",
    metavar="FILE.toml",
    type=PATH,
    help="Tables [params], [sizes], [initial]; above them any option named below up to --seed. The command line wins.",
)
@run_options(RUN)
@click.option(
    "--event",
    "events",
    metavar="'NAME: EXPRESSION'",
    multiple=True,
    help="List where EXPRESSION passes 0; '; terminal' ends the run there.",
)
@click.option("--sensitivity", "sensitivities", metavar="NAME", multiple=True, help="Derivatives by a parameter or start too.")
@click.option("--out", metavar="RUN.zarr", type=PATH, help="Store the run.")
@click.option("--overwrite", is_flag=True, help="Replace the run that is there, and a picture that odesim did not draw.")
@click.option(
    "--plot", metavar="FILE.png", type=PATH, help="Draw the run: png, pdf or svg, by the extension. A picture that odesim drew is replaced."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
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
    """Integrate MODEL (a name of `odesim list`), or the SYSTEM of FILE.py (FILE.py:OTHER for another constant).

    A model file is code, and it runs. Without options every model has its own parameters, sizes and span.

    \b
    VALUE is one of
      0.3                          a number; it fills the shape
      1,2,3   [[1, 2], [3, 4]]     an array
      @file.csv   @file.npy        a table; one row or column is a vector
      linspace(a,b)  logspace(a,b) evenly from a to b, or 10^a to 10^b
      uniform(a,b)   normal(m,s)   random, from --seed

    \b
    EXPRESSION, of --event, is made of states, parameters, sizes, observables
    and t, numbers, + - * / **, brackets, exp(), log(), sqrt(), ..., and
    sum(v), max(v), min(v) of arrays; v[0] is one component, v[l] each:
      --event 'far: v[0] - 2'                          v[0] passes 2
      --event 'all: sum(v) - 9; terminal; direction up'  the run ends

    What has parentheses is quoted in a shell: --set 'mu=uniform(0,1)'.
    """
    from odesim.cli.options.run import make_request
    from odesim.cli.output.integration import json_text, nan_sentences, table_text
    from odesim.cli.progress import Progress

    request = make_request(params, sizes, initial, options, file)
    check_outputs(out, plot, overwrite)

    from odesim.api.integrate import integrate

    numbers: dict[str, Any] = {"params": request.params, "sizes": request.sizes, "initial": request.initial, "span": request.span}
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
    drawn, undrawn = draw(solution, plot)
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
    from odesim.errors import StoreError

    if out:
        from odesim.store.paths import check_new_run

        check_new_run(out, overwrite=overwrite)
    if plot:
        from odesim.plot.files import check_picture
        from odesim.store.paths import check_new_file

        check_new_file(check_picture(plot, overwrite=overwrite), overwrite=True)
    if out and plot and out.absolute() == plot.absolute():
        raise StoreError(f"--out and --plot name the same {out}")


def store(solution: "Solution", out: Path | None, overwrite: bool) -> tuple[Path | None, str]:
    """The path of the stored run, and a sentence if it could not be stored completely."""
    if out is None:
        return None, ""
    from odesim.errors import StoreError
    from odesim.store import write_solution

    try:
        stored = write_solution(solution, out, overwrite=overwrite)
    except StoreError as error:  # the place was good before the run
        return None, str(error)
    return stored.path, "" if stored.complete else stored.sentence


def draw(solution: "Solution", plot: Path | None) -> tuple[Path | None, str]:
    """The path of the picture, and a sentence if the disk had no room for it."""
    if plot is None:
        return None, ""
    from odesim.errors import StoreError
    from odesim.plot.files import save
    from odesim.plot.solution import figure_of_solution

    try:
        return save(figure_of_solution(solution), plot), ""
    except StoreError as error:  # the place was good before the run
        return None, str(error)
