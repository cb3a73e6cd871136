"""Contrastive learning on the hypercube: representations of equal, least loss, of which some know nothing of the label.

Inputs x are uniform in {-1, 1}^D; the label is the sign of w . x over the first K coordinates. An augmentation a multiplies each of the
other D - K by a factor of its own, uniform in (0, 1]. The spectral loss of a representation f is -2 E f(a) . f(a') + E (f(a) . f(b))^2 with
two augmentations a, a' of one input and one, b, of another. It is at least -r for r features, and any r orthonormal functions of the signs
of a reach it: augmentations of different inputs have different signs, so that the loss does not know which of them the label needs.

Of linear representations f(a) = W a it is known with the second moments alone, E a a^T = diag(1, 1/3) and E a a'^T = diag(1, 1/4): in
G = S^(1/2) W^T W S^(1/2) it is |G|^2 - 2 tr(G N), N = diag(1, 3/4), least at the leading r eigenvectors of N. For r = K these are the
first K coordinates, which the label needs; r of the others have the loss -9 r / 16.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, combinations, product

import numpy as np
from scipy.optimize import minimize

from odesim.base.errors import counted
from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import Source

D, K = 8, 3
CUBE = np.array(list(product((-1.0, 1.0), repeat=D)))  # (2^D, D)
WEIGHTS = np.array([1.0, 0.7, -0.5])  # of the label: no three signs cancel
LABEL = np.sign(CUBE[:, :K] @ WEIGHTS)
SECOND = np.where(np.arange(D) < K, 1.0, 1 / 3)  # E a_i^2
PAIRED = np.where(np.arange(D) < K, 1.0, 1 / 4)  # E a_i a'_i
DRAWS = 200_000


def accuracy(features: np.ndarray) -> float:
    """The share of inputs with the label that is most frequent among those with equal features (2^D, r): the best that any head can do."""
    _, group = np.unique(features.round(9), axis=0, return_inverse=True)
    sums = np.bincount(group.ravel(), LABEL)
    return float((1 + np.abs(sums).sum() / len(LABEL)) / 2)


def linear_accuracy(features: np.ndarray) -> float:
    """The share of inputs with the sign of their label's least squares on features (2^D, r)."""
    weights = np.linalg.lstsq(features, LABEL, rcond=None)[0]
    return float(np.mean(np.sign(features @ weights) == LABEL))


def loss_of_signs(features: np.ndarray) -> float:
    """The spectral loss of functions of the signs, which augmentations keep, by their values (2^D, r) on all inputs."""
    gram = features.T @ features / len(features)
    return float(-2 * np.trace(gram) + (gram**2).sum())


def loss_of_linear(W: np.ndarray) -> float:
    """The spectral loss of f(a) = W a for W (r, D)."""
    return float(-2 * ((W * PAIRED) * W).sum() + (((W * SECOND) @ W.T) ** 2).sum())


def slope_of_linear(W: np.ndarray) -> np.ndarray:
    """Its gradient (r, D)."""
    return -4 * W * PAIRED + 4 * ((W * SECOND) @ W.T) @ (W * SECOND)


