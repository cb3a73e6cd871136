"""Members with a fixed step: every one is what it would be alone, at the steps' own times and between them."""

from typing import Any

import numpy as np
import pytest
from sympy import IndexedBase, Interval, cos, oo

import odesim
from odesim.symbolic import Param, Source, System, index, sizes, time

MODEL = "joma.nonlinear"
N = 37  # more than twice the lanes, and no multiple of them
RNG = np.random.default_rng(3)
MU, V0 = RNG.uniform(0.5, 2.5, (N, 3)), 0.01 * np.abs(RNG.normal(size=(N, 3)))
# 43 steps, the last one shorter; saved at the start, within a step, three times in one, at the end of one and at the end
RUN: dict[str, Any] = {"span": (0.0, 2.13), "step": 0.05, "save": [0.0, 0.0734, 0.61, 0.62, 0.63, 0.75, 2.11, 2.13]}
METHODS = ("rk4", *(pytest.param(m, marks=pytest.mark.slow) for m in ("euler", "tsit5", "vern7", "dop853")))


def members(**options):
    return odesim.ensemble(MODEL, **{"params": {"mu": MU}, "initial": {"v": V0}, **RUN, **options})


def alone(i, **options):
    return odesim.integrate(MODEL, **{"params": {"mu": MU[i]}, "initial": {"v": V0[i]}, **RUN, **options})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", METHODS)
def test_strict_members_are_single_runs(method, dtype):
    """In strict mode a member has the bits of `integrate`; otherwise it differs by rounding, some 50 steps of it."""
    options = {"method": method, "dtype": dtype, "strict": True}
    found = members(**options)
    assert not found.status.any() and (found.steps == 43).all() and (found.t_end == 2.13).all()
    for i in (0, 15, 16, N - 1):
        np.testing.assert_array_equal(found.v[i], alone(i, **options).y["v"])
