"""The task hierarchy_dag: its hierarchy, the short batch against the plain one, NCorr against samples, the published numbers."""

import random
from dataclasses import replace
from math import comb

import numpy as np
import pytest

from odesim.lab.networks.measures import correlations, mean_best_correlation
from odesim.lab.tasks.hierarchy_dag import TASK, dag_of_seed, draw_dag
from odesim.lab.training.loop import TrainingOptions, train
from odesim.lab.training.randomness import INITIAL, generators

DEFAULTS = {setting.name: setting.default for setting in TASK.settings}
TINY = {"width": 8, "mlp": 7, "layers": 2, "num_classes": 5, "n0": 7, "n1": 6, "vocabulary": 12, "length": 11, "batch": 16}
SMALL_SETS = [(2, 11), (2, 9), (3, 11), (1, 4), (2, 8)]  # children, length: many pads, none for some classes, one token a class


def made(seeds=(0,), dtype="float64", **values):
    """The experiment of these settings and its parameters at the start."""
    experiment = TASK.make(DEFAULTS | values, seeds=seeds, dtype=dtype)
    return experiment, experiment.model.initial(generators(seeds, INITIAL), dtype)


def hierarchy(seed, n0, n1, num_classes, num_children=2, vocabulary=100):
    """The hierarchy of a seed."""
    return draw_dag(seed, {"n0": n0, "n1": n1, "num_classes": num_classes}, num_children, vocabulary)


def seen(experiment, params, name):
    """The observable of that name (R, ...)."""
    return next(o for o in experiment.model.observables if o.name == name).function(params)


def contents(dag, c):
    """Nodes of each layer and the tokens of class c, as sets, from the lowest up."""
    sets = [{c}]
    for children in reversed(dag.children):
        sets.append({int(k) for node in sets[-1] for k in children[node]})
    return sets[::-1]


@pytest.mark.parametrize("num_children", [1, 2, 3])
def test_hierarchy(num_children):
    """Sets of a layer differ and have as many different members as asked for; what a class contains follows set by set."""
    dag = hierarchy(3, 9, 8, 7, num_children, 20)
    for children, below in zip(dag.children, (19, 9, 8), strict=True):
        rows = [tuple(row) for row in children.tolist()]
        assert len(set(rows)) == len(rows)
        assert all(len(set(row)) == num_children and min(row) >= 0 and max(row) < below for row in rows)
    for c in range(7):
        tokens, lower, upper, _ = contents(dag, c)
        for active, members in ((dag.present, tokens), (dag.active[0], lower), (dag.active[1], upper)):
            assert set(np.flatnonzero(active[c])) == members
        row = dag.sequences(30, dag.ascending)[c]
        assert list(row) == [19] * (30 - len(tokens)) + sorted(tokens)


def test_same_hierarchy_as_seeded_python():
    """The first set is what the global random.shuffle leaves in front after random.seed, as the original seeds it."""
    state = random.getstate()
    try:
        for seed in range(5):
            random.seed(seed)
            tokens = list(range(99))
            random.shuffle(tokens)
            assert hierarchy(seed, 10, 20, 20).children[0][0].tolist() == sorted(tokens[:2])
    finally:
        random.setstate(state)


def test_used_latents():
    """20 different pairs out of 30 leave an upper latent out with probability C(C(29, 2), 20) / C(C(30, 2), 20), a lower one likewise.

    Each upper latent that is used is a pair of lower ones. 400 seeds to 4 s.e.; an independent script has .754 (50 seeds) and .92.
    """
    used = np.array([[a.any(axis=0).sum() for a in hierarchy(seed, 20, 30, 20).active[:2]] for seed in range(400)])
    share, se = (used / (20, 30)).mean(axis=0), (used / (20, 30)).std(axis=0) / 20
    lower = np.mean([1 - comb(comb(19, 2), int(pairs)) / comb(comb(20, 2), int(pairs)) for pairs in used[:, 1]])
    upper = 1 - comb(comb(29, 2), 20) / comb(comb(30, 2), 20)
    np.testing.assert_array_less(np.abs(share - (lower, upper)), 4 * se)
    np.testing.assert_array_less(np.abs(share - (0.92, 0.754)), 4 * se * np.sqrt(1 + 400 / 50) + (0.005, 0.0005))


