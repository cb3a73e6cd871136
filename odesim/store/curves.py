"""Curves from outside: columns over time, of a table, a Dataset, or a file or stored run that holds one."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, StoreError, no_such, value_text
from odesim.store.export import entries
from odesim.store.paths import damage_errors, is_run
from odesim.store.read import load_run
from odesim.store.remote import as_place
from odesim.store.schema import TIME

TIMES = ("t", TIME, "step", "Step", "iteration", "epoch")
"""Columns that are the time where none is named, the first of them that there is."""
SEED = "seed"
FORMS = (".csv", ".tsv", ".parquet", ".nc", ".npz", ".zarr")


@dataclass(frozen=True)
class Curves:
    """Columns over time. t (T,), increasing or not; columns {name: (T,)}: an array gives its entries, as v[0]; NaN: nothing was measured.

    what: the data, for sentences.
    """

    t: Array
    columns: dict[str, Array]
    what: str


def read_curves(data: Any, time: str = "") -> Curves:
    """The curves of a path (csv, tsv, parquet, nc, npz, zarr or a stored run), DataFrame, Dataset, run, or dict of arrays by name.

    time: the column of times; without it the first of TIMES that there is. Of several seeds the mean is taken. Raises ParamError and
    StoreError.
    """
    if isinstance(data, str | PathLike):
        table, what = load(data), str(data)
    else:
        table, what = data.to_xarray() if hasattr(data, "to_xarray") and not hasattr(data, "columns") else data, "the data"
    if hasattr(table, "data_vars"):
        table = {str(name): v for name, v in {**table.coords, **table.data_vars}.items()}
    elif hasattr(table, "reset_index"):
        table = table.reset_index() if table.index.name else table
        table = {str(name): table[name].to_numpy() for name in table.columns}
    elif not isinstance(table, Mapping):
        raise ParamError(f"data must be a path, a table, a Dataset, a run or a dict of columns, not {value_text(data)}")
    if not (name := time or next((name for name in TIMES if name in table), "")):
        raise ParamError(f"{what} has no column of times named {' or '.join(TIMES[:2])}: name one of {', '.join(map(str, table))}")
    if name not in table:
        raise ParamError(no_such("column", name, map(str, table), what))
    t = numbers(table[name], f"column {name} of {what}")
    if t.ndim != 1 or not len(t) or not np.isfinite(t).all():
        raise ParamError(f"column {name} of {what} must hold finite times")
    columns: dict[str, Array] = {}
    for key, values in table.items():
        if key != name and (rows := over_time(values, name, len(t))) is not None:
            for label, column in zip(entries(str(key), rows.shape[1:]), rows.reshape(len(t), -1).T, strict=True):
                columns[label] = column
    return Curves(t, columns, what)


def over_time(values: Any, time: str, length: int) -> Any:
    """An array or DataArray as an array (T, ...), of seeds the mean; None where it is not over time."""
    if hasattr(values, "dims"):
        if time not in values.dims:
            return None
        values = (values.mean(SEED) if SEED in values.dims else values).transpose(time, ...)
    rows = np.asarray(values)
    return rows if rows.shape[:1] == (length,) else None


def numbers(values: Any, what: str) -> Array:
    """values as float64. Raises ParamError with the first one that is no number."""
    array = np.asarray(values)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        for value in array.ravel().tolist():
            try:
                float(value)
            except (TypeError, ValueError):
                raise ParamError(f"{what} holds {value_text(value)}, which is no number") from None
        raise


def load(path: str | PathLike[str]) -> Any:
    """The table or Dataset in a file or stored run. Raises StoreError."""
    import pandas
    import xarray

    place, form = as_place(path), Path(fspath(path)).suffix.lower()
    if not place.exists():
        raise StoreError(f"{path} does not exist")
    if is_run(place):
        return load_run(place)
    if form not in FORMS:
        raise StoreError(f"{path}: data are in a stored run, or in a file that ends in {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    try:
        if form in (".csv", ".tsv"):
            return pandas.read_csv(path, sep="," if form == ".csv" else "\t", skipinitialspace=True)
        if form == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        if form == ".parquet":
            return pandas.read_parquet(path)
        of_zarr: dict[str, Any] = {"engine": "zarr", "consolidated": False} if form == ".zarr" else {"engine": "scipy"}
        with damage_errors(place), xarray.open_dataset(path, **of_zarr, decode_times=False) as data:
            return data.load()
    except ImportError:
        raise StoreError("parquet needs pyarrow: pip install 'odesim[parquet]'") from None
    except (OSError, ValueError, EOFError, KeyError) as error:  # pandas and numpy raise these for a file in another form
        raise StoreError(f"cannot read {path} as {form[1:]}: {' '.join(str(error).split())[:200]}") from error
