"""Documents of topics with masked words: their laws, all sets of topics at once, and batches of documents that are drawn.

A document has no order, so that attention sees how often each token is shown. A row is a query token in a document.
keys (d,): the logarithm of how often each token is shown there. query: the token. target (d,): the weight of each word that was masked
where the query is shown. The targets of a batch sum to 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.lab.training.protocols import Batch
from odesim.lab.training.randomness import BATCHES, DATA, generators

MIXTURES = ("sets", "dirichlet")
KEYS = ("all", "unmasked")
MASKS = ("new", "once")
Rows = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Laws:
    """Settings of the document generator: topics, words per topic, topics per document, masking.

    T topics have v words each. A document has tau topics, or proportions from Dirichlet's law with parameter alpha.
    p_m: probability that a word is masked; of the masked words, p_c stay as they are, and p_r are replaced by a random word.
    """

    T: int
    v: int
    tau: int
    p_m: float
    p_c: float
    p_r: float
    mixture: str = "sets"
    alpha: float = 0.1

    @property
    def d(self) -> int:
        """The number of tokens: the mask, which is 0, and all words."""
        return self.T * self.v + 1

    def documents(self) -> Array:
        """P (N, d): the law of a word for each set of tau topics."""
        member = np.array([np.isin(np.arange(self.T), chosen) for chosen in combinations(range(self.T), self.tau)])
        return np.pad(np.repeat(member, self.v, axis=1) / (self.tau * self.v), ((0, 0), (1, 0)))

    def shown(self) -> Array:
        """B (d, d): the probability that token w is shown where word x is masked; the column of the mask itself is no word's."""
        B = np.full((self.d, self.d), self.p_r / (self.d - 1)) + self.p_c * np.eye(self.d)
        B[0] = 1 - self.p_c - self.p_r
        return B

    def population(self) -> Rows:
        """The rows of infinitely long documents, for every set of topics and every query: keys (Q, d), query (Q,), target (Q, d)."""
        P, B = self.documents(), self.shown()
        law = (1 - self.p_m) * P + self.p_m * P @ B.T
        with np.errstate(divide="ignore"):  # words that are never shown
            keys = np.repeat(np.log(law), self.d, axis=0)
        target = (P[:, None] * B[None]).reshape(-1, self.d) / len(P)
        return keys, np.tile(np.arange(self.d), len(P)), target

    def words(self, rng: Generator, count: int, longest: int) -> Array:
        """The words (count, longest) of documents of the greatest length."""
        if self.mixture == "sets":
            chosen = np.argsort(rng.random((count, self.T)), axis=1)[:, : self.tau]
            topics = np.take_along_axis(chosen, rng.integers(self.tau, size=(count, longest)), axis=1)
        else:
            shares = np.cumsum(rng.dirichlet(np.full(self.T, self.alpha), count), axis=1)
            topics = np.minimum((rng.random((count, longest))[..., None] > shares[:, None]).sum(axis=2), self.T - 1)
        return np.asarray(1 + topics * self.v + rng.integers(self.v, size=topics.shape))

    def mask(self, rng: Generator, words: Array) -> tuple[Array, Array]:
        """The words as shown, and whether each of them is masked; both have the shape of `words`."""
        masked, kind = rng.random(words.shape) < self.p_m, rng.random(words.shape)
        other = rng.integers(1, self.d, size=words.shape)
        replaced = np.where(kind < self.p_c, words, np.where(kind < self.p_c + self.p_r, other, 0))
        return np.where(masked, replaced, words), masked


def rows_of(words: Array, shown: Array, masked: Array, lengths: Array, d: int, keys: str) -> Rows:
    """The rows of documents (B, longest) of these lengths (B,): one for each token that is shown in place of a masked word.

    keys="unmasked": attention does not see masked places. A batch without a masked word has a row of weight 0.
    """
    here = np.arange(words.shape[1]) < lengths[:, None]
    masked, document = masked & here, np.arange(len(words))[:, None] * d
    seen = here & ~masked if keys == "unmasked" else here
    counts = np.bincount((document + shown)[seen], minlength=len(words) * d).reshape(-1, d)
    place, row = np.unique((document + shown)[masked], return_inverse=True)
    if not len(place):
        return np.zeros((1, d)), np.zeros(1, int), np.zeros((1, d))
    target = np.bincount(row * d + words[masked], minlength=len(place) * d).reshape(-1, d) / len(row)
    kept = counts[place // d]
    kept[kept.sum(axis=1) == 0] = 1  # every place is masked: uniform attention
    with np.errstate(divide="ignore"):  # tokens that are not shown
        return np.log(kept), place % d, target


def stacked(rows: Sequence[Rows]) -> Batch:
    """One batch of the rows of every seed, filled up with zeros: keys (R, Q, d), query (R, Q), target (R, Q, d), and their number (R,)."""
    most = max(len(query) for _, query, _ in rows)
    filled = [[np.pad(a, [(0, most - len(a)), *[(0, 0)] * (a.ndim - 1)]) for a in one] for one in rows]
    names = ("keys", "query", "target")
    return {name: np.stack([one[n] for one in filled]) for n, name in enumerate(names)} | {"rows": np.array([len(q) for _, q, _ in rows])}


@dataclass(frozen=True)
class Reading:
    """How documents are read: their lengths, how many at once, how many are drawn once (0: all are new), their masks, what attention sees.

    masks="once": documents drawn once keep their masks; "new": these are drawn anew whenever a document is read.
    """

    shortest: int
    longest: int
    batch: int
    documents: int = 0
    masks: str = "new"
    keys: str = "all"


class TopicBatches:
    """A Stream of documents, one batch for each seed."""

    def __init__(self, seeds: Sequence[int], laws: Laws, reading: Reading) -> None:
        self.seeds, self.laws, self.reading = tuple(seeds), laws, reading
        self.fixed: list[tuple[Array, ...]] = []
        for rng in generators(self.seeds, DATA) if reading.documents else ():
            words, lengths = self.documents(rng, reading.documents)
            self.fixed.append((words, lengths, *(laws.mask(rng, words) if reading.masks == "once" else ())))

    def documents(self, rng: Generator, count: int) -> tuple[Array, Array]:
        """Words (count, longest) and lengths (count,)."""
        longest = self.reading.longest
        return self.laws.words(rng, count, longest), rng.integers(self.reading.shortest, longest + 1, size=count)

    def one_seed(self, n: int, rng: Generator) -> Rows:
        """The rows of a batch of the n-th seed."""
        if not self.fixed:
            words, lengths, *masks = self.documents(rng, self.reading.batch)
        else:
            chosen = rng.integers(len(self.fixed[n][0]), size=self.reading.batch)
            words, lengths, *masks = (a[chosen] for a in self.fixed[n])
        shown, masked = masks or self.laws.mask(rng, words)
        return rows_of(words, shown, masked, lengths, self.laws.d, self.reading.keys)

    def __call__(self, iteration: int) -> Batch:
        return stacked([self.one_seed(n, rng) for n, rng in enumerate(generators(self.seeds, BATCHES, iteration))])
