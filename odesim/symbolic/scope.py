"""The names that an expression of a System may use: each that is wrong is one sentence with the expression."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, NoReturn

import sympy as sp
from sympy import Indexed, IndexedBase, KroneckerDelta, Symbol
from sympy.core.function import AppliedUndef

from odesim.base.errors import SpecError, counted, nearest, no_such, shorten, value_text
from odesim.symbolic.definition import Definition, element_text, error_part
from odesim.symbolic.functions import CHOICES, argument_mistake, is_known
from odesim.symbolic.indices import BOUNDARY_CHOICES, Neighbour, Padded, base_name, index_of, shift_of, time
from odesim.symbolic.layered import Layer, layers_in
from odesim.symbolic.parts import ClosedForm, Constraint, Event, Invariant, Param, Source, View
from odesim.symbolic.reductions import LIMIT_FORMS, REDUCTIONS, BoundIndex, triangle

# Type checks of a System's fields: each failure is one sentence that names the field.

LONGEST = 100  # characters of a name


def check_parts(s: "Definition") -> None:
    """Raises SpecError unless every field of s has its type. Lists of parts become tuples."""
    with error_part("name"):
        SpecError.unless(isinstance(s.name, str), "the name of a System is a text, such as 'family.model'", s.name)
    with error_part("source"):
        SpecError.unless(isinstance(s.source, Source), f"{s.name}: source must be a Source, such as Source('my_notes', 'eq. 4')", s.source)
    _check_axes(s)
    for field, example in (("equations", "{v[i]: -v[i]}"), ("initial", "{v[i]: 0.0}")):
        _check_mapping(s, field, example)
        for number, key in enumerate(getattr(s, field)):
            with error_part(field, number):
                _check_state_key(s, field, key)
    for field, kind in (("params", Param), ("constraints", Constraint), ("invariants", Invariant), ("events", Event)):
        _check_items(s, field, kind)
    _check_items(s, "closed_forms", ClosedForm)
    for field, example in (("sizes", "{M: 4}"), ("observables", "{'sum': over(Sum, v[i], (i, M))}"), ("sensitivities", "{}")):
        _check_mapping(s, field, example)
    for number, (name, e) in enumerate(s.observables.items()):
        with error_part("observables", number):
            _check_name(s, "observable", name)
            if isinstance(e, type):
                raise SpecError(f"{s.name}: observable {name!r} must be an expression or a function, not the class {e.__name__}")
    _check_items(s, "views", View)
    for number, view in enumerate(s.views):
        with error_part("views", number):
            if view.name not in (names := (*s.states, *s.observables)):
                raise SpecError(no_such("state or observable", view.name, names, f"views of {s.name}"))
    _check_mapping(s, "display", "{'z': v[i]**2/2}")
    for number, name in enumerate(s.display):
        with error_part("display", number):
            _check_name(s, "display", name)
    for name, pairs in s.sensitivities.items():
        if not isinstance(name, str) or not isinstance(pairs, Mapping) or not all(isinstance(x, str) for p in pairs.items() for x in p):
            raise SpecError(f"{s.name}: sensitivities are made by sensitivities(); {value_text(pairs)} of {value_text(name)} is none")
    SpecError.unless(isinstance(s.time, str), f"{s.name}: time is the unit of t in words, such as 'SGD steps'", s.time)
    if not isinstance(s.discrete, bool):
        raise SpecError(f"{s.name}: discrete says with True or False whether equations give the next state, not {value_text(s.discrete)}")


def _check_axes(s: "Definition") -> None:
    _check_mapping(s, "axes", "{i: M}")
    for number, (key, extent) in enumerate(s.axes.items()):
        with error_part("axes", number):
            if isinstance(key, tuple | list | sp.Tuple):
                raise SpecError(
                    f'{s.name}: axes has the key {value_text(key)}, which is a tuple: take the index out of it, (i,) = index("i")'
                )
            if not isinstance(key, Symbol):
                raise SpecError(
                    f"{s.name}: axes has the key {value_text(key)}, which is no index: write one of index(), "
                    "and give its name to nothing else"
                )
            if isinstance(extent, tuple | list | sp.Tuple):
                raise SpecError(f'{s.name}: axis {key} runs over {value_text(extent)}, a tuple: take the size out of it, (M,) = sizes("M")')
            whole = isinstance(extent, Integral) and not isinstance(extent, bool)
            if not (whole or isinstance(extent, sp.Expr)):
                raise SpecError(f"{s.name}: axis {key} runs over {value_text(extent)}, which is no whole number and no size")


def _check_mapping(s: "Definition", field: str, example: str) -> None:
    value = getattr(s, field)
    with error_part(field):
        SpecError.unless(isinstance(value, Mapping), f"{s.name}: {field} must be a dict, such as {example}", value)


def _check_state_key(s: "Definition", field: str, key: Any) -> None:
    if isinstance(key, str):
        raise SpecError(f"{s.name}: {field} has the text {key!r} as a key: write it without quotes, {value_text(key)[1:-1]}")
    if isinstance(key, IndexedBase) and field == "equations":
        raise SpecError(
            f"{s.name}: {key} is an array and cannot be a state: write an element, such as {element_text(key.label, key.shape, s)}"
        )
    if not isinstance(key, Indexed | Symbol | IndexedBase):
        raise SpecError(f"{s.name}: {value_text(key)} cannot be a state: write an element such as v[i], or a symbol")


def _check_items(s: "Definition", field: str, kind: type) -> None:
    """Raises SpecError unless the field is a tuple or list of `kind`; a list becomes a tuple."""
    kinds = tuple(View.__subclasses__()) if kind is View else (kind,)
    value, name = getattr(s, field), kinds[0].__name__
    with error_part(field):
        if isinstance(value, kinds):
            name = type(value).__name__
            raise SpecError(f"{s.name}: {field} is one {name}, not a tuple of them: a comma is missing after it, {field}=({name}(...),)")
        SpecError.unless(isinstance(value, tuple | list), f"{s.name}: {field} must be a tuple, such as ({name}(...),)", value)
    for number, item in enumerate(value):
        with error_part(field, number):
            if not isinstance(item, kinds):
                arguments = ", ".join(f.name for f in fields(kind))  # type: ignore[arg-type]
                written = " or ".join(f"{one.__name__}({arguments})" for one in kinds)
                raise SpecError(f"{s.name}: {field} holds {value_text(item)}, which is no {kind.__name__}: write {written}")
            _check_name(s, name, item.name)  # type: ignore[attr-defined]
    object.__setattr__(s, field, tuple(value))


def _check_name(s: "Definition", what: str, name: Any) -> None:
    """Raises SpecError unless a name can be the name of a stored file."""
    SpecError.unless(isinstance(name, str), f"{s.name}: the name of {_with_article(what)} is a text", name)
    if not name or len(name) > LONGEST or not name.isprintable():
        raise SpecError(
            f"{s.name}: the name of {_with_article(what)} has 1 to {LONGEST} characters that can be printed, not {value_text(name)}"
        )


def _with_article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOUo" else f"a {name}"


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
        self.integer_names = {*s.size_names, *(p.name for p in s.params if p.integer)}

    def words(self) -> dict[str, str]:
        """{name that has a meaning: what it is}."""
        kinds = {"a state": self.system.states, "a parameter": self.params, "a size": self.system.size_names}
        return {name: kind for kind, names in {**kinds, "an index": map(str, self.system.axes)}.items() for name in names}

    def check(self, e: sp.Expr, free: set[Symbol], where: str, *, states: bool = True) -> None:
        """Raises SpecError unless e uses known names with the right shapes, and no free index beyond `free`."""
        place = _Place(self, where, states, dict(self.system.axes), frozenset(free))
        if e is sp.nan:
            place.fail("nan is not a number")
        if (depth := depth_of(sp.sympify(e))) > DEEPEST:
            place.fail(f"an expression is nested {depth} deep, and compilers take {DEEPEST}: make an inner part a state of its own")
        for layer in layers_in(e):
            if layer.name in self.shapes or layer.name in self.size_names:
                place.fail(f"{layer.name!r} is a layer and also a state, parameter or size")
            if (layer, states) not in self._checked:
                self._checked.add((layer, states))
                extents = {**self.system.axes, **layer.axes}
                _Place(self, f"layer {layer.name}, which is in {where}", states, extents, frozenset(layer.along)).check(layer.definition)
        place.check(sp.sympify(e))

    def undeclared(self, what: str, name: str, choices: list[str]) -> str:
        """A sentence about a name that the System does not have."""
        if name == time.name:
            return f"{name!r} is the time: take it from odesim.symbolic, as in `from odesim.symbolic import time`"
        other = f", or write one of {', '.join(sorted(choices))}" if choices else ""
        return f"no {what} {shorten(name, 60)!r}: declare it in params{other}{nearest(name, choices)}"

    def names_rows(self, e: Indexed, extent: Any) -> bool:
        """Whether e is an element of a parameter whose values are rows of an axis of this extent."""
        p = self.params.get(base_name(e))
        return p is not None and p.indexes is not None and sp.expand(p.indexes - extent) == 0


@dataclass(frozen=True)
class _Place:
    """A place in an expression: the indices in scope there, with their extents, those that may be free, and whether states may stand.

    where: the expression, in words.
    """

    scope: NameScope
    where: str
    states: bool
    extents: Mapping[Symbol, Any]
    free: frozenset[Symbol]

    def fail(self, text: str) -> NoReturn:
        raise SpecError(f"{self.scope.system.name}: in {self.where}: {text}")

    def check(self, e: Any) -> None:
        """Raises SpecError where something of e may not stand here."""
        if isinstance(e, sp.Expr) and not isinstance(e, REDUCTIONS) and not e.has(Symbol) and e.is_real is False:
            self.fail(f"{e} is not a finite real number")
        if isinstance(e, KroneckerDelta):
            self._check_delta(e)
        if isinstance(e, sp.ITE):
            self._check_choice(e)
        if isinstance(e, REDUCTIONS):
            inner = self
            for limit in reversed(e.limits):
                extents = {**inner.extents, limit[0]: inner._extent_of(e, limit)}
                inner = replace(inner, extents=extents, free=inner.free | {limit[0]})
            inner.check(e.function)
        elif isinstance(e, Indexed):
            self._check_element(e)
        elif isinstance(e, Symbol):
            self._check_symbol(e)
        elif isinstance(e, IndexedBase):
            self._fail_array(e)
        elif isinstance(e, AppliedUndef):
            self.fail(f"{e} is not a function or array element that odesim knows")
        elif isinstance(e, sp.Expr) and e.args and not is_known(type(e).__name__):
            self.fail(no_such("function", type(e).__name__, CHOICES) + f" (in {shorten(str(e), 60)})")
        else:
            if mistake := argument_mistake(e, lambda: {*map(str, (*self.extents, *self.free)), *self.scope.integer_names}):
                self.fail(mistake)
            for a in e.args:
                self.check(a)

    def _check_choice(self, e: sp.ITE) -> None:
        """Fails where sympy has folded a Piecewise out of a sum inside a condition, past the index that it depends on."""
        sums = e.args[1].atoms(*REDUCTIONS) ^ e.args[2].atoms(*REDUCTIONS)
        summed = {lim[0].name for total in sums for lim in total.limits}
        for k in sorted({s.name for s in e.args[0].free_symbols if isinstance(s, Symbol) and s not in self.free and s.name in summed}):
            self.fail(
                f"a condition on a sum over {k} of a Piecewise, which sympy has taken out of the sum: name the sum first, as in "
                f"z = named('z', over(Sum, ..., ({k}, ...))), and write the condition on z"
            )

    def _extent_of(self, e: Any, limit: Any) -> Any:
        """The extent of the axis that a summed index runs over, or a part of."""
        (k, low, high), sizes = limit, self.scope.size_names
        t = triangle(low, high)
        if t is None:
            unknown = (low.free_symbols | high.free_symbols) - {x for x in high.free_symbols if x.name in sizes}
            if len(unknown) == 1 and high + 1 == (other := next(iter(unknown))):
                self.fail(f"{k} runs to {high}, and {no_such('size', other.name, sizes, self.scope.system.name)}")
            if low != 0 or unknown:
                self.fail(f"the bound of {k} must run {LIMIT_FORMS}, not from {low} to {high}")
            return high + 1
        for i in index_of(t.index).atoms(Symbol):
            if i.name in sizes:
                self.fail(f"the symbol of size {i} assumes what that of an index does, in the bound of {k}: make it by sizes()")
            self._check_free(i, f"{i}, a bound of {k},")
        extent = t.extent(self.extents)
        ends = (low == 0 and t.shift <= 0) if t.op == "prefix" else (sp.expand(high + 1 - extent) == 0 and t.shift >= 0)
        if not ends:
            self.fail(f"the bound of {k} must run {LIMIT_FORMS}, not from {low} to {high}")
        if not isinstance(e, sp.Sum) and t.shift:
            self.fail(f"a maximum over {t.text(k)} has no entries at one end of the axis")
        if not isinstance(e, sp.Sum) and len(e.limits) > 1:
            self.fail(f"a maximum over {t.text(k)} goes over other indices too: write one maximum inside the other")
        return extent

    def _check_bound(self, i: Symbol) -> None:
        """Fails for an index of a sum that stands outside of it."""
        if isinstance(i, BoundIndex) and i not in self.free:
            self.fail(
                f"sympy's Sum() has taken a Piecewise out of the sum over {i} inside it: write the outer sum by over(), or name the "
                f"inner one first, as in z = named('z', over(Sum, ..., ({i}, ...)))"
            )

    def _check_free(self, i: Symbol, words: str) -> None:
        if i not in self.extents or i not in self.free:
            self._check_bound(i)
            here = f"; free here: {', '.join(sorted(map(str, self.free)))}" if self.free else "; no index is free here"
            self.fail(f"index {words} is neither free nor summed{here}")

    def _check_delta(self, e: KroneckerDelta) -> None:
        """Fails where a delta of an index and an array element could become a store outside the array."""
        for i, via in (e.args, e.args[::-1]):
            if i in self.extents and isinstance(via, Indexed) and not self.scope.names_rows(via, self.extents[i]):
                self.fail(f"{e}: {via} must be a parameter declared with indexes={self.extents[i]}")

    def _check_element(self, e: Indexed) -> None:
        name, scope = base_name(e), self.scope
        if name not in scope.shapes and not isinstance(e.base, Layer):
            self.fail(scope.undeclared("array", name, [n for n, s in scope.shapes.items() if s]) + f" (in {e})")
        if not self.states and name in scope.system.states:
            self.fail(f"{e} is a state; only parameters and sizes may stand here")
        shape = tuple(e.base.shape) if isinstance(e.base, Layer) else scope.shapes[name]
        if len(shape) != len(e.indices):
            self.fail(f"{e} has {counted(len(e.indices), 'index', 'indices')}, {name} has {counted(len(shape), 'axis', 'axes')}")
        for i, extent in zip(e.indices, shape, strict=True):
            self._check_index(e, i, extent)

    def _check_index(self, e: Indexed, i: Any, extent: Any) -> None:
        """Fails unless i may be the index of the element e on an axis of this extent."""
        if isinstance(i, Symbol):
            self._check_free(i, f"{i} of {e}")
            if sp.expand(self.extents[i] - extent) != 0:
                self.fail(f"{e}: index {i} runs over {self.extents[i]}, but that axis of {base_name(e)} has extent {extent}")
        elif isinstance(i, Neighbour):
            if isinstance(i.args[0], Neighbour | Symbol):
                self._check_index(e, i.args[0], extent)
        elif (shifted := shift_of(i)) and shifted[0].name not in self.scope.size_names:
            k = shifted[0]
            if any(k.name == known.name for known in self.scope.system.boundary):
                self.fail(f"{e} is a neighbour of {e.xreplace({i: k})}: neighbours stand on right-hand sides only")
            self.fail(f"{e}: what stands beyond the ends of {k}? Say it in the System: boundary={{{k}: ...}} with {BOUNDARY_CHOICES}")
        elif isinstance(i, Indexed):
            if not self.scope.names_rows(i, extent):
                self.fail(f"{e}: {i} must be a parameter declared with indexes={extent}")
            if any(isinstance(j, Padded) for j in i.indices):
                self.fail(f"{e}: {i} names rows, and is no row beyond the ends: its boundary is 'periodic' or 'edge'")
            self._check_element(i)
        elif not (i.is_Integer and i >= 0):
            self.fail(
                f"{e}: an index is a plain index, one shifted by a number such as m + 1, a whole number or an index parameter, not {i}"
            )

    def _check_symbol(self, e: Symbol) -> None:
        scope, name = self.scope, e.name
        if e == time:
            return
        if e in self.extents:
            self._check_free(e, str(e))
        elif name in scope.system.states and not scope.shapes[name]:
            if not self.states:
                self.fail(f"{e} is a state; only parameters and sizes may stand here")
        elif scope.shapes.get(name):
            self._fail_array(e)
        elif name not in scope.size_names and name not in scope.params:
            self._check_bound(e)
            scalars = [n for n, s in scope.shapes.items() if not s]
            self.fail(scope.undeclared("symbol", name, [*scalars, *scope.size_names]))

    def _fail_array(self, e: Any) -> NoReturn:
        """Fails with a hint: e is an array where an element is expected."""
        name, shapes = base_name(e), self.scope.shapes
        if name not in shapes:
            self.fail(self.scope.undeclared("array", name, [n for n, s in shapes.items() if s]))
        self.fail(f"{name} is an array; did you mean {element_text(name, shapes[name], self.scope.system)}?")
