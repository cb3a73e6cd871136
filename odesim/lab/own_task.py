"""A task of your own: a start, data, a loss with its gradient by hand or by reverse mode, and what describes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from odesim.base.arrays import Array, check_dtype
from odesim.base.errors import ParamError, no_such, value_text
from odesim.base.options import RunOptions
from odesim.inputs.bind import bind
from odesim.inputs.registry import is_path, load_constant
from odesim.lab.tasks import load_task
from odesim.lab.training.optimizers import SGD
from odesim.lab.training.record import LOSS
from odesim.lab.training.task import Batch, Experiment, Observable, Optimizer, Pair, Params, Setting, Settings, Task, as_config, pair_of
from odesim.run.problem import dimensions, named_slopes, parts_of, right_side
from odesim.symbolic.system import System
from odesim.targets.observe import Observer

GROUP = "all"  # the one group of parameters
START, DATA = 0, 1  # streams of random numbers of a seed

Arrays = Mapping[str, Any]
ByHand = Callable[[Arrays, Arrays, Settings], tuple[float, Arrays]]


@dataclass(frozen=True)
class OwnTask:
    """A task in a file of yours, as its constant TASK: `odesim train FILE.py`, `odesim compare MODEL --task FILE.py`.

    All functions are of one seed, and settings {name: value} are its settings, with eta, optimizer and momentum.

    start(rng, settings): the parameters {name: array} before training. data(rng, settings): the batch {name: array} of an iteration; anew:
    it is drawn for each iteration, else once a seed.

    loss: by hand a function (params, batch, settings) -> (loss, {name: gradient}). By reverse mode a System, whose equations are
    gradient_flow(loss, {w[i]: 1}): its states are the parameters, its parameters the batch, its observable `loss` the loss.

    eta: the default learning rate of all parameters. steps: default number of updates. settings: further ones.
    observables {name: function(params)}: what is recorded beside the loss and the parameters themselves.

    described_by {name of a System: its parameters {name: value}, or a function of the settings that returns them}; without it any System
    is compared, with its defaults. Its time is eta an iteration, and states that are recorded start where each seed does.
    """

    name: str
    start: Callable[[Generator, Settings], Arrays]
    data: Callable[[Generator, Settings], Arrays]
    loss: ByHand | System
    doc: str = "a task of your own"
    eta: float = 0.01
    steps: int = 1000
    anew: bool = False
    settings: tuple[Setting, ...] = ()
    observables: Mapping[str, Callable[[Arrays], Any]] = field(default_factory=dict)
    described_by: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[str, ...] = ("own",)

    def __post_init__(self) -> None:
        for name in ("start", "data", "loss"):
            if not callable(getattr(self, name)) and not isinstance(getattr(self, name), System):
                raise ParamError(f"{name} of the task {self.name} is a function, not {value_text(getattr(self, name))}")
        eta = Setting("eta", float(self.eta), "learning rate", low=0.0, open_low=True, rate_of=GROUP)
        chosen = {setting.name for setting in self.settings}
        object.__setattr__(self, "settings", (*self.settings, *(s for s in (eta, *SGD) if s.name not in chosen)))
        if isinstance(self.loss, System) and LOSS not in self.loss.observables:
            raise ParamError(
                f"the System of the loss of {self.name} needs the observable {LOSS!r}; it has {', '.join(self.loss.observables) or 'none'}"
            )

    def memory(self, values: Settings, seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: number of numbers}: not known before the task makes it."""
        return {}

    def make(self, values: Settings, *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. Raises ParamError for another model, and where parts of the task do not fit together."""
        if model not in (None, *self.models):
            raise ParamError(no_such("model", str(model), self.models, self.name))
        check_dtype(dtype)
        start = over_seeds(self.start, values, seeds, START)
        loss = self.loss_of_system(self.loss, start) if isinstance(self.loss, System) else partial(self.loss_by_hand, self.loss, values)
        theory = {name: params(values) if callable(params) else params for name, params in self.described_by.items()}
        stream = self.stream(values, tuple(seeds))
        firsts = [loss(*({name: rows[r] for name, rows in part.items()} for part in (start, stream(0))))[0] for r in range(len(seeds))]
        return Experiment(
            model=OwnModel(loss, self.recorded(start), {name: GROUP for name in start}),
            stream=stream,
            optimizer=Optimizer.of(values, {GROUP: float(values["eta"])}),
            steps=self.steps,
            task=self.name,
            seeds=tuple(seeds),
            # a name does not tell one task of this name from another; the losses of the starts do, for a run that is resumed
            config=as_config(values) | {"first_loss": [f"{float(first):.10g}" for first in firsts]},
            theory=theory,
            start=lambda dtype: {name: rows.astype(dtype) for name, rows in start.items()},
            pair_for=partial(pair_for, [LOSS, *start, *self.observables]),
        )

    def stream(self, values: Settings, seeds: tuple[int, ...]) -> Callable[[int], Batch]:
        """The batch {name: (R, ...)} of an iteration, whatever was asked before."""

        @lru_cache(maxsize=1)
        def batch(i: int) -> Batch:
            return over_seeds(self.data, values, seeds, DATA, i)

        return lambda i: batch(i if self.anew else 0)

    def recorded(self, start: Params) -> tuple[Observable, ...]:
        """The parameters, in the axes of the System of the loss, and the task's observables."""
        dims = parts_of(self.loss, RunOptions.backend, RunOptions.dtype, False).derived[dimensions] if isinstance(self.loss, System) else {}
        observables = [Observable(name, partial(each_seed, function), (), "an observable") for name, function in self.observables.items()]
        names = [name for name in start if name not in self.observables]
        return (*(Observable.parameter(name, tuple(dims.get(name, ())), "a parameter") for name in names), *observables)

    def loss_by_hand(self, loss: ByHand, values: Settings, params: Arrays, batch: Arrays) -> tuple[float, Arrays]:
        """Loss and gradient of one seed, checked. Raises ParamError for a gradient of other names or shapes."""
        result = loss(params, batch, values)
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], Mapping):
            raise ParamError(f"the loss of {self.name} returns (loss, {{name: gradient}}), not {value_text(result)}")
        for name in result[1]:
            if name not in params:
                raise ParamError(no_such("parameter", str(name), params, f"the start of {self.name}"))
        for name, values_now in params.items():
            if name not in result[1]:
                raise ParamError(f"the loss of {self.name} returns no gradient of {name}")
            if np.shape(result[1][name]) != values_now.shape:
                raise ParamError(f"the gradient of {name} in {self.name} has shape {np.shape(result[1][name])}, not {values_now.shape}")
        return result

    def loss_of_system(self, system: System, start: Params) -> Callable[[Arrays, Arrays], tuple[float, Arrays]]:
        """Loss and gradient of one seed from a System: its observable loss, and minus its right-hand side. Raises ParamError."""
        for name in start:
            if name not in system.states:
                raise ParamError(no_such("state", name, system.states, system.name))
        for name in system.states:
            if name not in start:
                raise ParamError(f"the start of {self.name} has no {name}, a state of {system.name}")
        parts = parts_of(system, RunOptions.backend, RunOptions.dtype, False)

        def loss(params: Arrays, batch: Arrays) -> tuple[float, Arrays]:
            numbers = bind(system, params=batch, initial=params)
            slopes = named_slopes(right_side(parts.compiled_for(numbers.sizes), numbers))
            rows = {name: np.asarray(value, float)[None] for name, value in params.items()}
            seen = parts.derived[Observer](np.zeros(1), rows, numbers.sizes, numbers.params, slopes)
            now = {name: np.ascontiguousarray(value, float) for name, value in params.items()}
            return float(seen[LOSS][0]), {name: -value for name, value in slopes(0.0, now).items()}

        return loss


