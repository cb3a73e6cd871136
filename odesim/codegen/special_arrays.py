"""Special functions of whole numpy or cupy arrays: those of scipy, and what these lose near branch points, 0 and overflow.

The coefficients of series are imported where they are used: that imports numba, which a run without these functions does not need.
"""

from collections.abc import Callable
from typing import Any

from odesim.base.arrays import array_namespace
from odesim.runtime.constants import GROWN, LOST, SMALL

ONE_OVER_E, ONE_OVER_E_TAIL = 0.36787944117144233, -1.2428753672788363e-17


def _library(*arguments: Any) -> Any:
    """The special functions of scipy, or those of cupy."""
    if array_namespace(*arguments).__name__ == "cupy":
        from cupyx.scipy import special
    else:
        from scipy import special
    return special


def _named(name: str) -> Callable[..., Any]:
    """The function with this name in scipy and cupy."""
    return lambda *arguments: getattr(_library(*arguments), name)(*arguments)


def _erfc(x: Any) -> Any:
    """Beyond 3 by the scaled function and an exact square."""
    xp, special, far = array_namespace(x), _library(x), x > 3
    y = xp.where(far, xp.minimum(x, 28.0), 3.0)
    h = y.astype(xp.float32).astype(y.dtype)
    return xp.where(far, special.erfcx(y) * xp.exp(-h * h) * xp.exp((h - y) * (h + y)), special.erfc(x))


def _sinc(x: Any) -> Any:
    xp = array_namespace(x)
    return xp.where(x == 0, 1.0, xp.sin(x) / xp.where(x == 0, 1.0, x))


def _in_float64(f: Callable[..., Any]) -> Callable[..., Any]:
    """f(x) or f(n, x) computed in float64, with the type of x."""

    def wide(*arguments: Any) -> Any:
        xp, x = array_namespace(*arguments), arguments[-1]
        value = f(*arguments[:-1], xp.asarray(x, dtype=xp.float64))
        return value.astype(x.dtype) if hasattr(x, "dtype") and x.dtype.kind == "f" else value

    return wide


def _spherical_jn(n: float, x: Any) -> Any:
    """Near 0 the first two terms of its series."""
    xp, small = array_namespace(x), abs(x) < 1e-4
    y = xp.where(small, x, 0.0)
    series = 1 - y * y / (4 * n + 6)
    for m in range(1, int(n) + 1):
        series = series * (y / (2 * m + 1))
    return xp.where(small, series, _library(x).spherical_jn(int(n), xp.where(small, 1.0, x)))


def _binomial(n: Any, k: Any) -> Any:
    """The product of (n - j)/(j + 1), whose first factors are whole numbers."""
    xp = array_namespace(n, k)
    least = xp.minimum(k, n - k)
    value = xp.where(least < 0, 0.0, 1.0)
    for j in range(int(xp.max(least, initial=0.0))):
        more = xp.where(value < 1e290, value * (n - j) / (j + 1), value / (j + 1) * (n - j))
        value = xp.where(j < least, more, value)
    return value


def _polynomial(t: Any, coefficients: tuple[float, ...]) -> Any:
    value = 0.0
    for c in reversed(coefficients):
        value = value * t + c
    return value


def _loggamma(x: Any) -> Any:
    """Its series near its zeros 1 and 2, and -log(x) near 0."""
    from odesim.runtime.special import GAMMA_1, GAMMA_2

    xp, tiny = array_namespace(x), x < 1e-300
    value = xp.where(tiny, -xp.log(xp.where(tiny, abs(x), 1.0)), _library(x).gammaln(x))
    for zero, series in ((1, GAMMA_1), (2, GAMMA_2)):
        near = abs(x - zero) < 0.4
        t = xp.where(near, x - zero, 0.0)
        value = xp.where(near, t * _polynomial(t, series), value)
    return xp.where(x >= 0, value, float("nan"))


def _digamma(x: Any) -> Any:
    return array_namespace(x).where(x >= 0, _library(x).digamma(x), float("nan"))


def _polygamma(n: float, x: Any) -> Any:
    return array_namespace(x).where(x >= 0, _library(x).polygamma(int(n), x), float("nan"))


