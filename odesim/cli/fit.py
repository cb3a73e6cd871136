"""A model beside data: `odesim fit`."""

from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import RUN
from odesim.base.errors import ParamError, counted, escaped
from odesim.base.options import REST
from odesim.cli.dynamics import RESULT, SHOWN, answer
from odesim.cli.options import Count, ModelKind, RealKind, options
from odesim.cli.outcome import STOPPED
from odesim.cli.tables import number_text, table

if TYPE_CHECKING:
    import xarray


@click.command("fit", short_help="Fit parameters and initial values to data.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.argument("data", metavar="DATA.csv")
@click.option(
    "--free",
    metavar="NAME[=A:B],...",
    multiple=True,
    required=True,
    help="What is fitted: parameters, and states for their initial values.",
)
@click.option(
    "--map", "columns", metavar="NAME=COLUMN", multiple=True, help="The column of a state or observable, where it has another name."
)
@click.option("--time", metavar="COLUMN", default="", help="The column of times; default: t, time or step.")
@click.option("--sigma", metavar="S|NAME=S", multiple=True, help="Standard deviation of the data: a number, or a column that has it.")
@click.option("--starts", metavar="N", type=Count(1), default=4, help="Search from N places; default 4.")
@click.option("--level", metavar="P", type=RealKind(0.0), default=0.95, help="Level of the intervals; default 0.95.")
@options(
    "params sizes initial file span method rtol atol seed",
    RUN,
    rtol={"help": "Relative tolerance of the runs; default 1e-8."},
    atol={"help": "Absolute tolerance of the runs, of all states or of one; default 1e-10."},
)
@RESULT
def fit_command(model: str, data: str, free: tuple[str, ...], columns: tuple[str, ...], sigma: tuple[str, ...], **words: Any) -> int:
    """Fit parameters and initial values of MODEL to the columns of DATA, by least squares with exact derivatives.

    Columns are states and observables by name, entries of arrays as v[0]; an
    empty cell is no measurement. --set and --init give where the search
    begins. DATA may be csv, tsv, parquet, nc, npz, zarr, a stored run, or a
    folder of csv that W&B or TensorBoard exported.
    """
    from odesim.cli.arguments import once

    of_data = {name: words.pop(name) for name in ("time", "starts", "level")}
    deviations = ((name.strip() or REST, as_number(text)) for name, _, text in (part.rpartition("=") for part in sigma))
    of_data |= {"sigma": once("--sigma", deviations) or None, "columns": once("--map", (pair(text, "--map") for text in columns))}
    result, code = answer("fit.fit", fit_text, words, model, data, free=read_free(free), **of_data)
    return code if result.attrs["status"] == "ok" else STOPPED


def read_free(texts: tuple[str, ...]) -> dict[str, Any]:
    """{name: bounds, or None} of all NAME[=A:B],... Raises ParamError."""
    from odesim.cli.arguments import once
    from odesim.inputs.grammar import parse_numbers

    parts = (part.partition("=") for text in texts for part in text.split(","))
    ends = once("--free", ((name.strip(), bounds) for name, _, bounds in parts))
    return {name: tuple(parse_numbers(bounds.split(":"), f"the bounds of {name}")) if bounds else None for name, bounds in ends.items()}


def as_number(text: str) -> float | str:
    """A number, or the name of a column."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def pair(text: str, option: str) -> tuple[str, str]:
    """(name, column) of NAME=COLUMN. Raises ParamError."""
    name, sign, column = (part.strip() for part in text.partition("="))
    if not (name and sign and column):
        raise ParamError(f"{option} takes NAME=COLUMN, as in --map loss=train/loss, not {text!r}")
    return name, column


def fit_text(data: "xarray.Dataset", files: list[tuple[str, str]]) -> str:
    """Fitted numbers with their intervals as text in 80 columns, and how good the fit is."""
    import numpy as np

    about, bound = data.attrs, data.attrs["at_bound"].split()
    labels = [str(label) for label in data["free"].values]
    rows = []
    for k, label in enumerate(labels):
        value, error, low, high = (float(data[name].values[k]) for name in ("value", "error", "low", "high"))
        interval = (
            "undetermined" if np.isinf(error) else "not computed" if np.isnan(error) else f"{number_text(low)} to {number_text(high)}"
        )
        rows.append((label, number_text(value), "" if np.isnan(error) else f"{error:.2g}", "at its bound" if label in bound else interval))
    head = f"{escaped(about['model'], '')}: {counted(about['numbers'], 'number')} of data, {counted(len(labels), 'free number')}"
    parts = [head, table(rows[:SHOWN], ("", "value", "error", f"{about['level'] * 100:g} % interval"))]
    parts += [f"  {len(rows) - SHOWN} more"] * (len(rows) > SHOWN)
    size = number_text(about["deviation"]) + " sigma" * about["weighted"]
    quality = [("residuals", f"{size} in the root mean square, {about['degrees']} degrees of freedom")]
    pairs = np.triu(np.abs(data["correlation"].values), 1) if "correlation" in data else np.zeros(1)
    if len(labels) > 1 and np.nanmax(pairs) > 0:
        i, k = (int(place) for place in np.unravel_index(np.nanargmax(pairs), pairs.shape))
        quality.append(("correlation", f"{data['correlation'].values[i, k]:.3f} of {labels[i]} and {labels[k]}, the largest"))
    agreed, starts = about["agreed"], about["starts"]
    few = "; give more, or narrower bounds" * (agreed < starts and agreed <= max(1, starts // 4))
    quality.append(("starts", f"{agreed} of {starts} came to this fit{few}"))
    for name, words in (("undetermined", ""), ("unused", " (columns of other names)")):
        quality += [(name, about[name] + words)] * bool(about[name])
    quality += [("status", about["status"])] * (about["status"] != "ok")
    return "\n".join([*parts, table([*quality, *files])])
