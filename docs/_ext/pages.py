"""Pages that are made from the code before each build: models, figures, notebooks, gallery. They lie in `docs/generated`.

A quick build (`sphinx-build -t quick`) runs nothing: the pages have their text, and a blank in the place of each picture.
"""

import hashlib
import json
import re
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from markdown import bibliography, formulas, methods_table, plain
from sphinx.application import Sphinx

import odesim
from odesim.cli.about import notebook_of, scripts, title_of, usable_cores
from odesim.display.document import latex_document
from odesim.lab.claims import all_claims
from odesim.lab.output import claim_table
from odesim.plot.figures import list_figures, load_figure, run_figure

ROOT = Path(__file__).parents[2]
Item = tuple[str, str, str]  # of the gallery: page, picture, title
BLANK = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==")
"""A png of one white pixel."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Writes the pages as soon as the configuration is read."""
    app.connect("config-inited", lambda app, config: write_pages(Path(app.srcdir) / "generated", run="quick" not in app.tags))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(folder: Path, run: bool) -> None:
    """Writes all pages below folder, a process on each core; what has not changed is left as it is."""
    for name in ("models", "figures", "notebooks", "pictures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    if run:
        remove_blanks(folder / "pictures")
    with ProcessPoolExecutor(usable_cores(), get_context("spawn")) as pool:
        notebooks = [pool.submit(write_notebook, folder, name, path, run) for name, path in scripts().items()]
        figures = [pool.submit(write_figure, folder, name, run) for name in list_figures()]
        models = [pool.submit(write_family, folder, *family, run) for family in families()]
        parts = {
            "Notebooks": [one.result() for one in notebooks],
            "Figures of the papers": [one.result() for one in figures],
            "Models": [item for one in models for item in one.result()],
        }
    write(folder / "methods.txt", methods_table())
    write(folder / "gallery.md", "# Gallery\n\n" + "\n\n".join(f"## {title}\n\n{cards(items)}" for title, items in parts.items()))


def write(path: Path, text: str) -> None:
    """Writes text, unless the file holds it already."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def cards(items: list[Item]) -> str:
    """A grid of thumbnails that link to their pages."""
    grid = ["::::{grid} 1 2 2 3", ":gutter: 2", ""]
    for page, picture, title in items:
        grid += [f":::{{grid-item-card}} {title}", f":img-top: pictures/{picture}", f":link: {page}", ":link-type: doc", ":::", ""]
    return "\n".join([*grid, "::::"])


def blank(path: Path) -> None:
    """Puts one pixel in the place of a picture that is not there."""
    if not path.exists():
        path.write_bytes(BLANK)


def remove_blanks(folder: Path) -> None:
    """Makes room for the pictures that a quick build left out: odesim draws over no file that it has not drawn."""
    for path in folder.glob("*.png"):
        if path.read_bytes() == BLANK:
            path.unlink()


def write_notebook(folder: Path, name: str, script: Path, run: bool) -> Item:
    """Executes a notebook and writes it with its outputs; its first picture is the thumbnail. What is there already is kept."""
    import nbformat
    from nbclient import NotebookClient

    text = script.read_text(encoding="utf-8")
    key = hashlib.sha256(f"{odesim.__version__}{text}".encode()).hexdigest()
    page, picture = folder / "notebooks" / f"{script.stem}.ipynb", f"notebook_{name}.png"
    if not page.exists() or json.loads(page.read_text(encoding="utf-8"))["metadata"].get("key") != key:
        notebook = nbformat.from_dict(notebook_of(text))
        if run:
            notebook.metadata["key"] = key
            with tempfile.TemporaryDirectory() as away:
                NotebookClient(notebook, timeout=1800, startup_timeout=600, resources={"metadata": {"path": away}}).execute()
            (folder / "pictures" / picture).write_bytes(first_picture(notebook))
        nbformat.write(notebook, page)
    blank(folder / "pictures" / picture)
    return f"notebooks/{script.stem}", picture, title_of(text)


def first_picture(notebook: Any) -> bytes:
    """The first png among the outputs."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", ()))
    return b64decode(next(output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})))


def write_figure(folder: Path, name: str, run: bool) -> Item:
    """A page for a figure: the picture, what it stands beside, and its numbers with their targets."""
    title, _, text = (load_figure(name).__doc__ or "").strip().partition("\n")
    features = run_figure(name, fast=True, out=folder / "pictures").features if run else ()
    blank(folder / "pictures" / f"{name}.png")
    rows = [(f.name, f"{f.measured:.6g}", f"{f.target:.6g}", f"{f.tolerance:.2g}", f.origin) for f in features]
    table = [
        "| feature | measured | target | tolerance | target from |",
        "|---|---|---|---|---|",
        *("| " + " | ".join(map(plain, row)) + " |" for row in rows),
    ]
    about = [f"# {plain(name)}", plain(title), f"![{plain(title)}](../pictures/{name}.png)", plain(text.strip())]
    end = ["Here with fewer points (`--fast`). Make it with", f"```sh\nodesim figure {name}\n```"]
    write(folder / "figures" / f"{name}.md", "\n\n".join([*about, "\n".join(table), *end]) + "\n")
    return f"figures/{name}", f"{name}.png", f"{plain(title.partition(':')[0].rstrip('.'))} (`{name}`)"


def families() -> Iterator[tuple[str, list[str]]]:
    """The families with their models, in order."""
    for family, names in groupby(sorted(odesim.list_models()), key=lambda name: name.partition(".")[0]):
        yield family, list(names)


def write_family(folder: Path, family: str, names: list[str], run: bool) -> list[Item]:
    """A page for a family of models: its papers, and for each model its text, equations, picture; then its rows of the ledger."""
    parts, items = [f"# {family}"], []
    systems = {name: odesim.load_model(name) for name in names}
    parts += bibliography({system.source.key for system in systems.values()})
    for name, system in systems.items():
        title, _, text = (import_module(f"odesim.models.{name}").__doc__ or "").strip().partition("\n")
        picture = folder / "pictures" / f"{name}.png"
        if run and not picture.exists():
            draw_model(picture, name)
        blank(picture)
        parts += [f"## {plain(name)}", f"**{plain(title)}**", f"![{plain(title)}](../pictures/{name}.png)", plain(text.strip())]
        parts += [formulas(latex_document(system)), f"```sh\nodesim integrate {name} --plot {family}.png\n```"]
        items.append((f"models/{family}", f"{name}.png", f"`{name}`"))
    claims = [claim for claim in all_claims() if claim.name.partition(".")[0] == family]
    if claims:
        parts += ["## What the papers state", "Each row is checked by `odesim verify CLAIM`; see the [ledger](../../ledger.md)."]
        parts.append("\n".join(claim_table(claims)))
    write(folder / "models" / f"{family}.md", re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts)) + "\n")
    return items


def draw_model(path: Path, name: str) -> None:
    """Draws a default run of a model; on arrays, for which nothing is compiled."""
    from odesim.plot.files import save
    from odesim.plot.solution import figure_of_solution

    save(figure_of_solution(odesim.integrate(name, save=200, backend="numpy")), path)
