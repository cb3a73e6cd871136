"""Protocols of reference training: Model, Stream of batches, Optimizer, Observable, Setting, and the Task that makes them.

Arrays have a leading axis of seeds (R, ...). R trainings run together, and each gets the bits that it gets alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, nearest, no_such

# Protocols of reference training: Model, Stream of batches, Optimizer, Observable, and the Task that makes them.
#
# Arrays have a leading axis of seeds (R, ...). R trainings run together, and each gets the bits that it gets alone.

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


# Checks the settings of a task: names, types and ranges.


def check_settings(task: str, settings: Sequence[Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """{name: value} of all settings: the given value, converted to the type of the default, or the default.

    Raises ParamError with the nearest spelling of a name or word, the expected type, or the range.
    """
    by_name = {setting.name: setting for setting in settings}
    for name in given:
        if name not in by_name:
            raise ParamError(no_such("setting", str(name), by_name, task))
    return {name: check_setting(task, s, given[name]) if name in given else s.default for name, s in by_name.items()}


def check_setting(task: str, setting: Setting, value: Any) -> Any:
    """value as a bool, int, float, word or array, by the type of the default. Raises ParamError."""
    where = f"{setting.name} of {task}"
    default = setting.default
    if isinstance(value, np.ndarray) and value.ndim == 0 and default is not None:
        value = value.item()
    if isinstance(default, bool):
        if not isinstance(value, bool | np.bool_):
            raise ParamError(f"{where} is true or false, not {_shown(value)}")
        return bool(value)
    if isinstance(default, str):
        return _word(task, setting, where, value)
    if isinstance(default, int | float):
        return _number(setting, where, value)
    return None if value is None else _array(setting, where, value)


def _word(task: str, setting: Setting, where: str, value: Any) -> str:
    if not isinstance(value, str):
        kind = f"one of {', '.join(setting.choices)}" if setting.choices else "text"
        raise ParamError(f"{where} is {kind}, not {_shown(value)}")
    if setting.choices and value not in setting.choices:
        listed = ", ".join(setting.choices)
        raise ParamError(f"no {setting.name} {_shown(value)} in {task}; choose from {listed}{nearest(value, setting.choices)}")
    return value


def _number(setting: Setting, where: str, value: Any) -> int | float:
    is_integer = isinstance(setting.default, int)
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ParamError(f"{where} is a {'whole number' if is_integer else 'number'}, not {_shown(value)}")
    if not isfinite(value):
        raise ParamError(f"{where} is a finite number, not {value}")
    if is_integer and not isinstance(value, Integral) and not float(value).is_integer():
        raise ParamError(f"{where} is a whole number, not {float(value):g}")
    number = int(value) if is_integer else float(value)  # type: ignore[call-overload]
    if is_integer and abs(number) >= 2**63:
        raise ParamError(f"{where}: {float(value):g} is too large")
    _check_range(setting, where, number, number)
    return number


def _array(setting: Setting, where: str, value: Any) -> Any:
    """value as an array, or a number if it is one. Raises ParamError for other types and entries out of range."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ParamError(f"{where} is an array whose rows have one length, not {_shown(value)}") from None
    if array.dtype.kind not in "iuf" or not array.size:
        raise ParamError(f"{where} is an array of numbers, not {_shown(value)}")
    if not np.all(np.isfinite(array)):
        raise ParamError(f"{where}: an entry is not finite")
    _check_range(setting, where, array.min(), array.max())
    return array if array.ndim else array.item()


def _check_range(setting: Setting, where: str, least: Any, most: Any) -> None:
    low, high = setting.low, setting.high
    if low is not None and (least < low or (setting.open_low and least == low)):
        raise ParamError(f"{where} must be {'above' if setting.open_low else 'at least'} {low:g}, not {least:g}")
    if high is not None and most > high:
        raise ParamError(f"{where} must be at most {high:g}, not {most:g}")


def _shown(value: Any) -> str:
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."
