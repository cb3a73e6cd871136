"""Curves from outside: columns over time, of each seed, from tables, Datasets, files, stored runs, and what W&B and TensorBoard export."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, StoreError, nearest, no_such, value_text
from odesim.store.export import entries
from odesim.store.paths import damage_errors, is_run
from odesim.store.read import load_run
from odesim.store.schema import TIME

TIMES = ("t", TIME, "step", "Step", "_step", "iteration", "epoch")
"""Columns that are the time where none is named, the first of them that there is; `_step` is that of a history of W&B."""
SEED = "seed"
FORMS = (".csv", ".tsv", ".parquet", ".nc", ".npz", ".zarr")
COLUMN = re.compile(r"([^\[\]]+)((?:\[\s*\d+\s*(?:,\s*\d+\s*)*\])*)")
LEAST, MOST = "__MIN", "__MAX"
"""Ends of the names of the two columns that a chart of W&B has beside each `RUN - METRIC`: the range of what its point stands for."""
TAG_FILE = re.compile(r"run-(.*)-tag-(.*?)(?: ?\(\d+\))?\.csv")
"""Name of a file of TensorBoard, whose columns are Wall time, Step and Value; in its run and tag the browser writes / as _."""
TAG_COLUMNS = {"Wall time", "Step", "Value"}


@dataclass(frozen=True)
class Curves:
    """Columns over time. t (T,), increasing or not; columns {name: (T,)}: an array gives its entries, as v[0]; NaN: nothing was measured.

    what: the data, for sentences. time: the name of the column of times. run: what the same run has in other files too; empty for no name.
    """

    t: Array
    columns: dict[str, Array]
    what: str
    time: str = "t"
    run: str = ""


@dataclass(frozen=True)
class Measured:
    """One column of data: of which quantity, of which of its components, and its name."""

    label: str
    quantity: str
    at: tuple[int, ...]
    name: str


def read_curves(data: Any, time: str = "") -> Curves:
    """The curves of `data`, those of several seeds below each other: see read_seeds."""
    return joined(read_seeds(data, time))


def read_seeds(data: Any, time: str = "") -> tuple[Curves, ...]:
    """The curves of each seed. data: one or a list of paths, DataFrames, Datasets, runs, or dicts of arrays by name.

    A path is a file of FORMS, a stored run, or a folder of such files. A file is a seed. Further seeds are those of a dimension or column
    `seed`, and the runs of a chart that W&B exported; curves of one run in several files of a folder, of W&B or TensorBoard, are one seed.

    time: the column of times; without it the first of TIMES that there is, or that of the chart. Raises ParamError and StoreError.
    """
    places: list[Any] = []
    for place in data if isinstance(data, list | tuple) else [data]:
        places += files_of(place) if isinstance(place, str | PathLike) else [place]
    if not places:
        raise ParamError("data are none: give at least one file or table")
    of_run: dict[Any, list[Curves]] = {}
    for number, place in enumerate(places):
        for k, curves in enumerate(curves_of(place, time)):
            folder = fspath(Path(fspath(place)).parent) if isinstance(place, str | PathLike) else number
            of_run.setdefault((folder, curves.run) if curves.run else (number, k), []).append(curves)
    return tuple(joined(parts) for parts in of_run.values())


def files_of(path: str | PathLike[str]) -> list[str | PathLike[str]]:
    """The files of curves in a folder, in the order of their names; the path itself where it is no folder of them. Raises StoreError."""
    place = Path(path)
    if not place.is_dir() or place.suffix.lower() in FORMS or is_run(place):
        return [path]
    files = sorted(file for file in place.iterdir() if file.suffix.lower() in FORMS)
    if not files:
        raise StoreError(f"{path} is a folder without curves: it has no file that ends in {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    return [*files]


def joined(parts: Sequence[Curves]) -> Curves:
    """All rows of several Curves, one below the other; a column that a part does not have is NaN there."""
    first, *more = parts
    if not more:
        return first
    names = dict.fromkeys(name for part in parts for name in part.columns)
    columns = {name: np.concatenate([part.columns.get(name, np.full(len(part.t), np.nan)) for part in parts]) for name in names}
    places = dict.fromkeys(part.what for part in parts)
    what = first.what if len(places) == 1 else f"{first.what} and {len(places) - 1} more"
    return replace(first, t=np.concatenate([part.t for part in parts]), columns=columns, what=what)


def curves_of(data: Any, time: str) -> list[Curves]:
    """The curves of each seed, or run of a chart, in one table, Dataset, file or stored run."""
    if isinstance(data, Curves):
        return [data]
    file = ""
    if isinstance(data, str | PathLike):
        table, what, file = load(data), str(data), Path(fspath(data)).name
    else:
        table, what = data.to_xarray() if hasattr(data, "to_xarray") and not hasattr(data, "columns") else data, "the data"
    if hasattr(table, "data_vars"):
        table = {str(name): v for name, v in {**table.coords, **table.data_vars}.items()}
    elif hasattr(table, "reset_index"):
        table = table.reset_index() if table.index.name else table
        table = {str(name): table[name].to_numpy() for name in table.columns}
    elif not isinstance(table, Mapping):
        raise ParamError(f"data must be a path, a table, a Dataset, a run or a dict of columns, not {value_text(data)}")
    if (tag := TAG_FILE.fullmatch(file)) and set(table) == TAG_COLUMNS:
        table = {tag[2] if name == "Value" else name: values for name, values in table.items()}
        return [replace(curves_at(table, what, time or "Step"), run=tag[1])]
    if charted := [name for name in table if name + LEAST in table and name + MOST in table]:
        return chart_curves(table, charted, what, time)
    return [curves_at(one, what, time) for one in seeds_of(table)]


def chart_curves(table: Mapping[str, Any], charted: list[str], what: str, time: str) -> list[Curves]:
    """The curves of each run of a chart of W&B: `Step`, then for each run and metric `RUN - METRIC`, its least and its largest value."""
    beside = [name for name in table if name not in {*charted, *(name + end for name in charted for end in (LEAST, MOST))}]
    runs: dict[str, dict[str, Any]] = {}
    for name in charted:
        run, _, metric = name.rpartition(" - ")  # a run may have " - " in its name
        runs.setdefault(run, {})[metric] = table[name]
    times = {name: table[name] for name in beside}
    axis = time or next((name for name in (*TIMES, *beside[:1]) if name in times), "")
    return [replace(curves_at({**times, **columns}, what, axis), run=run) for run, columns in runs.items()]


def seeds_of(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The table of each seed, by a dimension or a column of that name; the table itself without one."""
    sizes = [v.sizes[SEED] for v in table.values() if hasattr(v, "dims") and SEED in v.dims]
    if sizes:
        return [{name: v.isel({SEED: k}) if SEED in getattr(v, "dims", ()) else v for name, v in table.items()} for k in range(sizes[0])]
    if SEED not in table or hasattr(table[SEED], "dims"):
        return [table]
    seeds = np.asarray(table[SEED])
    rows = {name: np.asarray(v) for name, v in table.items() if name != SEED}
    rows = {name: v for name, v in rows.items() if v.shape[:1] == seeds.shape}
    return [{name: v[seeds == seed] for name, v in rows.items()} for seed in dict.fromkeys(seeds.tolist())]


