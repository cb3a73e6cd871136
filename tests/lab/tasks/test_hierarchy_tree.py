"""The task hierarchy_tree: exact moments against samples and Theorem 5, the true class probabilities against all trees, training."""

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest

from odesim.lab.tasks import load_task
from odesim.lab.tasks.hierarchy_tree import TEST_SEQUENCES, Tree, draw_sequences
from odesim.lab.training.loop import TrainingOptions, train
from odesim.lab.training.randomness import INITIAL, Drawn, generators

TASK = load_task("hierarchy_tree")
DEFAULTS = {setting.name: setting.default for setting in TASK.settings}
TINY = {"num_classes": 3, "depth": 3, "width": 8, "mlp": 7, "batch": 5}
Q = np.array([[0.9, 0.2], [0.3, 0.4], [0.55, 0.05]])


def one_hot(D, N, L, rho):
    """The tree with one child of the root for each of D classes, all as likely."""
    return Tree(np.eye(D), np.full(D, 1 / D), N, L, rho)


TREES = {
    "one-hot": one_hot(3, 2, 4, 0.9),
    "three children": one_hot(3, 3, 3, 0.6),
    "q and p": Tree(Q, np.array([0.3, 0.7]), 2, 3, 0.8),
    "negative rho": Tree(Q, np.array([0.3, 0.7]), 2, 3, -0.5),
    "leaves below the root": Tree(Q, np.array([0.5, 0.5]), 2, 1, 0.8),
}


def made(seeds=(0,), dtype="float64", **values):
    """The experiment of these settings and its parameters at the start."""
    experiment = TASK.make(DEFAULTS | values, seeds=seeds, dtype=dtype)
    return experiment, experiment.model.initial(generators(seeds, INITIAL), dtype)


def seen(experiment, params, name):
    """The observable of that name (R, ...)."""
    return next(o for o in experiment.model.observables if o.name == name).function(params)


def within(samples, exact, errors=5):
    """Whether the mean of samples (B, ...) is the exact one to 5 standard errors: one of 1000 such means is off with 6e-4."""
    se = samples.std(axis=0) / np.sqrt(len(samples))
    return np.all(np.abs(samples.mean(axis=0) - exact) <= errors * se + 1e-12)


@pytest.mark.parametrize("name", TREES)
def test_moments(name):
    """Means and second moments of nodes of any two depths, and P[l | m], are those of 20000 samples."""
    tree = TREES[name]
    classes, nodes = tree.sample(np.random.default_rng(1), 20000)
    s = [2.0 * y - 1 for y in nodes]
    for i in range(tree.depth):
        assert s[i].shape == (20000, tree.size(i + 1))
        assert within(s[i], tree.mean(i + 1))
        for k in range(len(tree.p)):
            assert within(s[i][classes == k], tree.class_mean(i + 1)[k])
        for j in range(tree.depth):
            assert within(s[i][:, :, None] * s[j][:, None, :], tree.second(i + 1, j + 1))
    leaves = nodes[-1]
    for m in range(tree.leaves):
        assert within(leaves[leaves[:, m]].astype(float), tree.conditional()[:, m])


# D = 10, N = 2, L = 4, rho = .9: exact, and from 2e6 samples of an independent script; by height of the common ancestor
ONE_TREE = [(1, 0.77207, 0.77202), (2, 0.58745, 0.58711), (3, 0.43791, 0.43779), (4, 0.18290, 0.18263)]


def co_occurrence(rho, rho0, depth, height):
    """P[y_l = 1 | y_m = 1] for leaves whose lowest common ancestor has a height of 1 to L - 1 (Theorem 5).

    rho0 is the mean polarity 2 P[y = 0] - 1 of a child of the root. The paper writes depth for the height. Its rho0 can be read as
    P[y = 0]: with that the formula does not hold. Nor does it where the root is the common ancestor.
    """
    return 1 - (1 - rho ** (2 * np.asarray(height, float))) / (2 * (1 - rho ** (depth - 1) * rho0))


@pytest.mark.parametrize("height, exact, sampled", ONE_TREE)
def test_theorem5(height, exact, sampled):
    """P[l | m] has one value for a height: the published formula below the root, and not at it; samples to 3 s.e., 7e-4."""
    tree = one_hot(10, 2, 4, 0.9)
    found = tree.conditional()[tree.heights() == height]
    assert np.ptp(found) < 1e-14
    assert found[0] == pytest.approx(exact, abs=5e-6)  # its last digit
    assert found[0] == pytest.approx(sampled, abs=7e-4)
    assert (abs(co_occurrence(0.9, 0.8, 4, height) - found[0]) < 1e-14) == (height < 4)


