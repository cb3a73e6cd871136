"""The plainest descent and flow on a reference model, to test it by."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from odesim.base.arrays import Array
from odesim.lab.tasks.scan_snap import TASK
from odesim.lab.training.loop import initial_params
from odesim.lab.training.optimizers import make_optimizer
from odesim.lab.training.task import Batch, Experiment, Params

DEFAULTS = {setting.name: setting.default for setting in TASK.settings}


def scan_snap(*, seeds: Sequence[int] = (0,), dtype: str = "float64", **values: Any) -> Experiment:
    """The task with these settings, and the default ones."""
    return TASK.make({**DEFAULTS, **values}, seeds=seeds, dtype=dtype)


def start(experiment: Experiment, dtype: str = "float64") -> Params:
    return initial_params(experiment, dtype)


def descend(experiment: Experiment, steps: int, dtype: str = "float64") -> tuple[Array, Params]:
    """Losses (steps, R) before each update, and the parameters in the end."""
    params = start(experiment, dtype)
    optimizer = make_optimizer(experiment.optimizer, experiment.model.groups, params)
    losses = []
    for i in range(steps):
        loss, gradients = experiment.model.loss_and_gradients(params, experiment.stream(i))
        optimizer.update(params, gradients)
        losses.append(loss)
    return np.array(losses), params


def loss_differences(model: Any, params: Params, batch: Batch, name: str) -> Array:
    """The slopes (R, ...) of the loss in one of the parameters, by central differences of step 1e-5."""
    differences = np.empty_like(params[name])
    for place in np.ndindex(differences.shape[1:]):
        here = (slice(None), *place)
        high, low = ({**params, name: params[name].copy()} for _ in range(2))
        high[name][here] += 1e-5
        low[name][here] -= 1e-5
        differences[here] = (model.loss_and_gradients(high, batch)[0] - model.loss_and_gradients(low, batch)[0]) / 2e-5
    return differences


def flow(experiment: Experiment, t: float) -> Mapping[str, Array]:
    """Parameters of the gradient flow at t from the task's start, by scipy at rtol 1e-8."""
    first = start(experiment)
    cut = first["Y"].size

    def named(y: Array) -> Params:
        return {"Y": y[:cut].reshape(first["Y"].shape), "Z": y[cut:].reshape(first["Z"].shape)}

    def right(t: float, y: Array) -> Array:
        gradients = experiment.model.loss_and_gradients(named(y), experiment.stream(0))[1]
        return -np.concatenate([experiment.optimizer.rates[name] * gradients[name].ravel() for name in ("Y", "Z")])

    y0 = np.concatenate([first["Y"].ravel(), first["Z"].ravel()])
    return named(solve_ivp(right, (0, t), y0, method="DOP853", rtol=1e-8, atol=1e-11).y[:, -1])


def watched(experiment: Experiment, name: str, params: Mapping[str, Array]) -> Array:
    """The observable of that name."""
    (found,) = (o for o in experiment.model.observables if o.name == name)
    return found.function(dict(params))
