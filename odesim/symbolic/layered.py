"""Layers: arrays that are named and defined by an expression, each by those before it, as in a deep network.

An expression in a layer holds its name, not its definition. So formulas, derivatives and generated code of a chain of layers are as long
as the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from numbers import Integral
from typing import Any
from weakref import WeakValueDictionary

import sympy as sp
from sympy import Basic, Expr, Indexed, Symbol

from odesim.base.errors import SpecError, value_text
from odesim.base.parsing import readable
from odesim.symbolic.indices import IndexedBase, PlainBase, argument_expression, index, with_boundaries
from odesim.symbolic.reductions import at, canonical, free_indices, is_index, over, subexpressions

_LAYERS: WeakValueDictionary[tuple[Any, ...], Layer] = WeakValueDictionary()
"""Every layer there is. Equal ones are one object: a comparison of copies would go through all paths of a chain of layers."""


class Layer(IndexedBase):
    """An array of symbols with a definition: h[i] is `definition`, an expression in the index i and in no other free one."""

    along: tuple[Symbol, ...]
    definition: Expr

    def __new__(cls, name: str, along: tuple[Symbol, ...], definition: Any, shape: tuple[Any, ...]) -> Layer:
        key = (cls, name, tuple(along), canonical(definition), tuple(shape))
        if (known := _LAYERS.get(key)) is not None:
            return known
        layer: Layer = super().__new__(cls, name, shape=shape)
        layer.along, layer.definition = key[2:4]
        hash(layer), _symbols_of(layer)  # now, and never later through a chain of layers
        _LAYERS[key] = layer
        return layer

    def __reduce__(self) -> Any:
        return type(self), (self.name, self.along, self.definition, tuple(self.shape))

    __reduce_ex__ = lambda self, _: self.__reduce__()  # noqa: E731

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), sp.Tuple(*self.along), self.definition)

    @property
    def func(self) -> Any:
        return lambda label, shape: type(self)(str(label), self.along, self.definition, tuple(shape))

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols of its definition, without its own indices."""
        return set(_symbols_of(self))

    def _xreplace(self, rule: Mapping[Any, Any]) -> tuple[Any, bool]:
        if self in rule:
            return rule[self], True
        bound = set(self.along)
        inside = tuple((old, new) for old, new in rule.items() if old.free_symbols & _symbols_of(self) and not old.free_symbols & bound)
        definition = _replaced(self.definition, inside) if inside else self.definition
        return (self, False) if definition == self.definition else (self.with_definition(definition), True)

    def with_definition(self, definition: Any) -> Layer:
        """The layer of this name and shape with another definition."""
        return type(self)(self.name, self.along, definition, tuple(self.shape))

    @property
    def axes(self) -> dict[Symbol, Any]:
        """{index of the definition: extent}."""
        return dict(zip(self.along, self.shape, strict=True))

    def element(self, indices: tuple[Any, ...]) -> Any:
        """The element at an index for each of axes."""
        return self[indices]

    def places(self, read: Indexed) -> dict[Symbol, Any]:
        """{index of the definition: where `read`, an element, is}."""
        return dict(zip(self.along, read.indices, strict=True))

    def value(self, definition: Any) -> Any:
        """Its elements in terms of its definition, for formulas."""
        return definition

    def slope(self, slope: Any) -> Any:
        """The derivative of an element from that of the definition at the indices `along`."""
        return slope


class Value(Layer):
    """A number that is named: a layer of one element, without an index."""

    @property
    def axes(self) -> dict[Symbol, Any]:
        return {}

    def element(self, indices: tuple[Any, ...]) -> Any:
        return self[0]

    def places(self, read: Indexed) -> dict[Symbol, Any]:
        return {}


