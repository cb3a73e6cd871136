"""Values of members of an ensemble, read block by block, and numbers that differ between members."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, no_such
from odesim.plot.choice import Choice, split_index
from odesim.plot.labels import symbol

if TYPE_CHECKING:
    import xarray

MEMBER, TIME = "member", "time"
BYTES = 1 << 27  # of values that are in memory at once
COMPONENTS = 5  # of an array, spread evenly
BESIDE = 3  # names of zipped numbers on an axis


@dataclass(frozen=True)
class Drawn:
    """Components of a state or observable: indices (C, rank) of its axes dims."""

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    indices: Array

    @property
    def count(self) -> int:
        """Number of all components, drawn or not."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def labels(self) -> list[str]:
        """The index of each drawn component as text, empty for a number."""
        return [",".join(map(str, index)) for index in self.indices]

    def symbol(self, k: int) -> str:
        """The drawn component k as a symbol; an array of one component is a number."""
        return symbol(self.name, [str(i) for i in self.indices[k]] if self.count > 1 else ())

    @property
    def label(self) -> str:
        """The quantity as a symbol: with its axes, or with an index where one component of several is drawn."""
        return symbol(self.name, self.dims) if len(self.indices) > 1 else self.symbol(0)


def components(run: "xarray.Dataset", name: str, choice: Choice, most: int = COMPONENTS) -> Drawn:
    """The chosen component of a state or observable, or at most `most`, spread evenly. Raises ParamError."""
    shape, dims = tuple(run[name].shape[2:]), tuple(map(str, run[name].dims[2:]))
    count, chosen = int(np.prod(shape, dtype=int)), choice.component(name, shape)
    flat = np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))
    indices = np.array([chosen]) if chosen is not None else np.stack(np.unravel_index(flat, shape), axis=1) if shape else np.empty((1, 0))
    return Drawn(name, dims, shape, indices.astype(int))


def values_of(run: "xarray.Dataset", drawn: Drawn, rows: Any = slice(None)) -> Array:
    """Values (N, T, C) of components at rows of time; after an early end the value at the end, NaN where it is not stored."""
    import xarray as xr

    pick = {dim: xr.DataArray(drawn.indices[:, k], dims="component") for k, dim in enumerate(drawn.dims)}
    values = np.asarray(run[drawn.name].isel({TIME: rows}).isel(pick).values, float)
    values = values if drawn.dims else values[..., None]
    after = run[TIME].values[rows] > run["t_end"].values[:, None]  # (N, T)
    after[run["status"].values == list(run.attrs["status_names"]).index("ok")] = False
    if after.any():
        name, member, time = end_name(run, drawn.name), *np.nonzero(after)
        ends = np.asarray(run[name].isel(pick).values, float) if name else np.full((len(values), len(drawn.indices)), np.nan)
        values[member, time] = ends.reshape(len(values), -1)[member]
    return values


def without_copies(drawn: Drawn, values: Array) -> tuple[Drawn, Array, list[str]]:
    """Drawn and values (..., C) without components that are equal to an earlier one, and notes that say so."""
    flat = values.reshape(-1, values.shape[-1])
    first = [next(j for j in range(k + 1) if np.array_equal(flat[:, j], flat[:, k], equal_nan=True)) for k in range(flat.shape[1])]
    own = sorted(set(first))
    if len(own) == len(first):
        return drawn, values, []
    return replace(drawn, indices=drawn.indices[own]), values[..., own], [f"equal components of {symbol(drawn.name)} are drawn once"]


def is_state(run: "xarray.Dataset", drawn: Drawn) -> bool:
    """Whether it is a state, not an observable."""
    return drawn.name in names_in(run, "states")


def end_name(run: "xarray.Dataset", name: str) -> str:
    """The array of the values of a state at the ends of members, empty where none is stored."""
    ends = run.attrs.get("kept", {}).get("ends", ()) or run.attrs.get("ends", ())
    return str(dict(zip(names_in(run, "states"), [ends] if isinstance(ends, str) else ends, strict=False)).get(name, ""))


def names_in(run: "xarray.Dataset", key: str) -> list[str]:
    """The names that an attribute of an ensemble lists; netCDF makes a text of a list of one."""
    found = run.attrs.get(key, ())
    return [found] if isinstance(found, str) else list(found)