def test_heights():
    """The height of two leaves is that of the first common block of N^height leaves, L where there is none below the root."""
    tree = one_hot(2, 3, 3, 0.5)
    for i, j in product(range(18), repeat=2):
        expected = next((H for H in range(3) if i // 3**H == j // 3**H), 3)
        assert tree.heights()[i, j] == expected


# P - (1 - H / L) at L = 8 and rho0 = rho = 1 - eps, for H = 1 to 7
EXPANSION = [
    (0.1, [-0.0418, -0.0519, -0.0364, 0, 0.0532, 0.1200, 0.1979]),
    (0.01, [-0.0038, -0.0050, -0.0037, 0, 0.0062, 0.0147, 0.0255]),
]


@pytest.mark.parametrize("eps, differences", EXPANSION)
def test_limit(eps, differences):
    """P is 1 - H / L up to an independent script's differences, which are of first order in eps: (H / L) (2 H - L) eps / 2."""
    H = np.arange(1, 8)
    found = co_occurrence(1 - eps, 1 - eps, 8, H) - (1 - H / 8)
    np.testing.assert_allclose(found, differences, atol=5.1e-5)  # their last digit
    first = [co_occurrence(1 - e, 1 - e, 8, H) - (1 - H / 8) - H / 8 * (2 * H - 8) * e / 2 for e in (1e-3, 5e-4)]
    np.testing.assert_allclose(first[0], 4 * first[1], atol=4e-8)  # what is left is of second order, up to eps^3 L^3


def all_trees(tree, present):
    """P[class, tokens] (D,), the sum over every value of every node between."""
    sizes = [tree.size(d) for d in range(1, tree.depth)]
    total = np.zeros(len(tree.p))
    for bits in product((False, True), repeat=sum(sizes)):
        nodes = [*np.split(np.array(bits, bool), np.cumsum(sizes)[:-1]), present]
        edges = 1.0
        for parents, children in pairwise(nodes):
            equal = np.repeat(parents, tree.num_children) == children
            edges *= np.prod(np.where(equal, 1 + tree.rho, 1 - tree.rho) / 2)
        total += edges * tree.p * np.prod(np.where(nodes[0][:, None], tree.q, 1 - tree.q), axis=0)
    return total


@pytest.mark.parametrize("name", ["q and p", "negative rho"])
def test_posterior(name):
    """The probabilities of the classes are those of the sum over all values of the latents, to rounding."""
    tree = TREES[name]
    present = np.random.default_rng(0).random((4, tree.leaves)) < 0.5
    found = tree.posterior(present)
    for row, y in zip(found, present, strict=True):
        joint = all_trees(tree, y)
        np.testing.assert_allclose(row, np.log(joint / joint.sum()), atol=1e-12)


def test_posterior_of_certain_trees():
    """With rho = 1 and one child of the root a class, the tokens say the class."""
    tree = one_hot(3, 2, 3, 1.0)
    classes, nodes = tree.sample(np.random.default_rng(0), 20)
    np.testing.assert_array_equal(tree.posterior(nodes[-1]), np.where(np.eye(3)[classes] > 0, 0, -np.inf))


def test_exact():
    """loss_bayes is at most the loss of the classes' own probabilities."""
    bayes = made((3, 4), **TINY)[0].exact["loss_bayes"]
    assert bayes.shape == (2,) and np.all(bayes < np.log(3))


def test_sequences():
    """A sequence shows the leaves that are 1 and the place that reads: what stands in hidden places changes nothing, order neither."""
    experiment, params = made(**TINY)
    batch = experiment.stream(3)
    assert not batch["padding"][..., -1].any() and 0 < batch["padding"].mean() < 1
    loss = experiment.model.loss_of(params, batch)
    other = {**batch, "tokens": np.where(batch["padding"], 0, batch["tokens"])}
    np.testing.assert_allclose(experiment.model.loss_of(params, other), loss, rtol=1e-12)  # rounding
    order = np.append(np.random.default_rng(0).permutation(12), 12)
    turned = {**batch, **{name: batch[name][:, :, order] for name in ("tokens", "padding")}}
    np.testing.assert_allclose(experiment.model.loss_of(params, turned), loss, rtol=1e-12)


def watched_of(stream):
    """The test sequences of a stream of one seed 0, and whether nodes are 1 in them."""
    tree = stream.draw.keywords["tree"]
    test = Drawn((0,), partial(draw_sequences, tree=tree, nodes=True), batch=0).test(TEST_SEQUENCES)
    return test, [test[f"depth{d}"] for d in range(1, tree.depth + 1)]


def test_ncorr():
    """NCorr is numpy's correlation of each latent with the largest activations over the places that are seen, its best node, the mean."""
    experiment, params = made(**TINY)
    stream, model = experiment.stream, experiment.model
    test, nodes = watched_of(stream)
    hidden, there = model.forward(params, test).hidden, ~test["padding"][0]
    for s in range(2):
        largest = np.array([h[place].max(axis=0) for h, place in zip(hidden[s][0], there, strict=True)])  # (TESTED, mlp)
        latents = nodes[1 - s][0].astype(float)  # depth 2, which has height 1, then depth 1
        best = np.corrcoef(latents.T, largest[:, largest.std(axis=0) > 0].T)[: latents.shape[1], latents.shape[1] :].max(axis=1)
        assert seen(experiment, params, "NCorr")[0, s] == pytest.approx(best.mean(), abs=1e-10)  # rounding


def test_learns():
    """Three classes with two leaves each: from ln 3 the test loss comes within 0.1 of the true probabilities' and not below, to 4 s.e."""
    experiment, _ = made(num_classes=3, depth=2, width=16, mlp=16, layers=1, lr=3e-3)
    run = train(experiment, TrainingOptions(steps=150, save=2))
    bayes, end = experiment.exact["loss_bayes"][0], run.final["loss_test"][0]
    tree = one_hot(3, 2, 2, 0.9)
    test, nodes = watched_of(experiment.stream)
    rows = np.log(3) + np.take_along_axis(tree.posterior(nodes[-1][0]), test["targets"][0][:, None], axis=1)
    assert np.log(3) - rows.mean() == pytest.approx(bayes, abs=1e-12)
    assert bayes - 4 * rows.std() / np.sqrt(len(rows)) < end < bayes + 0.1 < np.log(3) / 2
