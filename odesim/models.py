"""The model files: `models/` of a bare checkout; an installed odesim has a package of this name, which wins."""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[1] / "models")]
