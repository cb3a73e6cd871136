"""Options of the lab's commands: their table; settings, learning rates and seeds read from text; names that the shell completes."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import RUN, TRAINING, backends_for
from odesim.base.errors import ParamError, no_such
from odesim.base.options import backend_help
from odesim.cli.arguments import once
from odesim.cli.options import OWN, Count, Described, ModelKind, RealKind, argument_of, completed
from odesim.cli.options import options as run_options
from odesim.inputs.grammar import device_sentence, parse_number, parse_value, show_text

if TYPE_CHECKING:
    from odesim.lab.training.task import Model, Setting, Task

FLAGS = {"true": True, "false": False}


def read_settings(task: str, settings: Sequence["Setting"], texts: Sequence[str]) -> dict[str, Any]:
    """{name: value} of NAME=VALUE texts, each read by the kind of its setting. Raises ParamError."""
    known = {setting.name: setting for setting in settings}
    values = {}
    for name, text in once("--set", (assignment(text, "--set", "NAME=VALUE") for text in texts)).items():
        if name not in known:
            raise ParamError(no_such("setting", name, known, task))
        values[name] = read_value(known[name], text)
    return values


def read_value(setting: "Setting", text: str) -> Any:
    """The value of a text: true or false, a word, the content of @FILE, a number or an array. Raises ParamError."""
    where = f"--set {setting.name}"
    if isinstance(setting.default, bool):
        if text.lower() not in FLAGS:
            raise ParamError(f"{where} is true or false, not {show_text(text)}")
        return FLAGS[text.lower()]
    if isinstance(setting.default, str):
        return read_text(text[1:], where) if text.startswith("@") and not setting.choices else text
    value = parse_value(text, where)
    if value.kind == "number":
        return value.data
    if setting.default is not None:
        raise ParamError(f"{where} is one number, not {show_text(text)}")
    return value.array(setting.rank) if value.kind == "file" else value.fill(None)


def read_text(path: str, where: str) -> str:
    """The content of a UTF-8 file. Raises ParamError, for an empty one too: no text stands for the task's own."""
    if device := device_sentence(path):
        raise ParamError(f"{where}: {device}")
    try:
        content = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ParamError(f"{where}: there is no file {path!r}") from None
    except UnicodeDecodeError as error:
        raise ParamError(f"{where}: {path!r} is no UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}") from None
    except (OSError, ValueError) as error:
        raise ParamError(f"{where}: cannot read {path!r}: {getattr(error, 'strerror', None) or error}") from None
    if not content:
        raise ParamError(f"{where}: {path!r} is empty")
    return content


def read_rates(texts: Sequence[str]) -> Mapping[str, float]:
    """{group: learning rate} of GROUP=RATE texts. Raises ParamError."""
    pairs = (assignment(text, "--lr", "GROUP=RATE, with a group that `odesim train TASK --settings` names") for text in texts)
    return {group: float(parse_number(rate, f"--lr {group}")) for group, rate in once("--lr", pairs).items()}


def read_seeds(text: str) -> range:
    """The seeds A, A + 1, ... B - 1 of A:B. Raises ParamError."""
    ends = text.split(":")
    if len(ends) != 2:
        raise ParamError(f"--seeds takes A:B, as in --seeds 0:5 for the seeds 0 to 4, not {show_text(text)}")
    numbers = [parse_number(end, "--seeds") for end in ends]
    for number in numbers:
        if not isinstance(number, int) or number < 0:
            raise ParamError(f"--seeds {show_text(text)}: seeds are whole numbers from 0 up")
    first, last = (int(number) for number in numbers)
    if last <= first:
        raise ParamError(f"--seeds {text} has no seed: the seeds end before the second number")
    return range(first, last)


def assignment(text: str, option: str, form: str) -> tuple[str, str]:
    """(name, value) of NAME=VALUE, both as text. Raises ParamError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier():
        raise ParamError(f"{option} takes {form}, not {show_text(text)}")
    if not value:
        raise ParamError(f"{option} {name}: the value is empty")
    return name, value


def settings_names(ctx: click.Context) -> Described:
    """The settings of the task, with their meaning."""
    return ((setting.name, setting.doc) for setting in shipped_task(ctx).settings)


def shipped_task(ctx: click.Context) -> "Task":
    """The task whose name stands in the words before. Raises ValueError for a file, which would be executed."""
    from odesim.inputs.registry import is_path
    from odesim.lab.tasks import load_task

    if is_path(name := argument_of(ctx, "task")):
        raise ValueError(name)
    return load_task(name)


def default_model(ctx: click.Context) -> "Model":
    """The model of the task with its default settings and one seed."""
    task = shipped_task(ctx)
    return task.make({setting.name: setting.default for setting in task.settings}, seeds=(0,)).model


def groups_names(ctx: click.Context) -> Described:
    """The groups of parameters of the task's model, each of which has a learning rate."""
    return ((name, "a group of parameters") for name in sorted(set(default_model(ctx).groups.values())))


