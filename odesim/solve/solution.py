"""A finished run, with names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.arrays import Array
from odesim.errors import SolveError

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Solution:
    """States along a run of one model.

    t (T,): saved times that were reached; where the run stopped early, also the last time reached. y: {state: (T, *shape)}.
    observables: {name: (T, *shape)}, computed when first asked for. events: {name: [{"t": float, "index": tuple or None}]}.
    invariants: {name: worst violation in the stated sense}. stats: steps, rejected, rhs_calls, seconds, compile_seconds.
    status: "ok", "event", "max_steps", "step_too_small", "non_finite", "blow_up" or "interrupted"; message says it in a sentence.
    dims: {name: names of the axes after time}. attrs: what was asked for, and by which versions it was computed.
    """

    t: Array
    y: dict[str, Array]
    events: dict[str, list[dict[str, Any]]]
    status: str
    message: str
    stats: dict[str, float]
    model: str
    method: str
    backend: str
    dims: dict[str, tuple[str, ...]]
    attrs: dict[str, Any]
    _observe: Callable[[], tuple[dict[str, Array], dict[str, float]]] = field(repr=False, compare=False)
    _resume: Callable[[float, Mapping[str, Array], float], dict[str, Array]] = field(repr=False, compare=False)

    @cached_property
    def _observed(self) -> tuple[dict[str, Array], dict[str, float]]:
        return self._observe()

    @property
    def observables(self) -> dict[str, Array]:
        """{name: (T, *shape)} at the saved times."""
        return self._observed[0]

    @property
    def invariants(self) -> dict[str, float]:
        """{name: worst violation over the saved times, in the sense of the law: 0 where it holds}."""
        return self._observed[1]

    @property
    def final(self) -> dict[str, Array]:
        """{state: shape} at the last time."""
        return {name: rows[-1] for name, rows in self.y.items()}

    @property
    def ok(self) -> bool:
        """Whether the run reached its end or a terminal event."""
        return self.status in ("ok", "event")

    def at(self, t: float) -> dict[str, Array]:
        """{state: shape} at any time of the run: integrated again from the last saved time before t, with the same tolerances.

        Raises SolveError where t lies outside the run.
        """
        if not self.t[0] <= t <= self.t[-1]:
            raise SolveError(f"t = {t:g} lies outside the run, which goes from {self.t[0]:g} to {self.t[-1]:g}")
        k = int(np.searchsorted(self.t, t, side="right")) - 1
        start = {name: rows[k] for name, rows in self.y.items()}
        return start if self.t[k] == t else self._resume(float(self.t[k]), start, float(t))

    def to_xarray(self) -> "xarray.Dataset":
        """States and observables as variables over time and the axes of the model."""
        import xarray

        arrays = {**self.y, **self.observables}
        variables = {name: (("time", *self.dims[name]), rows) for name, rows in arrays.items()}
        return xarray.Dataset(
            variables, coords={"time": self.t}, attrs={"model": self.model, "status": self.status, "message": self.message}
        )

    def _repr_html_(self) -> str:
        from html import escape

        rows = [(name, "state", rows.shape[1:], rows) for name, rows in self.y.items()]
        rows += [(name, "observable", rows.shape[1:], rows) for name, rows in self.observables.items()]
        cells = "".join(
            f"<tr><td><b>{escape(name)}</b></td><td>{kind}</td><td>{shape or ''}</td><td>{_span(values)}</td></tr>"
            for name, kind, shape, values in rows
        )
        head = f"<b>{escape(self.model)}</b>, t = {self.t[0]:g} to {self.t[-1]:g}, {self.method}, {self.stats['steps']:.0f} steps"
        titles = "".join(f"<th>{title}</th>" for title in ("name", "", "shape", "at the end"))
        return f"<div>{head}<br>{escape(self.message)}<table><tr>{titles}</tr>{cells}</table></div>"


def _span(rows: Array) -> str:
    """The last values in a word: one number, or the range."""
    last = rows[-1]
    return f"{float(last):.6g}" if last.ndim == 0 else f"{np.min(last):.6g} to {np.max(last):.6g}"