# mean floors over 50 seeds of an independent script, (n0, n1) = (10, 20)
FLOORS = [(20, 2, 0.041), (20, 3, 0.072), (30, 2, 0.054), (30, 3, 0.116), (50, 2, 0.102), (50, 3, 0.208)]


@pytest.mark.parametrize("num_classes, num_children, mean", FLOORS)
def test_loss_floor(num_classes, num_children, mean):
    """The floor is the mean log of how many classes share a class's tokens; over seeds it is the script's to 4 s.e. of two such means."""
    dags = [hierarchy(seed, 10, 20, num_classes, num_children) for seed in range(1, 51)]
    for dag in dags[:5]:
        sets = [frozenset(contents(dag, c)[0]) for c in range(num_classes)]
        assert dag.loss_floor == pytest.approx(np.mean([np.log(sets.count(s)) for s in sets]), abs=1e-12)  # rounding
    floors = np.array([dag.loss_floor for dag in dags])
    assert floors.mean() == pytest.approx(mean, abs=4 * floors.std() * np.sqrt(2 / 50))


@pytest.mark.parametrize("num_classes, num_children", [(C, N) for C in (20, 30, 50) for N in (2, 3)])
def test_loss_floor_of_many_latents(num_classes, num_children):
    """With 20 and 30 latents few classes have the same tokens: the mean floor of the script's 50 seeds is at most .005, and so is ours."""
    assert np.mean([hierarchy(seed, 20, 30, num_classes, num_children).loss_floor for seed in range(1, 51)]) <= 0.005


def plain(experiment, values, counts):
    """The batch of counts (R, C) as samples of `length` tokens: {tokens (R, B, L), targets (R, B)}."""
    dags = [dag_of_seed(DEFAULTS | values, seed) for seed in experiment.seeds]
    labels = np.stack([np.repeat(np.arange(len(c)), c) for c in counts.astype(int)])
    return {
        "tokens": np.stack([dag.sequences(values["length"], dag.ascending)[y] for dag, y in zip(dags, labels, strict=True)]),
        "targets": labels,
    }


@pytest.mark.parametrize("num_children, length", SMALL_SETS)
def test_short_batch_is_the_plain_one(num_children, length):
    """Loss and gradients of every sample with all its pads are those of each class once with its pads merged, to rounding."""
    values = TINY | {"num_children": num_children, "length": length}
    experiment, params = made((0, 5), **values)
    short = experiment.stream(70)
    full = plain(experiment, values, short["weight"])
    assert full["tokens"].shape == (2, 16, length)
    loss, gradients = experiment.model.loss_and_gradients(params, short)
    loss_plain, gradients_plain = experiment.model.loss_and_gradients(params, full)
    np.testing.assert_allclose(loss, loss_plain, rtol=1e-12)
    for name, g in gradients.items():
        np.testing.assert_allclose(g, gradients_plain[name], rtol=1e-10, atol=1e-12, err_msg=name)


def test_short_where_it_can_be():
    """Two children: 9 positions in place of 30, as few as hold 8 tokens and the pads."""
    assert made()[0].stream(0)["tokens"].shape == (1, 20, 9)


