"""The figure scripts by name: run one, write its pictures, data and manifest, and hold its features against their targets."""

import hashlib
import json
import math
import pkgutil
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from odesim.errors import StoreError, no_such
from odesim.plot.files import FORMATS, check_picture, check_writable, save, write_atomically

PREFIX = "fig_"
RECORDED_PACKAGES = ("odesim", "numpy", "scipy", "sympy", "numba", "matplotlib", "xarray")


PUBLISHED, THEORY, SCRIPT = "published", "theory", "own script"  # where a target is from: SCRIPT is a program of ours beside odesim


@dataclass(frozen=True)
class Feature:
    """A number that a figure must show: as measured, the target and where that is from, and how far apart the two may be."""

    name: str
    measured: float
    target: float
    tolerance: float
    origin: str = THEORY

    @property
    def passed(self) -> bool:
        """Whether measured is within tolerance of target; nan is not."""
        return abs(self.measured - self.target) <= self.tolerance


@dataclass(frozen=True)
class FigureRun:
    """What run_figure() left: features, and the files written (pictures, data, manifest)."""

    name: str
    features: tuple[Feature, ...]
    files: tuple[Path, ...]

    @property
    def passed(self) -> bool:
        return all(feature.passed for feature in self.features)


def list_figures() -> list[str]:
    """Names of the figure scripts, sorted: fig_joma_fig4.py is joma_fig4."""
    package = import_module("odesim.figures")
    return sorted(found.name.removeprefix(PREFIX) for found in pkgutil.iter_modules(package.__path__) if found.name.startswith(PREFIX))


def load_figure(name: str) -> Any:
    """The module of that figure, with data(fast), draw(dataset) and expected(dataset). Raises StoreError."""
    names = list_figures()
    if name not in names:
        raise StoreError(no_such("figure", name, names))
    return import_module(f"odesim.figures.{PREFIX}{name}")


def run_figure(name: str, *, fast: bool = False, out: str | Path = ".", formats: Sequence[str] = ("png",)) -> FigureRun:
    """Computes the figure and writes NAME.<format>, NAME.nc (netCDF 3) and NAME.json into the folder out, which is made.

    Raises StoreError before anything is computed: unknown name or format, a place that cannot be written to.
    """
    module = load_figure(name)
    for extension in formats:
        if extension not in FORMATS:
            raise StoreError(no_such("picture format", extension, FORMATS))
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the folder {str(folder)!r}: {error.strerror or error}") from error
    pictures = [check_picture(folder / f"{name}.{extension}") for extension in dict.fromkeys(formats)]
    table, manifest = check_writable(folder / f"{name}.nc"), check_writable(folder / f"{name}.json")

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
    """The manifest: what was drawn, from which parameters and versions, the features, the sha256 of each file."""
    return {
        "figure": name,
        "beside": (module.__doc__ or "").strip(),
        "fast": fast,
        "parameters": {key: as_json(value) for key, value in dataset.attrs.items()},
        "sizes": {str(key): int(value) for key, value in dataset.sizes.items()},
        "features": [
            {
                "name": feature.name,
                "measured": as_json(feature.measured),
                "target": as_json(feature.target),
                "tolerance": as_json(feature.tolerance),
                "origin": feature.origin,
                "passed": feature.passed,
            }
            for feature in features
        ],
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        "versions": {"python": platform.python_version(), **{package: version_of(package) for package in RECORDED_PACKAGES}},
    }


def as_json(value: Any) -> Any:
    """value with numpy's numbers and arrays as plain ones, non-finite ones as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def version_of(package: str) -> str | None:
    """The installed version; None where the package runs from a checkout."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
