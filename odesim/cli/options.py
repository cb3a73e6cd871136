"""Options of commands: their types, the words a shell completes, and the options of a run, from the table."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from odesim.base.errors import ParamError, no_such
from odesim.base.options import OPTIONS, Option

if TYPE_CHECKING:
    from odesim.symbolic import System

REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class RealKind(click.ParamType):
    """A finite number, above low where that is given (or equal to it where low is allowed)."""

    name = "number"

    def __init__(self, low: float | None = None, *, low_allowed: bool = False) -> None:
        self.low = low
        self.low_allowed = low_allowed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(value) if REAL.fullmatch(str(value)) else math.nan
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        if self.low is not None and (number < self.low or (number == self.low and not self.low_allowed)):
            self.fail(f"must be {'at least' if self.low_allowed else 'above'} {self.low:g}, not {value}", param, ctx)
        return number


class Count(click.ParamType):
    """A whole number, at least low and at most high; 1e6 is one."""

    name = "count"

    def __init__(self, low: int, high: int = 2**63 - 1) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        number = int(text) if re.fullmatch(r"[+-]?\d{1,30}", text, re.ASCII) else None
        if number is None and REAL.fullmatch(text) and float(text).is_integer():
            number = int(float(text))
        if number is None:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        if number < self.low:
            self.fail(f"must be at least {self.low}, not {text}", param, ctx)
        if number > self.high:
            self.fail(f"{text} is too large: at most {self.high}", param, ctx)
        return number


class OneOf(click.ParamType):
    """One word of a few; what: what such a word is called."""

    name = "choice"

    def __init__(self, what: str, *words: str) -> None:
        self.what, self.words = what, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.words:
            raise ParamError(no_such(self.what, str(value), self.words))
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


class ClusterKind(click.ParamType):
    """The address of a dask scheduler, or local:N."""

    name = "cluster"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from odesim.base.cluster import local_count

        local_count(str(value))
        return str(value)


class ModelKind(click.ParamType):
    """A model's name or a file; the shell completes both."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from odesim.inputs.registry import list_models

        names = [CompletionItem(name) for name in list_models() if name.startswith(incomplete)]
        return names or [CompletionItem(incomplete, type="file")]


Complete = Callable[[click.Context, click.Parameter, str], list[Any]]
Described = Iterator[tuple[str, str]]
Names = Callable[[click.Context], Described]


def completed(*kinds: str | Names, ending: str = "=") -> Complete:
    """A shell_complete function for names of these kinds, each with `ending`: a kind is a name in NAMED, or a function.

    It offers nothing where the model is a file, which would be executed, and where anything is wrong: a shell shows no errors.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        try:
            pairs = [pair for kind in kinds for pair in (NAMED[kind] if isinstance(kind, str) else kind)(ctx)]
        except Exception:  # a name that is not typed to its end, a package that is broken
            return []
        return [CompletionItem(f"{name}{ending}", help=words) for name, words in pairs if name.startswith(incomplete)]

    return complete


def argument_of(ctx: click.Context, name: str) -> str:
    """The argument of this name; click leaves it among the others where an option is not complete, as the last one here."""
    return str(ctx.params.get(name) or ctx.args[0])


def model_of(ctx: click.Context) -> "System":
    """The installed model whose name stands in the words before. Raises where there is none."""
    from odesim.inputs.registry import is_path, load_model

    name = str(ctx.params.get("first") or argument_of(ctx, "model"))
    if is_path(name):
        raise ValueError(name)
    return load_model(name)


def stored_attributes(ctx: click.Context) -> dict[str, Any]:
    """The attributes of the stored run of the command."""
    from odesim.store.schema import inspect_run

    return inspect_run(argument_of(ctx, "run")).attributes


def one_of(*known: str) -> Complete:
    """A shell_complete function for one of these words."""
    return lambda ctx, param, incomplete: [word for word in known if word.startswith(incomplete)]


NAMED: dict[str, Names] = {
    "params": lambda ctx: ((p.name, p.doc) for p in model_of(ctx).params),
    "states": lambda ctx: ((name, "a state") for name in model_of(ctx).states),
    "sizes": lambda ctx: ((name, "a size") for name in model_of(ctx).size_names),
    "observables": lambda ctx: ((name, "an observable") for name in model_of(ctx).observables),
    "stored": lambda ctx: (
        (name, meaning)
        for key, meaning in (("states", "a state"), ("observables", "an observable"))
        for name in stored_attributes(ctx).get(key, ())
    ),
    "varied": lambda ctx: (
        (name, "differs between members" * (name != "time")) for name in (*stored_attributes(ctx).get("labels", {}), "time")
    ),
}
"""{kind of names: (name, its meaning) of each}: of the model, of a stored run, and of what differs between a stored ensemble's members."""


Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)

