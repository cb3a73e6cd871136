"""Options that choose the content of a picture, as a Choice."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odesim.plot.choice import Choice
    from odesim.symbolic.system import System


def read_choice(*, var: str | None, x: str | None, y: str | None, at: float | None, index: str | None, log: str | None) -> "Choice":
    """The Choice of these words. Raises ParamError."""
    from odesim.base.errors import ParamError
    from odesim.inputs.grammar import show_text
    from odesim.plot.choice import Choice

    names = tuple(name.strip() for name in var.split(",")) if var is not None else ()
    if index is not None and not re.fullmatch(r"\s*\d{1,9}\s*(,\s*\d{1,9}\s*)*", index, re.ASCII):
        raise ParamError(f"--index takes whole numbers from 0, as in 3 or 1,0, not {show_text(index)}")
    component = tuple(int(i) for i in index.split(",")) if index is not None else None
    choice = Choice(names, x and x.strip(), y and y.strip(), at, component, log)
    choice.check()
    return choice


@dataclass(frozen=True)
class Stored:
    """Quantities that an ensemble stores beside its states: observables, as --observe names them, and derivatives."""

    observe: str | None
    sensitivities: tuple[str, ...]

    def names(self, system: "System") -> list[str]:
        """The names of states, observables and derivatives. Raises ParamError for an observable that the System does not have."""
        from odesim.ensembles.request import check_observe

        plain = [*system.states, *check_observe(system, self.observe)]
        return [*plain, *(f"d{v}_d{p}" for v in plain for p in self.sensitivities)]


def choice_for(model: str, stored: Stored, varied: Iterable[str], words: Mapping[str, str | None]) -> "Choice":
    """The Choice of --var, --x and --y of an ensemble that is still to be computed. Raises ParamError.

    varied: names of what differs between members.
    """
    from odesim.base.errors import ParamError, no_such
    from odesim.inputs.registry import load_model
    from odesim.plot.choice import TIME, split_index

    system = load_model(model)
    choice = read_choice(var=words["var"], x=words["x"], y=words["y"], at=None, index=None, log=None)
    choice.names(dict.fromkeys(stored.names(system), ()), f"what this run stores of {system.name}")
    for option, text in (("--x", choice.x), ("--y", choice.y)):
        if text is not None and text != TIME and split_index(text)[0].removesuffix("_start") not in varied:
            raise ParamError(no_such(f"varied number ({option})", text, [*varied, TIME], system.name))
    return choice