@pytest.mark.parametrize("num_children, length", SMALL_SETS[:3])
def test_ncorr_of_samples(num_children, length):
    """NCorr is numpy's correlation over 1280 samples with all their pads, best node, mean over the latents that occur, to rounding."""
    values = TINY | {"num_children": num_children, "length": length}
    experiment, params = made((2,), **values)
    full = plain(experiment, values, experiment.model.watch["weight"])
    assert full["targets"].shape == (1, 1280)
    hidden = experiment.model.forward(params, full).hidden
    for s in range(2):
        latents = dag_of_seed(DEFAULTS | values, 2).active[s][full["targets"][0]].astype(float)  # (1280, n_s)
        nodes = hidden[s][0].max(axis=1)  # (1280, mlp)
        varied = nodes[:, nodes.std(axis=0) > 1e-12]
        best = [np.corrcoef(y, varied.T)[0, 1:].max() if y.std() else 0.0 for y in latents.T if y.any()]
        assert seen(experiment, params, "NCorr")[0, s] == pytest.approx(np.mean(best), abs=1e-10)


def test_correlations():
    """A weight is how often a sample counts: 1 with a line in the latent, 0 with a constant; NCorr takes the best.

    A constant of which rounding is left, beside larger nodes, is a constant.
    """
    rng = np.random.default_rng(0)
    latents, nodes, counts = rng.integers(0, 2, (1, 9, 4)), rng.standard_normal((1, 9, 3)), rng.integers(0, 4, (1, 9))
    latents[..., 3] = 0
    nodes[..., 1], nodes[..., 2] = 3 * latents[..., 1] - 7, 0.1
    found = correlations(latents, nodes, counts)[0]
    samples = np.repeat(np.arange(9), counts[0])
    expected = [[np.corrcoef(latents[0, samples, a], nodes[0, samples, w])[0, 1] for w in range(2)] for a in range(3)]
    np.testing.assert_allclose(found[:3, :2], expected, atol=1e-13)  # rounding
    assert found[1, 1] == pytest.approx(1)
    assert not found[:, 2].any() and not found[3].any()
    assert mean_best_correlation(latents, nodes, counts)[0] == pytest.approx(np.maximum(found[:3].max(axis=1), 0).mean())
    nodes[..., 2] = 1e-3 + 1e-16 * rng.integers(-3, 4, (1, 9))
    assert not correlations(latents, nodes, counts)[0][:, 2].any()


def test_labels():
    """Labels of an iteration are `batch` in number, depend on nothing asked for before, and are uniform: chi^2 of 19 is below 50."""
    experiment, _ = made((1, 2))
    drawn = {i: experiment.stream(i)["weight"].copy() for i in (0, 63, 64, 200, 5)}
    again = made((1, 2))[0]
    for i in (200, 5, 64, 0, 63):
        np.testing.assert_array_equal(again.stream(i)["weight"], drawn[i])
        np.testing.assert_array_equal(drawn[i].sum(axis=1), 128)
    total = sum(experiment.stream(i)["weight"] for i in range(500))
    chi2 = ((total - 3200) ** 2 / 3200).sum(axis=1)
    assert (chi2 < 50).all() and (chi2 > 3).all()  # each with probability 1e-4


def test_two_layers_of_latents_need_two_blocks():
    """NCorr has as many entries as there are layers of latents with a block."""
    experiment, params = made(**TINY | {"layers": 1})
    assert seen(experiment, params, "NCorr").shape == (1, 1)


# an independent script's untrained networks of width 1024, 5 seeds: mean and spread for s = 0, for s = 1
UNTRAINED = [
    (20, 2, (10, 20), (0.99, 0.01), (0.65, 0.05)),
    (50, 2, (10, 20), (0.99, 0.01), (0.54, 0.03)),
    (20, 2, (20, 30), (0.94, 0.03), (0.74, 0.02)),
    (20, 3, (10, 20), (0.94, 0.05), (0.58, 0.02)),
    (20, 3, (20, 30), (0.95, 0.01), (0.63, 0.03)),
    (30, 2, (10, 20), (0.99, 0.01), (0.58, 0.04)),
    (30, 2, (20, 30), (0.94, 0.03), (0.67, 0.01)),
    (30, 3, (10, 20), (0.98, 0.04), (0.52, 0.03)),
    (30, 3, (20, 30), (0.93, 0.02), (0.57, 0.02)),
    (50, 2, (20, 30), (0.93, 0.04), (0.62, 0.01)),
    (50, 3, (10, 20), (0.98, 0.04), (0.47, 0.01)),
    (50, 3, (20, 30), (0.93, 0.02), (0.53, 0.02)),
]


