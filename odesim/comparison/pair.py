"""A Pair: how a System describes a task, with the conversion of recorded observables to quantities of the System."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from odesim.base.arrays import Array


@dataclass(frozen=True)
class TrainingFacts:
    """The facts of a training that decide which theory describes it: task, settings, exact arrays, optimizer with learning rates.

    model: the name of --model, empty for the task's default.
    """

    task: str
    config: Mapping[str, Any]
    exact: Mapping[str, Array]
    optimizer: Mapping[str, Any]
    model: str = ""

    @property
    def momentum(self) -> float:
        """The momentum beta of the optimizer, 0 without one."""
        return float(self.optimizer.get("momentum", 0.0))


Make = Callable[[Mapping[str, Array], TrainingFacts], Array]


@dataclass(frozen=True)
class Link:
    """A row of a comparison: a quantity of a System, computed from observables of the training.

    sources: the observables. make({source: (R, T, *shape)}, facts): the quantity (R, T, *shape). theory(values, facts): a reduction of
    the System's quantity (R, T, *shape); dims: the axes that remain, None for all. system_name: the quantity in the System, if it is
    not the row's name. doc: which quantities are compared, if the name is not enough.
    """

    name: str
    sources: tuple[str, ...]
    make: Make
    theory: Callable[[Array, TrainingFacts], Array] = lambda values, facts: values
    dims: tuple[str, ...] | None = None
    system_name: str = ""
    doc: str = ""

    @property
    def quantity(self) -> str:
        """The name of the quantity in the System."""
        return self.system_name or self.name


@dataclass(frozen=True)
class Pair:
    """How a System describes a task. step(facts): the System's time of one iteration of plain descent.

    linear: whether states are linear in the trained parameters, so that descent on one is descent on the other.
    start {state: Link}: initial values (R, *shape) from iteration 0, where own_start(facts); without it those of the System.
    per_seed: whether every seed has its own parameters of the System. requirements {setting: values that the System describes}.
    other_misfits(facts): phrases on what else does not fit. example {setting: value}: settings, beside defaults, that it describes.
    """

    links: tuple[Link, ...]
    step: Callable[[TrainingFacts], float] = lambda facts: 1.0
    linear: bool = True
    start: Mapping[str, Link] = field(default_factory=dict)
    own_start: Callable[[TrainingFacts], bool] = lambda facts: True
    per_seed: bool = False
    requirements: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    other_misfits: Callable[[TrainingFacts], Sequence[str]] = lambda facts: ()
    example: Mapping[str, Any] = field(default_factory=dict)

    def starts(self, facts: TrainingFacts) -> Mapping[str, Link]:
        """{state: Link} of the initial values that are those of the training."""
        return self.start if self.own_start(facts) else {}


def same_quantity(name: str, source: str = "") -> Link:
    """A Link to an observable of the training without conversion. source: its name, if it is another one."""
    source = source or name
    return Link(name, (source,), lambda seen, facts: seen[source])
