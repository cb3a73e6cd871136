"""The options of a run on the command line: one row a field of RunOptions, then span, steps of a Map and saved times."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from odesim.base.backends import BACKENDS, DTYPES, ENSEMBLE, EXPLICIT, RUN, STIFF, backends_for, find_backend
from odesim.base.options import CLOCKS, RunOptions
from odesim.cli.options import Count, RealKind, words

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
