"""The model files of a checkout that is not installed: `models/`. An installed odesim has a package of this name instead."""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[1] / "models")]
