"""Pictures of solutions, ensembles, trainings and comparisons, in one style; animations.

The methods `plot()` of Solution, Trajectory and Comparison and `run.odesim.plot()` of a Dataset draw the same. They return its Axes, or an
array of those of several panels. Every function imports matplotlib when it is first used.

figure_of_solution, figure_of_ensemble, figure_of_trajectory, figure_of_comparison: a Figure 80 or 160 mm wide, to work on further.
Choice: names, axes, a time, a component and scales to draw. save: writes a Figure, or that of Axes, as png, pdf, svg or html.
animate: an array over time as gif or mp4. STYLE: the style of the pictures, for plt.style.use; project_style: a context with it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odesim.plot.choice import Choice
    from odesim.plot.comparison import figure_of_comparison
    from odesim.plot.ensemble import figure_of_ensemble
    from odesim.plot.files import save
    from odesim.plot.film import animate
    from odesim.plot.solution import figure_of_solution
    from odesim.plot.style import STYLE, project_style
    from odesim.plot.trajectory import figure_of_trajectory

_HOMES = {
    "STYLE": "style",
    "Choice": "choice",
    "animate": "film",
    "figure_of_comparison": "comparison",
    "figure_of_ensemble": "ensemble",
    "figure_of_solution": "solution",
    "figure_of_trajectory": "trajectory",
    "project_style": "style",
    "save": "files",
}

__all__ = [
    "STYLE",
    "Choice",
    "animate",
    "figure_of_comparison",
    "figure_of_ensemble",
    "figure_of_solution",
    "figure_of_trajectory",
    "project_style",
    "save",
]


def __getattr__(name: str) -> Any:
    """A public name, imported when first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'odesim.plot' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f"odesim.plot.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
