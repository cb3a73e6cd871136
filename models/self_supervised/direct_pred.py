"""DirectPred in its modes: the predictor is no weight that learns, it is set from the representation.

w (n,) are the singular values of W, s = w^2 the eigenvalues of F = W W^T. The predictor has the eigenvalues p = w + eps max(w), and rests
at p+ of self_supervised.modes: all w at p+/(1 + eps). With eps = 0 a mode below p- dies out; eps > 0 lifts it over that edge.

The paper's eq. 18 has eps max(s); its code sets p to sqrt(s/max(s)) + eps, that is, with the scale of sqrt(s), the form here.
Assumed: as self_supervised.modes; SimSiam, no moving average.
"""

from typing import Any

import numpy as np
from sympy import Interval, oo, symbols

from odesim.models.self_supervised._parabola import modes_at
from odesim.symbolic import ClosedForm, IndexedBase, Log, MaxOver, Param, Source, System, index, over, sizes

j, k = index("j k")
(n,) = sizes("n")
w = IndexedBase("w", shape=(n,))
eta, sigma2, eps = symbols("eta sigma2 eps", nonnegative=True)
p = w[j] + eps * over(MaxOver, w[k], (k, n))


def one_mode(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """w (n,): with eps = 0 each is a mode of SimSiam on its parabola."""
    return {"w": modes_at(t, y0["w"], params)}


SYSTEM = System(
    name="self_supervised.direct_pred",
    source=Source("tian2021understanding", "eq. 18", "with the largest singular value in the place of the largest eigenvalue"),
    axes={j: n, k: n},
    equations={w[j]: w[j] * (p * (1 - (1 + sigma2) * p) - eta)},
    params=(
        Param(eta, 0.04, Interval(0, oo), "weight decay"),
        Param(sigma2, 0.1, Interval(0, oo), "variance of the noise of a view"),
        Param(eps, 0.1, Interval(0, oo), "what every mode of the predictor has beside its own, over the largest one"),
    ),
    initial={w[j]: 0.5 / 3**j},
    sizes={n: 4},
    span=(0.0, 60.0),
    time="steps times learning rate",
    observables={"s": w[j] ** 2, "p": p},
    display={"p": p},
    views=(Log("s"),),
    closed_forms=(ClosedForm("one mode", "eps = 0, from w > 0, 0 < eta, eta not 1/(4 + 4 sigma2)", one_mode),),
)
