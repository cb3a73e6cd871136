"""The task reversal: the recorded table of losses, what is held out, its theory, its refusals."""

import numpy as np
import pytest

import odesim
from odesim.base.errors import ParamError

# of M = 802 tokens, after so many epochs, by an independent program of one row: of steps, and of the flow
EPOCHS = (1, 2, 5, 10, 20, 50, 100)
STEPS = {
    0.1: (6.58724, 6.48740, 6.18806, 5.69003, 4.70004, 1.97989, 0.33861),
    0.5: (6.18792, 5.68965, 4.20841, 1.95910, 0.31792, 0.05962, 0.02432),
    0.9: (5.78893, 4.89501, 2.34634, 0.39006, 0.09412, 0.02707, 0.01226),
}
FLOW = {
    0.1: (6.58725, 6.48741, 6.18810, 5.69014, 4.70042, 1.98531, 0.34382),
    0.5: (6.18810, 5.69014, 4.21147, 1.98531, 0.34382, 0.06213, 0.02488),
    0.9: (5.78962, 4.89738, 2.37844, 0.44974, 0.10397, 0.02831, 0.01257),
}
FEW = {"pairs": 4, "both": 0.5}  # an epoch of 6 facts: rows learn alone, and do not know how many they are


@pytest.mark.parametrize("eta_Y", STEPS)
def test_the_table(eta_Y):
    """Losses after whole epochs, of SGD and of the flow: to the last digit given."""
    found = odesim.compare("reversal.row", task="reversal", settings={**FEW, "eta_Y": eta_Y}, steps=600, save=101)
    np.testing.assert_allclose(found.training["loss"][0, EPOCHS], STEPS[eta_Y], atol=5.1e-6)
    np.testing.assert_allclose(found.theory["loss"][0, EPOCHS], FLOW[eta_Y], atol=5.1e-6)


def test_what_is_held_out_stays():
    """p of reversed facts is 1/M after any training, to the rounding of one softmax; all trained facts are alike after an epoch."""
    run = odesim.train("reversal", settings=FEW, seeds=(0, 3), steps=60, save=11)
    assert run.observables["p_held_out"] == pytest.approx(1 / 802, rel=1e-13)
    np.testing.assert_allclose(run.observables["p_least"], run.observables["p_target"], rtol=1e-12)


@pytest.mark.slow
def test_with_replacement_rows_scatter():
    """At t1 = N ln M / eta_Y the mean of p is that of the flow, .3635, within 4 standard errors, which 6 seeds have; rows are not alike."""
    given = {"pairs": 40, "vocabulary": 802, "order": "replacement", "eta_Y": 0.5}
    steps = round(68 * np.log(802) / 0.5)
    run = odesim.train("reversal", settings=given, seeds=range(6), steps=steps, save=2)
    p = run.observables["p_target"][:, -1]
    assert abs(p.mean() - 0.3635) < 4 * 0.25 / np.sqrt(6 * 68)  # .25: the deviation of one row
    assert np.all(run.observables["p_least"][:, -1] < 0.15)


def test_half_the_rate_half_the_error():
    """SGD in shuffled epochs tends to the flow of the rows, with order 1 (15 % for the second)."""
    given = {**FEW, "vocabulary": 20}
    errors = [
        {
            row["observable"]: row["relative_l2"]
            for row in odesim.compare(
                system, task="reversal", settings={**given, "eta_Y": eta}, steps=round(24 / eta), save=round(4 / eta) + 1, observables=names
            ).table()
        }
        for eta in (0.1, 0.05)
        for system, names in (("reversal.row", ["loss", "p_target", "v"]),)
    ]
    for name, error in errors[0].items():
        assert error / errors[1][name] == pytest.approx(2, rel=0.15), name


@pytest.mark.slow
def test_the_full_decoder_is_its_rows():
    """reversal.full beside the training has the losses of reversal.row, and Y of the rows that are held out is 0."""
    given = {**FEW, "vocabulary": 12, "eta_Y": 0.1}
    full = odesim.compare("reversal.full", task="reversal", settings=given, steps=60, save=11, observables=["loss", "Y"])
    row = odesim.compare("reversal.row", task="reversal", settings=given, steps=60, save=11, observables=["loss"])
    np.testing.assert_allclose(full.theory["loss"], row.theory["loss"], rtol=1e-8)
    assert np.all(full.training["Y"][0, :, 6:] == 0) and np.all(full.theory["Y"][0, :, 6:] == 0)
    assert full.passed({"Y": {"relative_l2": 0.05}})


def test_chains_do_not_compose():
    """A ~> C that is held out shares what A -> B leaves with all other tokens; it is below 1/M, and two steps are p(B | A) p(C | B)."""
    given = {"data": "chains", "pairs": 4, "both": 0.5, "vocabulary": 20}
    run = odesim.train("reversal", settings=given, seeds=(0, 3), steps=200, save=21)
    p, direct = run.observables["p"], run.observables["p_held_out"]
    np.testing.assert_allclose(direct, (1 - p[..., 2:4].mean(axis=-1)) / 19, rtol=1e-10)  # of 1 - p near 1
    assert np.all(direct[:, 1:] < 1 / 20) and np.all(run.observables["p_two_steps"][:, -1] > 0.7)
    flow = odesim.integrate("reversal.row", params={"M": 20, "N": 10, "r": 2}, span=(0, 200), save=2)  # two targets of one row
    assert p[:, -1, [0, 1, 8, 9]].reshape(2, 2, 2).sum(axis=1) == pytest.approx(2 * flow.observables["p_target"][-1], abs=0.02)  # of steps
    with pytest.raises(ParamError, match=r"reversal\.row does not describe this training of reversal: data is chains, not reversals"):
        odesim.compare("reversal.row", task="reversal", settings=given, steps=2)
