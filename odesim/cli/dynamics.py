"""What a model does in the long run and along a run: `odesim rest`, `branch`, `lyapunov` and `spectrum`."""

import json
import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from odesim.base.backends import ENSEMBLE, RUN
from odesim.base.errors import ParamError, StoreError, counted, escaped, no_such
from odesim.base.options import IN_FILES
from odesim.cli.options import Count, ModelKind, completed, options
from odesim.cli.outcome import DONE, STOPPED, say
from odesim.cli.run import check_picture_place, draw
from odesim.cli.tables import Progress, echo, file_rows, number_text, table

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

ENTRIES = 5  # numbers of a state in a table
SHOWN = 20  # rest states in a table; --json and --out have all
RESULT = options(
    "out overwrite plot as_json quiet",
    out={"metavar": "FILE.nc", "help": "Store the result as netCDF."},
    overwrite={"help": "Replace an existing file or picture. (odesim always replaces a picture that it drew itself.)"},
    plot={"help": "Draw the result as png, pdf, svg or html (by the extension)."},
)
"""What becomes of a Dataset, which `answer` takes from the words."""


def answer(
    function: str, text: Callable[..., str], words: dict[str, Any], model: str, *arguments: Any, **more: Any
) -> tuple["xarray.Dataset", int]:
    """Computes, stores, draws and prints a Dataset; returns it with the exit code.

    function: MODULE.NAME in odesim.dynamics, which is called with the model, the arguments, what the words say of a run, and more.
    text(data, rows on its files): what is printed. words: those of the command, RESULT among them.
    """
    from odesim.plot.files import write_atomically
    from odesim.store.export import write_netcdf
    from odesim.store.paths import check_new_file

    words, request = split(words)
    out, plot = words["out"], words["plot"]
    if out and out.suffix != ".nc":
        raise StoreError(f"the result is a netCDF file: name it {out.with_suffix('.nc')}, not {out}")
    if out:
        check_new_file(out, overwrite=words["overwrite"])
    check_picture_place(out, plot, overwrite=words["overwrite"])
    module, _, name = function.rpartition(".")
    with Progress(model, False if words["quiet"] else None):
        data = getattr(import_module(f"odesim.dynamics.{module}"), name)(model, *arguments, **request, **more)
    if out:
        texts = {name: v.astype(object) for name, v in data.items() if v.dtype.kind == "U"}  # of a length of its own: so netCDF takes them
        write_atomically(out, lambda path: write_netcdf(data.assign(texts), path, out))

    def figure() -> "Figure":
        from odesim.plot.choice import Choice
        from odesim.plot.methods import draw_dataset

        return draw_dataset(data, Choice(), None)

    drawn, undrawn = draw(figure, plot)
    if undrawn:
        say(undrawn)
    if words["as_json"]:
        echo(json.dumps(as_object(data), allow_nan=False))
    elif not words["quiet"]:
        echo(text(data, file_rows(out, drawn)))
    return data, STOPPED if undrawn else DONE


