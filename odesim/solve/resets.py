"""Events that set states, as a run in segments asks for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from odesim.base.arrays import Array
from odesim.solve.codes import Status

Which: TypeAlias = tuple[int, int]
"""An event's number and the flat number of its component."""


@dataclass(frozen=True)
class Acted:
    """The events at one time: the state (n,) after them, and which they were, in the order in which they acted.

    status, why: why the run cannot go on, if so.
    """

    y: Array
    events: tuple[Which, ...]
    status: Status | None = None
    why: str = ""


class Resets(Protocol):
    """Events of a problem that set states, where a segment of a run ends."""

    def begin(self) -> None:
        """Begins a run."""

    def act(self, t: float, y: Array, found: Sequence[Which], part: int, end: float) -> Acted | None:
        """Applies the events at (t, y); None where there are none.

        found: those that the segment found there. part: the number of the part of the span, between the stops of its switches, that ends
        there; -1 for none. end: of the next segment.
        """

    def ends(self, which: Which) -> bool:
        """Whether an event ends the run."""

    def piles_up(self, t: float, which: Which) -> str:
        """The sentence that an event happens ever faster."""
