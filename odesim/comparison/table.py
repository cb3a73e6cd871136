"""Formats a Comparison as text in 80 columns or as HTML."""

import textwrap
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import counted, escaped
from odesim.comparison.metrics import METRICS

WIDTH = 79
HEADS = {"correlation": "corr", "relative_l2": "rel L2", "shift_worst": "worst"}
SECOND_TABLE = ("log_error", "end_ratio")  # metrics of the second table
NAME = 18  # width of the first column; a longer name has its own line


def comparison_text(
    phrases: Mapping[str, str], t: Array, seeds: Sequence[int], rows: Sequence[Mapping[str, Any]], notes: Sequence[str]
) -> str:
    """The table as text: what is compared, then a line for each observable and one for its standard deviation over seeds.

    phrases: the field `said` of a Comparison. rows: of Comparison.table().
    """
    if phrases["map"]:
        parts = [("theory", f"{phrases['theory']}, {phrases['map']}"), ("training", phrases["training"])]
    else:
        parts = [("first", phrases["theory"]), ("second", phrases["training"])]
    unit = f" {phrases['unit']}" if phrases["unit"] else ""
    parts += [("clock", phrases["clock"])] if phrases["clock"] else []
    parts += [("time", f"{t[0]:.6g} to {t[-1]:.6g}{unit}, {counted(len(t), 'time')}")]
    parts += [("note", note) for note in notes]
    parts += [(row["observable"], row["meaning"]) for row in rows if row["meaning"]]
    column = max(10, *(len(word) + 2 for word, _ in parts))
    lines = [entry(word, text, column) for word, text in parts]
    names = [m.name for m in METRICS if m.name not in SECOND_TABLE and (m.name != "spread" or len(seeds) > 1)]
    lines += ["", "observable".ljust(NAME) + "".join(HEADS.get(name, name).rjust(9 if name == "correlation" else 8) for name in names)]
    for row in rows:
        label = title(row)
        lines += [label] if len(label) >= NAME else []
        start = "" if len(label) >= NAME else label
        lines.append(start.ljust(NAME) + "".join(cell(name, row[name]) for name in names))
        if row["each"]:
            spreads = {name: deviation(values) for name, values in row["each"].items()}
            lines.append("  +- over seeds".ljust(NAME) + "".join(cell(name, spreads.get(name, np.nan), blank=True) for name in names))
    return "\n".join(line.rstrip() for line in [*lines, "", *agreement(t, rows)])


def agreement(t: Array, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of the second table: the time until which both sides agree, the error of logarithms, the ratio at the end."""
    lines = ["observable".ljust(NAME) + "agree to 10 % until t =".rjust(24) + "ln error".rjust(12) + "end ratio".rjust(12)]
    for row in rows:
        label, until = title(row), row["agree_until"]
        lines += [label] if len(label) >= NAME else []
        words = "never" if np.isnan(until) else "the end" if until == t[-1] else f"{until:.4g}"
        start = "" if len(label) >= NAME else label
        lines.append(start.ljust(NAME) + words.rjust(24) + "".join(cell(name, row[name]).rjust(12) for name in SECOND_TABLE))
    return lines


def numbers_text(numbers: Sequence[Any]) -> str:
    """Lines of the Numbers of a recipe: agreement, measured, recorded and tolerance, name; why each tolerance is what it is."""
    lines = ["", "", f"{'':4}{'measured':>12}{'recorded':>12}{'tolerance':>11}  number"]
    for n in numbers:
        start = f"{'ok' if n.agrees else 'OFF':4}{n.measured:>12.6g}{n.recorded:>12.6g}{n.tolerance:>11.2g}  "
        name, *more = textwrap.wrap(escaped(n.name), WIDTH - len(start)) or [""]
        lines += [start + name, *(" " * len(start) + part for part in more)]
    return "\n".join([*lines, *(entry("tolerance", reason) for reason in dict.fromkeys(n.reason for n in numbers))])


def comparison_html(phrases: Mapping[str, str], rows: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> str:
    """The table as HTML for notebooks, without deviations over seeds."""
    from html import escape

    names = [m.name for m in METRICS if any(not np.isnan(row[m.name]) for row in rows)]
    heads = "".join(f"<th>{HEADS.get(name, name).replace('_', ' ')}</th>" for name in ("observable", *names))
    lines = "".join(
        f"<tr><td><b>{escape(title(row))}</b></td>" + "".join(f"<td>{cell(name, row[name]).strip()}</td>" for name in names) + "</tr>"
        for row in rows
    )
    theory = f"{phrases['theory']}, {phrases['map']}" if phrases["map"] else phrases["theory"]
    under = "".join(f"<br/>{escape(note)}" for note in notes)
    return f"<div><b>{escape(phrases['training'])}</b> beside <b>{escape(theory)}</b>{under}<table><tr>{heads}</tr>{lines}</table></div>"


def deviation(values: Array) -> float:
    """Standard deviation of the finite entries of values (R,); nan if there are fewer than two."""
    finite = values[np.isfinite(values)]
    return float(finite.std(ddof=1)) if len(finite) > 1 else np.nan


def title(row: Mapping[str, Any]) -> str:
    """The name of a row's observable with its shape: `c (2, 30)`, or `c` for a number."""
    return escaped(row["observable"], "") + (f" ({', '.join(map(str, row['shape']))})" if row["shape"] else "")


def cell(name: str, value: float, *, blank: bool = False) -> str:
    """A value as a cell: correlation with 5 decimals, others with three digits; `-` for nan, or nothing if blank."""
    width = 9 if name == "correlation" else 8
    if not isfinite(value):
        return ("" if blank else "-" if np.isnan(value) else "inf").rjust(width)
    if name == "correlation" and not blank:
        return f"{value:.5f}".rjust(width)
    return f" {short(value)}".rjust(width)


def short(value: float) -> str:
    """A number in at most seven characters: three digits, fewer with a long exponent."""
    for digits in (3, 2, 1):
        text = f"{value + 0.0:.{digits}g}".replace("e-0", "e-").replace("e+0", "e+").replace("e+", "e")
        if len(text) <= 7:
            return text
    return text


def entry(word: str, text: str, column: int = 10) -> str:
    """A line with a word, and text from this column on; further lines of the text are indented."""
    first = f"{word} ".ljust(column)
    return textwrap.fill(escaped(text), WIDTH, initial_indent=first, subsequent_indent=" " * column, break_on_hyphens=False)