def split(words: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what becomes of the result, what is computed), of the options of a command. Raises ParamError for another one in its file."""
    from odesim.cli.arguments import read_request

    shown = {name: words.pop(name) for name in ("out", "overwrite", "plot", "as_json", "quiet")}
    request = read_request(words)
    if beside := [name for name in request if name not in words]:
        known = sorted(name for name in words if name in IN_FILES)
        raise ParamError(no_such(f"option of odesim {click.get_current_context().info_name}", beside[0], known, str(words["file"])))
    return shown, request


def as_object(data: "xarray.Dataset") -> dict[str, Any]:
    """A Dataset as the object that --json prints: null for numbers that are not finite."""
    from odesim.store.plain import to_plain

    return {**to_plain(dict(data.attrs)), **{str(name): to_plain(v.values) for name, v in data.variables.items()}}


@click.command("rest", short_help="Find the rest states of a model and how stable they are.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@options("params sizes initial file span steps method rtol seed", RUN)
@options("vary grid zipped members design", ENSEMBLE)
@click.option("--up-to", "up_to", metavar="INDEX", default="", help="Count states that differ by the order along this index only as one.")
@RESULT
def rest_command(model: str, up_to: str, **words: Any) -> int:
    """Find the states of MODEL at which nothing changes, by Newton's method with the exact Jacobian.

    The search begins at the start, the end and the slowest states of a run, or
    at initial values of members: --vary 'v=uniform(-1,1)' --members 100.
    Invariants keep the value that they have at the start. `odesim ensemble
    --help` explains VALUE and POINTS.
    """
    data, code = answer("rest.rest", rest_text, words, model, up_to=up_to)
    return code if data.sizes["rest"] else STOPPED


def rest_text(data: "xarray.Dataset", files: list[tuple[str, str]]) -> str:
    """Rest states as text in 80 columns, and the starts that led to none."""
    import numpy as np

    about, count = data.attrs, data.sizes["rest"]
    head = f"{escaped(about['model'], '')}: {counted(count, 'rest state')} from {counted(about['starts'], 'start')}"
    loss = ["loss"] * ("loss" in data and data["loss"].ndim == 1)
    rows = []
    for k in range(min(count, SHOWN)):
        r = data.isel(rest=k)
        fastest = complex(r["eigenvalue_real"].values[0], r["eigenvalue_imag"].values[0]) if data.sizes["mode"] else 0j
        rate = "?" if np.isnan(fastest) else number_text(fastest.real) + (f" + {number_text(abs(fastest.imag))}i" if fastest.imag else "")
        numbers = np.concatenate([np.ravel(r[name].values) for name in about["rest_states"].split()])
        states = "  ".join(f"{x + 0.0:.3g}" for x in np.where(np.abs(numbers) < 1e-9 * np.max(np.abs(numbers)), 0.0, numbers)[:ENTRIES])
        states += f" ... {numbers[-1]:.3g}" * (len(numbers) > ENTRIES)
        rows.append(
            (
                str(int(r["times"])),
                str(r["stability"].values),
                number_text(float(r["index"])) if np.isfinite(r["index"]) else "?",
                rate,
                *(number_text(float(r[x])) for x in loss),
                states,
            )
        )
    header = (
        "starts",
        "stability",
        "index",
        "multiplier" if about["discrete"] else "fastest",
        *loss,
        f"state {', '.join(about['rest_states'].split())}",
    )
    notes = [(f"{counted(about[what], 'start')}", words) for what, words in MISSED.items() if about[what]]
    if count and data.sizes["mode"] < sum(data[name][0].size for name in about["rest_states"].split()):
        notes += [("eigenvalues", f"the {data.sizes['mode']} leading ones; ? is not known")]
    notes += [("not shown", f"{counted(count - SHOWN, 'rest state')} more; --json and --out have all")] * (count > SHOWN)
    return "\n".join(part for part in (head, table(rows, header) if rows else "", table([*notes, *files])) if part)


MISSED = {"failed": "led to no rest state", "outside": "led outside the sets that states assume"}


@click.command("lyapunov", short_help="Compute the Lyapunov exponents of a run.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@options("params sizes initial file span steps method rtol seed", RUN)
@RESULT
def lyapunov_command(model: str, **words: Any) -> int:
    """Compute how fast runs of MODEL that begin as neighbours part, in every direction.

    The first tenth of the span does not count: there the run comes to its
    attractor. The error is that of the mean, by 20 parts of the rest.
    """
    return answer("exponents.lyapunov", exponents_text, words, model)[1]


def exponents_text(data: "xarray.Dataset", files: list[tuple[str, str]]) -> str:
    """Exponents as text in 80 columns, with their sum and dimension."""
    about, end = data.attrs, float(data["time"].values[-1])
    pairs = zip(data["value"].values, data["error"].values, strict=True)
    rows = [(number_text(value), f"{error:.1g}") for value, error in pairs]
    head = f"{escaped(about['model'], '')}: {counted(len(rows), 'exponent')}, up to t = {number_text(end)}"
    rest = [("sum", number_text(float(data["total"]))), ("dimension", number_text(float(data["dimension"])))]
    rest += [("method", f"{about['method']}, {counted(about['pieces'], 'piece')}"), *files]
    return "\n".join(
        [head, table(rows[:SHOWN], ("exponent", "error")), *[f"  {len(rows) - SHOWN} more"] * (len(rows) > SHOWN), table(rest)]
    )


class BranchCommand(click.Command):
    """A command with a range A:B among its arguments; A may be below 0."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # click takes what begins with - for options: a blank before it, which means nothing in a number, keeps -3:3 from being one
        return super().parse_args(ctx, [f" {word}" if re.fullmatch(r"-\.?\d.*:.*", word) else word for word in args])


