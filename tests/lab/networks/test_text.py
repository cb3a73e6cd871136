"""What attention to a text looks at, and topics of a text: against loops over pairs, planted topics and even attention."""

from itertools import product

import numpy as np
import pytest

from odesim.lab.networks.text import (
    CHUNK,
    FREQUENT,
    SHUFFLES,
    WordTopics,
    first_share,
    heavy_share,
    nonnegative_factors,
    sparse_share,
    topic_attention,
    topic_cosines,
)
from odesim.models.static.claims import even, most

R, B, H, T, M = 2, 3, 2, 5, 9
RNG = np.random.default_rng(0)


def attention(R=R, B=B, H=H, T=T):
    """Random attention that sees all, rows summing to 1."""
    return RNG.dirichlet(np.ones(T), (R, B, H, T))


def even_attention(T):
    """Even causal attention (1, 1, 1, T, T)."""
    return (np.tri(T) / np.arange(1, T + 1)[:, None])[None, None, None]


def test_factors_never_raise_the_error():
    """Theorem 1 of lee2001algorithms, from one start; factors stay nonnegative, columns sum to 1."""
    X = RNG.random((12, 7))
    errors = []
    for updates in (0, 1, 2, 5, 20, 100):
        W, H = nonnegative_factors(X, 3, updates, np.random.default_rng(1))
        assert (W >= 0).all() and (H >= 0).all()
        np.testing.assert_allclose(W.sum(axis=0), 1, rtol=1e-9)  # up to what keeps a quotient of zeros at 0
        errors.append(((X - W @ H) ** 2).sum())
    assert (np.diff(errors) < 0).all()


def test_factors_of_a_product():
    """A matrix of that rank, with factors of separate words, is found again: after 3000 updates at most a hundredth of its norm is left."""
    W, H = RNG.random((30, 3)), np.kron(np.eye(3), 0.5 + RNG.random((1, 4)))
    U, V = nonnegative_factors(W @ H, 3, 3000, np.random.default_rng(2))
    assert np.linalg.norm(W @ H - U @ V) < 1e-2 * np.linalg.norm(W @ H)


def planted(blocks=8, each=10, chunks=48):
    """Words, and a text (n,) whose chunks have words of one block each, among words of any chunk and short ones."""
    rng = np.random.default_rng(3)
    names = [f"{a}{b}{c}" for a, b, c in product("abcdefgh", repeat=3)]
    frequent = ["<unk>", *names[: FREQUENT - 1], names[FREQUENT]]
    words = [*frequent, "xy", "a9b", *names[FREQUENT + 1 : FREQUENT + 1 + blocks * each]]
    first = len(frequent) + 2
    ids = [
        np.where(rng.random(CHUNK) < 0.5, rng.integers(first, size=CHUNK), first + each * (c % blocks) + rng.integers(each, size=CHUNK))
        for c in range(chunks)
    ]
    # a frequent word of one block, too, has no topic
    ids = [np.where((row == 3) & (c % blocks > 0), 4, row) for c, row in enumerate(ids)]
    return words, np.concatenate(ids), first


def test_planted_topics():
    """Words of a block have one topic, blocks have different ones; frequent words, short ones and those with digits have none."""
    words, ids, first = planted()
    topics = WordTopics(words, ids)
    assert (topics.of[:first] == -1).all()
    rows = topics.of[first:].reshape(8, -1)
    assert (rows == rows[:, :1]).all() and sorted(rows[:, 0]) == list(range(8))
    assert topics.labels.shape == (1 + SHUFFLES, len(words)) and (topics.labels[0] == topics.of).all()
    for row in topics.labels[1:]:
        assert (np.bincount(row + 1) == np.bincount(topics.of + 1)).all() and (row[:first] == -1).all() and (row != topics.of).any()


def test_a_text_without_candidates():
    """Few words have no topics, and no measure of them is a number."""
    topics = WordTopics(("<unk>", "the", "cat"), np.array([1, 2, 0, 1]))
    assert (topics.of == -1).all()
    assert np.isnan(topic_attention([([attention()], RNG.integers(3, size=(R, B, T)))], topics.labels)).all()
    assert np.isnan(topic_cosines(RNG.standard_normal((R, 3, 4)), topics.labels)).all()


