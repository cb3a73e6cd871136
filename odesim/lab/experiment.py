"""The request of a training, checked, and the experiment that it makes: task, settings, seeds, optimizer and learning rates."""

import platform
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from odesim.base.backends import find_backend
from odesim.base.device import array_module, check_fits, device_name
from odesim.base.errors import ParamError, counted, no_such, value_text
from odesim.base.options import __version__
from odesim.lab.own_task import find_task
from odesim.lab.training.optimizers import check_optimizer, settings_in_use
from odesim.lab.training.task import Experiment, Task, check_settings

MOST_SEEDS = 100_000
LONG = 1e9  # seconds between two checkpoints
MOMENTUM = 0.9  # of --optimizer momentum, where the task has none


def make_experiment(
    task: Task,
    settings: Mapping[str, Any],
    seeds: tuple[int, ...],
    *,
    model: str | None = None,
    optimizer: str | None = None,
    rates: Mapping[str, float] | None = None,
    dtype: str = "float64",
) -> Experiment:
    """The experiment of a task, with checked settings, and the optimizer and rates requested; its config stores them. Raises ParamError."""
    if model is not None and model not in task.models:
        raise ParamError(no_such("model", model, task.models, task.name))
    rates = {} if rates is None else rates
    if not isinstance(rates, Mapping):
        raise ParamError(f"rates are {{group of parameters: learning rate}}, not {rates!r}")
    known = {setting.name: setting for setting in task.settings}
    # a task may have settings for them, from which its theory follows: a value given there too must be the same
    rate_names = {setting.rate_of: setting.name for setting in task.settings if setting.rate_of}
    also: list[tuple[str, str, Any]] = [("the optimizer", "optimizer", optimizer)] * (optimizer is not None)
    also += [(f"the learning rate of {group}", rate_names.get(group, f"eta_{group}"), rate) for group, rate in rates.items()]
    for what, name, value in also:
        if name in known:
            if settings.get(name, value) != value:
                raise ParamError(f"{what} is given twice: {value} and --set {name}={settings[name]}")
            settings = {**settings, name: value}
    values = check_settings(task.name, task.settings, settings)
    named = f"{counted(len(seeds), 'seed')} of {task.name}" if len(seeds) > 1 else task.name
    check_fits(f"a training of {named} with these settings", task.memory(values, len(seeds), model), 8)
    experiment = task.make(values, seeds=seeds, model=model, dtype=dtype)
    spec, config = experiment.optimizer, dict(experiment.config)
    if optimizer is not None and "optimizer" not in known:
        spec = replace(spec, name=optimizer, momentum=spec.momentum or MOMENTUM * (optimizer == "momentum"))
    for group, rate in rates.items():
        if group not in spec.rates:
            raise ParamError(no_such("group of parameters", str(group), spec.rates, f"{task.name} ({experiment.model.name})"))
        if f"eta_{group}" in values and spec.rates[group] != rate:
            stands = f"eta_{group}={rate:g} stands for {spec.rates[group]:g}"
            raise ParamError(f"the learning rate of {group} cannot be {rate:g} in {task.name}, where {stands}")
    spec = replace(spec, rates={**spec.rates, **rates})
    if "momentum" not in settings_in_use(vars(spec)):
        if "momentum" in known and known["momentum"].default is not None and values["momentum"] != known["momentum"].default:
            raise ParamError(f"momentum={values['momentum']:g} has no meaning with the optimizer {spec.name}, which has betas instead")
        spec = replace(spec, momentum=0.0)
        config.pop("momentum", None)
    check_optimizer(spec)
    return replace(experiment, optimizer=spec, config=config, doc=getattr(task, "doc", ""))


def as_task(task: Any) -> Task:
    """The task with this name or of this file, or the Task given. Raises ParamError."""
    if not isinstance(task, str) and not all(hasattr(task, part) for part in ("name", "settings", "models", "memory", "make")):
        raise ParamError(f"a task is a name or a Task, not {value_text(task)}")
    return find_task(task) if isinstance(task, str) else task


def check_seeds(seeds: Any) -> tuple[int, ...]:
    """Seeds (R,) as distinct integers >= 0. Raises ParamError."""
    if isinstance(seeds, str | bytes | Mapping | set | frozenset):
        raise ParamError(f"seeds are whole numbers in a row, such as range(5), not {value_text(seeds)}")
    try:
        numbers = (seeds,) if isinstance(seeds, int | np.integer) else tuple(islice(seeds, MOST_SEEDS + 1))
    except TypeError:
        raise ParamError(f"seeds must be whole numbers, not {value_text(seeds)}") from None
    if not 1 <= len(numbers) <= MOST_SEEDS:
        raise ParamError(f"there must be 1 to {MOST_SEEDS} seeds, not {'more' if numbers else 'none'}")
    for seed in numbers:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
            raise ParamError(f"a seed is a whole number from 0 up, not {value_text(seed)}")
    if len(set(numbers)) < len(numbers):
        raise ParamError("a seed is given twice")
    return tuple(map(int, numbers))


def versions(backend: str) -> dict[str, str]:
    """Versions of the packages that compute, and the name of the GPU if one does."""
    more = {"cupy": array_module(backend).__version__, "gpu": device_name()} if find_backend(backend).gpu else {}
    return {"odesim": __version__, "python": platform.python_version(), "numpy": np.__version__, **more}
