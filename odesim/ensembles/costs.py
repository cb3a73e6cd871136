"""Costs of right-hand sides and steps, from counted operations. `auto` compares methods by them."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from odesim.stepper.methods import METHODS
from odesim.stepper.problem import Costs
from odesim.stepper.tableau import step_cost
from odesim.targets.compiled import CompiledRHS

LANE = 6.0
"""Cost of a Rosenbrock step in lanes, in steps of tsit5, without the elimination of a dense Jacobian."""


def make_costs(compiled: CompiledRHS, sizes: Mapping[str, int], linear: Callable[[], Any]) -> Costs:
    """Costs of the right-hand side, its derivation and stiff steps, each computed when it is first used.

    linear(): the derivatives of the right-hand side.
    """
    from odesim.ir import sizes as counts

    @cache
    def right() -> float:
        return counts.right_side_cost(compiled.program, sizes, compiled.backend)

    @cache
    def derive() -> float:
        return counts.derivation_cost(compiled.program)

    @cache
    def stiff(stages: int) -> float:
        bound = linear()
        slopes, sparse = bound.linear.derivatives.program, bound.eliminated if compiled.on.compiles else None
        if sparse is not None:
            return counts.eliminated_step_cost(slopes, sparse.entries, bound.sizes, stages, right())
        return counts.stiff_step_cost(slopes, bound.chain, bound.sizes, stages, right())

    @cache
    def kernel() -> float:
        return stiff_lanes_step(right(), linear())

    return Costs(right, derive, stiff, kernel)


def stiff_lanes_step(right: float, bound: Any) -> float:
    """Nanoseconds of one Rosenbrock step in all lanes. right: of a right-hand side; bound: its derivatives."""
    from odesim.ir.jacobian import Chain
    from odesim.ir.sizes import FLOP

    n, chain = bound.layout.size, bound.chain
    dense = FLOP * (2 / 3 * n**3 + 16 * n**2) if isinstance(chain, Chain) and chain.plan.block_extent is None else 0.0
    return LANE * step_cost(METHODS["tsit5"], right, n) + dense
