"""The compiled search for zeros: the addresses of its functions, and the table of a run."""

from functools import cache

import numpy as np

from odesim.base.arrays import Array
from odesim.stepper import search_table as table

SEARCH = tuple(f"odesim.stepper.{name}" for name in ("search_sizes", "search_samples", "search"))
"""The modules of the search for zeros, whose source names what is compiled with it."""
SOURCES = ("odesim.runtime.memory", *SEARCH, "odesim.stepper.search_table", "odesim.stepper.search_by_address")
EXPORTED = {"search_step": "step_searched", "search_polynomial": "polynomial_searched"}


@cache
def search_functions() -> dict[str, int]:
    """The addresses of the functions of odesim.stepper.search_by_address, compiled once or loaded from the cache."""
    from odesim.targets.cache import sources_text
    from odesim.targets.native import load_native

    lines = [f"{name} = {decorator}({name})" for name, decorator in EXPORTED.items()]
    return load_native("\n".join([sources_text(SOURCES), *lines, ""]), "search", list(EXPORTED))


def search_table(**values: int) -> Array:
    """The table of a run: of each place in odesim.stepper.search_table its value, by its name."""
    numbers = np.zeros(table.TABLE_SIZE, np.int64)
    for name, value in values.items():
        numbers[getattr(table, name)] = value
    return numbers