def augmented(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """An augmentation (n, D) of each input x (n, D)."""
    factors = 1 - rng.random(x.shape)
    factors[:, :K] = 1
    return x * factors


def functions_of_signs() -> Iterator[tuple[str, np.ndarray]]:
    """K orthonormal functions of the signs each: what the label needs, others, and parities."""
    yield "the first coordinates", CUBE[:, :K]
    yield "other coordinates", CUBE[:, K : 2 * K]
    pairs = list(combinations(range(K, D), 2))[:K]
    yield "parities of two others", np.array([CUBE[:, pair].prod(axis=1) for pair in pairs]).T


def signs_have_equal_losses() -> Iterable[Measurement]:
    """The first coordinates, others, and parities of others: equal losses, the least there is."""
    rng = np.random.default_rng(0)
    x = CUBE[rng.integers(len(CUBE), size=1000)]
    yield Measurement(
        "augmentations with the signs of their input, of 1000", int((np.sign(augmented(rng, x)) == x).all(axis=1).sum()), 1000
    )
    for name, features in functions_of_signs():
        yield Measurement(f"{name}: loss", loss_of_signs(features), -float(K), 1e-12)
    random = np.random.default_rng(1).standard_normal((20, len(CUBE), K))
    yield Measurement("random functions: minus the least loss of 20", -min(map(loss_of_signs, random)), K, 0.0, "<=")
    orthonormal = np.linalg.qr(random)[0] * len(CUBE) ** 0.5
    yield Measurement("the same, orthonormal: largest loss", max(map(loss_of_signs, orthonormal)), -float(K), 1e-12)


def signs_know() -> Iterable[Measurement]:
    """The accuracy of the same functions of the signs: 1, or that of a coin."""
    for name, features in functions_of_signs():
        yield Measurement(f"{name}: accuracy of the best head", accuracy(features), 1.0, 1e-12)


def linear_is_right() -> Iterable[Measurement]:
    """Moments by drawing; descent from ten starts ends at the first coordinates; more features than the label needs do no harm."""
    rng = np.random.default_rng(1)
    x = CUBE[rng.integers(len(CUBE), size=DRAWS)]
    a, b = augmented(rng, x), augmented(rng, x)
    for name, products, exact in (("E a^2", a * a, SECOND), ("E a a'", a * b, PAIRED)):
        off = np.abs(products.mean(axis=0) - exact) / np.maximum(products.std(axis=0), 1e-9) * DRAWS**0.5
        yield Measurement(f"{name}: largest difference, standard errors", off.max(), 4.0, 0.0, "<=")
    W = rng.standard_normal((K, D))
    slope = (loss_of_linear(W + 1e-6 * np.eye(K, D)) - loss_of_linear(W - 1e-6 * np.eye(K, D))) / 2e-6
    yield Measurement("slope along the first coordinates by differences", slope, np.trace(slope_of_linear(W)[:, :K]), 1e-6 * abs(slope))
    for r, least in ((1, -1.0), (K, -float(K)), (K + 2, -K - 2 * 9 / 16)):
        what = counted(r, "feature")
        ends = [descend(rng.standard_normal((r, D)) / D**0.5) for _ in range(10)]
        yield Measurement(f"{what}: loss at the end, of ten starts the largest", max(map(loss_of_linear, ends)), least, 1e-8)
        yield Measurement(f"{what}: and the least", min(map(loss_of_linear, ends)), least, 1e-8)
        if r <= K:
            rest = max(float(np.abs(W[:, K:]).max()) for W in ends)
            yield Measurement(f"{what}: largest weight of another coordinate", rest, 0.0, 1e-4)
        if r >= K:
            yield Measurement(f"{what}: least accuracy of a linear head", min(linear_accuracy(CUBE @ W.T) for W in ends), 1.0, 1e-12)
    others = np.eye(K, D, K) * (9 / 4) ** 0.5  # G = 3/4 on K of the others
    yield Measurement("other coordinates: least loss", loss_of_linear(others), -K * 9 / 16, 1e-12)


def descend(W: np.ndarray) -> np.ndarray:
    """The weights (r, D) at the end of descent from W."""

    def both(w: np.ndarray) -> tuple[float, np.ndarray]:
        there = w.reshape(W.shape)
        return loss_of_linear(there), slope_of_linear(there).ravel()

    return np.asarray(minimize(both, W.ravel(), jac=True, method="BFGS", options={"gtol": 1e-9}).x.reshape(W.shape))


HYPERCUBE = Claim(
    "static.hypercube",
    Source("saunshi2022understanding", "the hypercube", "augmentations that shrink the coordinates without a label"),
    f"all signs of {D} coordinates, the label on {K} of them",
    "representations of least contrastive loss solve the downstream task",
    lambda: chain(linear_is_right(), signs_have_equal_losses()),
    "exact sums; what descent leaves; four standard errors",
    when="they are linear in the input; functions of its signs of the same loss may know nothing of the label",
    otherwise=signs_know,
)
