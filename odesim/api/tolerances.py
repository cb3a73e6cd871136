"""States of a run that its absolute tolerance does not see."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.errors import ToleranceWarning
from odesim.inputs.bind import Numbers


def warn_below_tolerance(
    names: Iterable[str], numbers: Numbers, atol: float, slopes: Callable[[float, Mapping[str, Any]], Mapping[str, Array]]
) -> list[str]:
    """Those of these states whose every number starts below atol and, by its slope there, stays below: a warning names them.

    What starts at 0 is no such state. slopes: (t, states) -> derivatives.
    """
    largest = {name: float(np.max(np.abs(numbers.initial[name]), initial=0.0)) for name in names}
    small = {name: size for name, size in largest.items() if 0 < size < atol}
    if not small:
        return []
    rates = slopes(numbers.t0, numbers.initial)
    moved = {name: size + float(np.max(np.abs(rates[name]))) * (numbers.t1 - numbers.t0) for name, size in small.items()}
    below = [name for name, size in moved.items() if size < atol]
    if below:
        said = f"{' and '.join(below)} {'starts' if len(below) == 1 else 'start'} below atol = {atol:g}, where errors are not seen"
        warnings.warn(f"{said}: what grows from there may be wrong; give an atol well below {small[below[0]]:.3g}", ToleranceWarning, 3)
    return below
