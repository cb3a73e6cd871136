"""One layer of attention without residual or positions, W_V Z softmax((W_K Z)^T (W_Q Z)), with hand-written gradients.

Source: Li, Li and Risteski 2023, arXiv 2303.04245. Tokens are one-hot, and a document has no order: the logit of key l for query w is
M[l, w] = sum_a W_K[a, l] W_Q[a, w]. Its weight is exp(M[l, w]) times how often l is shown. The loss of a row, a query in a document, is
squared, sum_x target_x |e_x - output|^2, or the cross-entropy of the softmax of the output.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.lab.tasks.topics import Laws, stacked
from odesim.lab.training.protocols import Batch, Observable, Params

LOSSES = ("squared", "cross_entropy")
INITS = ("normal", "symmetric")
WEIGHTS = ("W_V", "W_K", "W_Q")
PAIRS = ("the word itself", "another word of its topic", "a word of another topic")


def softmax(x: Array) -> Array:
    """Along the last axis."""
    xp = array_namespace(x)
    e = xp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def projectors(T: int, v: int) -> dict[str, Array]:
    """Contrasts of topics P_t and within topics P_w (d, d), and the unit vectors U (d, 2) of the mask and of all words."""
    n = T * v
    word, mask = np.r_[0, np.ones(n)] / np.sqrt(n), np.eye(n + 1)[0]
    topics = np.pad(np.kron(np.eye(T), np.full((v, v), 1 / v)), ((1, 0), (1, 0)))
    return {"P_t": topics - np.outer(word, word), "P_w": np.diag(np.r_[0, np.ones(n)]) - topics, "U": np.stack([mask, word], axis=1)}


@dataclass(frozen=True, eq=False)
class TopicAttention:
    """The layer as a Model. Its batch: keys (R, Q, d), query (R, Q), target (R, Q, d), of which the first rows (R,) count.

    init=normal: entries of deviation scale_V, and scale_KQ; symmetric: every number of topics.reduced is scale_V or scale_KQ.
    """

    laws: Laws
    loss: str = "squared"
    init: str = "normal"
    scale_V: float = 1e-3
    scale_KQ: float = 1e-3

    name = "attention"
    groups = MappingProxyType(dict.fromkeys(WEIGHTS, "W"))

    @property
    def observables(self) -> tuple[Observable, ...]:
        """The three matrices, their norms, attention between words, and the loss in infinitely long documents."""

        def entries(name: str) -> Observable:
            return Observable(name, lambda params: params[name], ("i", "j"), f"the matrix {name}")

        def norm(name: str) -> Observable:
            return Observable(f"norm_{name}", lambda params: frobenius(params[name]), (), f"Frobenius norm of {name}")

        population = Observable("loss_population", self.population_loss, (), "loss of infinitely long documents", costly=True)
        return (
            *map(entries, WEIGHTS),
            *map(norm, WEIGHTS),
            Observable("attention", self.attention, ("pair",), "mean attention between words, 1 where it is uniform: " + ", ".join(PAIRS)),
            *([population] if self.laws.mixture == "sets" else []),
        )

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """W_V, W_K and W_Q (R, d, d)."""
        scales = dict(zip(WEIGHTS, (self.scale_V, self.scale_KQ, self.scale_KQ), strict=True))
        if self.init == "symmetric":
            p = projectors(self.laws.T, self.laws.v)
            means = {"W_V": np.array([[0.0, 0.0], [1.0, 1.0]])}  # values never write the mask
            starts = {
                name: scale * (p["P_t"] + p["P_w"] + p["U"] @ means.get(name, np.ones((2, 2))) @ p["U"].T) for name, scale in scales.items()
            }
            return {name: np.tile(a, (len(rngs), 1, 1)).astype(dtype) for name, a in starts.items()}
        shape = (self.laws.d, self.laws.d)
        drawn = [{name: scale * rng.standard_normal(shape) for name, scale in scales.items()} for rng in rngs]
        return {name: np.stack([one[name] for one in drawn]).astype(dtype) for name in WEIGHTS}

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {name: (R, d, d)}; seed by seed, as the number of rows is the seed's own."""
        xp = array_namespace(params["W_V"])
        made = [self.one_seed({name: a[r] for name, a in params.items()}, self.rows(params, batch, r)) for r in range(len(params["W_V"]))]
        return xp.stack([loss for loss, _ in made]), {name: xp.stack([grads[name] for _, grads in made]) for name in WEIGHTS}

    def rows(self, params: Params, batch: Batch, r: int) -> Batch:
        """The rows of seed r, of the device and type of the parameters; query as a matrix of zeros and ones (Q, d)."""
        count, dtype = int(batch["rows"][r]), params["W_V"].dtype
        keys, target = (batch[name][r, :count].astype(dtype) for name in ("keys", "target"))
        query = (batch["query"][r, :count, None] == np.arange(self.laws.d)).astype(dtype)
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
        batch = {name: np.broadcast_to(a, (R, *a.shape[1:])) for name, a in stacked([self.laws.population()]).items()}
        return self.loss_and_gradients(params, batch)[0]

    def attention(self, params: Params) -> Array:
        """The mean attention (R, 3) of word queries to words, of a text where all words are equally frequent, for the pairs of PAIRS."""
        T, v = self.laws.T, self.laws.v
        M = params["W_Q"].swapaxes(1, 2) @ params["W_K"]  # (R, query, key)
        weights = softmax(M[:, 1:, 1:]) * (T * v)
        topic = np.arange(T * v) // v
        own, same = np.eye(T * v, dtype=bool), topic[:, None] == topic
        return array_namespace(M).stack([mean_over(weights, which) for which in (own, same & ~own, ~same)], axis=1)


def frobenius(W: Array) -> Array:
    """The norms (R,) of matrices (R, d, d)."""
    xp = array_namespace(W)
    return xp.sqrt((W * W).sum(axis=(1, 2)))


def mean_over(weights: Array, which: Any) -> Array:
    """The mean (R,) of weights (R, n, n) where which (n, n) is true, 0 where it never is."""
    mask = array_namespace(weights).asarray(which, dtype=weights.dtype)
    return (weights * mask).sum(axis=(1, 2)) / max(int(which.sum()), 1)