# options that belong to the command line alone: files, pictures, what is printed
OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "file": ("--params", {
        "metavar": "FILE.toml", "type": PATH,
        "help": "Read tables [params], [sizes], [initial] and, above them, options from --span to --seed. "
        "The command line overrides the file."}),
    "cluster": ("--cluster", {
        "metavar": "ADDRESS", "type": ClusterKind(),
        "help": "Use the workers of a dask cluster: tcp://HOST:PORT, or local:N for N processes here."}),
    "out": ("--out", {"metavar": "RUN.zarr", "type": PATH, "help": "Store the run."}),
    "overwrite": ("--overwrite", {
        "is_flag": True, "help": "Replace an existing run or picture. (odesim always replaces a picture that it drew itself.)"}),
    "plot": ("--plot", {
        "metavar": "FILE.png", "type": PATH,
        "help": "Draw the run as png, pdf, svg or html (by the extension), in six panels at most without --all."}),
    "all": ("--all", {"is_flag": True, "help": "Draw all states and observables, not six panels."}),
    "model": ("--model", {
        "metavar": "FILE.py", "type": PATH,
        "help": "The model file of RUN; its sha256 must be the one that RUN stores. Without this option no file is executed."}),
    "as_json": ("--json", {"is_flag": True, "help": "Print the result as one JSON object."}),
    "quiet": ("--quiet", {"is_flag": True, "help": "Print no summary and no progress."}),
}  # fmt: skip
OF_RUN = "span steps save method step halvings rtol atol max_steps stop_at max_step first_step clock backend dtype strict seed"
"""The options of a run, in the order of help pages."""
THREADS = {"help": "Number of threads; default 1, for a training as before. The bits of an ensemble do not depend on it."}
"""Of commands that continue a run or compute it again."""


def kind(row: Option) -> click.ParamType | None:
    """The type by which click reads a text of this option; None for one that our own grammar reads later."""
    if row.reads == "number":
        return RealKind(row.low, low_allowed=row.low_allowed)
    return Count(int(row.low or 0)) if row.reads == "count" else None


def option_words(name: str, use: str) -> tuple[str, dict[str, Any]]:
    """The flag of an option of the table and what click is told of it. An option that is not given is None: then a file may have it."""
    row = OPTIONS[name]
    words: dict[str, Any] = {"is_flag": True} if row.reads == "flag" else {"metavar": row.metavar, "type": kind(row) or str}
    words |= {"multiple": True} if row.many else {"default": None}
    if row.words:
        words["shell_complete"] = one_of(*row.words)
    elif row.completes:
        names = [what for what in row.completes if what != "="]
        words["shell_complete"] = completed(*names, ending="=" if len(names) < len(row.completes) else "")
    return f"--{row.flag or name.replace('_', '-')}", {**words, "help": row.help if isinstance(row.help, str) else row.help[use]}


def options(names: str, use: str = "", own: Mapping[str, Any] = OWN, **changes: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Adds the options of these names to a command, in this order: rows of `own`, or of the table of options.

    use: of which the help is. changes {name: what is other here}, for click.
    """

    def with_options(command: Command) -> Command:
        for name in reversed(names.split()):
            flag, words = own[name] if name in own else option_words(name, use)
            command = click.option(flag, name, **{**words, **changes.get(name, {})})(command)
        return command

    return with_options
