"""`odesim figure`: computes the papers' figures and compares them with published or theoretical numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odesim.cli.options import CLUSTER, Figure
from odesim.cli.tables import echo

if TYPE_CHECKING:
    from odesim.plot.figures import FigureRun

ALL = "all"


@click.command("figure", short_help="Make a paper's figure and check its numbers.")
@click.argument("name", metavar="[NAME|all]", required=False, type=Figure())
@click.option("--fast", is_flag=True, help="Compute fewer points; the features are the same.")
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), default=Path(), help="Folder for the files; default: the current one."
)
@click.option(
    "--format", "formats", metavar="png,pdf", default="png", help="Format of the picture: png, pdf, svg, or several; default png."
)
@CLUSTER
def figure_command(name: str | None, fast: bool, out: Path, formats: str, cluster: str | None) -> int:
    """Compute figure NAME, or all figures. Without a name, list them.

    This writes the picture, NAME.nc (data) and NAME.json (parameters, versions, features), and replaces what odesim wrote there before.
    It prints each feature (a number that the figure shows) as measured, beside its target. Targets are published, follow from theory, or
    come from a script that follows the code of the paper. The exit code is 3 if a feature is off its target.

    On a cluster each figure is a task, and they are printed as they come.
    """
    from odesim.api.cluster import run_figures
    from odesim.base.cluster import connected
    from odesim.cli.outcome import DONE, STOPPED, say
    from odesim.cli.tables import wrap_paragraph
    from odesim.plot.figures import list_figures, load_figure

    if name is None:
        for found in list_figures():
            first = (load_figure(found).__doc__ or "").strip().partition("\n")[0]
            echo(f"{found}\n{wrap_paragraph(first, '  ')}")
        return DONE
    wanted = tuple(part.strip().lower() for part in formats.split(","))
    code = DONE
    names = list_figures() if name == ALL else [name]
    if name != ALL:
        load_figure(name)  # a wrong name starts no cluster
    with connected(cluster) as workers:
        for run in run_figures(names, fast=fast, out=out, formats=wanted, cluster=workers):
            echo(features_text(run))
            if not run.passed:
                off = [feature.name for feature in run.features if not feature.passed]
                say(f"{run.name}: {len(off)} of {len(run.features)} features are off their target: {', '.join(off)}")
                code = STOPPED
    return code


def features_text(run: "FigureRun") -> str:
    """The features of a figure with their targets, and the files written."""
    from odesim.cli.tables import table, wrap_paragraph

    rows = [
        ("ok" if f.passed else "OFF", digits(f.measured), digits(f.target), f"{f.tolerance:.2g}", f.origin, f.name) for f in run.features
    ]
    body = table(rows, ("", "measured", "target", "tolerance", "target from", "feature"), right=(1, 2, 3))
    return "\n".join([run.name, body, wrap_paragraph("written: " + ", ".join(map(str, run.files)), "  ")])


def digits(value: Any) -> str:
    """A number with seven digits, as many as published ones have."""
    return f"{float(value):.7g}"
