"""The task topics: masked words of documents of a few topics, predicted by one layer of attention.

Source: Li, Li and Risteski 2023, arXiv 2303.04245, and the program YuchenLi01/transformer_topic_model_LDA. Words of T topics of v words
each; a document has tau of them (mixture=sets), or proportions of Dirichlet's law (mixture=dirichlet, the paper's alpha is .1). A word is
masked with probability p_m: then itself (p_c), any word (p_r), or the mask is shown, and the layer predicts it. The paper's experiment:
T=10 v=10 p_c=.1 mixture=dirichlet documents=10000 masks=once keys=unmasked loss=cross_entropy optimizer=adamw lr=.01.

contexts=infinite: documents without end and the exact gradient, of which optimizer=sgd is topics.full in steps. In documents of N words
a masked place is 1/N of its own context, so that values copy the shown word a little already in the first stage; keys=unmasked removes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.base.errors import ParamError
from odesim.lab.networks.measures import norm, softmax
from odesim.lab.training.network import InitialLaw, Network, constant
from odesim.lab.training.optimizers import SGD
from odesim.lab.training.randomness import BATCHES, DATA, generators
from odesim.lab.training.task import Batch, Experiment, Link, Observable, Params, ReferenceTask, Setting, Settings, TrainingFacts, pair_of

# Documents of topics with masked words: their laws, all sets of topics at once, and batches of documents that are drawn.
#
# A document has no order, so that attention sees how often each token is shown. A row is a query token in a document.
# keys (d,): the logarithm of how often each token is shown there. query: the token. target (d,): the weight of each word that was masked
# where the query is shown. The targets of a batch sum to 1.

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
    shown_counts = counts[place // d]
    shown_counts[shown_counts.sum(axis=1) == 0] = 1  # every place is masked: uniform attention
    with np.errstate(divide="ignore"):  # tokens that are not shown
        return np.log(shown_counts), place % d, target


def stacked(rows: Sequence[Rows]) -> Batch:
    """One batch of the rows of every seed, filled up with zeros: keys (R, Q, d), query (R, Q), target (R, Q, d), and their number (R,)."""
    most = max(len(query) for _, query, _ in rows)
    filled = [[np.pad(a, [(0, most - len(a)), *[(0, 0)] * (a.ndim - 1)]) for a in one] for one in rows]
    names = ("keys", "query", "target")
    return {name: np.stack([one[n] for one in filled]) for n, name in enumerate(names)} | {"rows": np.array([len(q) for _, q, _ in rows])}


class TopicBatches:
    """A Stream of documents, one batch for each seed, read as the settings say.

    shortest, longest: words of a document. batch: documents read at once. documents: drawn once, or 0: all are new. masks="once":
    documents drawn once keep their masks; "new": these are drawn anew whenever a document is read. keys: what attention sees.
    """

    def __init__(self, seeds: Sequence[int], laws: Laws, reading: Settings) -> None:
        self.seeds, self.laws, self.reading = tuple(seeds), laws, reading
        self.fixed: list[tuple[Array, ...]] = []
        for rng in generators(self.seeds, DATA) if reading["documents"] else ():
            words, lengths = self.documents(rng, reading["documents"])
            self.fixed.append((words, lengths, *(laws.mask(rng, words) if reading["masks"] == "once" else ())))

    def documents(self, rng: Generator, count: int) -> tuple[Array, Array]:
        """Words (count, longest) and lengths (count,)."""
        longest = self.reading["longest"]
        return self.laws.words(rng, count, longest), rng.integers(self.reading["shortest"], longest + 1, size=count)

    def one_seed(self, n: int, rng: Generator) -> Rows:
        """The rows of a batch of the n-th seed."""
        if not self.fixed:
            words, lengths, *masks = self.documents(rng, self.reading["batch"])
        else:
            chosen = rng.integers(len(self.fixed[n][0]), size=self.reading["batch"])
            words, lengths, *masks = (a[chosen] for a in self.fixed[n])
        shown, masked = masks or self.laws.mask(rng, words)
        return rows_of(words, shown, masked, lengths, self.laws.d, self.reading["keys"])

    def __call__(self, iteration: int) -> Batch:
        return stacked([self.one_seed(n, rng) for n, rng in enumerate(generators(self.seeds, BATCHES, iteration))])


# One layer of attention without residual or positions, W_V Z softmax((W_K Z)^T (W_Q Z)), with hand-written gradients.
#
# Source: Li, Li and Risteski 2023, arXiv 2303.04245. Tokens are one-hot, and a document has no order: the logit of key l for query w is
# M[l, w] = sum_a W_K[a, l] W_Q[a, w]. Its weight is exp(M[l, w]) times how often l is shown. The loss of a row, a query in a document, is
# squared, sum_x target_x |e_x - output|^2, or the cross-entropy of the softmax of the output.

LOSSES = ("squared", "cross_entropy")
INITS = ("normal", "symmetric")
WEIGHTS = ("W_V", "W_K", "W_Q")
PAIRS = ("the word itself", "another word of its topic", "a word of another topic")


def projectors(T: int, v: int) -> dict[str, Array]:
    """Contrasts of topics P_t and within topics P_w (d, d), and the unit vectors U (d, 2) of the mask and of all words."""
    n = T * v
    word, mask = np.r_[0, np.ones(n)] / np.sqrt(n), np.eye(n + 1)[0]
    topics = np.pad(np.kron(np.eye(T), np.full((v, v), 1 / v)), ((1, 0), (1, 0)))
    return {"P_t": topics - np.outer(word, word), "P_w": np.diag(np.r_[0, np.ones(n)]) - topics, "U": np.stack([mask, word], axis=1)}


@dataclass(frozen=True, eq=False)
class TopicAttention(Network):
    """The layer as a Model. Its batch: keys (R, Q, d), query (R, Q), target (R, Q, d), of which the first rows (R,) count.

    init=normal: entries of deviation scale_V, and scale_KQ; symmetric: every number of topics.reduced is scale_V or scale_KQ.
    """

    words: Laws
    loss: str = "squared"
    init: str = "normal"
    scale_V: float = 1e-3
    scale_KQ: float = 1e-3

    name, group = "attention", "W"

    @property
    def laws(self) -> Mapping[str, InitialLaw]:
        """W_V, W_K and W_Q (d, d)."""
        scales = dict(zip(WEIGHTS, (self.scale_V, self.scale_KQ, self.scale_KQ), strict=True))
        if self.init == "normal":
            return {name: InitialLaw((self.words.d,) * 2, "normal", scale) for name, scale in scales.items()}
        p, none = projectors(self.words.T, self.words.v), np.array([[0.0, 0.0], [1.0, 1.0]])  # values never write the mask
        means = {"W_V": none, "W_K": np.ones((2, 2)), "W_Q": np.ones((2, 2))}
        return {name: constant(scale * (p["P_t"] + p["P_w"] + p["U"] @ means[name] @ p["U"].T)) for name, scale in scales.items()}

    @property
    def observables(self) -> tuple[Observable, ...]:
        """The three matrices, their norms, attention between words, and the loss in infinitely long documents."""
        population = Observable("loss_population", self.population_loss, (), "loss of infinitely long documents", costly=True)
        return (
            *(Observable(name, lambda p, name=name: p[name], ("i", "j"), f"the matrix {name}") for name in WEIGHTS),  # type: ignore[misc]
            *(Observable(f"norm_{name}", lambda p, name=name: norm(p[name], (1, 2)), (), f"Frobenius norm of {name}") for name in WEIGHTS),  # type: ignore[misc]
            Observable("attention", self.attention, ("pair",), "mean attention between words, 1 where it is uniform: " + ", ".join(PAIRS)),
            *([population] if self.words.mixture == "sets" else []),
        )

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {name: (R, d, d)}; seed by seed, as the number of rows is the seed's own."""
        xp = array_namespace(params["W_V"])
        seeds = range(len(params["W_V"]))
        by_seed = [self.one_seed({name: a[r] for name, a in params.items()}, self.rows(params, batch, r)) for r in seeds]
        return xp.stack([loss for loss, _ in by_seed]), {name: xp.stack([grads[name] for _, grads in by_seed]) for name in WEIGHTS}

    def rows(self, params: Params, batch: Batch, r: int) -> Batch:
        """The rows of seed r, of the device and type of the parameters; query as a matrix of zeros and ones (Q, d)."""
        count, dtype = int(batch["rows"][r]), params["W_V"].dtype
        keys, target = (batch[name][r, :count].astype(dtype) for name in ("keys", "target"))
        query = (batch["query"][r, :count, None] == np.arange(self.words.d)).astype(dtype)
        return on_same_device(params["W_V"], {"keys": keys, "query": query, "target": target})

    def one_seed(self, W: Params, rows: Batch) -> tuple[Array, Params]:
        """The loss () and its gradient {name: (d, d)} for matrices (d, d)."""
        query, target = rows["query"], rows["target"]
        A = softmax(rows["keys"] + query @ (W["W_Q"].swapaxes(0, 1) @ W["W_K"]))  # (Q, d)
        output = A @ W["W_V"].swapaxes(0, 1)
        loss, back = self.losses(output, target)
        dA = back @ W["W_V"]
        dM = query.swapaxes(0, 1) @ (A * (dA - (A * dA).sum(axis=1, keepdims=True)))  # (query, key)
        return loss, {"W_V": back.swapaxes(0, 1) @ A, "W_K": W["W_Q"] @ dM, "W_Q": W["W_K"] @ dM.swapaxes(0, 1)}

    def losses(self, output: Array, target: Array) -> tuple[Array, Array]:
        """The loss () of outputs (Q, d), and its slope (Q, d)."""
        xp, weight = array_namespace(output), target.sum(axis=1, keepdims=True)
        if self.loss == "squared":
            return ((weight * output - 2 * target) * output).sum() + target.sum(), 2 * (weight * output - target)
        most = output.max(axis=1, keepdims=True)
        total = most + xp.log(xp.exp(output - most).sum(axis=1, keepdims=True))
        return (weight * total).sum() - (target * output).sum(), weight * softmax(output) - target

    def population_loss(self, params: Params) -> Array:
        """The loss (R,) of infinitely long documents, all sets of topics alike."""
        R = len(params["W_V"])
        batch = {name: np.broadcast_to(a, (R, *a.shape[1:])) for name, a in stacked([self.words.population()]).items()}
        return self.loss_and_gradients(params, batch)[0]

    def attention(self, params: Params) -> Array:
        """The mean attention (R, 3) of word queries to words, of a text where all words are equally frequent, for the pairs of PAIRS."""
        T, v = self.words.T, self.words.v
        M = params["W_Q"].swapaxes(1, 2) @ params["W_K"]  # (R, query, key)
        weights = softmax(M[:, 1:, 1:]) * (T * v)
        topic = np.arange(T * v) // v
        itself, same = np.eye(T * v, dtype=bool), topic[:, None] == topic
        xp, kinds = array_namespace(M), (itself, same & ~itself, ~same)  # a mean is 0 where there is no such pair
        sums = [(weights * xp.asarray(which, dtype=weights.dtype)).sum(axis=(1, 2)) / max(int(which.sum()), 1) for which in kinds]
        return xp.stack(sums, axis=1)


