"""`odesim export`: a stored run as one file, or a model as a document or as code."""

import json
from pathlib import Path
from typing import Any

import click

from odesim.base.backends import RUN
from odesim.base.errors import ParamError
from odesim.cli.options import PATH, OneOf, RunPlace, options
from odesim.cli.stored import beside
from odesim.cli.tables import Progress, echo

OF_RUNS = ("csv", "nc", "parquet")
OF_MODELS = ("json", "numpy", "jax", "c")
NUMBERS = {"params": "--set", "sizes": "--size", "initial": "--init", "span": "--span"}


@click.command("export", short_help="Write a stored run as a table, or a model as a document or code.")
@click.argument("what", metavar="RUN|MODEL")
@click.option("--to", "form", metavar="csv|nc|parquet|json|numpy|jax|c", type=OneOf("format", *OF_RUNS, *OF_MODELS),
              help="The format; default: by --out.")  # fmt: skip
@options("params sizes initial span", RUN)
@click.option("--out", metavar="FILE", type=PATH, help="The file to write; default: RUN.csv, RUN.nc, ...; a model is printed.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def export_command(what: str, form: str | None, out: Path | None, overwrite: bool, **numbers: Any) -> None:
    """Write RUN as one file, or MODEL as text that needs no odesim.

    \b
    csv  One line per saved time: t, v[0], v[1], ..., V[0][1], ...
         Numbers have all their digits. A text that a spreadsheet would
         execute starts with '.
         Training: the first index is the seed; arrays without times are
         left out. Ensemble: one line per member and time, for the members
         that were begun, with what varies; how each of them ended (t_end,
         steps, method) is in nc alone.
    nc   netCDF 3, with all arrays and attributes of RUN. Parameters and
         initial values are params_mu, initial_v, ...; each variable has
         an attribute `coordinates`.
    parquet
         The table of csv with typed columns; needs pyarrow.
    json MODEL as a document that odesim.from_json, `odesim integrate
         FILE.json` and other languages read. Nothing in it is executed.
    numpy, jax
         A module with right_hand_side(t, state, parameters), observables.
    c    A file of C11 with right_hand_side(t, state, rates, parameters).
         --set, --size, --init and --span give these three other numbers.
    """
    form = chosen_format(form, out)
    flags = [NUMBERS[name] for name, value in numbers.items() if value]
    if flags and form not in OF_MODELS[1:]:
        raise ParamError(f"{flags[0]} is for the formats {', '.join(OF_MODELS[1:])}, not {form}")
    if form in OF_RUNS:
        export_stored(RunPlace().convert(what, None, None), form, out, overwrite)
    else:
        export_model(what, form, out, overwrite, numbers)


def export_stored(run: Path, form: str, out: Path | None, overwrite: bool) -> None:
    """Writes a stored run as one file."""
    from odesim.store import export_run
    from odesim.store.schema import run_kind

    run_kind(run)
    echo(f"written to {export_run(run, form, out or beside(run, f'.{form}'), overwrite=overwrite)}")


def export_model(model: str, form: str, out: Path | None, overwrite: bool, numbers: dict[str, Any]) -> None:
    """Writes or prints a model as text."""
    from odesim.api.export import to_code, to_json
    from odesim.cli.arguments import read_request
    from odesim.plot.files import write_atomically
    from odesim.store.paths import check_new_file

    if out:
        check_new_file(out, overwrite=overwrite)
    with Progress(model, None):
        if form == "json":
            text = json.dumps(to_json(model), indent=1) + "\n"
        else:
            text = to_code(model, form, **read_request({**numbers, "file": None}))
    if not out:
        return echo(text.removesuffix("\n"))
    write_atomically(out, lambda path: path.write_text(text, encoding="utf-8"))
    echo(f"written to {out}")


def chosen_format(form: str | None, out: Path | None) -> str:
    """The format of the export: the one given, or that of the file's extension. Raises UsageError if there is none, or if they differ."""
    ending = out.suffix[1:].lower() if out else ""
    known = (*OF_RUNS, "json", "c")
    if form is None and ending not in known:
        wrong = f", not {str(out)!r}" if out else ""
        raise click.UsageError(
            f"export needs --to {'|'.join((*OF_RUNS, *OF_MODELS))}, or --out FILE with one of the extensions {', '.join(known)}{wrong}",
            click.get_current_context(),
        )
    if form is not None and ending in known and ending != form:
        raise click.UsageError(f"--to is {form}, and --out is a file of {ending}: choose one", click.get_current_context())
    return form or ending
