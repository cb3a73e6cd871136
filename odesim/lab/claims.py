"""The claims: statements of the papers, each checked by a run, with the verdict that is recorded for it."""

from __future__ import annotations

import pkgutil
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from odesim.base.errors import ParamError, no_such, value_text
from odesim.base.parsing import readable
from odesim.base.signals import all_or_nothing
from odesim.symbolic.parts import Source

# A claim: a statement of a paper as printed, the corrected one if there is one, and the checks of both.


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
    measured: Any
    expected: Any
    tolerance: Any = 0.0
    relation: str = "="

    def __post_init__(self) -> None:
        for name in ("measured", "expected", "tolerance"):  # numbers of numpy, and of arrays without axes
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def holds(self) -> bool:
        """Whether the measured number satisfies the relation."""
        return self.excess <= self.tolerance

    @property
    def excess(self) -> float:
        """By how much the relation is missed, before the tolerance: <= 0 if it is satisfied exactly; NaN for NaN."""
        difference = self.measured - self.expected
        return {"=": abs(difference), "<=": difference, ">=": -difference}[self.relation]


Check = Callable[[], Iterable[Measurement]]


@dataclass(frozen=True)
class Mark:
    """A number that a statement names on the curves of a model, whatever its parameters: a level of a state or observable, or a time.

    of: the state or observable, or `t`. value: an expression in parameters and sizes, which stand in it by their names.
    """

    of: str
    value: Any


@dataclass(frozen=True)
class Statement:
    """A statement in one line, its check, and whether that is recorded to fail.

    tolerance: how the tolerances of the check follow. when: the condition under which it holds.
    otherwise: the same check in a case without this condition, which must fail. marks: what the explorer marks on its curves.
    """

    text: str
    check: Check
    tolerance: str
    when: str = ""
    otherwise: Check | None = None
    marks: tuple[Mark, ...] = ()
    fails: bool = False

    @property
    def verdict(self) -> Verdict:
        """The recorded verdict."""
        return Verdict.FAILS if self.fails else Verdict.HOLDS_WHEN if self.when else Verdict.HOLDS


@dataclass(frozen=True)
class Claim:
    """A numbered statement of a paper, as printed: text to fails are those of its Statement. corrected: None if it holds as printed.

    name: `<family>.<name>`. run: in one line, what is run. models: Systems that the run uses, where that line does not name just them.
    depends: names of the claims that this one builds on: the reduction whose states it speaks of, the law that it refines.
    """

    name: str
    source: Source
    run: str
    text: str
    check: Check
    tolerance: str
    when: str = ""
    otherwise: Check | None = None
    marks: tuple[Mark, ...] = ()
    fails: bool = False
    corrected: Statement | None = None
    models: tuple[str, ...] = ()
    slow: bool = False
    depends: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        named = tuple(dict.fromkeys(re.findall(r"\b[a-z_]\w*\.[a-z]\w*", self.run)))
        object.__setattr__(self, "models", self.models or named)

    @property
    def printed(self) -> Statement:
        """The statement as the paper has it."""
        return Statement(self.text, self.check, self.tolerance, self.when, self.otherwise, self.marks, self.fails)

    @property
    def statements(self) -> dict[str, Statement]:
        """{"printed" or "corrected": statement}."""
        return {"printed": self.printed} | ({"corrected": self.corrected} if self.corrected else {})


def deviation(name: str, measured: Any, expected: Any, tolerance: float, *, relative: bool = False) -> Measurement:
    """The largest deviation of an array from what is expected of it, which is 0; NaN if an entry is NaN. relative: to expected."""
    measured, expected = np.broadcast_arrays(np.asarray(measured, float), np.asarray(expected, float))
    off = np.abs(measured - expected)
    return Measurement(name, float(np.max(off / np.abs(expected) if relative else off)), 0.0, tolerance)


# The claims of all families, and what their checks find.

GROUP = "odesim.models"
MODULE = "claims"


@dataclass(frozen=True)
class Finding:
    """Result of checking one statement. outside: measurements without the condition of the statement. error: of a check that raised."""

    statement: Statement
    verdict: Verdict
    measurements: tuple[Measurement, ...] = ()
    outside: tuple[Measurement, ...] = ()
    error: str = ""

    @property
    def as_recorded(self) -> bool:
        """Whether the verdict is the recorded one."""
        return self.verdict == self.statement.verdict


@dataclass(frozen=True)
class ClaimResult:
    """A claim with the findings of its statements {"printed" or "corrected": Finding} and the time they took."""

    claim: Claim
    findings: Mapping[str, Finding] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def as_recorded(self) -> bool:
        """Whether all verdicts are the recorded ones."""
        return all(finding.as_recorded for finding in self.findings.values())

    def __str__(self) -> str:
        """The claim's name and place, and each statement with its verdict."""
        lines = [f"{kind}: {finding.statement.text}: {finding.verdict}" for kind, finding in self.findings.items()]
        return "\n  ".join([f"{self.claim.name} ({self.claim.source.key}, {self.claim.source.where})", *lines])


