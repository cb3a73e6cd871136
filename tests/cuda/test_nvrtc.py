"""NVIDIA's compiler takes every text, for three architectures, without a device."""

import re

import pytest

from odesim.codegen.compiled import CompiledRHS
from odesim.codegen.cuda_wide import wide_text
from odesim.codegen.nvrtc import compile_cubin, options_for
from odesim.errors import CodegenError
from odesim.registry import list_models, load_model
from odesim.solve.explicit.device import driver_text

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
WIDE_REGISTERS = 128  # two blocks of 256 threads on a multiprocessor with 65536


def said(log: str, what: str) -> int:
    """A number of the compiler's report."""
    found = re.search(what, log)
    assert found is not None, log
    return int(found[1])


@pytest.mark.parametrize("model", list_models())
def test_nvrtc_compiles_one_large_system(model: str) -> None:
    """All architectures for one model, one for the others; few enough registers that all blocks run at once."""
    system = load_model(model)
    made = CompiledRHS(system, "cuda", "float64", True)
    text = wide_text(system, made.program, made.events_program, driver_text(), dtype="float64", strict=True).source
    for arch in ARCHITECTURES if model == "joma.nonlinear" else ARCHITECTURES[1:2]:
        cubin = compile_cubin(text, "wide", options_for(arch, strict=True))
        assert cubin.code.startswith(b"\x7fELF")
        assert said(cubin.log, r"Used (\d+) registers") <= WIDE_REGISTERS


def test_nvrtc_says_what_is_wrong() -> None:
    """The first error, in one sentence."""
    with pytest.raises(CodegenError, match=r'NVRTC \d+\.\d+ does not compile .*identifier "y" is undefined'):
        compile_cubin('extern "C" __global__ void f(double* x) { *x = y; }', "wrong", options_for("sm_90", strict=True))
