"""Output of `odesim train`, `compare` and `verify`: text in 80 columns, JSON of trainings, and claims as a page of Markdown."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.cli.tables import GLUE, file_rows, number_text, shape_text, table, thousands, wrap_paragraph
from odesim.lab.compare.comparison import Comparison
from odesim.lab.compare.pairs import pairs_of
from odesim.lab.training.loop import Trajectory
from odesim.lab.training.optimizers import settings_in_use
from odesim.lab.training.record import MAX_RECORDED_ENTRIES
from odesim.lab.training.task import Experiment, Setting, Task, check_settings
from odesim.store.plain import to_plain

if TYPE_CHECKING:
    from odesim.lab.claims import Claim, ClaimResult, Finding, Verification


def settings_text(task: Task) -> str:
    """Output of `odesim train TASK --settings`: settings with defaults and ranges, models with observables, Systems that describe it."""
    rows = [(s.name, default_text(s.default), f"{s.doc}{limits_text(s)}") for s in task.settings]
    parts = [f"{task.name}\n{wrap_paragraph(task.doc, '  ')}", f"settings\n{table(rows, ('', 'default', ''))}"]
    defaults = check_settings(task.name, task.settings, {})
    parts += [model_text(task.make(defaults, seeds=(0,), model=name), name, name == task.models[0]) for name in task.models]
    examples = {name: [setting_option(key, value) for key, value in pair.example.items()] for name, pair in pairs_of(task.name).items()}
    systems = [(system, " ".join(words) or "with the default settings") for system, words in examples.items()]
    parts += [f"described by (odesim compare)\n{table(systems)}"] * bool(systems)
    return "\n".join(parts)


def setting_option(name: str, value: Any) -> str:
    """`--set NAME=VALUE` as a shell takes it."""
    array = isinstance(value, np.ndarray | list | tuple)
    text = json.dumps(np.asarray(value).tolist(), separators=(",", ":")) if array else str(value)
    return f"--set{GLUE}{quote(f'{name}={text}')}"


def model_text(experiment: Experiment, name: str, first: bool) -> str:
    """The description of a model: default steps, optimizer, groups of learning rates, observables. first: it is the default."""
    spec = experiment.optimizer
    rates = ", ".join(f"{group}{GLUE}{number_text(rate)}" for group, rate in spec.rates.items())
    run = [("steps", str(experiment.steps)), ("optimizer", spec.name), ("rates", f"{rates} (--lr GROUP=RATE)")]
    seen = [
        (o.name + (f" ({', '.join(o.dims)})" if o.dims else ""), o.doc + "; at the end" * o.costly) for o in experiment.model.observables
    ]
    more = (
        f"  (at the end: kept at the end only, as is what has more than {MAX_RECORDED_ENTRIES}\n  entries; all along with --observe NAME)"
    )
    head = f"model {name}{', the default' if first else f' (--model {name})'}"
    return f"{head}\n{table(run)}\nobservables of {name}\n{table([('loss', 'of the batch of the iteration'), *seen])}\n{more}"


def default_text(value: Any) -> str:
    """The default of a setting as text; `-` if there is none."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else value or "-"


def limits_text(setting: Setting) -> str:
    """The allowed words or range of a setting as text in brackets; empty if there are no limits."""
    if setting.choices:
        return f" ({', '.join(setting.choices)})"
    low = "" if setting.low is None else f"above {setting.low:g}" if setting.open_low else f"at least {setting.low:g}"
    high = "" if setting.high is None else f"at most {setting.high:g}"
    limits = ", ".join(filter(None, (low, high)))
    return f" ({limits})" if limits else ""


def training_json(trajectory: Trajectory, out: Path | None) -> str:
    """Output of `odesim train --json` on one line of ASCII. `final` {name: [value of each seed]}, a digest for more than 1000 entries."""
    fields = {name: getattr(trajectory, name) for name in ("task", "model", "status", "message", "steps", "seeds")}
    fields |= {"time": trajectory.iteration}
    fields |= {"final": {name: [to_plain(np.asarray(one)) for one in values] for name, values in trajectory.final.items()}}
    fields |= {"stats": trajectory.stats, "optimizer": settings_in_use(trajectory.attrs["optimizer"])}
    return json.dumps(to_plain({**fields, "backend": trajectory.attrs["backend"], "out": out}), allow_nan=False)


