"""Claims on dynamics see them: where the models of a claim move a little otherwise, its verdict changes."""

import pkgutil
from typing import Any

import numpy as np
import pytest

from odesim.lab.claims import all_claims, check_claim
from odesim.lab.tasks.modular import pairs_of
from tests.lab.test_claims import NAMES, claims
from tests.support.matrix import slow_but
from tests.support.perturbed import CHANGES, RULES, other_rule, perturbed

NUMBERS = {  # of formulas, matrices, counts and trainings: no model is integrated, and what must notice is in RULES
    *("galore.adam", "galore.draws", "galore.memory", "galore.memory_rank", "galore.rank_tails", "galore.seven_billion"),
    *("galore.sizes", "galore.stiffness"),
    *("gibbs.closed_spectra", "gibbs.dictionary", "gibbs.entropy_ratio", "gibbs.estimates", "gibbs.masking_more", "gibbs.mixing_times"),
    *("gibbs.per_token", "gibbs.redraws", "gibbs.score", "gibbs.strong_correlations", "gibbs.two_points"),
    *(
        "hierarchy.nodes",
        "hierarchy.polarity",
        "hopfield.capacity",
        "joma.overlaps",
        "scan_snap.sinks_on_text",
        "scan_snap.sparse_on_text",
    ),
    *("topics.on_text", "topics.optimum", "topics.same_topic", "topics.slope", "topics.values_first_on_text"),
    *(name for name in NAMES if name.startswith("static.")),
}
TRAINED = ("modular.muon", "modular.grokking")
"""Of trainings alone, with other data in the place of another model."""
STILL = {"hierarchy.occurrence_law", "topics.loss"}  # of functions of parameters or of states, which a run only evaluates at its start
DEFAULT = ("hierarchy.moments", "joma.from_below", "joma.linear_sparsifies", "joma.zero_start", "reversal.test_pairs")


@pytest.mark.parametrize("name", slow_but([name for name in NAMES if name not in TRAINED], DEFAULT))
def test_a_claim_sees_the_dynamics(name: str) -> None:
    """One of the changes turns a verdict of the claim over, without an exception; of NUMBERS and STILL alone none does."""
    seen, moved = False, set[str]()
    for change in CHANGES:
        with perturbed(change) as changed:
            result = check_claim(claims()[name])
        moved |= changed
        seen = not result.as_recorded and not any(finding.error for finding in result.findings.values())
        if seen or not moved:
            break
    assert (seen, bool(moved)) == (name not in NUMBERS | STILL, name not in NUMBERS), name


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_a_claim_sees_the_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that are a random table have no frequencies and nothing to be led on to: the verdict changes, without an exception."""
    table = np.random.default_rng(0).permutation(23 * 23)

    def scrambled(p: int, chosen: Any) -> Any:
        return {**pairs_of(p, chosen), "sums": pairs_of(p, table[chosen])["sums"]}

    monkeypatch.setattr("odesim.lab.tasks.modular.pairs_of", scrambled)
    result = check_claim(claims()[name])
    assert not result.as_recorded and not any(finding.error for finding in result.findings.values())


ONE_LINE = {"hierarchy.polarity"}  # a formula beside recorded numbers, with no helper between
QUICK = ("static.heavy_hitters", "static.hallucination", "galore.seven_billion", "topics.slope", "gibbs.score")


@pytest.mark.parametrize("name", slow_but(sorted((NUMBERS | STILL) - ONE_LINE), QUICK))
def test_a_claim_of_numbers_sees_its_rule(name: str) -> None:
    """5 % more of what its helpers return, or another rule, data or count, turns a verdict over, without an exception."""
    claim = claims()[name]  # its modules are there before they are changed
    with other_rule(name):
        result = check_claim(claim)
    assert [finding.error for finding in result.findings.values() if finding.error] == []
    assert not result.as_recorded


def test_tables_name_claims() -> None:
    """What they name is there; rules are of claims that no run sees."""
    assert NUMBERS | STILL | {*DEFAULT, *TRAINED} <= {claim.name for claim in all_claims()}
    assert set(RULES) | ONE_LINE | set(QUICK) <= NUMBERS | STILL
    for path, _ in RULES.values():
        pkgutil.resolve_name(path)
