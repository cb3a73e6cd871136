"""The `sensitivities` option of a run: the extended System, and its initial values."""

from collections.abc import Collection, Iterable

from odesim.base.memo import IdentityKey, Memo
from odesim.base.memory import check_fits
from odesim.errors import ParamError
from odesim.inputs.bind import Numbers
from odesim.symbolic.system import System
from odesim.transforms.sensitivity import sensitivities

ROWS = 16  # vectors of the length of the state that an integrator holds, about: stages, the state, its scale
_MADE: Memo[System] = Memo(32)  # what is compiled is remembered by the System


def with_sensitivities(system: System, names: str | Iterable[str], given: Collection[str]) -> tuple[System, dict[str, float]]:
    """The System extended by sensitivities to these parameters and initial values, and its initial values.

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
    """Raises ParamError if the sensitivities do not fit in memory."""
    for name, pairs in system.sensitivities.items():
        parts = {made: ROWS * numbers.initial[made].size for made in pairs.values() if made in numbers.initial}
        check_fits(f"{system.name}: integrating the sensitivities to {name}", parts, 8)
