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


SPECIAL: dict[str, Callable[..., Any]] = {
    "erf": _named("erf"),
    "erfc": _named("erfc"),
    "sinc": _sinc,
    "spherical_jn": _spherical_jn,
    "binomial": _binomial,
}
"""{name in generated code: function}."""