def curves_at(table: Mapping[str, Any], what: str, time: str) -> Curves:
    """The Curves of one seed: columns, arrays and DataArrays by name. Raises ParamError."""
    if not (name := time or next((name for name in TIMES if name in table), "")):
        raise ParamError(
            f"{what} has no column of times named {', '.join(TIMES[:2])} or step: say which it is (--time) of {', '.join(map(str, table))}"
        )
    if name not in table:
        raise ParamError(no_such("column", name, map(str, table), what))
    t = numbers(table[name], f"column {name} of {what}")
    if not t.size:
        raise ParamError(f"column {name} of {what} is empty")
    if t.ndim != 1 or not np.isfinite(t).all():
        raise ParamError(f"column {name} of {what} must hold finite times")
    columns: dict[str, Array] = {}
    for key, values in table.items():
        if key != name and (rows := over_time(values, name, len(t))) is not None:
            for label, column in zip(entries(str(key), rows.shape[1:]), rows.reshape(len(t), -1).T, strict=True):
                columns[label] = column
    return Curves(t, columns, what, name)


def over_time(values: Any, time: str, length: int) -> Any:
    """An array or DataArray as an array (T, ...); None where it is not over time."""
    if hasattr(values, "dims"):
        if time not in values.dims:
            return None
        values = values.transpose(time, ...)
    rows = np.asarray(values)
    return rows if rows.shape[:1] == (length,) else None


def match_columns(
    curves: Curves, mapped: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]], kind: str, model: str
) -> tuple[list[Measured], list[str]]:
    """The columns that are quantities of a model, and the names of the others.

    mapped {label: name of its column}, a label such as v[0]; columns that it does not name are labels themselves. shapes {quantity:
    shape}: those that a column may be, which the words `kind` describe. Raises ParamError for names that are none.
    """
    mapped = {label: name if name in curves.columns else as_file(name, curves.columns) for label, name in mapped.items()}
    for name in mapped.values():
        if name not in curves.columns:
            raise ParamError(no_such("column", name, curves.columns, curves.what))
    measured, unused = list[Measured](), list[str]()
    taken = set(mapped.values())
    others = [(name, name) for name in curves.columns if name not in taken and name not in mapped]
    for label, name in [*mapped.items(), *others]:
        parts = COLUMN.fullmatch(label)
        quantity = parts[1].strip() if parts else ""
        if quantity not in shapes:
            if name in taken:
                raise ParamError(no_such(kind, quantity or label, shapes, model))
            unused.append(name)
            continue
        at, shape = tuple(map(int, re.findall(r"\d+", parts[2] if parts else ""))), shapes[quantity]
        if len(at) != len(shape) or any(i >= n for i, n in zip(at, shape, strict=True)):
            example = next(entries(quantity, shape))
            named = "say by a size how many entries it has" if len(at) == len(shape) else f"a column of it is named as {example}"
            raise ParamError(f"column {label}: {quantity} has shape {shape}; {named}")
        measured.append(Measured(label, quantity, at, name))
    if not measured:
        has = f"the columns {', '.join(unused[:10])}" if unused else "a column of times alone"
        hint = nearest(unused[0], shapes) if unused else ""
        raise ParamError(f"no column of {curves.what} is named as a {kind} of {model}, {', '.join(shapes)}: it has {has}{hint}")
    return measured, unused


def as_file(name: str, columns: Iterable[str]) -> str:
    """The name of a tag as TensorBoard's file has it, with _ for /, where there is such a column; else the name."""
    return file if (file := name.replace("/", "_")) in columns else name


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

    place, form = Path(path), Path(path).suffix.lower()
    if not place.exists():
        raise StoreError(f"{path} does not exist")
    if is_run(place):
        return load_run(place)
    if form not in FORMS:
        raise StoreError(f"{path}: data are in a stored run, or in a file that ends in {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    try:
        if form in (".csv", ".tsv"):
            columns = pandas.read_csv(path, sep="," if form == ".csv" else "\t", skipinitialspace=True)
            if len(columns.columns) == 1 and ";" in columns.columns[0]:
                raise StoreError(f"the columns of {path} stand apart by semicolons: write them with commas, and numbers with points")
            return columns
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
