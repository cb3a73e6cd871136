"""Pictures of solutions, ensembles, trainings and comparisons, in one style; animations; the figures of the papers by name."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odesim.plot.animation import animate

__all__ = ["animate"]


def __getattr__(name: str) -> Any:
    """`animate`, imported when first used: it needs matplotlib."""
    if name != "animate":
        raise AttributeError(f"module 'odesim.plot' has no attribute {name!r}")
    from odesim.plot.animation import animate

    return animate
