"""Derivatives of a System along directions, each a System again: jvp and forward sensitivities."""

from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, IndexedBase, KroneckerDelta, Sum, Symbol

from odesim.errors import SpecError, no_such
from odesim.symbolic.expr import MaxOver, base_name, index
from odesim.symbolic.lower import all_names
from odesim.symbolic.system import Key, Param, System, key_indices

Direction = Callable[[tuple[Any, ...]], Any]
STEPS = (sp.sign, sp.Heaviside, sp.floor, sp.ceiling)
"""Functions that are constant but for their jumps: their derivative is 0, as that of a condition is."""


def jvp(system: System) -> System:
    """The System with a direction w_v beside each state v: dw/dt = J(t, v) w, the derivative of the right side along w.

    Its new right side at any (v, w) is the exact product J w, through nested sums, shifts and gathers.
    """
    twins = {name: _twin(key, beside(system, "w", name)) for name, key in _keys(system).items()}
    ways: dict[str, Direction] = {name: _element(twin) for name, twin in twins.items()}
    more = {twin: directional(rhs, ways) for twin, rhs in zip(twins.values(), system.equations.values(), strict=True)}
    return _extended(system, "jvp", more, {})


def sensitivities(system: System, name: str) -> System:
    """The System with s_v = dv/dp beside each state v, p the parameter of that name.

    An array parameter adds its own axes behind those of the state. Initial sensitivities are those of the initial values.
    Raises SpecError for an unknown or whole-number parameter.
    """
    if name not in {p.name for p in system.params}:
        raise SpecError(no_such("parameter", name, [p.name for p in system.params], system.name))
    p = system.param(name)
    if p.integer:
        raise SpecError(f"{system.name}: {name} takes whole numbers, so there is no derivative with respect to it")
    axes, extra = dict(system.axes), _axes_of(p, system)
    axes.update(extra)
    along = tuple(extra)
    ways: dict[str, Direction] = {name: _unit(along)}
    twins = {}
    for state, key in _keys(system).items():
        twins[state] = _twin(key, beside(system, "s", state), along, tuple(extra.values()))
        ways[state] = _element(twins[state])
    more = {twins[s]: directional(system.equations[key], ways) for s, key in _keys(system).items()}
    start = {base_name(k): e for k, e in system.initial.items()}
    first = {twins[s]: directional(start[s], {name: _unit(along)}) for s in twins}
    return _extended(system, f"d_{name}", more, first, axes)


def beside(system: System, letter: str, state: str) -> str:
    """The name u_v of what stands beside a state v. Raises SpecError where the System has that name already."""
    name = f"{letter}_{state}"
    for own in sorted({name, f"d_{name}"} & all_names(system)):
        raise SpecError(f"{system.name}: {own!r} is needed for a derivative of {state}; call it something else, such as {own}_1")
    return name


def directional(e: Expr, ways: Mapping[str, Direction]) -> Expr:
    """d/d eps of e with every x[i] replaced by x[i] + eps * ways["x"](i), at eps = 0."""
    return _Directional(ways)(sp.sympify(e))


class _Directional:
    """The chain rule, once for each distinct part: nested sums repeat their parts many times."""

    def __init__(self, ways: Mapping[str, Direction]):
        self.ways = ways
        self._known: dict[Expr, Expr] = {}

    def __call__(self, e: Any) -> Any:
        if e not in self._known:
            self._known[e] = self._derivative(e)
        return self._known[e]

    def _derivative(self, e: Any) -> Any:
        if isinstance(e, Indexed | Symbol):
            way = self.ways.get(base_name(e))
            return sp.S.Zero if way is None else way(tuple(e.indices) if isinstance(e, Indexed) else ())
        if not e.args or isinstance(e, (MaxOver, KroneckerDelta, *STEPS)):
            return sp.S.Zero
        if isinstance(e, Sum):
            body = self(e.function)
            return sp.S.Zero if body == 0 else e.func(body, *e.limits)
        if isinstance(e, sp.Piecewise):
            return sp.Piecewise(*((self(value), condition) for value, condition in e.args))
        slopes = [(n, self(a)) for n, a in enumerate(e.args)]
        return sp.Add(*(_partial(e, n) * slope for n, slope in slopes if slope != 0))


def _partial(e: Expr, n: int) -> Expr:
    """de/d(its n-th argument)."""
    if e.is_Add:
        return sp.S.One
    if e.is_Mul:
        return sp.Mul(*(a for k, a in enumerate(e.args) if k != n))
    hole = sp.Dummy("hole", real=True)
    return e.func(*(hole if k == n else a for k, a in enumerate(e.args))).diff(hole).xreplace({hole: e.args[n]})


def slope_of(e: Expr, x: Symbol) -> Expr:
    """de/dx of a sum-free expression."""
    steps = {s: sp.Dummy("step", real=True) for s in e.atoms(*STEPS)}
    return e.xreplace(steps).diff(x).xreplace({dummy: s for s, dummy in steps.items()})


def _keys(system: System) -> dict[str, Key]:
    return {base_name(k): k for k in system.equations}


def _twin(key: Key, name: str, along: tuple[Symbol, ...] = (), extents: tuple[Any, ...] = ()) -> Key:
    """An element of a new state beside key, with more axes behind."""
    if not key_indices(key) and not along:
        return Symbol(name, real=True)
    shape = (*(key.base.shape if isinstance(key, Indexed) else ()), *extents)
    return IndexedBase(name, shape=shape)[(*key_indices(key), *along)]


def _element(twin: Key) -> Direction:
    """The direction in which the element x[i] moves: the same element of its twin."""
    if isinstance(twin, Symbol):
        return lambda _: twin
    return lambda i: twin.base[(*i, *twin.indices[len(i) :])]


def _unit(along: tuple[Symbol, ...]) -> Direction:
    """The direction of the entry `along` of a parameter."""
    return lambda i: sp.Mul(*(KroneckerDelta(a, b) for a, b in zip(i, along, strict=True)))


def _axes_of(p: Param, system: System) -> dict[Symbol, Any]:
    """New indices for the axes of a parameter."""
    taken = all_names(system) | {s.name for e in (*system.axes, *system.equations.values()) for s in e.atoms(Symbol)}
    names = [f"{p.name}_{n}" for n in range(len(p.shape))]
    free = [name if name not in taken else f"{name}_" for name in names]
    return {index(name)[0]: extent for name, extent in zip(free, p.shape, strict=True)}


def _extended(
    system: System, what: str, more: Mapping[Key, Expr], first: Mapping[Key, Any], axes: Mapping[Symbol, Any] | None = None
) -> System:
    zero = {key: first.get(key, sp.S.Zero) for key in more}
    return System(
        name=f"{system.name}.{what}",
        source=system.source,
        axes=axes or system.axes,
        equations={**system.equations, **more},
        params=system.params,
        initial={**system.initial, **zero},
        sizes=system.sizes,
        span=system.span,
        time=system.time,
        constraints=system.constraints,
    )
