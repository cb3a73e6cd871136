"""What is trained: a Model on a Stream of batches by an Optimizer, an Experiment; its Settings, and the Task that makes it of them.

Arrays have a leading axis of seeds (R, ...). R trainings run together, and each gets the bits that it gets alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from numbers import Integral, Real
from typing import Any, Protocol, Self

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, check_dtype
from odesim.base.errors import ParamError, nearest, no_such, value_text

Params = dict[str, Array]  # {name: (R, ...)}
Batch = Mapping[str, Array]  # {name: (R, ...)}; empty for the gradient of the population
Stream = Callable[[int], Batch]  # iteration -> its batch, independent of earlier calls
Settings = Mapping[str, Any]  # {name: value} of all settings of a task, each checked


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

    @classmethod
    def parameter(cls, name: str, dims: tuple[str, ...], doc: str, *, costly: bool = False) -> Self:
        """Of a parameter: a copy of it, as it is now."""
        return cls(name, lambda params: params[name].copy(), dims, doc, costly)


class Model(Protocol):
    """A network with its loss and hand-written gradients. It works with numpy or cupy, as its parameters do.

    name: for --model. groups {parameter: group}: each group has its own learning rate. observables: under the names that Systems use.
    Batches are in numpy wherever the parameters are: `odesim.base.arrays.on_same_device` copies one to them.
    """

    @property
    def name(self) -> str: ...

    @property
    def groups(self) -> Mapping[str, str]: ...

    @property
    def observables(self) -> tuple[Observable, ...]: ...

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """Initial parameters {name: (R, ...)} in numpy; those of seed r are drawn from rngs[r] alone."""

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {name: (R, ...)}."""


@dataclass(frozen=True)
class Setting:
    """A setting of a task, for `--set NAME=VALUE`.

    default: its type is that of the setting (bool, int, float, str); None for an array. choices: the allowed words.
    low, high: bounds of a number; open_low: low itself is excluded. rank: number of axes of an array; with rank 1 a table of one row or
    column is a vector. rate_of: the group of parameters of which it is the learning rate, by --lr too; eta_GROUP is that of GROUP.
    """

    name: str
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    open_low: bool = False
    rank: int = 2
    rate_of: str = ""


@dataclass(frozen=True)
class Optimizer:
    """Settings of an optimizer, in torch's conventions. rates {group of parameters: learning rate}.

    cosine: updates over which all rates fall to 0, update t from 0 by (1 + cos(pi t / cosine)) / 2; 0: they are constant.
    clip: the largest norm of a seed's gradient by all parameters, a longer one is scaled to it; 0: any.
    """

    name: str
    rates: Mapping[str, float]
    momentum: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    cosine: int = 0
    clip: float = 0.0

    @classmethod
    def of(cls, values: Settings, rates: Mapping[str, float]) -> Self:
        """That of a task with these rates: its setting optimizer, and momentum, cosine, clip, weight_decay; b1, b2 and eps, if there."""
        more = {name: values[name] for name in ("momentum", "cosine", "clip", "weight_decay") if name in values}
        more |= {"betas": (values["b1"], values["b2"]), "eps": values["eps"]} if "b1" in values else {}
        return cls(values["optimizer"], rates, **more)


@dataclass(frozen=True)
class Experiment:
    """Everything that a training needs, made by a task from its settings and seeds (R,).

    optimizer: without a name the one of the settings, see ReferenceTask. rates {group: learning rate}: where the settings are not these.
    steps: default number of updates. exact: exact population quantities of the task.
    theory {System: parameters with which it describes this training}; a ReferenceTask leaves out the Systems that do not.
    labels {axis: what its places are, such as the words of tokens}.
    start(dtype): the initial parameters {name: (R, ...)} in numpy; without it the model draws them.
    pair_for(System): how one describes this training, of a task that is in no file of this package.
    task, seeds, config (all settings as plain data): those of a ReferenceTask are set by it, but for a config that it makes itself.
    doc: the task in a line.
    """

    model: Model
    stream: Stream
    optimizer: Optimizer = Optimizer("", {})
    rates: Mapping[str, float] = field(default_factory=dict)
    steps: int = 1000
    task: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    exact: Mapping[str, Array] = field(default_factory=dict)
    theory: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    start: Callable[[str], Params] | None = None
    pair_for: "Callable[[Any], Pair] | None" = None
    doc: str = ""


