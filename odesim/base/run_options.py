"""Options of a run, shared by commands, results and stored runs.

A field here is an option of `odesim integrate` and `odesim ensemble` and an argument of odesim.integrate and odesim.ensemble, under its
own name. What is stored of a run, what identifies it and how it is computed again follow from the fields alone.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any

from odesim.base.backends import Backend, find_backend

ORDINARY, RESCALED = "ordinary", "rescaled"
CLOCKS = (ORDINARY, RESCALED)


@dataclass(frozen=True)
class RunOptions:
    """Options of one run: method, steps, tolerances, backend, seed.

    method: a name, or "auto". step: a fixed step. rtol, atol: tolerances of adaptive steps. max_steps: the run ends after this many.
    max_step: the longest step. stop_at: times at which a step ends. backend: its name; dtype: of states; strict: the same bits on every
    machine. clock: one of CLOCKS. seed: of random numbers.
    """

    method: str = "auto"
    step: float | None = None
    rtol: float = 1e-6
    atol: float = 1e-9
    max_steps: int = 1_000_000
    max_step: float | None = None
    stop_at: tuple[float, ...] = ()
    backend: str = "numba"
    dtype: str = "float64"
    strict: bool = False
    clock: str = ORDINARY
    seed: int = 0

    @property
    def on(self) -> Backend:
        """The row of the backend table. Raises ParamError for an unknown backend."""
        return find_backend(self.backend)

    @property
    def rescaled(self) -> bool:
        """Whether the run uses the rescaled clock."""
        return self.clock == RESCALED

    def of_solver(self) -> dict[str, Any]:
        """{option: value} for odesim.solve, without the method."""
        return {name: getattr(self, name) for name in ("step", "rtol", "atol", "max_steps", "max_step", "strict")}

    def attributes(self) -> dict[str, Any]:
        """{option: value} as plain data, to store; options_of reads it."""
        return {**asdict(self), "stop_at": list(self.stop_at)}

    def numbers(self) -> dict[str, Any]:
        """The options as plain data, with 0 and 1 for False and True, for file formats that have no truth values."""
        return {name: int(value) if isinstance(value, bool) else value for name, value in self.attributes().items()}


NAMES = tuple(field.name for field in fields(RunOptions))
LATER = ("backend", "stop_at", "max_step", "clock")  # that the first versions did not store: they had the defaults


def options_of(attributes: Mapping[str, Any]) -> RunOptions:
    """The options in stored attributes. Raises KeyError where one is missing that every version stores."""
    values = {name: attributes[name] for name in NAMES if name in attributes or name not in LATER}
    return RunOptions(**{**values, "stop_at": tuple(values.get("stop_at", ())), "strict": bool(values["strict"])})


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
