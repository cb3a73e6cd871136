"""The notebooks of a checkout that is not installed: `notebooks/`. An installed odesim has a package of this name instead."""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[1] / "notebooks")]
