"""Writes pictures, still and moving: paths are checked before anything is computed, and a file is complete or absent."""

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.errors import ParamError, StoreError, no_such, value_text
from odesim.store.paths import atomic_file, check_new_file, is_taken

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odesim.base.arrays import Array

FORMATS, MOVING, PAGE = ("png", "pdf", "svg"), ("mp4", "gif"), ("html",)
PICTURES = FORMATS + PAGE
# without date and version of matplotlib, so that the same picture has the same bytes
METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": "odesim"},
    "pdf": {"Creator": "odesim", "Producer": None, "CreationDate": None},
    "svg": {"Creator": "odesim", "Date": None},
}
# how the metadata appear in a file
MARKS = {
    "png": b"tEXtSoftware\0odesim",
    "pdf": b"/Creator (odesim)",
    "svg": b"<dc:title>odesim</dc:title>",
    "mp4": b"odesim",
    "gif": b"odesim",
    "html": b'<meta name="generator" content="odesim">',
}


def check_picture(path: str | Path, *, overwrite: bool = False, formats: Sequence[str] = PICTURES) -> Path:
    """path as a Path, if a picture can be written there; a picture that odesim drew may be replaced. Does not import matplotlib.

    Raises StoreError: an extension other than formats, a missing folder, a folder at path, no permission, or, unless overwrite is
    given, a file that odesim did not draw; and where a page of html lacks plotly.
    """
    target = _check_format(path, formats)
    if is_taken(target) and not overwrite and not is_odesim_picture(target):
        raise StoreError(f"{target} is there and odesim did not draw it; give another name or remove it")
    return target


def is_odesim_picture(picture: Path) -> bool:
    """Whether odesim drew the picture, or wrote the page, by its metadata."""
    try:
        return picture.is_file() and MARKS[picture.suffix[1:].lower()] in picture.read_bytes()
    except OSError:
        return False


def _check_format(path: str | Path, formats: Sequence[str] = PICTURES) -> Path:
    target = Path(path)
    extension = target.suffix[1:].lower()
    if not extension:
        name = target.name if target.name.strip(".") and target.name[0] != "." else "picture"
        raise StoreError(f"{str(path)!r} has no extension, which chooses the format: write {name}.{formats[0]}, for example")
    if extension not in formats:
        raise StoreError(f"{path}: {no_such('picture format', extension, formats)}")
    if extension in PAGE:
        check_plotly()
    return check_writable(target)


def check_plotly() -> None:
    """Raises StoreError where plotly is not installed."""
    if find_spec("plotly") is None:
        raise StoreError("a page of html needs plotly: pip install 'odesim[html]'")


def check_writable(target: Path) -> Path:
    """target, if a file can be written there. Raises StoreError."""
    if os.path.isdir(target):
        raise StoreError(f"{str(target)!r} is a folder, not a file")
    return check_new_file(target, overwrite=True)


def write_atomically(target: Path, write: Callable[[Path], object]) -> None:
    """Calls write(temporary path beside target), then renames that file to target, so that target is never incomplete.

    Raises StoreError if the disk refuses.
    """
    check_writable(target)
    try:
        with atomic_file(target) as work:
            write(work)
    except OSError as error:
        raise StoreError(f"cannot write {str(target)!r}: {error.strerror or error}") from error


def save(picture: "Figure | Axes | Array", path: str | Path) -> Path:
    """Writes a picture to path as png, pdf, svg or html, by its extension; a file there is replaced.

    Parameters
    ----------
    picture : Figure, Axes or array of Axes
        As of `plot` of a run, of the functions here, or of matplotlib. Of Axes the whole Figure is written.
    path : str or Path
        Where. html needs plotly, the extra `odesim[html]`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    StoreError
        Where the file cannot be written.
    ParamError
        For what is no picture, and for other extensions.

    Examples
    --------
    >>> run = odesim.integrate("joma.nonlinear", sizes={"M": 3})
    >>> odesim.plot.save(run.plot(), "run.svg").name
    'run.svg'
    """
    from odesim.plot.style import DPI, project_style

    target = _check_format(path)
    extension = target.suffix[1:].lower()
    if extension in PAGE:
        page = page_of_figure(figure_of(picture))
        write_atomically(target, lambda temporary: temporary.write_text(page, encoding="utf-8"))
        return target
    figure = figure_of(picture)

    def write(temporary: Path) -> None:
        with project_style():
            figure.savefig(temporary, format=extension, dpi=DPI, metadata=METADATA[extension])

    write_atomically(target, write)
    return target


def page_of_figure(figure: "Figure", plotlyjs: bool | str = True) -> str:
    """A page of html of a Figure, which fits the window. plotlyjs: as plotly takes it: in the page itself, or the address of the file."""
    from html import escape

    from odesim.plot.html import SCRIPT, to_plotly, widest

    words: Any = {
        "include_plotlyjs": plotlyjs,
        "div_id": "picture",
        "post_script": SCRIPT,
        "default_width": f"min(100%, {widest(figure)}px); margin: auto",
    }
    text: str = to_plotly(figure).to_html(config={"displaylogo": False}, **words)
    title = escape(figure.get_suptitle()) or "odesim"
    marks = f"{MARKS[PAGE[0]].decode()}<meta name='viewport' content='width=device-width'><link rel='icon' href='data:,'>"
    marks += "<style>body { margin: 0 8px }</style>"  # the picture has the height of the window: with a margin above, it would scroll
    return text.replace("<head>", f"<head>{marks}<title>{title}</title>", 1)


def figure_of(picture: "Figure | Axes | Array") -> "Figure":
    """The Figure itself, or that of Axes or of an array of Axes. Raises ParamError."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    every: Any = picture.flat if isinstance(picture, np.ndarray) else [picture]
    first: Any = next(iter(every), None)
    figure: Any = first.get_figure(root=True) if isinstance(first, Axes) else first
    if not isinstance(figure, Figure):
        raise ParamError(f"save() writes a Figure, Axes or an array of Axes, as plot() returns them, not {value_text(picture)}")
    return figure
