"""The short front end: the machine code that numba's own passes give, and numba as it was afterwards."""

from contextlib import nullcontext

import llvmlite.binding as llvm
import pytest

import odesim
from odesim.targets import native
from odesim.targets.compiled import compile_system
from odesim.targets.native import scalar_front_end
from tests.support.systems import SYSTEMS

LOOPS = """
import numba as nb
from odesim.runtime.memory import doubles
from odesim.runtime.elementary import exp

WIDE = False


@nb.njit
def part(x, k):
    return exp(x[k]) if k == 2 else x[k] / (1 + k) if WIDE else -x[k] * 0.5


@nb.njit("void(int64, int64)", error_model="numpy")
def run(address, n):
    x = doubles(address)
    total, pair = 0.0, (1.5, 2.5)
    for i in range(n):
        for j in range(3):
            total += part(x, j) * pair[1] if x[i] > total and not j >= i else abs(x[i]) + pair[0]
        while total > 8:
            total -= 3
    x[0] = total
"""


def code_of(text, names, stem):
    """The instructions of the functions of a module."""
    file = llvm.ObjectFileRef.from_data(native._build(text, stem, names))
    return b"".join(section.data() for section in file.sections() if section.is_text())


def same(text, names, monkeypatch):
    """Whether a module has the same instructions without the short front end."""
    short = code_of(text, names, "short")
    assert len(short) > 100
    with monkeypatch.context() as m:
        m.setattr(native, "scalar_front_end", nullcontext)
        return short == code_of(text + "\n", names, "whole")


@pytest.mark.parametrize("case", ["loops", "rows"])
def test_the_machine_code_is_that_of_all_passes(case, monkeypatch):
    text, names = (LOOPS, ("run",)) if case == "loops" else (compile_system(SYSTEMS[case]).text.source, ("stage", "combine"))
    assert same(text, names, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_the_machine_code_of_ensembles_is_that_of_all_passes(method, monkeypatch):
    built, build = [], native._build

    def record(text, stem, names):
        built.append((text, names))
        return build(text, stem, names)

    with monkeypatch.context() as m:
        m.setattr(native, "_read", lambda name: None)
        m.setattr(native, "_build", record)
        native._addresses.cache_clear()
        odesim.ensemble("joma.nonlinear", members=8, vary={"mu": "normal(1, 0.1)"}, method=method, save=3)
    assert built
    assert all(same(text, names, monkeypatch) for text, names in built)


def test_numba_is_as_it_was():
    from numba.core import base, compiler
    from numba.core.types.functions import BaseFunction

    def parts():
        return compiler.Compiler.define_pipelines, base._has_loc, BaseFunction.get_call_type, base.BaseContext.get_function

    before = parts()
    with pytest.raises(ZeroDivisionError), scalar_front_end():
        assert all(now is not old for now, old in zip(parts(), before, strict=True))
        _ = 1 / 0
    assert parts() == before
