"""Export of a stored run to one csv, netCDF or parquet file."""

import json
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.device import check_fits
from odesim.base.errors import StoreError, counted, no_such
from odesim.store.inspected import inspect_run, run_kind
from odesim.store.paths import atomic_file, check_new_file, damage_errors, open_group
from odesim.store.read import group_arrays, open_run
from odesim.store.remote import as_place
from odesim.store.schema import ENSEMBLE
from odesim.store.tables import Load, to_csv, to_parquet
from odesim.store.write import EVENTS, FINAL, INITIAL, PARAMS

if TYPE_CHECKING:
    import xarray as xr

MAX_UNSTARTED = 1 << 24  # more members that were not started: a file of all members is refused
GROUPS = (PARAMS, INITIAL, "points", "exact", FINAL, EVENTS)


def export_run(run: str | Path, to: str, path: str | Path, *, overwrite: bool = False) -> Path:
    """Writes the run as csv, nc or parquet to path and returns path. Raises StoreError."""
    if to not in FORMATS:
        raise StoreError(no_such("format", to, FORMATS))
    dataset = open_run(run)
    path = check_new_file(path, overwrite=overwrite)
    try:
        with atomic_file(path) as work:
            FORMATS[to](lambda part: _load(part, run), dataset, work, as_place(run))
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _load(part: "xr.Dataset", path: str | Path) -> "xr.Dataset":
    """Reads a part of the run at path into memory. Raises StoreError if its files are damaged."""
    with damage_errors(path):
        return part.load()


def to_nc(load: Load, run: "xr.Dataset", path: Path, source: Path) -> None:
    """Writes netCDF 3 (64-bit offsets) with scipy; attributes that are neither numbers nor text become JSON.

    Arrays of the groups inside the run become variables params_mu, initial_v, ... The attribute `coordinates` of the run becomes one of
    each variable, as the CF conventions have it. For xarray reserves this name among the attributes of the file.
    """
    check_few_unstarted(source)
    check_fits("a netCDF file of this run", {str(name): prod(v.shape) for name, v in run.variables.items()}, 8)
    flat = load(run).assign_attrs({k: v if type(v) in (int, float, str) else json.dumps(v) for k, v in run.attrs.items()})
    taken = set(map(str, flat.variables))
    others = unread_variables(source, taken) | group_variables(source, taken)
    with damage_errors(source):
        flat = flat.assign(others)
    for name in flat.variables:
        flat[name].encoding.clear()  # zarr's chunks and compressors have no meaning in netCDF
    try:
        flat.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")
    except OSError:
        raise
    except Exception as error:  # a name or number type that netCDF 3 lacks
        raise StoreError(f"cannot write {source} as netCDF: {' '.join(str(error).split())[:200]}") from error


def unread_variables(source: Path, taken: set[str]) -> dict[str, Any]:
    """{name: (axis names, values)} of the arrays of the run at source that are no results, such as `attempt`. taken: extended."""
    run = inspect_run(source)
    names = [name for name in run.arrays if "/" not in name and name not in taken]
    taken.update(names)
    with damage_errors(source):
        arrays: Any = open_group(source)
        return {name: (run.arrays[name].dims, np.asarray(arrays[name][...])) for name in names}


def group_variables(source: Path, taken: set[str]) -> dict[str, Any]:
    """{params_mu: (axis names, values)} of the arrays in groups of the run at source. taken: names in use, extended."""
    variables = {}
    with damage_errors(source):
        for group in GROUPS:
            for key, values in group_arrays(source, group).items():
                name = f"{group} {key}".replace(" ", "_")
                while name in taken:
                    name += "_"
                taken.add(name)
                variables[name] = (tuple(f"{name}_{k}" for k in range(values.ndim)), values)
    return variables


def check_few_unstarted(source: Path) -> None:
    """Raises StoreError if the run at source is an ensemble with more than MAX_UNSTARTED members not started."""
    if run_kind(source) == ENSEMBLE:
        from odesim.store.ensemble import EnsembleStore

        store = EnsembleStore(source)
        started = sum(b - a for a, b in store.started())
        if store.count - started > MAX_UNSTARTED:
            raise StoreError(
                f"{source} has {started} of its {counted(store.count, 'member')}: odesim resume continues it, and csv takes these"
            )


FORMATS: dict[str, Callable[[Load, Any, Path, Path], None]] = {"csv": to_csv, "nc": to_nc, "parquet": to_parquet}
