"""`odesim compare`: a training and its theory, or two stored runs, compared."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import TRAINING
from odesim.base.options import backend_help
from odesim.cli.commands.train import TaskName, TrainingProgress
from odesim.cli.options import Count, ModelKind, completed
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.run import check_picture_place
from odesim.cli.tables import echo

if TYPE_CHECKING:
    from odesim.comparison import Comparison

PATH = click.Path(path_type=Path)


@click.command("compare", short_help="Compare a model with a training run, or two stored runs.")
@click.argument("first", metavar="[MODEL|RUN]", type=ModelKind(), required=False)
@click.argument("second", metavar="[RUN]", type=PATH, required=False)
@click.option(
    "--recipe",
    metavar="NAME",
    shell_complete=completed("recipes", ending=""),
    help="Run a stored comparison, and print its numbers beside those recorded.",
)
@click.option("--task", metavar="TASK", type=TaskName(), help="The task to train. Its settings determine the parameters of the model.")
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, shell_complete=completed("settings"), help="Set a setting of the task."
)
@click.option("--steps", metavar="N", type=Count(0), help="Number of updates; default: that of the task.")
@click.option("--seeds", metavar="A:B", help="Train the seeds A to B - 1 at once; default 0:1.")
@click.option("--save", metavar="N", type=Count(2), help="Record N iterations, evenly spaced; default: all, at most 1001.")
@click.option("--backend", metavar="NAME", help=backend_help(TRAINING, "Backend of the training; "))
@click.option(
    "--map",
    "map_",
    metavar="NAME",
    help="flow (default): the ODE; discrete: gradient descent with its right-hand side and the momentum of the training.",
)
@click.option(
    "--clock",
    metavar="NAME",
    help="Time of the flow when the training has momentum: effective (default, with the lag at the start) or limit.",
)
@click.option(
    "--observable",
    "observables",
    metavar="NAME",
    multiple=True,
    shell_complete=completed("states", "observables", ending=""),
    help="Compare only this observable; it is recorded even if it is large.",
)
@click.option("--align", metavar="AXIS", multiple=True, help="Reorder this axis of the training so that it fits best, for each seed.")
@click.option("--plot", metavar="FILE.png", type=PATH, help="Draw both as png, pdf or svg; an existing picture is replaced.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no table and no progress.")
def compare_command(
    first: str | None,
    second: Path | None,
    recipe: str | None,
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
    """Train a task and compare its curves with those of MODEL, whose parameters follow from the task; or compare two stored RUNs.

    \b
    odesim compare scan_snap.full --task scan_snap --seeds 0:20 --map discrete
    odesim compare training.zarr flow.zarr
    odesim compare --recipe reversal_shuffled

    `odesim train TASK --settings` lists the models that describe a task, and
    the settings that they need.

    If one run is an integration and the other a training, the integration is
    the theory, and iterations become its times. Columns of the table:

    \b
    corr    correlation over times and components
    rel L2  |training - theory| / |theory|; sup: the largest difference
    scale   factor by which the theory fits the training best
    shift   how much later than the theory the training is half way from its
            first to its last value; worst: the largest of all components
    spread  the difference in standard errors; only with several seeds

    A second table gives the time until which both agree to a tenth. For
    positive observables that span a decade, it also gives the root mean square
    of ln(training / theory) and the ratio at the end.

    A recipe fixes everything but the output. If one of its numbers is not what
    is recorded, the exit code is 3.

    `loss` is the loss in infinite contexts, which the theory describes;
    `loss_batch` is that of the batches.
    """
    from odesim.api.compare import compare
    from odesim.base.errors import ParamError
    from odesim.cli.commands.training_words import read_seeds, read_settings
    from odesim.cli.output.comparison import json_text
    from odesim.inputs.registry import list_models
    from odesim.reference.tasks import TASKS, load_task

    if first is None and recipe is None:
        raise ParamError("compare needs a MODEL and its --task, two RUNs, or a --recipe")
    if first is not None and second is not None and task is None and first in list_models() and not os.path.exists(first):
        name = second if str(second) in TASKS else "NAME"
        raise ParamError(f"{first} is a model: compare it with a task (--task {name}); two stored runs are compared with each other")
    found = load_task(task) if task else None
    chosen = read_seeds(seeds) if seeds is not None else None
    values = read_settings(found.name, found.settings, settings) if found else dict.fromkeys(settings)
    check_picture_place(None, plot)
    with TrainingProgress(task or recipe or "", False if quiet or not (task or recipe) else None) as progress:
        comparison = compare(
            first,
            second,
            recipe=recipe,
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
    if not comparison.as_recorded:
        code = STOPPED
        say(f"{recipe}: other than recorded: {', '.join(number.name for number in comparison.numbers if not number.agrees)}")
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
    from odesim.base.errors import StoreError
    from odesim.plot.comparison import figure_of_comparison
    from odesim.plot.files import save

    try:
        return save(figure_of_comparison(comparison), plot), ""
    except StoreError as error:  # the place was good before the run
        return None, str(error)