# How a System describes a task: the conversion of what a training records to quantities of the System. `odesim.compare` reads it.


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
    optimizers: those that are in the System itself, with their momentum; without them it is a flow, which plain descent follows.
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
    optimizers: tuple[str, ...] = ()

    def starts(self, facts: TrainingFacts) -> Mapping[str, Link]:
        """{state: Link} of the initial values that are those of the training."""
        return self.start if self.own_start(facts) else {}


def same_quantity(name: str, source: str = "", doc: str = "") -> Link:
    """A Link to an observable of the training without conversion. source: its name, if it is another one."""
    source = source or name
    return Link(name, (source,), lambda seen, facts: seen[source], doc=doc)


def pair_of(
    *rows: Link | str, step: str | Callable[[TrainingFacts], float] = lambda facts: 1.0, start: Sequence[Link | str] = (), **more: Any
) -> Pair:
    """The Pair with these rows: Links, or names of observables without conversion, as `v` or as `loss=loss_population` with another name.

    step: its time, or the group of parameters whose learning rate it is. start: initial values, rows by their names. more: as of Pair.
    """
    links = {link.name: link for link in map(as_link, rows)}
    starts = [links.get(str(link)) or as_link(link) for link in start]
    group = step if isinstance(step, str) else ""
    time = (lambda facts: float(facts.optimizer["rates"][group])) if isinstance(step, str) else step
    return Pair(tuple(links.values()), time, start={link.name: link for link in starts}, **more)


def as_link(row: Link | str) -> Link:
    """A Link as it is, or that of a text `name` or `name=source`."""
    return row if isinstance(row, Link) else same_quantity(*row.split("="))


FLOWS = ("sgd", "momentum")  # optimizers that follow a gradient flow

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    **{word: {"phi": word} for word in ("relu", "softplus", "square")},
    **{word: {"signal": word} for word in ("mse", "fixed")},
}
"""{last word of the name of a variant, as in joma.joint_exp.relu: settings that it describes in the place of those of its model}."""


def pair_in(pairs: Mapping[str, Pair], system: str) -> Pair | None:
    """The Pair of a System among those of a task, or None. A variant has that of its model, but for its own settings."""
    model, _, word = system.rpartition(".")
    base, settings = pairs.get(model), VARIANTS.get(word)
    if system in pairs or base is None or settings is None:
        return pairs.get(system)
    required = {name: (value,) for name, value in settings.items()}
    return replace(base, requirements={**base.requirements, **required}, example={**base.example, **settings})


def optimizer_misfits(pair: Pair | None, facts: TrainingFacts) -> list[str]:
    """Phrases on why the optimizer is not the System's: none of a flow's, in the limit of small steps; empty if it is."""
    name, decay = facts.optimizer.get("name", "sgd"), facts.optimizer.get("weight_decay", 0.0)
    right = (pair.optimizers if pair else ()) or FLOWS
    phrases = [f"the optimizer is {name}, not {' or '.join(right)}"] * (name not in right)
    return phrases + [f"weight_decay is {decay:g}, not 0"] * bool(decay)


def misfits(pair: Pair | None, facts: TrainingFacts) -> list[str]:
    """Phrases on why the System does not describe this training, one for each setting; empty if it does.

    pair: of the System and the task; without one only the optimizer is known to matter.
    """
    if pair is None:
        return optimizer_misfits(pair, facts)
    phrases = [
        f"{name} is {setting_text(facts.config[name])}, not {' or '.join(map(setting_text, right))}"
        for name, right in pair.requirements.items()
        if name in facts.config and facts.config[name] not in right
    ]
    return [*optimizer_misfits(pair, facts), *phrases, *pair.other_misfits(facts)]


def setting_text(value: Any) -> str:
    """A setting's value as text: `given` for an array, `left out` for None."""
    if isinstance(value, bool):
        return str(value).lower()
    return "given" if isinstance(value, list) else "left out" if value is None else str(value)


class Task(Protocol):
    """A task: its settings, and the experiments that it makes of them. `odesim.train` takes any object that has these.

    doc: a description in one line, with its source. models: names for --model; the first is the default.
    """

    @property
    def name(self) -> str: ...

    @property
    def doc(self) -> str: ...

    @property
    def settings(self) -> tuple[Setting, ...]: ...

    @property
    def models(self) -> tuple[str, ...]: ...

    def memory(self, values: Settings, seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: approximate number of numbers} of a training of `seeds` seeds. Called before make(); creates no arrays."""

    def make(self, values: Settings, *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. values: all settings, each checked. Raises ParamError for settings that do not fit together."""


