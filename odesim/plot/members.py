"""Values of members of an ensemble, read block by block, their quantiles, and numbers that differ between members."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array, entry
from odesim.base.errors import ParamError, no_such
from odesim.plot.choice import Choice, split_index
from odesim.plot.labels import array_symbol, component_name, symbol
from odesim.plot.scales import is_logarithmic
from odesim.run.solution import FLOORS

if TYPE_CHECKING:
    import xarray

MEMBER, TIME = "member", "time"
BYTES = 1 << 27  # of values that are in memory at once
COMPONENTS = 5  # of an array, spread evenly
BESIDE = 3  # names of zipped numbers on an axis
SAMPLE = 20_000  # members from which the place of a quantile is guessed
AROUND = 0.03  # of the rank: a quantile of the sample is off by 0.0035 (standard error), so that this is 8 of them
BINS = 256  # between a rank that much lower and one that much higher: finer than a line is wide
STATUS, T_END = "status", "t_end"


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
        return [component_name(index, self.shape) for index in self.indices]

    def symbol(self, k: int) -> str:
        """The drawn component k as a symbol; an array of one component is a number."""
        return symbol(self.name, [str(i) for i in self.indices[k]] if self.count > 1 else ())

    @property
    def label(self) -> str:
        """The quantity as a symbol: with its axes, or with an index where one component of several is drawn."""
        return array_symbol(self.name, self.dims, self.shape) if len(self.indices) > 1 else self.symbol(0)


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


def member_values(run: "xarray.Dataset", drawn: Drawn, rows: Sequence[int] | Array) -> Array:
    """Values (N, T, C) of components of all members at rows of time, read block by block; NaN for members that are not done."""
    values = np.full((run.sizes[MEMBER], len(rows), len(drawn.indices)), np.nan)
    done, first = np.flatnonzero(run["status"].values >= 0), 0
    for part in blocks(run, run.sizes[TIME] * max(drawn.count, 1)):
        size = part.sizes[MEMBER]
        values[done[first : first + size]] = values_of(part, drawn, rows)
        first += size
    return values


def without_copies(drawn: Drawn, values: Array) -> tuple[Drawn, Array, list[str]]:
    """Drawn and values (..., C) without components that are equal to an earlier one, and notes that say so."""
    flat = values.reshape(-1, values.shape[-1])
    first = [next(j for j in range(k + 1) if np.array_equal(flat[:, j], flat[:, k], equal_nan=True)) for k in range(flat.shape[1])]
    distinct = sorted(set(first))
    if len(distinct) == len(first):
        return drawn, values, []
    return (
        replace(drawn, indices=drawn.indices[distinct]),
        values[..., distinct],
        [f"equal components of {symbol(drawn.name)} are drawn once"],
    )


def is_state(run: "xarray.Dataset", drawn: Drawn) -> bool:
    """Whether it is a state, not an observable."""
    return drawn.name in names_in(run, "states")


def end_name(run: "xarray.Dataset", name: str) -> str:
    """The array of the values of a state at the ends of members, empty where none is stored."""
    ends = run.attrs.get("kept", {}).get("ends", ()) or run.attrs.get("ends", ())
    return str(dict(zip(names_in(run, "states"), [ends] if isinstance(ends, str) else ends, strict=False)).get(name, ""))


def names_in(run: "xarray.Dataset", key: str) -> list[str]:
    """The names that an attribute of an ensemble lists; netCDF makes a text of a list of one."""
    names = run.attrs.get(key, ())
    return [names] if isinstance(names, str) else list(names)


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
    shapes = {str(name): tuple(v.shape[1:]) for name, v in run.coords.items() if v.dims[:1] == (MEMBER,) and name != MEMBER}
    ordered = [*(label for label in run.attrs.get("labels", {}).values() if label in shapes), *shapes]  # as they were given
    return {name: () if np.prod(shapes[name], dtype=int) == 1 else shapes[name] for name in dict.fromkeys(ordered)}


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
        example = entry(name, [0] * len(shape))
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
    numbers = [find_varied(run, name, "x") for name in arrays]
    zipped = [varied for varied in numbers if varied.kind == "zip"]
    return [varied for varied in numbers if varied not in zipped[1:]]


# numpy's quantiles need all members at once: 10^7 of them at 200 times are 16 GB. Two passes over the file need a sample and counts.
def quantiles(read: Callable[[], Iterable[Array]], count: int, levels: Iterable[float], room: int) -> Array:
    """Quantiles (L, ...) over the first axis of blocks (n, ...) that read() yields; NaN is left out, and is the result of NaN alone.

    count: of members in all blocks; room: the number of members that fit in memory. If all fit, quantiles are numpy's. Else they are
    those of a random sample, moved to the right rank by counting all members in bins around them.
    """
    levels = np.array(list(levels))
    if count <= room:
        return nan_quantiles(np.concatenate(list(read())), levels)
    random, chosen = np.random.default_rng(0), []
    for block in read():
        chosen.append(block[random.random(len(block)) < min(SAMPLE, room) / count])
    sample = np.concatenate(chosen)
    low, high = (nan_quantiles(sample, np.clip(levels + side * AROUND, 0, 1)) for side in (-1, 1))
    return count_around(read(), levels, low, high)


def count_around(blocks: Iterable[Array], levels: Array, low: Array, high: Array) -> Array:
    """Quantiles (L, ...) of all blocks, which lie between low and high (L, ...), by counts in bins between these."""
    shape = low.shape[1:]
    low, high = low.reshape(len(levels), -1), high.reshape(len(levels), -1)
    width = np.where(high > low, high - low, 1.0)
    columns = np.arange(low.shape[1])
    counts, total = np.zeros((len(levels), low.shape[1], BINS + 2)), np.zeros(low.shape[1])
    for block in blocks:
        values = block.reshape(len(block), -1)
        finite = np.isfinite(values)
        total += finite.sum(axis=0)
        for k in range(len(levels)):
            with np.errstate(invalid="ignore"):
                place = np.clip(np.floor((values - low[k]) / width[k] * BINS) + 1, 0, BINS + 1)  # 0: below, BINS + 1: above
            flat = (columns * (BINS + 2) + np.where(finite, place, 0)).astype(np.int64)[finite]
            counts[k] += np.bincount(flat, minlength=counts[k].size).reshape(counts[k].shape)
    below = np.cumsum(counts, axis=2)
    result = np.full(low.shape, np.nan)
    for k, level in enumerate(levels):
        for c in np.flatnonzero(total):
            edge = low[k, c] + width[k, c] * np.arange(BINS + 1) / BINS
            result[k, c] = min(np.interp(level * total[c], below[k, c, :-1], edge), high[k, c])
    return result.reshape(len(levels), *shape)


def nan_quantiles(values: Array, levels: Array) -> Array:
    """Quantiles (L, ...) of values (n, ...) without NaN and infinities; NaN where no value is finite."""
    values = np.where(np.isfinite(values), values, np.nan)
    result = np.full((len(levels), *values.shape[1:]), np.nan)
    some = np.isfinite(values).any(axis=0)
    if some.any():
        result[:, some] = np.nanquantile(values[:, some], levels, axis=0)
    return result


def as_members(run: "xarray.Dataset") -> "xarray.Dataset":
    """The ensemble with the axes member and time, also where one of them was chosen, or members lie on the axes of their grid.

    Raises ParamError if it has no status, no time or no state and observable any more.
    """
    lists = {key: [name for name in names_in(run, key) if name in run] for key in ("states", "observables")}
    names = [name for some in lists.values() for name in some]
    if not names:
        raise ParamError(f"this Dataset has none of its states and observables any more: {', '.join(names_in(run, 'states'))}, ...")
    for name in (STATUS, T_END, TIME):
        if name not in run.variables:
            raise ParamError(f"this Dataset has no {name!r} any more, which the picture of an ensemble needs")
    run = run.assign_attrs(lists)
    if MEMBER not in run.dims:
        grid = run[STATUS].dims
        if grid:  # unstacked
            run = run.stack({MEMBER: grid}, create_index=False).transpose(MEMBER, ...)
            status = run[STATUS].values  # a place of the grid without a member has NaN: it is as one that is not done
            run = run.assign({STATUS: (MEMBER, np.where(np.isfinite(status), status, -1).astype(np.int8))})
        else:
            run = run.expand_dims(MEMBER)
    if TIME not in run.dims:
        run = run.assign({name: run[name].expand_dims({TIME: [run[TIME].item()]}, axis=1) for name in names})
    return run


def as_solution(run: "xarray.Dataset") -> Any:
    """The integration as an object with what the picture of a Solution reads. Raises ParamError if a time was chosen."""
    if TIME not in run.dims:
        raise ParamError("this Dataset has one time: the picture of an integration is over several")
    lists = {key: [name for name in names_in(run, key) if name in run] for key in ("states", "observables")}
    dims = {str(name): tuple(str(dim) for dim in v.dims if dim != TIME) for name, v in run.data_vars.items()}
    states, observables = ({name: run[name].transpose(TIME, ...).values for name in lists[key]} for key in lists)
    events = {name: occurrences for name, occurrences in run.attrs.get("events", {}).items() if isinstance(occurrences, list)}
    return SimpleNamespace(
        t=run[TIME].values,
        y=states,
        observables=observables,
        observable_floors=run.attrs.get(FLOORS, {}),  # a Dataset has no right-hand side to estimate errors by
        events=events,
        dims=dims,
        attrs=run.attrs,
        model=run.attrs["model"],
        method=run.attrs.get("method", ""),
        status=run.attrs["status"],
    )
