"""The task hierarchy_layers: numbers of its start and course, the law of the logits, what it refuses."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks import load_task

SMALL = {"K1": 12, "K2": 10, "num_classes": 6, "n0": 5, "n1": 6, "vocabulary": 12}


def test_the_start_is_the_recorded_one():
    """Widths of 400, relu, scale 1, three hierarchies: loss 3.10, NCorr .926 and .877 by an independent program of other starts.

    Four standard errors of the difference of two means of three, whose deviations are .02 and .03.
    """
    run = odesim.train("hierarchy_layers", settings={"phi": "relu", "K1": 400, "K2": 400}, seeds=(1, 2, 3), steps=1, save=2)
    assert run.observables["loss"][:, 0].mean() == pytest.approx(3.10, abs=0.1)
    np.testing.assert_allclose(run.observables["NCorr"][:, 0].mean(axis=0), (0.926, 0.877), atol=4 * 0.025 * np.sqrt(2 / 3))


def test_small_starts_learn_latents_of_the_first_layer_and_forget_those_of_the_second():
    """Scale .3, relu: NCorr of s = 0 rises and that of s = 1 falls, by .02 and more in the mean of six."""
    given = {"phi": "relu", "init_scale": 0.3, "K1": 50, "K2": 50, "eta": 0.2}
    seen = odesim.train("hierarchy_layers", settings=given, seeds=range(6), steps=600, save=2).observables["NCorr"].mean(axis=0)
    assert seen[1, 0] > seen[0, 0] + 0.02 and seen[1, 1] < seen[0, 1] - 0.02


def test_logits_stay_half_the_squares():
    """|Z - V^2 / 2| is of first order in eta: half the rate, half the distance at one time (20 % for the second order)."""
    ends = [
        odesim.train("hierarchy_layers", settings={**SMALL, "eta": eta}, seeds=(0, 1), steps=round(4 / eta), save=2).observables["law"]
        for eta in (0.04, 0.02)
    ]
    assert np.all(ends[0][:, 0] == 0) and np.all(ends[1][:, 1] > 1e-5)
    np.testing.assert_allclose(ends[0][:, 1] / ends[1][:, 1], 2, rtol=0.2)


def test_correlations_are_numpy_s():
    """NCorr is the mean over latents that occur of the largest correlation with a node, each by numpy's corrcoef."""
    task = load_task("hierarchy_layers")
    experiment: Any = task.make({s.name: s.default for s in task.settings} | SMALL | {"phi": "relu"}, seeds=(3,))
    params = experiment.model.initial([np.random.default_rng(0)], "float64")
    h1, _, h2, _ = experiment.model.hidden(params, experiment.exact["X"])
    found = next(o for o in experiment.model.observables if o.name == "NCorr").function(params)[0]
    for s, h in enumerate((h1[0], h2[0])):
        y = experiment.exact[f"latents{s}"][0].astype(float)
        best = []
        for a in np.flatnonzero(y.any(axis=0)):
            with np.errstate(invalid="ignore", divide="ignore"):
                row = np.array(
                    [np.corrcoef(y[:, a], h[:, w])[0, 1] if np.ptp(h[:, w]) and np.ptp(y[:, a]) else 0.0 for w in range(h.shape[1])]
                )
            best.append(row.max())
        assert found[s] == pytest.approx(np.mean(best), rel=1e-10)
