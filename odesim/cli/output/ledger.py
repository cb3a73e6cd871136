"""Output of `odesim verify`: the ledger as text in 80 columns, as JSON, and as a page of Markdown."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from odesim.base.errors import counted
from odesim.cli.tables import table, wrap_paragraph

if TYPE_CHECKING:
    from odesim.api.verify import Verification
    from odesim.claims import Claim, Measurement
    from odesim.claims.ledger import ClaimResult, Finding


def ledger_text(checked: "Verification") -> str:
    """All claims by paper, each statement with its verdict and measurements, and a last line that counts them."""
    parts = []
    for paper, results in groupby(checked.results, key=lambda result: result.claim.source.key):
        parts += [paper, *(claim_text(result) for result in results)]
    return "\n\n".join([*parts, summary_text(checked.results)])


def claim_text(result: "ClaimResult") -> str:
    """A claim: its place in the paper, what is run, and its statements."""
    claim = result.claim
    lines = [f"{claim.name}: {claim.source.where}", wrap_paragraph(f"run: {claim.run}", "  ")]
    for kind, finding in result.findings.items():
        lines += [wrap_paragraph(f"{kind}: {finding.statement.text}", "  "), finding_text(finding)]
    return "\n".join(lines)


def list_text(claims: Iterable["Claim"]) -> str:
    """The claims with their places and statements, none checked."""
    return "\n".join(f"{c.name}: {c.source.where}{' (slow)' * c.slow}\n{wrap_paragraph(c.printed.text, '  ')}" for c in claims)


def finding_text(finding: "Finding") -> str:
    """The verdict of a statement and its measurements."""
    verdict = str(finding.verdict)
    if finding.verdict == "holds only when":
        verdict += f" {finding.statement.when}"
    if not finding.as_recorded:
        verdict += f" (recorded: {finding.statement.verdict})"
    lines = [wrap_paragraph(verdict.upper() if not finding.as_recorded else verdict, "    ")]
    if finding.error:
        return "\n".join([*lines, wrap_paragraph(finding.error, "      ")])
    lines.append(table(map(measurement_row, finding.measurements), indent="      ", right=(1,)))
    if finding.outside:
        lines += ["    without this condition", table(map(measurement_row, finding.outside), indent="      ", right=(1,))]
    return "\n".join(lines)


def measurement_row(m: "Measurement") -> tuple[str, ...]:
    """Whether a measurement holds, the number, what is expected, and its name."""
    bound = f" +- {m.tolerance:.2g}" if m.tolerance else ""
    return ("yes" if m.holds else "no", f"{m.measured:.6g}", f"{m.relation} {m.expected:.6g}{bound}", m.name)


OUTCOMES = ("hold as printed", "only under a condition", "only corrected", "fail", "with an error")


def summary_text(results: Sequence["ClaimResult"]) -> str:
    """One sentence: claims by outcome, and whether all verdicts are as recorded."""
    counts = Counter(outcome(result) for result in results)
    parts = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
    off = [result.claim.name for result in results if not result.as_recorded]
    end = f"not as recorded: {', '.join(off)}" if off else "all verdicts are as recorded"
    return wrap_paragraph(f"{counted(len(results), 'claim')}: {parts}; {end}")


def outcome(result: "ClaimResult") -> str:
    """One of OUTCOMES."""
    verdicts = [str(finding.verdict) for finding in result.findings.values()]
    if "error" in verdicts:
        return OUTCOMES[4]
    if verdicts[0] == "fails":
        return OUTCOMES[2] if verdicts[1:] == ["holds"] else OUTCOMES[3]
    return OUTCOMES[0] if verdicts[0] == "holds" else OUTCOMES[1]


def ledger_json(checked: "Verification") -> str:
    """The object that --json prints, on one line of ASCII; numbers that are not finite are null."""
    rows = [claim_object(result) for result in checked.results]
    return json.dumps({"as_recorded": checked.as_recorded, "claims": rows}, allow_nan=False)


def claim_object(result: "ClaimResult") -> dict[str, Any]:
    """A claim with its findings as data."""
    claim = result.claim
    return {
        "name": claim.name,
        "paper": claim.source.key,
        "place": claim.source.where,
        "run": claim.run,
        "models": list(claim.models),
        "slow": claim.slow,
        "seconds": result.seconds,
        "as_recorded": result.as_recorded,
        "statements": {kind: finding_object(finding) for kind, finding in result.findings.items()},
    }


def finding_object(finding: "Finding") -> dict[str, Any]:
    """The verdict of a statement and its measurements as data."""
    statement = finding.statement
    return {
        "text": statement.text,
        "when": statement.when,
        "verdict": str(finding.verdict),
        "recorded": str(statement.verdict),
        "tolerance": statement.tolerance,
        "error": finding.error,
        "measurements": [measurement_object(m) for m in finding.measurements],
        "outside": [measurement_object(m) for m in finding.outside],
    }


def measurement_object(m: "Measurement") -> dict[str, Any]:
    """A measurement as data."""
    from odesim.plot.figures import as_json

    numbers = {"measured": float(m.measured), "expected": float(m.expected), "tolerance": float(m.tolerance)}
    return {"name": m.name, "relation": m.relation, "holds": bool(m.holds)} | {key: as_json(value) for key, value in numbers.items()}


def ledger_page(claims: Iterable["Claim"]) -> str:
    """docs/ledger.md: all claims with their recorded verdicts, a table for each paper."""
    about = "Statements of the papers, each checked by `odesim verify NAME`. This page is written by `odesim verify --page`."
    lines = ["# The ledger", "", about]
    for paper, group in groupby(claims, key=lambda claim: claim.source.key):
        lines += ["", f"## {paper_title(paper)}", "", f"`{paper}`", "", *claim_table(group)]
    return "\n".join(lines)


def claim_table(claims: Iterable["Claim"]) -> list[str]:
    """The lines of a table of Markdown: each claim with its place in the paper, its statement and verdict, then the corrected statement."""
    lines = ["| claim | statement | verdict |", "|---|---|---|"]
    for claim in claims:
        for kind, statement in claim.statements.items():
            first = f"`{claim.name}`<br>{claim.source.where}" if kind == "printed" else kind
            verdict = f"{statement.verdict} {statement.when}" if statement.when else str(statement.verdict)
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in (first, statement.text, verdict)) + " |")
    return lines


def paper_title(key: str) -> str:
    """The key of a paper as a title: tian2023joma -> Tian 2023, joma."""
    found = re.fullmatch(r"([a-z]+)(\d{4})(\w+)", key)
    return f"{found[1].capitalize()} {found[2]}, {found[3]}" if found else key
