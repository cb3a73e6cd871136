"""The names that an expression of a System may use: each that is wrong is one sentence with the expression."""

from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp
from sympy import Indexed, IndexedBase, KroneckerDelta, Symbol
from sympy.core.function import AppliedUndef

from odesim.base.errors import SpecError, counted, nearest, no_such, shorten
from odesim.symbolic.functions import CHOICES, MOST_OF_SLOPES, MOST_ORDER, argument_mistake, is_known
from odesim.symbolic.indices import BOUNDARY_CHOICES as BEYOND
from odesim.symbolic.indices import Neighbour, Padded, base_name, index_of, shift_of, time
from odesim.symbolic.layered import Layer, layers_in
from odesim.symbolic.parts import Definition, Param, element_text
from odesim.symbolic.reductions import LIMIT_FORMS as FORMS
from odesim.symbolic.reductions import REDUCTIONS, triangle

# CPython gives up on nested brackets at 200 and some C++ compilers at 256.
DEEPEST = 150  # levels of an expression: the text of more is nested too deeply for Python and C++


def depth_of(e: Any) -> int:
    """The number of nested levels of an expression, each shared part seen once. Without recursion, which has a limit itself."""
    depths: dict[int, int] = {}
    todo = [e]
    while todo:
        node = todo[-1]
        missing = [arg for arg in node.args if id(arg) not in depths]
        if missing:
            todo += missing
        else:
            depths[id(node)] = 1 + max((depths[id(arg)] for arg in node.args), default=0)
            todo.pop()
    return depths[id(e)]


class NameScope:
    """The names that an expression of a System may use, with their shapes."""

    def __init__(self, s: Definition):
        self.system = s
        self.params: dict[str, Param] = {p.name: p for p in s.params}
        self.shapes: dict[str, tuple[Any, ...]] = {**s.shapes, **{p.name: p.shape for p in s.params}}
        self.size_names = set(s.size_names)
        self._checked = set[tuple[Layer, bool]]()
        self.whole_names = {*s.size_names, *(p.name for p in s.params if p.indexes is not None)}
        self.integer_names = {*s.size_names, *(p.name for p in s.params if p.integer)}

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

            extents = {**self.system.axes, **layer.axes}
            self._walk(layer.definition, extents, set(layer.along), fail, states)

    def _walk(self, e: Any, extents: Mapping[Symbol, Any], free: set[Symbol], fail: Callable[[str], None], states: bool) -> None:
        if isinstance(e, sp.Expr) and not isinstance(e, REDUCTIONS) and not e.has(Symbol) and e.is_real is False:
            fail(f"{e} is not a finite real number")
        if isinstance(e, KroneckerDelta):
            self._check_delta(e, extents, fail)
        if isinstance(e, sp.ITE):
            # sympy folds a Piecewise out of a sum inside a condition, past the index that it depends on
            sums = e.args[1].atoms(*REDUCTIONS) ^ e.args[2].atoms(*REDUCTIONS)
            summed = {lim[0].name for total in sums for lim in total.limits}
            for k in sorted({s.name for s in e.args[0].free_symbols if isinstance(s, Symbol) and s not in free and s.name in summed}):
                fail(
                    f"a condition on a sum over {k} of a Piecewise, which sympy has taken out of the sum: name the sum first, as in "
                    f"z = named('z', over(Sum, ..., ({k}, ...))), and write the condition on z"
                )
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
            most = MOST_OF_SLOPES if self.system.sensitivities else MOST_ORDER
            names = self.integer_names if isinstance(e, sp.binomial) else self.whole_names
            if mistake := argument_mistake(e, lambda: {*map(str, (*extents, *free)), *names}, most):
                fail(mistake)
            for a in e.args:
                self._walk(a, extents, free, fail, states)

    def _extent_of(self, e: Any, limit: Any, extents: Mapping[Symbol, Any], free: set[Symbol], fail: Callable[[str], None]) -> Any:
        """The extent of the axis that a summed index runs over, or a part of."""
        k, low, high = limit
        t = triangle(low, high)
        if t is None:
            unknown = (low.free_symbols | high.free_symbols) - {x for x in high.free_symbols if x.name in self.size_names}
            if len(unknown) == 1 and high + 1 == (other := next(iter(unknown))):
                fail(f"{k} runs to {high}, and {no_such('size', other.name, self.size_names, self.system.name)}")
            if low != 0 or unknown:
                fail(f"the bound of {k} must run {FORMS}, not from {low} to {high}")
            return high + 1
        for i in index_of(t.index).atoms(Symbol):
            if i.name in self.size_names:
                fail(f"the symbol of size {i} assumes what that of an index does, in the bound of {k}: make it by sizes()")
            if i not in extents or i not in free:
                fail(f"index {i}, a bound of {k}, is neither free nor summed{_free(free)}")
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
                    fail(f"index {i} of {e} is neither free nor summed{_free(free)}")
                if sp.expand(extents[i] - extent) != 0:
                    fail(f"{e}: index {i} runs over {extents[i]}, but that axis of {name} has extent {extent}")
            elif isinstance(i, Neighbour):
                self._check_neighbour(e, i, extent, extents, free, fail)
            elif (shifted := shift_of(i)) and shifted[0].name not in self.size_names:
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
            fail(f"index {inner} of {e} is neither free nor summed{_free(free)}")
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
                fail(f"index {e} is neither free nor summed{_free(free)}")
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


def _free(free: set[Symbol]) -> str:
    """`; free here: m, n`, the indices that an expression may have without a sum."""
    return f"; free here: {', '.join(sorted(map(str, free)))}" if free else "; no index is free here"
