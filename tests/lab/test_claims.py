"""Every claim comes out as recorded."""

import ast
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import odesim
from odesim.base.errors import ParamError
from odesim.inputs.registry import list_models
from odesim.lab.claims import (
    Claim,
    Measurement,
    Statement,
    Verdict,
    all_claims,
    check_claim,
    check_statement,
    choose_claims,
    deviation,
    families,
)
from tests.support.matrix import slow_but

ROOT = Path(__file__).parents[2]
NAMES = re.findall(r"^\| `([\w.]+)`", (ROOT / "docs/claims.md").read_text(), re.MULTILINE)
"""As the page has them, without loading a model."""


def slow_claims() -> set[str]:
    """The names of the claims that take minutes, as their files have them."""
    calls = [node for path in (ROOT / "models").rglob("*claims.py") for node in ast.walk(ast.parse(path.read_text()))]
    found = [node for node in calls if isinstance(node, ast.Call) and any(word.arg == "slow" for word in node.keywords)]
    return {str(node.args[0].value) for node in found if isinstance(node.args[0], ast.Constant)}


QUICK = sorted(set(NAMES) - slow_claims())


@cache
def claims() -> dict[str, Claim]:
    """The claims by name."""
    return {claim.name: claim for claim in all_claims()}


@pytest.mark.first(6)
@pytest.mark.parametrize("name", slow_but(NAMES, QUICK))
def test_a_claim_is_as_recorded(name):
    """Both verdicts are the recorded ones; what fails is off by more than five tolerances, which is no doubtful case."""
    result = check_claim(claims()[name])
    assert [finding.error for finding in result.findings.values()] == [""] * len(result.findings)
    assert result.as_recorded, result
    for finding in result.findings.values():
        wrong = [m for m in (*finding.measurements, *finding.outside) if not m.holds]
        assert (finding.verdict == Verdict.HOLDS) == (not wrong)
        assert not wrong or max(m.excess / m.tolerance if m.tolerance else float("inf") for m in wrong) > 5


def test_claims_are_well_formed():
    """Names are unique and no model's, sources are in the bibliography, models exist, every text is one line, tolerances have a reason."""
    keys = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "models/references.bib").read_text(), re.MULTILINE))
    every = all_claims()
    assert [claim.name for claim in every] == NAMES and set(QUICK) == {claim.name for claim in every if not claim.slow}
    assert len(claims()) == len(every) >= 20 and not set(NAMES) & set(list_models())
    assert [claim.source.key for claim in every] == sorted(claim.source.key for claim in every)
    assert {family: [c.name for c in all_claims(family)] for family in families()} == {
        family: [name for name in NAMES if name.startswith(f"{family}.")] for family in families()
    }
    for claim in every:
        assert set(claim.depends) <= set(NAMES) and len(set(claim.depends)) == len(claim.depends)
        assert claim.name.partition(".")[0] in families() and claim.source.key in keys and claim.source.where
        assert bool(claim.models) is not claim.name.startswith("static.")  # numbers alone, no run
        assert set(claim.models) <= set(list_models()) and set(claim.statements) <= {"printed", "corrected"}
        assert (claim.printed.verdict == Verdict.FAILS) <= (claim.corrected is not None)
        for statement in claim.statements.values():
            assert statement.tolerance and (statement.verdict == Verdict.HOLDS_WHEN) == bool(statement.when) == bool(statement.otherwise)
            assert all("\n" not in text for text in (statement.text, statement.when, statement.tolerance, claim.run))


def test_no_claim_builds_on_itself():
    """Not by way of others either: taking away, again and again, those that build on none that is left, all go."""
    left = {name: set(claim.depends) for name, claim in claims().items()}
    while free := [name for name, on in left.items() if not on & set(left)]:
        left = {name: on for name, on in left.items() if name not in free}
    assert not left and any(claim.depends for claim in claims().values())


def test_entries_of_the_bibliography_are_whole():
    """Each closes its braces and has a key of its own: a merge of two ends loses a line easily."""
    entries = re.split(r"^(?=@)", (ROOT / "models/references.bib").read_text(), flags=re.MULTILINE)[1:]
    assert [entry.split("\n")[0] for entry in entries if entry.count("{") != entry.count("}") or "\n}" not in entry] == []
    assert len({entry.split(",")[0] for entry in entries}) == len(entries)


INSIDE, OUTSIDE = Measurement("a", 1.0, 1.0, 0.1), Measurement("a", 2.0, 1.0, 0.1)


@pytest.mark.parametrize(
    ("inside", "outside", "verdict"),
    [
        ([INSIDE], None, Verdict.HOLDS),
        ([INSIDE, OUTSIDE], None, Verdict.FAILS),
        ([INSIDE], [OUTSIDE, INSIDE], Verdict.HOLDS_WHEN),
        ([INSIDE], [INSIDE], Verdict.HOLDS),
        ([OUTSIDE], [INSIDE], Verdict.FAILS),
    ],
)
def test_verdicts(inside, outside, verdict):
    """A statement holds if all measurements do; under a condition if they do not all hold without it."""
    statement = Statement("x", lambda: inside, "none", otherwise=None if outside is None else lambda: outside)
    assert check_statement(statement).verdict == verdict


@pytest.mark.parametrize(
    ("relation", "measured", "holds"),
    [("=", 1.05, True), ("=", 1.2, False), ("<=", 0.0, True), ("<=", 1.2, False), (">=", 5.0, True), (">=", 0.8, False)]
    + [(relation, float("nan"), False) for relation in ("=", "<=", ">=")],
)
def test_relations(relation, measured, holds):
    """Within the tolerance .1 of 1; NaN satisfies nothing."""
    assert Measurement("a", measured, 1.0, 0.1, relation).holds is holds


def test_deviation():
    """The largest one, relative if asked; NaN stays."""
    assert deviation("a", [1.0, 2.5], [1.0, 2.0], 0.1).measured == 0.5
    assert deviation("a", [1.0, 2.5], [1.0, 2.0], 0.1, relative=True).measured == 0.25
    assert not deviation("a", [1.0, float("nan")], 1.0, 1.0).holds


@pytest.mark.parametrize(("name", "count"), [("joma", 32), ("joma.nonlinear", 6), ("joma.bounce", 1)])
def test_choice(name, count):
    """A family, a model, a claim."""
    assert len(choose_claims(name)) == count


def test_slow_claims_are_chosen_by_name_or_by_option(monkeypatch):
    """Without --slow the others alone."""
    claims = [replace(claim, slow=claim.name == "joma.bounce") for claim in all_claims()]
    monkeypatch.setattr("odesim.lab.claims.all_claims", lambda: claims)
    assert len(choose_claims("joma")) == 35 and len(choose_claims("joma", slow=True)) == 36
    assert [claim.name for claim in choose_claims("joma.bounce")] == ["joma.bounce"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "name": (
        {"name": "joma.bonce"},
        "no claim, model or family 'joma.bonce'; `odesim verify --list` names what there is; did you mean 'joma.bounce'?",
    ),
    "kind": ({"name": 3}, "name is the text of a claim, model or family, or None, not 3"),
    "slow": ({"slow": "yes"}, "slow is True or False, not 'yes'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests(case):
    given, sentence = WRONG[case]
    with pytest.raises(ParamError, match=sentence):
        odesim.verify(**given)
