"""From a loss to its gradient: reverse mode on the statements of the loss, written back as expressions with sums."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Any

import sympy as sp
from sympy import Expr, Indexed, KroneckerDelta, Sum, Symbol

from odesim.base.errors import SpecError, no_such, value_text
from odesim.base.parsing import readable
from odesim.ir.adjoint import ReverseSweep, has_slopes
from odesim.ir.lowering import Lowering
from odesim.ir.passes import dependency_order
from odesim.ir.program import Statement
from odesim.symbolic.definition import GradientFlow
from odesim.symbolic.indices import BOUNDARY_CHOICES, IndexedBase, Neighbour, base_name, check_boundary, index, our_element, shift_of
from odesim.symbolic.layered import Layer, Value, bounded, with_layers
from odesim.symbolic.parts import Key, checked_expression, key_indices
from odesim.symbolic.reductions import (
    REDUCTIONS,
    AtMax,
    BoundIndex,
    MaxOver,
    Shift,
    SumOver,
    at,
    bind_indices,
    free_indices,
    is_index,
    over,
    triangle,
)

LOSS = Symbol("loss_", real=True)
METRICS = ("euclidean", "sphere", "simplex")


@readable
def grad(loss: Any, *arrays: Any, boundary: Mapping[Symbol, str] | None = None) -> Any:
    """The derivative of a loss with respect to an array element: grad(loss, W[i, j]) is an expression in i and j.

    Parameters
    ----------
    loss : expression
        Without a free index.
    *arrays : element
        W[i, j]; one or several.
    boundary : {index: "periodic", "zero" or "edge"}
        That of the System, for a loss with neighbours such as x[i + 1].

    Returns
    -------
    expression or tuple of them
        Of several arrays a tuple. The cost is that of a few losses, whatever the number of elements: reverse mode, through sums, softmax,
        gathers and maxima.

    Raises
    ------
    SpecError
        Where the loss has a free index, or does not depend on an array.

    Examples
    --------
    >>> w, (i,), (N,) = IndexedBase("w", shape=sizes("N")), index("i"), sizes("N")
    >>> grad(over(Sum, w[i] ** 2, (i, N)), w[i])
    2*w[i]
    """
    if not arrays:
        raise SpecError("grad() takes the loss and the element by which it is derived, such as grad(loss, W[i, j])")
    keys = [_check_key("grad()", key) for key in arrays]
    slopes = _gradients(_check_loss("grad()", loss, keys, boundary or {}), keys)
    return slopes[0] if len(keys) == 1 else tuple(slopes)


@readable
def gradient_flow(
    loss: Any, rates: Mapping[Any, Any], *, metric: Mapping[Any, str] | None = None, boundary: Mapping[Symbol, str] | None = None
) -> GradientFlow:
    """The equations of gradient descent in continuous time, dW/dt = -rate * dloss/dW, for a System: {W[i, j]: right-hand side}.

    Parameters
    ----------
    loss, boundary
        As of grad().
    rates : {W[i, j]: rate}
        A rate is a number or an expression, also in the indices.
    metric : {W[i, j]: "euclidean", "sphere" or "simplex"}
        For what moves on a set; the set is that of the last index. "euclidean": -rate * g, the default. "sphere": sum_j W[i, j]^2 stays,
        -rate * (g - <W, g> W / <W, W>). "simplex": sum_j W[i, j] stays and no sign changes (replicator), -rate * W * (g - <W, g> / sum W).

    Returns
    -------
    {W[i, j]: expression}
        Equations. Where they are long, a System with the loss among its observables shows them as written here.

    Raises
    ------
    SpecError
        As grad() does, and for an unknown metric.

    Examples
    --------
    >>> w, (i,), (N,) = IndexedBase("w", shape=sizes("N")), index("i"), sizes("N")
    >>> gradient_flow(over(Sum, w[i] ** 2, (i, N)), {w[i]: 3})[w[i]]
    -6*w[i]
    """
    if not isinstance(rates, Mapping) or not rates:
        raise SpecError(f"gradient_flow() takes the loss and {{W[i, j]: rate, ...}}, not {value_text(rates)}")
    keys = [_check_key("gradient_flow()", key) for key in rates]
    metrics = {_check_key("the metric of gradient_flow()", key): name for key, name in (metric or {}).items()}
    for key, name in metrics.items():
        if key not in keys:
            raise SpecError(no_such("array", str(key), map(str, keys), "the rates of gradient_flow()"))
        if name not in METRICS:
            raise SpecError(no_such("metric", str(name), METRICS))
        if name != METRICS[0] and not key_indices(key):
            raise SpecError(f"gradient_flow(): the metric {name!r} needs an array, and {key} is a number")
    steps = [checked_expression(rate, f"gradient_flow(): the rate of {key}") for key, rate in zip(keys, rates.values(), strict=True)]
    e = _check_loss("gradient_flow()", loss, keys, boundary or {})
    ways = [metrics.get(key, METRICS[0]) for key in keys]
    moved = [_moved(key, g, way) for key, g, way in zip(keys, _gradients(e, keys), ways, strict=True)]
    plain = {key: step for key, step, way in zip(keys, steps, ways, strict=True) if way == METRICS[0]}
    return GradientFlow({key: -step * g for key, step, g in zip(keys, steps, moved, strict=True)}, e, plain)


@readable
def sgd_noise(
    loss: Any,
    rates: Mapping[Any, Any],
    sample: tuple[Symbol, Any],
    *,
    step: Any,
    batch: Any = 1,
    diagonal: bool = False,
    boundary: Mapping[Symbol, str] | None = None,
) -> dict[Key, dict[Key, Expr]]:
    """The noise of mini-batches for a System whose equations are gradient_flow() of the mean loss: {W[i, j]: {sample[n]: factor}}.

    Parameters
    ----------
    loss, boundary
        As of grad(), of one sample.
    rates : {W[i, j]: rate}
        As of gradient_flow().
    sample : (index, extent)
        (n, N): the index of samples and their number.
    step : expression
        The learning rate, so that time is step times updates.
    batch : expression
        Samples of an update, drawn anew from all N.
    diagonal : bool
        An element of the channel `W_sample` for each weight, without their correlations. Without it each sample is an element of the
        channel `sample`, so that the covariance is exact: N numbers for each weight in a step.

    Returns
    -------
    {W[i, j]: {channel: factor}}
        The noise of a System.

    Raises
    ------
    SpecError
        As grad() does.

    Examples
    --------
    >>> w, x = Symbol("w", real=True), IndexedBase("x", shape=sizes("N"))
    >>> (n,), (N,) = index("n"), sizes("N")
    >>> [str(channel) for channel in sgd_noise((w - x[n]) ** 2, {w: 1}, (n, N), step=0.1)[w]]
    ['sample[n]']
    """
    if not isinstance(rates, Mapping) or not rates:
        raise SpecError(f"sgd_noise() takes the loss and {{W[i, j]: rate, ...}}, not {value_text(rates)}")
    if not isinstance(sample, tuple) or len(sample) != 2 or not isinstance(sample[0], Symbol):
        raise SpecError(f"sgd_noise(): sample is (n, N), the index of the loss and the number of samples, not {value_text(sample)}")
    n, count = sample
    keys = [_check_key("sgd_noise()", key) for key in rates]
    # a place that is no index, so that the loss of one sample is one number
    one = Symbol(n.name, integer=True, positive=True)
    e = _check_loss("sgd_noise()", checked_expression(loss, "sgd_noise(): the loss").xreplace({n: one}), keys, boundary or {})
    if not e.has(one):
        raise SpecError(f"sgd_noise(): the loss does not depend on {n}: it is that of one sample, which {n} counts")
    noise: dict[Key, dict[Key, Expr]] = {}
    for key, rate, g in zip(keys, rates.values(), _gradients(e, keys), strict=True):
        slope = g.xreplace({one: n})
        off, size = slope - over(Sum, slope, sample) / count, rate * sp.sqrt(sp.sympify(step) / (batch * count))
        if diagonal:
            name = f"{base_name(key)}_sample"
            channel = IndexedBase(name, shape=key.base.shape)[key.indices] if isinstance(key, Indexed) else Symbol(name)
            noise[key] = {channel: size * sp.sqrt(over(Sum, off**2, sample))}
        else:
            noise[key] = {IndexedBase("sample", shape=(count,))[n]: size * off}
    return noise


def _moved(key: Key, g: Expr, metric: str) -> Expr:
    """The gradient g at key in a metric."""
    if metric == METRICS[0]:
        return g
    axis = (key.indices[-1], key.base.shape[-1])
    along = over(Sum, key * g, axis)
    if metric == "sphere":
        return g - along * key / over(Sum, key**2, axis)
    return key * (g - along / over(Sum, key, axis))


def _check_key(call: str, key: Any) -> Key:
    """key as an element of our arrays with an index of its own on each axis, or a symbol."""
    key = our_element(key)
    if isinstance(key, Symbol):
        return key
    SpecError.unless(isinstance(key, Indexed), f"{call} takes elements such as W[i, j]", key)
    if key.base.shape is None:
        raise SpecError(f"{call}: {key.base} has no shape: make it by IndexedBase({str(key.base)!r}, shape=(M,))")
    if not all(isinstance(i, Symbol) for i in key.indices) or len(set(key.indices)) < len(key.indices):
        raise SpecError(f"{call}: {key} is one element or a diagonal: write an index of its own for each axis")
    return key


def _check_loss(call: str, loss: Any, keys: list[Key], boundary: Mapping[Symbol, str]) -> Expr:
    """loss as an expression without free indices that depends on every key."""
    check_boundary(call, boundary)
    e = bounded(checked_expression(loss, f"{call}: the loss"), boundary)
    elements = {x for part in with_layers([e]) for x in part.atoms(Indexed)}
    for x in sorted(elements, key=str):
        for k, _ in filter(None, map(shift_of, x.indices)):
            raise SpecError(f"{call}: {x}: what stands beyond the ends of {k}? Say it by boundary={{{k}: ...}} with {BOUNDARY_CHOICES}")
    names = {base_name(x) for part in with_layers([e]) for x in part.atoms(Indexed, Symbol)}
    places = {s for x in e.atoms(Indexed) for i in x.indices for s in i.atoms(Symbol)}
    indices = {s for s in places if s.is_integer and not s.is_positive} | {i for key in keys for i in key_indices(key)}
    free = sorted(map(str, free_indices(e, indices)))
    if free:
        word, them = ("index", "it") if len(free) == 1 else ("indices", "them")
        raise SpecError(f"{call}: the loss has the free {word} {' and '.join(free)}: a loss is one number, so sum over {them}")
    for key in keys:
        if base_name(key) not in names:
            raise SpecError(f"{call}: the loss does not depend on {base_name(key)}")
    if len({base_name(key) for key in keys}) < len(keys):
        raise SpecError(f"{call}: an array is named twice")
    return e


def _gradients(loss: Expr, keys: list[Key]) -> list[Expr]:
    """The derivatives of loss by each key, as expressions of the model's own arrays."""
    axes = {i: n for key in keys if isinstance(key, Indexed) for i, n in zip(key.indices, key.base.shape, strict=True)}
    work = Lowering(axes, [loss], {base_name(key) for key in keys} | {s.name for e in with_layers([loss]) for s in e.atoms(Symbol)})
    work.assign(LOSS, loss)
    forward = dependency_order(work.statements)
    work.statements = list(forward)
    back = _Sweep(work, {base_name(k): key_indices(k) for k in keys} | {s.name: s.free for s in forward if has_slopes(s)})
    for s in reversed(forward):
        adjoint = sp.S.One if s.target == LOSS else back.collect(s)
        if adjoint is not None and has_slopes(s):
            back.propagate(s, adjoint)
    inline = _Inline(work, back.adjoints)
    return [_with_short_names(inline(back.total(base_name(key)))) for key in keys]