def training_text(trajectory: Trajectory, out: Path | None, picture: Path | None) -> str:
    """The result as text in 80 columns: final observables over seeds, optimizer, speed, files."""
    count = len(trajectory.seeds)
    seeds = counted(count, "seed") if count > 1 else f"seed {trajectory.seeds[0]}"
    head = f"{trajectory.task} ({trajectory.model}): {trajectory.status} at iteration {trajectory.iteration}, {seeds}"
    rows = [(name, shape_text(v.shape[1:]), range_text(v)) for name, v in trajectory.final.items()]
    stats = trajectory.stats
    run = [("optimizer", optimizer_text(trajectory.attrs["optimizer"])), ("backend", trajectory.attrs["backend"])]
    run += [("seconds", f"{stats['seconds']:.3g}, {thousands(stats['steps_per_second'])} iterations a second")] if stats else []
    run += file_rows(out, picture)
    return f"{head}\nfinal\n{table(rows)}\nrun\n{table(run)}"


def range_text(values: Array) -> str:
    """Values (R, *shape) as text: the number of one seed, mean and range over seeds, or the range of an array."""
    low, high = number_text(values.min()), number_text(values.max())
    if values.ndim > 1:
        return f"in [{low}, {high}]"
    return low if values.size == 1 else f"mean {number_text(values.mean())}, in [{low}, {high}] over the seeds"


def optimizer_text(spec: Any) -> str:
    """An optimizer as text: name, learning rates, momentum and weight decay if used."""
    rates = [f"{group} {number_text(rate)}" for group, rate in spec["rates"].items()]
    values = settings_in_use(spec)
    more = [f"{name.replace('_', ' ')} {number_text(values[name])}" for name in ("momentum", "weight_decay") if values.get(name)]
    more += [f"falling to 0 in {counted(values['cosine'], 'update')}"] if values.get("cosine") else []
    return f"{spec['name']}, learning rate {', '.join([*rates, *more])}"


FITTED = ("free", "value", "error", "low", "high", "correlation")


def comparison_json(comparison: Comparison) -> str:
    """Output of `odesim compare --json` on one line of ASCII: what is compared, the times, a row for each observable; NaN is null.

    `each` of a row is {metric: [value of each seed]}, empty for one seed. numbers: of a recipe. fit: of fitted numbers.
    """
    times = {"first": comparison.t[0], "last": comparison.t[-1], "count": len(comparison.t)}
    fields = {**comparison.said, "notes": (*comparison.doubts, *comparison.notes), "seeds": comparison.seeds, "time": times}
    fields |= {"observables": comparison.table(), "worst": comparison.worst()["observable"]}
    if comparison.fit is not None:
        fields["fit"] = {name: comparison.fit[name].values for name in FITTED} | dict(comparison.fit.attrs)
    rows = [{**asdict(number), "agrees": number.agrees} for number in comparison.numbers]
    return json.dumps(to_plain({**fields, "numbers": rows} if rows else fields), allow_nan=False)


# Output of `odesim verify`: the claims as text in 80 columns, as JSON, and as a page of Markdown.


def claims_text(checked: "Verification") -> str:
    """All claims by paper, each statement with its verdict and measurements, and a last line that counts them."""
    parts = []
    for paper, results in groupby(checked.results, key=lambda result: result.claim.source.key):
        parts += [paper, *(claim_text(result) for result in results)]
    return "\n\n".join([*parts, claims_summary(checked.results, checked.unchecked)])


def claim_text(result: "ClaimResult") -> str:
    """A claim: its place in the paper, what is run, and its statements."""
    claim = result.claim
    lines = [f"{claim.name}: {claim.source.where}", wrap_paragraph(f"run: {claim.run}", "  ")]
    lines += [wrap_paragraph(f"builds on: {', '.join(claim.depends)}", "  ")] * bool(claim.depends)
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
    for measurements in filter(None, (finding.measurements, finding.outside)):
        lines += ["    without this condition"] * (measurements is finding.outside)
        bounds = [f" +- {m.tolerance:.2g}" if m.tolerance else "" for m in measurements]
        wanted = [f"{m.relation} {m.expected:.6g}{bound}" for m, bound in zip(measurements, bounds, strict=True)]
        rows = [("yes" if m.holds else "no", f"{m.measured:.6g}", w, m.name) for m, w in zip(measurements, wanted, strict=True)]
        lines.append(table(rows, indent="      ", right=(1,)))
    return "\n".join(lines)


