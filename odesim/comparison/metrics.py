"""How far two bundles of curves are apart: correlation, errors, scale, delay, and the difference beside the spread of the seeds.

Of positive quantities that span a decade, also the error of the logarithms and the ratio at the end: where a curve has fallen far,
all else measures its beginning.

a (R, T, *shape) is held against b (1 or R, T, *shape), mean over seeds against mean over seeds. Every saved time counts alike.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array

STILL = 1e-12  # a component that goes less than this, against its largest value, goes nowhere
DECADE = 10.0  # largest over smallest value from which on a positive quantity is seen on a logarithmic scale
AGREE = 0.1  # the difference up to which curves agree


def correlation(a: Array, b: Array) -> float:
    """Cosine of a and b (...,), each less its mean over everything; nan where one is constant."""
    a, b = a - a.mean(), b - b.mean()
    lengths = np.sqrt((a * a).sum()) * np.sqrt((b * b).sum())
    return float(np.clip((a * b).sum() / lengths, -1, 1)) if lengths > 0 else np.nan


def relative_l2(a: Array, b: Array) -> float:
    """|a - b| / |b|; nan where b is 0."""
    length = float(np.sqrt((b * b).sum()))
    return float(np.sqrt(((a - b) ** 2).sum())) / length if length > 0 else np.nan


def largest_difference(a: Array, b: Array) -> float:
    """The largest |a - b|."""
    return float(np.max(np.abs(a - b)))


def scale(a: Array, b: Array) -> float:
    """The factor s that brings s b nearest to a (least squares); nan where b is 0."""
    square = float((b * b).sum())
    return float((a * b).sum()) / square if square > 0 else np.nan


def half_times(t: Array, y: Array) -> Array:
    """When each component of y (T, n) has first gone half of its way from start to end (n,), linear between the times t (T,).

    nan for one that goes nowhere or is not finite.
    """
    with np.errstate(invalid="ignore"):
        way = y[-1] - y[0]
        moving = np.abs(way) > STILL * np.max(np.abs(y), axis=0)
        gone = (y - y[0]) / np.where(moving, way, 1) >= 0.5  # (T, n)
    after = np.argmax(gone, axis=0)  # of a moving component at least 1
    before = np.maximum(after - 1, 0)
    each = np.arange(y.shape[1])
    low, high = y[before, each], y[after, each]
    rise = np.where(high == low, 1, high - low)
    found = t[before] + (y[0] + way / 2 - low) / rise * (t[after] - t[before])
    return np.where(moving, found, np.nan)


def delays(t: Array, a: Array, b: Array) -> Array:
    """How much later a (T, n) is half way than b (n,); nan where one goes nowhere."""
    return half_times(t, a) - half_times(t, b)


def spread(a: Array, b: Array) -> float:
    """|mean(a - b)| over seeds in standard errors of that mean, each as a root mean square over times and components.

    About 1 where b is the seeds' expectation: the difference is no more than chance. nan for one seed, or where none differ at all.
    """
    d = a - b  # (R, T, n)
    if len(d) < 2:
        return np.nan
    difference = float(np.sqrt(np.mean(d.mean(axis=0) ** 2)))
    error = float(np.sqrt(np.mean(d.var(axis=0, ddof=1)) / len(d)))
    return difference / error if error > 0 else np.inf if difference > 0 else np.nan


def is_scaled(a: Array, b: Array) -> bool:
    """Whether a and b (T, n) are finite and positive, and one of the components of either spans a decade or more."""
    if not all(np.all(np.isfinite(x) & (x > 0)) for x in (a, b)):
        return False
    return any(bool(np.any(x.max(axis=0) >= DECADE * x.min(axis=0))) for x in (a, b))


def log_error(a: Array, b: Array) -> float:
    """Root mean square of ln(a / b) of a and b (T, n): a relative error where it is small; nan unless they are positive over a decade."""
    return float(np.sqrt(np.mean(np.log(a / b) ** 2))) if is_scaled(a, b) else np.nan


def end_ratio(a: Array, b: Array) -> float:
    """a / b (T, n) at the last time, of the component in which it is farthest from 1; nan unless they are positive over a decade."""
    if not is_scaled(a, b):
        return np.nan
    ratios = np.log(a[-1] / b[-1])
    return float(np.exp(ratios[np.argmax(np.abs(ratios))]))


def agree_until(t: Array, a: Array, b: Array) -> float:
    """The last of the times t (T,) up to which a and b (R, T, *shape), means over seeds, agree to within a tenth; nan where never.

    A tenth of each value where they are positive over a decade; else of the largest length of b, and of the length of a - b.
    """
    a, b = (x.reshape(*x.shape[:2], -1).mean(axis=0) for x in (a, b))
    with np.errstate(all="ignore"):
        if is_scaled(a, b):
            good = np.all(np.abs(np.log(a / b)) <= np.log1p(AGREE), axis=1)
        else:
            good = np.linalg.norm(a - b, axis=1) <= AGREE * np.max(np.linalg.norm(b, axis=1))
    first = int(np.argmin(good)) if not good.all() else len(t)
    return float(t[first - 1]) if first else np.nan


@dataclass(frozen=True)
class Metric:
    """A word of the table; function(t (T,), a (T, n), b (T, n)), None where it is of all seeds. miss: how far a value is from ideal."""

    name: str
    function: Callable[[Array, Array, Array], float] | None
    miss: Callable[[float], float]
    doc: str

    @property
    def ideal(self) -> int:
        """What it is where nothing is apart: 0 or 1."""
        return int(self.miss(1.0) == 0)


def mean_delay(t: Array, a: Array, b: Array) -> float:
    """The mean delay of a (T, n) behind b over the components that move."""
    found = delays(t, a, b)
    found = found[np.isfinite(found)]
    return float(found.mean()) if found.size else np.nan


def worst_delay(t: Array, a: Array, b: Array) -> float:
    """The delay, early or late, that is largest."""
    found = delays(t, a, b)
    found = found[np.isfinite(found)]
    return float(found[np.argmax(np.abs(found))]) if found.size else np.nan


def ratio_error(ratio: float) -> float:
    """How far a ratio is from 1, the same for twice as large and half as large."""
    return max(ratio, 1 / ratio) - 1 if ratio > 0 else np.nan


METRICS = (
    Metric("correlation", lambda t, a, b: correlation(a, b), lambda x: 1 - x, "normalised correlation; ideal 1"),
    Metric("relative_l2", lambda t, a, b: relative_l2(a, b), abs, "|training - theory| / |theory|; ideal 0"),
    Metric("sup", lambda t, a, b: largest_difference(a, b), abs, "the largest difference; ideal 0"),
    Metric("scale", lambda t, a, b: scale(a, b), lambda x: abs(x - 1), "factor that theory lacks; ideal 1"),
    Metric("shift", mean_delay, abs, "how much later training is half way, mean over components; ideal 0"),
    Metric("shift_worst", worst_delay, abs, "the same of the component that is most out of step; ideal 0"),
    Metric("log_error", lambda t, a, b: log_error(a, b), abs, "root mean square of ln(training / theory), positive over a decade; ideal 0"),
    Metric("end_ratio", lambda t, a, b: end_ratio(a, b), ratio_error, "training / theory at the end, positive over a decade; ideal 1"),
    Metric("spread", None, abs, "difference of the means in standard errors over the seeds; chance gives 1"),
)
NAMES = tuple(metric.name for metric in METRICS)


def measure(t: Array, a: Array, b: Array) -> dict[str, float]:
    """{metric: value} of the means over seeds of a (R, T, *shape) and b (1 or R, T, *shape) at times t (T,)."""
    a, b = (x.reshape(*x.shape[:2], -1) for x in (a, b))
    means = a.mean(axis=0), b.mean(axis=0)
    return {m.name: m.function(t, *means) if m.function else spread(a, b) for m in METRICS}


def measure_seeds(t: Array, a: Array, b: Array) -> dict[str, Array]:
    """{metric: (R,)} of each seed of a (R, T, *shape) against its own b, or the only one; without `spread`."""
    pairs = [(a[r : r + 1], b[r % len(b)][None]) for r in range(len(a))]
    rows = [measure(t, *pair) for pair in pairs]
    return {m.name: np.array([row[m.name] for row in rows]) for m in METRICS if m.function}
