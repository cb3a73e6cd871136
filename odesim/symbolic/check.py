"""Checks of a System: each failure is one sentence with the expression."""

import re
from collections.abc import Callable, Mapping
from keyword import iskeyword
from math import isfinite
from numbers import Integral, Real
from typing import Any

import sympy as sp
from sympy import Indexed, IndexedBase, KroneckerDelta, Symbol
from sympy.core.function import AppliedUndef

from odesim.errors import SpecError, counted, nearest, no_such, shorten, value_text
from odesim.symbolic.assumed import check_assumptions
from odesim.symbolic.check_laws import check_display, check_laws
from odesim.symbolic.check_map import check_map
from odesim.symbolic.check_types import DEEPEST, LONGEST, depth_of, element_text, error_part
from odesim.symbolic.definition import Definition
from odesim.symbolic.expr import base_name, time
from odesim.symbolic.functions import CHOICES, is_known
from odesim.symbolic.layered import Layer, layers_in
from odesim.symbolic.limits import FORMS, triangle
from odesim.symbolic.neighbours import CHOICES as BEYOND
from odesim.symbolic.neighbours import Neighbour, Padded, shift_of
from odesim.symbolic.parts import Key, Param, key_indices
from odesim.symbolic.reductions import REDUCTIONS
from odesim.symbolic.reserved import RESULTS, is_reserved
from odesim.symbolic.special import argument_mistake


def check_system(s: Definition) -> None:
    """Raises SpecError unless every part of s fits the others."""
    with error_part("name"):
        if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", str(s.name)) or len(s.name) > 100:
            raise SpecError(f"{str(s.name)[:40]!r} is not a name for a System: write words with dots between them, such as family.model")
    if not s.equations:
        raise SpecError(f"{s.name}: there is no equation")
    _check_names(s)
    _check_sizes(s)
    for number, key in enumerate(s.equations):
        with error_part("equations", number):
            _check_state(s, key)
    scope = NameScope(s)
    for key, rhs in s.equations.items():
        with error_part("equations", list(s.equations).index(key)):
            scope.check(rhs, set(key_indices(key)), f"the equation of {key}")
    _check_initial(s, scope)
    for number, (name, e) in enumerate(s.observables.items()):
        if isinstance(e, sp.Basic):
            with error_part("observables", number):
                scope.check(e, set(s.axes), f"observable {name!r}")
    check_display(s, scope)
    check_laws(s, scope)
    if s.growth is not None:
        with error_part("growth"):
            scope.check(s.growth, set(), "growth")
    check_assumptions(s)
    with error_part("span"):
        _check_span(s)
    check_map(s)


def _check_span(s: Definition) -> None:
    try:
        times = tuple(s.span)
    except TypeError:
        times = ()
    if len(times) != 2 or not all(isinstance(t, Real) or (isinstance(t, sp.Expr) and t.is_real and t.is_number) for t in times):
        raise SpecError(f"{s.name}: span must be two numbers (t0, t1), not {value_text(s.span)}")
    if not (isfinite(times[0]) and isfinite(times[1]) and times[0] < times[1]):
        raise SpecError(f"{s.name}: span {s.span} does not go forward between finite times")


def _check_sizes(s: Definition) -> None:
    for i, extent in s.axes.items():
        parts = sp.expand(sp.sympify(extent)).as_coefficients_dict()
        whole = all(f.is_Integer and (x == 1 or x.is_Symbol) for x, f in parts.items())
        if not whole or any(x in s.axes for x in parts) or (set(parts) == {1} and parts[sp.S.One] < 1):
            raise SpecError(f"{s.name}: axis {i} runs over {extent}, which is no whole number from 1 and no sum of sizes")
    for number, (size, n) in enumerate(s.sizes.items()):
        with error_part("sizes", number):
            if not isinstance(size, str | Symbol):
                raise SpecError(f"{s.name}: sizes has the key {value_text(size)}, which is no size: write one of sizes()")
            name = str(size)
            if name not in s.size_names:
                raise SpecError(f"{s.name}: {no_such('size', name, s.size_names, 'sizes')}")
            if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
                raise SpecError(f"{s.name}: size {name} must be a whole number of at least 1, not {value_text(n)}")