def blocks(run: "xarray.Dataset", numbers: int) -> Iterator["xarray.Dataset"]:
    """The done members of an ensemble in parts that fit in memory. numbers: of one member."""
    chunk = int(run.attrs.get("chunk", 4096))
    size = max(BYTES // (8 * max(numbers, 1)) // chunk, 1) * chunk  # whole chunks of the file
    for first in range(0, run.sizes[MEMBER], size):
        part = run.isel({MEMBER: slice(first, first + size)})
        done = part["status"].values >= 0
        if done.any():
            yield part if done.all() else part.isel({MEMBER: np.flatnonzero(done)})


@dataclass(frozen=True)
class Varied:
    """A number that differs between members: its name as users write it (`mu`, or `mu[3]` of an array), its label, values (N,)."""

    name: str
    label: str
    values: Array
    kind: str = ""

    @property
    def points(self) -> Array:
        """The distinct values in order."""
        return np.unique(self.values[np.isfinite(self.values)])

    @property
    def is_log(self) -> bool:
        """Whether the distinct values are geometric."""
        return is_logarithmic(self.points)


def varied_arrays(run: "xarray.Dataset") -> dict[str, tuple[int, ...]]:
    """{name: shape} of all that differs between members; an array of one number has the shape ()."""
    found = {str(name): tuple(v.shape[1:]) for name, v in run.coords.items() if v.dims[:1] == (MEMBER,) and name != MEMBER}
    ordered = [*(label for label in run.attrs.get("labels", {}).values() if label in found), *found]  # as they were given
    return {name: () if np.prod(found[name], dtype=int) == 1 else found[name] for name in dict.fromkeys(ordered)}


def find_varied(run: "xarray.Dataset", text: str, option: str) -> Varied:
    """The number that a user names, `mu` or `mu[3]`. option: `x` or `y`. Raises ParamError."""
    name, index = split_index(text)
    arrays = varied_arrays(run)
    states = {f"{state}_start": state for state in names_in(run, "states")}
    name = next((label for label, state in states.items() if state == name and label in arrays), name)
    if name not in arrays:
        raise ParamError(no_such(f"varied number ({option})", text, [*arrays, TIME], str(run.attrs["model"])))
    shape = arrays[name]
    if len(index) != len(shape) or any(i >= n for i, n in zip(index, shape, strict=False)):
        example = f"{name}[{','.join('0' for _ in shape)}]" if shape else name
        raise ParamError(f"{option} = {text!r} is not one number of {name}, whose shape is {shape}: write {example}, for example")
    values = run[name].values.reshape(run.sizes[MEMBER], -1)[:, int(np.ravel_multi_index(index, shape)) if shape else 0]
    if not np.isfinite(values.astype(float)).any():
        raise ParamError(f"{option} = {text!r} is finite in no member: choose another number")
    kind = str(run[name].attrs.get("design", ""))
    zipped = [other for other in arrays if other != name and kind == run[other].attrs.get("design") == "zip"]
    label = label_of(name, [str(i) for i in index], states)
    if zipped:
        others = [label_of(other, (), states) for other in zipped[:BESIDE]] + ["..."] * (len(zipped) > BESIDE)
        label += f" (with {', '.join(others)})"
    return Varied(text, label, np.asarray(values, float), kind)


def label_of(name: str, index: Sequence[str], states: Mapping[str, str]) -> str:
    """The label of a number that varies. states {coordinate: state} of starting values."""
    return symbol(states.get(name, name), index) + (" at the start" if name in states else "")


def chosen_numbers(run: "xarray.Dataset") -> dict[str, float]:
    """{symbol: value} of the numbers that varied, and of which one was chosen (`run.sel(mu=1)`); of a single member none."""
    states = {f"{state}_start": state for state in names_in(run, "states")}
    fixed = {str(name): v for name, v in run.coords.items() if v.ndim == 0 and "design" in v.attrs and run.sizes[MEMBER] > 1}
    return {label_of(name, (), states): float(v) for name, v in fixed.items()}


def varied_numbers(run: "xarray.Dataset") -> list[Varied] | None:
    """The numbers that differ between members, of zipped ones the first; None where arrays differ."""
    arrays = varied_arrays(run)
    if any(arrays.values()):
        return None
    found = [find_varied(run, name, "x") for name in arrays]
    zipped = [varied for varied in found if varied.kind == "zip"]
    return [varied for varied in found if varied not in zipped[1:]]


def is_logarithmic(points: Array) -> bool:
    """Whether points (n,) in order are positive and grow by one factor, of 1e-6, and not by one step."""
    if len(points) < 3 or points[0] <= 0 or points[-1] < 3 * points[0]:
        return False
    ratios = points[1:] / points[:-1]
    return bool(np.ptp(ratios) <= 1e-6 * ratios[0])


def spans(values: Sequence[float] | Array, decades: float = 3.0) -> bool:
    """Whether the finite values are all positive and span more than so many decades."""
    finite = np.asarray(values, float)
    finite = finite[np.isfinite(finite)]
    return bool(len(finite) and finite.min() > 0 and finite.max() > 10**decades * finite.min())
