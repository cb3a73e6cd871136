"""The one-layer model: Y (S, C) maps the attended context to logits of the next token, Z (Q, S) holds attention logits.

Class n is one next token, column targets[n] of Y, seen with query psi[n] after context tokens drawn from P[n]. The query attends
the context alone, the attended context is normalised to length one; options change both. Source: tian2023scan, Lemmas 1 and 2.

A batch {"classes": (R, B), "counts": (R, B, W)} holds finite contexts. Only how often each token of support[n] (W,) occurs matters.
An empty batch is the population of infinite contexts, each class with its weight p[n].
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from odesim.base.arrays import Array, array_namespace
from odesim.base.errors import ParamError, no_such
from odesim.lab.training.network import InitialLaw, Network
from odesim.lab.training.task import Batch, Link, Observable, Params, TrainingFacts, same_quantity

# Checks of the classes of the one-layer model.

TOLERANCE = 1e-6  # of a sum of probabilities
SINGULAR = 1e-12  # least ratio of the smallest to the largest eigenvalue of F^T F


def check_classes(P: Array, psi: Array, p: Array, M: float) -> None:
    """Raises ParamError unless P (K, S), psi (K,), p (K,) and M describe classes: shapes, probabilities, queries 0, 1, ..."""
    if P.ndim != 2 or P.size == 0:
        raise ParamError(f"P must be a table of classes and tokens, not an array of shape {P.shape}")
    K = len(P)
    for name, value in (("psi", psi), ("p", p)):
        if value.shape != (K,):
            raise ParamError(f"{name} must hold one number for each row of P ({K}), not have shape {value.shape}")
    for name, value in (("P", P), ("p", p)):
        if not np.all(value >= 0) or not np.all(np.isfinite(value)):
            raise ParamError(f"{name} must hold probabilities, not {value[~(value >= 0) | ~np.isfinite(value)][0]:g}")
        with np.errstate(over="ignore"):
            off = np.abs(value.sum(axis=-1) - 1)
        worst = float(np.max(off))
        if worst > TOLERANCE:
            row = f"row {int(np.argmax(off))} of P" if name == "P" else "p"
            raise ParamError(f"{row} must sum to 1, and is off by {worst:.3g}")
    queries = np.unique(psi)
    if not np.array_equal(queries, np.arange(len(queries))):
        raise ParamError(f"psi must use every query 0, 1, ..., its largest, not {', '.join(f'{m:g}' for m in queries[:8])}")
    if not (np.isfinite(M) and M >= K):
        raise ParamError(f"M must be at least the number of classes, {K}, not {M:g}")


# Forward and backward passes of the one-layer model, for R seeds and B contexts of W tokens each.
#
# Matrix products and sums do not mix seeds, so the bits of a seed do not depend on other seeds.


@dataclass(frozen=True)
class Tables:
    """The classes as arrays in the library and dtype of the parameters.

    tokens (K, W): tokens of a class's contexts, rows of Y. cells (K, W): the same, in the flat Z. psi_of (Q, K): 1 at a class's query.
    query (K, W): 1 at the query among the tokens. P (K, W). p (K,). targets (K,): columns of Y. copies (C,): how many tokens of the
    vocabulary each column stands for, None for one each.
    """

    tokens: Array
    cells: Array
    psi_of: Array
    query: Array
    P: Array
    p: Array
    targets: Array
    copies: Array | None


@dataclass(frozen=True)
class AttendedContexts:
    """Contexts after attention, for the backward pass: shares v, normalised vectors f of x = v (+ query), lengths of x.

    positions (R, B, W): of the tokens in an array (R, B, rows), flat.
    """

    v: Array  # (R, B, W)
    f: Array  # (R, B, W)
    length: Array | None  # (R, B, 1); None where f = x
    positions: Array  # (R, B, W)


def attention_gradient(Z: Array, tables: Tables, members: Array, attended: AttendedContexts, g: Array) -> Array:
    """The gradient (R, Q, rows) of Z from g (R, B, rows), the gradient of f. members (R, K, B): 1 where a context is of a class."""
    xp = array_namespace(Z)
    (R, _, rows), K = Z.shape, len(tables.tokens)
    v, f = attended.v, attended.f
    g = g.reshape(-1).take(attended.positions)  # (R, B, W)
    if attended.length is not None:
        g = (g - f * (f * g).sum(axis=-1, keepdims=True)) / attended.length  # (R, B, W)
    g = v * (g - (v * g).sum(axis=-1, keepdims=True))  # (R, B, W)
    by_class = xp.zeros((R, K, rows), Z.dtype)
    by_class[:, xp.arange(K)[:, None], tables.tokens] = members @ g  # (R, K, W)
    return tables.psi_of @ by_class  # (R, Q, rows)


def scatter_tokens(values: Array, positions: Array, rows: int) -> Array:
    """An array (R, B, rows) with values (R, B, W) at the flat positions at (R, B, W) and zeros elsewhere."""
    result = array_namespace(values).zeros((*values.shape[:2], rows), values.dtype)
    result.reshape(-1)[positions] = values
    return result


def decode(F: Array, Y: Array, tables: Tables, classes: Array) -> tuple[Array, Array]:
    """Losses (R, B) of attended vectors F (R, B, rows) with decoder Y (R, rows, C), and their gradients (R, B, C) by the logits.

    The gradient of a column that represents several tokens is that of one of them, not their sum.
    """
    xp = array_namespace(F)
    logits = F @ Y  # (R, B, C)
    R, B, C = logits.shape
    target = tables.targets.take(classes) + (C * xp.arange(R * B)).reshape(R, B)  # (R, B)
    target_logit = logits.reshape(-1).take(target)  # (R, B)
    top = logits.max(axis=-1)  # (R, B)
    logits -= top[..., None]
    odds = xp.exp(logits, out=logits)  # (R, B, C)
    target_odds = odds.reshape(-1).take(target)  # (R, B)
    odds.reshape(-1)[target] = 0
    # the sum over other tokens, because 1 - alpha would round to 0
    rest = (odds if tables.copies is None else odds * tables.copies).sum(axis=-1)  # (R, B)
    with np.errstate(divide="ignore"):  # no odds left: a loss of 0
        losses = xp.logaddexp(0, xp.log(rest) + (top - target_logit))  # (R, B)
    total = rest + target_odds  # (R, B)
    odds /= total[..., None]
    odds.reshape(-1)[target] = -rest / total
    return losses, odds


# Measures of attention in infinite contexts, with names and definitions of scan_snap.full.


def entropies(c: Array) -> Array:
    """Entropy (..., K) of shares c (..., K, S) normalised over S, with 0 ln 0 = 0; 0 where all shares are 0."""
    xp = array_namespace(c)
    total = c.sum(axis=-1)  # (..., K)
    # sum x ln x of x = c / total, without ln 0 and division by 0
    inner = (c * xp.log(xp.where(c > 0, c, 1))).sum(axis=-1)  # (..., K)
    safe_total = xp.where(total > 0, total, 1)
    return xp.log(safe_total) - inner / safe_total


def distinct_attention(c: Array, P: Array) -> Array:
    """c (..., K, S) at tokens that only one class of P (K, S) has, 0 elsewhere."""
    is_distinct = (P > 0) & ((P > 0).sum(axis=0) == 1)
    return c * array_namespace(c).asarray(is_distinct)


DECODERS = ("vanilla", "decorrelated")
INITS = ("zero", "torch")
CACHE = 2**19  # bytes of logits for which a step stays in the cache of a processor


@dataclass(frozen=True, eq=False)
class YZ(Network):
    """The one-layer model of classes P (K, S), psi (K,), p (K,) with a vocabulary of M tokens.

    targets: (K,) columns of Y (S, M); None keeps Y (S, K + 1), whose last column stands for the M - K that are never next and stay
    equal from a zero start. residual adds the query to what was attended, attn_include_query has it attend itself: Y and Z then go
    on, after the S tokens of P, with the Q queries. support (K, W): tokens of a class's
    counts, each once; None for those with P > 0. decoder: "decorrelated" puts column n of F (F^T F)^-1 in the place of f in the
    gradient of Y (Lemma 3), with F (S, K) what infinite contexts show under the present Z, in a batch of finite ones too: there only
    the errors are the samples' own. extra: further observables.
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
    extra: tuple[Observable, ...] = ()
    _table_cache: dict[tuple[str, str], Tables] = field(default_factory=dict, init=False, repr=False)

    name = "yz"
    groups = {"Y": "Y", "Z": "Z"}  # type: ignore[assignment]  # noqa: RUF012

    def __post_init__(self) -> None:
        check_classes(self.P, self.psi, self.p, self.M)
        for what, word, choices in (("decoder", self.decoder, DECODERS), ("init", self.init, INITS)):
            if word not in choices:
                raise ParamError(no_such(what, word, choices))
        if self.init == "torch" and self.targets is None:
            raise ParamError("init = torch needs a column of Y for every token, and here one stands for all that are never next")
        if self.targets is not None and not (int(self.M) == self.M and min(self.targets) >= 0 and max(self.targets) < self.M):
            raise ParamError(f"targets must be columns of Y, 0 to {self.M - 1:g}, not {min(self.targets)} to {max(self.targets)}")
        if self.decoder == "decorrelated":  # F^T F must have an inverse
            f = self.P / np.linalg.norm(self.P, axis=1, keepdims=True)
            values = np.linalg.eigvalsh(f @ f.T)
            if values[0] < SINGULAR * values[-1]:
                raise ParamError("decoder = decorrelated needs classes whose rows of P are linearly independent, and these are not")

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of Y and Z for one seed: (rows, columns) and (Q, rows)."""
        queries, rows = int(np.max(self.psi)) + 1, self.P.shape[1]
        rows += queries * (self.residual or self.attn_include_query)
        return (rows, len(self.P) + 1 if self.targets is None else int(self.M)), (queries, rows)

    @property
    def wide_P(self) -> Array:
        """P (K, rows), with zeros for the rows of queries."""
        rows = self.shapes[0][0]
        return np.concatenate([self.P, np.zeros((len(self.P), rows - self.P.shape[1]))], axis=1)

    @property
    def counted_tokens(self) -> Array:
        """The tokens (K, W) of each class that counts (R, B, W) refer to: its support, or those with P > 0 and some to fill the row."""
        if self.support is None:
            width = int(np.max(np.sum(self.P > 0, axis=1)))
            return np.sort(np.argsort(self.P == 0, axis=1, kind="stable")[:, :width], axis=1)
        if np.any(np.abs(np.take_along_axis(self.P, self.support, axis=1).sum(axis=1) - 1) > TOLERANCE):
            raise ParamError("support must hold every token of its class with P > 0, each once")
        return self.support

    @property
    def observables(self) -> tuple[Observable, ...]:
        """The observables c (0 at rows of queries), entropy and entropy_distinct in infinite contexts, the population loss, Y and Z."""
        P = self.wide_P

        def distinct(params: Params) -> Array:
            return entropies(distinct_attention(self.attention(params), P)).mean(axis=-1)

        doc = "entropy of c over each class's distinct tokens, normalised, on average over classes"
        return (
            Observable("c", self.attention, ("n", "l"), "attention of each class in infinite contexts"),
            Observable("entropy", lambda params: entropies(self.attention(params)), ("n",), "entropy of c"),
            Observable("entropy_distinct", distinct, (), doc),
            Observable.parameter("Y", ("l", "j"), "decoder"),
            Observable.parameter("Z", ("m", "l"), "attention logits"),
            Observable("loss_population", self.population_loss, (), "loss in infinite contexts"),
            *self.extra,
        )

    @property
    def laws(self) -> Mapping[str, InitialLaw]:
        """Y (rows, C) and Z (Q, rows): 0, or uniform in +-1 / sqrt(M), as torch starts a linear layer."""
        law = ("constant", 0.0) if self.init == "zero" else ("uniform", float(self.M) ** -0.5)
        return {name: InitialLaw(shape, *law) for name, shape in zip("YZ", self.shapes, strict=True)}  # type: ignore[arg-type]

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
        attended = self._attend(Z, classes, counts, include=self.attn_include_query)
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
        if key in self._table_cache:
            return self._table_cache[key]
        (rows, columns), (queries, _), (K, S) = *self.shapes, self.P.shape
        tokens = self.counted_tokens
        query = np.zeros(tokens.shape)
        if self.residual or self.attn_include_query:
            tokens, query = np.column_stack([tokens, S + self.psi]), np.column_stack([query, np.ones(K)])
        targets = np.arange(K) if self.targets is None else self.targets
        copies = None if self.targets is not None else np.append(np.ones(columns - 1), self.M - K)
        integers = {"tokens": tokens, "cells": self.psi[:, None] * rows + tokens, "targets": targets}
        numbers = {
            "psi_of": self.psi == np.arange(queries)[:, None],
            "query": query,
            "P": np.take_along_axis(self.wide_P, tokens, axis=1),
            "p": self.p,
        }
        tables = Tables(
            **{name: xp.asarray(a, dtype=np.intp) for name, a in integers.items()},
            **{name: xp.asarray(a, dtype=like.dtype) for name, a in numbers.items()},
            copies=None if copies is None else xp.asarray(copies, dtype=like.dtype),
        )
        self._table_cache[key] = tables
        return tables

    def _every_class(self, like: Array) -> tuple[Array, Array]:
        """(classes (R, K), counts (R, K, W)) of infinite contexts: each class once, with probabilities as counts."""
        xp, P = array_namespace(like), self.tables(like).P
        shape = (len(like), *P.shape)
        return xp.ascontiguousarray(xp.broadcast_to(xp.arange(shape[1]), shape[:2])), xp.ascontiguousarray(xp.broadcast_to(P, shape))

    def _population(self, Z: Array) -> AttendedContexts:
        return self._attend(Z, *self._every_class(Z), include=False)

    def _attend(self, Z: Array, classes: Array, counts: Array, *, include: bool) -> AttendedContexts:
        """Attention with logits Z (R, Q, rows) over contexts of classes (R, B) with counts (R, B, W).

        include: the query counts as a token of the context.
        """
        xp, tables = array_namespace(Z), self.tables(Z)
        (R, Q, rows), (K, W) = Z.shape, tables.tokens.shape
        which = classes + K * xp.arange(R)[:, None]  # (R, B)
        z = Z.reshape(R, Q * rows).take(tables.cells, axis=1).reshape(R * K, W).take(which, axis=0)  # (R, B, W)
        if counts.shape[-1] < W:
            counts = xp.concatenate([counts, xp.zeros_like(counts[..., :1])], axis=-1)
        query = tables.query.take(classes, axis=0) if self.residual or include else None  # (R, B, W)
        if include:
            counts = counts + query
        z = xp.where(counts > 0, z, -xp.inf)
        z -= z.max(axis=-1, keepdims=True)  # by the largest logit of tokens that occur, so that the largest share does not underflow
        v = counts * xp.exp(z)  # (R, B, W)
        v /= v.sum(axis=-1, keepdims=True)
        x = v + query if self.residual else v  # (R, B, W)
        length = xp.sqrt((x * x).sum(axis=-1, keepdims=True)) if self.normalize else None  # (R, B, 1)
        positions = tables.tokens.take(classes, axis=0) + (rows * xp.arange(classes.size)).reshape(*classes.shape, 1)  # (R, B, W)
        return AttendedContexts(v, x if length is None else x / length, length, positions)

    def _decorrelated(self, Z: Array) -> Array:
        """The columns of F (F^T F)^-1 as rows (R, K, rows)."""
        attended = self._population(Z)
        F = scatter_tokens(attended.f, attended.positions, Z.shape[2])  # (R, K, rows)
        return array_namespace(Z).linalg.solve(F @ F.transpose(0, 2, 1), F)  # (R, K, rows)


# Quantities of the Systems scan_snap.* from what a training of the one-layer model records: for the tasks scan_snap and corpus.
#
# From a random start the columns of Y differ. Then scan_snap.full has the K classes of the training first. After them it has a class that
# never occurs for each other token of the vocabulary. So Y has a column for every token (and one more, which stands for none).

# settings of the one-layer model that the Systems assume
FULL_SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "init": ("zero",),
    "decoder": ("vanilla",),
    "normalize": (True,),
    "residual": (False,),
    "attn_include_query": (False,),
}


def starts_at_random(facts: TrainingFacts) -> bool:
    """Whether each seed has a start of its own."""
    return bool(facts.config.get("init") == "torch")


def collapse_columns(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
    """Y (R, T, S, K + 1) from the recorded Y (R, T, rows, M): the last K columns, those of next tokens, and the mean of the others.

    From a random start Y (R, T, S, M): the last K columns, and all others.
    """
    K, S = facts.exact["P"].shape
    Y = seen["Y"][:, :, :S]
    if starts_at_random(facts):
        return np.concatenate([Y[..., -K:], Y[..., :-K]], axis=-1)
    if Y.shape[-1] == K + 1:
        return Y
    rest = Y[..., :-K].mean(axis=-1, keepdims=True) if Y.shape[-1] > K else np.zeros((*Y.shape[:-1], 1))
    return np.concatenate([Y[..., -K:], rest], axis=-1)


def that_occur(values: Array, facts: TrainingFacts) -> Array:
    """Values (R, T, n, ...) of the classes that occur."""
    return values[:, :, : len(facts.exact["P"])]


def common_tokens(facts: TrainingFacts) -> Array:
    """The tokens (n,) that more than one class has."""
    return np.flatnonzero((facts.exact["P"] > 0).sum(axis=0) > 1)


def class_mean(name: str, source: str) -> Link:
    """A Link to the mean over classes of c (R, T, K, S), or of Z (R, T, Q, S) at the queries of classes.

    cc and zc: the mean over common tokens (R, T, 1); other names: at the tokens that one class alone has (R, T, D).
    """

    def make(seen: Mapping[str, Array], facts: TrainingFacts) -> Array:
        values = seen[source]
        if source == "Z":
            values = values[:, :, np.asarray(facts.exact["psi"], int)]  # (R, T, K, S)
        if name in ("cc", "zc"):
            return values[..., common_tokens(facts)].mean(axis=(-2, -1))[..., None]
        distinct = distinct_attention(np.ones_like(facts.exact["P"]), facts.exact["P"])
        if len(set(distinct.sum(axis=1).tolist())) > 1:
            raise ParamError("the classes of this training have not equally many tokens of their own, so that no symmetric System fits")
        tokens = np.stack([np.flatnonzero(row) for row in distinct])
        return values[:, :, np.arange(len(tokens))[:, None], tokens].mean(axis=2)

    return Link(name, (source,), make)


def not_alike(facts: TrainingFacts) -> list[str]:
    """Phrases on why the classes of a scan_snap training are not symmetric; empty if they are."""
    names = ("num_last", "num_common", "num_common_per_last", "num_unique_per_next")
    last, common, per_last, unique = (facts.config[name] for name in names)
    phrases = [f"num_common_per_last is {per_last}, not 0, with num_last={last}"] * bool(per_last and last > 1)
    phrases += ["there are no common tokens (num_common is 0)"] * (common + per_last == 0)
    return phrases + ["num_unique_per_next is 0, not more"] * (unique == 0)


def no_shared_token(facts: TrainingFacts) -> list[str]:
    """A phrase if the start is random and no token is of two classes, which the classes that never occur could see."""
    return ["init is torch, and no token is of two classes"] * (starts_at_random(facts) and not common_tokens(facts).size)


def not_yz_model(facts: TrainingFacts) -> list[str]:
    """A phrase if the model is not `yz`."""
    return [f"the model is {facts.model}, not yz"] * (facts.model not in ("", "yz"))


BESIDE = "the training's loss, of its batches, beside the same theory"
LOSSES = (
    same_quantity("loss", "loss_population", "the training's loss_population, in infinite contexts"),
    replace(same_quantity("loss_batch", "loss", BESIDE), system_name="loss"),
)
SYMMETRIC = (*LOSSES, class_mean("c", "c"), class_mean("cc", "c"), class_mean("z", "Z"), class_mean("zc", "Z"))
IN_CONTEXTS = Link("Z", ("Z",), lambda seen, facts: seen["Z"][..., : facts.exact["P"].shape[1]])  # without the columns of queries
FULL = (
    *LOSSES,
    replace(same_quantity("c"), theory=that_occur),
    replace(same_quantity("entropy"), theory=that_occur),
    replace(same_quantity("entropy_distinct"), theory=lambda values, facts: that_occur(values, facts).mean(axis=-1), dims=()),
    Link("Y", ("Y",), collapse_columns, lambda Y, facts: Y[..., :-1] if starts_at_random(facts) else Y),  # without that of no token
    IN_CONTEXTS,
)
STARTS = {  # of a random start Y has a last column more, of no token, which is 0
    "Y": Link("Y", ("Y",), lambda seen, facts: np.pad(collapse_columns(seen, facts), [(0, 0), (0, 0), (0, 0), (0, 1)])),
    "Z": IN_CONTEXTS,
}