def _check_names(s: Definition) -> None:
    names = [*s.states, *(p.name for p in s.params)]
    indices = [i.name for i in s.axes]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"{s.name}: {name!r} names two things")
    for name in (*names, *s.size_names, *indices):
        if len(name) > LONGEST:
            raise SpecError(f"{s.name}: the name {shorten(name, 60)!r} has more than {LONGEST} characters")
        if not name.isidentifier() or name.startswith("_") or iskeyword(name):
            raise SpecError(f"{s.name}: {name!r} is not a plain name; write alpha, x_1 or lambda_")
        if name == time.name:
            raise SpecError(f"{s.name}: {name!r} is the time, and also a state or parameter")
    summed = {lim[0].name for e in s.equations.values() for total in e.atoms(*REDUCTIONS) for lim in total.limits}
    for kind, parts in (("event", s.events), ("invariant", s.invariants), ("constraint", s.constraints)):
        names_of_kind = [part.name for part in parts]
        for name in names_of_kind:
            if names_of_kind.count(name) > 1:
                raise SpecError(f"{s.name}: {kind} {name!r} stands there twice")
    for name in (*s.states, *s.observables, *indices):
        if name in RESULTS or not name.isidentifier():
            raise SpecError(f"{s.name}: {name!r} cannot be the name of a state, observable or index")
    rates = {f"d_{state}" for state in s.states}
    for name in (*names, *s.size_names, *indices, *sorted(summed)):
        if name == time.name:
            raise SpecError(f"{s.name}: {name!r} is the time, and also an index, size, state or parameter")
        if name in rates or is_reserved(name):
            other = f"{name.rstrip('_')}_1"
            raise SpecError(f"{s.name}: {name!r} is a name that generated code has for itself; choose another, such as {other}")
    for other in (*s.size_names, *indices):
        if other in names:
            raise SpecError(f"{s.name}: {other!r} is a size or an index and also a state or parameter")
    for kind, others in (("a state", s.states), ("an index", indices)):
        for name in sorted(set(s.observables) & set(others)):
            raise SpecError(f"{s.name}: {name!r} is {kind} and also an observable")


def _check_state(s: Definition, key: Key) -> None:
    if isinstance(key, Symbol):
        return
    if not isinstance(key, Indexed):
        raise SpecError(f"{s.name}: {key} cannot be a state: write an element such as v[i], or a symbol")
    for i in key.indices:
        if i not in s.axes:
            raise SpecError(f"{s.name}: index {i} of {key} has no axis{nearest(str(i), map(str, s.axes))}")
    if len(set(key.indices)) < len(key.indices):
        raise SpecError(f"{s.name}: {key} uses an index twice")
    shape = key.base.shape
    if shape is None:
        raise SpecError(f"{s.name}: {key.base} needs a shape: IndexedBase({str(key.base.label)!r}, shape=(...))")
    for i, extent in zip(key.indices, shape, strict=True):
        if sp.expand(s.axes[i] - extent) != 0:
            raise SpecError(f"{s.name}: {key}: index {i} runs over {s.axes[i]}, but that axis of {key.base} has extent {extent}")


def _check_initial(s: Definition, scope: "NameScope") -> None:
    keys = {base_name(k): k for k in s.initial}
    for key in s.equations:
        if base_name(key) not in keys:
            raise SpecError(f"{s.name}: no initial value for {key}")
    seen: dict[str, Key] = {}
    for number, (key, e) in enumerate(s.initial.items()):
        name = base_name(key)
        with error_part("initial", number):
            if name not in s.states:
                raise SpecError(f"{s.name}: {no_such('state', name, s.states, 'initial')}")
            if name in seen:
                raise SpecError(f"{s.name}: initial has two values for {name}, {seen[name]} and {key}: write one with Piecewise")
            seen[name] = key
            if isinstance(key, Indexed):
                _check_state(s, key)
            scope.check(e, set(key_indices(key)), f"the initial value of {key}", states=False)


