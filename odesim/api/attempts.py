"""The engine of each attempt at the members of a stored ensemble."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from odesim.engines.choose import make_engine
from odesim.engines.run import Engine
from odesim.ensembles.members import Members
from odesim.ensembles.request import EnsembleRequest
from odesim.store.ensemble import EnsembleStore


def engines(store: EnsembleStore, members: Members, first: Any) -> Callable[[int], Engine]:
    """The engine of each attempt, compiled when it is first used."""

    @cache
    def engine(attempt: int) -> Engine:
        made = first if attempt == 0 else make_engine(attempted(first.request, store.attributes["attempts"][attempt]), members)
        made.prepare()
        return made  # type: ignore[no-any-return]

    return engine


def attempted(request: EnsembleRequest, changes: Mapping[str, Any]) -> EnsembleRequest:
    """The request of a later attempt. changes: options, and by which rule members have their methods."""
    options = {name: value for name, value in changes.items() if name != "auto"}
    return replace(request.changed(**options), auto=changes.get("auto", request.auto))
