"""Converts iterations of a training to times of the gradient flow that it follows.

Plain descent makes one Euler step of length h an iteration. Momentum beta has updates v <- beta v + g and y <- y + h v. Then a gradient
that does not change moves y by h (1 - beta^j) / (1 - beta) at update j. After i updates that is the flow at the effective time

    t(i) = h [i - beta (1 - beta^i) / (1 - beta)] / (1 - beta),

which lags the limit h i / (1 - beta) by at most h beta / (1 - beta)^2. Without momentum both are h i.
"""

from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, no_such

KINDS = ("effective", "limit")


@dataclass(frozen=True)
class TrainingClock:
    """The time of a System at an iteration. step: the System's time of one iteration of plain descent, 1 if it counts SGD steps.

    kind: "effective" or "limit", see above. Raises ParamError for another kind or a momentum outside [0, 1).
    """

    step: float = 1.0
    momentum: float = 0.0
    kind: str = "effective"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParamError(no_such("clock", self.kind, KINDS))
        if not 0 <= self.momentum < 1:
            raise ParamError(f"momentum must lie in [0, 1) for a clock, not {self.momentum:g}: with 1 the steps grow without bound")

    def times(self, iterations: Array) -> Array:
        """Times (T,) of iterations (T,)."""
        i, beta = np.asarray(iterations, float), self.momentum
        if beta == 0:
            return self.step * i
        lag = beta * (1 - beta**i) / (1 - beta) if self.kind == "effective" else 0.0
        return self.step * (i - lag) / (1 - beta)

    def __str__(self) -> str:
        if self.momentum == 0:
            return "t = i" if self.step == 1 else f"t = {self.step:g} i"
        factor = "" if self.step == 1 else f"{self.step:g} "
        beta = f"{self.momentum:g}"
        if self.kind == "limit":
            return f"t = {factor}i / (1 - {beta})"
        return f"t = {factor}[i - {beta} (1 - {beta}^i) / (1 - {beta})] / (1 - {beta})"
