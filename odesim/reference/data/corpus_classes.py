"""Classes of real contexts: pairs of a query and its next token in a text, and what stands before them."""

from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ParamError, counted
from odesim.reference.data.text import Corpus, is_word


@dataclass(frozen=True, eq=False)
class Windows:
    """Places in a text where a whole window stands: `length` tokens, the last of them the query, and the next token.

    ids (n,): the text. at (N,): places of the queries, in one document and on one side of the split.
    """

    ids: Array
    at: Array
    length: int

    def contexts(self, which: Array) -> Array:
        """The length - 1 tokens (..., length - 1) before the queries of the windows `which` (...)."""
        back = np.arange(self.length - 1, 0, -1)
        return self.ids.take(self.at.take(which)[..., None] - back)


@dataclass(frozen=True, eq=False)
class PairClasses:
    """Class n: next token next[n] (K,) after the query queries[psi[n]] (Q,), in training windows of class of[i] (N,).

    P (K, M): share of each token among the contexts of a class; p (K,): share of a class; validation: its windows and their classes.
    """

    queries: Array
    next: Array
    psi: Array
    P: Array
    p: Array
    windows: Windows
    of: Array
    validation: Windows
    validation_of: Array


def windows(corpus: Corpus, length: int, fraction: float) -> tuple[Windows, Windows]:
    """Those of the training and those of the validation: every window in one document and in one of the two parts of the text.

    fraction: the share of the text, at its end, that is for validation. Raises ParamError where a part that is wanted has no window.
    """
    n = len(corpus.ids)
    edge = n - round(fraction * n)
    found = []
    for start, stop, part in ((0, edge, "training"), (edge, n, "validation")):
        at = np.arange(start + length - 1, stop - 1)
        at = at[corpus.document[at - length + 1] == corpus.document[at + 1]]
        if not len(at) and (part == "training" or fraction > 0):
            raise ParamError(
                f"the text is too short: of its {counted(n, 'token')} {stop - start} are for {part}, "
                f"without a document of the {length + 1} that length={length} needs"
            )
        found.append(Windows(corpus.ids, at, length))
    return found[0], found[1]


def pair_classes(corpus: Corpus, *, length: int, num_next: int, num_query: int, fraction: float) -> PairClasses:
    """The most frequent pairs of words: at most num_query queries, num_next next tokens, each after one query alone.

    Marks and `<unk>` stand in contexts only.

    Raises ParamError where the text has fewer, or no windows.
    """
    M = len(corpus.words)
    training, held = windows(corpus, length, fraction)
    pairs = _pairs(training, M)
    word = np.array([is_word(token) for token in corpus.words])
    found, counts = np.unique(pairs[word[pairs // M] & word[pairs % M]], return_counts=True)
    queries: list[int] = []
    chosen: dict[int, int] = {}  # next token: pair
    for pair in found[np.argsort(-counts, kind="stable")].tolist():
        query, follower = divmod(pair, M)
        if follower in chosen or len(chosen) == num_next or (query not in queries and len(queries) == num_query):
            continue
        chosen[follower] = pair
        if query not in queries:
            queries.append(query)
    if len(chosen) < num_next:
        raise ParamError(f"num_next must be at most {len(chosen)}, the next words that num_query={num_query} leaves, not {num_next}")
    kept = np.array(list(chosen.values()))
    of = _classes(pairs, kept)
    training, of = Windows(training.ids, training.at[of >= 0], length), of[of >= 0]
    held_of = _classes(_pairs(held, M), kept)
    held, held_of = Windows(held.ids, held.at[held_of >= 0], length), held_of[held_of >= 0]
    if fraction > 0 and not len(held_of):
        raise ParamError(f"validation={fraction:g} leaves none of the {num_next} pairs to the validation")
    P = token_counts(training, of, num_next, M).astype(float)
    return PairClasses(
        queries=np.array(queries),
        next=kept % M,
        psi=np.array([queries.index(query) for query in (kept // M).tolist()]),
        P=P / P.sum(axis=1, keepdims=True),
        p=np.bincount(of, minlength=num_next) / len(of),
        windows=training,
        of=of,
        validation=held,
        validation_of=held_of,
    )


def token_counts(found: Windows, of: Array, K: int, M: int) -> Array:
    """How often each token stands in the contexts of each class: (K, M) of windows of classes of (N,)."""
    counts = np.zeros(K * M, int)
    for part in np.array_split(np.arange(len(of)), 1 + len(of) // 10000):
        counts += np.bincount((of[part, None] * M + found.contexts(part)).ravel(), minlength=K * M)
    return counts.reshape(K, M)


def _pairs(found: Windows, M: int) -> Array:
    """Query * M + next token (N,) of each window."""
    return found.ids[found.at] * M + found.ids[found.at + 1]


def _classes(pairs: Array, kept: Array) -> Array:
    """The place (N,) of each pair among those kept, all different, or -1."""
    order = np.argsort(kept)
    place = order[np.minimum(np.searchsorted(kept, pairs, sorter=order), len(kept) - 1)]
    return np.where(kept[place] == pairs, place, -1)