def _with_short_names(e: Expr) -> Expr:
    """e with summed indices called as in the loss: what made their names different has done its work, levels tell them apart."""
    return e.xreplace({k: BoundIndex(re.sub(r"(_b?\d+)+$", "", k.name), k.level) for k in e.atoms(BoundIndex)})


class _Sweep(ReverseSweep):
    """A reverse sweep whose adjoints stay expressions: no sum in them becomes a statement, and where a maximum is attained is AtMax."""

    def __init__(self, work: Lowering, indices: dict[str, tuple[Symbol, ...]]):
        super().__init__(work, indices)
        self.adjoints: dict[str, tuple[tuple[Symbol, ...], Expr]] = {}

    def collect(self, s: Statement) -> Key | None:
        if not self.contributions[s.name]:
            return None
        target = self.adjoint_of(s)
        self.adjoints[base_name(target)] = (s.free, self.total(s.name))
        return target

    def propagate(self, s: Statement, adjoint: Expr) -> None:
        if s.op != "max":
            return super().propagate(s, adjoint)
        if base_name(s.body) not in self.indices:  # of parameters alone
            return None
        loops = {i: self.fresh_index(i) for i in s.loops}
        read, weight = s.body.xreplace(loops), adjoint.xreplace(loops)  # the body of a maximum is an element of an array
        k = loops[s.bound]
        (hit,) = index(f"{k}_hit")
        place = bind_indices(AtMax, sp.Tuple(read, KroneckerDelta(hit, k)), [(k, sp.S.Zero, self.work.extents[k] - 1)])
        self.work.extents[hit] = self.work.extents[k]
        left = [loops[i] for i in s.loops if i != s.bound]
        e = self.contribution(read.xreplace({k: hit}), weight * place, [*left, hit])
        self.contributions[base_name(read)].append(e)
        return None


