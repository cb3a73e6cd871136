"""Standing: the progress of a run in numbers that every integrator has."""

from dataclasses import dataclass


@dataclass
class Standing:
    """The progress of a run: steps taken and rejected, saved times reached, the next step size, tolerances.

    h: the size of the next adaptive step, 0 before the first one. rtol, atol: the tolerances that errors are held against.
    """

    steps: int = 0
    rejected: int = 0
    saved: int = 0
    h: float = 0.0
    rtol: float = 0.0
    atol: float = 0.0

    @property
    def tried(self) -> int:
        """The number of steps, taken or rejected."""
        return self.steps + self.rejected
