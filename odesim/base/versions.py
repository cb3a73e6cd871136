"""The version of odesim, and of the packages that results depend on."""

from functools import cache

__version__ = "0.1.0"


@cache
def versions() -> dict[str, str]:
    """{package: version} of the packages that compute, without importing them: a warm start needs no numba."""
    import platform
    from importlib.metadata import version

    return {"odesim": __version__, "python": platform.python_version()} | {name: version(name) for name in ("numpy", "numba", "sympy")}
