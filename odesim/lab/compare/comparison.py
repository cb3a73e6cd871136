"""The Comparison of two sides, such as a theory and a training, and its table."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.datasets import draw
from odesim.base.errors import ParamError, counted, escaped, no_such
from odesim.base.parsing import check_keywords, readable
from odesim.inputs.arguments import to_mapping, to_number
from odesim.lab.compare.metrics import METRICS, NAMES, agree_until, measure, measure_seeds
from odesim.lab.compare.sides import Side, align_axis, common_times
from odesim.lab.training.task import Pair, TrainingFacts

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes


# Formats a Comparison as text in 80 columns or as HTML.

WIDTH = 79
HEADS = {"correlation": "corr", "relative_l2": "rel L2", "shift_worst": "worst"}
SECOND_TABLE = ("log_error", "end_ratio")  # metrics of the second table
OF_SEEDS: Mapping[str, Callable[[Array], Any]] = {"median": np.median, "least": np.min, "most": np.max}
# not mean and deviation: of correlations they reach beyond 1, and one seed that went elsewhere makes both
MOST_EACH = 5000  # seeds or members of which each has its own numbers: they take a millisecond each
SHOWN = 12  # fitted numbers
SIDES = ("first", "second", "difference")
NAME = 18  # width of the first column; a longer name has its own line


def comparison_text(comparison: Comparison) -> str:
    """The table as text: what is compared, then a line for each observable, and what its seeds have alone: median, least, most."""
    phrases, t, rows = comparison.said, comparison.t, comparison.table()
    first, second = (side.removeprefix("the ") for side in comparison.sides)
    map = f", {phrases['map']}" if phrases["map"] else ""
    unit = f" {phrases['unit']}" if phrases["unit"] else ""
    times, rows_are = ("time", "seeds") if comparison.members is None else ("members", "members")
    parts = [(first, phrases["theory"] + map), (second, phrases["training"]), *[(times, phrases["clock"])] * bool(phrases["clock"])]
    parts += [("fitted", interval) for interval in intervals(comparison.fit)]
    parts += [("time", f"{t[0]:.6g} to {t[-1]:.6g}{unit}, {counted(len(t), 'time')}")]
    parts += [("note", note) for note in (*comparison.doubts, *comparison.notes)]
    parts += [(row["observable"], row["meaning"]) for row in rows if row["meaning"]]
    column = max(10, *(len(word) + 2 for word, _ in parts))
    lines = [entry(word, text, column) for word, text in parts]
    names = [m.name for m in METRICS if m.name not in SECOND_TABLE and (m.name != "spread" or len(comparison.seeds) > 1)]
    lines += ["", "observable".ljust(NAME) + "".join(HEADS.get(name, name).rjust(9 if name == "correlation" else 8) for name in names)]
    for row in rows:
        lines += labelled(title(row), "".join(cell(name, row[name]) for name in names))
        if row["each"]:
            for word, of in OF_SEEDS.items():
                values = {name: of(finite) for name, each in row["each"].items() if len(finite := each[np.isfinite(each)])}
                lines.append(
                    f"  {rows_are}: {word}".ljust(NAME) + "".join(cell(name, values.get(name, np.nan), blank=True) for name in names)
                )
    # the second table: the time until which both sides agree, the error of logarithms, the ratio at the end
    lines += ["", "observable".ljust(NAME) + "agree to 10 % until t =".rjust(24) + "ln error".rjust(12) + "end ratio".rjust(12)]
    for row in rows:
        until = row["agree_until"]
        words = "never" if np.isnan(until) else "the end" if until == t[-1] else f"{until:.4g}"
        lines += labelled(title(row), words.rjust(24) + "".join(cell(name, row[name]).rjust(12) for name in SECOND_TABLE))
    numbers = comparison.numbers
    lines += ["", f"{'':4}{'measured':>12}{'recorded':>12}{'tolerance':>11}  number"] * bool(numbers)
    for n in numbers:
        start = f"{'ok' if n.agrees else 'OFF':4}{n.measured:>12.6g}{n.recorded:>12.6g}{n.tolerance:>11.2g}  "
        name, *more = textwrap.wrap(escaped(n.name), WIDTH - len(start)) or [""]
        lines += [start + name, *(" " * len(start) + part for part in more)]
    lines += [entry("tolerance", reason) for reason in dict.fromkeys(n.reason for n in numbers)]
    return "\n".join(line.rstrip() for line in lines)


def intervals(fit: Any) -> list[str]:
    """The fitted numbers with their intervals, one a line, of a Dataset of odesim.fit; nothing without one."""
    if fit is None:
        return []
    columns = [fit[name].values.tolist() for name in ("free", "value", "low", "high")]
    level, bound, lines = f"{fit.attrs['level'] * 100:g} %", fit.attrs["at_bound"].split(), []
    for label, value, low, high in zip(*columns, strict=True):
        ends = (
            "at its bound"
            if label in bound
            else f"{level} interval {low:.6g} to {high:.6g}"
            if isfinite(low)
            else "undetermined by the data"
        )
        lines.append(f"{label} = {value:.6g}, {ends}")
    return [*lines[:SHOWN], *[f"{len(lines) - SHOWN} more"] * (len(lines) > SHOWN)]


def labelled(label: str, cells: str) -> list[str]:
    """The line of a row of cells after its label, or two where the label is too long for its column."""
    return [label, " " * NAME + cells] if len(label) >= NAME else [label.ljust(NAME) + cells]


def comparison_html(comparison: Comparison) -> str:
    """The table as HTML for notebooks, without deviations over seeds."""
    from html import escape

    phrases, rows = comparison.said, comparison.table()
    names = [m.name for m in METRICS if any(not np.isnan(row[m.name]) for row in rows)]
    heads = "".join(f"<th>{HEADS.get(name, name).replace('_', ' ')}</th>" for name in ("observable", *names))
    lines = "".join(
        f"<tr><td><b>{escape(title(row))}</b></td>" + "".join(f"<td>{cell(name, row[name]).strip()}</td>" for name in names) + "</tr>"
        for row in rows
    )
    theory = f"{phrases['theory']}, {phrases['map']}" if phrases["map"] else phrases["theory"]
    under = "".join(f"<br/>{escape(note)}" for note in (*comparison.doubts, *comparison.notes))
    return f"<div><b>{escape(phrases['training'])}</b> beside <b>{escape(theory)}</b>{under}<table><tr>{heads}</tr>{lines}</table></div>"


def title(row: Mapping[str, Any]) -> str:
    """The name of a row's observable with its shape: `c (2, 30)`, or `c` for a number."""
    return escaped(row["observable"], "") + (f" ({', '.join(map(str, row['shape']))})" if row["shape"] else "")


