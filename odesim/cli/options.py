"""Options of commands: their types, the words a shell completes, and the options of a run, from the table."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odesim.base.backends import BACKENDS, DTYPES, ENSEMBLE, EXPLICIT, RUN, STIFF, backends_for, find_backend
from odesim.base.run_options import CLOCKS, RunOptions

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
    """A whole number, at least low; 1e6 is one."""

    name = "count"

    def __init__(self, low: int) -> None:
        self.low = low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        number = int(text) if re.fullmatch(r"[+-]?\d{1,30}", text, re.ASCII) else None
        if number is None and REAL.fullmatch(text) and float(text).is_integer():
            number = int(float(text))
        if number is None:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        if number < self.low:
            self.fail(f"must be at least {self.low}, not {text}", param, ctx)
        if number >= 2**63:
            self.fail(f"{text} is too large", param, ctx)
        return number


class OneOf(click.ParamType):
    """One word of a few; what: what such a word is called."""

    name = "choice"

    def __init__(self, what: str, *words: str) -> None:
        self.what, self.words = what, words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from odesim.base.errors import ParamError, no_such

        if value not in self.words:
            raise ParamError(no_such(self.what, str(value), self.words))
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


class RunPlace(click.Path):
    """The folder of a run, or its URL such as s3://bucket/run.zarr."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "://" not in str(value):
            return super().convert(value, param, ctx)
        from odesim.store.remote import as_place

        return as_place(str(value))


class ClusterKind(click.ParamType):
    """The address of a dask scheduler, or local:N."""

    name = "cluster"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from odesim.base.cluster import local_count

        local_count(str(value))
        return str(value)


CLUSTER = click.option(
    "--cluster",
    metavar="ADDRESS",
    type=ClusterKind(),
    help="Use the workers of a dask cluster: tcp://HOST:PORT, or local:N for N processes here.",
)


class ModelKind(click.ParamType):
    """A model's name or a file; the shell completes both."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from odesim.inputs.registry import list_models

        found = [CompletionItem(name) for name in list_models() if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]


class Figure(ModelKind):
    """A figure's name; the shell completes it."""

    name = "figure"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        from odesim.plot.figures import list_figures

        return [CompletionItem(name) for name in ["all", *list_figures()] if name.startswith(incomplete)]


Complete = Callable[[click.Context, click.Parameter, str], list[Any]]
Described = Iterator[tuple[str, str]]


def completed(*kinds: str, ending: str = "=") -> Complete:
    """A shell_complete function for names of these kinds, each with `ending`: params, states, sizes, observables, settings.

    It offers nothing where the model is a file, which would be executed, and where anything is wrong: a shell shows no errors.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        try:
            found = [pair for kind in kinds for pair in NAMED[kind](ctx)]
        except Exception:  # a name that is not typed to its end, a package that is broken
            return []
        return [CompletionItem(f"{name}{ending}", help=words) for name, words in found if name.startswith(incomplete)]

    return complete


def given(ctx: click.Context, name: str) -> str:
    """The argument of this name; click leaves it among the others where an option is not complete, as the last one here."""
    return str(ctx.params.get(name) or ctx.args[0])


def model_of(ctx: click.Context) -> "System":
    """The installed model whose name stands in the words before. Raises where there is none."""
    from odesim.inputs.registry import is_path, load_model

    name = str(ctx.params.get("first") or given(ctx, "model"))
    if is_path(name):
        raise ValueError(name)
    return load_model(name)


def params(ctx: click.Context) -> Described:
    """The parameters of the model, with their meaning."""
    return ((p.name, p.doc) for p in model_of(ctx).params)


def states(ctx: click.Context) -> Described:
    """The states of the model, with their meaning."""
    return ((name, "a state") for name in model_of(ctx).states)


def sizes(ctx: click.Context) -> Described:
    """The sizes of the model, with their meaning."""
    return ((name, "a size") for name in model_of(ctx).size_names)


def observables(ctx: click.Context) -> Described:
    """The observables of the model, with their meaning."""
    return ((name, "an observable") for name in model_of(ctx).observables)


def settings(ctx: click.Context) -> Described:
    """The settings of the task, with their meaning."""
    from odesim.reference.tasks import load_task

    return ((setting.name, setting.doc) for setting in load_task(given(ctx, "task")).settings)


def groups(ctx: click.Context) -> Described:
    """The groups of parameters of the task's model, each of which has a learning rate."""
    return ((name, "a group of parameters") for name in sorted(set(by_default(ctx).model.groups.values())))


def recorded(ctx: click.Context) -> Described:
    """The observables of the task."""
    return ((observable.name, "an observable") for observable in by_default(ctx).model.observables)


def by_default(ctx: click.Context) -> Any:
    """The task with its default settings and one seed."""
    from odesim.reference.tasks import load_task

    task = load_task(given(ctx, "task"))
    return task.make({setting.name: setting.default for setting in task.settings}, seeds=(0,))


def recipes(ctx: click.Context) -> Described:
    """The stored comparisons, with what they say."""
    from odesim.comparison.recipes import RECIPES

    return ((name, recipe.doc) for name, recipe in RECIPES.items())


def stored(ctx: click.Context) -> Described:
    """The states and observables of a stored run."""
    said = stored_attributes(ctx)
    return ((name, kind) for key, kind in (("states", "a state"), ("observables", "an observable")) for name in said.get(key, ()))


