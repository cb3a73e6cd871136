"""Arguments of `odesim.ensemble` other than run options."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from odesim.ensembles.request import MAX_EVENTS


@dataclass(frozen=True)
class EnsembleArguments:
    """Parameters, initial values, members and outputs, as the caller of `odesim.ensemble` gives them."""

    params: Mapping[str, Any] = field(default_factory=dict)
    initial: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] | None = None
    span: tuple[float, float] | None = None
    steps: int | None = None
    save: Any = None
    vary: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Any] = field(default_factory=dict)
    zipped: Mapping[str, Any] = field(default_factory=dict)
    members: int | None = None
    sensitivities: str | Iterable[str] = ()
    events: str | Iterable[str] = ()
    observe: Any = ()
    max_events: int = MAX_EVENTS

    @property
    def has_design(self) -> bool:
        """Whether a design gives the members; else arrays with a leading axis do."""
        return bool(self.vary or self.grid or self.zipped or self.members is not None)
