"""`odesim compare`: a training against its theory, or two stored runs against each other."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import TRAINING
from odesim.cli.commands.train import TaskName, TrainingProgress
from odesim.cli.options.kinds import Count, ModelKind
from odesim.cli.options.table import backend_help
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.output.tables import echo
from odesim.cli.pictures import check_picture_place

if TYPE_CHECKING:
    from odesim.comparison import Comparison

PATH = click.Path(path_type=Path)


@click.command("compare", short_help="Hold a model against a training, or two runs against each other.")
@click.argument("first", metavar="MODEL|RUN", type=ModelKind())
@click.argument("second", metavar="[RUN]", type=PATH, required=False)
@click.option("--task", metavar="TASK", type=TaskName(), help="The task to train; its settings fix the model's parameters.")
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="A setting of the task.")
@click.option("--steps", metavar="N", type=Count(0), help="Updates; default the task's own.")
@click.option("--seeds", metavar="A:B", help="Seeds A to B - 1, trained at once; default 0:1.")
@click.option("--save", metavar="N", type=Count(2), help="Recorded iterations, evenly spread; default all, or 1001 of more.")
@click.option("--backend", metavar="NAME", help=backend_help(TRAINING, "What trains; "))
@click.option(
    "--map", "map_", metavar="NAME", help="flow (default): the ODE; discrete: descent on its right-hand side, with the same momentum."
)
@click.option("--clock", metavar="NAME", help="Of the flow beside momentum: effective (default), with its lag at the start, or limit.")
@click.option("--observable", "observables", metavar="NAME", multiple=True, help="Compare this one only; it is recorded however large.")
@click.option("--align", metavar="AXIS", multiple=True, help="Put this axis of the training in the order that fits best, seed by seed.")
@click.option("--plot", metavar="FILE.png", type=PATH, help="Draw both: png, pdf or svg; a picture that is there is replaced.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--quiet", is_flag=True, help="Print no table and no progress.")
def compare_command(
    first: str,
    second: Path | None,
    task: str | None,
    settings: tuple[str, ...],
    seeds: str | None,
    map_: str | None,
    clock: str | None,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Train a task and compare its curves with those of MODEL, at the parameters that the task gives; or compare two stored RUNs.

    \b
    odesim compare scan_snap.full --task scan_snap --seeds 0:20 --map discrete
    odesim compare training.zarr flow.zarr

    `odesim train TASK --settings` says which models describe a task, and
    under which settings.

    Of an integration and a training, the integration is the theory, and
    iterations are put on its clock. A row of the table is an observable:

    \b
    corr    normalised correlation over times and components
    rel L2  |training - theory| / |theory|; sup: the largest difference
    scale   the factor that brings theory nearest to training
    shift   how much later training is half way; worst: of one component
    spread  the difference in standard errors over the seeds

    \b
    A second table says until when both agree to within a tenth and, of what is
    positive and spans a decade, the root mean square of ln(training / theory)
    and the ratio at the end. `loss` is the training's loss in infinite
    contexts, which theory is of; `loss_batch` that of its batches.
    """
    from odesim.api.compare import compare
    from odesim.cli.options.training import read_seeds, read_settings
    from odesim.cli.output.comparison import json_text
    from odesim.reference.tasks import load_task

    found = load_task(task) if task else None
    chosen = read_seeds(seeds) if seeds is not None else None
    values = read_settings(found.name, found.settings, settings) if found else dict.fromkeys(settings)
    check_picture_place(None, plot)
    with TrainingProgress(task or "", False if quiet or not task else None) as progress:
        comparison = compare(
            first,
            second,
            task=found,
            settings=values,
            seeds=chosen,
            map=map_,
            clock="effective" if clock is None else clock,
            progress=progress.show,
            **options,
        )
    code = DONE
    for doubt in comparison.doubts:
        say(doubt)
    for note in comparison.notes:
        code = STOPPED
        say(note)
    drawn, lost = draw(comparison, plot)
    if lost:
        code = STOPPED
        say(lost)
    if as_json:
        echo(json_text(comparison))
    elif not quiet:
        echo(f"{comparison}\n\ndrawn in {drawn}" if drawn else str(comparison))
    return code


def draw(comparison: "Comparison", plot: Path | None) -> tuple[Path | None, str]:
    """The path of the picture, and a sentence if the disk had no room for it."""
    if plot is None:
        return None, ""
    from odesim.errors import StoreError
    from odesim.plot.comparison import figure_of_comparison
    from odesim.plot.files import save

    try:
        return save(figure_of_comparison(comparison), plot), ""
    except StoreError as error:  # the place was good before the run
        return None, str(error)
