"""odesim: analytic training dynamics as array ODEs, compiled, integrated at scale, and compared with real training."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from odesim.base.options import __version__

if TYPE_CHECKING:
    from odesim.api.convergence import convergence
    from odesim.api.ensemble import ensemble
    from odesim.api.export import from_json, to_code, to_json
    from odesim.api.integrate import integrate
    from odesim.dynamics.branch import branch
    from odesim.dynamics.exponents import lyapunov
    from odesim.dynamics.fit import fit
    from odesim.dynamics.global_sensitivity import screening, sensitivity
    from odesim.dynamics.rest import rest
    from odesim.dynamics.spectrum import spectrum
    from odesim.explorer.notebook import explore
    from odesim.inputs.registry import list_models, load_model
    from odesim.lab.claims import verify
    from odesim.lab.compare.comparison import Comparison
    from odesim.lab.compare.runs import compare
    from odesim.lab.train import train
    from odesim.lab.training.loop import Trajectory
    from odesim.run.solution import Solution
    from odesim.store.read import open_run
    from odesim.symbolic import System

_HOMES = {
    "branch": "odesim.dynamics.branch",
    "compare": "odesim.lab.compare.runs",
    "convergence": "odesim.api.convergence",
    "ensemble": "odesim.api.ensemble",
    "explore": "odesim.explorer.notebook",
    "fit": "odesim.dynamics.fit",
    "from_json": "odesim.api.export",
    "integrate": "odesim.api.integrate",
    "lyapunov": "odesim.dynamics.exponents",
    "rest": "odesim.dynamics.rest",
    "screening": "odesim.dynamics.global_sensitivity",
    "sensitivity": "odesim.dynamics.global_sensitivity",
    "spectrum": "odesim.dynamics.spectrum",
    "to_code": "odesim.api.export",
    "to_json": "odesim.api.export",
    "train": "odesim.lab.train",
    "verify": "odesim.lab.claims",
    "list_models": "odesim.inputs.registry",
    "load_model": "odesim.inputs.registry",
    "open_run": "odesim.store.read",
    "Comparison": "odesim.lab.compare.comparison",
    "Solution": "odesim.run.solution",
    "System": "odesim.symbolic",
    "Trajectory": "odesim.lab.training.loop",
}

__all__ = [
    "Comparison",
    "Solution",
    "System",
    "Trajectory",
    "__version__",
    "branch",
    "compare",
    "convergence",
    "ensemble",
    "explore",
    "fit",
    "from_json",
    "integrate",
    "list_models",
    "load_model",
    "lyapunov",
    "open_run",
    "rest",
    "screening",
    "sensitivity",
    "spectrum",
    "to_code",
    "to_json",
    "train",
    "verify",
]


_ROOMS = ("plot", "symbolic")  # packages that are public too


def __getattr__(name: str) -> Any:
    """A name of the facade, or a public package, imported when first used."""
    if name in _ROOMS:
        return import_module(f"odesim.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'odesim' has no attribute {name!r}")
    thing = globals()[name] = getattr(import_module(_HOMES[name]), name)  # here from now on: a warm call asks no more
    return thing


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
