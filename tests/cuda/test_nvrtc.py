"""NVIDIA's compiler takes every text, for three architectures, without a device."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odesim.codegen import nvrtc
from odesim.codegen.compiled import CompiledRHS
from odesim.codegen.cuda_wide import wide_text
from odesim.codegen.nvrtc import compile_cubin, options_for
from odesim.errors import CodegenError
from odesim.registry import list_models, load_model
from odesim.solve.explicit.device import driver_text
from tests.cuda.threads import METHODS, MODELS, thread_text

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
EVERY = [arch if arch == "sm_90" else pytest.param(arch, marks=pytest.mark.slow) for arch in ARCHITECTURES]
WIDE_REGISTERS = 128  # two blocks of 256 threads on a multiprocessor with 65536


def said(log: str, what: str) -> int:
    """A number of the compiler's report."""
    found = re.search(what, log)
    assert found is not None, log
    return int(found[1])


@pytest.mark.parametrize("arch", EVERY)
@pytest.mark.parametrize("model", list_models())
def test_nvrtc_compiles_one_large_system(model: str, arch: str) -> None:
    """Every model: few enough registers that all blocks run at once."""
    system = load_model(model)
    made = CompiledRHS(system, "cuda", "float64", True)
    text = wide_text(system, made.program, made.events_program, driver_text(), dtype="float64", strict=True).source
    cubin = compile_cubin(text, "wide", options_for(arch, strict=True))
    assert cubin.code.startswith(b"\x7fELF")
    assert said(cubin.log, r"Used (\d+) registers") <= WIDE_REGISTERS


# states, saved times, events: what a thread of tsit5 holds in registers alone; more events than that need memory
HELD = [(1, True, 8), (4, False, 0), (4, True, 0), (4, True, 8), (8, False, 0), (8, True, 0)]


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "fast"])
@pytest.mark.parametrize(("states", "saves", "events"), HELD)
@pytest.mark.parametrize("model", ["joma.nonlinear", "joma.nonlinear_softmax"])
def test_nvrtc_threads_do_not_spill(model: str, states: int, saves: bool, events: int, strict: bool, shim: Callable[..., Any]) -> None:
    """Small systems by tsit5 on all architectures: no number of a thread has to leave its registers."""
    shim(strict)
    text = thread_text(model, "tsit5", sizes={"M": states}, save=3 if saves else None, max_events=events, strict=strict)
    for arch in ARCHITECTURES:
        log = compile_cubin(text, "threads", options_for(arch, strict=strict)).log
        assert said(log, r"Used (\d+) registers") <= 255
        assert [int(n) for n in re.findall(r"(\d+) bytes spill", log)] == [0] * len(re.findall("bytes spill", log))


@pytest.mark.parametrize("arch", EVERY)
@pytest.mark.parametrize(("model", "options"), MODELS.items(), ids=list(MODELS))
def test_nvrtc_compiles_threads(model: str, options: dict[str, Any], arch: str, shim: Callable[..., Any]) -> None:
    """Every model at a size that a thread holds; every method for one of them."""
    shim()
    for method in METHODS if model == "joma.nonlinear" else ["tsit5"]:
        step = 0.1 if method in ("euler", "rk4") else None
        text = thread_text(model, method, save=3, strict=True, step=step, **options)
        assert compile_cubin(text, "threads", options_for(arch, strict=True)).code.startswith(b"\x7fELF")


def test_nvrtc_says_what_is_wrong() -> None:
    """The first error, in one sentence."""
    with pytest.raises(CodegenError, match=r'NVRTC \d+\.\d+ does not compile .*identifier "y" is undefined'):
        compile_cubin('extern "C" __global__ void f(double* x) { *x = y; }', "wrong", options_for("sm_90", strict=True))


def test_nvrtc_is_looked_for_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest of all wheels, whatever their folders are called, then CUDA's own; no library of another kind."""
    lie = {"a/nvidia/cuda_nvrtc/lib": "12", "b/nvidia/cu13/lib": "13", "cuda/lib64": "13.1"}
    for folder, number in lie.items():
        (tmp_path / folder).mkdir(parents=True)
        for name in (f"libnvrtc.so.{number}", f"libnvrtc.alt.so.{number}", f"libnvrtc-builtins.so.{number}", "libnvrtc.so.old"):
            (tmp_path / folder / name).touch()
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "a"), str(tmp_path / "b")])
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "none"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "cuda"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    found = [path for path in nvrtc._places() if path.startswith(str(tmp_path))]
    assert [str(Path(path).relative_to(tmp_path)) for path in found] == [
        "b/nvidia/cu13/lib/libnvrtc.so.13",
        "a/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "cuda/lib64/libnvrtc.so.13.1",
    ]