class Inverse(Layer):
    """A layer of inverse matrices: X[i, j], where sum_j definition[i, j] * X[j, k] = delta(i, k). The last two indices are the matrix."""

    def value(self, definition: Any) -> Any:
        return InverseOf(definition)

    def slope(self, slope: Any) -> Any:
        """d X = -X dA X."""
        *batch, i, j = self.along
        (k, l), n = index(f"{i.name}_left {j.name}_right"), self.shape[-1]
        inside = self[(*batch, i, k)] * at(slope, {i: k, j: l}) * self[(*batch, l, j)]
        return sp.S.Zero if slope == 0 else -over(sp.Sum, inside, (k, n), (l, n))


class InverseOf(sp.Function):  # type: ignore[misc]
    """An entry of the inverse of a matrix whose entry this is, in formulas."""

    nargs = 1

    def _sympystr(self, printer: Any) -> str:
        return f"inverse({printer._print(self.args[0])})"

    def _latex(self, printer: Any) -> str:
        return rf"\left[ {printer._print(self.args[0])} \right]^{{-1}}"


# Caches go by the layer: without them each question about a chain of n layers would be asked of every path through it, 2**n of them.
@lru_cache(maxsize=4096)
def _symbols_of(layer: Layer) -> frozenset[Any]:
    return frozenset(layer.definition.free_symbols - set(layer.along))


@lru_cache(maxsize=4096)
def _replaced(e: Any, rule: tuple[tuple[Any, Any], ...]) -> Any:
    return e.xreplace(dict(rule))


def layers_in(*expressions: Any) -> list[Layer]:
    """Every layer that expressions read, each after those in its definition."""
    ordered: dict[Layer, None] = {}
    todo = [layer for e in reversed(expressions) for layer in _read_directly(e)]
    while todo:
        missing = [] if todo[-1] in ordered else [layer for layer in _read_directly(todo[-1].definition) if layer not in ordered]
        if missing:
            todo += missing
        else:
            ordered[todo.pop()] = None
    return list(ordered)


@lru_cache(maxsize=4096)
def _read_directly(e: Any) -> tuple[Layer, ...]:
    return tuple(sorted(subexpressions([e], Layer), key=lambda a: (str(a), str(a.definition))))


def without_layers(e: Any, name: str) -> Any:
    """e with its definition in place of each element of a layer that reads this name; inverse matrices stay."""
    while elements := [a for a in e.atoms(Indexed) if type(a.base) in (Layer, Value) and name in names_read(a.base)]:
        e = at(e, {a: at(a.base.definition, a.base.places(a)) for a in elements})
    return e


def with_layers(expressions: Iterable[Any]) -> list[Any]:
    """The expressions, and the definitions of the layers that they read."""
    listed = list(expressions)
    return [*listed, *(layer.definition for layer in layers_in(*listed))]


def changed(e: Any, change: Callable[[Any, Mapping[Symbol, Any]], Any], scope: Mapping[Symbol, Any] | None = None) -> Any:
    """change(e, scope), with every layer replaced by one whose definition is changed in the same way. scope: {index: extent}."""
    new: dict[Any, Any] = {}
    for layer in layers_in(e):  # layers first: what replaces an element reaches an equal one in a layer too
        new[layer] = layer.with_definition(change(_put(layer.definition, new), layer.axes))
    return change(_put(e, new), scope or {})


def _put(e: Any, new: Mapping[Any, Any]) -> Any:
    return e.xreplace({a: new[a.base][a.indices] for a in e.atoms(Indexed) if new.get(a.base, a.base) != a.base}) if new else e


def bounded(e: Any, boundary: Mapping[Any, str]) -> Any:
    """e, and the layers in it, with neighbours read at the boundary of their index."""
    return changed(e, lambda part, _: with_boundaries(part, boundary)) if boundary else e


