"""Strict runs have the bits that are written down in bits.txt, on every machine."""

import pytest

from tests.frozen.cases import cases, known

KNOWN = known()
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


def test_every_line_is_a_case():
    """No line is of a case that is gone."""
    assert set(KNOWN) <= set(map(str, cases()))
