"""The version of odesim, and of the packages that results depend on."""

from collections.abc import Mapping
from functools import cache
from typing import Any

__version__ = "0.1.0"


@cache
def versions() -> dict[str, str]:
    """{package: version} of the packages that compute, without importing them: a warm start needs no numba."""
    import platform
    from importlib.metadata import version

    return {"odesim": __version__, "python": platform.python_version()} | {name: version(name) for name in ("numpy", "numba", "sympy")}


def version_of(package: str) -> str | None:
    """The installed version of a package, without importing it; None where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def other_versions(then: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    """{package: (version then, version now)} of those whose versions differ, None where there was none."""
    return {name: (then.get(name), here) for name, here in now.items() if then.get(name) != here}
