"""A cell of a page that fails is named with its error: of many processes, Sphinx prints the text of an exception and no cause."""

from typing import Any

from myst_nb.core.execute import cache
from sphinx.application import Sphinx


class CellError(cache.ExecutionError):
    """The path of the page, its cell and the error, which myst-nb gives as the cause."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.__cause__}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Takes the place of the exception in the mode `cache`: nb_execution_show_tb is a warning, lost with the process that ends."""
    cache.ExecutionError = CellError
    return {"parallel_read_safe": True, "parallel_write_safe": True}
