"""What is stated of many random tokens: one cluster in the end, how long it takes, and one equation in many dimensions."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
from odesim.symbolic import Source

PAPER = "geshkovski2023mathematical"
PAIRS = np.triu_indices(32, 1)
PLAIN: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-9, "backend": "numpy"}


def tokens(gram: np.ndarray, d: int) -> np.ndarray:
    """Tokens (n, d) with these inner products, by their eigenvectors."""
    values, vectors = np.linalg.eigh(gram)
    x = vectors * np.sqrt(np.maximum(values, 0))
    return np.hstack([x, np.zeros((len(x), d - x.shape[1]))]) if d > x.shape[1] else x[:, -d:]


def products(beta: float, x: np.ndarray, times: Any) -> np.ndarray:
    """Inner products (t, pair) of 32 tokens from x, at these times."""
    run = odesim.integrate("particles.sphere", params={"beta": beta, "x0": x}, span=(0, times[-1]), save=times, **PLAIN)
    return np.asarray(run.observables["product"][:, PAIRS[0], PAIRS[1]])


def three_dimensions(beta: float, times: list[float]) -> np.ndarray:
    """The least product (start, t) of 32 tokens in three dimensions, three random starts."""
    starts = (np.random.default_rng(seed).standard_normal((32, 3)) for seed in range(3))
    return np.array([products(beta, x, times).min(axis=1) for x in starts])


def one_cluster() -> Iterable[Measurement]:
    """32 tokens in three dimensions, without temperature and at three temperatures: the least product at the end."""
    for beta, end in ((0.0, 30.0), (0.5, 30.0), (1.0, 30.0), (2.0, 60.0)):
        yield Measurement(f"beta = {beta:g}, least product at t = {end:g}", three_dimensions(beta, [0, end])[:, 1].min(), 0.999, 0.0, ">=")


def long_lives() -> Iterable[Measurement]:
    """32 tokens in three dimensions: at beta = 4 apart at t = 100 and together at t = 1000, at beta = 9 still apart."""
    warm, cold = three_dimensions(4.0, [0, 100, 1000]), three_dimensions(9.0, [0, 1000])
    yield Measurement("beta = 4, t = 100: least product, median of starts", float(np.median(warm[:, 1])), 0.0, 0.0, "<=")
    yield Measurement("beta = 4, t = 1000: least product", warm[:, 2].min(), 0.999, 0.0, ">=")
    yield Measurement("beta = 9, t = 1000: least product, largest of starts", cold[:, 1].max(), 0.0, 0.0, "<=")


def farthest(beta: float, d: int) -> float:
    """The largest distance of a product of 32 random tokens in d dimensions from particles.gamma, to t = 10, the mean of five starts.

    Tokens stay in the span of the first ones: 32 coordinates, with the same inner products, are enough.
    """
    times, apart = np.linspace(0, 10, 41), []
    run = odesim.integrate("particles.gamma", params={"beta": beta, "n": 32}, span=(0, 10), save=times, **PLAIN)
    for seed in range(5):
        x = np.random.default_rng(seed).standard_normal((32, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        apart.append(np.abs(products(beta, tokens(x @ x.T, 32), times) - run.y["gamma"][:, None]).max())
    return float(np.mean(apart))


def many_dimensions() -> Iterable[Measurement]:
    """The largest distance of a product from particles.gamma in 256 and 1024 dimensions, the mean of five starts, beta = 1."""
    means = {d: farthest(1.0, d) for d in (256, 1024)}
    for d, mean in means.items():
        # 496 pairs of normal products have a largest one of about 3.3 deviations; on the way it doubles at most
        yield Measurement(f"d = {d}: largest distance, times sqrt(d)", mean * d**0.5, 3.3, 1.0)
    yield Measurement("four times as many dimensions: shorter by", means[256] / means[1024], 2.0, 0.4)


def cold_in_many_dimensions() -> Iterable[Measurement]:
    """The same at beta = 4, d = 64 to 1024, beside an independent script from the same starts; times sqrt(d), of order 1."""
    for d, want in ((64, 0.58606), (256, 0.25207), (1024, 0.14428)):
        found = farthest(4.0, d)
        yield Measurement(f"d = {d}: largest distance", found, want, 2e-5)
        yield Measurement(f"d = {d}: largest distance, times sqrt(d)", found * d**0.5, 6.6, 0.0, "<=")


CROWDS = (
    Claim(
        "particles.consensus",
        Source("criscitiello2024synchronization", "spheres", "d >= 3, exponential interactions; attention is this flow in another metric"),
        "particles.sphere, 32 tokens in three dimensions, beta = 0, .5, 1 and 2, three random starts; of beta = 4 see particles.metastable",
        printed=Statement("for every beta random tokens in three dimensions become one cluster", one_cluster, "none: 1 - 1e-3"),
        models=("particles.sphere",),
    ),
    Claim(
        "particles.metastable",
        Source(PAPER, "eq. SA", "metastability"),
        "particles.sphere, 32 tokens in three dimensions, beta = 4 and 9, to t = 1000, three random starts",
        printed=Statement(
            "clusters of random tokens are metastable: they live long, and longer at a lower temperature",
            long_lives,
            "none: tokens apart have a negative product",
        ),
        slow=True,
        depends=("particles.lifetimes",),
    ),
    Claim(
        "particles.many_dimensions",
        Source(PAPER, "eq. SA", "random tokens in many dimensions"),
        "particles.sphere beside particles.gamma, 32 random tokens, d = 256 and 1024, five starts, beta = 1, to t = 10",
        printed=Statement(
            "products of random tokens follow the equation for equal ones, up to order sqrt(log d / d)",
            many_dimensions,
            "a third of the largest deviation; of the ratio 2, whose logarithm makes it 1.8, two standard errors of five starts",
        ),
        depends=("particles.equal_products",),
    ),
    Claim(
        "particles.cold_in_many_dimensions",
        Source(PAPER, "eq. SA", "random tokens in many dimensions"),
        "particles.sphere beside particles.gamma, 32 random tokens, d = 64, 256 and 1024, five starts, beta = 4, to t = 10",
        printed=Statement(
            "at beta = 4 too: the largest distance stays below 6.6 / sqrt(d), twice the largest deviation of a product at the start",
            cold_in_many_dimensions,
            "10 times the relative tolerance of the runs, and half a unit of the last digit",
        ),
        slow=True,
        depends=("particles.many_dimensions",),
    ),
)
