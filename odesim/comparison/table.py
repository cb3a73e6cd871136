"""A Comparison as a table for people, in 80 columns."""

import textwrap
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.comparison.metrics import METRICS
from odesim.errors import counted, escaped

WIDTH = 79
HEADS = {"correlation": "corr", "relative_l2": "rel L2", "shift_worst": "worst"}
SECOND_TABLE = ("log_error", "end_ratio")  # in a table of their own
NAME = 18  # letters of an observable; a longer one has a line of its own


def comparison_text(
    said: Mapping[str, str], t: Array, seeds: Sequence[int], rows: Sequence[Mapping[str, Any]], notes: Sequence[str]
) -> str:
    """What is compared, a line an observable, and under it, where there are several seeds, the standard deviation over them."""
    if said["map"]:
        lines = [entry("theory", f"{said['theory']}, {said['map']}"), entry("training", said["training"])]
    else:
        lines = [entry("first", said["theory"]), entry("second", said["training"])]
    unit = f" {said['unit']}" if said["unit"] else ""
    lines += [entry("clock", said["clock"])] if said["clock"] else []
    lines += [entry("time", f"{t[0]:.6g} to {t[-1]:.6g}{unit}, {counted(len(t), 'time')}")]
    lines += [entry("note", note) for note in notes]
    lines += [entry(row["observable"], row["meaning"]) for row in rows if row["meaning"]]
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
    """A second table: the time until which both sides agree, and, over decades, the error of the logarithm and the ratio at the end."""
    lines = ["observable".ljust(NAME) + "agree to 10 % until t =".rjust(24) + "ln error".rjust(12) + "end ratio".rjust(12)]
    for row in rows:
        label, until = title(row), row["agree_until"]
        lines += [label] if len(label) >= NAME else []
        words = "never" if np.isnan(until) else "the end" if until == t[-1] else f"{until:.4g}"
        start = "" if len(label) >= NAME else label
        lines.append(start.ljust(NAME) + words.rjust(24) + "".join(cell(name, row[name]).rjust(12) for name in SECOND_TABLE))
    return lines


def comparison_html(said: Mapping[str, str], rows: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> str:
    """The same table for a notebook, without the deviations over seeds."""
    from html import escape

    names = [m.name for m in METRICS if any(not np.isnan(row[m.name]) for row in rows)]
    heads = "".join(f"<th>{HEADS.get(name, name)}</th>" for name in ("observable", *names))
    lines = "".join(
        f"<tr><td><b>{escape(title(row))}</b></td>" + "".join(f"<td>{cell(name, row[name]).strip()}</td>" for name in names) + "</tr>"
        for row in rows
    )
    theory = f"{said['theory']}, {said['map']}" if said["map"] else said["theory"]
    under = "".join(f"<br/>{escape(note)}" for note in notes)
    return f"<div><b>{escape(said['training'])}</b> beside <b>{escape(theory)}</b>{under}<table><tr>{heads}</tr>{lines}</table></div>"


def deviation(values: Array) -> float:
    """Standard deviation of those of values (R,) that are numbers; nan of fewer than two."""
    found = values[np.isfinite(values)]
    return float(found.std(ddof=1)) if len(found) > 1 else np.nan


def title(row: Mapping[str, Any]) -> str:
    """c (2, 30); only the name of a number."""
    return escaped(row["observable"], "") + (f" ({', '.join(map(str, row['shape']))})" if row["shape"] else "")


def cell(name: str, value: float, *, blank: bool = False) -> str:
    """The value in its column: correlation to six digits, others to three; - for what is not a number."""
    width = 9 if name == "correlation" else 8
    if not isfinite(value):
        return ("" if blank else "-" if np.isnan(value) else "inf").rjust(width)
    if name == "correlation" and not blank:
        return f"{value:.5f}".rjust(width)
    return f" {short(value)}".rjust(width)


def short(value: float) -> str:
    """At most seven letters: three digits, fewer where the exponent is long."""
    for digits in (3, 2, 1):
        text = f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e+").replace("e+", "e")
        if len(text) <= 7:
            return text
    return text


def entry(word: str, text: str) -> str:
    """word and text, wrapped under itself."""
    return textwrap.fill(escaped(text), WIDTH, initial_indent=f"{word} ".ljust(10), subsequent_indent=" " * 10, break_on_hyphens=False)
