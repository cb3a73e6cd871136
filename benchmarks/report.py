"""Writes the numbers of a folder of benchmarks' JSON files into RESULTS.md.

python benchmarks/report.py FOLDER [--results benchmarks/RESULTS.md]

RESULTS.md has parts between the lines <!-- begin NAME --> and <!-- end NAME -->: `goals`, and one for each benchmark. A benchmark with
files in the folder gets its tables there, with date, processor, versions and load; the other parts, and all text outside of them, stay
as they are. Pictures of the folder are copied beside the results. The table of goals is made from all files; a goal of which no file
has the number keeps its line.
"""

import argparse
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from goals import GOALS, WHERE, Goal
from tables import markdown

HEAD = "| goal | must | beyond | measured | | where the time goes |\n|---|---|---|---|---|---|"


def benchmark_section(found: Mapping[str, Any]) -> str:
    """The Markdown of one benchmark: command, date, versions, tables and pictures."""
    about = f"`{found['command']}`, {found['date']}, load {found['load'][0]} before and {found['load'][1]} after; {found['processor']}"
    pictures = " ".join(f"![{Path(name).stem}]({name})" for name in found.get("pictures", []))
    return "\n\n".join(
        [
            f"{about}; {', '.join(f'{k} {v}' for k, v in found['versions'].items())}.",
            *map(markdown, found["tables"]),
            *filter(None, [pictures]),
        ]
    )


def goal_line(goal: Goal, value: float | None) -> str:
    """A line of the table of goals. value: the measured number, None if its error is too large."""
    verdict = goal.verdict(value)
    beyond = "" if goal.beyond is None else f"{goal.beyond:g}"
    shown = "error too large" if value is None else f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    where = (
        WHERE.get(goal.key, "as above" if " x " in goal.key else "") if verdict == "missed" else ""
    )  # a peer's line follows its work's time
    return f"| {goal.text} | {goal.sense} {goal.must:g} | {beyond} | {shown} | {verdict} | {where} |"


def goal_table(benchmarks: Mapping[str, Mapping[str, Any]], before: str) -> str:
    """All goals; those that no benchmark has measured as they stand in the table before, or as not measured."""
    old = {line.split(" | ")[0].removeprefix("| "): line for line in before.splitlines()}
    lines = [HEAD]
    for goal in GOALS:
        measured = benchmarks.get(goal.benchmark, {}).get("measured", {})
        if goal.key in measured:
            lines.append(goal_line(goal, measured[goal.key]))
        else:
            beyond = "" if goal.beyond is None else f"{goal.beyond:g}"
            lines.append(old.get(goal.text, f"| {goal.text} | {goal.sense} {goal.must:g} | {beyond} | | not measured | |"))
    return "\n".join(lines)


def find_part(text: str, name: str) -> re.Match[str]:
    """The part of that name: group 1 is what lies between its two lines. Raises SystemExit where there is none."""
    found = re.search(rf"<!-- begin {re.escape(name)} -->\n(.*?)\n?<!-- end {re.escape(name)} -->", text, re.DOTALL)
    if found is None:
        raise SystemExit(f"no part <!-- begin {name} --> to <!-- end {name} --> in the results")
    return found


def replace_part(text: str, name: str, content: str) -> str:
    """The text with the content of the part `name` replaced. Raises SystemExit if there is no such part."""
    found = find_part(text, name)
    return f"{text[: found.start()]}<!-- begin {name} -->\n{content}\n<!-- end {name} -->{text[found.end() :]}"


def update_results(text: str, benchmarks: Mapping[str, Mapping[str, Any]]) -> str:
    """RESULTS.md with the numbers of {name: what its JSON file holds}."""
    for name, found in benchmarks.items():
        text = replace_part(text, name, benchmark_section(found))
    return replace_part(text, "goals", goal_table(benchmarks, find_part(text, "goals")[1]))


def merge_files(files: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """{name of a benchmark: what its files hold together}: one that was run part by part has several."""
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        if file["benchmark"] not in found:
            found[file["benchmark"]] = dict(file)
            continue
        held = found[file["benchmark"]]
        held["command"] += f"`, `{file['command']}"
        held |= {"tables": held["tables"] + file["tables"], "measured": held["measured"] | file["measured"]}
        held["versions"] = held["versions"] | file["versions"]
    return found


def main() -> None:
    """Rewrites the results in place."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", type=Path, default=Path(__file__).with_name("RESULTS.md"))
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.json"))
    if not files:
        raise SystemExit(f"no JSON file in {options.folder}")
    parts = merge_files(json.loads(path.read_text(encoding="utf-8")) for path in files)
    text = update_results(options.results.read_text(encoding="utf-8"), parts)
    options.results.write_text(text, encoding="utf-8")
    for picture in options.folder.glob("*.png"):
        shutil.copy(picture, options.results.parent)
    print(f"{options.results}: {', '.join(parts)}")


if __name__ == "__main__":
    main()
