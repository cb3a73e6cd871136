"""Pages that are made from the code before each build: models, figures, notebooks, gallery. They lie in `docs/generated`.

A page is made anew where its script or any file of odesim has changed. A quick build (`sphinx-build -t quick`) runs nothing: the pages
have their text, and a blank in the place of each picture. A picture leads to one to zoom in, of which `docs/generated/extra` has the page.
"""

import hashlib
import json
import pickle
import re
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import cache
from importlib import import_module
from itertools import chain, groupby
from multiprocessing import get_context
from pathlib import Path
from textwrap import wrap
from typing import Any

from markdown import bibliography, captions, folded, methods_table, plain, prose
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from plotly.offline import get_plotlyjs
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import odesim
from odesim.cli.about import notebook_of, scripts, title_of, usable_cores
from odesim.display.document import markdown
from odesim.lab.claims import all_claims
from odesim.lab.output import claim_table
from odesim.plot.figures import figures_by_question, left_out, list_figures, load_figure
from odesim.plot.files import METADATA, page_of_figure, save

ROOT = Path(__file__).parents[2]
INTERACTIVE, PLOTLY = "extra/interactive", "plotly.min.js"  # html_extra_path has extra
Item = tuple[str, str, str]  # of the gallery: page, picture, title
BLANK = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==")
"""A png of one white pixel."""
SHOW, FIRST = "plt.show()", "first.pickle"
KEEP = f"__import__('pickle').dump(plt.gcf(), open({FIRST!r}, 'wb'))"
"""The line before the first SHOW of a notebook while it is executed: a Figure, unlike its picture, has panels."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Writes the pages as soon as the configuration is read."""
    app.connect("config-inited", lambda app, config: write_pages(Path(app.srcdir) / "generated", run="quick" not in app.tags))
    app.connect("env-updated", indexed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def indexed(app: Sphinx, env: Any) -> list[str]:
    """The pages with entries of the index, which every build writes anew: Sphinx 9 forgets those of other pages in its search."""
    return [page for page, entries in env.domaindata["index"]["entries"].items() if entries]


def write_pages(folder: Path, run: bool) -> None:
    """Writes all pages below folder, a process on each core; what has not changed is left as it is. The first failure ends all."""
    for name in ("models", "figures", "notebooks", "pictures", INTERACTIVE):
        (folder / name).mkdir(parents=True, exist_ok=True)
    write(folder / INTERACTIVE / PLOTLY, get_plotlyjs())
    if run:
        remove_blanks(folder / "pictures")
    with ProcessPoolExecutor(usable_cores(), get_context("spawn")) as pool:
        models = {family: pool.submit(write_family, folder, family, names, run) for family, names in families()}
        figures = {name: pool.submit(write_figure, folder, name, run) for name in list_figures()}
        notebooks = {name: pool.submit(write_notebook, folder, name, path, run) for name, path in scripts().items()}
        names: dict[Future[Any], str] = {job: name for jobs in (models, figures, notebooks) for name, job in jobs.items()}
        for job in as_completed(names):
            if error := job.exception():
                pool.shutdown(wait=False, cancel_futures=True)
                raise ExtensionError(f"{names[job]}: {error}") from error
    write(folder / "methods.txt", methods_table())
    groups = [[job.result() for job in jobs.values()] for jobs in (notebooks, figures)]
    groups.append(list(chain.from_iterable(job.result() for job in models.values())))
    items = dict(zip(figures, groups[1], strict=True))
    by_question = {
        f"{question[0].upper()}{question[1:]}": [items[name] for name in names] for question, names in figures_by_question().items()
    }
    write(folder / "figures.txt", sections(by_question, "generated/"))
    write(folder / "families.txt", cards([family_card(family, job.result()) for family, job in models.items()], "generated/"))
    rest = {"Notebooks": groups[0], "Models": groups[2]}
    write(folder / "gallery.md", f"# Gallery\n\n{sections(by_question)}\n\n{sections(rest)}")


@cache
def key_of(*files: Path, run: bool) -> str:
    """The last line of a page, a comment: it changes with these files, with any file of odesim and of these extensions."""
    sources = [*sorted(Path(odesim.__path__[0]).rglob("*.py")), *sorted(Path(__file__).parent.glob("*.py"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (*sources, *files)))
    return f"% {digest.hexdigest()} {'run' if run else 'quick'}\n"


def is_current(page: Path, key: str) -> bool:
    """Whether the page was written with this key."""
    return page.exists() and page.read_text(encoding="utf-8").endswith(key)


def thumbnail(figure: Figure, path: Path) -> None:
    """Writes the largest panel of a figure that was drawn, or points: a page of many panels says nothing at the size of a card."""
    figure.set_layout_engine(None)  # "none" is an engine too, for which all is drawn twice
    in_space = [axes for axes in figure.axes if axes.get_aspect() == 1]  # tokens on a circle, a plane
    sizes = {axes: round(axes.get_position().width * axes.get_position().height, 2) for axes in in_space or figure.axes}
    worded = {axes: any(" " in label.get_text() for label in axes.get_yticklabels()) for axes in sizes}
    # phrases beside bars leave no room for these; of panels of one size, whose places differ by some letters, the first
    panel = max(sizes, key=lambda axes: (not worded[axes], sizes[axes]))
    for artist in figure.get_children():
        artist.set_visible(artist is panel)
    figure.patch.set_visible(True)
    width, height = figure.get_size_inches()
    for place in ("left", "center", "right"):
        panel.set_title("", loc=place)  # the card has one, and a long one would make the panel small
    panel.set_position((0.2, 0.2, 1.7 / width, 1.1 / height))  # inches: letters have one size in all cards
    panel.tick_params(labelbottom=True, labelleft=True)  # a neighbour had them
    for name, axis, letters in (("x", panel.xaxis, 26), ("y", panel.yaxis, 18)):
        figure._align_label_groups[name].remove(panel)  # beside the numbers of this panel, not of the widest
        lines = wrap(axis.get_label_text(), letters)
        if all(line.count("$") % 2 == 0 for line in lines):
            axis.set_label_text("\n".join(lines))
    figure.draw_without_rendering()
    places = list[Bbox]()
    for text in panel.texts:  # names of curves, each where there is room; a sentence has none
        place = text.get_window_extent()
        text.set_visible(len(text.get_text()) < 16 and not any(place.overlaps(other) for other in places))
        places += [place] * text.get_visible()
    legend = panel.get_legend()
    if legend is not None:
        legend.set_bbox_to_anchor(None)  # inside, where it was beside the panel
        legend.set_loc("best")
        figure.draw_without_rendering()
        room = legend.get_window_extent()
        paths = [line.get_transform().transform_path(line.get_path()) for line in panel.lines]
        if room.width > 0.7 * panel.get_window_extent().width or any(path.intersects_bbox(room, filled=False) for path in paths):
            legend.remove()  # it would cover the curves
    box = panel.get_tightbbox().transformed(figure.dpi_scale_trans.inverted()).padded(0.04)
    figure.savefig(path, bbox_inches=box, dpi=160, metadata=METADATA["png"])


def draw(figure: Figure, folder: Path, name: str) -> None:
    """Writes a figure as a picture, as its thumbnail, and as a page to zoom in."""
    picture = save(figure, folder / "pictures" / f"{name}.png")
    write(folder / INTERACTIVE / f"{name}.html", page_of_figure(figure, PLOTLY))
    thumbnail(figure, picture.with_suffix(".small.png"))


def shown(name: str, words: str, run: bool) -> str:
    """A picture on a page, which leads to the one to zoom in."""
    image = f"![{words}](../pictures/{name}.png)"
    link = f'<a class="zoom" href="../../interactive/{name}.html">zoom, read values off, pick curves</a>'
    return f"{image}\n\n{link}" if run else image


def write(path: Path, text: str) -> None:
    """Writes text, unless the file holds it already."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def cards(items: list[Item], folder: str = "") -> str:
    """A grid of thumbnails that link to their pages; a title may go on below its first line. folder: where the pages lie."""
    grid = ["::::{grid} 1 2 2 3", ":gutter: 2", ""]
    for page, picture, words in items:
        title, _, text = words.partition("\n")
        grid += [f":::{{grid-item-card}} {title}", f":img-top: {folder}pictures/{picture}", f":link: {folder}{page}", ":link-type: doc"]
        grid += ["", text] * bool(text) + [":::", ""]
    return "\n".join([*grid, "::::"]) + "\n"


def sections(parts: dict[str, list[Item]], folder: str = "") -> str:
    """A heading and a grid for each part."""
    return "\n\n".join(f"## {title}\n\n{cards(items, folder)}" for title, items in parts.items())


def blank(*pictures: Path) -> None:
    """Puts one pixel in the place of each picture that is not there."""
    for path in pictures:
        if not path.exists():
            path.write_bytes(BLANK)


def remove_blanks(folder: Path) -> None:
    """Makes room for the pictures that a quick build left out: odesim draws over no file that it has not drawn."""
    for path in folder.glob("*.png"):
        if path.read_bytes() == BLANK:
            path.unlink()


def write_notebook(folder: Path, name: str, script: Path, run: bool) -> Item:
    """Executes a notebook and writes it with its outputs; a panel of its first picture is the thumbnail. What is there already is kept."""
    import nbformat
    from nbclient import NotebookClient

    text = script.read_text(encoding="utf-8")
    key = key_of(script, run=run)
    page, picture = folder / "notebooks" / f"{script.stem}.ipynb", f"notebook_{name}.small.png"
    if not page.exists() or json.loads(page.read_text(encoding="utf-8"))["metadata"].get("key") != key:
        notebook = nbformat.from_dict(notebook_of(text))
        if run:
            notebook.metadata["key"] = key
            first = next(cell for cell in notebook.cells if SHOW in cell.source)
            source, first.source = first.source, first.source.replace(SHOW, f"{KEEP}\n{SHOW}")
            with tempfile.TemporaryDirectory() as away:
                NotebookClient(notebook, timeout=1800, startup_timeout=600, resources={"metadata": {"path": away}}).execute()
                figure = pickle.loads((Path(away) / FIRST).read_bytes())
                figure.draw_without_rendering()
                thumbnail(figure, folder / "pictures" / picture)
            first.source = source
        nbformat.write(notebook, page)
    blank(folder / "pictures" / picture)
    return f"notebooks/{script.stem}", picture, title_of(text)


def write_figure(folder: Path, name: str, run: bool) -> Item:
    """A page for a figure: the picture, what it stands beside, and its numbers with their targets."""
    module, page, picture = load_figure(name), folder / "figures" / f"{name}.md", folder / "pictures" / f"{name}.png"
    small = picture.with_suffix(".small.png")
    title, _, text = (module.__doc__ or "").strip().partition("\n")
    item = f"figures/{name}", small.name, f"{plain(title.partition(':')[0].rstrip('.'))} (`{name}`)"
    key = key_of(Path(module.__file__), run=run)
    if is_current(page, key):
        return item
    features = ()
    if run:
        dataset = module.data(True)
        features = tuple(module.expected(dataset))
        draw(module.draw(dataset), folder, name)
    blank(picture, small)
    rows = [(f.name, f"{f.measured:.6g}", f"{f.target:.6g}", f"{f.tolerance:.2g}", f.origin) for f in features]
    table = [
        "| feature | measured | target | tolerance | target from |",
        "|---|---|---|---|---|",
        *("| " + " | ".join(map(plain, row)) + " |" for row in rows),
    ]
    about = [f"# {plain(name)}", f"*{module.QUESTION[0].upper()}{module.QUESTION[1:]}*", plain(title), shown(name, plain(title), run)]
    about.append(captions(text))
    less = left_out(module)
    about += [f"The picture and the numbers here are those of `--fast`: {less}."] * bool(less)
    about += [f"```sh\nodesim figure {name}\n```", "## Numbers"]
    about.append(
        "What the figure shows, beside what is published, follows from theory, or comes from a script of ours after the paper's code."
    )
    papers = bibliography(set(re.findall(r"\b[a-z]+\d{4}[a-z]+\b", text)))
    end = ["## Papers", *papers] * bool(papers)
    page.write_text("\n\n".join([*about, "\n".join(table), *end, key]), encoding="utf-8")
    return item


def families() -> Iterator[tuple[str, list[str]]]:
    """The families with their models, in order."""
    for family, names in groupby(sorted(odesim.list_models()), key=lambda name: name.partition(".")[0]):
        yield family, list(names)


def family_card(family: str, items: list[Item]) -> Item:
    """The card of a family: the picture of its first model, what it is, and the names of its models."""
    about = (import_module(f"odesim.models.{family}").__doc__ or "").partition("\n")[0]
    names = ", ".join(words.partition("\n")[0].strip("`").partition(".")[2] for _, _, words in items)
    return f"models/{family}", items[0][1], f"{family}\n{plain(about)}\n\n`{names}`"


def write_family(folder: Path, family: str, names: list[str], run: bool) -> list[Item]:
    """A page for a family of models: its papers, for each model its text, picture and equations, then its claims. Short equations first."""
    systems = {name: odesim.load_model(name) for name in names}
    systems = dict(sorted(systems.items(), key=lambda item: len(str(tuple(item[1].equations.values())))))
    home, modules = import_module(f"odesim.models.{family}"), {name: import_module(f"odesim.models.{name}") for name in systems}
    titles = {name: plain((module.__doc__ or "").partition("\n")[0]) for name, module in modules.items()}
    items = [(f"models/{family}", f"{name}.small.png", f"`{name}`\n{title}") for name, title in titles.items()]
    page, key = folder / "models" / f"{family}.md", key_of(*sorted(Path(home.__path__[0]).glob("*.py")), run=run)
    if is_current(page, key):
        return items
    contents = [f"- [{name}](#{name.replace('.', '')}): {title}" for name, title in titles.items()]
    parts = [
        f"# {family}",
        plain((home.__doc__ or "").strip()),
        "**Papers**",
        *bibliography({system.source.key for system in systems.values()}),
    ]
    parts += ["**Models**", "\n".join(contents)]
    for name, system in systems.items():
        text = (modules[name].__doc__ or "").strip().partition("\n")[2]
        picture = folder / "pictures" / f"{name}.png"
        if run:
            draw_model(folder, name)
        blank(picture, picture.with_suffix(".small.png"))
        parts += [f"## {plain(name)}", f"**{titles[name]}**", shown(name, titles[name], run), prose(text.strip(), system)]
        parts += ["Source: " + folded(markdown(system).partition("\n\n")[2]), f"```sh\nodesim integrate {name} --plot {family}.png\n```"]
    if claims := all_claims(family):
        parts += [
            "## What the papers state",
            "Each row is checked by `odesim verify CLAIM`; see [all claims](../../claims.md).",
        ]
        parts.append("\n".join(claim_table(claims, "../../claims.html")))
    page.write_text(re.sub(r"\n{3,}", "\n\n", "\n\n".join([*parts, key])), encoding="utf-8")
    return items


def draw_model(folder: Path, name: str) -> None:
    """Draws a default run of a model; on arrays, for which nothing is compiled, where it has no noise."""
    from odesim.plot.solution import figure_of_solution

    backend = "numba" if odesim.load_model(name).noise else "numpy"
    run = odesim.integrate(name, save=200, backend=backend)
    figure = figure_of_solution(run)
    figure.set_layout_engine(None)  # it has its places, and is drawn once
    draw(figure, folder, name)
