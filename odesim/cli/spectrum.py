"""`odesim spectrum`: eigenvalues along a run, printed, stored, drawn."""

from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import RUN
from odesim.base.errors import counted, escaped
from odesim.cli.dynamics import OUT, OVERWRITE, PLOT, answer, split
from odesim.cli.options import Count, ModelKind, completed, options
from odesim.cli.tables import number_text, table

if TYPE_CHECKING:
    import xarray

ROWS = 8  # times in a table; --json and --out have all


@click.command("spectrum", short_help="Compute eigenvalues along a run: time scales, sharpness of a loss.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.option("--of", metavar="NAME", default="", help="The loss: an observable; default: that of a gradient flow, or `loss`.",
              shell_complete=completed("observables", ending=""))  # fmt: skip
@click.option("--most", metavar="K", type=Count(1), default=3, help="Keep the K largest eigenvalues of a Hessian; default 3.")
@options(
    "params sizes initial file span steps save method rtol seed out overwrite plot as_json quiet",
    RUN,
    save={"help": "Saved times: N evenly spaced (default 50), N geometrically spaced, or a list (a single time as T1,)."},
    out=OUT,
    overwrite=OVERWRITE,
    plot=PLOT,
)
def spectrum_command(model: str, of: str, most: int, **words: Any) -> int:
    """Compute the eigenvalues of the Jacobian along a run of MODEL, and those of the Hessian of its loss.

    Rates are real parts: a mode decays, or grows, by e in the time of 1 by
    its rate. Sharpness is the largest eigenvalue of the Hessian.
    """
    shown, request = split(words)

    def compute() -> "xarray.Dataset":
        from odesim.dynamics.spectrum import spectrum

        return spectrum(model, of=of, most=most, **request)

    return answer(model, compute, spectrum_text, shown)[1]


def spectrum_text(data: "xarray.Dataset", files: list[tuple[str, str]]) -> str:
    """Eigenvalues at some of the times as text in 80 columns."""
    import numpy as np

    about, count = data.attrs, data.sizes["time"]
    columns = {"t": data["time"].values}
    if "eigenvalue_real" in data:
        real, imaginary = data["eigenvalue_real"].values, data["eigenvalue_imag"].values
        what = "multiplier" if about["discrete"] else "rate"
        sizes = np.hypot(real, imaginary) if about["discrete"] else real
        columns |= {f"largest {what}": sizes[:, 0], f"least {what}": sizes[:, -1]}
    if "sharpness" in data:
        columns |= {"sharpness": data["sharpness"].values[:, 0], "lowest": data["lowest"].values}
    chosen = np.unique(np.linspace(0, count - 1, min(count, ROWS)).astype(int))
    rows = [tuple(number_text(float(column[k])) for column in columns.values()) for k in chosen]
    head = f"{escaped(about['model'], '')}: eigenvalues of {counted(about['spectrum'], 'state')} at {counted(count, 'time')}"
    notes = [("loss", about["loss"])] * bool(about["loss"]) + [("method", about["method"]), *files]
    return "\n".join([head, table(rows, tuple(columns)), table(notes)])
