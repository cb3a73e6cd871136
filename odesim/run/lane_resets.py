"""The rules of events that set states as a part of a lane kernel: for one member where one event happens, and nothing else.

odesim.run.one_reset has them as text, odesim.run.resets in numpy for any members. Both do the same operations in the same order, so that a
member has the bits of its single run, whose rules are numpy's. Sums and products are rounded alike everywhere; functions such as sin are
not, so that a System whose events have any keeps numpy's rules.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, product
from math import prod
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr, Indexed, Symbol

from odesim.base.arrays import Layout
from odesim.ensembles.request import EnsembleRequest
from odesim.ir.passes import lower_expressions
from odesim.ir.scalars import Formulas
from odesim.ir.sizes import extents
from odesim.run import resets
from odesim.run.event_functions import TIME, factors, rounded
from odesim.stepper.occurrences import MOMENT, ROUNDINGS, TOGETHER
from odesim.symbolic.indices import IndexedBase, array_at, base_name
from odesim.symbolic.layered import layers_in
from odesim.symbolic.parts import Param, key_indices
from odesim.symbolic.reductions import at
from odesim.symbolic.system import System
from odesim.targets.unroll import write_values
from odesim.transforms.events import Guard, Watched, free_of, is_affine, rate

MOST = 16
"""Components of events, for each of which the rules are written out."""


@dataclass(frozen=True, eq=False)
class ResetRules:
    """What the text needs of a System. Functions are numbered as those of events on states; columns as resets.Resetting has them.

    functions, rates: of events on states. values: that resets set. first: the first column of each event. held: of each function its event,
    column, the parameters that hold it, and its place among them. sets {column: (its function, ((component of the state, value), ...))}.
    assumed: components with the sign that they assume. straight: all functions are affine. timed: some events are on the time alone.
    """

    layout: Layout
    functions: Formulas
    rates: Formulas
    values: Formulas
    first: tuple[int, ...]
    held: tuple[tuple[int, int, tuple[str, ...], int, int], ...]
    sets: Mapping[int, tuple[int, tuple[tuple[int, int], ...]]]
    assumed: tuple[tuple[int, float], ...]
    straight: bool
    timed: bool

    def rows(self, parameters: int) -> dict[str, int]:
        """The first place of each part of the memory in which one member is handled; and its end."""
        n, size = self.layout.size, len(self.held)
        counts = {"p": parameters, "free": 1, "close": len(self.first) - 1, **dict.fromkeys(("g", "h", "ahead", "shaken"), 3 * size)}
        counts |= dict.fromkeys(("y", "late", "new", "new_late", "one", "two", "f"), n)
        counts |= dict.fromkeys(("rate", "new_rate", "zero", "before", "held"), size)
        return dict(zip([*counts, "end"], accumulate(counts.values(), initial=0), strict=True))

    @cached_property
    def constants(self) -> dict[str, Any]:
        """What the text calls by capitals."""
        columns, eps = self.first[-1], float(np.finfo(np.float64).eps)
        shaken = [np.concatenate([np.ravel(by[name]) for name in self.layout.names]).tolist() for by in factors(self.layout, "float64")]
        by_time = tuple(float(by[TIME]) for by in factors(self.layout, "float64"))
        return {
            "N": self.layout.size, "SIZE": len(self.held), "NAMES": len(self.first) - 1, "FIRST": list(enumerate(self.first[:-1])),
            "SETTING": [(column, s) for column, (s, _) in self.sets.items()], "ASSUMED": list(self.assumed),
            "STRAIGHT": self.straight, "TIMED": self.timed,
            "EVENT_OF": [(s, held[0]) for s, held in enumerate(self.held)],
            "SHAKEN": list(zip(range(self.layout.size), *shaken, strict=True)), "SHAKEN_TIME": by_time,
            "MARKED": 1 + resets.MARKS * columns, "LAST": 1, "REPEATS": 1 + columns, "ZEROS": 1 + 2 * columns,
            "COUNTS": 1 + 4 * columns, "DUE": 1 + 5 * columns,
            "TOGETHER": TOGETHER, "MOMENT": MOMENT, "ROUNDINGS": ROUNDINGS * eps,
            "ROUNDED": rounded("float64"), "BITS": resets.FEWEST * eps / rounded("float64"), "FEW": float(resets.FEW),
            "AHEAD": resets.AHEAD, "NEVER": resets.NEVER, "TINY": resets.TINY,
        }  # fmt: skip


def reset_rules(request: EnsembleRequest, sizes: Mapping[str, int], whole: Mapping[str, Any]) -> ResetRules | None:
    """The rules of a request whose members stop at events; None where numpy has to apply them. Raises CodegenError."""
    held = request.held
    if held is None or request.dtype != "float64" or request.system.sensitivities or request.options.on.gpu:
        return None
    system, watched, layout = held.original, held.watched, request.layout
    shapes = [extents(w.extents, sizes) for w in watched]
    first = (0, *accumulate(prod(shape) for shape in shapes))
    on_states = [e for e, w in enumerate(watched) if w.times is None and w.side]
    setting = [e for e in on_states if watched[e].event.resets and not watched[e].event.terminal]
    functions = [watched[e].event.expr for e in on_states]
    every = [*functions, *(x for e in setting for x in watched[e].event.resets.values())]
    if not setting or first[-1] > MOST or not all(map(is_rounded_alike, every)):
        return None
    twins = {name: f"rate_{name}" for name in layout.names}
    rates = [rate(system, watched[e].event.expr, twins) for e in on_states]
    if not all(map(is_rounded_alike, rates)):
        return None
    sets, values, s = dict[int, tuple[int, tuple[tuple[int, int], ...]]](), list[Expr](), 0
    held_by = list[tuple[int, int, tuple[str, ...], int, int]]()
    for e in on_states:
        size = prod(shapes[e])
        for d in range(size):
            if e in setting:
                elements = list(elements_set(system, watched[e], np.unravel_index(d, shapes[e]) if shapes[e] else (), layout, sizes))
                if len(dict(elements)) < len(elements) or -1 in dict(elements):
                    return None
                sets[first[e] + d] = s, tuple((place, len(values) + k) for k, (place, _) in enumerate(elements))
                values += [x for _, x in elements]
            held_by.append((e, first[e] + d, watched[e].parameters, size, d))
            s += 1
    arrays = {n: IndexedBase(n, shape=system.shapes[v]) if system.shapes[v] else Symbol(n, real=True) for v, n in twins.items()}
    along = tuple(Param(array, 0.0, doc="derivative") for array in arrays.values())

    def formulas(expressions: Iterable[tuple[Expr, tuple[Symbol, ...]]], *more: Param) -> Formulas:
        outputs = {array_at(f"value{n}", free, system.axes): e for n, (e, free) in enumerate(expressions)}
        return write_values(replace(system, params=(*system.params, *more)), lower_expressions(outputs, system.axes), sizes, whole)

    indices = [watched[e].indices for e in on_states]
    signs = {w.event.state: float(w.event.sign) for w in watched if isinstance(w.event, Guard)}
    return ResetRules(
        layout,
        formulas(zip(functions, indices, strict=True)),
        formulas(zip(rates, indices, strict=True), *along),
        formulas((x, ()) for x in values),
        first,
        tuple(held_by),
        sets,
        tuple((start + d, signs[v]) for v, start, end in ranges(layout) if v in signs for d in range(end - start)),
        all(is_affine(system, f) for f in functions),
        any(w.times is not None for w in watched),
    )


def is_rounded_alike(e: Any) -> bool:
    """Whether an expression has one value in any order: of sums, products and quotients of two, of numbers, parameters and states.

    sympy has the terms of a longer sum in an order that follows from the kinds of its symbols, and members have their own.
    """
    if isinstance(e, sp.Pow):
        return e.exp == -1 and is_rounded_alike(e.base)
    if isinstance(e, sp.Add | sp.Mul):
        return len(e.args) - (e.args[0] == -1) <= 2 and all(map(is_rounded_alike, e.args))
    return isinstance(e, Symbol | Indexed | sp.Number) and not layers_in(e)


def elements_set(
    system: System, w: Watched, component: Iterable[Any], layout: Layout, sizes: Mapping[str, int]
) -> Iterator[tuple[int, Expr]]:
    """The elements that a component of an event sets: places in the flat state, -1 for one that others choose, and values."""
    here = dict(zip(w.indices, map(int, component), strict=True))
    offsets = dict(zip(layout.names, layout.offsets, strict=False))
    for key, e in w.event.resets.items():
        free = free_of(key, w.indices, system.axes)
        for along in product(*(range(extents((system.axes[j],), sizes)[0]) for j in free)):
            swap = here | dict(zip(free, along, strict=True))
            place, shape = [at(j, swap) for j in key_indices(key)], extents(system.shapes[base_name(key)], sizes)
            known = all(isinstance(j, int | sp.Integer) for j in place)
            flat = int(np.ravel_multi_index(tuple(map(int, place)), shape)) if known and shape else 0
            yield offsets[base_name(key)] + flat if known else -1, at(e, swap)


def ranges(layout: Layout) -> Iterable[tuple[str, int, int]]:
    """The name of each state with its first place and its end."""
    return zip(layout.names, layout.offsets[:-1], layout.offsets[1:], strict=True)