def cells(rows, cheap):
    """The first `cheap` rows, and the others marked slow."""
    return [pytest.param(*row, marks=() if i < cheap else pytest.mark.slow) for i, row in enumerate(rows)]


@pytest.mark.parametrize("num_classes, num_children, sizes, lower, upper", cells(UNTRAINED, 1))
def test_untrained(num_classes, num_children, sizes, lower, upper):
    """Mean NCorr of 5 untrained networks is the script's to 4 s.e. of two such means of either's spread, and half its last digit."""
    experiment, params = made(
        range(1, 6), num_classes=num_classes, num_children=num_children, n0=sizes[0], n1=sizes[1], width=1024, layers=2
    )
    found = seen(experiment, params, "NCorr")
    for s, (mean, spread) in enumerate((lower, upper)):
        sd = max(spread, found[:, s].std(ddof=1))
        assert found[:, s].mean() == pytest.approx(mean, abs=4 * sd * np.sqrt(2 / 5) + 0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    "num_children, sizes, raw, everywhere",
    [(2, (10, 20), 0.96, None), (2, (20, 30), 0.84, 0.85), (3, (10, 20), 0.95, None), (3, (20, 30), 0.81, None)],
)
def test_other_correlations_are_below_the_table(num_children, sizes, raw, everywhere):
    """s = 0 before training, where the table has .94 to 1: correlations without means, and latents that never occur counted as 0.

    Five seeds beside five of an independent script: four standard errors of two such means, and half a digit.
    """
    experiment, params = made(range(1, 6), num_children=num_children, n0=sizes[0], n1=sizes[1], width=1024, layers=2)
    test = experiment.model.watch
    h, y = experiment.model.forward(params, test).hidden[0].max(axis=2), experiment.exact["latents0"].astype(float)
    w = (test["weight"] / test["weight"].sum(axis=1, keepdims=True))[..., None]
    occurs = (w * y).sum(axis=1) > 0
    product, squares = (w * y).swapaxes(1, 2) @ h, [np.sqrt((w * a**2).sum(axis=1)) for a in (y, h)]
    best = (product / np.maximum(squares[0][:, :, None] * squares[1][:, None], 1e-300)).max(axis=2)
    found = np.array([b[there].mean() for b, there in zip(best, occurs, strict=True)])
    assert found.mean() == pytest.approx(raw, abs=4 * found.std(ddof=1) * np.sqrt(2 / 5) + 0.005)
    if everywhere:
        share = seen(experiment, params, "NCorr")[:, 0] * occurs.mean(axis=1)
        assert share.mean() == pytest.approx(everywhere, abs=4 * share.std(ddof=1) * np.sqrt(2 / 5) + 0.005)


@pytest.mark.slow
def test_trained():
    """1000 steps at width 256: the loss nears its floor, NCorr is within 3 spreads of a seed of an independent script's runs."""
    experiment, params = made((1,), lr=1e-4)
    experiment = replace(experiment, steps=1000)
    start = seen(experiment, params, "NCorr")
    run = train(experiment, TrainingOptions(save=11))
    assert run.ok
    assert (run.final["loss"] < experiment.exact["loss_floor"] + 0.05).all()
    found = run.final["NCorr"]
    # its runs of this cell have .95 to .98 and, at 1000 steps, .70 to .79; a seed's spread in the published table is .01 and .05
    assert ((found[:, 0] > 0.95 - 0.03) & (found[:, 0] <= 1)).all()
    assert ((found[:, 1] > 0.70 - 0.15) & (found[:, 1] < 0.79 + 0.15)).all()
    assert (found[:, 1] > start[:, 1]).all()
