"""What a training is made of: a model, a stream of batches, an optimizer's settings, and what is watched.

Arrays carry a leading axis of seeds (R, ...): R trainings run as one, and each has the bits it would have alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.random import Generator

from odesim.base.arrays import Array

Params = dict[str, Array]  # {name: (R, ...)}
Batch = Mapping[str, Array]  # {name: (R, ...)}; empty where the gradient is the population's
Stream = Callable[[int], Batch]  # the batch of an iteration: the same bits whatever was asked for before


@dataclass(frozen=True)
class Observable:
    """What is watched: function(params) -> (R, *shape), and the names of the axes after the seeds.

    costly: worth a gradient step or more; kept at the end only unless it is asked for.
    """

    name: str
    function: Callable[[Params], Array]
    dims: tuple[str, ...] = ()
    doc: str = ""
    costly: bool = False


class Model(Protocol):
    """A network with its loss; forward and backward by hand, for numpy and cupy by the namespace of the parameters.

    Batches are in numpy wherever the parameters are: `odesim.base.arrays.beside` copies one to them.
    """

    @property
    def name(self) -> str:
        """The word of --model."""

    @property
    def groups(self) -> Mapping[str, str]:
        """{parameter: its group of one learning rate}."""

    @property
    def observables(self) -> tuple[Observable, ...]:
        """What can be watched, named as in the Systems."""

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """Parameters {name: (R, ...)} in numpy, seed r drawn from rngs[r] alone."""

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {name: (R, ...)}: descent goes along minus the gradient."""


@dataclass(frozen=True)
class Setting:
    """One parameter of a task, as `--set NAME=VALUE` gives it.

    default: its type is the setting's (bool, int, float, str); an array setting has None. choices: the words allowed.
    low, high: a number lies in [low, high]; open_low: it is above low. rank: the axes of an array; a table of one row or column
    is a vector where it is 1.
    """

    name: str
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    rank: int = 2


@dataclass(frozen=True)
class Optimizer:
    """Settings of an optimizer, torch's conventions. rates: {group of parameters: learning rate}."""

    name: str
    rates: Mapping[str, float]
    momentum: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0


@dataclass(frozen=True)
class Experiment:
    """What a task makes of its settings and of the seeds (R,): everything that a training needs but a number of steps.

    config: every setting as plain data. steps: as many as the source takes. exact: the task's exact population quantities.
    theory: {name of a System: the parameters under which it describes this training}.
    """

    task: str
    config: Mapping[str, Any]
    seeds: tuple[int, ...]
    model: Model
    stream: Stream
    optimizer: Optimizer
    steps: int
    vocabulary: int
    exact: Mapping[str, Array] = field(default_factory=dict)
    theory: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Task(Protocol):
    """A kind of data: its settings and what it makes of them. Each file in `tasks` has one, the constant TASK."""

    @property
    def name(self) -> str: ...

    @property
    def doc(self) -> str:
        """One line, and the source."""

    @property
    def settings(self) -> tuple[Setting, ...]: ...

    @property
    def models(self) -> tuple[str, ...]:
        """Words of --model; the first is the default."""

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: how many numbers, about} of a training of so many seeds: asked before make(), so no array is made here."""

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment; values hold every setting, each checked. Raises ParamError for what no single setting shows."""
