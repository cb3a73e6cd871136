"""A stored run as one file that other programs read."""

import csv
import json
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.memory import check_fits
from odesim.errors import StoreError, counted, escaped, no_such
from odesim.store.inspected import run_kind
from odesim.store.paths import atomic_file, check_new_file, damage_errors
from odesim.store.read import group_arrays, open_run
from odesim.store.schema import ENSEMBLE
from odesim.store.write import FINAL, INITIAL, PARAMS, TIME

if TYPE_CHECKING:
    import xarray as xr

MAX_COLUMNS = 100_000
MEMBER = "member"
ROWS_AT_ONCE = 1 << 16
MAX_UNSTARTED = 1 << 24  # members that were never begun, beyond which a file of all of them is refused
FORMULA = ("=", "+", "-", "@")  # a program that opens the file would compute what begins so
GROUPS = (PARAMS, INITIAL, "points", "exact", FINAL)
Load = Callable[[Any], Any]  # a part of the run -> the same in memory


def export_run(run: str | Path, to: str, path: str | Path, *, overwrite: bool = False) -> Path:
    """path, where the run now lies as csv or nc. Raises StoreError."""
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
    """A part of the run at path in memory. Raises StoreError where it is damaged."""
    with damage_errors(path):
        return part.load()


def to_csv(load: Load, run: "xr.Dataset", path: Path, source: Path) -> None:
    """One line a saved time: t, then every state and observable entry by entry (v[0], V[0][1]), shortest digits that give the bits back.

    What has no times is left out.
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
    """One line a member and saved time: member, t, status, what is the member's own, then states and observables entry by entry.

    Chunks of members that were never begun are left out.
    """
    from odesim.store.ensemble import EnsembleStore

    states, names = [*run.attrs["states"], *run.attrs["observables"]], run.attrs["status_names"]
    own = [str(name) for name, v in run.coords.items() if MEMBER in v.dims and name != MEMBER]
    shapes = {name: run[name].shape[1:] for name in own} | {name: run[name].shape[2:] for name in states}
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
                status = [csv_cell(names[k]) if k >= 0 else "not done" for k in part["status"].values]
                columns = [np.repeat(np.arange(start, start + n), times), np.tile(part[TIME].values, n), np.repeat(status, times)]
                columns += [np.repeat(part[name].values.reshape(n, -1), times, axis=0) for name in own]
                columns += [part[name].values.reshape(n * times, -1) for name in states]
                lines.writerows(np.concatenate([c.reshape(n * times, -1).astype("U32") for c in columns], axis=1).tolist())


def check_columns(total: int) -> None:
    """Raises StoreError for more columns than a csv is for."""
    if total > MAX_COLUMNS:
        raise StoreError(f"a csv of this run would have {counted(total, 'column')}, more than {MAX_COLUMNS}: choose nc")


def csv_cell(text: str) -> str:
    """A text as it stands in a csv: never a formula for the program that opens it, and nothing that a terminal acts on."""
    text = escaped(text, "")
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(FORMULA) else text
    return text


def to_nc(load: Load, run: "xr.Dataset", path: Path, source: Path) -> None:
    """netCDF 3 (64-bit offsets), which scipy writes; attributes that are no number or text become JSON text.

    The arrays of the groups inside a run are there as params_mu, initial_v, ...
    """
    check_few_unstarted(source)
    check_fits("a netCDF file of this run", {str(name): prod(v.shape) for name, v in run.variables.items()}, 8)
    flat = load(run).assign_attrs({k: v if type(v) in (int, float, str) else json.dumps(v) for k, v in run.attrs.items()})
    flat = flat.assign(group_variables(source, set(map(str, flat.variables))))
    for name in flat.variables:
        flat[name].encoding.clear()  # zarr's chunks and compressors mean nothing here
    try:
        flat.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")
    except OSError:
        raise
    except Exception as error:  # a name or a number that the format does not have
        raise StoreError(f"cannot write {source} as netCDF: {' '.join(str(error).split())[:200]}") from error


def group_variables(source: Path, taken: set[str]) -> dict[str, Any]:
    """{params_mu: (names of its axes, values)} of the arrays in the groups of the run at source."""
    found = {}
    with damage_errors(source):
        for group in GROUPS:
            for key, values in group_arrays(source, group).items():
                name = f"{group} {key}".replace(" ", "_")
                while name in taken:
                    name += "_"
                taken.add(name)
                found[name] = (tuple(f"{name}_{k}" for k in range(values.ndim)), values)
    return found


def check_few_unstarted(source: Path) -> None:
    """Raises StoreError where the run at source is an ensemble of very many members that were never begun."""
    if run_kind(source) == ENSEMBLE:
        from odesim.store.ensemble import EnsembleStore

        store = EnsembleStore(source)
        begun = sum(b - a for a, b in store.started())
        if store.count - begun > MAX_UNSTARTED:
            raise StoreError(f"{source} has {begun} of its {counted(store.count, 'member')}: odesim resume goes on, and csv takes these")


def _entries(name: str, shape: tuple[int, ...]) -> Iterator[str]:
    for index in np.ndindex(*shape):
        yield name + "".join(f"[{i}]" for i in index)


FORMATS: dict[str, Callable[[Load, Any, Path, Path], None]] = {"csv": to_csv, "nc": to_nc}
