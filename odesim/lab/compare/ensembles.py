"""Two ensembles beside each other: the members that both have, by the numbers that differ between members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import check_fits
from odesim.base.errors import ParamError, StoreError, counted
from odesim.lab.compare.comparison import Comparison, compare_sides
from odesim.lab.compare.sides import Side
from odesim.store.read import open_run
from odesim.store.schema import ENSEMBLE, MEMBER, TIME, run_kind

if TYPE_CHECKING:
    import xarray

DIGITS = 10  # of a number by which members are found: grids that end elsewhere round their points otherwise


def is_ensemble(run: Any) -> bool:
    """Whether it is an ensemble with its members: a Dataset, or the folder of one. Raises StoreError where there is no run."""
    if isinstance(run, str | PathLike):
        return run_kind(Path(run)) == ENSEMBLE
    return hasattr(run, "data_vars") and MEMBER in run.dims and "status" in run


def compare_ensembles(first: Any, second: Any, names: Mapping[str, tuple[str, ...]]) -> Comparison:
    """The Comparison of the members that two ensembles have in common, its `members` a Dataset of both and their difference.

    first, second: Datasets or folders. names: observables, align. Raises ParamError where they have nothing in common.
    """
    runs = [open_run(Path(run)) if isinstance(run, str | PathLike) else run for run in (first, second)]
    where = [str(run) if isinstance(run, str | PathLike) else f"the {word}" for word, run in (("first", first), ("second", second))]
    rows, varied = common_members(runs, where)
    for run, place in zip(runs, rows, strict=True):
        numbers = {str(name): len(place) * int(np.prod(v.shape[1:])) for name, v in run.data_vars.items()}
        check_fits("a comparison of these members", numbers, 8)
    sides = [side_of_ensemble(run, place, name) for run, place, name in zip(runs, rows, where, strict=True)]
    phrases = {"theory": sides[0].label, "training": sides[1].label, "map": "", "unit": ""}
    phrases["unit"] = sides[0].unit if sides[0].unit == sides[1].unit else ""
    phrases["clock"] = f"{counted(len(rows[0]), 'member')} in common" + f", by {', '.join(varied)}" * bool(varied)
    comparison = compare_sides(sides[0], sides[1], phrases=phrases, **names)  # type: ignore[arg-type]
    both = joint(runs[0].isel({MEMBER: rows[0]}), comparison)
    return replace(comparison, sides=("the first", "the second"), members=both)


def common_members(runs: Sequence[xarray.Dataset], where: Sequence[str]) -> tuple[tuple[Array, Array], list[str]]:
    """(rows of the first, rows of the second) with the same numbers, and by which; where nothing varies, by their places.

    Members that are not done, or did not come to their end, are left out. Raises ParamError where there are none.
    """
    from odesim.plot.members import varied_arrays  # imports matplotlib, which a comparison of numbers does without

    ok = [run["status"].values == 0 for run in runs]
    arrays = [varied_arrays(run) for run in runs]
    names = [name for name, shape in arrays[0].items() if arrays[1].get(name) == shape]
    for mine, other, place in ((arrays[0], arrays[1], where[0]), (arrays[1], arrays[0], where[1])):
        if not names and mine:
            has = f"{', '.join(other) or 'nothing'} in the other"
            raise ParamError(f"the ensembles have no axis in common: between members of {place} {', '.join(mine)} differs, {has}")
    tables: list[dict[tuple[float, ...], int]] = []
    for run, good, place, mine in zip(runs, ok, where, arrays, strict=True):
        parts = [np.asarray(run[name].values, float).reshape(len(good), -1) for name in names]
        columns = np.concatenate(parts or [np.arange(float(len(good)))[:, None]], axis=1)
        keys = [tuple(float(f"{x:.{DIGITS}g}") for x in row) for row in columns.tolist()]
        if twice := [key for key, n in Counter(keys).items() if n > 1]:
            more = [name for name in mine if name not in names]
            why = f"{', '.join(more)} differs too: select one value of it" if more else "which of them is meant?"
            at = ", ".join(f"{x:g}" for x in twice[0])
            raise ParamError(f"several members of {place} have {', '.join(names)} = {at}: {why}")
        tables.append({key: k for k, key in enumerate(keys) if good[k]})
    common = [key for key in tables[0] if key in tables[1]]
    rows, others = (np.array([table[key] for key in common], int) for table in tables)
    if not len(rows):
        by = f" has the {', '.join(names)} of one" if names else " has a counterpart"
        raise ParamError(f"no member of {where[0]} that came to its end{by} of {where[1]}: give both common points, as with --grid")
    return (rows, others), names


def side_of_ensemble(run: xarray.Dataset, rows: Array, where: str) -> Side:
    """The members `rows` of an ensemble as the seeds of a Side. Raises StoreError where no state or observable is stored."""
    names = [str(name) for name, v in run.data_vars.items() if v.dims[:2] == (MEMBER, TIME)]
    if not names:
        raise StoreError(f"{where} stores no state or observable over time")

    def values(name: str) -> Array:
        return np.asarray(run[name].isel({MEMBER: rows}).values, float)

    label = f"{run.attrs['model']}, {counted(run.sizes[MEMBER], 'member')}" + f" ({where})" * (not where.startswith("the "))
    dims = {name: tuple(map(str, run[name].dims[2:])) for name in names}
    loaders = {name: partial(values, name) for name in names}
    return Side(label, np.asarray(run[TIME].values, float), str(run.attrs.get("time_unit") or ""), loaders, dims, tuple(rows.tolist()))


def joint(run: xarray.Dataset, comparison: Comparison) -> xarray.Dataset:
    """An ensemble of the common members: for each quantity v its v_first, v_second and v_difference = v_second - v_first.

    run: the members of the first ensemble, in the order of the comparison, whose coordinates both share.
    """
    import xarray as xr

    variables: dict[str, Any] = {}
    for name, first in comparison.theory.items():
        second, dims = comparison.training[name], (MEMBER, TIME, *comparison.dims[name])
        for word, values in (("first", first), ("second", second), ("difference", second - first)):
            variables[f"{name}_{word}"] = (dims, values)
    coords = {name: v for name, v in run.coords.items() if v.dims[:1] == (MEMBER,) and name != MEMBER}
    attrs = {"model": f"{run.attrs['model']} twice", "states": [], "observables": list(variables), "labels": run.attrs.get("labels", {})}
    attrs |= {"status_names": ["ok"], "members": run.sizes[MEMBER], "time_unit": comparison.said["unit"]}
    variables["status"] = (MEMBER, np.zeros(run.sizes[MEMBER], np.int8))
    variables["t_end"] = (MEMBER, np.full(run.sizes[MEMBER], comparison.t[-1]))
    members = np.arange(run.sizes[MEMBER])
    return xr.Dataset(variables, {TIME: comparison.t, MEMBER: members, **coords}, attrs)