@dataclass(frozen=True, eq=False)
class OwnModel:
    """The Model of an OwnTask: its loss and gradient (params, batch) of one seed, for all seeds. groups: as Model."""

    loss: Callable[[Arrays, Arrays], tuple[float, Arrays]]
    observables: tuple[Observable, ...]
    groups: Mapping[str, str]
    name: str = "own"

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """Not used: the experiment has its start."""
        raise NotImplementedError

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,) and its gradient {name: (R, ...)}."""
        if not all(isinstance(value, np.ndarray) for value in params.values()):
            raise ParamError("a task of your own trains with --backend numpy")
        count = len(next(iter(params.values())))
        rows = [self.loss({n: p[r] for n, p in params.items()}, {n: b[r] for n, b in batch.items()}) for r in range(count)]
        return np.array([float(loss) for loss, _ in rows]), {
            n: np.stack([np.asarray(g[n]) for _, g in rows]).astype(p.dtype) for n, p in params.items()
        }


def find_task(name: str) -> Task:
    """The task with this name, or the constant TASK of a file (`my.py`, `my.py:OTHER`), which this runs. Raises ParamError, ModelError."""
    if not is_path(name):
        return load_task(name)
    return load_constant(name, "task", "TASK", ("settings", "models", "memory", "make"))


def over_seeds(make: Callable[[Generator, Settings], Arrays], values: Settings, seeds: Sequence[int], *stream: int) -> dict[str, Array]:
    """{name: (R, ...)}, the arrays of each seed. stream: numbers that, with the seed, choose the random numbers."""
    rows = [make(default_rng([seed, *stream]), values) for seed in seeds]
    for arrays in rows:
        if not isinstance(arrays, Mapping):
            raise ParamError(f"start and data of a task return {{name: array}}, not {value_text(arrays)}")
    stacked = {str(name): np.stack([np.asarray(one[name]) for one in rows]) for name in rows[0]}
    return {name: a if a.dtype.kind == "i" else a.astype(float) for name, a in stacked.items()}


def each_seed(function: Callable[[Arrays], Any], params: Params) -> Array:
    """function of the parameters of each seed, (R, ...)."""
    count = len(next(iter(params.values())))
    return np.stack([np.asarray(function({name: p[r] for name, p in params.items()}), float) for r in range(count)])


def pair_for(recorded: Sequence[str], system: System) -> Pair:
    """How a System describes a task of one's own: by names, with the learning rate as the time of an iteration."""
    known = {*system.states, *system.observables}
    start = [name for name in recorded if name in system.states]
    return pair_of(*(name for name in recorded if name in known), step=GROUP, start=start)
