"""Classes of a text: pairs of a query and its next token, with the contexts before them."""

from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.reference.data.text import Corpus, is_word


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of a text: `length` tokens, the last of them the query, and the next token.

    ids (n,): the tokens of the text. positions (N,): of the queries. Each window lies in one document and one part of the split.
    """

    ids: Array
    positions: Array
    length: int

    def contexts(self, which: Array) -> Array:
        """The contexts (..., length - 1) before the queries of windows number `which` (...)."""
        back = np.arange(self.length - 1, 0, -1)
        return self.ids.take(self.positions.take(which)[..., None] - back)


@dataclass(frozen=True, eq=False)
class PairClasses:
    """K classes of a text: class n has the next token next[n] (K,) after the query queries[psi[n]] (Q,).

    P (K, M): distribution of tokens in the contexts of a class. p (K,): frequency of classes. windows, classes (N,): training windows and
    their classes; validation, validation_classes: the same for validation.
    """

    queries: Array
    next: Array
    psi: Array
    P: Array
    p: Array
    windows: Windows
    classes: Array
    validation: Windows
    validation_classes: Array


def windows(corpus: Corpus, length: int, fraction: float) -> tuple[Windows, Windows]:
    """The windows for training and for validation. Each window lies in one document and in one of the two parts of the text.

    fraction: the share of the text, at its end, for validation. Raises ParamError if a part has no window.
    """
    n = len(corpus.ids)
    edge = n - round(fraction * n)
    result = []
    for start, stop, part in ((0, edge, "training"), (edge, n, "validation")):
        positions = np.arange(start + length - 1, stop - 1)
        positions = positions[corpus.document[positions - length + 1] == corpus.document[positions + 1]]
        if not len(positions) and (part == "training" or fraction > 0):
            raise ParamError(
                f"the text is too short: for {part} it has {stop - start} of its {counted(n, 'token')}, "
                f"and no document of {counted(length + 1, 'token')}, which length={length} needs"
            )
        result.append(Windows(corpus.ids, positions, length))
    return result[0], result[1]


def pair_classes(corpus: Corpus, *, length: int, num_next: int, num_query: int, fraction: float) -> PairClasses:
    """The classes of the most frequent pairs of words: num_next next tokens, each after one query, at most num_query queries.

    Punctuation and `<unk>` occur in contexts only. Raises ParamError if the text has fewer pairs, or no windows.
    """
    M = len(corpus.words)
    training, validation = windows(corpus, length, fraction)
    pairs = _pairs(training, M)
    word = np.array([is_word(token) for token in corpus.words])
    frequent, counts = np.unique(pairs[word[pairs // M] & word[pairs % M]], return_counts=True)
    queries: list[int] = []
    chosen: dict[int, int] = {}  # next token: pair
    for pair in frequent[np.argsort(-counts, kind="stable")].tolist():
        query, follower = divmod(pair, M)
        if follower in chosen or len(chosen) == num_next or (query not in queries and len(queries) == num_query):
            continue
        chosen[follower] = pair
        if query not in queries:
            queries.append(query)
    if len(chosen) < num_next:
        raise ParamError(f"num_next must be at most {len(chosen)}, the next words that num_query={num_query} leaves, not {num_next}")
    chosen_pairs = np.array(list(chosen.values()))
    classes = _classes(pairs, chosen_pairs)
    training, classes = Windows(training.ids, training.positions[classes >= 0], length), classes[classes >= 0]
    validation_classes = _classes(_pairs(validation, M), chosen_pairs)
    validation, validation_classes = (
        Windows(validation.ids, validation.positions[validation_classes >= 0], length),
        validation_classes[validation_classes >= 0],
    )
    if fraction > 0 and not len(validation_classes):
        raise ParamError(f"validation={fraction:g} leaves none of the {num_next} pairs to the validation")
    P = token_counts(training, classes, num_next, M).astype(float)
    return PairClasses(
        queries=np.array(queries),
        next=chosen_pairs % M,
        psi=np.array([queries.index(query) for query in (chosen_pairs // M).tolist()]),
        P=P / P.sum(axis=1, keepdims=True),
        p=np.bincount(classes, minlength=num_next) / len(classes),
        windows=training,
        classes=classes,
        validation=validation,
        validation_classes=validation_classes,
    )


def token_counts(windows: Windows, classes: Array, K: int, M: int) -> Array:
    """Counts (K, M) of tokens in the contexts of each class, from windows with classes of (N,)."""
    counts = np.zeros(K * M, int)
    for part in np.array_split(np.arange(len(classes)), 1 + len(classes) // 10000):
        counts += np.bincount((classes[part, None] * M + windows.contexts(part)).ravel(), minlength=K * M)
    return counts.reshape(K, M)


def _pairs(windows: Windows, M: int) -> Array:
    """Query * M + next token (N,) of each window."""
    return windows.ids[windows.positions] * M + windows.ids[windows.positions + 1]


def _classes(pairs: Array, classes: Array) -> Array:
    """The index (N,) of each pair in the distinct pairs `kept`, or -1."""
    order = np.argsort(classes)
    index = order[np.minimum(np.searchsorted(classes, pairs, sorter=order), len(classes) - 1)]
    return np.where(classes[index] == pairs, index, -1)
