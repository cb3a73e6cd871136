"""The task markov: its sequences and strategies by hand, their limits in infinite contexts, its seeds, from simple to complex."""

from functools import partial
from itertools import pairwise, product
from math import log
from typing import Any

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import digamma

import odesim
from odesim.lab.tasks import load_task
from odesim.lab.tasks.markov import (
    STRATEGIES,
    by_distance,
    divergences,
    draw_chains,
    draw_predictions,
    draw_sequences,
    losses,
    previous_attention,
    stationary,
    strategies,
)
from odesim.lab.training.randomness import INITIAL, Drawn, generators
from tests.support.descent import loss_differences

TASK = load_task("markov")
DEFAULTS = {setting.name: setting.default for setting in TASK.settings}
SMALL: dict[str, Any] = {"k": 3, "length": 6, "batch": 5, "width": 4}
# k: loss in infinite contexts of unigram and bigram, nats. k = 2 by quadrature, k = 3 of 2 10^6 chains, whose errors are 1e-4
LIMITS = {2: (0.5638273, 0.4808892), 3: (0.97882, 0.81905)}


def entropy(p: np.ndarray) -> np.ndarray:
    return -(p * np.log(p)).sum(axis=-1)


def test_limits_of_two_states() -> None:
    """The integrals over the two probabilities of a transition: entropies of the stationary law, and of a transition."""

    def H(a: float) -> float:
        return float(entropy(np.array([a, 1 - a])))

    assert dblquad(lambda a, b: H(a / (a + b)), 0, 1, 0, 1)[0] == pytest.approx(LIMITS[2][0], abs=6e-8)
    assert 2 * quad(lambda a: H(a) * (1 - a * log(1 + 1 / a)), 0, 1)[0] == pytest.approx(LIMITS[2][1], abs=6e-8)


@pytest.mark.parametrize("k", LIMITS)
def test_chains_have_the_limits(k: int) -> None:
    """Mean entropies over 2 10^5 chains are the limits, within 4 standard errors (and those of the limits); pi P = pi to rounding.

    The limit of bigrams is not the mean entropy of a row, psi(k + 1) - psi(2): rows are visited as often as pi says.
    """
    P = draw_chains(np.random.default_rng(1), 200_000, k)
    pi = stationary(P)
    np.testing.assert_allclose(np.einsum("ni,nij->nj", pi, P), pi, atol=1e-12)
    np.testing.assert_allclose(pi.sum(axis=1), 1, atol=1e-12)
    for values, limit in zip((entropy(pi), (pi * entropy(P)).sum(axis=1)), LIMITS[k], strict=True):
        assert values.mean() == pytest.approx(limit, abs=4 * values.std() / np.sqrt(len(P)) + (k == 3) * 2e-4)
    rows, error = entropy(P).mean(axis=1), 4 / np.sqrt(len(P))
    assert rows.mean() == pytest.approx(digamma(k + 1) - digamma(2), abs=error * rows.std())
    assert rows.mean() - LIMITS[k][1] > error * rows.std() + 2e-4


@pytest.mark.parametrize("k", LIMITS)
def test_strategies_tend_to_their_limits(k: int) -> None:
    """Mean losses over the last 100 of 300 tokens of 2000 sequences: within 4 standard errors, and what is not yet known.

    A strategy that estimates d numbers from n tokens loses d / (2 n) nats: at most k (k - 1) / 400 here, and as much again for rare states.
    """
    tokens = draw_sequences(np.random.default_rng(2), 2000, k, 301, "stationary")
    predicted = strategies(tokens[:, :-1], k)[:, :, -100:]  # (3, n, 100, k)
    each = -np.log(np.take_along_axis(predicted, tokens[None, :, -100:, None], axis=3))[..., 0].mean(axis=2)  # (3, n)
    for row, limit in zip(each, (log(k), *LIMITS[k]), strict=True):
        error = 4 * row.std() / np.sqrt(2000)
        assert -error - 1e-12 < row.mean() - limit < error + k * (k - 1) / 200 and error < 0.03


def test_strategies_by_hand() -> None:
    """Counts with one more of each, token by token: (n_j + 1) / (n + k), and after i (n_ij + 1) / (n_i + k)."""
    k, tokens = 3, np.random.default_rng(3).integers(0, 3, (4, 12))
    uniform, unigram, bigram = strategies(tokens, k)
    assert np.all(uniform == 1 / 3)
    for b, t in product(range(4), range(12)):
        seen = tokens[b, : t + 1].tolist()
        after = [j for i, j in pairwise(seen) if i == seen[-1]]
        assert unigram[b, t] == pytest.approx([(seen.count(j) + 1) / (t + 1 + k) for j in range(k)], rel=1e-14)
        assert bigram[b, t] == pytest.approx([(after.count(j) + 1) / (len(after) + k) for j in range(k)], rel=1e-14)


