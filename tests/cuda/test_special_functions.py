"""Special functions in CUDA text: members and one system have the bits of numba's strict mode."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import odesim
from tests.targets.test_special_functions import COMPILED, FEW, INSIDE, a, together, x


@pytest.mark.slow
@pytest.mark.parametrize("names", [FEW, pytest.param(COMPILED, marks=pytest.mark.slow)], ids=["few", "all"])
def test_members_and_one_system(names: tuple[str, ...], cuda: Callable[..., ModuleType]) -> None:
    """x' = -a f(b + x/9), a state for each function f."""
    cuda()
    system = together([e.xreplace({x: places[1] + x / 9}) for e, _, places in (INSIDE[name] for name in names)], scale=-a)
    options: dict[str, Any] = {"method": "tsit5", "strict": True, "rtol": 1e-9, "atol": 1e-12}
    for run in (
        lambda backend: odesim.ensemble(system, params={"a": [0.1, 0.2]}, backend=backend, **options),
        lambda backend: odesim.integrate(system, backend=backend, **options).y,
    ):
        host, device = run("numba"), run("cuda")
        for state in system.states:
            np.testing.assert_array_equal(np.asarray(host[state]), np.asarray(device[state]))