@dataclass(frozen=True)
class ReferenceTask:
    """A task of this package, from two functions. Each file in `tasks` has one, the constant TASK.

    experiment_of(values, seeds, model, dtype); memory_of(values, number of seeds, model): as `make` and `memory` of Task.
    described_by {System: how it describes the task}: not_described: why no System does, and what can be compared instead.
    An experiment without an optimizer has that of the settings: the learning rate of a group is the setting that has it as rate_of,
    else eta_GROUP, else lr.
    """

    name: str
    doc: str
    settings: tuple[Setting, ...]
    experiment_of: Callable[[Settings, tuple[int, ...], str, str], Experiment]
    memory_of: Callable[[Settings, int, str], Mapping[str, int]]
    models: tuple[str, ...]
    described_by: Mapping[str, Pair] = field(default_factory=dict)
    not_described: str = ""

    def memory(self, values: Settings, seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: number of numbers} of a training."""
        return self.memory_of(values, seeds, model or self.models[0])

    def rate_of(self, group: str, values: Settings) -> float:
        """The learning rate of a group of parameters by the settings."""
        names = [setting.name for setting in self.settings if setting.rate_of == group]
        return next(float(values[name]) for name in (*names, f"eta_{group}", "lr") if name in values)

    def make(self, values: Settings, *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. Raises ParamError for another model or dtype, and for settings that do not fit together."""
        if model not in (None, *self.models):
            raise ParamError(no_such("model", str(model), self.models, self.name))
        made = self.experiment_of(values, tuple(seeds), model or self.models[0], check_dtype(dtype))
        config, optimizer = made.config or as_config(values), made.optimizer
        if not optimizer.name:
            rates = made.rates or {group: self.rate_of(group, values) for group in sorted(set(made.model.groups.values()))}
            optimizer = Optimizer.of(values, rates)
        facts = TrainingFacts(self.name, config, made.exact, asdict(optimizer), made.model.name)
        theory = {s: params for s, params in made.theory.items() if not misfits(pair_in(self.described_by, s), facts)}
        return replace(made, optimizer=optimizer, task=self.name, seeds=tuple(seeds), config=config, theory=theory)


def as_config(values: Settings) -> dict[str, Any]:
    """The settings as plain data: arrays as lists."""
    return {name: np.asarray(a).tolist() if isinstance(a, np.ndarray | list | tuple) else a for name, a in values.items()}


def check_settings(task: str, settings: Sequence[Setting], values: Mapping[str, Any]) -> dict[str, Any]:
    """{name: value} of all settings: the given value, converted to the type of the default, or the default.

    Raises ParamError with the nearest spelling of a name or word, the expected type, or the range.
    """
    known = {setting.name: setting for setting in settings}
    for name in values:
        if name not in known:
            raise ParamError(no_such("setting", str(name), known, task))
    return {name: check_setting(task, s, values[name]) if name in values else s.default for name, s in known.items()}


def check_setting(task: str, setting: Setting, value: Any) -> Any:
    """value as a bool, int, float, word or array, by the type of the default. Raises ParamError."""
    where, default, choices = f"{setting.name} of {task}", setting.default, setting.choices
    if isinstance(value, np.ndarray) and value.ndim == 0 and default is not None:
        value = value.item()
    if isinstance(default, bool):
        if not isinstance(value, bool | np.bool_):
            raise ParamError(f"{where} is true or false, not {value_text(value)}")
        return bool(value)
    if isinstance(default, str):
        listed = ", ".join(choices)
        if not isinstance(value, str):
            raise ParamError(f"{where} is {f'one of {listed}' if choices else 'text'}, not {value_text(value)}")
        if choices and value not in choices:
            raise ParamError(f"no {setting.name} {value_text(value)} in {task}; choose from {listed}{nearest(value, choices)}")
        return value
    if isinstance(default, int | float):
        return _number(setting, where, value)
    return None if value is None else _array(setting, where, value)


def _number(setting: Setting, where: str, value: Any) -> int | float:
    is_integer = isinstance(setting.default, int)
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ParamError(f"{where} is a {'whole number' if is_integer else 'number'}, not {value_text(value)}")
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
        raise ParamError(f"{where} is an array whose rows have one length, not {value_text(value)}") from None
    if array.dtype.kind not in "iuf" or not array.size:
        raise ParamError(f"{where} is an array of numbers, not {value_text(value)}")
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
