"""Metrics of the distance between curves of several seeds: correlation, errors, scale, delay, and standard errors over seeds.

Positive quantities that span a decade also have the error of logarithms and the ratio at the end. For the other metrics see mostly the
beginning of a curve that has fallen far.

a (R, T, *shape) is compared with b (1 or R, T, *shape), by means over seeds. All saved times have the same weight.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from odesim.base.arrays import Array

STILL = 1e-12  # relative change below which a component counts as constant
DECADE = 10.0  # largest / smallest value from which on a positive quantity is compared by logarithms
AGREE = 0.1  # relative difference up to which curves agree


def scaled(x: Array) -> tuple[Array, int]:
    """x (...,) over a power of two near its largest entry, and its exponent: no bit is lost, and squares do not overflow."""
    exponent = int(np.frexp(np.max(np.abs(x)))[1])
    return np.ldexp(x, -exponent), exponent


def norm(x: Array) -> float:
    """|x| over all entries."""
    x, exponent = scaled(x)
    return float(np.ldexp(np.sqrt((x * x).sum()), exponent))


def correlation(a: Array, b: Array) -> float:
    """Cosine of a and b (...,), each minus its mean over all entries; nan if one is constant to rounding."""
    if any(np.ptp(x) <= STILL * np.max(np.abs(x)) for x in (a, b)):
        return np.nan
    (a, _), (b, _) = scaled(a - a.mean()), scaled(b - b.mean())
    lengths = np.sqrt((a * a).sum()) * np.sqrt((b * b).sum())
    return float(np.clip((a * b).sum() / lengths, -1, 1)) if lengths > 0 else np.nan


def relative_l2(a: Array, b: Array) -> float:
    """|a - b| / |b|; nan if b is 0."""
    length = norm(b)
    return norm(a - b) / length if length > 0 else np.nan


def largest_difference(a: Array, b: Array) -> float:
    """The largest entry of |a - b|."""
    return float(np.max(np.abs(a - b)))


def scale(a: Array, b: Array) -> float:
    """The factor s for which s b is nearest to a in least squares; nan if b is 0."""
    (a, of_a), (b, of_b) = scaled(a), scaled(b)
    square = float((b * b).sum())
    return float(np.ldexp((a * b).sum() / square, of_a - of_b)) if square > 0 else np.nan


def half_times(t: Array, y: Array) -> Array:
    """The times (n,) at which components of y (T, n) have first gone half of their way from start to end.

    y is taken as linear between times t (T,). nan for a component that is constant or not finite.
    """
    with np.errstate(invalid="ignore"):
        way = y[-1] - y[0]
        moving = np.abs(way) > STILL * np.max(np.abs(y), axis=0)
        gone = (y - y[0]) / np.where(moving, way, 1) >= 0.5  # (T, n)
    after = np.argmax(gone, axis=0)  # at least 1 for a component that moves
    before = np.maximum(after - 1, 0)
    columns = np.arange(y.shape[1])
    low, high = y[before, columns], y[after, columns]
    rise = np.where(high == low, 1, high - low)
    times = t[before] + (y[0] + way / 2 - low) / rise * (t[after] - t[before])
    return np.where(moving, times, np.nan)


def delay(t: Array, a: Array, b: Array, of: Callable[[Array], float]) -> float:
    """One number of the delays (n,) of the half-times of a (T, n) after those of b (T, n), where both move; nan where none does."""
    delays = half_times(t, a) - half_times(t, b)
    finite = delays[np.isfinite(delays)]
    return float(of(finite)) if finite.size else np.nan


def spread(a: Array, b: Array) -> float:
    """The mean of a - b over seeds in standard errors of that mean, both as root mean squares over times and components.

    About 1 if b is the expectation of the seeds, so that the difference is chance. nan for one seed, or if nothing differs by more
    than rounding.
    """
    d = a - b  # (R, T, n)
    if len(d) < 2:
        return np.nan
    difference = float(np.sqrt(np.mean(d.mean(axis=0) ** 2)))
    error = float(np.sqrt(np.mean(d.var(axis=0, ddof=1)) / len(d)))
    rounding = STILL * max(float(np.max(np.abs(a))), float(np.max(np.abs(b))))
    return difference / error if error > rounding else np.inf if difference > rounding else np.nan


def is_scaled(a: Array, b: Array) -> bool:
    """Whether a and b (T, n) are finite and positive and a component of one of them spans a decade."""
    if not all(np.all(np.isfinite(x) & (x > 0)) for x in (a, b)):
        return False
    return any(bool(np.any(x.max(axis=0) >= DECADE * x.min(axis=0))) for x in (a, b))


def log_error(a: Array, b: Array) -> float:
    """Root mean square of ln(a / b) for a and b (T, n), a relative error if it is small; nan unless is_scaled(a, b)."""
    return float(np.sqrt(np.mean(np.log(a / b) ** 2))) if is_scaled(a, b) else np.nan


def end_ratio(a: Array, b: Array) -> float:
    """a / b at the last time for a and b (T, n), in the component where it is farthest from 1; nan unless is_scaled(a, b)."""
    if not is_scaled(a, b):
        return np.nan
    ratios = np.log(a[-1] / b[-1])
    return float(np.exp(ratios[np.argmax(np.abs(ratios))]))


def agree_until(t: Array, a: Array, b: Array) -> float:
    """The last of the times t (T,) up to which the means of a and b (R, T, *shape) over seeds agree within 10 %.

    It is nan if they never do. If is_scaled(a, b), each entry must agree; else |a - b| is compared with the largest |b| over time.
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
    """A column of the table: function(t (T,), a (T, n), b (T, n)) of means over seeds, None for `spread`, which needs all seeds.

    miss(value): its distance from the ideal. doc: for help texts.
    """

    name: str
    function: Callable[[Array, Array, Array], float] | None
    miss: Callable[[float], float]
    doc: str

    @property
    def ideal(self) -> int:
        """The value of the metric for equal curves: 0 or 1."""
        return int(self.miss(1.0) == 0)


def ratio_error(ratio: float) -> float:
    """The distance of a ratio from 1, equal for r and 1 / r; nan unless ratio > 0."""
    return max(ratio, 1 / ratio) - 1 if ratio > 0 else np.nan


METRICS = (
    Metric("correlation", lambda t, a, b: correlation(a, b), lambda x: 1 - x, "normalised correlation; ideal 1"),
    Metric("relative_l2", lambda t, a, b: relative_l2(a, b), abs, "|training - theory| / |theory|; ideal 0"),
    Metric("sup", lambda t, a, b: largest_difference(a, b), abs, "the largest difference; ideal 0"),
    Metric("scale", lambda t, a, b: scale(a, b), lambda x: abs(x - 1), "factor that theory lacks; ideal 1"),
    Metric("shift", lambda t, a, b: delay(t, a, b, np.mean), abs, "how much later training is half way, mean over components; ideal 0"),
    Metric(
        "shift_worst",
        lambda t, a, b: delay(t, a, b, lambda d: max(d, key=abs)),
        abs,
        "the same of the component that is most out of step; ideal 0",
    ),
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
    """{metric: (R,)} of each seed of a (R, T, *shape) against its row of b (1 or R, T, *shape); without `spread`."""
    pairs = [(a[r : r + 1], b[r % len(b)][None]) for r in range(len(a))]
    rows = [measure(t, *pair) for pair in pairs]
    return {m.name: np.array([row[m.name] for row in rows]) for m in METRICS if m.function}
