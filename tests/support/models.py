"""The shipped models by kind: differential equations, those with noise, and Maps."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from odesim.inputs.registry import list_models, load_model
from odesim.symbolic import System


def _text(name: str) -> str:
    """The file of a shipped model, which is not run."""
    return (Path(__file__).parents[2] / "models" / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")


MAPS = tuple(name for name in list_models() if re.search(r"(=|return) (Map|decoder)\(", _text(name)))
NOISY = tuple(name for name in list_models() if "noise=" in _text(name))
FLOWS = [name for name in list_models() if name not in (*MAPS, *NOISY)]
GROWING = tuple(name for name in list_models() if "growth=" in _text(name))
"""Those with a rate of growth, for the rescaled clock."""
COMPILED = (
    "hopfield.update",
    "joma.linear",
    "joma.linear_softmax",
    "joma.nonlinear",
    "reversal.row",
    "scan_snap.symmetric",
    "scan_snap.theorem4",
)
"""Those that are compiled by default: other tests take their kernels too. The others are compiled in the slow tests."""
CHEAPEST_FIRST = [
    *COMPILED,
    *sorted(set(list_models()) - set(COMPILED), key=lambda name: ("odesim.models." in _text(name), len(_text(name)), name)),
]
"""All models, for laws of which the first few run by default: those that are compiled, and then short files."""


class Shipped(Mapping[str, System]):
    """The shipped models by name, each loaded where it is asked for."""

    def __getitem__(self, name: str) -> System:
        return load_model(name)

    def __iter__(self) -> Iterator[str]:
        return iter(list_models())

    def __len__(self) -> int:
        return len(list_models())
