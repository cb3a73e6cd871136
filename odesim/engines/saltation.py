"""Applies the resets of one event to states, and continues sensitivities there (saltation).

A reset y+ = r(y-, t, p) at the time tau of g(t, y, p) = 0 carries S = dy/dp to S+ = r_y (S- + f- tau') + r_t tau' + r_p - f+ tau',
with tau' = dtau/dp = -(g_y S- + g_p) / (g_y f- + g_t). (Hiskens & Pai 2000, Trajectory sensitivity analysis of hybrid systems.)
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Indexed, Symbol

from odesim.base.arrays import Array
from odesim.base.errors import SolveError
from odesim.engines.switching import Switching
from odesim.inputs.schema import make_extent
from odesim.solve.switched import together
from odesim.stepper.codes import Status
from odesim.stepper.problem import Which
from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import Event, key_indices
from odesim.transforms.events import MOVED, SLACK, Guard, event_rate, free_of, jumps, reads_any, slope

ROUNDED, ROUNDINGS = 1e-12, 64
"""Rounding may have moved each state and the time by this part of them, and by so many roundings of its own."""


class StateSetter:
    """The functions and resets of the events of one run. watched: its events; pairs: {parameter: {state: its derivative}}."""

    def __init__(self, switching: Switching) -> None:
        self._switching, self._conditions, self._layout = switching, switching.conditions, switching.layout
        self.watched, self._system = self._conditions.held.watched, self._conditions.held.original
        self.shapes = [tuple(make_extent(n).value(self._conditions.sizes) for n in w.extents) for w in self.watched]
        self.pairs = switching.pairs
        self._seen: tuple[float, Array, list[tuple[float, Array]]] = (np.nan, np.empty(0), [])
        self._check()

    def _check(self) -> None:
        """Raises SolveError where there are no sensitivities."""
        for w in self.watched:
            if self.pairs and w.event.resets and jumps(w.event.expr) and reads_any(w.event.expr, (*self._system.states, *self.pairs)):
                raise SolveError(
                    f"{self._system.name}: there are no sensitivities through the resets of event {w.event.name!r}, whose function "
                    f"{w.event.expr} may jump: write one that passes 0 smoothly, such as sin(pi*t/T)"
                )

    def event(self, which: Which) -> Event:
        """The event that a component belongs to."""
        return self.watched[which[0]].event

    def name(self, which: Which) -> str:
        """`bounce[2]`: the name of an event with the component."""
        e, i = which
        shape = self.shapes[e]
        return self.event(which).name + (f"[{', '.join(map(str, np.unravel_index(i, shape)))}]" if shape else "")

    def rounded(self, dtype: Any) -> float:
        """The part of itself by which rounding may have moved a state."""
        return max(ROUNDED, ROUNDINGS * float(np.finfo(dtype).eps))

    def value(self, e: int, t: float, y: Array) -> Array:
        """The function of an event, (components,)."""
        w = self.watched[e]
        return self._value(w.event.expr, w.axes, t, y).ravel()

    def function(self, e: int, t: float, y: Array) -> tuple[Array, Array]:
        """The function of an event and how far rounding of the time and the state may move it, each (components,)."""
        g = self.value(e, t, y)
        return g, np.nan_to_num(sum(np.abs(self.value(e, *at) - g) for at in self._rounded(t, y)))

    def _rounded(self, t: float, y: Array) -> Sequence[tuple[float, Array]]:
        """The time and the state with other roundings, in two ways between which none is lost."""
        if not (self._seen[0] == t and self._seen[1] is y):
            tiny, turns = self.rounded(y.dtype), 1.0 + 2.4 * np.arange(len(y) + 1)
            factors = [1 + tiny * turn(turns) for turn in (np.cos, np.sin)]
            self._seen = t, y, [(t * float(by[-1]), (y * by[:-1]).astype(y.dtype)) for by in factors]
        return self._seen[2]

    def rates(self, t: float, y: Array) -> dict[str, Array]:
        """What rate() reads: the derivatives of all states."""
        rates = self._switching.rate(t, y)
        return {f"rate_{name}": rates[name] for name in self._switching.states}

    def rate(self, e: int, t: float, y: Array, rates: Mapping[str, Array]) -> Array:
        """d/dt of an event's function along the run, (components,)."""
        w, known = self.watched[e], self._conditions.expressions
        if ("event", w.event.name) not in known:
            known["event", w.event.name] = event_rate(self._system, w, {name: f"rate_{name}" for name in self._switching.states})
        return np.nan_to_num(self._value(known["event", w.event.name], w.axes, t, y, **rates).ravel())

    def set_states(self, which: Which, t: float, y: Array, slopes: Mapping[str, Array]) -> tuple[Array, tuple[Status, str] | None]:
        """The state (n,) after the resets of one event; and why the run cannot go on from there, or None."""
        e, _ = which
        w = self.watched[e]
        made = y.copy()
        parts, taken = self._layout.split(made), dict[str, Any]()
        for key, expr in w.event.resets.items():
            name, free = base_name(key), free_of(key, w.indices, self._system.axes)
            axes = {j: self._system.axes[j] for j in free}
            place = self._place(key, free, which)
            flat = np.ravel_multi_index(place, parts[name].shape).ravel() if place else np.zeros(1, np.int64)
            if np.intersect1d(flat, taken.setdefault(name, np.empty(0, np.int64))).size or len(np.unique(flat)) < flat.size:
                raise SolveError(f"{self._system.name}: the event {self.name(which)} sets an element of {name} twice")
            taken[name] = np.append(taken[name], flat)
            new = self._component(self._value(expr, {**w.axes, **axes}, t, y), which)
            parts[name][place] = new
            if why := self._obstacle(which, key, new, t):
                return y, why
            for p, moved in slopes.items():
                along = self._slope((e, key, p), expr, p, moved=True)
                there = self._value(along[0], {**w.axes, **axes, **along[1]}, t, y, **{MOVED: moved})
                parts[self.pairs[p][name]][place] = self._component(there, which)
        return made, None

    def _obstacle(self, which: Which, key: Any, new: Array, t: float) -> tuple[Status, str] | None:
        """Why a run cannot go on with these new values of a state, or None."""
        guard = next((w.event for w in self.watched if isinstance(w.event, Guard) and w.event.state == base_name(key)), None)
        lost = ~np.isfinite(new)
        out = guard.sign * new < -self._conditions.shared.get(SLACK, 0.0) if guard else np.zeros_like(lost)
        if not (lost.any() or out.any()):
            return None
        what = f"the event {self.name(which)} sets {key} to {float(np.extract(lost if lost.any() else out, new)[0]):.6g}"
        if lost.any():
            return Status.NON_FINITE, f"{what} at t = {t:.9g}; change its reset, or end the span before it"
        return Status.LEFT_DOMAIN, f"{what}, which leaves {guard.words if guard else ''} that its symbol assumes, at t = {t:.9g}"

    def _place(self, key: Any, free: tuple[Symbol, ...], which: Which) -> tuple[Any, ...]:
        """The places in a state's array that a reset sets: one index array for each axis, of the shape of the free indices."""
        e, i = which
        c, w = self._conditions, self.watched[e]
        at: dict[Any, Any] = dict(zip(w.indices, map(int, np.unravel_index(i, self.shapes[e])), strict=True)) if w.indices else {}
        counts = [make_extent(self._system.axes[j]).value(c.sizes) for j in free]
        at |= dict(zip(free, np.ix_(*map(np.arange, counts)) if counts else (), strict=True))

        def number(index: Any) -> Any:
            if isinstance(index, Indexed):
                return np.asarray(c.shared[base_name(index)])[tuple(map(number, index.indices))]
            return at[index] if index in at else int(index)

        return tuple(np.broadcast_arrays(*(number(j) for j in key_indices(key))))

    def _component(self, found: Array, which: Which) -> Array:
        """The values of one component of an event, of values for all of them."""
        e, i = which
        rank = len(self.shapes[e])
        rows: Array = found.reshape(-1, *found.shape[rank:]) if rank else found[None]
        return rows[i if rank else 0]

    def time_slopes(self, which: Which, t: float, y: Array) -> dict[str, Array] | None:
        """{parameter: derivative of the event's time}, 0 at the start of a run; None where it has none."""
        (e, i), w = which, self.watched[which[0]]
        if not self.pairs:
            return {}
        # a function that has come to 0 to stay, as Max(x, 0), has no slope there: that of a moment before counts
        back = together(t, self._conditions.t0, self._switching.dtype)
        before = t - back, (y - back * self._switching.slope(t, y)).astype(y.dtype)
        slopes: dict[str, Array] = {}
        for at in ((t, y), before):
            for p in self.pairs:
                expr, along = self._slope((e, p), w.event.expr, p, moved=False)
                slopes[p] = -self._component(self._value(expr, {**w.axes, **along}, *at), which)
            if t == self._conditions.t0:
                return {p: np.zeros_like(s) for p, s in slopes.items()}
            rate = self.rate(e, *at, self.rates(*at))[i]
            if rate != 0:
                return {p: s / rate for p, s in slopes.items()}
            if any(np.any(s) for s in slopes.values()):
                return None
        return slopes

    def moved(self, y: Array, t: float, slopes: Mapping[str, Array], sign: float) -> Array:
        """The state with sensitivities along the moving time of an event (sign 1), or back at a fixed time (-1)."""
        if not slopes:
            return y
        rates, y = self._switching.rate(t, y), y.copy()
        parts = self._layout.split(y)
        for p, moved in slopes.items():
            for v, twin in self.pairs[p].items():
                parts[twin] += (sign * np.multiply.outer(rates[v], moved)).astype(y.dtype)
        return y

    def _slope(self, name: Any, expr: Any, p: str, *, moved: bool) -> tuple[Any, dict[Symbol, Any]]:
        known = self._conditions.expressions
        if ("reset", name) not in known:
            known["reset", name] = slope(self._system, expr, p, moved=moved)
        found: tuple[Any, dict[Symbol, Any]] = known["reset", name]
        return found

    def _value(self, expr: Any, axes: Mapping[Symbol, Any], t: float, y: Array, **more: Any) -> Array:
        return self._switching.value(expr, axes, t, y, **more)
