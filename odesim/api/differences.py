"""How a stored run and its recomputation differ: in no bit if the code is the same, by a few tolerances if it is not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.base.options import largest_atol, other_versions

HALF = {"float64": 2.0**-26, "float32": 2.0**-12}  # half the digits, which rounding may cost in a long training
# other code rounds otherwise, so the bits may differ, but both runs are within some tolerances of the truth
TIMES = 20.0  # tolerances between two runs, each of which is within ten of the truth


@dataclass(frozen=True)
class Rerun:
    """The result of rerun(): a stored run against the same run computed again.

    counted: number of rows compared. unit: one row ("member"); of: a phrase on what else was compared.
    different: number of rows with another bit. first: the place of the first one. largest: the largest difference.
    other: what differs in the code that computes, empty where nothing does. bound: the change that such code may make, in words.
    beyond: whether more than that differs. lost: a sentence on data that are not stored any more.
    """

    path: Path
    unit: str
    counted: int
    different: int = 0
    first: str = ""
    largest: float = 0.0
    other: str = ""
    bound: str = ""
    beyond: bool = False
    stopped: bool = False
    lost: str = ""
    of: str = ""

    @property
    def same(self) -> bool:
        """Whether everything was computed again with the same bits."""
        return not (self.different or self.stopped or self.lost)

    @property
    def passed(self) -> bool:
        """Whether the bits are the same or, with other code, all differences are within the bound."""
        return self.same or bool(self.other and not (self.beyond or self.stopped or self.lost))

    @property
    def message(self) -> str:
        """The result in one sentence."""
        rows = f"{counted(self.counted, self.unit)}{self.of}"
        head = f"stopped after {rows}" if self.stopped else f"{rows} computed again"
        head += f" by other code ({self.other})" if self.other else ""
        tail = f"; {self.lost}" if self.lost else ""
        if not self.different:
            return f"{head}: every bit is the same{tail}"
        sizes = f"; the largest difference is {self.largest:.3g}" if self.largest else ""
        if self.other:
            sizes += f", {'more than' if self.beyond else 'within'} {self.bound}"
        return f"{head}: {self.different} {'differs' if self.different == 1 else 'differ'}, the first is {self.first}{sizes}{tail}"


class Differences:
    """A comparison of named arrays, row by row, as they become available."""

    def __init__(self) -> None:
        self.counted, self.different, self.largest, self.first, self.beyond = 0, 0, 0.0, "", False

    def add(self, pairs: Mapping[str, tuple[Array, Array, Any]], which: Array, place: Callable[[int], str], *, rows: bool = True) -> None:
        """Compares {name: (old (N, ...), new (N, ...), bound)} in the rows where (N,) is true; bound 0 means equal bits. NaN equals NaN.

        place: what a row is called. rows: they count as such, or are what comes after the last one and counts where no row differs.
        """
        bad = np.zeros(len(which), bool)
        names: dict[int, str] = {}
        for name, (old, new, bound) in pairs.items():
            equal = (old == new) | ((old != old) & (new != new))
            differs = which & ~equal.all(axis=tuple(range(1, equal.ndim)))
            if not differs.any():
                continue
            with np.errstate(invalid="ignore"):
                gap = np.where(equal, 0.0, np.abs(np.asarray(old, float) - new))
            self.beyond |= bool((~(gap <= bound) & (which.reshape(-1, *(1,) * (gap.ndim - 1)))).any())
            finite = gap[differs][np.isfinite(gap[differs])]
            self.largest = max(self.largest, float(finite.max(initial=0.0)))
            names = {int(i): name for i in np.flatnonzero(differs)} | names
            bad |= differs
        self.counted += int(which.sum()) if rows else 0
        self.different += int(bad.sum()) if rows or not self.different else 0
        if not self.first and names:
            self.first = f"{names[min(names)]} of {place(min(names))}"

    def report(self, path: Path, unit: str, **more: Any) -> Rerun:
        """The Rerun of what was compared."""
        return Rerun(path, unit, self.counted, self.different, self.first, self.largest, beyond=self.beyond, **more)


def other_code(then: Mapping[str, Any], kernel: str, versions: Mapping[str, str]) -> str:
    """The versions and machine properties that differ from those of a stored run, as a phrase; empty if none does."""
    changes = [f"{name} {old} then, {now} now" for name, (old, now) in other_versions(then.get("versions", {}), versions).items()]
    if then.get("kernel", kernel) != kernel and not changes:
        changes = ["the model, odesim or this machine is another one"]
    return ", ".join(changes)


def tolerance(state: str, old: Array, attributes: Mapping[str, Any]) -> Array:
    """(N, 1, ...): by how much each row of a state old (N, ...), or of an observable with "", may differ if other code computed it."""
    rtol, atol = attributes["rtol"], largest_atol(attributes["atol"], state)
    with np.errstate(invalid="ignore"):
        size = np.nan_to_num(np.abs(old.reshape(len(old), -1)), posinf=0.0).max(axis=1, initial=0.0)
    return np.asarray(TIMES * (atol + rtol * size)).reshape(-1, *(1,) * (old.ndim - 1))


BOUND = f"{TIMES:g} times its tolerances"