class NameScope:
    """The names that an expression of a System may use, with their shapes."""

    def __init__(self, s: Definition):
        self.system = s
        self.params: dict[str, Param] = {p.name: p for p in s.params}
        self.shapes: dict[str, tuple[Any, ...]] = {**s.shapes, **{p.name: p.shape for p in s.params}}
        self.size_names = set(s.size_names)
        self._checked = set[tuple[Layer, bool]]()
        self.whole_names = {*s.size_names, *(p.name for p in s.params if p.indexes is not None)}

    def check(self, e: sp.Expr, free: set[Symbol], where: str, *, states: bool = True) -> None:
        """Raises SpecError unless e uses known names with the right shapes, and no free index beyond `free`."""

        def fail(text: str) -> None:
            raise SpecError(f"{self.system.name}: in {where}: {text}")

        if e is sp.nan:
            fail("nan is not a number")
        if (depth := depth_of(sp.sympify(e))) > DEEPEST:
            fail(f"an expression is nested {depth} deep, and compilers take {DEEPEST}: make an inner part a state of its own")
        for layer in layers_in(e):
            self._check_layer(layer, where, states)
        self._walk(sp.sympify(e), dict(self.system.axes), free, fail, states)

    def _check_layer(self, layer: Layer, where: str, states: bool) -> None:
        """Raises SpecError where the definition of a layer does."""
        if layer.name in self.shapes or layer.name in self.size_names:
            raise SpecError(f"{self.system.name}: in {where}: {layer.name!r} is a layer and also a state, parameter or size")
        if (layer, states) not in self._checked:
            self._checked.add((layer, states))
            place = f"layer {layer.name}, which is in {where}"

            def fail(text: str) -> None:
                raise SpecError(f"{self.system.name}: in {place}: {text}")

            extents = {**self.system.axes, **dict(zip(layer.along, layer.shape, strict=True))}
            self._walk(layer.definition, extents, set(layer.along), fail, states)

    def _walk(self, e: Any, extents: Mapping[Symbol, Any], free: set[Symbol], fail: Callable[[str], None], states: bool) -> None:
        if isinstance(e, sp.Expr) and not isinstance(e, REDUCTIONS) and not e.has(Symbol) and e.is_real is False:
            fail(f"{e} is not a finite real number")
        if isinstance(e, KroneckerDelta):
            self._check_delta(e, extents, fail)
        if isinstance(e, sp.ITE):
            sums = e.args[1].atoms(*REDUCTIONS) ^ e.args[2].atoms(*REDUCTIONS)
            for k in sorted(str(lim[0]) for total in sums for lim in total.limits if lim[0] in e.args[0].free_symbols):
                fail(f"a condition on a sum over {k} of a Piecewise, which sympy has taken out of it; write that one by Max or Heaviside")
        if isinstance(e, REDUCTIONS):
            inner, now = dict(extents), set(free)
            for limit in reversed(e.limits):
                inner[limit[0]] = self._extent_of(e, limit, inner, now, fail)
                now.add(limit[0])
            self._walk(e.function, inner, now, fail, states)
        elif isinstance(e, Indexed):
            self._check_element(e, extents, free, fail, states)
        elif isinstance(e, Symbol):
            self._check_symbol(e, free, extents, fail, states)
        elif isinstance(e, IndexedBase):
            self._fail_array(e, fail)
        elif isinstance(e, AppliedUndef):
            fail(f"{e} is not a function or array element that odesim knows")
        elif isinstance(e, sp.Expr) and e.args and not is_known(type(e).__name__):
            fail(no_such("function", type(e).__name__, CHOICES) + f" (in {shorten(str(e), 60)})")
        else:
            if mistake := argument_mistake(e, {*map(str, (*extents, *free)), *self.whole_names}):
                fail(mistake)
            for a in e.args:
                self._walk(a, extents, free, fail, states)

    def _extent_of(self, e: Any, limit: Any, extents: Mapping[Symbol, Any], free: set[Symbol], fail: Callable[[str], None]) -> Any:
        """The extent of the axis that a summed index runs over, or a part of."""
        k, low, high = limit
        t = triangle(low, high)
        if t is None:
            unknown = (low.free_symbols | high.free_symbols) - {x for x in high.free_symbols if x.name in self.size_names}
            if low != 0 or unknown:
                fail(f"the bound of {k} must run {FORMS}, not from {low} to {high}")
            return high + 1
        for i in (t.index,) if isinstance(t.index, Symbol) else t.index.args[0].atoms(Symbol):
            if i.name in self.size_names:
                fail(f"the symbol of size {i} assumes what that of an index does, in the bound of {k}: make it by sizes()")
            if i not in extents or i not in free:
                fail(f"index {i}, a bound of {k}, is neither free nor summed{nearest(str(i), sorted(map(str, free)))}")
        extent = t.extent(extents)
        ends = (low == 0 and t.shift <= 0) if t.op == "prefix" else (sp.expand(high + 1 - extent) == 0 and t.shift >= 0)
        if not ends:
            fail(f"the bound of {k} must run {FORMS}, not from {low} to {high}")
        if not isinstance(e, sp.Sum) and (t.empty or len(e.limits) > 1):
            reason = (
                "has no entries at one end of the axis" if t.empty else "goes over other indices too: write one maximum inside the other"
            )
            fail(f"a maximum over {t.text(k)} {reason}")
        return extent

    def _fail_array(self, e: Any, fail: Callable[[str], None]) -> None:
        """Fails with a hint: e is an array where an element is expected."""
        name = base_name(e)
        if name not in self.shapes:
            fail(self._undeclared("array", name, [n for n, s in self.shapes.items() if s]))
        fail(f"{name} is an array; did you mean {element_text(name, self.shapes[name], self.system)}?")

    def _undeclared(self, what: str, name: str, choices: list[str]) -> str:
        if name == time.name:
            return f"{name!r} is the time: take it from odesim.symbolic, as in `from odesim.symbolic import time`"
        other = f", or write one of {', '.join(sorted(choices))}" if choices else ""
        return f"no {what} {shorten(name, 60)!r}: declare it in params{other}{nearest(name, choices)}"

    def _check_delta(self, e: KroneckerDelta, extents: Mapping[Symbol, Any], fail: Callable[[str], None]) -> None:
        """Fails where a delta of an index and an array element could become a store outside the array."""
        for i, via in (e.args, e.args[::-1]):
            if i in extents and isinstance(via, Indexed) and not self._names_rows(via, extents[i]):
                fail(f"{e}: {via} must be a parameter declared with indexes={extents[i]}")

    def _names_rows(self, e: Indexed, extent: Any) -> bool:
        p = self.params.get(base_name(e))
        return p is not None and p.indexes is not None and sp.expand(p.indexes - extent) == 0

    def _check_element(
        self, e: Indexed, extents: Mapping[Symbol, Any], free: set[Symbol], fail: Callable[[str], None], states: bool
    ) -> None:
        name = base_name(e)
        if name not in self.shapes and not isinstance(e.base, Layer):
            fail(self._undeclared("array", name, [n for n, s in self.shapes.items() if s]) + f" (in {e})")
        if not states and name in self.system.states:
            fail(f"{e} is a state; only parameters and sizes may stand here")
        shape = tuple(e.base.shape) if isinstance(e.base, Layer) else self.shapes[name]
        if len(shape) != len(e.indices):
            fail(f"{e} has {counted(len(e.indices), 'index', 'indices')}, {name} has {counted(len(shape), 'axis', 'axes')}")
        for i, extent in zip(e.indices, shape, strict=True):
            if isinstance(i, Symbol):
                if i not in extents or i not in free:
                    fail(f"index {i} of {e} is neither free nor summed{nearest(str(i), sorted(map(str, free)))}")
                if sp.expand(extents[i] - extent) != 0:
                    fail(f"{e}: index {i} runs over {extents[i]}, but that axis of {name} has extent {extent}")
            elif isinstance(i, Neighbour):
                self._check_neighbour(e, i, extent, extents, free, fail)
            elif shift_of(i):
                fail(self._shift_hint(e, i))
            elif isinstance(i, Indexed):
                if not self._names_rows(i, extent):
                    fail(f"{e}: {i} must be a parameter declared with indexes={extent}")
                if any(isinstance(j, Padded) for j in i.indices):
                    fail(f"{e}: {i} names rows, and is no row beyond the ends: its boundary is 'periodic' or 'edge'")
                self._check_element(i, extents, free, fail, states)
            elif not (i.is_Integer and i >= 0):
                fail(
                    f"{e}: an index is a plain index, one shifted by a number such as m + 1, a whole number or an index parameter, not {i}"
                )

    def _check_neighbour(
        self, e: Indexed, i: Neighbour, extent: Any, extents: Mapping[Symbol, Any], free: set[Symbol], fail: Callable[[str], None]
    ) -> None:
        inner = i.args[0]
        if isinstance(inner, Neighbour):
            self._check_neighbour(e, inner, extent, extents, free, fail)
        elif isinstance(inner, Symbol) and (inner not in extents or inner not in free):
            fail(f"index {inner} of {e} is neither free nor summed{nearest(str(inner), sorted(map(str, free)))}")
        elif isinstance(inner, Symbol) and sp.expand(extents[inner] - extent) != 0:
            fail(f"{e}: index {inner} runs over {extents[inner]}, but that axis of {base_name(e)} has extent {extent}")

    def _shift_hint(self, e: Indexed, i: Any) -> str:
        k, _ = shift_of(i) or (i, 0)
        if any(k.name == known.name for known in self.system.boundary):
            return f"{e} is a neighbour of {e.xreplace({i: k})}: neighbours stand on right-hand sides only"
        return f"{e}: what stands beyond the ends of {k}? Say it in the System: boundary={{{k}: ...}} with {BEYOND}"

    def _check_symbol(self, e: Symbol, free: set[Symbol], extents: Mapping[Symbol, Any], fail: Callable[[str], None], states: bool) -> None:
        if e == time:
            return
        if e in extents:
            if e not in free:
                fail(f"index {e} is neither free nor summed")
            return
        name = e.name
        if name in self.size_names or (name in self.params and not self.shapes[name]):
            return
        if name in self.system.states and not self.shapes[name]:
            if not states:
                fail(f"{e} is a state; only parameters and sizes may stand here")
            return
        if name in self.shapes:
            self._fail_array(e, fail)
        scalars = [n for n, s in self.shapes.items() if not s]
        fail(self._undeclared("symbol", name, [*scalars, *self.size_names]))
