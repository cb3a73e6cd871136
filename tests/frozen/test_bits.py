"""Strict runs have the bits that are written down in bits.txt, on every machine."""

import numpy as np
import pytest

from odesim.stepper import drive
from odesim.stepper.methods import METHODS
from tests.frozen.cases import cases, known

KNOWN = known()
SMALL = ("joma.linear", "balls", "dips", "classics.deep_linear_modes", "induction.stages", "hopfield.potts")
OWN = [c for c in cases() if c.model in SMALL and c.how == "one" and c.method in METHODS and str(c) in KNOWN]
DEFAULT = {"joma.nonlinear-tsit5-one", "joma.nonlinear-tsit5-lanes", "joma.nonlinear-rodas5p-one"}  # kernels that other tests compile too


def mark(case):
    """By default those whose kernels are there anyway."""
    return () if str(case) in DEFAULT else pytest.mark.slow


@pytest.mark.parametrize("case", [pytest.param(c, id=str(c), marks=mark(c)) for c in cases() if str(c) in KNOWN])
def test_bits_are_those_of_before(case):
    """States, times of events, status, steps, rejections, right-hand sides: a core that is built anew computes the same."""
    given, *before = KNOWN[str(case)]
    now, *after = case.run()
    if now != given:
        pytest.skip("parameters or starting values, which numpy and scipy compute, are rounded otherwise here")
    assert tuple(after) == tuple(before)


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=str(c), marks=() if str(c) == "joma.linear-tsit5-one" else pytest.mark.slow) for c in OWN]
)
def test_bits_of_a_long_run(case, monkeypatch):
    """A run that goes on with a driver compiled for its system has them too."""
    monkeypatch.setattr(drive, "LONG", 2)
    test_bits_are_those_of_before(case)


def test_bits_are_not_of_a_library_of_products(monkeypatch):
    """One that rounds otherwise, as BLAS does on each processor, changes none, where an event sets states by products too."""
    einsum = np.einsum
    monkeypatch.setattr(np, "einsum", lambda *given, **options: einsum(*given, **options) * (1 + 2**-52))
    test_bits_are_those_of_before(next(c for c in cases() if str(c) == "galore.projected-tsit5-one"))


def test_every_line_is_a_case():
    """No line is of a case that is gone."""
    assert set(KNOWN) <= set(map(str, cases()))
