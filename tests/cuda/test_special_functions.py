"""Special functions in CUDA text: members and one system have the bits of numba's strict mode."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sympy as sp

import odesim
from tests.cuda.test_nvrtc import check_wide
from tests.cuda.test_wide import same
from tests.targets.test_inverse import SYSTEM
from tests.targets.test_special_functions import COMPILED, FEW, INSIDE, a, together, x

# atan2(x, -2) has its cut at x = 0, a condition on a state that jumps: threads refuse it
WHOLE = {name: sp.atan2(x, 2) if name == "atan2" else INSIDE[name][0] for name in COMPILED}


@pytest.mark.slow
@pytest.mark.parametrize("names", [FEW, pytest.param(COMPILED, marks=pytest.mark.slow)], ids=["few", "all"])
def test_members_and_one_system(names: tuple[str, ...], cuda: Callable[..., ModuleType]) -> None:
    """x' = -a f(b + x/9), a state for each function f."""
    cuda()
    inner = {name: INSIDE[name][2][1] + x / 9 for name in names}
    system = together([WHOLE[name].xreplace({x: inner[name]}) for name in names], scale=-a)
    options: dict[str, Any] = {"method": "tsit5", "strict": True, "rtol": 1e-9, "atol": 1e-12}
    for run in (
        lambda backend: odesim.ensemble(system, params={"a": [0.1, 0.2]}, backend=backend, **options),
        lambda backend: odesim.integrate(system, backend=backend, **options).y,
    ):
        host, device = run("numba"), run("cuda")
        for state in system.states:
            np.testing.assert_array_equal(np.asarray(host[state]), np.asarray(device[state]))


# Inverses of small matrices by the CUDA text: numba's bits, and NVIDIA's compiler takes it.

Shim = Callable[..., ModuleType]


def test_wide_has_numba_s_bits(cuda: Shim) -> None:
    """Strict: a matrix a thread, eliminated in the same order."""
    cuda()
    options: dict[str, Any] = {"method": "euler", "step": 0.1, "strict": True, "save": 3}
    same(odesim.integrate(SYSTEM, **options), odesim.integrate(SYSTEM, backend="cuda", **options))


@pytest.mark.slow
def test_nvrtc_compiles_it() -> None:
    check_wide(SYSTEM, "float64", True, "sm_90")