@readable
def layers(count: int, step: Callable[[int, Any], Any], first: Any, name: str = "h") -> list[Any]:
    """The arrays [h[0], h[1], ..., h[count]] with h[l + 1] = step(l, h[l]).

    Parameters
    ----------
    count : int
        How many layers.
    step : callable
        step(l, h) is an expression in the indices of first: lambda l, h: tanh(over(Sum, W[l][i, j] * h[j], (j, D))).
    first : element
        Such as x[i]; h[0] is its array.
    name : str
        Formulas, equations of gradient_flow() and generated code hold each array once, by its name h1, h2, ...

    Returns
    -------
    list
        The arrays.

    Raises
    ------
    SpecError
        Where a layer is no expression in these indices.

    Examples
    --------
    >>> x, (i,) = IndexedBase("x", shape=sizes("D")), index("i")
    >>> h = layers(2, lambda l, h: tanh(h[i]), x[i])
    >>> h[2][i]
    h2[i]
    """
    if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
        raise SpecError(f"layers(): the number of layers is a whole number from 0, not {value_text(count)}")
    if not isinstance(first, Indexed) or first.base.shape is None or not all(map(is_index, first.indices)):
        raise SpecError(f"layers() starts from an element with an index for each axis of a shape, such as x[i], not {value_text(first)}")
    along, arrays = tuple(first.indices), [first.base]
    for n in range(count):
        e = canonical(argument_expression(f"layer {n + 1} of layers()", step(n, arrays[-1])))
        shape = _shape(e, along, tuple(arrays[-1].shape), f"layer {n + 1} of layers()")
        arrays.append(Layer(f"{name}{n + 1}", along, e, shape))
    return arrays


@readable
def named(name: str, value: Any, *axes: tuple[Symbol, Any]) -> Any:
    """A number with a name of its own: formulas, equations of gradient_flow() and generated code hold its value once, by this name.

    Parameters
    ----------
    name : str
        How it prints.
    value : expression
        Later values may be made of earlier ones, and then stay as short as they are written.
    *axes : (index, extent)
        With axes it is an array: G = named("G", over(Sum, W[i, k] * x[k, j], (k, K)), (i, M), (j, N)), with elements G[i, j].

    Returns
    -------
    Symbol or array
        To write further expressions with.

    Raises
    ------
    SpecError
        For a name that Python does not take, an axis that is no pair, or a value with another free index.

    Examples
    --------
    >>> x, (i,), (N,) = IndexedBase("x", shape=sizes("N")), index("i"), sizes("N")
    >>> named("G", exp(x[i]) + x[i], (i, N))[i] ** 2
    G[i]**2
    """
    if not isinstance(name, str) or not name.isidentifier() or name.endswith("_"):
        raise SpecError(f"named() takes a name of letters and digits, such as z1, not {value_text(name)}")
    for axis in axes:
        if not (isinstance(axis, tuple) and len(axis) == 2 and is_index(axis[0])):
            raise SpecError(f"named({name!r}): an axis is an index and its extent, such as (i, N), not {value_text(axis)}")
    e, along = canonical(argument_expression(f"named({name!r})", value)), tuple(i for i, _ in axes)
    free = ", ".join(sorted(str(k) for k in e.free_symbols - set(along) if is_index(k)))
    if free:
        raise SpecError(f"named({name!r}) has the free index {free}: sum over it, or give its axis, such as ({free.split(',')[0]}, N)")
    return Layer(name, along, e, tuple(n for _, n in axes)) if axes else Value(name, (), e, (1,)).element(())


