"""Special functions of whole numpy or cupy arrays."""

from collections.abc import Callable
from typing import Any

from odesim.base.arrays import array_namespace


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


def _sinc(x: Any) -> Any:
    xp = array_namespace(x)
    return xp.where(x == 0, 1.0, xp.sin(x) / xp.where(x == 0, 1.0, x))


def _spherical_jn(n: float, x: Any) -> Any:
    return _library(x).spherical_jn(int(n), x)


def _binomial(n: Any, k: Any) -> Any:
    """The product of (n - j)/(j + 1), whose first factors are whole numbers."""
    xp = array_namespace(n, k)
    least = xp.minimum(k, n - k)
    value = xp.where(least < 0, 0.0, 1.0)
    for j in range(int(xp.max(least, initial=0.0))):
        more = xp.where(value < 1e290, value * (n - j) / (j + 1), value / (j + 1) * (n - j))
        value = xp.where(j < least, more, value)
    return value


def _loggamma(x: Any) -> Any:
    return array_namespace(x).where(x >= 0, _library(x).gammaln(x), float("nan"))


def _digamma(x: Any) -> Any:
    return array_namespace(x).where(x >= 0, _library(x).digamma(x), float("nan"))


def _polygamma(n: float, x: Any) -> Any:
    return array_namespace(x).where(x >= 0, _library(x).polygamma(int(n), x), float("nan"))


def _lambertw(x: Any, branch: int = 0) -> Any:
    w = _library(x).lambertw(x, branch)
    return array_namespace(x).where(w.imag == 0, w.real, float("nan"))


def _besseli_ratio(n: Any, x: Any) -> Any:
    """The quotient of scaled functions, near 0 its slope."""
    xp, special = array_namespace(n, x), _library(n, x)
    small = abs(x) < 1e-9
    y = xp.where(small, 1.0, x)
    ratio = special.ive(n + 1, abs(y)) / special.ive(n, abs(y))
    return xp.where(small, x / (2 * (n + 1)), xp.where(y < 0, -ratio, ratio))


def _inverse(a: Any) -> Any:
    """The inverses of matrices (..., K, K); of a singular one all entries are nan."""
    xp = array_namespace(a)
    try:
        return xp.linalg.inv(a)
    except xp.linalg.LinAlgError:
        if a.ndim == 2:
            return xp.full(a.shape, xp.nan)
        return xp.stack([_inverse(one) for one in a])


SPECIAL: dict[str, Callable[..., Any]] = {
    "erf": _named("erf"),
    "erfc": _named("erfc"),
    "erfinv": _named("erfinv"),
    "loggamma": _loggamma,
    "digamma": _digamma,
    "polygamma": _polygamma,
    "lambertw": _lambertw,
    "lambertw_lower": lambda x: _lambertw(x, -1),
    "besseli": _named("iv"),
    "besseli_ratio": _besseli_ratio,
    "sinc": _sinc,
    "spherical_jn": _spherical_jn,
    "binomial": _binomial,
    "inverse": _inverse,
}
"""{name in generated code: function}."""
