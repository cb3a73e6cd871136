"""The claims of all families, and what their checks find."""

import pkgutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec

from odesim.base.errors import ParamError, no_such
from odesim.claims.claim import Claim, Measurement, Statement, Verdict

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
    found = [info.name for info in pkgutil.iter_modules(import_module(GROUP).__path__) if info.ispkg]
    return sorted(name for name in found if find_spec(f"{GROUP}.{name}.{MODULE}") is not None)


def all_claims() -> list[Claim]:
    """All claims, sorted by paper, in the order of their family's file."""
    claims: list[Claim] = [claim for family in families() for claim in import_module(f"{GROUP}.{family}.{MODULE}").CLAIMS]
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
        raise ParamError(no_such("claim, model or family", str(name), known, "the ledger"))
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
    return Finding(statement, verdict_of(inside, outside), inside, outside)


def verdict_of(inside: Iterable[Measurement], outside: Iterable[Measurement]) -> Verdict:
    """The verdict from measurements under the condition of a statement, and without it (empty: there is no condition)."""
    if not all(measurement.holds for measurement in inside):
        return Verdict.FAILS
    return Verdict.HOLDS if all(measurement.holds for measurement in outside) else Verdict.HOLDS_WHEN
