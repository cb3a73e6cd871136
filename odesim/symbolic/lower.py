"""Lowering: expressions become statements without sums, in which each reduction is a temporary with a name."""

from collections.abc import Iterable, Mapping
from typing import Any

from sympy import Expr, Symbol

from odesim.ir.lowering import Lowering, default_sizes, derivative, index_ranges
from odesim.ir.passes import passes, share
from odesim.ir.program import Program
from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import Key, all_names, key_indices
from odesim.symbolic.reductions import canonical
from odesim.symbolic.system import System


def lower(system: System, sizes: Mapping[str, int] | None = None) -> Program:
    """The Program of a System's right-hand sides; the output for state v is called d_v.

    sizes: {name: int}, those for which the order of sums over several indices is cheapest; default those of the System.
    """
    outputs = {derivative(key): rhs for key, rhs in system.equations.items()}
    given = default_sizes(system) if sizes is None else sizes
    return lower_expressions(outputs, system.axes, all_names(system), index_ranges(system), given)


def lower_expressions(
    outputs: Mapping[Key, Expr],
    axes: Mapping[Symbol, Any],
    taken: Iterable[str] = (),
    ranges: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Program:
    """The Program of {target: expression}, with outputs in this order.

    taken: names that no temporary (r0, r1, ...) and no summed index may have. ranges, sizes: those of a Lowering.
    """
    expressions = {target: canonical(e) for target, e in outputs.items()}
    work = Lowering(axes, expressions.values(), taken, ranges, sizes)
    for target, e in expressions.items():
        work.assign(target, e)
    statements = share(work.statements, work)
    indices = {base_name(t): key_indices(t) for t in outputs}
    return Program(indices, dict(work.extents), passes(statements, work.extents), tuple(work.orders))
