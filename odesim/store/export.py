"""Export of a stored run to one file: csv or parquet, a line for each saved time, or each member and time; or netCDF."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import entry
from odesim.base.device import check_fits
from odesim.base.errors import ParamError, StoreError, counted, escaped, no_such
from odesim.store.chunks import open_group
from odesim.store.paths import atomic_file, check_new_file, damage_errors
from odesim.store.read import group_arrays, open_run
from odesim.store.schema import ENSEMBLE, EVENTS, FINAL, INITIAL, MEMBER, PARAMS, TIME, inspect_run, run_kind

if TYPE_CHECKING:
    import xarray as xr

MAX_UNSTARTED = 1 << 24  # more members that were not started: a file of all members is refused
GROUPS = (PARAMS, INITIAL, "points", "exact", FINAL, EVENTS)
MAX_COLUMNS = 100_000
ROWS_AT_ONCE = 1 << 16
FORMULA = tuple("=+-@＝＋－＠")  # spreadsheet programs compute a cell that begins so, some also with letters of full width


def export_run(run: str | Path, to: str, path: str | Path, *, overwrite: bool = False) -> Path:
    """Writes the run as csv, nc or parquet to path and returns path. Raises StoreError."""
    if to not in FORMATS:
        raise StoreError(no_such("format", to, FORMATS))
    dataset = open_run(run)
    path = check_new_file(path, overwrite=overwrite)
    try:
        with atomic_file(path) as work:
            FORMATS[to](dataset, work, Path(run))
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _load(part: "xr.Dataset", path: str | Path) -> "xr.Dataset":
    """Reads a part of the run at path into memory. Raises StoreError if its files are damaged."""
    with damage_errors(path):
        return part.load()


def to_nc(run: "xr.Dataset", path: Path, source: Path) -> None:
    """Writes netCDF 3 (64-bit offsets) with scipy.

    Arrays of the groups inside the run become variables params_mu, initial_v, ... The attribute `coordinates` of the run becomes one of
    each variable, as the CF conventions have it. For xarray reserves this name among the attributes of the file.
    """
    check_few_unstarted(source)
    check_fits("a netCDF file of this run", {str(name): prod(v.shape) for name, v in run.variables.items()}, 8)
    flat = _load(run, source)
    taken = set(map(str, flat.variables))
    others = other_variables(source, taken)
    with damage_errors(source):
        flat = flat.assign(others)
    for name in flat.variables:
        flat[name].encoding.clear()  # zarr's chunks and compressors have no meaning in netCDF
    write_netcdf(flat, path, source)


def write_netcdf(data: "xr.Dataset", path: Path, what: object) -> None:
    """Writes netCDF 3 with scipy; attributes that are neither numbers nor text become JSON, which read_netcdf reads.

    what: that is written, for the sentence. Raises StoreError, and OSError.
    """
    plain = {k: v if type(v) in (int, float, str) or isinstance(v, np.generic) else json.dumps(v) for k, v in data.attrs.items()}
    data = data.assign_attrs(plain)
    try:
        data.to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")
    except OSError:
        raise
    except Exception as error:  # a name or number type that netCDF 3 lacks
        raise StoreError(f"cannot write {what} as netCDF: {' '.join(str(error).split())[:200]}") from error


def read_netcdf(path: Path) -> "xr.Dataset":
    """A Dataset that write_netcdf wrote, in memory."""
    import xarray as xr

    with xr.open_dataset(path, engine="scipy", decode_times=False) as stored:
        data = stored.load()
    return data.assign_attrs({k: json.loads(v) for k, v in data.attrs.items() if isinstance(v, str) and v[:1] in ("[", "{")})


def other_variables(source: Path, taken: set[str]) -> dict[str, Any]:
    """{name: (axis names, values)} of the arrays of the run at source that are no results, such as `attempt` and `params_mu` of its groups.

    taken: names in use.
    """
    run = inspect_run(source)
    names = [name for name in run.arrays if "/" not in name and name not in taken]
    with damage_errors(source):
        arrays: Any = open_group(source)
        variables: dict[str, Any] = {name: (run.arrays[name].dims, np.asarray(arrays[name][...])) for name in names}
        for group in GROUPS:
            for key, values in group_arrays(source, group).items():
                name = f"{group} {key}".replace(" ", "_")
                while name in taken or name in variables:
                    name += "_"
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


Table = tuple[list[str], Iterator[list[Any]]]
"""Names of columns, and blocks: lists of arrays (n,) or (n, k), which hold the columns of n lines in order."""


def table_of(run: "xr.Dataset", source: Path) -> Table:
    """The table of a run. Raises StoreError if it has more than MAX_COLUMNS columns."""
    return member_table(run, source) if MEMBER in run.dims else time_table(run, source)


def time_table(run: "xr.Dataset", source: Path) -> Table:
    """A line per saved time: t, then the entries of all states and observables (v[0], V[0, 1]). Arrays without times are left out."""
    run = run[[name for name, v in run.data_vars.items() if TIME in v.dims]].transpose(TIME, ...)
    total = 1 + sum(prod(v.shape[1:]) for v in run.data_vars.values())
    check_columns(total)
    block = max(1, ROWS_AT_ONCE // total)

    def blocks() -> Iterator[list[Any]]:
        for start in range(0, run.sizes[TIME], block):
            part = _load(run.isel({TIME: slice(start, start + block)}), source)
            yield [part[TIME].values, *(v.values.reshape(len(v), -1) for v in part.data_vars.values())]

    return ["t", *(label for name, v in run.data_vars.items() for label in entries(str(name), v.shape[1:]))], blocks()


def member_table(run: "xr.Dataset", source: Path) -> Table:
    """A line per member and saved time: member, t, status, its own parameters, states and observables.

    Members in chunks that were not started are left out.
    """
    from odesim.store.ensemble import EnsembleStore

    states, status_names = [*run.attrs["states"], *run.attrs["observables"]], run.attrs["status_names"]
    coordinates = [str(name) for name, v in run.coords.items() if MEMBER in v.dims and name != MEMBER]
    shapes = {name: run[name].shape[1:] for name in coordinates} | {name: run[name].shape[2:] for name in states}
    total = 3 + sum(map(prod, shapes.values()))
    check_columns(total)
    times = run.sizes[TIME]
    block = max(1, ROWS_AT_ONCE // max(total * times, 1))

    def blocks() -> Iterator[list[Any]]:
        for a, b in EnsembleStore(source).started():
            for start in range(a, b, block):
                part = _load(run.isel({MEMBER: slice(start, min(start + block, b))}), source)
                n = part.sizes[MEMBER]
                status = np.array([status_names[k] if k >= 0 else "not done" for k in part["status"].values])
                columns = [np.repeat(np.arange(start, start + n), times), np.tile(part[TIME].values, n), np.repeat(status, times)]
                columns += [np.repeat(part[name].values.reshape(n, -1), times, axis=0) for name in coordinates]
                yield [*columns, *(part[name].values.reshape(n * times, -1) for name in states)]

    return [MEMBER, "t", "status", *(label for name, shape in shapes.items() for label in entries(name, shape))], blocks()


def to_csv(run: "xr.Dataset", path: Path, source: Path) -> None:
    """Writes the table as csv. Numbers have the fewest digits that give the same bits back."""
    names, blocks = table_of(run, source)
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(map(csv_cell, names))
        for columns in blocks:
            texts = [np.array([*map(csv_cell, c)]) if c.dtype.kind == "U" else c for c in columns]
            lines.writerows(np.concatenate([c.reshape(len(c), -1).astype("U32") for c in texts], axis=1).tolist())


def to_parquet(run: "xr.Dataset", path: Path, source: Path) -> None:
    """Writes the table as parquet, with pyarrow. Raises StoreError where that is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise StoreError("parquet needs pyarrow: pip install 'odesim[parquet]'") from None
    names, blocks = table_of(run, source)
    writer: Any = None
    try:
        for columns in blocks:
            flat = [part for c in columns for part in (c.reshape(len(c), -1).T if c.ndim > 1 else [c])]
            block = pa.table([pa.array(np.ascontiguousarray(column)) for column in flat], names=names)
            writer = writer or pq.ParquetWriter(path, block.schema)
            writer.write_table(block)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise StoreError(f"{source} has no line to write: no member was started")


