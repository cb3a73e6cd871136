"""What the topic models share: documents of tau of T topics, all topics with the same number of words, and how masked words are shown."""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from sympy import Interval, Naturals, Symbol

from odesim.symbolic import IndexedBase, Param, sizes

d, N = sizes("d N")
P, P_shown, B = IndexedBase("P", shape=(N, d)), IndexedBase("P_shown", shape=(N, d)), IndexedBase("B", shape=(d, d))


def documents(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """P (N, d): the law of a word in each document, uniform over the words of its topics; 0 for token 0, the mask.

    Raises ValueError unless N counts the sets of topics, and d - 1 is a multiple of T.
    """
    d, N, T, tau = sizes["d"], sizes["N"], int(params["T"]), int(params["tau"])
    if comb(T, tau) != N or d < 2 or (d - 1) % T:
        raise ValueError(f"T = {T} topics of v words each, tau = {tau} in a document, need the sizes N = {comb(T, tau)} and d = {T} v + 1")
    member = np.array([np.isin(np.arange(T), chosen) for chosen in combinations(range(T), tau)])
    words = np.repeat(member, (d - 1) // T, axis=1)
    return np.pad(words / words.sum(axis=1, keepdims=True), ((0, 0), (1, 0)))


def queries(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """B (d, d): the probability that token w is shown where word x is masked: itself, any word, or the mask."""
    d, p_c, p_r = sizes["d"], float(params["p_c"]), float(params["p_r"])
    shown = np.full((d, d), p_r / max(d - 1, 1)) + p_c * np.eye(d)
    shown[0] = 1 - p_c - p_r
    return shown


def shown(sizes: dict[str, int], params: dict[str, Any]) -> np.ndarray:
    """P_shown (N, d): the law of a token in each document as it is shown, where words are masked with probability p_m."""
    P, p_m = params["P"], float(params["p_m"])
    return np.asarray((1 - p_m) * P + p_m * P @ params["B"].T)


PARAMS = (
    Param(Symbol("T"), 4, Naturals, "number of topics"),
    Param(Symbol("tau"), 2, Naturals, "topics of a document"),
    Param(Symbol("p_m"), 0.15, Interval(0, 1), "probability that a word is masked"),
    Param(Symbol("p_c"), 0.3, Interval(0, 1), "probability that a masked word is shown itself"),
    Param(Symbol("p_r"), 0.1, Interval(0, 1), "probability that any word is shown in its place"),
    Param(P, documents, Interval(0, 1), "P[s, x]: law of word x in document s"),
    Param(B, queries, Interval(0, 1), "B[w, x]: probability that w is shown where x is masked"),
    Param(P_shown, shown, Interval(0, 1), "P_shown[s, l]: law of token l in document s as it is shown"),
)
