"""The right-hand side that a stochastic scheme sees: the drift plus the noise at rates that a step holds, as parameters.

dx = f dt + sum_c g_c dB_c  ->  dx/dt = f + sum_c g_c B_c, with the array B of a channel's rates, dB/h of a step of h
"""

from dataclasses import replace

from sympy import Interval, Symbol, oo

from odesim.base.errors import SpecError
from odesim.ir.noise import along_noise, correction, noise_shapes, noise_velocity
from odesim.symbolic.indices import IndexedBase
from odesim.symbolic.parts import Param, all_names
from odesim.symbolic.system import System

STEP = "noise_step"
"""The parameter that holds the length of a step, for schemes whose right-hand side has it."""
MEMBER = "noise_member"
"""The number of a member, beside its parameters."""


def step_system(system: System, calculus: str, *, second: bool = False) -> System:
    """The System without noise that a scheme of this calculus steps through.

    Its parameters have the channels too, in the order of channels_of(). second: with the term of Milstein,
    (h/2) sum_ab (Dg_b) g_a B_a B_b - (1/2) sum_a (Dg_a) g_a, where h is the parameter STEP.
    Raises SpecError where a name is taken.
    """
    shapes, velocity = noise_shapes(system), noise_velocity(system)
    if taken := sorted({STEP, *(f"d_{name}" for name in shapes)} & all_names(system)):
        raise SpecError(f"{system.name}: {taken[0]!r} is needed for the noise; call it something else, such as {taken[0]}_1")
    whole = Interval(-oo, oo)
    rates = [Param(IndexedBase(name, shape=shape), 0.0, whole, "rate of the noise") for name, shape in shapes.items()]
    sign = {("ito", "stratonovich"): -1, ("stratonovich", "ito"): 1}.get((system.calculus, calculus), 0) - second
    equations = {key: f + velocity.get(key, 0) for key, f in system.equations.items()}
    for key, e in correction(system).items() if sign else ():
        equations[key] += sign * e
    if second:
        h = Symbol(STEP, real=True)
        rates.append(Param(h, 0.0, whole, "length of a step"))
        for key, e in along_noise(system, velocity, velocity).items():
            equations[key] += h * e / 2
    return replace(
        system, equations=equations, params=(*system.params, *rates), noise={}, calculus="ito", step=None, display={}, closed_forms=()
    )
