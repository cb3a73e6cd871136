"""`odesim integrate`: numbers in, one run out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.cli.options.kinds import ModelKind
from odesim.cli.options.run import RUN_OPTIONS
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
@click.option("--span", metavar="T0:T1", help="From when to when; default the model's own.")
@click.option(
    "--save", metavar="N|log:N|T1,T2,...", help="Saved times: N even ones (default 200), N geometric ones, or these; T1, for one."
)
@click.option(
    "--method",
    metavar="NAME",
    help="auto (default: the cheapest, by a pilot), tsit5, vern7, dop853, euler, rk4; rodas4, rodas5p where it is stiff.",
)
@click.option("--step", metavar="H", type=RUN_OPTIONS["step"], help="A fixed step, for any method.")
@click.option("--rtol", metavar="R", type=RUN_OPTIONS["rtol"], help="Relative tolerance; default 1e-6.")
@click.option("--atol", metavar="A", type=RUN_OPTIONS["atol"], help="Absolute tolerance; default 1e-9.")
@click.option("--max-steps", metavar="N", type=RUN_OPTIONS["max_steps"], help="Stop after N steps; default 1000000.")
@click.option("--stop-at", metavar="T1,T2,...", help="Times at which a step ends; conditions of the model are found without.")
@click.option("--max-step", metavar="H", type=RUN_OPTIONS["max_step"], help="No step is longer.")
@click.option("--clock", metavar="NAME", help="ordinary (default), or rescaled: through to a blow-up, whose time is found.")
@click.option("--backend", metavar="NAME", help="numba (default), numpy, or cuda: a GPU, by an explicit method.")
@click.option("--dtype", metavar="NAME", help="float64 (default) or float32.")
@click.option("--strict", is_flag=True, default=None, help="No fused multiply-adds: the same bits on every machine.")
@click.option("--seed", metavar="S", type=RUN_OPTIONS["seed"], help="For uniform() and normal(); default 0.")
@click.option("--sensitivity", "sensitivities", metavar="NAME", multiple=True, help="Derivatives by a parameter or start too.")
@click.option("--out", metavar="RUN.zarr", type=PATH, help="Store the run.")
@click.option("--overwrite", is_flag=True, help="Replace the run that is there, and a picture that odesim did not draw.")
@click.option(
    "--plot", metavar="FILE.png", type=PATH, help="Draw the run: png, pdf or svg, by the extension. A picture that odesim drew is replaced."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--quiet", is_flag=True, help="Print no table and no progress.")
def integrate_verb(
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

    What has parentheses is quoted in a shell: --set 'mu=uniform(0,1)'.
    """
    from odesim.cli.options.run import make_request
    from odesim.cli.output.integration import json_text, nan_sentences, table_text
    from odesim.cli.progress import Progress

    request = make_request(params, sizes, initial, options, file)
    check_outputs(out, plot, overwrite)

    from odesim.api.integrate import integrate

    options = {**request.options, "save": request.save}
    with Progress(model, False if quiet else None) as progress:
        solution = integrate(model, params=request.params, sizes=request.sizes, initial=request.initial, progress=progress, **options)
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
    """Where the run lies now, and a sentence where it could not be stored whole."""
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
    """Where the picture lies now, and a sentence where the disk had no room for it."""
    if plot is None:
        return None, ""
    from odesim.errors import StoreError
    from odesim.plot.files import save
    from odesim.plot.solution import figure_of_solution

    try:
        return save(figure_of_solution(solution), plot), ""
    except StoreError as error:  # the place was good before the run
        return None, str(error)
