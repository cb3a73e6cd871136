"""A right-hand side with numbers and its derivatives, from the parts of odesim that stiff runs and adjoints are made of."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.ir.derive import jvp
from odesim.symbolic import System
from odesim.targets.compiled import BoundNumba, CompiledRHS, compile_system


def rates(system: System, sizes: Mapping[str, int], params: Mapping[str, Any], y: Array, backend: str = "numpy") -> Array:
    """The right-hand side (n,) at time 0 and y (n,), compiled or on whole arrays."""
    compiled, out = compile_system(system, backend=backend), np.empty_like(y)
    if backend == "numba":
        compiled.bind(sizes, params)(0.0, y, out)
        return out
    layout = compiled.layout(dict(sizes))
    values = compiled.arrays(sizes, {**params, **layout.split(y), "t": 0.0})
    for name, view in layout.split(out).items():
        view[...] = values[f"d_{name}"]
    return out


def jacobian(bound: BoundNumba, t: float, y: Array) -> Any:
    """The Jacobian at y (n,), in its cheapest form."""
    return bound.compiled.linear.bind(bound.sizes, bound.params, bound.layout).jacobian(t, y)


def forward(bound: BoundNumba, t: float, y: Array, w: Array) -> Array:
    """The product (n,) of the Jacobian at y (n,) with w (n,), compiled."""
    c = bound.compiled
    both = np.concatenate([y, w])
    rates = np.full_like(both, np.nan)
    CompiledRHS(jvp(c.system), c.backend, c.dtype, c.strict).bind(bound.sizes, bound.params)(t, both, rates)
    return rates[len(y) :]


def backward(bound: BoundNumba, t: float, y: Array, u: Array) -> Array:
    """The product (n,) of the transposed Jacobian at y (n,) with u (n,), on whole arrays."""
    split, out = bound.layout.split, np.full_like(y, np.nan)
    products = bound.compiled.transposed(bound.sizes, {**bound.params, **split(y), **{f"u_{n}": a for n, a in split(u).items()}, "t": t})
    for name, view in split(out).items():
        view[...] = products[f"d_u_{name}"]
    return out
