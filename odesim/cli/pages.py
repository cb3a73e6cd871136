"""Pages of a model as files: HTML and pdf, checked before the model is loaded."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odesim.symbolic import System

MARK = '<meta name="generator" content="odesim">'


def check_page(file: Path | None, kind: str, *, overwrite: bool) -> None:
    """Raises StoreError where the page cannot be written. A file that odesim wrote is replaced, another one only with overwrite."""
    if file is None:
        return
    from odesim.errors import StoreError
    from odesim.plot.files import is_odesim_picture
    from odesim.store.paths import check_new_file

    if file.suffix.lower() != f".{kind}":
        raise StoreError(f"--{kind} writes a file that ends in .{kind}, not {str(file)!r}")
    ours = is_odesim_picture(file) if kind == "pdf" else is_odesim_page(file)
    check_new_file(file, overwrite=overwrite or ours)


def is_odesim_page(file: Path) -> bool:
    """Whether odesim wrote the web page, by its head."""
    try:
        with file.open(encoding="utf-8", errors="replace") as page:
            return MARK in page.read(1000)
    except OSError:
        return False


def write_pages(system: "System", html: Path | None, pdf: Path | None) -> list[Path]:
    """Writes the pages that are asked for; returns their paths. Raises StoreError."""
    if html:
        from odesim.display.html import html_page
        from odesim.plot.files import write_atomically

        text = html_page(system)
        write_atomically(html, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    if pdf:
        from odesim.plot.page import save_pages

        save_pages(system, pdf)
    return [file for file in (html, pdf) if file]
