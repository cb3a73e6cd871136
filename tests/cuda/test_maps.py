"""Maps by the CUDA text: one large system and members as threads have numba's bits, and NVIDIA's compiler takes both texts."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.targets.nvrtc import compile_cubin, options_for
from tests.cuda.test_nvrtc import check_wide
from tests.cuda.test_wide import same
from tests.support.maps import CASES
from tests.support.matrix import slow_but
from tests.support.threads import thread_text

Shim = Callable[..., ModuleType]
EVENTS = {"momentum": "low: w[0] - 0.3", "tent": "low: x - 0.7; terminal"}
ONE = {"momentum": "eta", "hopfield": "beta", "schedule": "eta"}  # a parameter that differs between members


@pytest.mark.parametrize("name", CASES)
def test_one_map_has_numba_s_bits(name: str, cuda: Shim) -> None:
    """All states after every update, in strict mode, with events where there are some."""
    cuda()
    options: dict[str, Any] = {"strict": True, "save": 100, "events": EVENTS.get(name, ())}
    same(odesim.integrate(CASES[name].system, **options), odesim.integrate(CASES[name].system, backend="cuda", **options))


def test_an_update_that_is_not_finite(cuda: Shim) -> None:
    """The run ends there at the same state."""
    cuda()
    options: dict[str, Any] = {"strict": True, "params": {"eta": 1e9}}
    same(odesim.integrate(CASES["momentum"].system, **options), odesim.integrate(CASES["momentum"].system, backend="cuda", **options))


@pytest.mark.first(1)
@pytest.mark.parametrize("save", [None, 5])
@pytest.mark.parametrize("name", slow_but(ONE, ["momentum"]))
def test_members_have_numba_s_bits(name: str, save: int | None, shim: Shim) -> None:
    """Members as threads: states, events, statuses; one of them ends early."""
    shim()
    options: dict[str, Any] = {"params": {ONE[name]: [0.1, 0.3, 1e300]}, "strict": True, "save": save, "events": EVENTS.get(name, ())}
    here, there = (odesim.ensemble(CASES[name].system, backend=backend, **options) for backend in ("numba", "cuda"))
    for variable in here:
        np.testing.assert_array_equal(here[variable], there[variable])


@pytest.mark.slow
def test_nvrtc_compiles_maps(shim: Shim) -> None:
    """One large system, and a thread's text with events and saved times."""
    check_wide(CASES["momentum"].system, "float64", True, "sm_90")
    shim()
    text = thread_text(CASES["momentum"].system, "map", save=3, strict=True, grid={"eta": [0.1, 0.2]}, events=EVENTS["momentum"])
    assert compile_cubin(text, "threads", options_for("sm_90", strict=True)).code.startswith(b"\x7fELF")
