"""`odesim train`, `odesim compare` and `odesim verify`, and what the commands on stored runs do with a training.

The command line stands below the lab and imports this module by name, so numpy and the networks are imported inside functions.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import TRAINING
from odesim.base.errors import ParamError
from odesim.base.options import backend_help
from odesim.cli.options import PATH, ModelKind, completed
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.run import check_picture_place, draw
from odesim.cli.tables import Counter, echo
from odesim.lab import tasks
from odesim.lab.options import TaskName, claims_names, options, read_rates, read_seeds, read_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from odesim.api.differences import Rerun
    from odesim.base.arrays import Array
    from odesim.lab.training.loop import Trajectory

# `odesim train`: a small transformer trained on a task, many seeds at once.

AGAIN = "the same command with --resume continues it"


@click.command(
    "train",
    short_help="Train a small transformer on a task.",
    epilog=f"Tasks: {', '.join(tasks.TASKS)}; `odesim list --tasks`.",
)
@click.argument("task", metavar="TASK|FILE.py", type=TaskName())
@options(
    "model settings show steps seeds optimizer rates save observe dtype backend threads max_seconds out overwrite resume plot as_json "
    "quiet",
    seeds={"default": "0:1"},
    dtype={"default": "float64"},
    threads={"default": 1, "help": "Number of threads of matrix products; default 1."},
    out={"help": "Store the run, with checkpoints while it runs."},
    overwrite={"help": "Replace an existing run."},
    plot={"help": "Draw the loss and other small observables; an existing picture is replaced."},
)
def train_command(
    task: str,
    settings: tuple[str, ...],
    show: bool,
    seeds: str,
    rates: tuple[str, ...],
    out: Path | None,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Train a small transformer on TASK, one run per seed, and record the quantities of the theory.

    \b
    VALUE depends on the setting; it is one of
      0.3                          a number
      true, false, a word          see `odesim train TASK --settings`
      1,2,3   [[1, 2], [3, 4]]     an array
      @file.csv   @file.npy        a table
      @FILE                        a text: the content of a UTF-8 file

    Ctrl-C keeps what was computed (exit code 3). The same command with --resume
    continues the training; the result has the same bits.
    """
    from odesim.lab.own_task import find_task

    loaded = find_task(task)
    if show:
        from odesim.lab.output import settings_text

        echo(settings_text(loaded))
        return DONE
    from odesim.lab.train import train

    values, learning, chosen = read_settings(task, loaded.settings, settings), read_rates(rates), read_seeds(seeds)
    check_picture_place(out, plot)
    with TrainingProgress(task, False if quiet else None) as progress:
        trajectory = train(loaded, settings=values, seeds=chosen, rates=learning, out=out, progress=progress.show, **options)
    return report(trajectory, out, plot, as_json, quiet)


def report(trajectory: "Trajectory", out: Path | None, plot: Path | None, as_json: bool, quiet: bool, again: str = AGAIN) -> int:
    """Prints how a training ended, draws it and prints it; returns the exit code. again: the command that continues it."""
    from odesim.lab.output import training_json, training_text

    def figure() -> "Figure":
        from odesim.plot.trajectory import figure_of_trajectory

        return figure_of_trajectory(trajectory.to_xarray(), trajectory.attrs.get("labels"))

    code = DONE if trajectory.ok else STOPPED
    if code == STOPPED:
        where = f"what was computed is in {out}: {again}" if out else "with --out RUN.zarr, --resume could go on"
        say(trajectory.message + f"; {where}" * (trajectory.status == "interrupted"))
    drawn, lost = draw(figure, plot)
    if lost:
        code = STOPPED
        say(lost)
    if as_json:
        echo(training_json(trajectory, out))
    elif not quiet:
        echo(training_text(trajectory, out, drawn))
    return code


# What `odesim list`, `status`, `resume` and `rerun` need of the lab.


def task_docs() -> list[tuple[str, str]]:
    """(name, description) of every task."""
    return [(name, tasks.load_task(name).doc) for name in tasks.TASKS]


def optimizer_line(spec: Mapping[str, Any]) -> str:
    """The optimizer in the attributes of a stored training, as text."""
    from odesim.lab.output import optimizer_text

    return optimizer_text(spec)