def check_columns(total: int) -> None:
    """Raises StoreError if a csv would have more than MAX_COLUMNS columns."""
    if total > MAX_COLUMNS:
        raise StoreError(f"a table of this run would have {counted(total, 'column')}, more than {MAX_COLUMNS}: choose nc")


def csv_cell(text: str) -> str:
    """text as a cell of a csv: no formula for spreadsheet programs, no control characters for terminals."""
    text = escaped(text, "")
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(FORMULA) else text
    return text


def entries(name: str, shape: tuple[int, ...]) -> Iterator[str]:
    for index in np.ndindex(*shape):
        yield entry(name, index)


def place(name: str, index: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The place in an array `name` of this shape that index says, as [0, 1] or [0][1]. Raises ParamError where it has none there."""
    at = tuple(map(int, re.findall(r"\d+", index)))
    if not shape:
        raise ParamError(f"{name} is one number: write {name}, not {name}{index}")
    if "-" in index or len(at) != len(shape) or any(i >= n for i, n in zip(at, shape, strict=True)):
        raise ParamError(f"{name} has shape {shape}, so an entry of it is named as {next(entries(name, shape), name)}, not {name}{index}")
    return at


FORMATS: dict[str, Callable[[Any, Path, Path], None]] = {"csv": to_csv, "nc": to_nc, "parquet": to_parquet}
