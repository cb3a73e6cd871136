"""Formulas of a System, evaluated for many members at once: names that differ between members get a leading member index."""

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import sympy as sp
from sympy import Expr, Indexed, IndexedBase, Symbol

from odesim.base.arrays import Array
from odesim.codegen.whole_arrays import ArrayFunction, value_at
from odesim.inputs.schema import Formula
from odesim.inputs.sizes import Extent, make_extent
from odesim.ir.passes import lower_expressions
from odesim.symbolic.indices import base_name, index
from odesim.symbolic.indices import sizes as size_symbols
from odesim.symbolic.layered import Layer, names_read
from odesim.symbolic.reductions import at

(MEMBER,), (MEMBERS,) = index("_member"), size_symbols("_members")  # no name of a model begins with _
ENTRIES = 1 << 20  # of the largest temporary array: more members are evaluated in parts


def own_names_read(formula: Formula, own: frozenset[str]) -> frozenset[str]:
    """The names that a formula reads among `own`, those that differ between members."""
    return own & names_read(formula.expr)


def member_values(
    formula: Formula, axes: Mapping[Symbol, Any], sizes: Mapping[str, int], shared: Mapping[str, Any], own: Mapping[str, Array]
) -> Array:
    """The formula's values (N, *shape) for members with rows own {name: (N, *shape)}; it reads at least one of them.

    shared {name: value}: what all members have in common.
    """
    function, loops = _batch_function(formula.expr, formula.indices, tuple(axes.items()), frozenset(own))
    count = len(next(iter(own.values())))
    most = max((prod(e.value(sizes) for e in space) for space in loops), default=1)
    step = max(1, ENTRIES // max(most, 1))
    out = np.empty((count, *(e.value(sizes) for e in formula.extents)))
    for first in range(0, count, step):
        part = {name: values[first : first + step] for name, values in own.items()}
        size = len(next(iter(part.values())))
        out[first : first + size] = function({**sizes, MEMBERS.name: size}, {**shared, **part})["_value"]
    return out


@lru_cache(maxsize=64)
def _batch_function(
    expr: Expr, indices: tuple[Symbol, ...], axes: tuple[tuple[Symbol, Any], ...], own: frozenset[str]
) -> tuple[ArrayFunction, tuple[tuple[Extent, ...], ...]]:
    """An expression as a function of many members, and the extents of its loops, without the one over members.

    a*x[m]  ->  a[_member]*x[_member, m] where both differ between members
    """
    extents = {MEMBER: MEMBERS, **dict(axes)}
    program = lower_expressions({value_at((MEMBER, *indices), extents): _with_member_index(expr, own)}, extents)
    loops = {tuple(i for i in s.loops if i != MEMBER) for s in program.statements()}
    return ArrayFunction(program, products=False), tuple(tuple(make_extent(program.extents[i]) for i in space) for space in loops)


def _with_member_index(e: Any, own: frozenset[str]) -> Any:
    if isinstance(e, Symbol):
        return IndexedBase(e.name, shape=(MEMBERS,))[MEMBER] if e.name in own else e
    if isinstance(e, Indexed) and isinstance(e.base, Layer):
        return _with_member_index(at(e.base.definition, e.base.places(e)), own)
    if isinstance(e, Indexed):
        name, indices = base_name(e), [_with_member_index(i, own) for i in e.indices]
        return IndexedBase(name, shape=(MEMBERS, *e.base.shape))[(MEMBER, *indices)] if name in own else e.base[tuple(indices)]
    if isinstance(e, sp.Tuple) and len(e) == 3:  # the limits of a sum are sizes
        return e
    return e.func(*(_with_member_index(a, own) for a in e.args)) if e.args else e