@click.command("branch", cls=BranchCommand, short_help="Follow rest states along one parameter.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.argument("name", metavar="PARAMETER")
@click.argument("range_", metavar="A:B")
@options("params sizes initial file method rtol seed", RUN)
@click.option("--up-to", "up_to", metavar="INDEX", default="", help="Follow branches that differ by the order along this index only once.")
@RESULT
def branch_command(model: str, name: str, range_: str, up_to: str, **words: Any) -> int:
    """Follow the rest states of MODEL along PARAMETER from A to B, through folds and onto the branches that cross.

    It starts where a run with PARAMETER = A comes to rest; A may be the
    larger one. An entry of an array is a parameter too: mu[0]. The table
    has the share of the points of a branch that are stable. MODEL is no
    Map: its rest states are those of `odesim rest`.
    """
    from odesim.inputs.grammar import parse_numbers

    range_ = range_.strip()
    ends = parse_numbers(range_.split(":"), f"the range of {name}")
    if len(ends) != 2:
        raise ParamError(f"the range of {name} is A:B, as in 0:2, not {range_!r}")
    return answer("branch.branch", branch_text, words, model, name, (ends[0], ends[1]), up_to=up_to)[1]


def orbit_text(lyapunov: float, side: float) -> str:
    """Where the orbit of a Hopf point is, and whether it attracts."""
    return f", orbit {'above' if side > 0 else 'below'}, {'attracts' if lyapunov < 0 else 'repels'}" if side in (1, -1) else ""


def branch_text(data: "xarray.Dataset", files: list[tuple[str, str]]) -> str:
    """Branches and their special points as text in 80 columns."""
    import numpy as np

    name, of, x = data.attrs["parameter"], data["branch"].values, data[data.attrs["parameter"]].values
    numbers = np.unique(of)
    rows = []
    for k in numbers[:SHOWN]:
        grow = data["growing"].values[of == k]
        span = f"{number_text(x[of == k].min())} to {number_text(x[of == k].max())}"
        rows.append((str(k), str(len(grow)), span, f"{np.mean(grow == 0) * 100:.0f} %"))
    head = f"{escaped(data.attrs['model'], '')}: {len(numbers)} {'branch' if len(numbers) == 1 else 'branches'} along {name}"
    parts = [head, table(rows, ("branch", "points", name, "stable points"))]
    if data.sizes["special"]:
        keys = ("special_branch", "kind", f"special_{name}", "frequency", "lyapunov", "side")
        specials = data[[*keys]].to_dict(data="list")["data_vars"]
        points = [
            (str(k), kind, f"{at:.9g}", f"frequency {f:.6g}" + orbit_text(size, side) if f else "")
            for k, kind, at, f, size, side in zip(*(specials[key]["data"] for key in keys), strict=True)
        ]
        parts.append(table(points[:SHOWN], ("branch", "point", name, "")))
    return "\n".join([*parts, *([table(files)] if files else [])])


TIMES = 8  # times in a table; --json and --out have all


@click.command("spectrum", short_help="Compute eigenvalues along a run: time scales, sharpness of a loss.")
@click.argument("model", metavar="MODEL|FILE.py", type=ModelKind())
@click.option("--of", metavar="NAME", default="", help="The loss: an observable; default: that of a gradient flow, or `loss`.",
              shell_complete=completed("observables", ending=""))  # fmt: skip
@click.option("--most", metavar="K", type=Count(1), default=3, help="Keep the K largest eigenvalues of a Hessian; default 3.")
@options(
    "params sizes initial file span steps save method rtol seed",
    RUN,
    save={"help": "Saved times: N evenly spaced (default 50), N geometrically spaced, or a list (a single time as T1,)."},
)
@RESULT
def spectrum_command(model: str, of: str, most: int, **words: Any) -> int:
    """Compute the eigenvalues of the Jacobian along a run of MODEL, and those of the Hessian of its loss.

    Rates are real parts: a mode decays, or grows, by a factor e in a time
    of 1/rate. Sharpness is the largest eigenvalue of the Hessian.
    """
    return answer("spectrum.spectrum", spectrum_text, words, model, of=of, most=most)[1]


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
    chosen = np.unique(np.linspace(0, count - 1, min(count, TIMES)).astype(int))
    rows = [tuple(number_text(float(column[k])) for column in columns.values()) for k in chosen]
    head = f"{escaped(about['model'], '')}: eigenvalues of {counted(about['spectrum'], 'state')} at {counted(count, 'time')}"
    notes = [("loss", about["loss"])] * bool(about["loss"]) + [("method", about["method"]), *files]
    return "\n".join([head, table(rows, tuple(columns)), table(notes)])
