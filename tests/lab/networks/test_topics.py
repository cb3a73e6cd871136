"""The attention layer of the task topics: its loss place by place, its gradients as differences and as the System has them by hand."""

from typing import Any

import numpy as np
import pytest

from odesim.lab.tasks.topics import INITS, KEYS, LOSSES, WEIGHTS, Laws, TopicAttention, parts, projectors, rows_of, stacked
from tests.support.truth.topics import topics_full

LAWS = Laws(3, 2, 2, 0.4, 0.2, 0.3)
LENGTHS = np.array([5, 9, 7])


def drawn(seed: int) -> tuple[dict[str, Any], tuple[Any, Any, Any]]:
    """Matrices (d, d) and three short documents: words, what is shown, which are masked."""
    rng = np.random.default_rng(seed)
    words = LAWS.words(rng, 3, 9)
    return {name: 0.5 * rng.standard_normal((LAWS.d, LAWS.d)) for name in WEIGHTS}, (words, *LAWS.mask(rng, words))


def many(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of one seed (1, d, d)."""
    return {name: a[None] for name, a in params.items()}


def softmax(x: Any) -> Any:
    """As the definition reads."""
    return np.exp(x) / np.exp(x).sum()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("keys", KEYS)
def test_loss_is_the_definition(keys, loss):
    """Every masked place of every document by itself attends to every place, or to those that are not masked; rounding."""
    W, (words, shown, masked) = drawn(1)
    total, count = 0.0, 0
    for x, z, hidden, length in zip(words, shown, masked, LENGTHS, strict=True):
        places = [k for k in range(length) if keys == "all" or not hidden[k]]
        for place in np.flatnonzero(hidden[:length]):
            logits = np.array([W["W_K"][:, z[k]] @ W["W_Q"][:, z[place]] for k in places])
            output = sum(a * W["W_V"][:, z[k]] for a, k in zip(softmax(logits), places, strict=True))
            wanted = np.eye(LAWS.d)[x[place]]
            total += ((wanted - output) ** 2).sum() if loss == "squared" else -np.log(softmax(output)[x[place]])
            count += 1
    batch = stacked([rows_of(words, shown, masked, LENGTHS, LAWS.d, keys)])
    assert count > 5 and TopicAttention(LAWS, loss).loss_and_gradients(many(W), batch)[0][0] == pytest.approx(total / count, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_are_differences(loss):
    """Central differences of step 1e-5: their error 1e-9 and rounding 1e-11. Two seeds whose documents have different numbers of rows."""
    model, (a, first), (b, second) = TopicAttention(LAWS, loss), drawn(2), drawn(3)
    batch = stacked([rows_of(*documents, LENGTHS, LAWS.d, "all") for documents in (first, second)])
    assert len(set(batch["rows"])) == 2
    params = {name: np.stack([a[name], b[name]]) for name in WEIGHTS}
    gradients = model.loss_and_gradients(params, batch)[1]
    for name, gradient in gradients.items():
        for place in ((0, 0), (1, 3), (4, 2), (6, 6), (2, 0)):
            here = (slice(None), *place)
            high, low = ({**params, name: params[name].copy()} for _ in range(2))
            high[name][here] += 1e-5
            low[name][here] -= 1e-5
            difference = (model.loss_and_gradients(high, batch)[0] - model.loss_and_gradients(low, batch)[0]) / 2e-5
            np.testing.assert_allclose(gradient[here], difference, atol=1e-8)
        assert np.abs(gradient).max() > 0.01


def test_population_is_the_flow_of_topics_full():
    """The gradient of infinite documents is minus the slopes of topics.full by hand, at random matrices; rounding."""
    W, _ = drawn(4)
    P, B = LAWS.documents(), LAWS.shown()
    slopes = topics_full(0.0, W, {"P": P, "B": B, "P_shown": (1 - LAWS.p_m) * P + LAWS.p_m * P @ B.T, "d_a": 1.0})
    found = TopicAttention(LAWS).loss_and_gradients(many(W), stacked([LAWS.population()]))[1]
    for name in WEIGHTS:
        np.testing.assert_allclose(found[name][0], -slopes[name], atol=1e-14)


def test_a_seed_has_the_bits_that_it_has_alone():
    """Rows that fill up a batch do not count."""
    (a, first), (b, second) = drawn(5), drawn(6)
    rows = [rows_of(*documents, LENGTHS, LAWS.d, "all") for documents in (first, second)]
    both = TopicAttention(LAWS).loss_and_gradients({name: np.stack([a[name], b[name]]) for name in WEIGHTS}, stacked(rows))
    for n, one in enumerate((a, b)):
        loss, gradients = TopicAttention(LAWS).loss_and_gradients(many(one), stacked(rows[n : n + 1]))
        assert loss[0] == both[0][n] and all(np.array_equal(gradients[name][0], both[1][name][n]) for name in WEIGHTS)


@pytest.mark.parametrize("init", INITS)
def test_starts(init):
    """normal: entries of these deviations within 4 standard errors. symmetric: the parts are those numbers, and alike words are alike."""
    laws = Laws(5, 4, 2, 0.4, 0.2, 0.3)
    rngs = [np.random.default_rng(seed) for seed in range(30)]
    found = TopicAttention(laws, init=init, scale_V=0.7, scale_KQ=0.2).initial(rngs, "float64")
    for name, scale in zip(WEIGHTS, (0.7, 0.2, 0.2), strict=True):
        if init == "normal":
            assert found[name].std() == pytest.approx(scale, abs=4 * scale / np.sqrt(2 * found[name].size))
            continue
        p, W = projectors(5, 4), found[name][0]
        read = parts(W, 5)
        assert (read["w"], read["t"]) == pytest.approx((scale, scale), rel=1e-13)
        for kind in ("P_w", "P_t"):
            np.testing.assert_allclose(W @ p[kind], scale * p[kind], atol=1e-14)
        np.testing.assert_allclose(read["U"], scale * np.array([[name != "W_V"] * 2, [1, 1]]), atol=1e-14)


def test_attention_is_a_mean_over_words():
    """Of a text of all words alike: by loops, for the word itself, others of its topic, and words of other topics."""
    W, _ = drawn(7)
    found = TopicAttention(LAWS).attention(many(W))[0]
    sums: dict[int, list[float]] = {0: [], 1: [], 2: []}
    for w in range(1, LAWS.d):
        weights = softmax(np.array([W["W_K"][:, k] @ W["W_Q"][:, w] for k in range(1, LAWS.d)])) * (LAWS.d - 1)
        for k in range(1, LAWS.d):
            sums[0 if k == w else 1 if (k - 1) // 2 == (w - 1) // 2 else 2].append(weights[k - 1])
    np.testing.assert_allclose(found, [np.mean(values) for values in sums.values()], rtol=1e-12)
