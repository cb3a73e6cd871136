"""What attention to a text looks at: words of one topic, the first token, few tokens, few entries. And topics of a text by factors.

Topics are nonnegative factors of counts of words in chunks of a text (lee2001algorithms), a stand-in for latent Dirichlet allocation.
Attention is (R, B, H, T, T), query axis before key axis, without padding.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from math import ceil

import numpy as np
from numpy.random import Generator, default_rng

from odesim.base.arrays import Array, on_host
from odesim.lab.networks.transformer import Transformer, like
from odesim.lab.training.task import Batch, Observable, Params

FACTORS, UPDATES, CHUNK = 8, 200, 200
FREQUENT = 60
"""So many tokens, the most frequent, have no topic: words of any text."""
LETTERS = 3  # of the shortest word that can have a topic
SHUFFLES = 20
TINY = 1e-12  # the least entry of a factor: one of 0 would stay 0, and powers of smaller ones underflow


def nonnegative_factors(X: Array, K: int, updates: int, rng: Generator) -> tuple[Array, Array]:
    """W (n, K) and H (K, m), nonnegative, whose product is near X (n, m); each column of W sums to 1.

    `updates` of the multiplicative rule of lee2001algorithms for squared errors, theorem 1, from uniform numbers: none raises the error.
    """
    W, H = rng.uniform(0.1, 1.0, (len(X), K)), rng.uniform(0.1, 1.0, (K, X.shape[1]))
    for _ in range(updates):
        H = np.maximum(H * (W.T @ X) / (W.T @ W @ H), TINY)
        W = np.maximum(W * (X @ H.T) / (W @ (H @ H.T)), TINY)
    # only the product is determined; in this scale H[k, w] is how much of word w's counts factor k explains
    size = W.sum(axis=0)
    return W / size, H * size[:, None]


class WordTopics:
    """The topics (M,) of the words of a text of tokens ids (n,), -1 for words without one.

    Words of LETTERS letters or more, beyond the FREQUENT most frequent ones, have the factor that explains more than half of them, of
    FACTORS factors of ln(1 + count) in chunks of CHUNK tokens. It is found when it is first asked for.
    """

    def __init__(self, words: Sequence[str], ids: Array) -> None:
        self.words, self.ids = tuple(words), ids

    @cached_property
    def candidates(self) -> Array:
        """Numbers of the words that may have a topic."""
        chosen = [len(word) >= LETTERS and word.replace("_", "").isalpha() for word in self.words]
        return np.flatnonzero(np.array(chosen) & (np.arange(len(chosen)) > FREQUENT))

    @cached_property
    def of(self) -> Array:
        topics = np.full(len(self.words), -1)
        if len(self.candidates):
            chunks, M = -(-len(self.ids) // CHUNK), len(self.words)
            counts = np.bincount(np.arange(len(self.ids)) // CHUNK * M + self.ids, minlength=chunks * M).reshape(chunks, M)
            _, H = nonnegative_factors(np.log1p(counts[:, self.candidates]), FACTORS, UPDATES, default_rng(0))
            clear = H.max(axis=0) > H.sum(axis=0) / 2
            topics[self.candidates[clear]] = H.argmax(axis=0)[clear]
        return topics

    @cached_property
    def labels(self) -> Array:
        """The topics (1 + SHUFFLES, M), and the same given to the words that have one in random orders."""
        rows, rng = np.tile(self.of, (1 + SHUFFLES, 1)), default_rng(0)
        having = np.flatnonzero(self.of >= 0)
        for row in rows[1:]:
            row[having] = rng.permutation(self.of[having])
        return rows


def topic_attention(passes: Iterable[tuple[Sequence[Array], Array]], labels: Array) -> Array:
    """Attention between words of one topic over that between words of two (R, S, L, H), by rows of labels (S, M); 1: no difference.

    passes: attention of each layer, and the tokens (R, B, T) that it is of; those from M on have no topic, such as the mask. Pairs of one
    word do not count. nan where there are no pairs.
    """
    sums, counts = 0.0, 0.0
    for attention, tokens in passes:
        (R, B, T), H = tokens.shape, attention[0].shape[2]
        topics = np.concatenate([labels, np.full((len(labels), 1), -1)], axis=1)[:, np.minimum(tokens, labels.shape[1])]  # (S, R, B, T)
        different_words = tokens[..., :, None] != tokens[..., None, :]  # (R, B, T, T)
        both = (topics[0, ..., :, None] >= 0) & (topics[0, ..., None, :] >= 0) & different_words
        # all pairs, then those of one topic, as columns of one matrix: all rows of labels in one product
        chosen = np.stack([both, *((row[..., :, None] == row[..., None, :]) & both for row in topics)], axis=-1)
        columns = chosen.reshape(R, 1, B * T * T, -1).astype(attention[0].dtype)
        rows = np.stack([a.swapaxes(1, 2).reshape(R, H, 1, B * T * T) for a in attention], axis=1)
        sums = sums + (rows @ columns[:, None])[..., 0, :].transpose(0, 3, 1, 2).astype(float)  # (R, 1 + S, L, H)
        counts = counts + chosen.sum(axis=(1, 2, 3))[..., None, None].astype(float)  # (R, 1 + S, 1, 1)
    (total, same), (n, pairs) = ((a[:, :1], a[:, 1:]) for a in (np.asarray(sums), np.asarray(counts)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (same / pairs) / ((total - same) / (n - pairs))
    return np.where((pairs > 0) & (n > pairs), ratio, np.nan)


def topic_cosines(E: Array, labels: Array) -> Array:
    """Mean cosine of embeddings of two words of one topic, and of two topics (R, S, 2), by rows of labels (S, M).

    E (R, V, d) of at least M tokens, less their mean. nan where there are no such words.
    """
    having = np.flatnonzero(labels[0] >= 0)
    rows = (E - E.mean(axis=1, keepdims=True))[:, having]
    unit = rows / np.maximum(np.sqrt((rows * rows).sum(axis=2, keepdims=True)), TINY)
    result = np.full((len(E), len(labels), 2), np.nan)
    for s, row in enumerate(labels[:, having]):
        # sums over all pairs of a topic are squares of its mean vector: no matrix of all words
        members = (row[:, None] == np.unique(row)).astype(E.dtype)
        sizes, sums = members.sum(axis=0), np.einsum("rvd,vk->rkd", unit, members, optimize=True)
        same, n = (sums * sums).sum(axis=(1, 2)) - len(having), float(len(having))
        pairs, every = float((sizes * (sizes - 1)).sum()), (sums.sum(axis=1) ** 2).sum(axis=1) - n
        if 0 < pairs < n * (n - 1):
            result[:, s] = np.stack([same / pairs, (every - same) / (n * (n - 1) - pairs)], axis=1)
    return result


# Sinks, heavy hitters, sparse entries. Even causal attention has a sink and heavy hitters too (claim static.heavy_hitters): a number means
# something beside it.


def first_share(a: Array) -> Array:
    """Attention (R, H) to the first token, mean over queries, of a (R, B, H, T, T): that of a sink (xiao2024efficient)."""
    return np.asarray(a[..., 0].mean(axis=(1, 3)))


def heavy_share(a: Array, fraction: float = 0.2) -> Array:
    """What the keys with the most attention get (R, H), that fraction of all in each sequence (zhang2023h2o), of a (R, B, H, T, T)."""
    scores = np.sort(a.mean(axis=3), axis=-1)  # (R, B, H, T)
    return np.asarray(scores[..., -ceil(fraction * a.shape[-1]) :].sum(axis=-1).mean(axis=1))


def sparse_share(a: Array, *, causal: bool, below: float = 0.01) -> Array:
    """The share (R, H) of entries below .01 of the largest of their row, of keys that are seen (zhang2023h2o, section 3)."""
    T = a.shape[-1]
    seen = np.tri(T, dtype=bool) if causal else np.ones((T, T), bool)
    small = (a < below * a.max(axis=-1, keepdims=True)) & seen
    return np.asarray(small.sum(axis=(1, 3, 4)) / (a.shape[1] * seen.sum()))


def attention_to_text(model: Transformer, batches: Sequence[Batch], topics: WordTopics) -> tuple[Observable, ...]:
    """What attention looks at, by layer and head, in the first of these batches; without a causal mask, what it knows of topics, in all.

    How far embeddings know topics, too.
    """
    batch = batches[0]

    def of_heads(measure: Callable[[Array], Array]) -> Callable[[Params], Array]:
        def by_layer(params: Params) -> Array:
            return like(params, np.stack([measure(a) for a in on_host(model.forward(params, batch).attention)], axis=1))

        return by_layer

    def attention(params: Params) -> Array:
        passes = ((on_host(model.forward(params, b).attention), b["tokens"]) for b in batches)
        return like(params, topic_attention(passes, topics.labels))

    def cosines(params: Params) -> Array:
        return like(params, topic_cosines(on_host(params["embedding"]), topics.labels))

    heads, order = ("layer", "head"), "the text's topics, then the same words with topics in random orders"
    sparse = of_heads(partial(sparse_share, causal=model.causal))
    result = [
        Observable("attention_first", of_heads(first_share), heads, "attention to the first token", costly=True),
        Observable("attention_heavy", of_heads(heavy_share), heads, "attention to the fifth of the tokens with most of it", costly=True),
        Observable("attention_sparse", sparse, heads, "share of entries below .01 of their row's largest", costly=True),
    ]
    if not model.causal:
        doc = f"attention between words of one topic over that between words of two: {order}"
        result.append(Observable("topic_attention", attention, ("labels", *heads), doc, costly=True))
        doc = f"mean cosine of embeddings, less their mean, of words of one topic, and of two: {order}"
        result.append(Observable("topic_cosine", cosines, ("labels", "pair"), doc, costly=True))
    return tuple(result)
