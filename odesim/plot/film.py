"""An array of a run along its time, to be animated: chosen by name, read from a training or an integration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array, on_host
from odesim.base.errors import ParamError, counted, no_such
from odesim.plot.panels import spread_indices

FRAMES = 200  # largest number of saved times that are drawn, spread evenly
ATTENTION = ("c", "attention", "Z")  # what is animated if nothing is named


@dataclass(frozen=True)
class Film:
    """Values (T, *shape) of `name` at times t (T,), the names of the axes of shape, and what is said above them.

    labels {axis: names of its places}, such as words. unit: of time.
    """

    name: str
    title: str
    t: Array
    values: Array
    dims: tuple[str, ...]
    unit: str
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """How it is drawn: `vector`, `matrix`, or `points`, the rows of a matrix of 2 or 3 columns that all have length 1."""
        if self.values.ndim == 2:
            return "vector"
        return "points" if is_points(self.values) else "matrix"


def is_points(values: Array) -> bool:
    """Whether values (T, n, d) are vectors of 2 or 3 components and length 1."""
    return values.shape[-1] in (2, 3) and np.allclose(np.linalg.norm(values, axis=-1), 1.0, rtol=0, atol=1e-3)


def without_single_axes(values: Array, dims: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """(values (T, *shape), dims) without the axes of one place; a vector stays one, and a single point on a circle or sphere."""
    if values.ndim < 3 or (values.ndim == 3 and is_points(values)):
        return values, dims
    kept = [k for k, n in enumerate(values.shape[1:]) if n > 1] or [0]
    return values.reshape(len(values), *(values.shape[1 + k] for k in kept)), tuple(dims[k] for k in kept)


def film_of(run: Any, name: str = "") -> Film:
    """The Film of an array of a run: a Solution, a Trajectory, its Dataset, or a stored run's folder.

    name: of the array, default attention, or the first.
    Raises ParamError, in a sentence, where there is no such array, or nothing to animate.
    """
    if isinstance(run, str | PathLike):
        run = read_run(Path(run))
    title, t, every, names, unit, labels = parts_of_solution(run) if hasattr(run, "y") else parts_of_training(run)
    arrays, dims = {}, {}
    for key, values in every.items():
        own = tuple(map(str, names.get(key, ())))
        own = own if len(own) == values.ndim - 1 else ("index",) * (values.ndim - 1)
        arrays[key], dims[key] = without_single_axes(np.asarray(values, float), own)
    possible = [key for key, values in arrays.items() if values.ndim in (2, 3)]
    if name and name not in arrays:
        raise ParamError(no_such("array", name, possible, title))
    if not possible:
        raise ParamError(f"{title} has no array with times to animate: what it records are numbers, or kept at the end only")
    if name and name not in possible:
        what = "is a number at each time" if arrays[name].ndim == 1 else f"has {counted(arrays[name].ndim - 1, 'axis', 'axes')}"
        raise ParamError(f"{name} {what}; vectors and matrices can be animated: {', '.join(possible)}")
    name = name or next((key for key in ATTENTION if key in possible), possible[0])
    if len(t) < 2:
        raise ParamError(f"{title} has {len(t)} saved time; an animation needs two or more: --save N stores them")
    frames = spread_indices(len(t), FRAMES)
    return Film(name, title, np.asarray(t)[frames], arrays[name][frames], dims[name], unit, labels)


def read_run(path: Path) -> Any:
    """The stored training or integration."""
    from odesim.store.read import load_run, read_solution
    from odesim.store.schema import run_kind

    return load_run(path) if run_kind(path) == "training" else read_solution(path)


Parts = tuple[str, Array, dict[str, Array], Mapping[str, Any], str, Mapping[str, Any]]


def parts_of_solution(solution: Any) -> Parts:
    """Title, times, arrays, their axes, unit of time and labels of a Solution."""
    arrays = {name: np.asarray(values) for name, values in {**on_host(solution.y), **solution.observables}.items()}
    return str(solution.model), solution.t, arrays, solution.dims, str(solution.attrs.get("time_unit") or ""), {}


def parts_of_training(training: Any) -> Parts:
    """Title, times, arrays, their axes, unit of time and labels of a Trajectory or a training's Dataset: means over seeds."""
    labels = training.attrs.get("labels", {})
    run = training.to_xarray() if hasattr(training, "to_xarray") and hasattr(training, "final") else training
    timed = {str(name): v.transpose("seed", "time", ...) for name, v in run.data_vars.items() if "time" in v.dims}
    arrays = {name: v.values.mean(axis=0) for name, v in timed.items()}
    seeds = run["seed"].values
    title = f"{run.attrs['task']} ({run.attrs['model']}), " + (
        f"mean of {counted(len(seeds), 'seed')}" if len(seeds) > 1 else f"seed {seeds[0]}"
    )
    return title, run["time"].values, arrays, {name: v.dims[2:] for name, v in timed.items()}, "iterations", labels
