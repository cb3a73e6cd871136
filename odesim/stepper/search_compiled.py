"""The compiled search for zeros: the addresses of its functions."""

from functools import cache

from odesim.stepper import table

SEARCH = tuple(f"odesim.stepper.{name}" for name in ("search_sizes", "search_samples", "search"))
"""The modules of the search for zeros, whose source names what is compiled with it."""
SOURCES = (*SEARCH, "odesim.stepper.search_by_address")
EXPORTED = {"search_step": "step_searched", "search_polynomial": "polynomial_searched"}


@cache
def search_functions() -> dict[str, int]:
    """The addresses of the functions of odesim.stepper.search_by_address, compiled once or loaded from the cache."""
    from odesim.targets.cache import sources_text
    from odesim.targets.native import load_native

    lines = [f"{name} = {decorator}({name})" for name, decorator in EXPORTED.items()]
    return load_native("\n".join([sources_text(SOURCES), table.constants(table.SEARCH), *lines, ""]), "search", list(EXPORTED))
