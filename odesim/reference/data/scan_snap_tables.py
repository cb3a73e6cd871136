"""The classes of scan_snap: the generator of the paper's code, or a table that is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ParamError
from odesim.reference.one_layer.classes import check_classes

GENERATOR_SETTINGS = ("num_last", "num_next_per_last", "num_common", "num_common_per_last", "num_unique_per_next")
TABLE_SETTINGS = ("P", "psi", "p", "M")


@dataclass(frozen=True, eq=False)
class Classes:
    """P (K, S), psi (K,), p (K,) and M, as scan_snap.full has them."""

    P: Array
    psi: Array
    p: Array
    M: float


def generate_classes(values: Mapping[str, Any]) -> Classes:
    """The Dataset2 of `ssl/real-dataset/decoder_only.py` in facebookresearch/luckmatters, tokens in its order.

    Common tokens, common tokens of each query, each class's own (weights from 0.1 to 1, all others 1), queries, next tokens.
    """
    last, next_, common, per_last, unique = (values[name] for name in GENERATOR_SETTINGS)
    if common + per_last + unique == 0:
        raise ParamError("num_common, num_common_per_last and num_unique_per_next are all 0: contexts have no tokens to hold")
    K = last * next_
    psi = np.arange(K) // next_
    weights = np.zeros((K, common + per_last * last + unique * K))
    weights[:, :common] = 1
    for n in range(K):
        shared, own = common + per_last * psi[n], common + per_last * last + unique * n
        weights[n, shared : shared + per_last] = 1
        weights[n, own : own + unique] = np.linspace(0.1, 1, unique)
    return Classes(weights / weights.sum(axis=1, keepdims=True), psi, np.full(K, 1 / K), float(weights.shape[1] + last + K))


def classes_from_settings(values: Mapping[str, Any]) -> Classes:
    """Classes of the settings P, psi, p and M. Raises ParamError where they make no sense."""
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


def symmetric_params(values: Mapping[str, Any], classes: Classes) -> dict[str, Any] | None:
    """The parameters of scan_snap.symmetric and its reduced flow, or None where the generated classes are not all alike.

    They are not where queries share tokens of their own, and the Systems have no room for no token of a kind.
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
