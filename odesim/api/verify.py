"""`odesim.verify`: checks statements of the papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from odesim.base.errors import ParamError, value_text
from odesim.base.parsing import readable
from odesim.base.signals import all_or_nothing
from odesim.claims.ledger import ClaimResult, check_claim, choose_claims


@dataclass(frozen=True)
class Verification:
    """The claims that were checked, in the order of the ledger."""

    results: tuple[ClaimResult, ...]

    @property
    def as_recorded(self) -> bool:
        """Whether all verdicts are the recorded ones."""
        return all(result.as_recorded for result in self.results)

    def __iter__(self) -> Iterator[ClaimResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        """Each claim with its statements and their verdicts."""
        return "\n".join(map(str, self.results))


@readable
def verify(name: str | None = None, *, slow: bool = False, progress: Callable[[int, int, str], object] | None = None) -> Verification:
    """Checks the claims of a family (`joma`), of a model (`joma.linear`), or one claim; all claims for None.

    slow: also those that take minutes. progress: called as progress(done, total, name) before each claim.
    Raises ParamError for an unknown name, KeyboardInterrupt at Ctrl-C.
    """
    if name is not None and not isinstance(name, str):
        raise ParamError(f"name is the text of a claim, model or family, or None, not {value_text(name)}")
    if not isinstance(slow, bool):
        raise ParamError(f"slow is True or False, not {value_text(slow)}")
    results, claims = [], choose_claims(name, slow=slow)
    for done, claim in enumerate(claims):
        if progress is not None:
            progress(done, len(claims), claim.name)
        with all_or_nothing():  # of a run that was interrupted there is no verdict
            results.append(check_claim(claim))
    return Verification(tuple(results))
