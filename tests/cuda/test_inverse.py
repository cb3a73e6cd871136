"""Inverses of small matrices by the CUDA text: numba's bits, and NVIDIA's compiler takes it."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import odesim
from tests.cuda.test_nvrtc import check_wide
from tests.cuda.test_wide import same
from tests.targets.test_inverse import SYSTEM

Shim = Callable[..., ModuleType]


def test_wide_has_numba_s_bits(cuda: Shim) -> None:
    """Strict: a matrix a thread, eliminated in the same order."""
    cuda()
    options: dict[str, Any] = {"method": "euler", "step": 0.1, "strict": True, "save": 3}
    same(odesim.integrate(SYSTEM, **options), odesim.integrate(SYSTEM, backend="cuda", **options))


@pytest.mark.slow
def test_nvrtc_compiles_it() -> None:
    check_wide(SYSTEM, "float64", True, "sm_90")
