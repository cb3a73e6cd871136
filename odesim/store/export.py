"""Export of a stored run to one csv or netCDF file."""

import csv
import json
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.memory import check_fits
from odesim.errors import StoreError, counted, escaped, no_such
from odesim.store.inspected import inspect_run, run_kind
from odesim.store.paths import atomic_file, check_new_file, damage_errors, open_group
from odesim.store.read import group_arrays, open_run
from odesim.store.schema import ENSEMBLE
from odesim.store.write import EVENTS, FINAL, INITIAL, PARAMS, TIME

if TYPE_CHECKING:
    import xarray as xr

MAX_COLUMNS = 100_000
MEMBER = "member"
ROWS_AT_ONCE = 1 << 16
MAX_UNSTARTED = 1 << 24  # more members that were not started: a file of all members is refused
FORMULA = tuple("=+-@＝＋－＠")  # spreadsheet programs compute a cell that begins so, some also with letters of full width
GROUPS = (PARAMS, INITIAL, "points", "exact", FINAL, EVENTS)
Load = Callable[[Any], Any]  # Dataset -> the same Dataset, read into memory


def export_run(run: str | Path, to: str, path: str | Path, *, overwrite: bool = False) -> Path:
    """Writes the run as csv or nc to path and returns path. Raises StoreError."""
    if to not in FORMATS:
        raise StoreError(no_such("format", to, FORMATS))
    dataset = open_run(run)
    path = check_new_file(path, overwrite=overwrite)
    try:
        with atomic_file(path) as work:
            FORMATS[to](lambda part: _load(part, run), dataset, work, Path(run))
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _load(part: "xr.Dataset", path: str | Path) -> "xr.Dataset":
    """Reads a part of the run at path into memory. Raises StoreError if its files are damaged."""
    with damage_errors(path):
        return part.load()


def to_csv(load: Load, run: "xr.Dataset", path: Path, source: Path) -> None:
    """Writes a csv with a line per saved time: t, then the entries of all states and observables (v[0], V[0][1]).

    Numbers have the fewest digits that give the same bits back. Arrays without a time axis are left out.
    """
    if MEMBER in run.dims:
        return members_to_csv(load, run, path, source)
    run = run[[name for name, v in run.data_vars.items() if TIME in v.dims]].transpose(TIME, ...)
    total = 1 + sum(prod(v.shape[1:]) for v in run.data_vars.values())
    check_columns(total)
    header = ["t", *(label for name, v in run.data_vars.items() for label in _entries(str(name), v.shape[1:]))]
    block = max(1, ROWS_AT_ONCE // total)
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(map(csv_cell, header))
        for start in range(0, run.sizes[TIME], block):
            part = load(run.isel({TIME: slice(start, start + block)}))
            columns = [part[TIME].values, *(v.values for v in part.data_vars.values())]
            lines.writerows(np.concatenate([c.reshape(len(c), -1).astype("U32") for c in columns], axis=1).tolist())


def members_to_csv(load: Load, run: "xr.Dataset", path: Path, source: Path) -> None:
    """Writes a csv with a line per member and saved time: member, t, status, its own parameters, states and observables.

    Members in chunks that were not started are left out.
    """
    from odesim.store.ensemble import EnsembleStore

    states, status_names = [*run.attrs["states"], *run.attrs["observables"]], run.attrs["status_names"]
    coordinates = [str(name) for name, v in run.coords.items() if MEMBER in v.dims and name != MEMBER]
    shapes = {name: run[name].shape[1:] for name in coordinates} | {name: run[name].shape[2:] for name in states}
    total = 3 + sum(map(prod, shapes.values()))
    check_columns(total)
    header = [MEMBER, "t", "status", *(label for name, shape in shapes.items() for label in _entries(name, shape))]
    times = run.sizes[TIME]
    block = max(1, ROWS_AT_ONCE // max(total * times, 1))
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(map(csv_cell, header))
        for a, b in EnsembleStore(source).started():
            for start in range(a, b, block):
                part = load(run.isel({MEMBER: slice(start, min(start + block, b))}))
                n = part.sizes[MEMBER]
                status = [csv_cell(status_names[k]) if k >= 0 else "not done" for k in part["status"].values]
                columns = [np.repeat(np.arange(start, start + n), times), np.tile(part[TIME].values, n), np.repeat(status, times)]
                columns += [np.repeat(part[name].values.reshape(n, -1), times, axis=0) for name in coordinates]
                columns += [part[name].values.reshape(n * times, -1) for name in states]
                lines.writerows(np.concatenate([c.reshape(n * times, -1).astype("U32") for c in columns], axis=1).tolist())


def check_columns(total: int) -> None:
    """Raises StoreError if a csv would have more than MAX_COLUMNS columns."""
    if total > MAX_COLUMNS:
        raise StoreError(f"a csv of this run would have {counted(total, 'column')}, more than {MAX_COLUMNS}: choose nc")


def csv_cell(text: str) -> str:
    """text as a cell of a csv: no formula for spreadsheet programs, no control characters for terminals."""
    text = escaped(text, "")
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(FORMULA) else text
    return text


def to_nc(load: Load, run: "xr.Dataset", path: Path, source: Path) -> None:
    """Writes netCDF 3 (64-bit offsets) with scipy; attributes that are neither numbers nor text become JSON.

    Arrays of the groups inside the run become variables params_mu, initial_v, ... The attribute `coordinates` of the run is one of each
    variable, as the CF conventions have it; xarray keeps this name of the file's own attributes for itself.
    """
    check_few_unstarted(source)
    check_fits("a netCDF file of this run", {str(name): prod(v.shape) for name, v in run.variables.items()}, 8)
    flat = load(run).assign_attrs({k: v if type(v) in (int, float, str) else json.dumps(v) for k, v in run.attrs.items()})
    taken = set(map(str, flat.variables))
    flat = flat.assign(unread_variables(source, taken)).assign(group_variables(source, taken))
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


def _entries(name: str, shape: tuple[int, ...]) -> Iterator[str]:
    for index in np.ndindex(*shape):
        yield name + "".join(f"[{i}]" for i in index)


FORMATS: dict[str, Callable[[Load, Any, Path, Path], None]] = {"csv": to_csv, "nc": to_nc}
