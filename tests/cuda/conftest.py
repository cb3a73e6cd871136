"""A device that is none: CUDA text built for this CPU, cupy's calls on numpy's memory. And the one that is here, where there is one."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from odesim.base.device import cupy_here
from odesim.base.memo import Memo
from odesim.lab.networks import layers as embedding
from odesim.run import problem
from odesim.run import threads as device_engine
from odesim.stepper import device
from odesim.targets import cuda_system
from odesim.targets.nvrtc import Cubin
from tests.support.cuda_host import make_cupy
from tests.support.cupy_arrays import make_arrays

# a machine with a GPU may have no more than numpy, scipy, sympy, numba, cupy and pytest: what needs these packages is left out there
NEEDS = {
    ("click", "matplotlib", "platformdirs", "xarray", "zarr"): (
        *("test_arrays.py", "test_failures.py", "test_maps.py", "test_requests.py", "test_threads.py", "test_training_runs.py"),
    ),
    ("threadpoolctl",): ("test_training.py",),
}


def installed(package: str) -> bool:
    """Whether a package could be imported."""
    try:
        return find_spec(package) is not None
    except ImportError:
        return False


collect_ignore = [file for packages, files in NEEDS.items() if not all(map(installed, packages)) for file in files]


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """shim(strict, ...) puts a cupy in place whose kernels run here, and returns it; as make_cupy takes them."""

    def install(strict: bool = True, **about: Any) -> ModuleType:
        cupy = make_cupy(strict, **about)
        monkeypatch.setitem(sys.modules, "cupy", cupy)

        def text_itself(text: str, stem: str, options: Any) -> Cubin:
            assert f"--fmad={'false' if strict else 'true'}" in options
            return Cubin(text.encode(), "")

        for module in (cuda_system, device_engine):
            monkeypatch.setattr(module, "compile_cubin", text_itself)
        monkeypatch.setattr(device, "THREADS", 64)
        forget(monkeypatch)
        return cupy

    return install


@pytest.fixture
def arrays(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A cupy in place, and one order for the one sum that has another on a device."""
    cupy = make_arrays()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(embedding, "_by_rows", embedding._by_product)
    return cupy


@pytest.fixture
def on_device(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """on_device(strict): the cupy that is installed, with its GPU. For tests with the marker gpu."""

    def found(strict: bool = True) -> ModuleType:
        forget(monkeypatch)
        return cupy_here()  # type: ignore[no-any-return]

    return found


@pytest.fixture(params=["shim", pytest.param("device", marks=pytest.mark.gpu)])
def cuda(request: pytest.FixtureRequest) -> Callable[..., ModuleType]:
    """cuda(strict) readies the backend cuda: by the shim, and for a test of the same law marked gpu on a device."""
    name = "shim" if request.param == "shim" else "on_device"
    return request.getfixturevalue(name)  # type: ignore[no-any-return]


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was compiled for another device."""
    monkeypatch.setattr(problem, "_PARTS", Memo())
    monkeypatch.setattr(problem, "_CUDA", Memo())
    device_engine.kernel_of.cache_clear()
