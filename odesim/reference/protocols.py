"""Protocols of reference training: Model, Stream of batches, Optimizer, Observable, and the Task that makes them.

Arrays have a leading axis of seeds (R, ...). R trainings run together, and each gets the bits that it gets alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.random import Generator

from odesim.base.arrays import Array

Params = dict[str, Array]  # {name: (R, ...)}
Batch = Mapping[str, Array]  # {name: (R, ...)}; empty for the gradient of the population
Stream = Callable[[int], Batch]  # iteration -> its batch, independent of earlier calls


@dataclass(frozen=True)
class Observable:
    """A quantity to record: function(params) -> (R, *shape). dims: names of the axes after seeds.

    costly: it takes as long as a gradient step or longer, and is recorded at the end only unless requested.
    """

    name: str
    function: Callable[[Params], Array]
    dims: tuple[str, ...] = ()
    doc: str = ""
    costly: bool = False


class Model(Protocol):
    """A network with its loss and hand-written gradients. It works with numpy or cupy, as its parameters do.

    Batches are in numpy wherever the parameters are: `odesim.base.arrays.on_same_device` copies one to them.
    """

    @property
    def name(self) -> str:
        """The name for --model."""

    @property
    def groups(self) -> Mapping[str, str]:
        """{parameter: group}; each group has its own learning rate."""

    @property
    def observables(self) -> tuple[Observable, ...]:
        """The observables that can be recorded, with the names that Systems use."""

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """Initial parameters {name: (R, ...)} in numpy; those of seed r are drawn from rngs[r] alone."""

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {name: (R, ...)}."""


@dataclass(frozen=True)
class Setting:
    """A setting of a task, for `--set NAME=VALUE`.

    default: its type is that of the setting (bool, int, float, str); None for an array. choices: the allowed words.
    low, high: bounds of a number; open_low: low itself is excluded. rank: number of axes of an array; with rank 1 a table of one row or
    column is a vector.
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
    """Settings of an optimizer, in torch's conventions. rates {group of parameters: learning rate}.

    cosine: updates over which all rates fall to 0, update t from 0 by (1 + cos(pi t / cosine)) / 2; 0: they are constant.
    """

    name: str
    rates: Mapping[str, float]
    momentum: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    cosine: int = 0


@dataclass(frozen=True)
class Experiment:
    """Everything that a training needs, made by a task from its settings and seeds (R,).

    config: all settings as plain data. steps: default number of updates. exact: exact population quantities of the task.
    theory {System: parameters with which it describes this training}. labels {axis: what its places are, such as the words of tokens}.
    start(dtype): the initial parameters {name: (R, ...)} in numpy; without it the model draws them.
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
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    start: Callable[[str], Params] | None = None


class Task(Protocol):
    """A task: its settings, and the experiments that it makes of them. Each file in `tasks` has one, the constant TASK."""

    @property
    def name(self) -> str: ...

    @property
    def doc(self) -> str:
        """A description in one line, with its source."""

    @property
    def settings(self) -> tuple[Setting, ...]: ...

    @property
    def models(self) -> tuple[str, ...]:
        """Names for --model; the first is the default."""

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: approximate number of numbers} of a training of `seeds` seeds. Called before make(); creates no arrays."""

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. values: all settings, each checked. Raises ParamError for settings that do not fit together."""
