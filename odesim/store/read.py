"""Reads stored runs, as an xarray Dataset or as a Solution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.datasets import register
from odesim.base.parsing import readable
from odesim.ensembles.design import part_kinds
from odesim.run.solution import Seen, Solution, no_more_times
from odesim.stepper.occurrences import BELOW, Events
from odesim.store.chunks import open_group
from odesim.store.paths import damage_errors
from odesim.store.schema import ENSEMBLE, EVENTS, FINAL, INITIAL, INTEGRATION, MEMBER, PARAMS, TIME, TRAINING, inspect_run, run_of_kind

if TYPE_CHECKING:
    import xarray as xr


@readable
def open_run(path: str | Path) -> xr.Dataset:
    """The run at a path as a Dataset: states and observables (time, index names), read from disk when used.

    Parameters
    ----------
    path : path
        A folder that `integrate`, `ensemble` or `train` of the command line or of Python wrote.

    Returns
    -------
    xarray.Dataset
        With what was asked for, and by which versions it was computed, in attrs.

    Raises
    ------
    StoreError
        If there is no run, or if files are missing, which zarr would read as NaN.

    Examples
    --------
    >>> members = odesim.ensemble("joma.nonlinear", members=2, vary={"mu": "uniform(1,2)"}, out="members.zarr")
    >>> odesim.open_run("members.zarr").attrs["model"]
    'joma.nonlinear'
    """
    import xarray as xr

    from odesim.store.checked import checked_store

    run = inspect_run(path)
    attributes, names = run.attributes, run.names
    if run.kind == ENSEMBLE:
        from odesim.store.ensemble import EnsembleStore

        EnsembleStore(run.path).check_complete()
    register()  # a Dataset that is opened has run.odesim, as one in memory has
    with damage_errors(run.path):
        # values are not decoded by their unit or other attributes; arrays that are not results are not read
        undecoded: dict[str, Any] = dict.fromkeys(("decode_times", "decode_timedelta", "mask_and_scale", "concat_characters"), False)
        unused = {name for name in run.arrays if "/" not in name} - {*names, *run.coordinates}
        place: Any = checked_store(run.path, read_only=True)
        dataset = xr.open_dataset(
            place, engine="zarr", consolidated=False, zarr_format=3, chunks=None, drop_variables=sorted(unused), **undecoded
        )
        # files in a folder have no order; a parameter may have an axis that no result has
        dataset = dataset[[*names, *(name for name in run.coordinates if name in dataset.coords)]]
        if run.kind == ENSEMBLE:
            return with_members(dataset)
        axes = dict.fromkeys(axis for v in dataset.data_vars.values() for axis in v.dims)
        coordinates = {name: dataset[name].variable for name in [*axes, *sorted(map(str, dataset.coords))] if name in dataset.coords}
        dataset = dataset.drop_vars(list(coordinates)).assign_coords(coordinates)
        # an interrupted training has fewer rows than its arrays
        return dataset.isel({TIME: slice(attributes["rows"])}) if run.kind == TRAINING else dataset


def with_members(run: xr.Dataset) -> xr.Dataset:
    """The Dataset of an ensemble with the coordinates that it has in memory: numbers of members, and what differs in its order."""
    import pandas

    labels: Mapping[str, str] = run.attrs["labels"]
    kinds = part_kinds(run.attrs["design"])
    coordinates = {label: run[label].variable for label in labels.values()}
    for name, label in labels.items():
        coordinates[label].attrs["design"] = kinds[name]
    time = run[TIME].variable
    # a range takes no memory, whatever the number of members
    return run.drop_vars([*coordinates, TIME]).assign_coords({MEMBER: pandas.RangeIndex(run.attrs["members"]), TIME: time, **coordinates})


def load_run(path: str | Path) -> xr.Dataset:
    """open_run(), read into memory. Raises StoreError if there is no run or it is damaged."""
    run = open_run(path)
    with damage_errors(path):
        return run.load()


def read_solution(path: str | Path) -> Solution:
    """The Solution stored at path, read into memory. Raises StoreError if there is none."""
    run_of_kind(path, INTEGRATION, "; odesim.open_run reads it")
    run = load_run(path)
    with damage_errors(path):
        return _solution(path, run)


def _solution(path: str | Path, run: xr.Dataset) -> Solution:
    attributes = {
        **run.attrs,
        INITIAL: group_arrays(path, INITIAL),
        PARAMS: _params(path, run.attrs[PARAMS]),
        EVENTS: _events(path, run.attrs[EVENTS]),
    }
    fields = {name: attributes.pop(name) for name in ("model", "method", "backend", "status", "message", "t_end", "stats")}
    states, observables = attributes.pop("states"), attributes.pop("observables")
    events = attributes.pop(EVENTS)
    idle = attributes.pop("not_applicable")
    worst = {name: np.nan if value is None and name not in idle else value for name, value in attributes.pop("invariants").items()}
    ends = group_arrays(path, FINAL)
    rows = {name: run[name].values for name in observables}
    observables_seen = Seen(fields["t_end"], rows, {name: ends[name] if ends else rows[name][-1] for name in observables})

    return Solution(
        t=run[TIME].values,
        y={name: run[name].values for name in states},
        y_end={name: ends[name] if ends else run[name].values[-1] for name in states},
        events=events,
        dims={str(name): tuple(map(str, v.dims[1:])) for name, v in run.data_vars.items()},
        attrs=attributes,
        _observe=observables_seen,
        _violations=partial(dict, worst),
        _again=partial(no_more_times, "stored"),
        **fields,
    )


def _events(path: str | Path, attributes: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """{name: events}, from the attributes, or from stored rows where there are too many for attributes."""
    rows = group_arrays(path, EVENTS) if any(isinstance(events, dict) for events in attributes.values()) else {}
    result: dict[str, Sequence[Mapping[str, Any]]] = {}
    for k, (name, events) in enumerate(attributes.items()):
        if isinstance(events, dict):
            table = rows[str(k)]
            result[name] = Events(table[:, 0], table[:, 1:].astype(np.int64) if table.shape[1] > 1 else None)
        else:
            marks: list[dict[str, Any]] = [{BELOW: True} if e.get(BELOW) is True else {} for e in events]
            places = [None if e["index"] is None else tuple(e["index"]) for e in events]
            result[name] = [{"t": e["t"], "index": at, **mark} for e, at, mark in zip(events, places, marks, strict=True)]
            Events.of(result[name])  # raises for indices of different lengths
    return result


def _params(path: str | Path, names: Iterable[str]) -> dict[str, Any]:
    """{name: value} of parameters: arrays, or numbers for those without a shape."""
    values = group_arrays(path, PARAMS)
    return {name: values[name] if values[name].ndim else values[name].item() for name in names}


def group_arrays(path: str | Path, name: str) -> dict[str, Array]:
    """{name: array} of the group `name` inside the run at path; empty if there is no such group."""
    folder = Path(path) / name
    return {key: np.asarray(array[...]) for key, array in open_group(folder).arrays()} if folder.exists() else {}