def resume_stored(run: Path, threads: int | None, as_json: bool, quiet: bool) -> int:
    """Trains the stored training to its last step; returns the exit code."""
    from odesim.lab.resume import resume_training

    with TrainingProgress(run.name, False if quiet else None) as progress:
        trajectory = resume_training(run, threads=threads, progress=progress.show)
    return report(trajectory, run, None, as_json, quiet, again="odesim resume continues it")


def rerun_stored(run: Path, threads: int | None, watched: bool | None) -> "Rerun":
    """The stored training, trained again and compared."""
    from odesim.lab.resume import rerun_training

    with TrainingProgress(run.name, watched) as iterations:
        return rerun_training(run, threads=threads, progress=iterations.show)


class TrainingProgress(Counter):
    """A line of progress: iterations done, the loss, and about how long the rest takes."""

    def show(self, done: int, steps: int, loss: "Array") -> None:
        """Prints the line, ten times a second at most; loss (R,) by its mean, of the seeds that have one."""
        self.count(done, steps, lambda: f"loss {float(loss.mean()):.4g}" if len(loss) else "no loss yet")


# `odesim compare`: a training and its theory, or two stored runs, compared.


@click.command("compare", short_help="Compare a model with a training or data, or two stored runs.")
@click.argument("first", metavar="[MODEL|RUN]", type=ModelKind(), required=False)
@click.argument("second", metavar="[RUN]", type=PATH, required=False)
@options(
    "task data recipe settings map steps seeds save backend time free sizes initial span lr momentum clock observables align plot as_json "
    "quiet",
    settings={"help": "Set a setting of the task; with --data, a parameter of the model."},
    backend={"default": None, "help": backend_help(TRAINING, "Backend of the training; ")},
    sizes={"help": "With --data, set a size of the model."},
    initial={"help": "With --data, set initial values of the model."},
    span={"help": "With --data, when the run of the model begins and ends at least."},
    plot={"help": "Draw both as png, pdf, svg or html; an existing picture is replaced."},
    quiet={"help": "Print no table and no progress."},
)
def compare_command(
    first: str | None,
    second: Path | None,
    recipe: str | None,
    task: str | None,
    settings: tuple[str, ...],
    seeds: str | None,
    clock: str | None,
    map: tuple[str, ...],
    plot: Path | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Compare the curves of MODEL with those of a training: of a task, which is trained, or of data; or compare two stored RUNs.

    \b
    odesim compare scan_snap.full --task scan_snap --seeds 0:20 --map discrete
    odesim compare my_model.py --data run.csv --map loss=train/loss --free k
    odesim compare training.zarr flow.zarr
    odesim compare --recipe reversal_shuffled

    With --task, the parameters of MODEL follow from the settings of the task.
    With --data they are its defaults, or given by --set, or fitted with --free.

    `odesim train TASK --settings` lists the models that describe a task, and
    the settings that they need.

    Of two ensembles the members are compared that both have, by the numbers
    that differ between members.

    If one run is an integration and the other a training, the integration is
    the theory, and iterations become its times. Columns of the table:

    \b
    corr    correlation over times and components
    rel L2  |training - theory| / |theory|; sup: the largest difference
    scale   factor by which the theory fits the training best
    shift   how much later than the theory the training is half way from its
            first to its last value; worst: the largest of all components
    spread  the difference in standard errors of the mean over the seeds;
            chance gives 1; only with several seeds

    A second table gives the time until which both agree to a tenth. For
    positive observables that span a decade, it also gives the root mean square
    of ln(training / theory) and the ratio at the end.

    A recipe fixes everything but the output. If one of its numbers is not what
    is recorded, the exit code is 3.

    `loss` is the loss in infinite contexts, which the theory describes;
    `loss_batch` is that of the batches.
    """
    from odesim.inputs.registry import list_models
    from odesim.lab.compare.runs import compare
    from odesim.lab.output import comparison_json
    from odesim.lab.own_task import find_task

    if first is None and recipe is None:
        raise ParamError("compare needs a MODEL and its --task or --data, two RUNs, or a --recipe")
    data = options.pop("data")
    options |= read_map(map) | read_data(settings, data, options)
    if first is not None and second is not None and task is None and first in list_models() and not os.path.exists(first):
        name = second if str(second) in tasks.TASKS else "NAME"
        raise ParamError(f"{first} is a model: compare it with a task (--task {name}); two stored runs are compared with each other")
    loaded = find_task(task) if task else None
    chosen = read_seeds(seeds) if seeds is not None else None
    values = read_settings(loaded.name, loaded.settings, settings) if loaded else {} if data else dict.fromkeys(settings)
    check_picture_place(None, plot)
    with TrainingProgress(task or recipe or "", False if quiet or not (task or recipe) else None) as progress:
        comparison = compare(
            first,
            second,
            recipe=recipe,
            task=loaded,
            settings=values,
            seeds=chosen,
            data=list(data) or None,
            clock="effective" if clock is None else clock,
            progress=progress.show,
            **options,
        )
    off = ", ".join(number.name for number in comparison.numbers if not number.agrees)
    for sentence in (*comparison.doubts, *comparison.notes, *[f"{recipe}: other than recorded: {off}"] * bool(off)):
        say(sentence)

    def figure() -> "Figure":
        if comparison.members is not None:
            from odesim.plot.ensemble import figure_of_ensemble

            return figure_of_ensemble(comparison.members)
        from odesim.plot.comparison import figure_of_comparison

        return figure_of_comparison(comparison)

    drawn, lost = draw(figure, plot)
    if lost:
        say(lost)
    if as_json:
        echo(comparison_json(comparison))
    elif not quiet:
        echo(f"{comparison}\n\ndrawn in {drawn}" if drawn else str(comparison))
    return STOPPED if comparison.notes or off or lost else DONE


def read_map(texts: tuple[str, ...]) -> dict[str, Any]:
    """{map, columns} of the words of --map: flow or discrete, with a task; NAME=COLUMN, with data. Raises ParamError."""
    from odesim.cli.arguments import once
    from odesim.cli.fit import pair

    kinds = [text for text in texts if "=" not in text]
    columns = once("--map", (pair(text, "--map") for text in texts if "=" in text))
    if len(kinds) > 1:
        raise ParamError(f"--map is given twice: {kinds[0]} and {kinds[1]}")
    return {"map": kinds[0] if kinds else None, "columns": columns or None}


def read_data(settings: tuple[str, ...], data: tuple[str, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of compare() about data, from the words of their options. Raises ParamError."""
    from odesim.cli.arguments import read_request
    from odesim.cli.fit import read_free

    words = {name: options[name] for name in ("sizes", "initial", "span")}
    request = read_request({**words, "params": settings if data else (), "file": None})
    read = {name: request.get(name) or None for name in ("params", "sizes", "initial", "span")}
    return {**read, "free": read_free(options["free"]) if options["free"] else None}


# `odesim verify`: checks statements of the papers.


@click.command("verify", short_help="Check statements of the papers.")
@click.argument("name", metavar="[CLAIM|MODEL|FAMILY]", required=False, shell_complete=completed(claims_names, ending=""))
@click.option("--slow", is_flag=True, help="Check the slow claims (minutes) too.")
@click.option("--list", "listed", is_flag=True, help="List the claims; check none.")
@click.option("--page", is_flag=True, help="Print the claims as a page of Markdown; check none.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of --json; check none.")
@options("as_json quiet", as_json={"help": "Print one JSON object on stdout."}, quiet={"help": "Print no progress."})
def verify_command(name: str | None, slow: bool, listed: bool, page: bool, schema: bool, as_json: bool, quiet: bool) -> int:
    """Check a claim, the claims of a model or of a family, or all: each is a statement of a paper and a run that shows whether it holds.

    A claim has the statement as printed and, where that fails, the corrected one. Each statement has a recorded verdict;
    if a check gives another one, the exit code is 3. So it is after Ctrl-C, which keeps the claims before it.
    """
    from odesim.lab.claims import choose_claims, verify
    from odesim.lab.claims_json import SCHEMA, claims_json
    from odesim.lab.output import claims_page, claims_text, list_text

    if sum((listed, page, schema, as_json)) > 1:
        raise ParamError("--list, --page, --schema and --json exclude each other")
    if schema:
        echo(json.dumps(SCHEMA, indent=2))
        return DONE
    if page or listed:
        echo((claims_page if page else list_text)(choose_claims(name, slow=True)))
        return DONE
    with Counter("verify", None if not quiet else False) as progress:
        checked = verify(name, slow=slow, progress=lambda done, total, claim: progress.count(done, total, lambda: claim, "claims"))
    echo(claims_json(checked) if as_json else claims_text(checked))
    return DONE if checked.as_recorded else STOPPED