def families() -> list[str]:
    """The families of models that have claims, sorted."""
    names = [info.name for info in pkgutil.iter_modules(import_module(GROUP).__path__) if info.ispkg]
    return sorted(name for name in names if find_spec(f"{GROUP}.{name}.{MODULE}") is not None)


def all_claims(family: str | None = None) -> list[Claim]:
    """All claims, or those of a family, of which some have none; sorted by paper, in the order of their family's file."""
    chosen = [name for name in families() if family in (None, name)]
    claims: list[Claim] = [claim for name in chosen for claim in import_module(f"{GROUP}.{name}.{MODULE}").CLAIMS]
    return sorted(claims, key=lambda claim: claim.source.key)


def choose_claims(name: str | None = None, *, slow: bool = False) -> list[Claim]:
    """The claims of a family, of a model, or the one with this name; all of them for None. slow: also those that take minutes.

    A claim that is named is chosen even if it is slow. Raises ParamError for an unknown name.
    """
    claims = all_claims()
    if name is not None and any(claim.name == name for claim in claims):
        return [claim for claim in claims if claim.name == name]
    chosen = [claim for claim in claims if name is None or name == claim.name.partition(".")[0] or name in claim.models]
    if not chosen:
        known = {claim.name for claim in claims} | {model for claim in claims for model in claim.models} | set(families())
        raise ParamError(no_such("claim, model or family", str(name), known, lister="odesim verify --list"))
    return [claim for claim in chosen if slow or not claim.slow]


def check_claim(claim: Claim) -> ClaimResult:
    """Runs the checks of a claim. An exception in a check is its finding, so that other claims are still checked."""
    start = time.perf_counter()
    findings = {kind: check_statement(statement) for kind, statement in claim.statements.items()}
    return ClaimResult(claim, findings, time.perf_counter() - start)


def check_statement(statement: Statement) -> Finding:
    """Runs the checks of one statement."""
    try:
        inside = tuple(statement.check())
        outside = tuple(statement.otherwise()) if statement.otherwise else ()
    except Exception as error:
        return Finding(statement, Verdict.ERROR, error=" ".join(f"{type(error).__name__}: {error}".split()))
    held, always = (all(measurement.holds for measurement in part) for part in (inside, outside))  # no condition: both alike
    return Finding(statement, Verdict.FAILS if not held else Verdict.HOLDS if always else Verdict.HOLDS_WHEN, inside, outside)


# `odesim.verify`: checks statements of the papers.


@dataclass(frozen=True)
class Verification:
    """The claims that were checked, sorted by paper. unchecked: names of those that an interrupt left out, from the one that it met on."""

    results: tuple[ClaimResult, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def as_recorded(self) -> bool:
        """Whether all claims are checked and all verdicts are the recorded ones."""
        return not self.unchecked and all(result.as_recorded for result in self.results)

    def __iter__(self) -> Iterator[ClaimResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        """Each claim with its statements and their verdicts."""
        return "\n".join(map(str, self.results))


@readable
def verify(name: str | None = None, *, slow: bool = False, progress: Callable[[int, int, str], object] | None = None) -> Verification:
    """The claims of papers, checked: each is a statement and a run that shows whether it holds.

    Parameters
    ----------
    name : str
        A family (`joma`), a model (`joma.linear`) or one claim; default: all claims.
    slow : bool
        Also those that take minutes.
    progress : callable
        Called as progress(done, total, name) before each claim.

    Returns
    -------
    Verification
        The verdicts; print() shows them beside those recorded. After Ctrl-C: of the claims before it.

    Raises
    ------
    ParamError
        For an unknown name; KeyboardInterrupt at Ctrl-C in the first claim.

    Examples
    --------
    >>> verdict = odesim.verify("joma.conserved_ratio")
    >>> verdict.as_recorded
    True
    """
    if name is not None and not isinstance(name, str):
        raise ParamError(f"name is the text of a claim, model or family, or None, not {value_text(name)}")
    if not isinstance(slow, bool):
        raise ParamError(f"slow is True or False, not {value_text(slow)}")
    results: list[ClaimResult] = []
    claims = choose_claims(name, slow=slow)
    try:
        for done, claim in enumerate(claims):
            if progress is not None:
                progress(done, len(claims), claim.name)
            with all_or_nothing():  # of a run that was interrupted there is no verdict
                result = check_claim(claim)
            results.append(result)
    except KeyboardInterrupt:
        if not results:
            raise
    return Verification(tuple(results), tuple(claim.name for claim in claims[len(results) :]))