def _shape(e: Expr, along: tuple[Symbol, ...], before: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    """The extents of the indices of e, from the arrays that it reads; of an index that it lacks that of the layer before."""
    extents: dict[Symbol, set[Any]] = {}
    for a in e.atoms(Indexed):
        for i, n in zip(a.indices, a.base.shape or (), strict=False):
            for k in i.atoms(Symbol) if not isinstance(i, Indexed) else ():
                if is_index(k):
                    extents.setdefault(k, set()).add(sp.expand(n))
    other = sorted(str(k) for k in free_indices(e, set(extents)) - set(along))
    if other:
        raise SpecError(f"{where} has the free index {', '.join(other)}: sum over it, or write it with {', '.join(map(str, along))}")
    for i in along:
        if len(extents.get(i, ())) > 1:
            raise SpecError(f"{where}: index {i} runs over {' and over '.join(sorted(map(str, extents[i])))}")
    return tuple(next(iter(extents[i])) if i in extents else n for i, n in zip(along, before, strict=True))


@readable
def inverse(entry: Any, *axes: tuple[Symbol, Any], name: str = "inverse") -> Layer:
    """The array of inverse matrices of entry, an expression: X = inverse(A[i, j], (i, K), (j, K)), with elements X[i, j].

    Parameters
    ----------
    entry : expression
        In the indices of the axes.
    *axes : (index, extent)
        Those before the last two number many matrices: inverse(A[n, i, j], (n, N), (i, K), (j, K)).
    name : str
        How it prints.

    Returns
    -------
    array
        Computed by elimination with partial pivoting, at a cost of K^3; it has derivatives.

    Notes
    -----
    No entry of the inverse of a singular matrix is finite, so that a run ends there, nor of one that is singular to rounding: with a
    condition above 3.5e13 (6.5e4 in single precision), in good units of rows and columns.

    Examples
    --------
    >>> (i, j), (K,) = index("i j"), sizes("K")
    >>> A = IndexedBase("A", shape=(K, K))
    >>> inverse(A[i, j], (i, K), (j, K))[i, j]
    inverse[i, j]
    """
    wrong = [x for x in axes if not (isinstance(x, tuple) and len(x) == 2 and is_index(x[0]))]
    if wrong or len(axes) < 2 or sp.expand(sp.sympify(axes[-1][1]) - sp.sympify(axes[-2][1])) != 0:
        axes_text = ", ".join(map(str, axes))
        raise SpecError(
            f"inverse() takes an expression and the axes of square matrices, such as (i, K), (j, K), not {axes_text or 'no axes'}"
        )
    return Inverse(name, tuple(i for i, _ in axes), argument_expression("inverse()", entry), tuple(n for _, n in axes))


@readable
def solve(entry: Any, right: Any, *axes: tuple[Symbol, Any], name: str = "solution") -> Layer:
    """The array x of solutions of sum_j A[i, j] x[j] = b[i]: x = solve(A[i, j], b[i], (i, K), (j, K)), by inverse().

    Parameters
    ----------
    entry, right : expression
        A[i, j] and b[i].
    *axes : (index, extent)
        As of inverse().
    name : str
        How it prints.

    Returns
    -------
    array
        With elements x[j].

    Examples
    --------
    >>> (i, j), (K,) = index("i j"), sizes("K")
    >>> A, b = IndexedBase("A", shape=(K, K)), IndexedBase("b", shape=(K,))
    >>> solve(A[i, j], b[i], (i, K), (j, K))[j]
    solution[j]
    """
    X, b = inverse(entry, *axes), argument_expression("solve()", right)
    *batch, i, j = X.along
    if j in free_indices(b, {j}):
        raise SpecError(f"solve(): the right side {value_text(b)} has the index {j} of a column: write it in {i}, the index of a row")
    return Layer(name, (*batch, j), over(sp.Sum, X[(*batch, j, i)] * b, (i, X.shape[-1])), tuple(X.shape[:-1]))


def names_read(e: Basic) -> set[str]:
    """Names of the arrays, numbers, sizes and indices that e reads; the extents of its arrays do not count."""
    if isinstance(e, Layer):
        return set[str]().union(*map(_names_in, (e, *layers_in(e.definition))))
    if isinstance(e, PlainBase):
        return {str(e.label)}
    if isinstance(e, Symbol):
        return {e.name}
    return set[str]().union(*map(names_read, e.args))


@lru_cache(maxsize=4096)
def _names_in(layer: Layer) -> frozenset[str]:
    """names_read() of the definition of a layer, without what other layers in it read."""
    inner = {a: sp.Function("element")(*a.indices) for a in layer.definition.atoms(Indexed) if isinstance(a.base, Layer)}
    return frozenset(names_read(layer.definition.xreplace(inner)))
