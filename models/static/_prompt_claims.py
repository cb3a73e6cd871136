"""The gradient of attention by a prompt, at the start: it points to what marks the tokens that matter, not to what they say."""

from collections.abc import Iterable

import numpy as np

from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import Source

ZETA, DELTA, SIZE, TOKENS, DRAWS = 0.3, 1.5, 0.8, 10, 200_000


def inputs(rng: np.random.Generator, q: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels (DRAWS,), and tokens (DRAWS, TOKENS, 4) of which the share ZETA are DELTA q + y w, the others noise."""
    y, X = rng.choice([-1.0, 1.0], DRAWS), rng.normal(size=(DRAWS, TOKENS, 4))
    X[:, : round(ZETA * TOKENS)] = DELTA * q + y[:, None, None] * w
    return y, X


def prompt_gradient() -> Iterable[Measurement]:
    """200,000 inputs of ten tokens in four dimensions, three of them delta q + y w, the others noise: E y df/dp at p = 0.

    f = w . X^T softmax(X p), so that df/dp is the covariance of x and x . w under even attention.
    """
    q, w = np.eye(4)[0], SIZE * np.eye(4)[1]
    y, X = inputs(np.random.default_rng(0), q, w)
    value = X @ w
    slope = y[:, None] * ((X * value[:, :, None]).mean(axis=1) - X.mean(axis=1) * value.mean(axis=1, keepdims=True))
    mean, error = slope.mean(axis=0), slope.std(axis=0) / DRAWS**0.5
    want = ZETA * (1 - ZETA) * DELTA * SIZE**2
    yield Measurement("zeta (1 - zeta) delta |w|^2", want, 0.2016, 1e-12)
    yield Measurement("along q", mean[0], want, 4 * float(error[0]))
    for name, a in (("along w", 1), ("across", 2), ("across, other", 3)):
        yield Measurement(f"{name}", mean[a], 0.0, 4 * float(error[a]))


PROMPT = Claim(
    "static.prompt_gradient",
    Source(
        "oymak2023role", "Abstract", "the initial trajectory of gradient descent: its first step by the prompt, tokens that matter or not"
    ),
    "200,000 inputs of ten tokens, three of which matter",
    "the gradient by the prompt at 0 is zeta (1 - zeta) delta |w|^2 q: it points to the mark q, not to the value w",
    prompt_gradient,
    "four standard errors",
)
