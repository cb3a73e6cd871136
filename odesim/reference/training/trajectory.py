"""The Trajectory: the result of a training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.base.parsing import readable
from odesim.base.pictures import draw, with_accessor

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

OK, INTERRUPTED, NON_FINITE = "ok", "interrupted", "non_finite"
SEED, TIME = "seed", "time"


@readable
@dataclass(frozen=True, repr=False, eq=False)
class Trajectory:
    """Observables along a training of R seeds, recorded before the update of an iteration.

    t (T,): the recorded iterations. observables: {name: (R, T, *shape)}; `loss` is that of the batch of the iteration.
    final: {name: (R, *shape)} of every observable at the iteration reached, after its last update; `loss` too.
    iteration: updates done; steps: those asked for. seeds (R,). dims: {name: names of the axes after seed and time}.
    status: "ok", "interrupted", or "non_finite" where a seed's loss is; message says it in a sentence.
    bad: {seed: first iteration whose loss is not finite}. stats: seconds, steps_per_second. attrs: what it was computed by.
    """

    task: str
    model: str
    t: Array
    observables: Mapping[str, Array]
    final: Mapping[str, Array]
    iteration: int
    steps: int
    seeds: tuple[int, ...]
    config: Mapping[str, Any]
    dims: Mapping[str, tuple[str, ...]]
    status: str
    message: str
    bad: Mapping[int, int]
    stats: Mapping[str, float]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether every seed was trained to the end with a finite loss."""
        return self.status == OK

    def to_xarray(self) -> xarray.Dataset:
        """A Dataset of observables (seed, time, ...); those recorded at the end only have no time axis."""
        import xarray

        variables: dict[str, Any] = {name: (axis_names(self.dims, name, rows.ndim - 2), rows) for name, rows in self.observables.items()}
        ends = {name: value for name, value in self.final.items() if name not in variables}
        variables |= {name: (axis_names(self.dims, name, value.ndim - 1, timed=False), value) for name, value in ends.items()}
        attributes = {"task": self.task, "model": self.model, "status": self.status, "message": self.message, "steps": self.steps}
        settings = {name: value for name, value in self.config.items() if isinstance(value, str | int | float)}
        coords = {SEED: np.array(self.seeds), TIME: self.t}
        run: xarray.Dataset = with_accessor(xarray.Dataset(variables, coords=coords, attrs={**settings, **attributes}))
        return run

    def plot(
        self,
        var: str | Iterable[str] = (),
        *,
        index: int | Iterable[int] | None = None,
        log: str | None = None,
        ax: Axes | None = None,
    ) -> Axes | Array:
        """Draws observables against iterations, with bands over seeds; returns Axes, an array of them for several panels.

        var: names, default all; index: a component of an array; log: letters of logarithmic scales (x, y, c for colours), or "none";
        ax: Axes of matplotlib, for one observable; it is returned. `odesim.plot.save(axes, path)` writes the picture. Raises ParamError.
        """
        run = self.to_xarray().assign_attrs(labels=self.attrs.get("labels", {}))
        drawn: Axes | Array = draw("training", run, ax, var=var, index=index, log=log)
        return drawn

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in self.final.items())
        return f"<Trajectory of {self.task} ({self.model}): {self.status} at iteration {self.iteration}; {len(self.t)} recorded; {shapes}>"

    def _repr_html_(self) -> str:
        from html import escape

        cells = "".join(
            f"<tr><td><b>{escape(name)}</b></td><td>{value.shape[1:] or ''}</td><td>{range_text(value)}</td>"
            f"<td>{'at every recorded iteration' if name in self.observables else 'at the end only'}</td></tr>"
            for name, value in self.final.items()
        )
        titles = "".join(f"<th>{title}</th>" for title in ("name", "shape", "last values, over the seeds", "kept"))
        counts = f"{counted(len(self.seeds), 'seed')}, {counted(len(self.t), 'recorded iteration')}"
        head = f"<b>{escape(self.task)}</b> ({escape(self.model)}), {counts}"
        return f"<div>{head}<br/>{escape(self.message)}<table><tr>{titles}</tr>{cells}</table></div>"


def range_text(values: Array) -> str:
    """A single number as text, or the range of several."""
    return f"{float(values.min()):.6g}" if values.size == 1 else f"{float(values.min()):.6g} to {float(values.max()):.6g}"


def axis_names(dims: Mapping[str, tuple[str, ...]], name: str, rank: int, *, timed: bool = True) -> tuple[str, ...]:
    """Axis names of an observable: seed, time if timed, then `rank` more, numbered if dims has no names for them."""
    named = tuple(dims.get(name, ()))
    further = named if len(named) == rank else tuple(f"{name}_{axis}" for axis in range(rank))
    return (SEED, TIME, *further) if timed else (SEED, *further)


def outcome_sentence(status: str, iteration: int, steps: int, bad: Mapping[int, int]) -> str:
    """A sentence on how a training ended."""
    first = sorted(bad.items(), key=lambda pair: pair[1])
    phrases = [f"seed {seed} from iteration {i} on" for seed, i in first[:3]]
    phrases += [f"{len(first) - 3} more"] * (len(first) > 3)
    not_finite = f"the loss is not finite: {', '.join(phrases)}" if phrases else ""
    if status == INTERRUPTED:
        where = f"interrupted at iteration {iteration} of {steps}"
        return "; ".join(filter(None, (where, not_finite)))
    return not_finite or f"trained for {counted(iteration, 'iteration')}"
