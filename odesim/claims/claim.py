"""A claim: a statement of a paper as printed, the corrected one if there is one, and the checks of both."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from odesim.symbolic.parts import Source


class Verdict(StrEnum):
    """The result of checking a statement."""

    HOLDS = "holds"
    HOLDS_WHEN = "holds only when"
    FAILS = "fails"
    ERROR = "error"  # the check raised an exception


@dataclass(frozen=True)
class Measurement:
    """One number that a statement predicts, and what a run gives.

    relation: "=" (within tolerance), "<=" or ">=" (tolerance on the safe side). NaN satisfies none of them.
    """

    name: str
    measured: float
    expected: float
    tolerance: float = 0.0
    relation: str = "="

    @property
    def holds(self) -> bool:
        """Whether the measured number satisfies the relation."""
        return self.excess <= self.tolerance

    @property
    def excess(self) -> float:
        """By how much the relation is missed, before the tolerance: <= 0 if it is satisfied exactly; NaN for NaN."""
        difference = float(self.measured) - float(self.expected)
        return {"=": abs(difference), "<=": difference, ">=": -difference}[self.relation]


Check = Callable[[], Iterable[Measurement]]


@dataclass(frozen=True)
class Statement:
    """A statement in one line, its check, and the verdict recorded for it.

    tolerance: how the tolerances of the check follow. when: the condition under which it holds.
    otherwise: the same check in a case without this condition, which must fail.
    """

    text: str
    check: Check
    verdict: Verdict
    tolerance: str
    when: str = ""
    otherwise: Check | None = None


@dataclass(frozen=True)
class Claim:
    """A numbered statement of a paper. printed: as the paper has it. corrected: None if it holds as printed.

    name: `<family>.<name>`. run: in one line, what is run. models: Systems that the run uses.
    """

    name: str
    source: Source
    run: str
    models: tuple[str, ...]
    printed: Statement
    corrected: Statement | None = None
    slow: bool = False

    @property
    def statements(self) -> dict[str, Statement]:
        """{"printed" or "corrected": statement}."""
        return {"printed": self.printed} | ({"corrected": self.corrected} if self.corrected else {})


def deviation(name: str, measured: Any, expected: Any, tolerance: float, *, relative: bool = False) -> Measurement:
    """The largest deviation of an array from what is expected of it, which is 0; NaN if an entry is NaN. relative: to expected."""
    measured, expected = np.broadcast_arrays(np.asarray(measured, float), np.asarray(expected, float))
    off = np.abs(measured - expected)
    return Measurement(name, float(np.max(off / np.abs(expected) if relative else off)), 0.0, tolerance)