def varied(ctx: click.Context) -> Described:
    """Names of the numbers that differ between the members of a stored ensemble, and time."""
    return ((name, "differs between members" * (name != "time")) for name in (*stored_attributes(ctx).get("labels", {}), "time"))


def stored_attributes(ctx: click.Context) -> dict[str, Any]:
    """The attributes of the stored run of the command."""
    from odesim.store.inspected import inspect_run

    return inspect_run(given(ctx, "run")).attributes


def claims(ctx: click.Context) -> Described:
    """Claims, and the models and families that have some."""
    from odesim.claims.ledger import choose_claims

    every = choose_claims(None, slow=True)
    groups = dict.fromkeys(name for claim in every for name in (claim.name.partition(".")[0], *claim.models))
    return iter([*((name, "all its claims") for name in groups), *((claim.name, claim.printed.text) for claim in every)])


def words(*known: str) -> Complete:
    """A shell_complete function for one of these words."""
    return lambda ctx, param, incomplete: [word for word in known if word.startswith(incomplete)]


NAMED: dict[str, Callable[[click.Context], Described]] = {
    "params": params, "states": states, "sizes": sizes, "observables": observables, "settings": settings, "groups": groups,
    "stored": stored, "varied": varied, "claims": claims, "recorded": recorded, "recipes": recipes,
}  # fmt: skip


Command = TypeVar("Command", bound=Callable[..., Any])
DEFAULT = RunOptions()


def default_text(number: float) -> str:
    """1e-06 as `1e-6`."""
    return f"{number:g}".replace("e-0", "e-") if isinstance(number, float) else str(number)


def backend_help(use: str, what: str = "") -> str:
    """The help of --backend. what: the use, if it is not the run."""
    first, *others = backends_for(use)
    words = [f"{first} (default): {find_backend(first).uses[use].summary}"]
    return what + "; ".join([*words, *(f"{name}: {find_backend(name).uses[use].summary}" for name in others)]) + "."


@dataclass(frozen=True)
class Row:
    """An option: its metavar and type, its help for each use, and the words that it takes."""

    metavar: str
    kind: click.ParamType | type
    help: str | dict[str, str]
    words: tuple[str, ...] = ()

    def text(self, use: str) -> str:
        """The help text for this use."""
        return self.help if isinstance(self.help, str) else self.help[use]


METHODS = f"{', '.join(EXPLICIT)}; for stiff problems {', '.join(STIFF)}."
ROWS: dict[str, Row] = {
    "span": Row("T0:T1", str, "Start and end time; default: those of the model."),
    "steps": Row("N", Count(1), "Number of updates of a Map, whose times are whole numbers."),
    "save": Row(
        "N|log:N|T1,T2,...",
        str,
        {
            RUN: "Saved times: N evenly spaced (default 200), N geometrically spaced, or a list (a single time as T1,).",
            ENSEMBLE: "Saved times: N evenly spaced, N geometrically spaced, or a list; default: the end.",
        },
    ),
    "method": Row(
        "NAME",
        str,
        {
            RUN: f"auto (default: the cheapest, found by short trials), {METHODS}",
            ENSEMBLE: f"auto (default: chosen for each member), {METHODS}",
        },
        ("auto", *EXPLICIT, *STIFF),
    ),
    "step": Row("H", RealKind(0), "Use a fixed step H; possible with every method."),
    "rtol": Row("R", RealKind(0), f"Relative tolerance; default {default_text(DEFAULT.rtol)}."),
    "atol": Row("A", RealKind(0, low_allowed=True), f"Absolute tolerance; default {default_text(DEFAULT.atol)}."),
    "max_steps": Row(
        "N",
        Count(1),
        {RUN: f"Stop after N steps; default {DEFAULT.max_steps}.", ENSEMBLE: f"End a member after N steps; default {DEFAULT.max_steps}."},
    ),
    "stop_at": Row("T1,T2,...", str, "End a step at each of these times. Jumps that the model declares are found without this."),
    "max_step": Row("H", RealKind(0), "Make no step longer than H."),
    "clock": Row("NAME", str, f"{CLOCKS[0]} (default), or {CLOCKS[1]}: integrates up to a blow-up and finds its time.", CLOCKS),
    "backend": Row("NAME", str, {use: backend_help(use) for use in (RUN, ENSEMBLE)}, tuple(BACKENDS)),
    "dtype": Row("NAME", str, f"{DTYPES[0]} (default) or {DTYPES[1]}.", DTYPES),
    "strict": Row(
        "",
        bool,
        {
            RUN: "Give the same bits on every machine (no fused multiply-adds).",
            ENSEMBLE: "Give the same bits on every machine, those of `odesim integrate --strict`.",
        },
    ),
    "seed": Row("S", Count(0), {RUN: "Seed of uniform() and normal(); default 0.", ENSEMBLE: "Seed of all random numbers; default 0."}),
}


def run_options(use: str) -> Callable[[Command], Command]:
    """Adds the options of the table to a command, in its order; an option that is not given is None."""

    def with_options(command: Command) -> Command:
        for name, row in reversed(ROWS.items()):
            flag: dict[str, Any] = {"is_flag": True} if row.kind is bool else {"metavar": row.metavar, "type": row.kind}
            flag |= {"shell_complete": words(*row.words)} if row.words else {}
            command = click.option(f"--{name.replace('_', '-')}", name, default=None, help=row.text(use), **flag)(command)
        return command

    return with_options
