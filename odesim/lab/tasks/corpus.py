"""The task corpus: predict the next token of a real text from its context, or hidden ones from both sides.

The text is `pydoc_data.topics` of this CPython, or one's own. Tokens are words in lower case, that is letters, digits and underscores,
and punctuation marks, a run of one mark once; the vocabulary is `<unk>`, then the most frequent tokens. Documents end at a NUL, and
no window crosses their ends. The last part of the text, `validation` of it, is kept out of the training.

Model yz (tian2023scan): a class is a pair of a query and its next word, the num_next most frequent pairs with different next words
and at most num_query queries; its contexts are the length - 1 tokens before the query, and the training draws from its real ones.
P, psi and p are counted over all of them: with M they are parameters of scan_snap.full, whose contexts are infinite. Model
transformer: the next token after each of `length` places, or, objective=masked, the tokens at a share p_m of the places, which are
shown as themselves (p_c), as any token (p_r) or as a mask, in sight of both sides (devlin2019bert; as in its program, a fixed number of
places in each window).

Real contexts of some tens of tokens are far from infinite: attention leaves all but the few tokens that nearly every context has, and
the System is right about which way the attention of a class to a token moves no more often than a coin. contexts=drawn, with more and
more tokens, and contexts=infinite lead from the one to the other.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted
from odesim.lab.networks.one_layer import DECODERS, FULL, FULL_SETTINGS, YZ, not_yz_model
from odesim.lab.networks.sequences import network_of
from odesim.lab.networks.text import WordTopics, attention_to_text
from odesim.lab.networks.transformer import Transformer
from odesim.lab.training.optimizers import CLIP
from odesim.lab.training.randomness import TESTS, Drawn, InBlocks, generators
from odesim.lab.training.task import Batch, Experiment, Model, Observable, Optimizer, Pair, Params, ReferenceTask, Setting, Settings, Stream

# Converts text to token numbers: the most frequent words and punctuation marks, `<unk>` for others.

UNK = "<unk>"
END = "\0"  # of a document
# a word is letters, digits and underscores; any other visible character is a mark, and a run of one mark is a single one
TOKEN = re.compile(r"(\w+)|([^\w\s\x00-\x1f\x7f])\2*")


@dataclass(frozen=True, eq=False)
class Corpus:
    """A text as numbers. words (M,): `<unk>`, then the most frequent first. ids (n,): its tokens; document (n,): their documents."""

    words: tuple[str, ...]
    ids: Array
    document: Array


def pydoc_topics() -> str:
    """The text of Python's help, `pydoc_data.topics`: names and texts of topics as documents, in alphabetical order."""
    from pydoc_data.topics import topics

    return END.join(f"{name}{END}{topics[name]}" for name in sorted(topics))