def _over_whole_axes(e: Any, extents: Mapping[Symbol, Any]) -> Any:
    """e with a condition in the place of each limit that is one of these indices: a limit can be no number and no row of a parameter.

    sum_{k <= i} x[k]  ->  sum_k (x[k] if k <= i else 0)
    """
    if isinstance(e, Indexed) or not e.args:
        return e
    if not isinstance(e, SumOver):
        return e.func(*(_over_whole_axes(a, extents) for a in e.args))
    body = _over_whole_axes(e.function, extents)
    k, low, high = e.limits[0]
    t = triangle(low, high)
    if len(e.limits) > 1 or t is None or t.index not in extents:
        return e.func(body, *e.limits)
    return e.func(sp.Piecewise((body, t.condition(k)), (0, True)), (k, sp.S.Zero, extents[t.index] - 1))


# Statements are written back as sums, so that a gradient is an expression like any other: it can be read, changed, derived again.
class _Inline:
    """Puts the definitions of temporaries back into an expression, each at the indices at which it is read."""

    def __init__(self, work: Lowering, adjoints: Mapping[str, tuple[tuple[Symbol, ...], Expr]]):
        self.work, self._fresh = work, count()
        self._layers = {base_name(element): (layer, loops, element) for layer, (loops, element) in work.layers.items()}
        self.parts = {s.name: (s.free, self._definition(s)) for s in work.statements} | {**adjoints}
        self._inlined: dict[str, Expr] = {}
        for name, (free, e) in adjoints.items():  # from the last layer to the first, each in terms of those before it
            of = name.removeprefix("b_").rstrip("_")
            if of in self._layers:
                layer, loops, element = self._layers[of]
                places = dict(zip(loops, layer.along, strict=True))  # equal layers share a statement, whose indices are those of one
                swap = {i: places[k] for i, k in zip(free, key_indices(element), strict=True)}
                slope = _with_short_names(at(self(e), swap))
                gradient = (Value if isinstance(layer, Value) else Layer)(f"grad_{layer.name}", layer.along, slope, tuple(layer.shape))
                self._layers[name] = gradient, loops, element

    def __call__(self, e: Any) -> Any:
        if isinstance(e, Indexed | Symbol):
            return self._read(e) if base_name(e) in self.parts else e
        if isinstance(e, REDUCTIONS):
            swap = {k: index(f"{k.name}_{next(self._fresh)}")[0] for k, _, _ in e.limits}
            return bind_indices(
                type(e), self(e.function.xreplace(swap)), [(swap[k], low.xreplace(swap), high.xreplace(swap)) for k, low, high in e.limits]
            )
        return e.func(*map(self, e.args)) if e.args else e

    def _read(self, read: Key) -> Expr:
        name = base_name(read)
        if name in self._layers:
            layer, loops, element = self._layers[name]
            at_loop = dict(zip(element.indices, read.indices, strict=True)) if isinstance(read, Indexed) else {}
            return layer.element(tuple(at_loop[i] for i in loops))
        free, e = self.parts[name]
        if name not in self._inlined:
            self._inlined[name] = self(e)
        if not isinstance(read, Indexed):
            return self._inlined[name]
        places = dict(zip(free, read.indices, strict=True))
        rows = {i: self.work.extents[i] for i, place in places.items() if not (is_index(place) or isinstance(place, Neighbour))}
        return at(_over_whole_axes(self._inlined[name], rows) if rows else self._inlined[name], places)

    def _definition(self, s: Statement) -> Expr:
        """The value of a statement, as an expression of what it reads."""
        if s.op == "map":
            return s.body
        if s.op == "inverse":
            return s.body  # never read: it is a layer
        if s.along is not None:
            (k,) = index(f"{s.along}_{next(self._fresh)}")
            limits = (k, sp.S.Zero, s.along) if s.op == "prefix" else (k, s.along, self.work.extents[s.along] - 1)
            return bind_indices(SumOver, s.body.xreplace({s.along: k}), [limits])
        assert s.bound is not None
        axis = (s.bound, self.work.extents[s.bound])
        if s.op == "max":
            return over(MaxOver if s.slopes else Shift, s.body, axis)
        return over(Sum, s.body * KroneckerDelta(s.free[0], s.via) if s.op == "scatter" else s.body, axis)
