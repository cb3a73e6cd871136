"""Models over ranges of numbers: `odesim sensitivity` and `screening`."""

import re
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
    required=True,
    help="States and observables at the end of a run, of arrays all entries or one (v[0]); t_end; EVENT_t, when an event first happens.",
    shell_complete=completed("states", "observables", ending=""),
)
COMMON = "params sizes initial file span steps method rtol seed events threads"
VARY: dict[str, Any] = {"metavar": "NAME=RANGE", "help": "Vary a parameter or initial value over this range.", "required": True}


@click.command("sensitivity", short_help="Find which numbers a result depends on: Sobol indices.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@options("vary", ENSEMBLE, vary=VARY)
@OF
@click.option("--samples", metavar="N", type=Count(2), default=1024, help="Points, a power of 2; N (numbers + 2) runs; default 1024.")
@options(COMMON, ENSEMBLE)
@RESULT
def sensitivity_command(model: str, of: str, samples: int, **words: Any) -> int:
    """Split the variance of a result of MODEL by the numbers that cause it.

    RANGE is uniform(a,b), loguniform(a,b) or normal(m,s); each entry of an
    array is a number of its own. `first` is what a number explains alone,
    `total` what would be left if all others were fixed.
    Derivatives at one place: `odesim integrate --sensitivity`.
    """
    return answer("global_sensitivity.sensitivity", sensitivity_text, words, model, of=names_of(of), samples=samples)[1]


@click.command("screening", short_help="Find which of many numbers matter at all, by few runs.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@options("vary", ENSEMBLE, vary=VARY)
@OF
@click.option("--paths", metavar="R", type=Count(2), default=20, help="Paths of R (numbers + 1) runs; default 20.")
@options(COMMON, ENSEMBLE)
@RESULT
def screening_command(model: str, of: str, paths: int, **words: Any) -> int:
    """Change the numbers of MODEL one after the other, as Morris does, and compare what each changes.

    RANGE is that of `odesim sensitivity`. `effect` is what moving a number over
    its whole range changes, by steps of two thirds of it, in the mean over
    paths; `size` is that without signs; `spread`, its standard deviation, is
    0 where it is the same everywhere.
    """
    return answer("global_sensitivity.screening", sensitivity_text, words, model, of=names_of(of), paths=paths)[1]


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
