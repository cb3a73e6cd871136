"""NVIDIA's compiler takes every text, for three architectures, without a device."""

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odesim.base.errors import CodegenError
from odesim.base.parsing import parse
from odesim.inputs.registry import list_models, load_model
from odesim.stepper.device import driver_text
from odesim.symbolic import System, sensitivities
from odesim.targets import nvrtc
from odesim.targets.compiled import CompiledRHS
from odesim.targets.cuda_system import wide_text
from odesim.targets.cuda_text import Driver, ModuleScope
from odesim.targets.nvrtc import compile_cubin, options_for
from tests.support.matrix import in_turn, slow_but
from tests.support.systems import SYSTEMS
from tests.support.threads import IN_THREADS, METHODS, MODELS, thread_text
from tests.targets.test_special_functions import COMPILED, INSIDE, together

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
WIDE_REGISTERS = 128  # two blocks of 256 threads on a multiprocessor with 65536


def said(log: str, what: str) -> int:
    """A number of the compiler's report."""
    found = re.search(what, log)
    assert found is not None, log
    return int(found[1])


QUICK = ("hierarchy.grouped", "joma.nonlinear")
HOWS = (("float64", True), ("float64", False), ("float32", True))  # every model by one of the last two: the first differs in flags
FIRST_WIDE = [("reversal.row", "float64", False, "sm_90")]
WIDE = [*FIRST_WIDE, ("scan_snap.full", "float64", False, "sm_90")]
WIDE += [(name, *how, arch) for name in QUICK for how, arch in in_turn(HOWS, ARCHITECTURES)]
OTHERS = [name for name in list_models() if name not in ("reversal.row", "scan_snap.full", *QUICK)]
OWN = [(name, *how) for name, how in in_turn(OTHERS[::2], HOWS[1:])]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "dtype", "strict", "arch"), slow_but(WIDE, FIRST_WIDE, several=True))
def test_nvrtc_compiles_one_large_system(model: str, dtype: str, strict: bool, arch: str) -> None:
    """Four models, every architecture with two of them: few enough registers that all blocks run at once."""
    check_wide(load_model(model), dtype, strict, arch)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "dtype", "strict"), OWN)
def test_nvrtc_compiles_the_functions_of_models(model: str, dtype: str, strict: bool) -> None:
    """Of every second of the others what is its own."""
    check_wide(load_model(model), dtype, strict, "sm_90", alone())


@pytest.mark.slow
@pytest.mark.parametrize(("model", "name"), [("scan_snap.full", "eta_Y"), ("scan_snap.symmetric", "p")])
def test_nvrtc_compiles_sensitivities(model: str, name: str) -> None:
    """A right-hand side of several hundred lines has no more registers than another one."""
    check_wide(sensitivities(load_model(model), name), "float64", False, "sm_90", alone())


@pytest.mark.parametrize("name", [name if name == "sinc" else pytest.param(name, marks=pytest.mark.slow) for name in COMPILED])
def test_nvrtc_compiles_special_functions(name: str) -> None:
    """Each function alone."""
    check_wide(together([INSIDE[name][0]]), "float64", True, "sm_90", alone())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["neighbours", "causal"])
def test_nvrtc_compiles_words_of_the_language(name: str) -> None:
    """Words that have functions of their own in the text."""
    check_wide(SYSTEMS[name], "float64", True, "sm_90", alone())


def alone() -> Driver:
    """A kernel without the integrator: the right-hand side, events and laws, and the team that computes them."""
    steps = parse("def run(at):\n    return 0\n").body[0]
    assert isinstance(steps, ast.FunctionDef)
    whole = driver_text(False)
    terms = {name: f for name, f in whole.scope.functions.items() if name.endswith("_of") or name in ("square", "larger")}
    return Driver(ModuleScope({"run": steps, **terms}, {}, "solve_"), whole.places, whole.sums)


def check_wide(system: System, dtype: str, strict: bool, arch: str, driver: Driver | None = None) -> None:
    """The compiler takes the text, and two blocks of it have room on a multiprocessor. driver: default the whole integrator."""
    made = CompiledRHS(system, "cuda", dtype, strict)
    text = wide_text(
        system, made.program, made.events_program, made.laws_program, driver or driver_text(False), dtype=dtype, strict=strict
    ).source
    cubin = compile_cubin(text, "wide", options_for(arch, strict=strict))
    assert cubin.code.startswith(b"\x7fELF")
    assert said(cubin.log, r"Used (\d+) registers") <= WIDE_REGISTERS


SMALL = {"joma.nonlinear": {"sizes": {"M": 8}}, "joma.nonlinear_softmax": {"sizes": {"M": 8}}, "hierarchy.grouped": {}}
MORE = {
    "joma.linear": {"sizes": {"M": 8}},
    "joma.linear_softmax": {"sizes": {"M": 8}},
    "joma.linear_multinode": {"sizes": {"M": 4, "K": 2}},
}
MORE |= {name: {} for name in ("scan_snap.reduced_symmetric", "scan_snap.theorem4")}
ASKED = [(saves, events) for saves in (False, True) for events in (0, 8)]
SPILLS: list[Any] = [(model, *asked, False) for model, asked in in_turn(list(SMALL) * 2, ASKED)] + [("joma.nonlinear", True, 8, True)]
FAST = [("joma.nonlinear", True, 8, False), ("hierarchy.grouped", True, 0, False)]  # the most that is asked of one, and what spills most
SPILLS = [pytest.param(*row, marks=[pytest.mark.slow] * (row not in FAST)) for row in SPILLS]
LITTLE = 40  # bytes, five numbers: of two models on one architecture each; a step has some thousand instructions
SPILLS += [pytest.param(name, *ASKED[-1], strict, marks=pytest.mark.slow) for name, strict in in_turn(MORE, (False, True))]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "saves", "events", "strict"), SPILLS)
def test_nvrtc_threads_do_not_spill(model: str, saves: bool, events: int, strict: bool, shim: Callable[..., Any]) -> None:
    """Up to 8 states by tsit5 on all architectures, whatever is asked: at most a handful of a thread's numbers leave its registers."""
    shim(strict)
    options = {**MODELS[model], **{**SMALL, **MORE}[model]}
    text = thread_text(model, "tsit5", save=3 if saves else None, max_events=events, strict=strict, **options)
    for arch in ARCHITECTURES:
        log = compile_cubin(text, "threads", options_for(arch, strict=strict)).log
        spilled = [int(n) for n in re.findall(r"(\d+) bytes spill", log)]
        assert spilled and max(spilled) <= LITTLE


THREADS = [("joma.nonlinear", method) for method in METHODS] + [(name, "tsit5") for name in IN_THREADS[::3] if name != "joma.nonlinear"]
FIRST = [*(("joma.nonlinear", method) for method in ("euler", "tsit5", "rodas5p")), ("scan_snap.theorem4", "tsit5")]


THREAD_CASES = [(*case, "sm_90") for case in THREADS] + [(*case, arch) for case in FIRST for arch in ARCHITECTURES if arch != "sm_90"]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "method", "arch"), slow_but(THREAD_CASES, [("joma.nonlinear", "euler", "sm_90")], several=True))
def test_nvrtc_compiles_threads(model: str, method: str, arch: str, shim: Callable[..., Any]) -> None:
    """Every third model at a size that a thread holds, every method for one of them; every architecture with a few."""
    shim()
    step = 0.1 if method in ("euler", "rk4") else None
    text = thread_text(model, method, save=3, strict=True, step=step, **MODELS[model])
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