LABELS = np.array([[-1, 0, 0, 1, 1, 2, 2, -1, 0], [-1, 1, 0, 2, 0, 1, 0, -1, 2]])


def test_topic_attention():
    """Means over pairs of different words, one by one; token M has no topic; even attention makes no difference."""
    T = 9
    tokens, layers = RNG.integers(1, M + 1, size=(R, B, T)), [attention(T=T), attention(T=T)]
    found = topic_attention([(layers, tokens)], LABELS)
    parts = [([a[:, rows] for a in layers], tokens[:, rows]) for rows in (slice(0, 2), slice(2, B))]
    np.testing.assert_allclose(topic_attention(parts, LABELS), found, rtol=1e-12)
    assert found.shape == (R, 2, 2, H)
    for r, s, layer, h in np.ndindex(R, 2, 2, H):
        sums: dict[bool, list[float]] = {True: [], False: []}
        for b, i, j in np.ndindex(B, T, T):
            u, v = tokens[r, b, i], tokens[r, b, j]
            if u != v and M not in (u, v) and LABELS[0, u] >= 0 and LABELS[0, v] >= 0:
                sums[bool(LABELS[s, u] == LABELS[s, v])].append(layers[layer][r, b, h, i, j])
        assert found[r, s, layer, h] == pytest.approx(np.mean(sums[True]) / np.mean(sums[False]), rel=1e-12)
    np.testing.assert_allclose(topic_attention([([np.full((R, B, H, T, T), 1 / T)], tokens)], LABELS), 1, rtol=1e-12)


def test_topic_cosines():
    """Means over pairs of different words, one by one, of embeddings less their mean over all tokens."""
    E = RNG.standard_normal((R, M + 1, 4))
    found = topic_cosines(E, LABELS)
    for r, s in np.ndindex(R, 2):
        rows = E[r] - E[r].mean(axis=0)
        sums: dict[bool, list[float]] = {True: [], False: []}
        for u, v in np.ndindex(M, M):
            if u != v and LABELS[0, u] >= 0 and LABELS[0, v] >= 0:
                cosine = rows[u] @ rows[v] / np.linalg.norm(rows[u]) / np.linalg.norm(rows[v])
                sums[bool(LABELS[s, u] == LABELS[s, v])].append(cosine)
        np.testing.assert_allclose(found[r, s], [np.mean(sums[True]), np.mean(sums[False])], rtol=1e-12)


def test_even_attention():
    """The first token and the fifth with most have what the null says; no entry is small."""
    a = even_attention(35)
    assert first_share(a)[0, 0] == pytest.approx(even(35)[0], rel=1e-12)
    assert heavy_share(a)[0, 0] == pytest.approx(most(even(35)), rel=1e-12)
    assert sparse_share(a, causal=True)[0, 0] == 0


def test_sharp_attention():
    """Each token looks at itself: all other entries that it sees are small, and all tokens have the same of it."""
    a = np.broadcast_to(np.eye(10), (R, B, H, 10, 10))
    np.testing.assert_allclose(sparse_share(a, causal=True), 45 / 55, rtol=1e-12)
    np.testing.assert_allclose(sparse_share(a, causal=False), 0.9, rtol=1e-12)
    np.testing.assert_allclose(first_share(a), 0.1, rtol=1e-12)
    np.testing.assert_allclose(heavy_share(a), 0.2, rtol=1e-12)
    a = 0.95 * a + 0.05 / 10  # .005 beside .955 is below .01 of it; .014 beside .774 is not
    assert (sparse_share(a, causal=True) == 45 / 55).all() and (sparse_share(0.8 * a + 0.01, causal=True) == 0).all()


def test_heavy_tokens_differ_from_text_to_text():
    """The fifth with most attention is one of each sequence: it has all where each sequence looks at one place of its own."""
    a = np.zeros((1, 4, 1, 5, 5))
    for b in range(4):
        a[0, b, 0, :, b] = 1
    assert heavy_share(a)[0, 0] == 1
    assert first_share(a)[0, 0] == 0.25
