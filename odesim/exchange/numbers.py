"""The numbers that a file of code or a document begins with."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from odesim.base.errors import CodegenError, counted

MOST = 100_000
"""Numbers in one file."""


class Defaults(Protocol):
    """Sizes, parameters, initial values and span, as odesim.inputs.bind gives them."""

    @property
    def sizes(self) -> Mapping[str, int]: ...
    @property
    def params(self) -> Mapping[str, Any]: ...
    @property
    def initial(self) -> Mapping[str, Any]: ...
    @property
    def t0(self) -> float: ...
    @property
    def t1(self) -> float: ...


def check_few(defaults: Defaults) -> None:
    """Raises CodegenError where an array has too many numbers for a file that is read as text."""
    for name, values in (*defaults.params.items(), *defaults.initial.items()):
        if np.size(values) > MOST:
            raise CodegenError(f"{name} has {counted(np.size(values), 'number')}, and a file holds at most {MOST}: choose smaller sizes")
