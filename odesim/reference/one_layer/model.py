"""The one-layer model: Y (S, C) maps the attended context to logits of the next token, Z (Q, S) holds attention logits.

Class n is one next token, column targets[n] of Y, seen with query psi[n] after context tokens drawn from P[n]. The query attends
the context alone, the attended context is normalised to length one; options change both. Source: tian2023scan, Lemmas 1 and 2.

A batch {"classes": (R, B), "counts": (R, B, W)} holds finite contexts. Only how often each token of support[n] (W,) occurs matters.
An empty batch is the population of infinite contexts, each class with its weight p[n].
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace
from odesim.base.errors import ParamError, no_such
from odesim.reference.one_layer.attention import AttendedContexts, Tables, attend, attention_gradient, decode, scatter_tokens
from odesim.reference.one_layer.classes import check_classes, check_independent, token_lists
from odesim.reference.one_layer.watch import one_layer_observables
from odesim.reference.protocols import Batch, Observable, Params

DECODERS = ("vanilla", "decorrelated")
INITS = ("zero", "torch")
CACHE = 2**19  # bytes of logits for which a step stays in the cache of a processor


@dataclass(frozen=True, eq=False)
class YZ:
    """The one-layer model of classes P (K, S), psi (K,), p (K,) with a vocabulary of M tokens.

    targets: (K,) columns of Y (S, M); None keeps Y (S, K + 1), whose last column stands for the M - K that are never next and stay
    equal from a zero start. residual adds the query to what was attended, attn_include_query has it attend itself: Y and Z then go
    on, after the S tokens of P, with the Q queries, unless query_rows (Q,) names their own. support (K, W): tokens of a class's
    counts, each once; None for those with P > 0. decoder: "decorrelated" puts column n of F (F^T F)^-1 in the place of f in the
    gradient of Y (Lemma 3), with F (S, K) what infinite contexts show under the present Z, in a batch of finite ones too: there only
    the errors are the samples' own.
    """

    P: Array
    psi: Array
    p: Array
    M: float
    targets: Array | None = None
    normalize: bool = True
    residual: bool = False
    attn_include_query: bool = False
    decoder: str = "vanilla"
    init: str = "zero"
    support: Array | None = None
    query_rows: Array | None = None
    _table_cache: dict[tuple[str, str], Tables] = field(default_factory=dict, init=False, repr=False)

    name = "yz"
    groups = MappingProxyType({"Y": "Y", "Z": "Z"})

    def __post_init__(self) -> None:
        check_classes(self.P, self.psi, self.p, self.M)
        for what, word, choices in (("decoder", self.decoder, DECODERS), ("init", self.init, INITS)):
            if word not in choices:
                raise ParamError(no_such(what, word, choices))
        if self.init == "torch" and self.targets is None:
            raise ParamError("init = torch needs a column of Y for every token, and here one stands for all that are never next")
        if self.targets is not None and not (int(self.M) == self.M and min(self.targets) >= 0 and max(self.targets) < self.M):
            raise ParamError(f"targets must be columns of Y, 0 to {self.M - 1:g}, not {min(self.targets)} to {max(self.targets)}")
        if self.decoder == "decorrelated":
            check_independent(self.P)

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of Y and Z for one seed: (rows, columns) and (Q, rows)."""
        queries, rows = int(np.max(self.psi)) + 1, self.P.shape[1]
        if self.query_rows is not None:
            rows = max(rows, int(np.max(self.query_rows)) + 1)
        elif self.residual or self.attn_include_query:
            rows += queries
        return (rows, len(self.P) + 1 if self.targets is None else int(self.M)), (queries, rows)

    @property
    def wide_P(self) -> Array:
        """P (K, rows), with zeros for the rows of queries."""
        rows = self.shapes[0][0]
        return np.concatenate([self.P, np.zeros((len(self.P), rows - self.P.shape[1]))], axis=1)

    @property
    def counted_tokens(self) -> Array:
        """The tokens (K, W) of each class that the counts (R, B, W) of a batch refer to."""
        return token_lists(self.P, self.support, None, self.P.shape[1])[0]

    @property
    def observables(self) -> tuple[Observable, ...]:
        """The observables c, entropy and entropy_distinct in infinite contexts, the population loss, Y and Z."""
        return one_layer_observables(self)

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """Initial Y (R, rows, C) and Z (R, Q, rows): 0, or uniform in +-1 / sqrt(M), as torch starts a linear layer."""
        bound = float(self.M) ** -0.5
        if self.init == "zero":
            drawn = [[np.zeros(shape) for shape in self.shapes] for _ in rngs]
        else:
            drawn = [[rng.uniform(-bound, bound, shape) for shape in self.shapes] for rng in rngs]
        return {name: np.array([arrays[k] for arrays in drawn], dtype) for k, name in enumerate(("Y", "Z"))}

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {Y: (R, rows, C), Z: (R, Q, rows)}; a column for several tokens has that of one of them."""
        Y = params["Y"]
        R, B = len(Y), batch["classes"].shape[1] if batch else len(self.P)
        seeds_at_once = max(1, CACHE // (B * Y.shape[2] * Y.itemsize))  # seeds at once
        if seeds_at_once >= R or array_namespace(Y) is not np:
            return self._loss_and_gradients(params, batch)
        loss, gradients = np.empty(R, Y.dtype), {name: np.empty_like(a) for name, a in params.items()}
        for first in range(0, R, seeds_at_once):
            part = slice(first, first + seeds_at_once)
            loss[part], part_gradients = self._loss_and_gradients(
                *({name: a[part] for name, a in arrays.items()} for arrays in (params, batch))
            )
            for name, gradient in part_gradients.items():
                gradients[name][part] = gradient
        return loss, gradients

    def _loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        Y, Z = params["Y"], params["Z"]
        xp, dtype = array_namespace(Y), Y.dtype
        tables = self.tables(Y)
        if batch:
            classes, counts = xp.asarray(batch["classes"]), xp.asarray(batch["counts"], dtype=dtype)  # (R, B), (R, B, W)
            weight: Any = 1 / classes.shape[1]
        elif self.attn_include_query:
            raise ParamError("attn_include_query needs finite contexts: in an infinite one the query's share is 0")
        else:
            classes, counts = self._every_class(Y)
            weight = tables.p[:, None]  # (K, 1)
        attended = self._attend(Z, classes, counts, self.attn_include_query)
        F = scatter_tokens(attended.f, attended.positions, Y.shape[1])  # (R, B, rows)
        losses, error = decode(F, Y, tables, classes)  # (R, B), (R, B, C)
        loss = losses.mean(axis=-1) if batch else (tables.p * losses).sum(axis=-1)  # (R,)
        error *= weight  # (R, B, C)

        members = (classes[:, None, :] == xp.arange(len(self.P))[:, None]).astype(dtype)  # (R, K, B)
        factors = (F, error) if self.decoder == "vanilla" else (self._decorrelated(Z), members @ error)
        dY = factors[0].transpose(0, 2, 1) @ factors[1]  # (R, rows, C)
        g = (error if tables.copies is None else error * tables.copies) @ Y.transpose(0, 2, 1)  # (R, B, rows)
        return loss, {"Y": dY, "Z": attention_gradient(Z, tables, members, attended, g)}

    def attention(self, params: Params) -> Array:
        """The attention c (R, K, rows) of each class in infinite contexts."""
        attended = self._population(params["Z"])
        return scatter_tokens(attended.v, attended.positions, params["Z"].shape[2])

    def population_loss(self, params: Params) -> Array:
        """The loss (R,) in infinite contexts."""
        Y, tables = params["Y"], self.tables(params["Y"])
        attended = self._population(params["Z"])
        losses, _ = decode(scatter_tokens(attended.f, attended.positions, Y.shape[1]), Y, tables, self._every_class(Y)[0])
        return (tables.p * losses).sum(axis=-1)

    def tables(self, like: Array) -> Tables:
        """The tables of the classes in the library and dtype of `like`."""
        xp = array_namespace(like)
        key = (xp.__name__, str(like.dtype))
        if key not in self._table_cache:
            self._table_cache[key] = self._tables().to_library(xp, like.dtype)
        return self._table_cache[key]

    def _tables(self) -> Tables:
        (rows, columns), (queries, _) = self.shapes
        K, S = self.P.shape
        P, queries_rows = self.wide_P, None
        if self.residual or self.attn_include_query:
            queries_rows = (S + np.arange(queries) if self.query_rows is None else np.asarray(self.query_rows))[self.psi]
        tokens, query = token_lists(P, self.support, queries_rows, rows)
        copies = None
        if self.targets is None:
            copies = np.ones(columns)
            copies[-1] = self.M - K
        return Tables(
            tokens=tokens,
            cells=self.psi[:, None] * rows + tokens,
            psi_of=self.psi == np.arange(queries)[:, None],
            query=query,
            P=np.take_along_axis(P, tokens, axis=1),
            p=self.p,
            targets=np.arange(K) if self.targets is None else self.targets,
            copies=copies,
        )

    def _every_class(self, like: Array) -> tuple[Array, Array]:
        """(classes (R, K), counts (R, K, W)) of infinite contexts: each class once, with probabilities as counts."""
        xp, P = array_namespace(like), self.tables(like).P
        shape = (len(like), *P.shape)
        return xp.ascontiguousarray(xp.broadcast_to(xp.arange(shape[1]), shape[:2])), xp.ascontiguousarray(xp.broadcast_to(P, shape))

    def _attend(self, Z: Array, classes: Array, counts: Array, include: bool) -> AttendedContexts:
        options = {"normalize": self.normalize, "residual": self.residual, "include": include}
        return attend(Z, self.tables(Z), classes, counts, **options)

    def _population(self, Z: Array) -> AttendedContexts:
        return self._attend(Z, *self._every_class(Z), include=False)

    def _decorrelated(self, Z: Array) -> Array:
        """The columns of F (F^T F)^-1 as rows (R, K, rows)."""
        attended = self._population(Z)
        F = scatter_tokens(attended.f, attended.positions, Z.shape[2])  # (R, K, rows)
        return array_namespace(Z).linalg.solve(F @ F.transpose(0, 2, 1), F)  # (R, K, rows)
