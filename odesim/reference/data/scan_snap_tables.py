"""Classes of the task scan_snap: from the generator of the paper's code, or from a given table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError
from odesim.reference.one_layer.classes import check_classes

GENERATOR_SETTINGS = ("num_last", "num_next_per_last", "num_common", "num_common_per_last", "num_unique_per_next")
TABLE_SETTINGS = ("P", "psi", "p", "M")


@dataclass(frozen=True, eq=False)
class Classes:
    """K classes: P (K, S), psi (K,), p (K,) and M, the parameters of scan_snap.full."""

    P: Array
    psi: Array
    p: Array
    M: float


def generate_classes(values: Mapping[str, Any]) -> Classes:
    """Classes as Dataset2 of `ssl/real-dataset/decoder_only.py` in facebookresearch/luckmatters generates them.

    Order of tokens: common, common to a query, distinct of each class (weights from 0.1 to 1, else 1), queries, next tokens.
    """
    last, next_, common, per_last, unique = (values[name] for name in GENERATOR_SETTINGS)
    if common + per_last + unique == 0:
        raise ParamError("num_common, num_common_per_last and num_unique_per_next are all 0: contexts have no tokens to hold")
    K = last * next_
    psi = np.arange(K) // next_
    weights = np.zeros((K, common + per_last * last + unique * K))
    weights[:, :common] = 1
    for n in range(K):
        shared, distinct = common + per_last * psi[n], common + per_last * last + unique * n
        weights[n, shared : shared + per_last] = 1
        weights[n, distinct : distinct + unique] = np.linspace(0.1, 1, unique)
    return Classes(weights / weights.sum(axis=1, keepdims=True), psi, np.full(K, 1 / K), float(weights.shape[1] + last + K))


def classes_from_settings(values: Mapping[str, Any]) -> Classes:
    """Classes from the settings P, psi, p and M. Raises ParamError if they are inconsistent."""
    P = np.array(values["P"], float)
    if P.ndim != 2 or P.size == 0:
        raise ParamError(f"P must be a table of classes and tokens, not an array of shape {P.shape}")
    K, S = P.shape
    psi = np.arange(K) if values["psi"] is None else np.array(values["psi"], float)
    p = np.full(K, 1 / K) if values["p"] is None else np.array(values["p"], float)
    if psi.size == 0 or np.any(psi != np.floor(psi)):
        raise ParamError("psi must hold whole numbers, the query of each class")
    if np.size(values["M"]) != 1:
        raise ParamError(f"M must be one number, the tokens of the vocabulary, not {np.size(values['M'])}")
    M = S + float(np.max(psi)) + 1 + K if values["M"] is None else float(np.ravel(values["M"])[0])
    check_classes(P, psi, p, M)
    return Classes(P, psi.astype(int), p, M)


def with_idle_classes(classes: Classes) -> dict[str, Any] | None:
    """Parameters of scan_snap.full where Y has a column for every token: a class of probability 0 for each that is never next.

    Such a class sees a token that classes share, so that their own tokens stay their own; None if there is no such token.
    """
    shared = np.flatnonzero((classes.P > 0).sum(axis=0) > 1)
    if not shared.size:
        return None
    K, S = classes.P.shape
    idle = np.zeros((int(classes.M) - K, S))
    idle[:, shared[0]] = 1
    zeros = np.zeros(len(idle))
    P, psi, p = np.concatenate([classes.P, idle]), np.concatenate([classes.psi, zeros.astype(int)]), np.concatenate([classes.p, zeros])
    return {"P": P, "psi": psi, "p": p, "M": classes.M}


def symmetric_params(values: Mapping[str, Any], classes: Classes) -> dict[str, Any] | None:
    """The parameters of scan_snap.symmetric and its reduced flow, or None if the generated classes are not symmetric.

    Classes are not symmetric if each query has common tokens of its own; the Systems also need common and distinct tokens.
    """
    last, next_, common, per_last, unique = (values[name] for name in GENERATOR_SETTINGS)
    shared = common + (per_last if last == 1 else 0)
    if (per_last and last > 1) or not shared or not unique:
        return None
    return {
        "p": classes.P[0, classes.P.shape[1] - unique * last * next_ :][:unique],
        "pc": classes.P[0, :1],
        "mc": np.array([float(shared)]),
        "K": float(last * next_),
        "M": classes.M,
        "k_m": float(next_),
    }
