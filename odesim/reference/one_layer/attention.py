"""Forward and backward passes of the one-layer model, for R seeds and B contexts of W tokens each.

Matrix products and sums do not mix seeds, so the bits of a seed do not depend on other seeds.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from odesim.base.arrays import Array, array_namespace


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

    def to_library(self, xp: ModuleType, dtype: Any) -> "Tables":
        """The tables as arrays of the library xp, with numbers in dtype."""
        integers = {name: xp.asarray(getattr(self, name), dtype=np.intp) for name in ("tokens", "cells", "targets")}
        numbers = {name: xp.asarray(getattr(self, name), dtype=dtype) for name in ("psi_of", "query", "P", "p")}
        return Tables(**integers, **numbers, copies=None if self.copies is None else xp.asarray(self.copies, dtype=dtype))


@dataclass(frozen=True)
class AttendedContexts:
    """Contexts after attention, for the backward pass: shares v, normalised vectors f of x = v (+ query), lengths of x.

    positions (R, B, W): of the tokens in an array (R, B, rows), flat.
    """

    v: Array  # (R, B, W)
    f: Array  # (R, B, W)
    length: Array | None  # (R, B, 1); None where f = x
    positions: Array  # (R, B, W)


def attend(Z: Array, tables: Tables, classes: Array, counts: Array, *, normalize: bool, residual: bool, include: bool) -> AttendedContexts:
    """Attention with logits Z (R, Q, rows) over contexts of classes (R, B) with counts (R, B, W).

    normalize: vectors to length 1. residual: add the query to the attended vector. include: count the query as a token of the context.
    """
    xp = array_namespace(Z)
    R, Q, rows = Z.shape
    K, W = tables.tokens.shape
    which = classes + K * xp.arange(R)[:, None]  # (R, B)
    z = Z.reshape(R, Q * rows).take(tables.cells, axis=1).reshape(R * K, W).take(which, axis=0)  # (R, B, W)
    if counts.shape[-1] < W:
        counts = xp.concatenate([counts, xp.zeros_like(counts[..., :1])], axis=-1)
    query = tables.query.take(classes, axis=0) if residual or include else None  # (R, B, W)
    if include:
        counts = counts + query
    z = xp.where(counts > 0, z, -xp.inf)
    z -= z.max(axis=-1, keepdims=True)  # by the largest logit of tokens that occur, so that the largest share does not underflow
    v = counts * xp.exp(z)  # (R, B, W)
    v /= v.sum(axis=-1, keepdims=True)
    x = v + query if residual else v  # (R, B, W)
    length = xp.sqrt((x * x).sum(axis=-1, keepdims=True)) if normalize else None  # (R, B, 1)
    f = x if length is None else x / length  # (R, B, W)
    positions = tables.tokens.take(classes, axis=0) + (rows * xp.arange(classes.size)).reshape(*classes.shape, 1)  # (R, B, W)
    return AttendedContexts(v, f, length, positions)


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
