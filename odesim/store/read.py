"""Stored runs as an xarray Dataset, or as the Solution they were."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import StoreError
from odesim.solve.occurrences import Events
from odesim.solve.solution import Known, Seen, Solution
from odesim.store.inspected import inspect_run
from odesim.store.paths import damage_errors, open_group
from odesim.store.schema import ENSEMBLE, INTEGRATION, TRAINING
from odesim.store.write import EVENTS, FINAL, INITIAL, PARAMS, TIME

if TYPE_CHECKING:
    import xarray as xr


def open_run(path: str | Path) -> "xr.Dataset":
    """The run at path: states and observables (time, index names), read when used.

    Raises StoreError where there is no run, or files of it are missing, which would be read as NaN.
    """
    import xarray as xr

    run = inspect_run(path)
    said, names = run.attributes, run.names
    if run.kind == ENSEMBLE:
        from odesim.store.ensemble import EnsembleStore

        EnsembleStore(run.path).check_complete()
    with damage_errors(run.path):
        # numbers are numbers, whatever their unit or another attribute says; of arrays that are not the run's nothing is read
        plain: dict[str, Any] = dict.fromkeys(("decode_times", "decode_timedelta", "mask_and_scale", "concat_characters"), False)
        other = {name for name in run.arrays if "/" not in name} - {*names, *run.coordinates}
        found = xr.open_dataset(
            run.path, engine="zarr", consolidated=False, zarr_format=3, chunks=None, drop_variables=sorted(other), **plain
        )
        found = found[names]  # a folder has no order
        return found.isel({TIME: slice(said["rows"])}) if run.kind == TRAINING else found  # a training that is not done


def load_run(path: str | Path) -> "xr.Dataset":
    """open_run in memory. Raises StoreError where there is no run, or a damaged one."""
    run = open_run(path)
    with damage_errors(path):
        return run.load()


def read_solution(path: str | Path) -> Solution:
    """The Solution stored at path, in memory. Raises StoreError where there is none."""
    said, kind = (found := inspect_run(path)).attributes, found.kind
    if kind != INTEGRATION:
        what = f"a training of {said['task']}" if kind == TRAINING else f"an ensemble of {said['model']}"
        raise StoreError(f"{path} is {what}, not an integration; odesim.open_run reads it")
    run = load_run(path)
    with damage_errors(path):
        return _solution(path, run)


def _solution(path: str | Path, run: "xr.Dataset") -> Solution:
    start = group_arrays(path, INITIAL)
    attributes = {
        **run.attrs,
        INITIAL: start or run.attrs.get(INITIAL, {}),
        PARAMS: _params(path, run.attrs[PARAMS]),
        EVENTS: _events(path, run.attrs[EVENTS]),
    }
    own = {name: attributes.pop(name) for name in ("model", "method", "backend", "status", "message", "t_end", "stats")}
    states, observables = attributes.pop("states"), attributes.pop("observables")
    events = attributes.pop(EVENTS)
    idle = attributes.pop("not_applicable", [])
    worst = {name: np.nan if value is None and name not in idle else value for name, value in attributes.pop("invariants").items()}
    ends = group_arrays(path, FINAL)
    rows = {name: run[name].values for name in observables}
    seen = Seen(own["t_end"], rows, {name: ends[name] if ends else rows[name][-1] for name in observables})

    return Solution(
        t=run[TIME].values,
        y={name: run[name].values for name in states},
        y_end={name: ends[name] if ends else run[name].values[-1] for name in states},
        events=events,
        dims={str(name): tuple(map(str, v.dims[1:])) for name, v in run.data_vars.items()},
        attrs=attributes,
        _observe=seen,
        _violations=Known(worst),
        _again=_refuse_new_times,
        **own,
    )


def _refuse_new_times(*_: Any) -> dict[str, Any]:
    raise StoreError("a stored run knows its saved times only; integrate again with the times you need")


def _events(path: str | Path, said: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Events by name: from the attributes, or from the rows of those that are too many to stand there."""
    rows = group_arrays(path, EVENTS) if any(isinstance(found, dict) for found in said.values()) else {}
    out: dict[str, Sequence[Mapping[str, Any]]] = {}
    for k, (name, found) in enumerate(said.items()):
        if isinstance(found, dict):
            table = rows[str(k)]
            out[name] = Events(table[:, 0], table[:, 1:].astype(np.int64) if table.shape[1] > 1 else None)
        else:
            out[name] = [{"t": e["t"], "index": None if e["index"] is None else tuple(e["index"])} for e in found]
            Events.of(out[name])  # raises for indices of different lengths
    return out


def _params(path: str | Path, names: Iterable[str]) -> dict[str, Any]:
    """Parameters by name: arrays, and numbers for those without a shape."""
    values = group_arrays(path, PARAMS)
    return {name: values[name] if values[name].ndim else values[name].item() for name in names}


def group_arrays(path: str | Path, name: str) -> dict[str, Array]:
    """The arrays of a group inside a run; none where it is not there."""
    folder = Path(path) / name
    return {key: np.asarray(array[...]) for key, array in open_group(folder).arrays()} if folder.exists() else {}