def digest(text: str) -> str:
    """The sha256 of the text in hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def tokens(text: str) -> Iterator[str]:
    """Yields the tokens of the text in lower case: words and punctuation marks; a repeated mark is one token."""
    for match in TOKEN.finditer(text.lower()):
        yield match[1] or match[2]


def encode(text: str, vocabulary: int) -> Corpus:
    """The Corpus of a text with the vocabulary - 1 most frequent tokens, or all of a text that has fewer; ties are in alphabetical order.

    Raises ParamError if the text has no tokens.
    """
    documents = [list(tokens(part)) for part in text.split(END)]
    counts = Counter(word for document in documents for word in document)
    if not counts:
        raise ParamError(f"the text has no tokens: it must hold words or punctuation marks, not {len(text)} characters of white space")
    words = (UNK, *sorted(counts, key=lambda word: (-counts[word], word))[: vocabulary - 1])
    number = {word: i for i, word in enumerate(words)}
    ids = np.array([number.get(word, 0) for document in documents for word in document])
    return Corpus(words, ids, np.repeat(np.arange(len(documents)), [len(document) for document in documents]))


# Classes of a text: pairs of a query and its next token, with the contexts before them.


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of a text: `length` tokens, the last of them the query, and the next token.

    ids (n,): the tokens of the text. positions (N,): of the queries; each window lies in one document and one part of the split.
    classes (N,): where they are of classes.
    """

    ids: Array
    positions: Array
    length: int
    classes: Array

    def tokens(self, which: Array, first: int, end: int) -> Array:
        """The tokens (..., end - first) from `first` to end - 1, counted from the queries of windows number `which` (...)."""
        return self.ids.take(self.positions.take(which)[..., None] + np.arange(first, end))

    def contexts(self, which: Array) -> Array:
        """The contexts (..., length - 1) before the queries."""
        return self.tokens(which, 1 - self.length, 0)

    def pairs(self, M: int) -> Array:
        """Query * M + next token (N,)."""
        return self.ids[self.positions] * M + self.ids[self.positions + 1]

    def of_pairs(self, chosen: Array, M: int) -> "Windows":
        """Those of these distinct pairs (K,), each of the class of its pair's number."""
        order, pairs = np.argsort(chosen), self.pairs(M)
        index = order[np.minimum(np.searchsorted(chosen, pairs, sorter=order), len(chosen) - 1)]
        here = chosen[index] == pairs
        return replace(self, positions=self.positions[here], classes=index[here])

    def counts(self, K: int, M: int) -> Array:
        """Counts (K, M) of tokens in the contexts of each class."""
        counts = np.zeros(K * M, int)
        for part in np.array_split(np.arange(len(self.classes)), 1 + len(self.classes) // 10000):
            counts += np.bincount((self.classes[part, None] * M + self.contexts(part)).ravel(), minlength=K * M)
        return counts.reshape(K, M)


@dataclass(frozen=True, eq=False)
class PairClasses:
    """K classes of a text: class n has the next token next[n] (K,) after the query queries[psi[n]] (Q,).

    P (K, M): distribution of tokens in the contexts of a class. p (K,): frequency of classes. windows, validation: theirs.
    """

    queries: Array
    next: Array
    psi: Array
    P: Array
    p: Array
    windows: Windows
    validation: Windows


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
        result.append(Windows(corpus.ids, positions, length, np.empty(0, int)))
    return result[0], result[1]


def pair_classes(corpus: Corpus, *, length: int, num_next: int, num_query: int, fraction: float) -> PairClasses:
    """The classes of the most frequent pairs of words: num_next next tokens, each after one query, at most num_query queries.

    Punctuation and `<unk>` occur in contexts only. Raises ParamError if the text has fewer pairs, or no windows.
    """
    M = len(corpus.words)
    training, validation = windows(corpus, length, fraction)
    pairs = training.pairs(M)
    word = np.array([(token[0] == "_" or token[0].isalnum()) for token in corpus.words])
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
    training, validation = training.of_pairs(chosen_pairs, M), validation.of_pairs(chosen_pairs, M)
    if fraction > 0 and not len(validation.classes):
        raise ParamError(f"validation={fraction:g} leaves none of the {num_next} pairs to the validation")
    P = training.counts(num_next, M).astype(float)
    return PairClasses(
        queries=np.array(queries),
        next=chosen_pairs % M,
        psi=np.array([queries.index(query) for query in (chosen_pairs // M).tolist()]),
        P=P / P.sum(axis=1, keepdims=True),
        p=np.bincount(training.classes, minlength=num_next) / len(training.classes),
        windows=training,
        validation=validation,
    )


# Streams of batches from a text: contexts of classes as token counts, and stretches of tokens with their next tokens.

BLOCK = 64  # iterations drawn at once
MAX_VALIDATION = 1000  # largest number of validation windows in a batch
PARTS = 5  # batches in which attention to topics is counted: in one the pairs of a topic are so few that two seeds differ by a tenth


class TextBatches:
    """A Stream of random training windows, and batches of others, the same for each seed. read(windows, numbers (R, B)): their batch."""

    def __init__(self, seeds: Sequence[int], parts: tuple[Windows, Windows], read: Callable[[Windows, Array], Batch], batch: int) -> None:
        self.seeds, self.parts, self.read = tuple(seeds), parts, read
        end = len(parts[0].positions)
        self.draws = InBlocks(seeds, BLOCK, lambda rng, _: {"which": rng.integers(0, end, (BLOCK, batch))})

    def __call__(self, iteration: int) -> Batch:
        return self.read(self.parts[0], self.draws(iteration)["which"])

    def validation(self, most: int) -> Batch:
        """A batch of up to `most` validation windows, spread evenly."""
        rows = spread_windows(len(self.parts[1].positions), most)
        return self.read(self.parts[1], np.tile(rows, (len(self.seeds), 1)))


def stretches(windows: Windows, which: Array) -> Batch:
    """Windows number `which` (R, B) as tokens (R, B, T), and as targets the next token of each."""
    T = windows.length
    return {"tokens": windows.tokens(which, 1 - T, 1), "targets": windows.tokens(which, 2 - T, 2)}


class Counted:
    """Reads windows of classes: {"classes": (R, B), "counts": (R, B, W)}, counts of the tokens support[n] (W,)."""

    def __init__(self, pairs: PairClasses, dtype: str) -> None:
        occurs = (pairs.P > 0) | (pairs.validation.counts(*pairs.P.shape) > 0)  # (K, M): tokens of each class, those that occur first
        order = np.argsort(~occurs, axis=1, kind="stable")
        self.place, self.dtype = np.empty_like(order), dtype  # (K, M): of each token among them
        np.put_along_axis(self.place, order, np.broadcast_to(np.arange(occurs.shape[1]), occurs.shape), axis=1)
        self.support = np.ascontiguousarray(order[:, : int(occurs.sum(axis=1).max())])

    def __call__(self, windows: Windows, which: Array) -> Batch:
        (R, B), W, classes = which.shape, self.support.shape[1], windows.classes.take(which)
        index = self.place[classes[..., None], windows.contexts(which)]  # (R, B, T - 1)
        index += W * np.arange(R * B).reshape(R, B, 1)
        counts = np.bincount(index.ravel(), minlength=R * B * W).reshape(R, B, W)
        return {"classes": classes, "counts": counts.astype(self.dtype)}


def draw_contexts(p: Array, P: Array, tokens: int, dtype: str, rng: Generator, count: int) -> Batch:
    """Classes (count,) drawn from p (K,), and the counts (count, W) of so many independent tokens each, drawn from P (K, W)."""
    classes = rng.choice(len(p), count, p=p)
    return {"classes": classes, "counts": rng.multinomial(tokens, P[classes]).astype(dtype)}


def hide(rng: Generator, tokens: Array, *, vocabulary: int, share: float, p_c: float, p_r: float) -> Batch:
    """Windows tokens (n, T) with a share of their places to be told: {"tokens": (n, T), "positions": (n, P), "targets": (n, P)}.

    Of these places p_c show their token, p_r any of the vocabulary, the rest the mask, token number `vocabulary`.
    """
    (n, T), P = tokens.shape, places_told(tokens.shape[1], share)
    places = np.sort(rng.random((n, T)).argsort(axis=1)[:, :P], axis=1)
    targets, kind = np.take_along_axis(tokens, places, axis=1), rng.random((n, P))
    other = np.where(kind < p_c + p_r, rng.integers(vocabulary, size=(n, P)), vocabulary)
    shown = tokens.copy()
    np.put_along_axis(shown, places, np.where(kind < p_c, targets, other), axis=1)
    return {"tokens": shown, "positions": places, "targets": targets}


def places_told(length: int, share: float) -> int:
    """How many places of a window are told: as many in each, so that their number is no source of noise."""
    return max(1, round(share * length))


class Hidden(Drawn):
    """A Stream of random training windows of which some tokens are hidden, and to be told: those of `hide`, (R, B, T) and (R, B, P).

    Raises ParamError for probabilities that sum to more than 1.
    """

    def __init__(self, windows: Windows, held_out: Windows, vocabulary: int, values: Settings, seeds: Sequence[int]) -> None:
        p_c, p_r = values["p_c"], values["p_r"]
        if p_c + p_r > 1:
            raise ParamError(f"p_c + p_r must be at most 1, not {p_c + p_r:g}: the rest is shown as the mask")
        self.windows, self.held_out = windows, held_out
        self.hide = partial(hide, vocabulary=vocabulary, share=values["p_m"], p_c=p_c, p_r=p_r)
        super().__init__(seeds, self.of_seed, batch=values["batch"])

    def of_seed(self, rng: Generator, count: int) -> Batch:
        """So many windows of one seed."""
        which = rng.integers(len(self.windows.positions), size=count)
        return self.hide(rng, self.windows.tokens(which, 1 - self.windows.length, 1))

    def validation(self, most: int, part: int = 0) -> Batch:
        """A batch of up to `most` validation windows, spread evenly, the same and hidden alike for each seed.

        part: other windows, between those of part 0, hidden elsewhere.
        """
        count, (rng,) = len(self.held_out.positions), generators((0,), TESTS, part)
        rows = (spread_windows(count, most) + part * count // (most * PARTS)) % count
        batch = self.hide(rng, self.held_out.tokens(rows, 1 - self.held_out.length, 1))
        return {name: np.tile(a, (len(self.seeds), 1, 1)) for name, a in batch.items()}


def spread_windows(count: int, most: int) -> Array:
    """Up to `most` whole numbers below count (B,), spread evenly."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


CONTEXTS = ("windows", "drawn", "infinite")
MOST_LABELS = 10_000


def validation_loss(model: Model, batch: Batch) -> Observable:
    """The observable loss_validation: the loss (R,) of a batch that is not trained on."""

    def loss(params: Params) -> Any:
        return model.loss_and_gradients(params, batch)[0]

    return Observable("loss_validation", loss, (), "loss of text that is not trained on", costly=True)


SETTINGS = (
    Setting("text", "", "the text itself; none: the help of this Python, pydoc_data.topics"),
    Setting("vocabulary", 1000, "tokens, <unk> for all others among them; all of a text that has fewer", low=2),
    Setting("length", 32, "tokens of a window, the query included", low=2),
    Setting("validation", 0.1, "fraction at the end of the text that is not trained on", low=0.0, high=0.9),
    Setting("num_next", 20, "yz: next words, one for each class", low=1),
    Setting("num_query", 5, "yz: queries at most", low=1),
    Setting("contexts", "windows", "yz: those of the text, or tokens drawn from P, or infinite ones", choices=CONTEXTS),
    Setting("drawn", 0, "yz: tokens of a drawn context; 0: length - 1", low=0),
    Setting("batch", 128, "windows of a batch", low=1),
    Setting("eta_Y", 1.0, "yz: learning rate of the decoder", low=0.0),
    Setting("eta_Z", 0.1, "yz: learning rate of the attention", low=0.0),
    Setting("decoder", "vanilla", "yz: gradient of Y: its own, or decorrelated (Lemma 3)", choices=DECODERS),
    Setting("normalize", True, "yz: what is attended is divided by its length"),
    Setting("optimizer", "auto", "how it descends; auto: sgd for yz, adam for transformer", choices=("auto", "sgd", "adam", "adamw")),
    Setting("momentum", 0.0, "of sgd", low=0.0, high=1.0),
    CLIP,
    Setting("lr", 1e-3, "transformer: learning rate", low=0.0),
    Setting("objective", "next", "transformer: tell the next token, or masked ones in sight of both sides", choices=("next", "masked")),
    Setting("p_m", 0.15, "masked: share of the places that are told, one of them at least", low=0.0, high=1.0),
    Setting("p_c", 0.1, "masked: probability that such a place shows its own token", low=0.0, high=1.0),
    Setting("p_r", 0.1, "masked: probability that it shows any token", low=0.0, high=1.0),
    Setting("start", "torch", "transformer: torch's laws, or N(0, .02^2) for each matrix", choices=("torch", "normal")),
    Setting("width", 64, "transformer: of the embeddings", low=1),
    Setting("layers", 2, "transformer: blocks", low=0),
    Setting("heads", 2, "transformer: heads, which divide the width", low=1),
    Setting("mlp", 128, "transformer: nodes of the MLP of a block", low=0),
    Setting("norm", "pre", "transformer: layer norms before attention and MLP, or after them", choices=("pre", "post")),
)


def network(values: Settings, vocabulary: int) -> Transformer:
    """The transformer on a text of so many different tokens. Raises ParamError for heads that do not divide the width."""
    if values["objective"] == "masked":  # one token more, the mask, which is never told
        return network_of(values, vocabulary + 1, outputs=vocabulary, positions=values["length"], at="given", causal=False)
    return network_of(values, vocabulary, positions=values["length"], at="all")


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: classes or a forward pass, parameters, batches; without the text."""
    batch, length, M, K = values["batch"], values["length"], values["vocabulary"], values["num_next"]
    if model == "transformer":
        read = places_told(length, values["p_m"]) if values["objective"] == "masked" else length
        numbers = network(values, M).memory(seeds=seeds, batch=max(batch, 100), length=length, read=read)
        return {**numbers, "the batches": seeds * batch * (BLOCK + 4 * length)}
    return {
        "the classes": 6 * K * M,
        "Y, Z and their gradients": seeds * M * (4 * (K + 1) + 6 * min(values["num_query"], K)),
        "the batches": seeds * max(batch, MAX_VALIDATION) * (BLOCK // 8 + 3 * min(M, K * length) + 4 * K + 2 * length),
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError if the text is too short or has too few words or pairs."""
    text = values["text"] or pydoc_topics()
    corpus = encode(text, values["vocabulary"])
    # a text may have fewer words than asked for; it is stored by its digest
    of_text = {"vocabulary": len(corpus.words), "text_sha256": digest(text), "text_length": len(text)}
    config = {name: value for name, value in values.items() if name != "text"} | of_text
    experiment = transformer(corpus, values, seeds) if model == "transformer" else one_layer(corpus, values, seeds, dtype)
    return replace(experiment, config=config)


def one_layer(corpus: Corpus, values: Settings, seeds: Sequence[int], dtype: str) -> Experiment:
    """The experiment with the one-layer model on classes of the text; tokens of P and columns of Z are those of the vocabulary."""
    if values["objective"] == "masked":
        raise ParamError("objective=masked is of the model transformer, not yz")
    if values["contexts"] == "infinite" and len(seeds) != 1:
        raise ParamError(f"contexts=infinite train without chance, so that one seed is all there is, not {len(seeds)}")
    if values["drawn"] and values["contexts"] != "drawn":
        raise ParamError(f"drawn={values['drawn']} needs contexts=drawn, not {values['contexts']}")
    sizes = {name: values[name] for name in ("length", "num_next", "num_query")}
    pairs = pair_classes(corpus, **sizes, fraction=values["validation"])
    counted_tokens = Counted(pairs, dtype)
    stream = TextBatches(seeds, (pairs.windows, pairs.validation), counted_tokens, values["batch"])
    model = YZ(
        pairs.P,
        pairs.psi,
        pairs.p,
        float(len(corpus.words)),
        support=counted_tokens.support,
        decoder=values["decoder"],
        normalize=values["normalize"],
    )
    rates = {"Y": values["eta_Y"], "Z": values["eta_Z"]}
    classes: dict[str, Any] = {"P": pairs.P, "psi": pairs.psi, "p": pairs.p, "M": model.M}
    P = np.take_along_axis(pairs.P, counted_tokens.support, axis=1)
    drawing = partial(draw_contexts, pairs.p, P / P.sum(axis=1, keepdims=True), values["drawn"] or values["length"] - 1, dtype)
    drawn = Drawn(seeds, drawing, batch=values["batch"])
    streams: dict[str, Stream] = {"windows": stream, "drawn": drawn, "infinite": lambda iteration: {}}
    descent = optimizer(values, "sgd", rates)
    as_assumed = values["normalize"] and values["decoder"] == "vanilla" and descent.name == "sgd"
    return Experiment(
        model=replace(model, extra=(validation_loss(model, stream.validation(MAX_VALIDATION)),)) if values["validation"] > 0 else model,
        stream=streams[values["contexts"]],
        optimizer=descent,
        exact=classes | {"queries": pairs.queries, "next": pairs.next},
        theory={"scan_snap.full": {**classes, "eta_Y": values["eta_Y"], "eta_Z": values["eta_Z"]}} if as_assumed else {},
        labels=labels_of(corpus.words, pairs),
    )


def labels_of(words: Sequence[str], pairs: PairClasses) -> dict[str, tuple[str, ...]]:
    """The words of tokens, queries and classes (query and next word); none where the vocabulary is too large to be stored by name."""
    if len(words) > MOST_LABELS:
        return {}
    queries, after = ([words[i] for i in ids] for ids in (pairs.queries, pairs.next))
    return {"l": tuple(words), "m": tuple(queries), "n": tuple(f"{queries[q]} {word}" for q, word in zip(pairs.psi, after, strict=True))}


def transformer(corpus: Corpus, values: Settings, seeds: Sequence[int]) -> Experiment:
    """The experiment with a transformer that tells every next token in stretches of the text, or some that are hidden.

    Raises ParamError for probabilities above 1.
    """
    M, parts = len(corpus.words), windows(corpus, values["length"], values["validation"])
    model = network(values, M)
    masked, most = values["objective"] == "masked", MAX_VALIDATION // 10
    stream = Hidden(*parts, M, values, seeds) if masked else TextBatches(seeds, parts, stretches, values["batch"])
    if values["validation"] > 0:
        validation = stream.validation(most)
        batches = [stream.validation(most, part) for part in range(PARTS)] if isinstance(stream, Hidden) else [validation]
        watched = attention_to_text(model, batches, WordTopics(corpus.words, corpus.ids)) if model.layers else ()
        model = replace(model, watch=validation, extra=(*watched, validation_loss(model, validation)))
    rates = dict.fromkeys(sorted(set(model.groups.values())), float(values["lr"]))
    return Experiment(model=model, stream=stream, optimizer=optimizer(values, "adam", rates))


def optimizer(values: Settings, auto: str, rates: Mapping[str, float]) -> Optimizer:
    """The Optimizer of the settings; `auto` names the one for optimizer=auto. Momentum is of sgd alone."""
    name = auto if values["optimizer"] == "auto" else values["optimizer"]
    return Optimizer.of({"optimizer": name, "momentum": values["momentum"] if name == "sgd" else 0.0, "clip": values["clip"]}, rates)


DOC = "the next word of a real text: frequent pairs in the one-layer model (tian2023scan), or every next or masked token in a transformer"
PAIRS = {"scan_snap.full": Pair(FULL, requirements=FULL_SETTINGS, other_misfits=not_yz_model, example={"contexts": "infinite"})}
TASK = ReferenceTask("corpus", DOC, SETTINGS, make, memory, ("yz", "transformer"), PAIRS)
