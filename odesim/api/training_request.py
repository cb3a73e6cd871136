"""The request of a training: its task and all that makes an experiment of it, for any of its seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from odesim.lab.experiment import as_task, make_experiment
from odesim.lab.training.loop import TrainingOptions
from odesim.lab.training.protocols import Experiment, Task


@dataclass(frozen=True)
class TrainingRequest:
    """A training of seeds (R,), as `odesim.train` takes it. It can be sent to another process, and made there for one seed alone."""

    task: str | Task
    settings: Mapping[str, Any]
    model: str | None
    seeds: tuple[int, ...]
    optimizer: str | None
    rates: Mapping[str, float]
    options: TrainingOptions

    def experiment(self, seeds: tuple[int, ...] = ()) -> Experiment:
        """The experiment of these seeds; of all without them. Raises ParamError."""
        chosen = seeds or self.seeds
        return make_experiment(as_task(self.task), self.settings, self.model, chosen, self.optimizer, self.rates, self.options.dtype)
