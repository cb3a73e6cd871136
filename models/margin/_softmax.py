"""What the models of margins share: sequences, lacks of scores, the loss of what attention misses."""

from typing import Any

import numpy as np
from sympy import Interval, Sum, exp, log, oo, symbols

from odesim.symbolic import IndexedBase, Param, index, over, sizes, softmax

i, l = index("i l")
N, T = sizes("N T")
lack = IndexedBase("lack", shape=(N, T))
best = symbols("best", real=True)


def first_is_best(sizes: dict[str, int]) -> Any:
    """lack (N, T): 0 of the first token, 1 of the others."""
    out = np.ones((sizes["N"], sizes["T"]))
    out[:, 0] = 0
    return out


def attention(logit: Any) -> Any:
    """Softmax over tokens l of sample i."""
    return softmax(logit, (l, T))


def mean_loss(logit: Any) -> Any:
    """The mean over samples of ln(1 + exp(-score)), score = best - sum_t lack a: no digits of 1 - a are lost as a -> 1."""
    missed = over(Sum, lack[i, l] * attention(logit), (l, T))
    return over(Sum, log(1 + exp(missed - best)), (i, N)) / N


LACK = Param(lack, first_is_best, Interval(0, oo), "by how much a token's score is below the best of its sequence")
BEST = Param(best, 1.0, Interval(-oo, oo), "score of the best token, label included")
TIME = "log of 1 + steps times learning rate"
