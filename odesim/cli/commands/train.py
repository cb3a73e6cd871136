"""`odesim train`: a small transformer trained on a task, many seeds at once."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import TRAINING, backends_for
from odesim.base.options import backend_help
from odesim.cli.options import CLUSTER, Count, ModelKind, completed
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.run import check_picture_place, draw
from odesim.cli.tables import Counter, echo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from odesim.base.arrays import Array
    from odesim.reference.protocols import Task
    from odesim.reference.training.trajectory import Trajectory

AGAIN = "the same command with --resume continues it"
PATH = click.Path(path_type=Path)


class TaskName(ModelKind):
    """A task's name; the shell completes it."""

    name = "task"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from odesim.reference.tasks import TASKS

        return [CompletionItem(name) for name in TASKS if name.startswith(incomplete)]


class TrainCommand(click.Command):
    """The command, whose help names the tasks."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from odesim.reference.tasks import TASKS

        with formatter.section("Tasks"):
            formatter.write_text(", ".join(TASKS))
            formatter.write_text("`odesim list` describes them.")


@click.command("train", cls=TrainCommand, short_help="Train a small transformer on a task.")
@click.argument("task", metavar="TASK", type=TaskName())
@click.option("--model", metavar="M", help="One of the task's models.")
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, shell_complete=completed("settings"), help="Set a setting of the task."
)
@click.option("--settings", "show", is_flag=True, help="Print the task's settings, models, observables and theory; train nothing.")
@click.option("--steps", metavar="N", type=Count(0), help="Number of updates; default: that of the task.")
@click.option("--seeds", metavar="A:B", default="0:1", help="Train the seeds A to B - 1 at once; default 0:1.")
@click.option("--optimizer", metavar="NAME", help="sgd, momentum, adam or adamw; default: that of the task.")
@click.option(
    "--lr",
    "rates",
    metavar="GROUP=RATE",
    multiple=True,
    shell_complete=completed("groups"),
    help="Set the learning rate of a group of parameters.",
)
@click.option("--save", metavar="N", type=Count(2), help="Record N iterations, evenly spaced; default: all, at most 1001.")
@click.option(
    "--observe",
    metavar="NAME",
    multiple=True,
    shell_complete=completed("recorded", ending=""),
    help="Record this costly or large observable at all of them, not only at the end.",
)
@click.option("--dtype", metavar="NAME", default="float64", help="float64 (default) or float32.")
@click.option("--backend", metavar="NAME", default=backends_for(TRAINING)[0], help=backend_help(TRAINING))
@click.option("--threads", metavar="N", type=Count(1), default=1, help="Number of threads of matrix products; default 1.")
@CLUSTER
@click.option("--out", metavar="RUN.zarr", type=PATH, help="Store the run, with checkpoints while it runs.")
@click.option("--overwrite", is_flag=True, help="Replace an existing run.")
@click.option("--resume", is_flag=True, help="Continue the run in --out; with more --steps it becomes longer.")
@click.option("--plot", metavar="FILE.png", type=PATH, help="Draw the loss and other small observables; an existing picture is replaced.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--quiet", is_flag=True, help="Print no summary and no progress.")
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
    from odesim.reference.tasks import load_task

    found = load_task(task)
    if show:
        from odesim.cli.output.task import settings_text

        echo(settings_text(found))
        return DONE
    return run(found, settings, seeds, rates, out, plot, as_json, quiet, options)


def run(
    task: "Task",
    settings: tuple[str, ...],
    seeds: str,
    rates: tuple[str, ...],
    out: Path | None,
    plot: Path | None,
    as_json: bool,
    quiet: bool,
    options: dict[str, Any],
) -> int:
    """Reads the request, trains, prints, draws; returns the exit code."""
    from odesim.api.train import train
    from odesim.base.cluster import connected
    from odesim.cli.commands.training_words import read_rates, read_seeds, read_settings

    values, learning, chosen = read_settings(task.name, task.settings, settings), read_rates(rates), read_seeds(seeds)
    check_picture_place(out, plot)
    with connected(options.pop("cluster")) as cluster, TrainingProgress(task.name, False if quiet else None) as progress:
        more = {**options, "client": cluster.client} if cluster else options
        trajectory = train(task, settings=values, seeds=chosen, rates=learning, out=out, progress=progress.show, **more)
    return report(trajectory, out, plot, as_json, quiet)


def report(trajectory: "Trajectory", out: Path | None, plot: Path | None, as_json: bool, quiet: bool, again: str = AGAIN) -> int:
    """Prints how a training ended, draws it and prints it; returns the exit code. again: the command that continues it."""
    from odesim.cli.output.training import json_text, summary_text

    code = DONE if trajectory.ok else STOPPED
    if code == STOPPED:
        say(stop_sentence(trajectory, out, again))
    drawn, lost = draw(lambda: figure(trajectory), plot)
    if lost:
        code = STOPPED
        say(lost)
    if as_json:
        echo(json_text(trajectory, out))
    elif not quiet:
        echo(summary_text(trajectory, out, drawn))
    return code


def stop_sentence(trajectory: "Trajectory", out: Path | None, again: str) -> str:
    """Why the training stopped, and how to continue it: with the command `again` if it is stored."""
    if trajectory.status != "interrupted":
        return trajectory.message
    kept = f"what was computed is in {out}: {again}" if out else "with --out RUN.zarr, --resume could go on"
    return f"{trajectory.message}; {kept}"


def figure(trajectory: "Trajectory") -> "Figure":
    """The picture of a training."""
    from odesim.plot.trajectory import figure_of_trajectory

    return figure_of_trajectory(trajectory.to_xarray(), trajectory.attrs.get("labels"))


class TrainingProgress(Counter):
    """A line of progress: iterations done, the loss, and about how long the rest takes."""

    def show(self, done: int, steps: int, loss: "Array") -> None:
        """Prints the line, ten times a second at most; loss (R,) by its mean, of the seeds that have one."""
        self.count(done, steps, lambda: f"loss {float(loss.mean()):.4g}" if len(loss) else "no loss yet")
