"""Draws the two drawings of architecture.md: `python docs/drawings.py` writes them beside it."""

from pathlib import Path
from runpy import run_path

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from odesim.plot.files import save
from odesim.plot.style import CATEGORIES, FAINT, INK, NORMAL, SMALL, new_figure, project_style

FLOORS = run_path(str(Path(__file__).parents[1] / "tests" / "project" / "test_floors.py"))["FLOORS"]
"""The rooms of each floor, lowest first, each row from left to right: the table by which the tests check imports."""
TEXTS = {
    "__main__": "python -m odesim",
    "lab": "networks trained, held against theory and claims",
    "explorer": "sliders in a browser or notebook",
    "cli": "the command line",
    "api": "integrate, ensemble, resume, rerun",
    "dynamics": "rest states, branches, exponents, fits",
    "run": "one run, members\nin chunks",
    "store": "runs on disk",
    "plot": "pictures",
    "ensembles": "members as data",
    "stepper": "a step, written once",
    "inputs": "what people give, checked",
    "exchange": "Systems as\nJSON, C, JAX",
    "ir": "Programs,\nderivatives",
    "display": "text, LaTeX",
    "transforms": "Systems made\nof Systems",
    "targets": "Programs printed\nand compiled",
    "base": "errors, arrays, options, machine",
    "runtime": "what generated code calls",
    "symbolic": "a System and its parts",
    "models": "stand-in for models/",
    "figures": "stand-in for figures/",
    "notebooks": "stand-in for notebooks/",
}
ROOMS = ("api", "inputs", "symbolic", "run", "targets", "stepper", "store")
MESSAGES = (  # from, to, what, whether it answers
    ("api", "inputs", "model name, or file", False),
    ("inputs", "symbolic", "System, checked when it is built", False),
    ("api", "inputs", "sizes, parameters, initial values, times", False),
    ("inputs", "api", "Numbers, each in its domain", True),
    ("api", "run", "System and Numbers", False),
    ("run", "targets", "a Program, jumping conditions held", False),
    ("targets", "run", "functions, cached by content", True),
    ("run", "stepper", "Problem: numbers and addresses only", False),
    ("stepper", "run", "values, events, status", True),
    ("run", "api", "Solution, with a message", True),
    ("api", "store", "arrays and a manifest, if asked", False),
)


def box(axes: Axes, x: float, y: float, width: float, height: float, title: str, text: str, color: str) -> None:
    """Draws a rounded box with a title and a text below it."""
    shape = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.08", fc=f"{color}18", ec=color, lw=0.8)
    axes.add_patch(shape)
    middle = x + width / 2
    if text:
        axes.text(middle, y + 0.72 * height, title, ha="center", va="center", weight="bold", size=NORMAL)
        axes.text(middle, y + 0.33 * height, text, ha="center", va="center", size=SMALL, color=INK, linespacing=1.1)
    else:
        axes.text(middle, y + height / 2, title, ha="center", va="center", weight="bold", size=NORMAL)


def draw_floors(path: Path) -> None:
    """The floors: a row of boxes for each, the lowest at the bottom."""
    with project_style():
        figure = new_figure(124.0, width=130.0)
        axes = figure.subplots()
        for y, rooms in enumerate(FLOORS):
            width, color = 12 / len(rooms), CATEGORIES[(len(FLOORS) - 1 - y) % 6]
            for j, name in enumerate(rooms):
                box(axes, j * width + 0.1, y + 0.08, width - 0.2, 0.84, name, TEXTS[name], color)
            axes.text(-0.15, y + 0.5, str(y + 1), ha="right", va="center", size=SMALL, color=FAINT)
        axes.set(xlim=(-0.6, 12), ylim=(0, len(FLOORS)))
        axes.axis("off")
    save(figure, path)


def draw_request(path: Path) -> None:
    """The life of a request: a line for each room, an arrow for each message, time downwards."""
    with project_style():
        figure = new_figure(110.0, width=150.0)
        axes = figure.subplots()
        place = {room: 2.0 * k for k, room in enumerate(ROOMS)}
        for room, x in place.items():
            axes.plot([x, x], [0.4, -len(MESSAGES) - 0.3], color=FAINT, lw=0.6)
            box(axes, x - 0.8, 0.4, 1.6, 0.7, room, "", CATEGORIES[0])
        for k, (start, end, text, back) in enumerate(MESSAGES):
            x0, x1, y = place[start], place[end], -k - 0.55
            style = {"arrowstyle": "-|>", "color": CATEGORIES[1 if back else 0], "lw": 0.8, "ls": "--" if back else "-"}
            axes.annotate("", (x1, y), (x0, y), arrowprops=style)
            axes.text(
                (x0 + x1) / 2,
                y + 0.1,
                text,
                ha="center",
                va="bottom",
                size=SMALL,
                bbox={"fc": "white", "ec": "none", "pad": 0.5, "alpha": 0.85},
            )
        axes.set(xlim=(-1, 2.0 * len(ROOMS) - 1), ylim=(-len(MESSAGES) - 0.4, 1.2))
        axes.axis("off")
    save(figure, path)


if __name__ == "__main__":
    here = Path(__file__).parent
    draw_floors(here / "floors.svg")
    draw_request(here / "request.svg")
