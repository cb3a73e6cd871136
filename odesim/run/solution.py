"""Solution: a finished run with names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from odesim.base.arrays import Array, array_namespace, on_host, to_ends
from odesim.base.datasets import draw, with_accessor
from odesim.base.errors import SolveError, apart, counted, value_text
from odesim.base.options import largest_atol
from odesim.base.parsing import check_keywords, readable

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

FLOORS = "floors"  # attribute of a stored run
Violations: TypeAlias = dict[str, float | None]
"""{invariant: worst violation or None}."""


def floor_of(values: Array, attributes: Mapping[str, Any], *, state: str) -> float:
    """Below which size values (...) of a state (an observable: "") may be errors of the integration; 0 for steps without error control.

    That is the tolerance: atol for a state; an observable may be a difference of states, with rtol of its largest value too.
    """
    if attributes.get("step") is not None or "rtol" not in attributes:
        return 0.0
    values = np.abs(np.asarray(values, float))
    largest = float(np.max(values, where=np.isfinite(values), initial=0.0))
    return largest_atol(attributes["atol"], state) + (0.0 if state else float(attributes["rtol"]) * largest)


@dataclass(frozen=True)
class Seen:
    """Observables that are known already: {name: (T, *shape)} at the saved times, {name: shape} at t_end."""

    t_end: float
    rows: dict[str, Array]
    end: dict[str, Array]

    def __call__(self, t: Array, y: Mapping[str, Array]) -> dict[str, Array]:
        """The known observables at the times t (T,): the saved ones, or t_end alone."""
        last = len(t) == 1 and t[0] == self.t_end
        return {name: value[None] for name, value in self.end.items()} if last else self.rows


def no_more_times(how: str, times: Array) -> dict[str, Array]:
    """Raises SolveError: a Solution that was `copied` by pickle, or `stored`, has no compiled code to compute more times."""
    raise SolveError(f"a {how} run knows its saved times only; integrate again with the times you need")


@readable
@dataclass(frozen=True, repr=False)
class Solution:
    """States along a run of one model.

    Attributes
    ----------
    t : (T,)
        Saved times that were reached; where the run stopped early, also the last time reached.
    y : {state: (T, *shape)}
        States at these times; arrays of cupy where that was asked for.
    t_end, y_end : float, {state: shape}
        The last time reached and the states there, saved or not.
    events : {name: [{"t": float, "index": tuple or None}]}
        What happened, in order.
    status, message : str
        "ok", "event", "max_steps", "step_too_small", "non_finite", "blow_up", "sliding", "left_domain" or "interrupted"; a sentence.
    stats : {name: float}
        steps, rejected, rhs_calls, seconds (of the steps), compile_seconds (of what comes before: kernels compiled or loaded, memory).
    model, method, backend : str
        By whom it was computed.
    dims : {name: names of the axes after time}
        Of states and observables.
    attrs : dict
        What was asked for, and by which versions it was computed.

    Examples
    --------
    >>> run = odesim.integrate("joma.nonlinear", params={"mu": [2.0, 1.0]})
    >>> run.ok, run.final["v"].round(3).tolist(), run.at(1.0)["v"].round(3).tolist()
    (True, [2.0, 0.999], [1.701, 0.687])
    """

    t: Array
    y: dict[str, Array]
    t_end: float
    y_end: dict[str, Array]
    events: Mapping[str, Sequence[Mapping[str, Any]]]
    status: str
    message: str
    stats: dict[str, float]
    model: str
    method: str
    backend: str
    dims: dict[str, tuple[str, ...]]
    attrs: dict[str, Any]
    _observe: Callable[[Array, Mapping[str, Array]], dict[str, Array]] = field(repr=False, compare=False)
    _violations: Callable[[], Violations] = field(repr=False, compare=False)
    _again: Callable[[Array], dict[str, Array]] = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """The data that pickle keeps: every array, the observables computed; dense() needs compiled code and is left behind."""
        kept = {f.name: getattr(self, f.name) for f in fields(self)}
        seen = Seen(self.t_end, self.observables, self.final_observables)
        return kept | {"_observe": seen, "_violations": partial(dict, self.invariants), "_again": partial(no_more_times, "copied")}

    def __deepcopy__(self, memo: dict[int, Any]) -> Solution:
        """A copy with arrays of its own, which can still compute more times."""
        return replace(self, **{f.name: deepcopy(getattr(self, f.name), memo) for f in fields(self) if not f.name.startswith("_")})

    @cached_property
    def observables(self) -> dict[str, Array]:
        """{name: (T, *shape)} at the saved times."""
        return self._observe(self.t, on_host(self.y))

    @cached_property
    def observable_errors(self) -> dict[str, Array]:
        """{name: (T, *shape)}, how far states that are off by their tolerances take an observable: an estimate of its error.

        Every number of a state is moved by rtol of its size and atol, up or down at random, and back. {} of a stored run or a copy, and
        where steps have no tolerance.
        """
        if isinstance(self._observe, Seen) or self.attrs.get("step") is not None or "rtol" not in self.attrs:
            return {}
        y, draw_sign = on_host(self.y), np.random.default_rng(0)
        off = {
            name: draw_sign.choice([-1.0, 1.0], rows.shape[1:])
            * (self.attrs["rtol"] * np.abs(rows) + largest_atol(self.attrs["atol"], name))
            for name, rows in y.items()
        }
        with np.errstate(all="ignore"):  # a state may leave where an observable is a number
            moved = [self._observe(self.t, {name: rows + way * off[name] for name, rows in y.items()}) for way in (1, -1)]
            return {name: np.fmax(*(np.abs(seen[name] - rows) for seen in moved)) for name, rows in self.observables.items()}

    @cached_property
    def observable_floors(self) -> dict[str, float]:
        """{observable: the size below which its values are no larger than the estimate of their errors}, of those that come so near to 0.

        The tolerance says where that may be, and is cheap; the estimate, where it is. A stored run has those that it was stored with.
        """
        if FLOORS in self.attrs:
            return dict(self.attrs[FLOORS])
        floors = {}
        for name, rows in self.observables.items():
            sizes = np.abs(np.asarray(rows, float))
            least = np.min(sizes, where=sizes > 0, initial=np.inf)
            if least < floor_of(rows, self.attrs, state="") and name in self.observable_errors:
                floors[name] = float(np.max(sizes, where=sizes < self.observable_errors[name], initial=0.0))
        return floors

    @cached_property
    def not_numbers(self) -> dict[str, float]:
        """{observable: first saved time, or the last time reached, at which an entry is NaN}."""
        seen = {name: np.append(_with_nan(rows), _with_nan(self.final_observables[name][None])) for name, rows in self.observables.items()}
        times = np.append(self.t, self.t_end)
        return {name: float(times[np.argmax(bad)]) for name, bad in seen.items() if bad.any()}

    @cached_property
    def invariants(self) -> Violations:
        """{name: worst violation over every step, whatever is saved: 0 where the law holds, None where it is not applicable}.

        A constant is compared with the start, a law that only falls or rises with its extreme so far.
        """
        return self._violations()

    @property
    def sensitivities(self) -> dict[str, dict[str, Array]]:
        """{parameter, or state for its initial value: {state or observable v: dv/d(it) (T, *axes of v, *axes of the parameter)}}.

        The same arrays stand in y and observables under their names, dv_dp; an observable has the axes that its derivative depends on.
        """
        names: Mapping[str, Mapping[str, str]] = self.attrs.get("sensitivities", {})
        arrays = {**self.y, **self.observables} if names else {}
        return {p: {v: arrays[array] for v, array in pairs.items()} for p, pairs in names.items()}

    @property
    def final(self) -> dict[str, Array]:
        """{state: shape} at the last time reached."""
        return self.y_end

    @cached_property
    def final_observables(self) -> dict[str, Array]:
        """{observable: shape} at the last time reached."""
        if len(self.t) and self.t[-1] == self.t_end:
            return {name: rows[-1] for name, rows in self.observables.items()}
        seen = self._observe(np.array([self.t_end]), {name: on_host(value)[None] for name, value in self.y_end.items()})
        return {name: rows[0] for name, rows in seen.items()}

    @property
    def ok(self) -> bool:
        """Whether the run reached its end or a terminal event."""
        return self.status in ("ok", "event")

    def at(self, t: float) -> dict[str, Array]:
        """The states {state: shape} at any time of the run, as accurate as the saved ones.

        Parameters
        ----------
        t : float
            A time of the run.

        Raises
        ------
        SolveError
            Where t lies outside the run.
        """
        return {name: rows[0] for name, rows in self.dense(np.array([on_host(t)])).items()}

    def dense(self, times: Array) -> dict[str, Array]:
        """The states {state: (k, *shape)} at increasing times of the run, from the method's own interpolant.

        The run is done again with these times to save: the same steps, the same bits.

        Parameters
        ----------
        times : (k,)
            In the run, increasing.

        Raises
        ------
        SolveError
            Where one lies outside.
        """
        try:
            numbers = np.asarray(on_host(times))
            if numbers.dtype.kind == "c":
                raise TypeError("a complex number is no time")
            at = np.asarray(numbers, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise SolveError(f"times must be numbers, not {value_text(times)}") from None
        if at.ndim != 1 or not np.all(np.isfinite(at)) or np.any(np.diff(at) <= 0):
            raise SolveError("at() takes one time; dense() takes a vector of finite times that increase")
        start = float(self.attrs["span"][0])
        at = to_ends(at, start, self.t_end)
        if len(at) and not start <= at[0] <= at[-1] <= self.t_end:
            outside = at[0] if at[0] < start else at[-1]
            raise SolveError("t = {} lies outside the run, which goes from {} to {}".format(*apart(outside, start, self.t_end)))
        return self._again(at)

    def to_numpy(self) -> Solution:
        """The Solution with its states in the host's memory."""
        if not any(array_namespace(rows) is not np for rows in self.y.values()):
            return self
        again = self._again
        return replace(self, y=on_host(self.y), y_end=on_host(self.y_end), _again=lambda times: on_host(again(times)))

    def to_xarray(self) -> xarray.Dataset:
        """States and observables as variables over time and the axes of the model."""
        import xarray

        arrays = {**self.y, **self.observables}
        variables = {name: (("time", *self.dims[name]), rows) for name, rows in arrays.items()}
        words = {"model": self.model, "method": self.method, "status": self.status, "message": self.message}
        plain = {name: value for name, value in self.attrs.items() if isinstance(value, str | int | float | bool)}
        # netCDF has no empty list
        lists = {key: list(names) for key, names in (("states", self.y), ("observables", self.observables)) if names}
        return with_accessor(xarray.Dataset(variables, coords={"time": self.t}, attrs={**words, **plain, **lists}))

    @check_keywords
    def plot(
        self,
        var: str | Iterable[str] = (),
        *,
        index: int | Iterable[int] | None = None,
        log: str | None = None,
        all: bool = False,
        ax: Axes | None = None,
    ) -> Axes | Array:
        """Draws states and observables against time; returns the Axes of the picture, an array of them if it has several panels.

        `odesim.plot.save(axes, path)` writes the picture, `axes.figure` is its Figure.

        Parameters
        ----------
        var : str or list of str
            What is drawn; default: six panels, or those with views.
        index : int or list of int
            A component.
        log : str
            Letters of logarithmic axes (x, y, and c for colours), or "none": values <= 0 are left out and counted.
        all : bool
            Every state and observable.
        ax : Axes
            To draw one quantity on.

        Raises
        ------
        ParamError
            For what the run does not have.
        """
        return draw("solution", self, var=var, index=index, log=log, all=all, ax=ax)

    def __repr__(self) -> str:
        states = ", ".join(f"{name} {rows.shape}" for name, rows in self.y.items())
        return f"<Solution of {self.model}: {self.status} at t = {self.t_end:g}; {counted(len(self.t), 'saved time')}; {states}>"

    def _repr_html_(self) -> str:
        from html import escape

        rows = [(name, "state", rows.shape[1:], rows) for name, rows in self.y.items()]
        rows += [(name, "observable", rows.shape[1:], rows) for name, rows in self.observables.items()]
        cells = "".join(
            f"<tr><td><b>{escape(name)}</b></td><td>{kind}</td><td>{shape or ''}</td><td>{_span(values)}</td></tr>"
            for name, kind, shape, values in rows
        )
        head = f"<b>{escape(self.model)}</b>, to t = {self.t_end:g}, {self.method}, {counted(self.stats['steps'], 'step')}"
        titles = "".join(f"<th>{title}</th>" for title in ("name", "", "shape", "last values"))
        return f"<div>{head}<br>{escape(self.message)}<table><tr>{titles}</tr>{cells}</table></div>"


def _span(rows: Array) -> str:
    """The last values as text: one number, or the range."""
    last = on_host(rows[-1])
    return f"{float(last):.6g}" if last.ndim == 0 else f"{np.min(last):.6g} to {np.max(last):.6g}"


def _with_nan(rows: Array) -> Array:
    """For each of rows (T, ...) whether an entry is NaN, (T,)."""
    return np.asarray(np.isnan(rows).reshape(len(rows), -1).any(axis=1))