def building_on(names: Iterable[str]) -> list[str]:
    """The names of all other claims that build on these, some by way of others, in the order of the page."""
    from odesim.lab.claims import all_claims

    first, claims = set(names), all_claims()
    reached, size = set(first), 0
    while len(reached) > size:
        size = len(reached)
        reached |= {claim.name for claim in claims if reached & set(claim.depends)}
    return [claim.name for claim in claims if claim.name in reached - first]


OUTCOMES = ("hold as printed", "only under a condition", "only corrected", "fail", "with an error")


def claims_summary(results: Sequence["ClaimResult"], unchecked: Sequence[str] = ()) -> str:
    """Claims by outcome, whether all verdicts are as recorded, what builds on those that are not, and how many are not checked."""
    counts = Counter(outcome(result) for result in results)
    parts = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
    off = [result.claim.name for result in results if not result.as_recorded]
    end = f"not as recorded: {', '.join(off)}" if off else "all verdicts are as recorded"
    others = building_on(off) if off else []
    end += f"; see also what builds on {'it' if len(off) == 1 else 'them'}: {', '.join(others)}" * bool(others)
    end += f"; interrupted: {counted(len(unchecked), 'claim')} from {unchecked[0]} on not checked" if unchecked else ""
    return wrap_paragraph(f"{counted(len(results), 'claim')}: {parts}; {end}")


def outcome(result: "ClaimResult") -> str:
    """One of OUTCOMES."""
    verdicts = [str(finding.verdict) for finding in result.findings.values()]
    if "error" in verdicts:
        return OUTCOMES[4]
    if verdicts[0] == "fails":
        return OUTCOMES[2] if verdicts[1:] == ["holds"] else OUTCOMES[3]
    return OUTCOMES[0] if verdicts[0] == "holds" else OUTCOMES[1]


def claims_page(claims: Iterable["Claim"]) -> str:
    """docs/claims.md: all claims with their recorded verdicts, a table for each paper."""
    about = (
        "Statements of the papers, each checked by `odesim verify NAME`. A claim has the address `claims.html#NAME`, and names those that "
        "it builds on. [Reading claims](howto/claims.md) has them for other programs. This page is written by `odesim verify --page`."
    )
    lines = ["# Claims of the papers", "", about]
    for paper, group in groupby(claims, key=lambda claim: claim.source.key):
        parts = re.fullmatch(r"([a-z]+)(\d{4})(\w+)", paper)  # tian2023joma -> Tian 2023, joma
        title = f"{parts[1].capitalize()} {parts[2]}, {parts[3]}" if parts else paper
        lines += ["", f"## {title}", "", f"`{paper}`", "", *claim_table(group)]
    return "\n".join(lines)


def claim_table(claims: Iterable["Claim"], home: str = "") -> list[str]:
    """The lines of a table of Markdown: each claim with its place in the paper, its statement and verdict, then the corrected statement.

    home: the address of the page that has all claims, seen from this one; empty on that page itself.
    """
    lines = ["| claim | statement | verdict |", "|---|---|---|"]
    for claim in claims:
        for kind, statement in claim.statements.items():
            on = ", ".join(f'<a href="{home}#{name}">{name}</a>' for name in claim.depends)
            about = "<br>".join(filter(None, (claim.source.where, on and f"builds on {on}")))
            first = f'`{claim.name}`<a id="{claim.name}"></a><br>{about}' if kind == "printed" else kind
            verdict = f"{statement.verdict} {statement.when}" if statement.when else str(statement.verdict)
            lines.append("| " + " | ".join(re.sub(r"[|*]", r"\\\g<0>", cell) for cell in (first, statement.text, verdict)) + " |")
    return lines
