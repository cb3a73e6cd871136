"""What right-hand sides and steps cost, by counting: what `auto` weighs in single runs and for the members of an ensemble."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from odesim.codegen.compiled import CompiledRHS
from odesim.solve.auto import step_cost
from odesim.solve.methods import METHODS
from odesim.solve.problem import Costs

LANE = 4.0
"""A step of a Rosenbrock method in lanes, in steps of tsit5, beside the elimination of a dense Jacobian."""


def make_costs(compiled: CompiledRHS, sizes: Mapping[str, int], linear: Callable[[], Any], *, lanes: bool = False) -> Costs:
    """What the right-hand side and its Jacobian cost; nothing is counted, and no module loaded for it, before it is asked for.

    lanes: a stiff method runs in lanes, whose compiling is not counted.
    """

    @cache
    def right() -> float:
        from odesim.codegen.jacobian.costs import right_side_cost

        return right_side_cost(compiled.program, sizes, compiled.backend)

    @cache
    def derive() -> float:
        from odesim.codegen.jacobian.costs import derivation_cost

        return 0.0 if lanes else derivation_cost(compiled.program)

    @cache
    def stiff(stages: int) -> float:
        from odesim.codegen.jacobian.costs import stiff_step_cost

        return stiff_lanes_step(right(), linear()) if lanes else stiff_step_cost(linear(), stages, right())

    return Costs(right, derive, stiff)


def stiff_lanes_step(right: float, bound: Any) -> float:
    """One step of a Rosenbrock method in all lanes, in nanoseconds. bound: the derivatives of a right-hand side that costs this."""
    from odesim.codegen.jacobian.costs import FLOP

    n = bound.layout.size
    dense = FLOP * (2 / 3 * n**3 + 16 * n**2) if bound.chain.plan.block_extent is None else 0.0
    return LANE * step_cost(METHODS["tsit5"], right, n) + dense
