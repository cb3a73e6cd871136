"""The JSON of `odesim verify`, and its schema (JSON Schema 2020-12) for those who read it with other programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from odesim.lab.claims import ClaimResult, Measurement, Verification

FORM, VERSION = "odesim.claims", 1
"""What a document says of itself. VERSION changes where a reader of the last one would go wrong; more keys are no change."""

VERDICTS = ["holds", "holds only when", "fails"]


def text(doc: str) -> dict[str, Any]:
    """A string."""
    return {"type": "string", "description": doc}


def array(items: Any, doc: str) -> dict[str, Any]:
    """A list."""
    return {"type": "array", "items": items, "description": doc}


def fields(doc: str, /, **properties: Any) -> dict[str, Any]:
    """An object that has all these keys, and may have others."""
    return {"type": "object", "description": doc, "properties": properties, "required": list(properties)}


NUMBER = {"type": ["number", "null"], "description": "null for a number that is not finite"}
MEASUREMENT = fields(
    "One number that the statement predicts, and what a run gives.",
    name=text("What is measured, in words."),
    relation={"enum": ["=", "<=", ">="], "description": "How measured stands to expected, up to tolerance."},
    measured=NUMBER,
    expected=NUMBER,
    tolerance=NUMBER,
    holds={"type": "boolean", "description": "Whether the relation is satisfied; false where measured is null."},
)
STATEMENT = fields(
    "A statement with its verdict.",
    text=text("The statement in one line."),
    when=text("The condition under which it holds; empty if there is none."),
    verdict={"enum": [*VERDICTS, "error"], "description": "What was found now."},
    recorded={"enum": VERDICTS, "description": "What odesim has recorded, and its documentation shows."},
    tolerance=text("How the tolerances of the measurements follow."),
    error=text("The exception of a check that raised one; else empty."),
    measurements=array(MEASUREMENT, "Under the condition."),
    outside=array(MEASUREMENT, "In a case without the condition, where one of them must fail; empty without a condition."),
)
CLAIM = fields(
    "A statement of a paper, as printed and, where that fails, as corrected.",
    name=text("<family>.<name>, which does not change: the claim's address is claims.html#<name> in the documentation."),
    paper=text("Its key in models/references.bib."),
    place=text("Where in the paper."),
    run=text("What is run, in one line."),
    models=array({"type": "string"}, "The models that are run."),
    depends=array({"type": "string"}, "Names of claims that this one builds on: where one of them changes its verdict, look at this one."),
    slow={"type": "boolean", "description": "Whether its check takes minutes."},
    seconds={"type": "number", "description": "What the check took."},
    as_recorded={"type": "boolean", "description": "Whether all its verdicts are the recorded ones."},
    statements={
        "type": "object",
        "description": "The statement as printed, and the corrected one if there is one.",
        "properties": {"printed": STATEMENT, "corrected": STATEMENT},
        "required": ["printed"],
        "additionalProperties": False,
    },
)
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Claims that odesim has checked",
    **fields(
        "What `odesim verify --json` prints.",
        format={"const": FORM},
        version={"const": VERSION},
        as_recorded={"type": "boolean", "description": "Whether all claims are checked and all verdicts are the recorded ones."},
        claims=array(CLAIM, "Sorted by paper."),
        unchecked=array({"type": "string"}, "Names of claims that an interrupt left out."),
    ),
}


def claims_json(checked: Verification) -> str:
    """Output of `odesim verify --json` on one line of ASCII; numbers that are not finite are null."""
    rows = [claim_object(result) for result in checked.results]
    about = {"format": FORM, "version": VERSION, "as_recorded": checked.as_recorded, "unchecked": checked.unchecked}
    return json.dumps({**about, "claims": rows}, allow_nan=False)


def claim_object(result: ClaimResult) -> dict[str, Any]:
    """A claim with its findings as data: of each statement the verdict and its measurements."""
    from odesim.plot.figures import as_json

    def measured(all_of_them: Iterable[Measurement]) -> list[dict[str, Any]]:
        numbers = ("measured", "expected", "tolerance")
        return [
            {**{key: getattr(m, key) for key in ("name", "relation", "holds")}, **{key: as_json(getattr(m, key)) for key in numbers}}
            for m in all_of_them
        ]

    claim, statements = result.claim, {}
    for kind, finding in result.findings.items():
        statement = finding.statement
        words = {"text": statement.text, "when": statement.when, "verdict": str(finding.verdict), "recorded": str(statement.verdict)}
        words |= {"tolerance": statement.tolerance, "error": finding.error}
        statements[kind] = {**words, "measurements": measured(finding.measurements), "outside": measured(finding.outside)}
    about = {"name": claim.name, "paper": claim.source.key, "place": claim.source.where, "run": claim.run, "models": list(claim.models)}
    about["depends"] = list(claim.depends)
    outcome = {"slow": claim.slow, "seconds": result.seconds, "as_recorded": result.as_recorded}
    return {**about, **outcome, "statements": statements}
