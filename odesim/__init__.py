"""odesim: analytic training dynamics as array ODEs, compiled, integrated at scale, and held against real training."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from odesim.comparison import Comparison
    from odesim.facade import integrate
    from odesim.facade_compare import compare
    from odesim.facade_ensemble import ensemble
    from odesim.facade_train import train
    from odesim.reference.trajectory import Trajectory
    from odesim.registry import list_models, load_model
    from odesim.solve.solution import Solution
    from odesim.store import open_run
    from odesim.symbolic import System

_HOMES = {
    "compare": "odesim.facade_compare",
    "ensemble": "odesim.facade_ensemble",
    "integrate": "odesim.facade",
    "train": "odesim.facade_train",
    "list_models": "odesim.registry",
    "load_model": "odesim.registry",
    "open_run": "odesim.store",
    "Comparison": "odesim.comparison",
    "Solution": "odesim.solve.solution",
    "System": "odesim.symbolic",
    "Trajectory": "odesim.reference.trajectory",
}

__all__ = [
    "Comparison",
    "Solution",
    "System",
    "Trajectory",
    "__version__",
    "compare",
    "ensemble",
    "integrate",
    "list_models",
    "load_model",
    "open_run",
    "train",
]


def __getattr__(name: str) -> Any:
    """A name of the facade, imported when first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'odesim' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