def cell(name: str, value: float, *, blank: bool = False) -> str:
    """A value as a cell: correlation with 5 decimals, others with three digits; `-` for nan, or nothing if blank."""
    width = 9 if name == "correlation" else 8
    if not isfinite(value):
        return ("" if blank else "-" if np.isnan(value) else "inf").rjust(width)
    if name == "correlation":
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


@dataclass(frozen=True)
class Passed:
    """The outcome of Comparison.passed(), true if all bounds hold. failed: a sentence for each bound that does not."""

    failed: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.failed


@dataclass(frozen=True)
class Number:
    """A number of a comparison beside the recorded one. reason: why the tolerance is what it is."""

    name: str
    measured: float
    recorded: float
    tolerance: float
    reason: str

    @property
    def agrees(self) -> bool:
        """Whether it is within the tolerance; false for nan."""
        return bool(abs(self.measured - self.recorded) <= self.tolerance)


@readable
@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """A training and a theory at common times. Of two runs of one kind, the first counts as theory.

    Attributes
    ----------
    t : (T,)
        The times.
    theory, training : {name: (1 or R, T, *shape)}, {name: (R, T, *shape)}
        What is compared.
    dims : {name: names of the axes of shape}
        Of both.
    said : {theory, training, map, clock, unit}
        Each a phrase.
    seeds : (R,)
        Of the training.
    notes, doubts : sentences
        On what is left out or ended early; on why the theory may not describe the training.
    meanings : {name: text}
        Which quantities are compared, where the name is not enough.
    numbers : tuple
        Of a recipe, each beside what is recorded.
    sides : (str, str)
        Names of both.
    fit : xarray.Dataset or None
        What `fit` gave, where numbers of the theory were fitted.
    members : xarray.Dataset or None
        Of two ensembles, whose members stand for seeds, the Dataset of both and their difference.

    Examples
    --------
    >>> comparison = odesim.compare("scan_snap.full", task="scan_snap", steps=20, map="discrete")
    >>> row = comparison.table()[0]
    >>> row["observable"], bool(row["correlation"] > 0.99)
    ('loss', True)
    """

    t: Array
    theory: Mapping[str, Array]
    training: Mapping[str, Array]
    dims: Mapping[str, tuple[str, ...]]
    said: Mapping[str, str]
    seeds: tuple[int, ...]
    notes: tuple[str, ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()
    sides: tuple[str, str] = ("theory", "training")
    fit: xarray.Dataset | None = None
    members: xarray.Dataset | None = None

    @property
    def as_recorded(self) -> bool:
        """Whether all numbers of a recipe agree with what is recorded; true without a recipe."""
        return all(number.agrees for number in self.numbers)

    @cached_property
    def _rows(self) -> tuple[dict[str, Any], ...]:
        rows = []
        for name, theory in self.theory.items():
            training = self.training[name]
            each = measure_seeds(self.t, training, theory) if 1 < len(training) <= MOST_EACH else {}
            values = measure(self.t, training, theory)
            row = {"observable": name, "meaning": self.meanings.get(name, ""), "shape": training.shape[2:]}
            rows.append({**row, **values, "agree_until": agree_until(self.t, training, theory), "each": each})
        return tuple(rows)

    @check_keywords
    def plot(self, var: str | Iterable[str] = (), ax: Axes | None = None) -> Axes | Array:
        """Draws the training as bands over seeds, the theory dark; returns an array of Axes, two for each observable: both, and residuals.

        Of two ensembles: both, and their difference, over the numbers that differ between members. `odesim.plot.save(axes, path)` writes
        the picture.

        Parameters
        ----------
        var : str or list of str
            What is drawn; default: all.
        ax : Axes
            For one observable without its residuals; it is returned.

        Raises
        ------
        ParamError
            For what is not compared.
        """
        if self.members is not None:
            names = [var] if isinstance(var, str) else list(var)
            return draw("dataset", self.members, ax, var=[f"{v}_{side}" for v in names for side in SIDES])
        return draw("comparison", self, ax, var=var)

    def table(self) -> list[dict[str, Any]]:
        """A row for each observable: name, meaning, shape, all metrics of the means over seeds, and `each` {metric: (R,)} by seed.

        agree_until: the last time up to which both sides agree within 10 %.
        """
        return [dict(row) for row in self._rows]

    def worst(self) -> dict[str, Any]:
        """The row of the table with the largest relative L2 error."""
        return max(self.table(), key=lambda row: -1.0 if np.isnan(row["relative_l2"]) else row["relative_l2"])

    def passed(self, tolerances: Mapping[str, Mapping[str, float]]) -> Passed:
        """Whether all bounds hold; NaN does not pass.

        Parameters
        ----------
        tolerances : {observable: {metric: bound}}
            Bounds on 1 - correlation, |scale - 1|, the size of other metrics.

        Raises
        ------
        ParamError
            For unknown observables or metrics, and if there is no bound.
        """
        rows, metrics = {row["observable"]: row for row in self._rows}, {m.name: m for m in METRICS}
        failed, count = [], 0
        for observable, bounds in to_mapping("tolerances", tolerances).items():
            if observable not in rows:
                raise ParamError(no_such("observable", observable, rows, "the comparison"))
            for metric, bound in to_mapping(f"tolerances of {observable}", bounds).items():
                if metric not in metrics:
                    raise ParamError(no_such("metric", metric, NAMES))
                bound = to_number(f"the bound of {metric} of {observable}", bound)
                value, count = rows[observable][metric], count + 1
                miss = metrics[metric].miss(value)
                if not miss <= bound:
                    failed.append(f"{observable}: {metric} is {value:.4g}, farther than {bound:g} from {metrics[metric].ideal}")
        if not count:
            raise ParamError("tolerances are {observable: {metric: bound}} with one bound at least")
        return Passed(tuple(failed))

    def to_xarray(self) -> xarray.Dataset:
        """A Dataset of NAME_training and NAME_theory (seed, time, ...); one theory for all seeds has no seed axis."""
        import xarray

        variables: dict[str, Any] = {}
        for name, theory in self.theory.items():
            axes = tuple(f"{name}_{dim}" for dim in self.dims[name])  # axes of one name may have different sizes
            variables[f"{name}_training"] = ("seed", "time", *axes), self.training[name]
            alone = len(theory) != len(self.seeds)
            variables[f"{name}_theory"] = (("time", *axes), theory[0]) if alone else (("seed", "time", *axes), theory)
        coordinates = {"seed": np.array(self.seeds), "time": self.t}
        return xarray.Dataset(variables, coords=coordinates, attrs={**self.said, "notes": "; ".join((*self.doubts, *self.notes))})

    def __str__(self) -> str:
        return comparison_text(self)

    def __repr__(self) -> str:
        return f"<Comparison of {self.said['training']} with {self.said['theory']}: {', '.join(self.theory)} at {len(self.t)} times>"

    def _repr_html_(self) -> str:
        return comparison_html(self)


def compare_sides(
    theory: Side,
    training: Side,
    *,
    phrases: Mapping[str, str],
    observables: Sequence[str] = (),
    align: Sequence[str] = (),
    pair: Pair | None = None,
    facts: TrainingFacts | None = None,
) -> Comparison:
    """The Comparison of two sides at the saved times of the coarser one, within the span of both; the finer one is interpolated.

    phrases: the field `said` of Comparison. observables: those to compare, default all common ones. align: axes to reorder for the
    best match of each seed. pair, facts: how quantities of the System follow from recorded ones; without them names and shapes decide.
    Raises ParamError: different units of time, no overlap in time, no common observable, an unknown observable or axis, shapes that
    do not match.
    """
    links = {link.name: link for link in pair.links} if pair and facts else {}
    possible = [
        name for name, link in links.items() if link.quantity in theory.loaders and all(s in training.loaders for s in link.sources)
    ]
    possible = possible if links else [name for name in theory.loaders if name in training.loaders]
    lacking = [name for name in observables if name not in possible]
    if lacking:
        raise ParamError(no_such("observable", lacking[0], possible, "both runs"))
    if not possible:
        raise ParamError(f"no observable in common: one run has {names_text(theory)}, the other {names_text(training)}")
    if theory.unit and training.unit and theory.unit != training.unit:
        raise ParamError(f"two runs have no common unit of time: it is {theory.unit!r} in one and {training.unit!r} in the other")
    notes = (*theory.notes, *training.notes)
    if theory.unit != training.unit:
        unit, of = (theory.unit, "first") if theory.unit else (training.unit, "second")
        notes = (f"only the {of} run has a unit of time, {unit!r}: both are on one axis as they are", *notes)
    times = common_times(theory.t, training.t)
    a, b, dims = dict[str, Array](), dict[str, Array](), dict[str, tuple[str, ...]]()
    for name in observables or possible:
        link = links.get(name)
        quantity = link.quantity if link else name
        axes, here = tuple(theory.dims.get(quantity, ())), theory.at_times(quantity, times)
        if link and facts:
            here, axes = link.theory(here, facts), axes if link.dims is None else link.dims
            there = link.make({source: training.at_times(source, times) for source in link.sources}, facts)
        else:
            there = training.at_times(name, times)
        if here.shape[2:] != there.shape[2:] or len(here) not in (1, len(there)):
            if observables or links:
                raise ParamError(f"{name} has shape {here.shape[2:]} on one side and {there.shape[2:]} on the other")
            continue
        a[name], b[name] = there, here
        dims[name] = axes if len(axes) == here.ndim - 2 else tuple(f"axis_{k}" for k in range(here.ndim - 2))
    if not a:
        raise ParamError(f"no observable in common: one run has {names_text(theory)}, the other {names_text(training)}")
    for axis in align:
        a = align_axis(a, b, dims, axis)
    meanings = {name: links[name].doc for name in a if name in links and links[name].doc}
    return Comparison(times, b, a, dims, dict(phrases), training.seeds, notes, meanings)


def names_text(side: Side) -> str:
    """The names of a side's quantities, separated by commas."""
    return ", ".join(sorted(side.loaders)) or "none"
