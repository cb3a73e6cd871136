"""Cells of pages: one that fails is named with its error, and their kernels have time to start on a busy machine.

Of many processes, Sphinx prints the text of an exception and no cause.
"""

from functools import partial
from typing import Any

from jupyter_cache.executors import utils
from myst_nb.core.execute import cache
from sphinx.application import Sphinx


class CellError(cache.ExecutionError):
    """The path of the page, its cell and the error, which myst-nb gives as the cause."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.__cause__}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Takes the place of the exception in the mode `cache`, where nb_execution_show_tb is lost with its process; sets the time."""
    cache.ExecutionError = CellError
    utils.executenb = partial(utils.executenb, startup_timeout=600)  # s; traitlets copies defaults, so that a new one has no effect
    return {"parallel_read_safe": True, "parallel_write_safe": True}