def _lambertw(x: Any, branch: int = 0) -> Any:
    """Near the branch point -1/e its series, near 0 on the lower branch steps of Newton for w + log(-w) = log(-x)."""
    from odesim.runtime.special import BRANCH, E

    xp = array_namespace(x)
    w = _library(x).lambertw(x, branch)
    w = xp.where(w.imag == 0, w.real, float("nan"))
    near = x + ONE_OVER_E < 0.02
    distance = xp.where(near, (xp.where(near, x, 0.0) + ONE_OVER_E) + ONE_OVER_E_TAIL, 0.0)
    p = (2 * branch + 1) * xp.sqrt(2 * E * xp.where(distance >= 0, distance, float("nan")))
    series = p * _polynomial(p, BRANCH) - 1
    w = xp.where(near, series, w)
    if branch == 0:
        return w
    tiny = (x < 0) & (x > -1e-290)
    log = xp.log(xp.where(tiny, -x, 1e-300))
    low = log
    for _ in range(5):
        low = low - (low + xp.log(-low) - log) / (1 + 1 / low)
    return xp.where(tiny, low, w)


def _besseli(n: Any, x: Any) -> Any:
    """The scaled function times e^x in two parts, near 0 its series; I_(-n) is I_n, which the slope of I_0 reads."""
    xp, special, n = array_namespace(n, x), _library(n, x), abs(n)
    small = abs(x) < 0.1
    half = xp.exp(xp.minimum(abs(x), 1500.0) / 2)
    y = xp.where(small, x / 2, 0.0)
    series = 1.0
    for m in range(6, 0, -1):
        series = 1 + y * y / (m * (n + m)) * series
    return xp.where(small, y**n / special.gamma(n + 1.0) * series, special.ive(n, xp.where(small, 1.0, x)) * half * half)


def _besseli_ratio(n: Any, x: Any) -> Any:
    """The quotient of scaled functions; below 1, where both may be too small, its continued fraction."""
    xp, special = array_namespace(n, x), _library(n, x)
    small = abs(x) < 1
    y = xp.where(small, 1.0, x)
    ratio = special.ive(n + 1, abs(y)) / special.ive(n, abs(y))
    z, fraction = xp.where(small, x * x / 4, 0.0), 1.0
    for m in range(10, 0, -1):
        fraction = 1 + z / ((n + m) * (n + m + 1.0)) / fraction
    return xp.where(small, x / (2 * (n + 1)) / fraction, xp.where(y < 0, -ratio, ratio))


def _inverse(a: Any) -> Any:
    """The inverses of matrices (..., K, K); of one that is singular to rounding all entries are nan (runtime.inverse)."""
    xp = array_namespace(a)
    try:
        x = xp.linalg.inv(a)
        if a.shape[-1] == 1:
            return x
        size, largest = xp.abs(x), xp.max(xp.abs(x), axis=-1)
        worst = xp.max((size @ (xp.abs(a) @ largest[..., None]))[..., 0] / largest, axis=-1)[..., None, None]
        kept = 1 + 1 / (LOST * worst) > 1
        return xp.where(kept & ~_has_grown(xp, a, x) if a.shape[-1] > SMALL else kept, x, xp.nan)
    except xp.linalg.LinAlgError:
        if a.ndim == 2:
            return xp.full(a.shape, xp.nan)
        return xp.stack([_inverse(one) for one in a])


def _has_grown(xp: Any, a: Any, x: Any) -> Any:
    """runtime.inverse.has_grown for matrices (..., K, K): (..., 1, 1)."""
    k = xp.arange(a.shape[-1])
    v = (xp.max(xp.abs(a), axis=-1) * (1.0 + 0.0625 * (k * k % 11)).astype(a.dtype))[..., None]
    size = xp.abs(a) @ (xp.abs(x) @ v)
    error = xp.abs(a @ (x @ v) - v)
    return xp.any(size + error / GROWN > size, axis=(-2, -1), keepdims=True)


SPECIAL: dict[str, Callable[..., Any]] = {
    "erf": _named("erf"),
    "erfc": _in_float64(_erfc),
    "erfinv": _named("erfinv"),
    "loggamma": _loggamma,
    "digamma": _digamma,
    "polygamma": _polygamma,
    "lambertw": _in_float64(_lambertw),
    "lambertw_lower": _in_float64(lambda x: _lambertw(x, -1)),
    "besseli": _in_float64(_besseli),
    "besseli_ratio": _in_float64(_besseli_ratio),
    "sinc": _sinc,
    "spherical_jn": _spherical_jn,
    "binomial": _binomial,
    "inverse": _inverse,
}
"""{name in generated code: function}."""
