"""Codes: the state of a run as a number, the words for those that end it, and the progress of a run in numbers.

Every integrator answers with these numbers, compiled code writes them, and arrays and stores hold them less one: -1 is not done.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any


class Code(IntEnum):
    """The state of a run; above 0: how it ended, in the order of stored runs."""

    IDLE = -3  # a lane without a member
    BUFFER_FULL = -2  # no room for the next events
    HANDED_OVER = -1  # left where stability limits the steps, for another method to go on with: never an end
    RUNNING = 0
    OK = 1
    EVENT = 2
    MAX_STEPS = 3
    STEP_TOO_SMALL = 4
    NON_FINITE = 5
    BLOW_UP = 6
    INTERRUPTED = 7
    SLIDING = 8
    LEFT_DOMAIN = 9


def stored(code: Any) -> Any:
    """The number of a Code in arrays and stores; of an array of codes, their numbers."""
    return code - 1


UNDONE, HANDED_OVER = stored(Code.RUNNING), stored(Code.HANDED_OVER)


class Status(StrEnum):
    """How a run ended; all but OK and EVENT end before t1 for a reason that the message gives."""

    OK = "ok"
    EVENT = "event"
    MAX_STEPS = "max_steps"
    STEP_TOO_SMALL = "step_too_small"
    NON_FINITE = "non_finite"
    BLOW_UP = "blow_up"
    INTERRUPTED = "interrupted"
    SLIDING = "sliding"
    LEFT_DOMAIN = "left_domain"

    @property
    def code(self) -> Code:
        """The Code of this status."""
        return Code[self.name]

    @property
    def number(self) -> int:
        """The number of this status in arrays and stores."""
        return int(stored(self.code))


STATUSES = tuple(sorted(Status, key=lambda status: status.code))
"""Each at its number in arrays and stores."""
ENDS = {int(status.code): status for status in Status}
"""{Code: its status}."""
WORDS = {code.name: int(code) for code in Code}
"""{name of a Code in generated text: its number}."""


@dataclass
class Standing:
    """The progress of a run: steps taken and rejected, saved times reached, the next step size.

    h: the size of the next adaptive step, 0 before the first one.
    """

    steps: int = 0
    rejected: int = 0
    saved: int = 0
    h: float = 0.0

    @property
    def tried(self) -> int:
        """The number of steps, taken or rejected."""
        return self.steps + self.rejected
