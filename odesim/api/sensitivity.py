"""What `sensitivities` asks of a run: the System that has them, and what they start from."""

from collections.abc import Collection, Iterable

from odesim.base.memo import IdentityKey, Memo
from odesim.base.memory import check_fits
from odesim.errors import ParamError
from odesim.inputs.bind import Numbers
from odesim.symbolic.sensitivity import sensitivities
from odesim.symbolic.system import System

ROWS = 16  # vectors of the length of the state that an integrator holds, about: stages, the state, its scale
_MADE: Memo[System] = Memo(32)  # what is compiled is remembered by the System


def with_sensitivities(system: System, names: str | Iterable[str], given: Collection[str]) -> tuple[System, dict[str, float]]:
    """The System with sensitivities to parameters and initial values of these names, and initial values for it.

    given: states whose initial value somebody gave: it does not move with a parameter, whatever the model's own start would do.
    Raises SpecError and ParamError.
    """
    if isinstance(names, str):
        names = [names]
    asked = tuple(names)
    for name in asked:
        if not isinstance(name, str):
            raise ParamError(f"sensitivities takes names of parameters and states, not {name!r}")
    made = _MADE((IdentityKey(system), asked), lambda: sensitivities(system, *asked)) if asked else system
    still: dict[str, float] = {}
    for name, pairs in made.sensitivities.items():
        if name not in made.states:
            still |= {twin: 0.0 for of, twin in pairs.items() if of in made.states and (of in given or of in still)}
    return made, still


def check_sensitivities(system: System, numbers: Numbers) -> None:
    """Raises ParamError where integrating the sensitivities does not fit in memory."""
    for name, pairs in system.sensitivities.items():
        parts = {made: ROWS * numbers.initial[made].size for made in pairs.values() if made in numbers.initial}
        check_fits(f"{system.name}: integrating the sensitivities to {name}", parts, 8)
