"""`--plot FILE`: a place that is checked before anything is computed, and a picture there when it is."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_picture_place(out: Path | None, plot: Path | None, *, overwrite: bool = False) -> None:
    """Raises StoreError where the picture cannot be written, or what matplotlib raises that does not load, before anything is computed."""
    if plot:
        from odesim.base.errors import StoreError
        from odesim.plot.files import check_picture
        from odesim.store.paths import check_new_file

        check_new_file(check_picture(plot, overwrite=overwrite), overwrite=True)
        if out and out.absolute() == plot.absolute():
            raise StoreError(f"--out and --plot name the same {out}")
        import_module("odesim.plot.style")


def draw(figure: "Callable[[], Figure]", plot: Path | None) -> tuple[Path | None, str]:
    """Saves a picture; returns its path or None, and a sentence that says why it was not saved, or an empty one.

    The reason is that there is nothing to draw, as asked or at all, or that the disk has no room for it.
    """
    if plot is None:
        return None, ""
    from odesim.base.errors import ParamError, StoreError
    from odesim.plot.files import save

    try:
        return save(figure(), plot), ""
    except (StoreError, ParamError) as error:  # the place was good before the run
        return None, str(error)
