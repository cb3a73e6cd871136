"""Events that set states, as a run in segments asks for them."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
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

    def begin(self, t: float, y: Array, end: float) -> Acted | None:
        """Begins a run at (t, y), and applies the events that happen there; None where there are none. end: of the first segment."""

    def collect(self, t: float, y: Array, found: AbstractSet[Which], part: int) -> Sequence[Which] | None:
        """The events that happen at (t, y), in their order; None where no function is 0. Conditions are still held as before.

        found: those that the segment found there. part: the number of the part of the span, between the stops of its switches, that ends
        there; -1 for none.
        """

    def act(self, roots: Sequence[Which], t: float, y: Array, end: float) -> Acted:
        """Applies the events that have been collected at (t, y), and those that they set off. end: of the next segment."""

    def ends(self, which: Which) -> bool:
        """Whether an event ends the run."""

    def piles_up(self, t: float, which: Which) -> str:
        """The sentence that an event happens ever faster."""