def recorded_names(ctx: click.Context) -> Described:
    """The observables of the task."""
    return ((observable.name, "an observable") for observable in default_model(ctx).observables)


def recipes_names(ctx: click.Context) -> Described:
    """The stored comparisons, with what they say."""
    from odesim.lab.compare.recipes import RECIPES

    return ((name, recipe.doc) for name, recipe in RECIPES.items())


def claims_names(ctx: click.Context) -> Described:
    """Claims, and the models and families that have some."""
    from odesim.lab.claims import choose_claims

    claims = choose_claims(None, slow=True)
    groups = dict.fromkeys(name for claim in claims for name in (claim.name.partition(".")[0], *claim.models))
    return iter([*((name, "all its claims") for name in groups), *((claim.name, claim.printed.text) for claim in claims)])


class TaskName(ModelKind):
    """A task's name; the shell completes it."""

    name = "task"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from odesim.lab.tasks import TASKS

        return [CompletionItem(name) for name in TASKS if name.startswith(incomplete)]


# options of train and compare, beside those of cli/options.py
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "model": ("--model", {"metavar": "M", "help": "One of the task's models."}),
    "recipe": ("--recipe", {
        "metavar": "NAME", "shell_complete": completed(recipes_names, ending=""),
        "help": "Run a stored comparison, and print its numbers beside those recorded."}),
    "task": ("--task", {
        "metavar": "TASK", "type": TaskName(), 
        "help": "The task to train, a name or FILE.py. Its settings determine the parameters of the model."}),
    "settings": ("--set", {
        "metavar": "NAME=VALUE", "multiple": True, "shell_complete": completed(settings_names), "help": "Set a setting of the task."}),
    "show": ("--settings", {"is_flag": True, "help": "Print the task's settings, models, observables and theory; train nothing."}),
    "steps": ("--steps", {"metavar": "N", "type": Count(0), "help": "Number of updates; default: that of the task."}),
    "seeds": ("--seeds", {"metavar": "A:B", "help": "Train the seeds A to B - 1 at once; default 0:1."}),
    "optimizer": ("--optimizer", {"metavar": "NAME", "help": "sgd, momentum, adam, adamw, sign or muon; default: that of the task."}),
    "rates": ("--lr", {
        "metavar": "GROUP=RATE", "multiple": True, "shell_complete": completed(groups_names),
        "help": "Set the learning rate of a group of parameters."}),
    "save": ("--save", {
        "metavar": "N", "type": Count(2),
        "help": "Record N iterations, evenly spaced; default: all, at most 1001, and in a comparison fewer of large ones."}),
    "observe": ("--observe", {
        "metavar": "NAME", "multiple": True, "shell_complete": completed(recorded_names, ending=""),
        "help": "Record this costly or large observable at all of them, not only at the end."}),
    "backend": ("--backend", {"metavar": "NAME", "default": backends_for(TRAINING)[0], "help": backend_help(TRAINING)}),
    "resume": ("--resume", {"is_flag": True, "help": "Continue the run in --out; with more --steps it becomes longer."}),
    "map": ("--map", {
        "metavar": "NAME|NAME=COLUMN", "multiple": True,
        "help": "With --task, flow (default): the ODE; or discrete: gradient descent with its right-hand side and the momentum of the "
        "training. With --data, the column of a state or observable, where it has another name."}),
    "data": ("--data", {
        "metavar": "FILE|FOLDER", "multiple": True,
        "help": "Curves of a training of your own: csv, tsv, parquet, nc, npz, zarr, a stored run, or a folder of csv that W&B or "
        "TensorBoard exported. Each file, or run of an export, is a seed."}),
    "time": ("--time", {"metavar": "COLUMN", "default": "", "help": "The column of times in the data; default: t, time or step."}),
    "free": ("--free", {
        "metavar": "NAME[=A:B],...", "multiple": True,
        "help": "Fit these to the data first: parameters, and states for their initial values."}),
    "lr": ("--lr", {
        "metavar": "RATE", "type": RealKind(0.0),
        "help": "The column of times counts steps of descent at this learning rate: a step takes this time of the model."}),
    "momentum": ("--momentum", {
        "metavar": "BETA", "type": RealKind(0.0, low_allowed=True), "default": 0.0, "help": "The momentum of these steps; default 0."}),
    "clock": ("--clock", {
        "metavar": "NAME",
        "help": "Time of the flow when the training has momentum: effective (default, with the lag at the start) or limit."}),
    "observables": ("--observable", {
        "metavar": "NAME", "multiple": True, "shell_complete": completed("states", "observables", ending=""),
        "help": "Compare only this observable; it is recorded even if it is large."}),
    "align": ("--align", {
        "metavar": "AXIS", "multiple": True, "help": "Reorder this axis of the training so that it fits best, for each seed."}),
}  # fmt: skip


options = partial(run_options, use=RUN, own={**OWN, **ROWS})
"""Adds the options of these names to a command, as `odesim.cli.options.options` does: of ROWS too."""