@pytest.mark.parametrize("k", [2, 3])
def test_bigram_is_the_posterior(k: int) -> None:
    """From a uniform first state the product of its predictions is the probability of a sequence, over all chains: all of length 5.

    That is E of the product of transitions: of 5 10^4 drawn chains, within 4.5 standard errors, for 81 sequences.
    """
    tokens = np.array(list(product(range(k), repeat=5)))
    predicted = strategies(tokens[:, :-1], k)[2]
    likelihood = np.take_along_axis(predicted, tokens[:, 1:, None], axis=2)[..., 0].prod(axis=1) / k
    assert likelihood.sum() == pytest.approx(1, rel=1e-13)
    P = draw_chains(np.random.default_rng(4), 50_000, k)
    for row, p in zip(tokens, likelihood, strict=True):
        drawn = P[:, row[:-1], row[1:]].prod(axis=1) / k
        assert drawn.mean() == pytest.approx(p, abs=4.5 * drawn.std() / np.sqrt(len(P)))


@pytest.mark.parametrize("first", ["stationary", "uniform"])
def test_sequences_are_of_their_law(first: str) -> None:
    """How often each of the 16 sequences of length 4 comes among 2 10^5: E of its probability, within 4 standard errors of both."""
    drawn = draw_sequences(np.random.default_rng(5), 200_000, 2, 4, first)
    counts = np.bincount(drawn @ [8, 4, 2, 1], minlength=16) / len(drawn)
    P = draw_chains(np.random.default_rng(6), 400_000, 2)
    start = stationary(P) if first == "stationary" else np.full((len(P), 2), 0.5)
    for row, count in zip(product(range(2), repeat=4), counts, strict=True):
        p = start[:, row[0]] * P[:, row[0], row[1]] * P[:, row[1], row[2]] * P[:, row[2], row[3]]
        assert count == pytest.approx(p.mean(), abs=4 * np.sqrt(count / len(drawn) + p.var() / len(P)))


def test_targets_are_the_next_tokens() -> None:
    """Of every position; a fixed sample is the same in every iteration, new sequences are not, and the test's are others."""
    for samples in (0, 7):
        stream = Drawn((0, 3), partial(draw_predictions, k=3, length=6, first="stationary"), batch=5, samples=samples)
        one, two, test = stream(0), stream(1), stream.test(5)
        for batch in (one, two, test):
            np.testing.assert_array_equal(batch["tokens"][..., 1:], batch["targets"][..., :-1])
        assert np.array_equal(one["tokens"], two["tokens"]) is (samples > 0) and one["tokens"].shape == (2, samples or 5, 6)
        assert not np.array_equal(one["tokens"][:, :5], test["tokens"])


def test_what_is_watched() -> None:
    """KL and previous by loops over samples and positions; what a strategy predicts has no divergence from itself; rounding."""
    rng = np.random.default_rng(7)
    tokens, logits = rng.integers(0, 3, (2, 4, 6)), rng.standard_normal((2, 4, 6, 3))
    predicted = strategies(tokens, 3)
    found = divergences(predicted, logits)
    for s, r in product(range(3), range(2)):
        total = 0.0
        for b, t in product(range(4), range(6)):
            q = np.exp(logits[r, b, t]) / np.exp(logits[r, b, t]).sum()
            total += sum(p * log(p / q[j]) for j, p in enumerate(predicted[s, r, b, t])) / 24
        assert found[r, s] == pytest.approx(total, rel=1e-12)
        assert divergences(predicted, np.log(predicted[s]))[:, s] == pytest.approx(0, abs=1e-14)
        each = [-log(predicted[s, r, b, t, tokens[r, b, t]]) for b, t in product(range(4), range(6))]
        assert losses(predicted, tokens)[s, r] == pytest.approx(np.mean(each), rel=1e-12)
    a = [rng.random((2, 4, 1, 6, 6)) for _ in range(2)]
    by_hand = [[[np.mean([w[r, b, 0, t, t - 1] for b in range(4) for t in range(1, 6)])] for w in a] for r in range(2)]
    np.testing.assert_allclose(previous_attention(a), by_hand, rtol=1e-13)
    found = by_distance(a)
    for r, layer, o in product(range(2), range(2), range(6)):
        each = [a[layer][r, b, 0, t, t - o] - 1 / (t + 1) for b in range(4) for t in range(o, 6)]
        assert found[r, layer, 0, o] == pytest.approx(np.mean(each), rel=1e-12)


