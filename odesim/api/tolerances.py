"""States of a run that its absolute tolerance does not see."""

import warnings

import numpy as np

from odesim.base.errors import ToleranceWarning
from odesim.base.run_options import RunOptions
from odesim.engines.problem import compiled_parts
from odesim.inputs.bind import Numbers
from odesim.symbolic.system import System


def warn_below_tolerance(system: System, numbers: Numbers, options: RunOptions) -> list[str]:
    """Those states whose every number starts below atol and, by its slope there, stays below: a warning names them.

    What starts at 0 is no such state, and a fixed step has no tolerance.
    """
    if options.step is not None or system.discrete:
        return []
    twins = {twin for pairs in system.sensitivities.values() for twin in pairs.values()}
    largest = {name: float(np.max(np.abs(numbers.initial[name]), initial=0.0)) for name in map(str, system.states) if name not in twins}
    small = {name: size for name, size in largest.items() if 0 < size < options.atol}
    if not small:
        return []
    compiled = compiled_parts(system, "numpy", "float64", False)[0]
    with np.errstate(all="ignore"):
        rates = compiled.arrays(numbers.sizes, {**numbers.params, **numbers.initial, "t": numbers.t0})
    span = numbers.t1 - numbers.t0
    below = [name for name, size in small.items() if size + float(np.max(np.abs(rates[f"d_{name}"]))) * span < options.atol]
    if below:
        said = f"{' and '.join(below)} {'starts' if len(below) == 1 else 'start'} below atol = {options.atol:g}, where errors are not seen"
        warnings.warn(f"{said}: what grows from there may be wrong; give an atol well below {small[below[0]]:.3g}", ToleranceWarning, 4)
    return below