SETTINGS = (
    Setting("T", 4, "topics", low=1),
    Setting("v", 3, "words of a topic", low=1),
    Setting("tau", 2, "topics of a document, with mixture=sets", low=1),
    Setting("p_m", 0.15, "probability that a word is masked", low=0.0, high=1.0, open_low=True),
    Setting("p_c", 0.3, "that a masked word is shown itself", low=0.0, high=1.0),
    Setting("p_r", 0.1, "that any word is shown in its place", low=0.0, high=1.0),
    Setting("mixture", "sets", "tau topics alike, or proportions of Dirichlet's law", choices=MIXTURES),
    Setting("alpha", 0.1, "of Dirichlet's law", low=0.0, open_low=True),
    Setting("contexts", "finite", "documents that are drawn, or without end", choices=("finite", "infinite")),
    Setting("shortest", 100, "words of a document, at least", low=1),
    Setting("longest", 150, "at most", low=1),
    Setting("documents", 0, "documents drawn once; 0: new ones in every iteration", low=0),
    Setting("masks", "new", "of those documents: new ones whenever they are read, or drawn once", choices=MASKS),
    Setting("batch", 40, "documents of an iteration", low=1),
    Setting("keys", "all", "what attention sees: all places, or those that are not masked", choices=KEYS),
    Setting("loss", "squared", "of the output, or cross-entropy", choices=LOSSES),
    Setting("init", "normal", "of the matrices: normal, or alike for alike words", choices=INITS),
    Setting("init_V", 1e-3, "deviation of W_V at the start, or its size", low=0.0),
    Setting("init_KQ", 1e-3, "of W_K and W_Q", low=0.0),
    SGD[0],
    Setting("lr", 1.0, "learning rate", low=0.0, rate_of="W"),
    SGD[1],
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: matrices with gradients, documents, the rows of a batch."""
    T, tau, longest, batch = (values[name] for name in ("T", "tau", "longest", "batch"))
    d, endless = T * values["v"] + 1, values["contexts"] == "infinite"
    sets = comb(T, min(tau, T)) if values["mixture"] == "sets" else 0
    # words, what is shown, masks; those of the seed that is drawn are there twice
    drawn = longest * (values["documents"] * (seeds + 2) + batch * (5 * seeds + 6) // 2)
    rows = batch * min(values["tau"] * values["v"] + 1, d, longest) * d  # of the different words of a document
    return {
        "the matrices and their gradients": seeds * 12 * d * d,
        "the documents": 0 if endless else drawn,
        "the rows of a batch": 0 if endless else rows * (5 * seeds + 3) // 5,
        "the laws of the sets of topics": (12 if endless else 10) * sets * d * d,
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError for settings that do not fit together."""
    check_together(values)
    laws = Laws(*(values[name] for name in ("T", "v", "tau", "p_m", "p_c", "p_r", "mixture", "alpha")))
    network = TopicAttention(laws, values["loss"], values["init"], values["init_V"], values["init_KQ"])
    endless: Batch = {}
    if values["contexts"] == "infinite":  # the same rows of all sets of topics in every iteration
        endless = {name: np.broadcast_to(a, (len(seeds), *a.shape[1:])) for name, a in stacked([laws.population()]).items()}
    described = (values["mixture"], values["loss"], values["keys"]) == ("sets", "squared", "all")
    numbers = {name: values[name] for name in ("T", "tau", "p_m", "p_c", "p_r")}
    theory: dict[str, Mapping[str, Any]] = {"topics.full": {**numbers, "P": laws.documents()}} if described else {}
    if described and values["init"] == "symmetric":
        theory["topics.reduced"] = {**numbers, "v": values["v"]}
    return Experiment(
        model=network,
        stream=TopicBatches(seeds, laws, values) if values["contexts"] == "finite" else lambda iteration: endless,
        steps=2500,
        exact={"P": laws.documents()} if values["mixture"] == "sets" else {},
        theory=theory,
        labels={"pair": PAIRS},
    )


def check_together(values: Mapping[str, Any]) -> None:
    """Raises ParamError for settings that do not fit together."""
    T, v, tau = values["T"], values["v"], values["tau"]
    if values["mixture"] == "sets" and tau > T:
        raise ParamError(f"tau = {tau} topics of a document are more than there are, T = {T}")
    if values["p_c"] + values["p_r"] > 1:
        raise ParamError(f"p_c + p_r must be at most 1, not {values['p_c'] + values['p_r']:g}: the rest is shown as the mask")
    if values["shortest"] > values["longest"]:
        raise ParamError(f"shortest = {values['shortest']} is above longest = {values['longest']}")
    if values["init"] == "symmetric" and min(T, v) < 2:
        raise ParamError(f"init=symmetric needs at least two topics of at least two words, not T = {T} and v = {v}")
    if values["masks"] == "once" and not values["documents"]:
        raise ParamError("masks=once needs documents that are drawn once: documents=N")
    if values["contexts"] == "infinite":
        for name, right in (("mixture", "sets"), ("keys", "all"), ("documents", 0)):
            if values[name] != right:
                raise ParamError(f"contexts=infinite needs {name}={right}, not {values[name]}")


# Quantities of the Systems topics.* from what a training records.

TOPIC_SETTINGS: Mapping[str, tuple[Any, ...]] = {"mixture": ("sets",), "keys": ("all",), "loss": ("squared",)}
SYMMETRIC_START: Mapping[str, tuple[Any, ...]] = {**TOPIC_SETTINGS, "init": ("symmetric",)}


def parts(W: Array, T: int) -> dict[str, Array]:
    """The parts w, t and U (R, T, ...) of matrices (R, T, d, d).

    w: of contrasts within topics. t: of topics. U: the rest, in mask and mean word.
    """
    n = W.shape[-1] - 1
    v = n // T
    U = np.zeros((n + 1, 2))
    U[0, 0], U[1:, 1] = 1, n**-0.5
    blocks = W[..., 1:, 1:].reshape(*W.shape[:-2], T, v, T, v)
    trace = np.einsum("...aiai->...", blocks)  # the trace
    topic = np.einsum("...aiaj->...", blocks) / v
    mean = W[..., 1:, 1:].sum(axis=(-2, -1)) / n
    return {"w": (trace - topic) / max(n - T, 1), "t": (topic - mean) / max(T - 1, 1), "U": U.T @ W @ U}


def part(name: str, source: str, letter: str, place: tuple[int, int] | None = None) -> Link:
    """A Link to a number of topics.reduced, or to its two by two matrix."""

    def make(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
        number = parts(seen[source], facts.config["T"])[letter]
        return number if place is None else number[:, :, place[0], place[1]]

    return Link(name, (source,), make, doc=f"of the training's {source}")


NORMS = tuple(f"norm_{name}" for name in WEIGHTS)
NUMBERS = (
    *(part(f"{letter}_{kind}", source, kind) for letter, source in zip("akq", WEIGHTS, strict=True) for kind in "wt"),
    part("r_w", "W_V", "U", (1, 1)),
    part("r_m", "W_V", "U", (1, 0)),
    part("K2", "W_K", "U"),
    part("Q2", "W_Q", "U"),
)


DOC = "masked words of documents of a few topics, by one layer of attention (li2023topic)"
DESCRIBED_BY = {
    "topics.full": pair_of(*NORMS, *WEIGHTS, step="W", start=WEIGHTS, requirements=TOPIC_SETTINGS),
    "topics.reduced": pair_of(*NUMBERS, step="W", start=NUMBERS, requirements=SYMMETRIC_START, example={"init": "symmetric"}),
}
TASK = ReferenceTask("topics", DOC, SETTINGS, make, memory, ("attention",), DESCRIBED_BY)
