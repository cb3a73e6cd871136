"""The text that keeps linear invariants of a right-hand side in all lanes, as odesim.stepper.rosenbrock does for one run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.base.arrays import Array
from odesim.engines.lanes.linear_systems import product
from odesim.ir.invariants import exact_sums, parameter_values, weight_operand

if TYPE_CHECKING:
    from odesim.engines.lanes.plan import KernelPlan
    from odesim.engines.lanes.rows import Rows


def restore_lines(plan: "KernelPlan", rows: "Rows", state: str) -> list[str]:
    """Lines that move a state (named <state>0, ...) so that its invariants, one after another, have the values of the start."""
    wanted = sorted({k for invariant in plan.invariants for k in invariant.reads})
    lines = [f"p{k} = S[{rows.p[k] * plan.width} + l]" for k in wanted]
    for i, (invariant, row) in enumerate(zip(plan.invariants, rows.sums, strict=True)):
        terms = []
        for place, weight in zip(invariant.places, invariant.weights, strict=True):
            terms.append(f"m{i}_{place}")
            lines.append(f"m{i}_{place} = {product(weight_operand(weight), f'{state}{place}')}")
        lines += [
            f"rest = S[{row * plan.width} + l] - ({' + '.join(terms)})",
            f"size = {' + '.join(f'{m} * {m}' for m in terms)}",
            "part = rest / size if size > 0.0 and abs(rest) < inf else 0.0",
            *(f"{state}{d} = {state}{d} + {state}{d} * (m{i}_{d} * part)" for d in invariant.places),
        ]
    return lines


def touched(plan: "KernelPlan") -> list[int]:
    """The states that occur in an invariant."""
    return sorted({place for invariant in plan.invariants for place in invariant.places})


def start_sums(plan: "KernelPlan", states: Array, shared: Mapping[str, Any], own: Mapping[str, Array]) -> Array:
    """Values (N, invariants) of the invariants of members that start from states (N, n); (1, invariants) where all have the same.

    shared: parameters of all members. own {name: (N, *shape)}: parameters of each member.
    """
    firsts = plan.formulas.values
    columns = [exact_sums(i, states, parameter_values(firsts, i.reads, shared, own)) for i in plan.invariants]
    return np.stack(np.broadcast_arrays(*columns), axis=1) if columns else np.empty((1, 0))
