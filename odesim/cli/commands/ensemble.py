"""`odesim ensemble`: integrates a design of members into a run on disk."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import ENSEMBLE
from odesim.cli.options.kinds import Count, ModelKind
from odesim.cli.options.table import run_options
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.pictures import check_picture_place, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATH = click.Path(path_type=Path)


@click.command("ensemble", short_help="Integrate many members of a model and store them.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.option("--vary", metavar="NAME=VALUE", multiple=True, help="A parameter or initial value, drawn for each member, or a table.")
@click.option("--members", metavar="N", type=Count(1), help="How many members are drawn.")
@click.option("--grid", metavar="NAME=POINTS", multiple=True, help="Points of a parameter or initial value; of several, all combinations.")
@click.option("--zip", "zipped", metavar="NAME=POINTS", multiple=True, help="Points that go together, the first of each, the second, ...")
@click.option("--shard", metavar="I/N", help="The I-th of N parts, into the run that they share.")
@click.option("--out", metavar="RUN.zarr", type=PATH, required=True, help="Where the members are stored.")
@click.option("--set", "params", metavar="NAME=VALUE", multiple=True, help="A parameter of all members.")
@click.option("--size", "sizes", metavar="M=1000", multiple=True, help="A size; those that given arrays fix need none.")
@click.option("--init", "initial", metavar="NAME=VALUE", multiple=True, help="An initial value of all members.")
@click.option(
    "--params",
    "file",
    metavar="FILE.toml",
    type=PATH,
    help="Tables [params], [sizes], [initial]; above them any option named below up to --seed. The command line wins.",
)
@run_options(ENSEMBLE)
@click.option("--observe", metavar="NAME[,NAME]|all", help="Observables that are stored at the saved times; default none.")
@click.option("--max-events", metavar="K", type=Count(0), default=8, help="Keep the first K of each event; default 8, 0: look for none.")
@click.option(
    "--event",
    "events",
    metavar="'NAME: EXPRESSION'",
    multiple=True,
    help="List where EXPRESSION passes 0; '; terminal' ends the member there.",
)
@click.option("--sensitivity", "sensitivities", metavar="NAME", multiple=True, help="Derivatives by a parameter or start too.")
@click.option("--threads", metavar="N", type=Count(1), default=1, help="Default 1; the bits do not depend on it.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first chunk with a member that failed.")
@click.option("--overwrite", is_flag=True, help="Replace the run that is there, and a picture that odesim did not draw.")
@click.option("--plot", metavar="FILE.png", type=PATH, help="Draw the members: png, pdf or svg. A picture that odesim drew is replaced.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--quiet", is_flag=True, help="Print no summary and no progress.")
def ensemble_command(
    model: str,
    vary: tuple[str, ...],
    grid: tuple[str, ...],
    zipped: tuple[str, ...],
    members: int | None,
    shard: str | None,
    out: Path,
    params: tuple[str, ...],
    sizes: tuple[str, ...],
    initial: tuple[str, ...],
    observe: str | None,
    max_events: int,
    file: Path | None,
    threads: int,
    fail_fast: bool,
    overwrite: bool,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
    sensitivities: tuple[str, ...],
    events: tuple[str, ...],
    **options: Any,
) -> int:
    """Integrate many members of MODEL, each with values of its own, and store them in chunks as they finish.

    \b
    VALUE, of --vary, is one of
      uniform(a,b)   normal(m,s)   every entry drawn, from --seed and the member
      @file.npy   [[1, 2], [3, 4]] one row a member
    POINTS, of --grid and --zip, are
      1,2,3   @file.csv            each fills the shape
      linspace(a,b,n)  logspace(a,b,n)
    EXPRESSION, of --event: see `odesim integrate --help`.
    What has parentheses is quoted in a shell: --vary 'mu=uniform(0,1)'.

    Ctrl-C keeps the chunks that are done (exit code 3); `odesim resume RUN` goes
    on, and the run ends with the same bits.

    With --backend cuda all GPUs that CUDA_VISIBLE_DEVICES leaves share the
    members; with --strict their bits are those of the processor.
    """
    from odesim.api.destination import Destination
    from odesim.api.ensemble import run_ensemble
    from odesim.cli.options.run import make_request
    from odesim.cli.output.ensemble import EnsembleProgress, print_run
    from odesim.engines.run import Execution
    from odesim.ensembles.arguments import EnsembleArguments

    design: dict[str, Any] = {"vary": named("--vary", vary), "grid": named("--grid", grid), "zipped": named("--zip", zipped)}
    varied = {name for values in design.values() for name in values}
    request = make_request(params, sizes, initial, options, file, points=None, other=varied)
    numbers: dict[str, Any] = {"params": request.params, "initial": request.initial, "sizes": request.sizes, "span": request.span}
    kept: dict[str, Any] = {"save": request.save, "sensitivities": sensitivities, "observe": observe, "max_events": max_events}
    kept |= {"events": events}
    asked = EnsembleArguments(**numbers, **design, members=members, **kept)
    to = Destination(out, overwrite=overwrite, shard=None if shard is None else read_shard(shard))
    check_picture_place(out, plot, overwrite=overwrite)
    with EnsembleProgress(model, False if quiet else None) as progress:
        run = run_ensemble(model, asked, request.run, to, Execution(threads, progress.show, fail_fast))
    code = DONE if run.status == "ok" else STOPPED
    if code == STOPPED:
        say(run.message)
    drawn, undrawn = draw(lambda: figure(out), plot)
    if undrawn:
        code = STOPPED
        say(undrawn)
    print_run(run, as_json, quiet, drawn)
    return code


def figure(run: Path) -> "Figure":
    """The picture of a stored ensemble."""
    from odesim.plot.ensemble import figure_of_ensemble
    from odesim.store.export import check_few_unstarted
    from odesim.store.paths import damage_errors
    from odesim.store.read import open_run

    check_few_unstarted(run)
    with damage_errors(run):
        return figure_of_ensemble(open_run(run))


def named(option: str, texts: Sequence[str]) -> dict[str, str]:
    """{name: text} from words NAME=TEXT. Raises ParamError."""
    from odesim.cli.options.run import once
    from odesim.errors import ParamError
    from odesim.inputs.grammar import show_text

    pairs = []
    for text in texts:
        name, equals, value = (piece.strip() for piece in text.partition("="))
        if not equals or not name.isidentifier():
            raise ParamError(f"{option} takes NAME=VALUE, not {show_text(text)}")
        if not value:
            raise ParamError(f"{option} {name}: the value is empty")
        pairs.append((name, value))
    return once(option, pairs)


def read_shard(text: str) -> tuple[int, int]:
    """(i, n) from the word I/N. Raises ParamError unless 1 <= i <= n."""
    from odesim.errors import ParamError
    from odesim.inputs.grammar import show_text

    found = re.fullmatch(r"\s*(\d{1,9})\s*/\s*(\d{1,9})\s*", text, re.ASCII)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ParamError(f"--shard takes I/N with 1 <= I <= N, as in 1/4, not {show_text(text)}")
    return int(found[1]), int(found[2])
