"""One-pass SGD on power laws, step by step: exact second moments, of which scaling.sgd is the limit of a small learning rate.

Each step of a batch of B samples takes D[j] to (1 - g lam_j)^2 D[j] + (g^2/B) (lam_j^2 D[j] + 2 lam_j R): what it learns, and what the
noise of inputs and labels adds. This is no approximation: Gaussian inputs have these fourth moments.

Assumed: Gaussian inputs with independent components, each sample used once.
"""

from typing import Any

import numpy as np

from odesim.models.scaling.sgd import AXES, PARAMS, START, B, D, R, g, i, lam, n
from odesim.symbolic import ClosedForm, Log, Map, Source


def powers(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, np.ndarray]:
    """D (n,) after t steps: a power of a matrix."""
    start, g, B = y0["D"], params["g"], params["B"]
    lam = np.arange(1.0, len(start) + 1) ** (-2 * params["a"])
    step = np.eye(len(start) + 1)
    step[:-1, :-1] = np.diag((1 - g * lam) ** 2 + g**2 / B * lam**2) + g**2 / B * np.outer(lam, lam)
    step[:-1, -1] = g**2 / B * lam * params["s2"]
    return {"D": (np.linalg.matrix_power(step, round(t)) @ [*start, 1.0])[:-1]}


SYSTEM = Map(
    name="scaling.sgd_steps",
    source=Source("paquette2024phases", "abstract", "one-pass SGD, without random features"),
    axes=AXES,
    updates={D[i]: (1 - g * lam(i)) ** 2 * D[i] + g**2 / B * (lam(i) ** 2 * D[i] + 2 * lam(i) * R)},
    params=PARAMS,
    initial=START,
    sizes={n: 60},
    steps=1000,
    time="SGD steps",
    observables={"R": R},
    views=(Log("R"), Log("D")),
    closed_forms=(ClosedForm("powers", "always", powers),),
    display={"R": R},
)