def test_gradients_are_differences() -> None:
    """Of the task's own transformer and batch, every weight: central differences of step 1e-5, error 1e-9 and rounding 1e-11."""
    experiment = TASK.make(DEFAULTS | SMALL | {"init_scale": 0.5}, seeds=(0, 1))
    model, batch = experiment.model, experiment.stream(0)
    params = model.initial(generators((0, 1), INITIAL), "float64")
    for name, gradient in model.loss_and_gradients(params, batch)[1].items():
        differences = loss_differences(model, params, batch, name)
        np.testing.assert_allclose(gradient, differences, atol=1e-8, err_msg=name)


def test_a_fixed_sample_is_descended_as_a_flow() -> None:
    """sgd on a fixed sample, at ten times: half the rate, half the distance from a quarter of it, so the order is 1; the loss falls."""
    found = []
    for lr in (0.2, 0.1, 0.05):
        asked: dict[str, Any] = {**SMALL, "samples": 20, "optimizer": "sgd", "lr": lr, "init_scale": 0.3}
        run = odesim.train("markov", settings=asked, steps=round(4 / lr), observe=["loss_test"])
        assert np.all(np.diff(run.observables["loss"]) < 0)
        found.append({name: rows[:, :: round(0.4 / lr)] for name, rows in run.observables.items()})
    for name in ("loss", "loss_test", "KL"):
        coarse, middle, fine = (rows[name] for rows in found)
        # differences of steps h, h/2, h/4 have the ratio 2 + O(h)
        assert np.linalg.norm(coarse - middle) / np.linalg.norm(middle - fine) == pytest.approx(2, rel=0.15), name


def test_losses_of_the_strategies() -> None:
    """Those in exact, of the test sequences: from worse to better, above their limits, and uniform is ln k."""
    for k in (2, 3):
        found = TASK.make(DEFAULTS | {"k": k}, seeds=(0, 1)).exact["strategy_losses"]
        assert found.shape == (2, len(STRATEGIES)) and found[:, 0] == pytest.approx(log(k), rel=1e-12)
        assert np.all(np.diff(found, axis=1) < 0) and np.all(found.mean(axis=0)[1:] > LIMITS[k])


@pytest.mark.slow
def test_from_simple_to_complex() -> None:
    """Adam, new batches: the nearest strategy is uniform, then unigram, then bigram; layer 1 turns to the token before.

    Three symbols; two are the figure markov_stages.

    Two seeds. Around a change the nearest may come and go, but none is skipped, and uniform is over before bigram begins. At the start
    attention is even, 1 / (t + 1) at place t (logits of small weights move a share by less than 1e-3). At the end layer 1 gives the token
    before more than even attention, by four deviations of what it gives at other distances; layer 2 less than layer 1. The loss is nearer
    to that of bigrams than of unigrams.
    """
    k = 3
    run = odesim.train("markov", settings={"k": k, "lr": 0.02}, seeds=range(2), steps=700, save=71, observe=["loss_test"], dtype="float32")
    exact = TASK.make(DEFAULTS | {"k": k}, seeds=(0, 1)).exact["strategy_losses"]
    for r in range(2):
        nearest = run.observables["KL"][r].argmin(axis=1)
        at = [np.flatnonzero(nearest == strategy) for strategy in range(3)]  # where each is the nearest
        assert at[0][0] == 0 and at[2][-1] == len(nearest) - 1
        assert all(before[0] < after[0] and np.median(before) < np.median(after) for before, after in pairwise(at))
        assert np.abs(np.diff(nearest)).max() == 1 and at[0][-1] < at[2][0]
        previous = run.observables["previous"][r, :, :, 0]
        assert previous[0] == pytest.approx(np.mean(1 / np.arange(2, 101)), abs=1e-3)
        first, second = run.final["by_distance"][r, :, 0]
        others = np.delete(first, 1)
        assert first[1] > others.mean() + 4 * others.std() and first[1] > second[1]
        assert abs(run.final["loss_test"][r] - exact[r, 2]) < abs(run.final["loss_test"][r] - exact[r, 1])


@pytest.mark.slow
def test_three_states_are_learned_in_the_same_stages() -> None:
    """k = 3: uniform, unigram, bigram; the loss is within 5 % of unigram's where that is first the nearest, of bigram's at the end."""
    settings = {"k": 3, "width": 24, "cosine": 700}
    run = odesim.train("markov", settings=settings, steps=700, save=71, dtype="float32", observe=("loss_test", "KL"))
    lines = TASK.make(DEFAULTS | settings, seeds=(0,)).exact["strategy_losses"][0]
    nearest, loss = run.observables["KL"][0].argmin(axis=1), run.observables["loss_test"][0]
    first = [int(np.flatnonzero(nearest == strategy)[0]) for strategy in range(3)]
    assert first == sorted(first) and np.all(nearest[-10:] == 2)
    assert loss[0] == pytest.approx(log(3), rel=0.02)
    assert loss[first[1]] == pytest.approx(lines[1], rel=0.05) and loss[-1] == pytest.approx(lines[2], rel=0.05)
