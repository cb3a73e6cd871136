"""Options of the lab's commands: settings, learning rates and seeds read from text, and names that the shell completes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.base.errors import ParamError, no_such
from odesim.cli.arguments import once
from odesim.cli.options import Described, argument_of
from odesim.inputs.grammar import device_sentence, parse_number, parse_value, show_text

if TYPE_CHECKING:
    from odesim.lab.training.task import Model, Setting

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
    pairs = (assignment(text, "--lr", "GROUP=RATE") for text in texts)
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


# Shell completion: names of settings, groups of parameters, observables, recipes and claims.


def settings_names(ctx: click.Context) -> Described:
    """The settings of the task, with their meaning."""
    from odesim.lab.tasks import load_task

    return ((setting.name, setting.doc) for setting in load_task(argument_of(ctx, "task")).settings)


def groups_names(ctx: click.Context) -> Described:
    """The groups of parameters of the task's model, each of which has a learning rate."""
    return ((name, "a group of parameters") for name in sorted(set(default_model(ctx).groups.values())))


def recorded_names(ctx: click.Context) -> Described:
    """The observables of the task."""
    return ((observable.name, "an observable") for observable in default_model(ctx).observables)


def default_model(ctx: click.Context) -> "Model":
    """The model of the task with its default settings and one seed."""
    from odesim.lab.tasks import load_task

    task = load_task(argument_of(ctx, "task"))
    return task.make({setting.name: setting.default for setting in task.settings}, seeds=(0,)).model


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
