"""Models over ranges of numbers: `odesim sensitivity` and `screening`."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import ENSEMBLE
from odesim.base.errors import counted, escaped
from odesim.cli.dynamics import RESULT, SHOWN, answer
from odesim.cli.options import Count, ModelKind, completed, options
from odesim.cli.tables import number_text, table

if TYPE_CHECKING:
    import xarray


OF = click.option(
    "--of",
    metavar="NAME[,NAME]",
    default="",
    help="Required: states and observables at the end of a run, of arrays all entries or one (v[0]); t_end; EVENT_t, when an event first "
    "happens.",
    shell_complete=completed("states", "observables", ending=""),
)
COMMON = "params sizes initial file span steps method rtol seed events threads"
VARY: dict[str, Any] = {"metavar": "NAME=RANGE", "help": "Required: vary a parameter or initial value over this range."}


def over_ranges(name: str, short_help: str, count: str, default: int, help: str) -> Callable[[Callable[[], None]], click.Command]:
    """A command of the function `name` of odesim.dynamics.global_sensitivity, explained by what is decorated; count: its number of runs."""

    def decorate(text: Callable[[], None]) -> click.Command:
        def command(model: str, of: str, **words: Any) -> int:
            number = {count: words.pop(count)}
            return answer(f"global_sensitivity.{name}", sensitivity_text, words, model, of=names_of(of), **number)[1]

        command.__doc__ = text.__doc__
        runs = click.option(f"--{count}", metavar="N", type=Count(2), default=default, help=f"{help}; default {default}.")
        model = click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
        for option in (RESULT, options(COMMON, ENSEMBLE), runs, OF, options("vary", ENSEMBLE, vary=VARY), model):
            command = option(command)
        return click.command(name, short_help=short_help)(command)

    return decorate


@over_ranges(
    "sensitivity", "Find which numbers a result depends on: Sobol indices.", "samples", 1024, "Points, a power of 2; N (numbers + 2) runs"
)
def sensitivity_command() -> None:
    """Split the variance of a result of MODEL by the numbers that cause it.

    RANGE is uniform(a,b), loguniform(a,b) or normal(m,s); each entry of an
    array is a number of its own. `first` is what a number explains alone,
    `total` what would be left if all others were fixed.
    Derivatives at one place: `odesim integrate --sensitivity`.
    """


@over_ranges("screening", "Find which of many numbers matter at all, by few runs.", "paths", 20, "Paths of N (numbers + 1) runs")
def screening_command() -> None:
    """Change the numbers of MODEL one after the other, as Morris does, and compare what each changes.

    RANGE is that of `odesim sensitivity`. `effect` is what moving a number over
    its whole range changes, by steps of two thirds of it, in the mean over
    paths; `size` is that without signs; `spread`, its standard deviation, is
    0 where it is the same everywhere.
    """


def names_of(text: str) -> list[str]:
    """The names in NAME,NAME, with commas inside brackets left where they are."""
    return [name.strip() for name in re.split(r",(?![^\[]*\])", text) if name.strip()]


LITTLE = 1e-4
COLUMNS = {"sobol": ("total", "total_error", "first", "first_error"), "morris": ("size", "size_error", "effect", "spread")}


def sensitivity_text(data: "xarray.Dataset", files: list[tuple[str, str]]) -> str:
    """Indices of each quantity as text in 80 columns, the largest first."""
    import numpy as np

    about = data.attrs
    names = COLUMNS[about["sensitivity"]]
    parts = [f"{escaped(about['model'], '')}: {counted(data.sizes['factor'], 'number')}, {counted(about['runs'], 'run')}"]
    for k in range(min(data.sizes["quantity"], SHOWN)):
        one = data.isel(quantity=k)
        of = escaped(str(one["quantity"].values), "")
        parts.append(f"{of}: mean {number_text(float(one['mean']))}, standard deviation {float(one['deviation']):.3g}")
        columns = {name: one[name].values for name in names}
        if np.isnan(columns[names[0]]).all():
            parts.append("  varies by no more than the errors of the runs")
            continue
        order = np.argsort(-columns[names[0]], kind="stable")
        matter = int(np.sum(columns[names[0]] >= LITTLE * np.max(columns[names[0]])))
        digits = {name: 2 if name.endswith("error") else 4 for name in names}
        rows = [
            (str(one["factor"].values[i]), *(f"{columns[name][i] + 0.0:.{digits[name]}g}" for name in names))
            for i in order[: min(SHOWN, matter)]
        ]
        parts.append(table(rows, ("", *("error" if name.endswith("error") else name for name in names))))
        parts += [f"  {matter - SHOWN} more; --json and --out have all"] * (matter > SHOWN)
        parts += [f"  {counted(len(order) - matter, 'number')} with less than {LITTLE:g} of the largest"] * (matter < len(order))
    parts += [f"{data.sizes['quantity'] - SHOWN} more quantities; --json and --out have all"] * (data.sizes["quantity"] > SHOWN)
    return "\n".join([*parts, table([("ranges", about["ranges"]), *files])])
