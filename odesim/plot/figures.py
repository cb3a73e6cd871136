"""Runs figure scripts by name: writes pictures, data and a manifest, and compares measured features with targets."""

import hashlib
import json
import math
import pkgutil
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

from odesim.base.errors import StoreError, no_such
from odesim.base.options import version_of
from odesim.base.signals import all_or_nothing
from odesim.plot.files import PICTURES, check_picture, check_writable, save, write_atomically

PREFIX = "fig_"
RECORDED_PACKAGES = ("odesim", "numpy", "scipy", "sympy", "numba", "matplotlib", "xarray")


QUESTIONS = (
    "what is learned first?",
    "why plateaus?",
    "why sparse attention?",
    "why low rank?",
    "how does it scale?",
    "when does it fail?",
)
"""What figures answer; each script names one of them as its QUESTION."""

PUBLISHED, THEORY, SCRIPT = "published", "theory", "own script"  # origins of a target; SCRIPT: a program of ours outside odesim


@dataclass(frozen=True)
class Feature:
    """A number that a figure must show: the measured value, its target with origin, and the tolerance."""

    name: str
    measured: float
    target: float
    tolerance: float
    origin: str = THEORY

    @property
    def passed(self) -> bool:
        """Whether the measured value is within tolerance of the target; false for nan."""
        return bool(abs(self.measured - self.target) <= self.tolerance)


@dataclass(frozen=True)
class FigureRun:
    """The result of run_figure(): features, and the files written (pictures, data, manifest)."""

    name: str
    features: tuple[Feature, ...]
    files: tuple[Path, ...]

    @property
    def passed(self) -> bool:
        """Whether all features passed."""
        return all(feature.passed for feature in self.features)


def list_figures() -> list[str]:
    """Names of the figure scripts, sorted: `joma_fig4` for fig_joma_fig4.py."""
    package = import_module("odesim.figures")
    return sorted(module.name.removeprefix(PREFIX) for module in pkgutil.iter_modules(package.__path__) if module.name.startswith(PREFIX))


def load_figure(name: str) -> Any:
    """The module of a figure, with data(fast), draw(dataset) and expected(dataset). Raises StoreError for an unknown name."""
    names = list_figures()
    if name not in names:
        raise StoreError(no_such("figure", name, names, lister="odesim figure"))
    return import_module(f"odesim.figures.{PREFIX}{name}")


def left_out(module: Any) -> str:
    """What data(fast) of a figure has less of, by its docstring (`fast: one seed, not two.`), or nothing."""
    words = re.search(r"\bfast: (.+?)\.?(?:\n\n|$)", cleandoc(module.data.__doc__), re.DOTALL)
    if words is None:
        raise StoreError(f"data() of {module.__name__} does not say `fast: ...`")
    return "" if words[1] == "the same" else words[1]


def figures_by_question() -> dict[str, list[str]]:
    """{question: names of the figures that answer it, sorted}, in the order of QUESTIONS."""
    questions = {name: load_figure(name).QUESTION for name in list_figures()}
    return {question: [name for name, its in questions.items() if its == question] for question in QUESTIONS}


def run_figure(name: str, *, fast: bool = False, out: str | Path = ".", formats: Sequence[str] = ("png",)) -> FigureRun:
    """Computes a figure and writes NAME.<format>, NAME.nc (netCDF 3) and NAME.json into the folder out, which is created.

    Raises StoreError before anything is computed: unknown name or format, a new folder named as a picture, one that is not writable.
    """
    module = load_figure(name)
    for extension in formats:
        if extension not in PICTURES:
            raise StoreError(no_such("picture format", extension, PICTURES))
    folder = Path(out)
    if folder.suffix[1:].lower() in PICTURES and not folder.is_dir():
        raise StoreError(f"out is a folder for several files, not the name of a picture: {str(folder)!r}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the folder {str(folder)!r}: {error.strerror or error}") from error
    pictures = [check_picture(folder / f"{name}.{extension}") for extension in dict.fromkeys(formats)]
    table, manifest = check_writable(folder / f"{name}.nc"), check_writable(folder / f"{name}.json")

    with all_or_nothing():  # of a run that was interrupted there is no figure
        dataset = module.data(fast)
        features = tuple(module.expected(dataset))
        figure = module.draw(dataset)
    write_atomically(table, lambda path: dataset.to_netcdf(path, engine="scipy"))
    for picture in pictures:
        save(figure, picture)
    text = json.dumps(figure_manifest(name, module, fast, dataset, features, [*pictures, table]), indent=2, allow_nan=False)
    write_atomically(manifest, lambda path: path.write_text(text + "\n", encoding="utf-8"))
    return FigureRun(name, features, (*pictures, table, manifest))


def figure_manifest(name: str, module: Any, fast: bool, dataset: Any, features: Sequence[Feature], files: Sequence[Path]) -> dict[str, Any]:
    """The manifest as a dict for JSON: figure, parameters, versions, features, the sha256 of each file."""
    return {
        "figure": name,
        "beside": (module.__doc__ or "").strip(),
        "question": module.QUESTION,
        "fast": fast,
        "parameters": {key: as_json(value) for key, value in dataset.attrs.items()},
        "sizes": {str(key): int(value) for key, value in dataset.sizes.items()},
        "features": [{key: as_json(value) for key, value in asdict(feature).items()} | {"passed": feature.passed} for feature in features],
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        "versions": {"python": platform.python_version(), **{package: version_of(package) for package in RECORDED_PACKAGES}},
    }


def as_json(value: Any) -> Any:
    """value for JSON: numpy numbers and arrays as Python ones, numbers that are not finite as None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
