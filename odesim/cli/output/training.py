"""Output of `odesim train`: JSON, or a short table."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import counted
from odesim.cli.tables import number_text, shape_text, table
from odesim.reference.training.optimizers import settings_in_use
from odesim.reference.training.trajectory import Trajectory
from odesim.store.plain_data import to_plain


def json_object(trajectory: Trajectory, out: Path | None) -> dict[str, Any]:
    """The object that --json prints. `final` {name: [value of each seed]}, a digest for more than 1000 entries of one seed."""
    fields = {
        "task": trajectory.task,
        "model": trajectory.model,
        "status": trajectory.status,
        "message": trajectory.message,
        "steps": trajectory.steps,
        "seeds": trajectory.seeds,
        "time": trajectory.iteration,
        "final": {name: [to_plain(np.asarray(one)) for one in values] for name, values in trajectory.final.items()},
        "stats": trajectory.stats,
        "optimizer": settings_in_use(trajectory.attrs["optimizer"]),
        "backend": trajectory.attrs["backend"],
        "out": out,
    }
    return dict(to_plain(fields))


def json_text(trajectory: Trajectory, out: Path | None) -> str:
    """json_object on one line of ASCII."""
    return json.dumps(json_object(trajectory, out), allow_nan=False)


def summary_text(trajectory: Trajectory, out: Path | None, picture: Path | None) -> str:
    """The result as text in 80 columns: final observables over seeds, optimizer, speed, files."""
    count = len(trajectory.seeds)
    seeds = counted(count, "seed") if count > 1 else f"seed {trajectory.seeds[0]}"
    head = f"{trajectory.task} ({trajectory.model}): {trajectory.status} at iteration {trajectory.iteration}, {seeds}"
    rows = [(name, shape_text(v.shape[1:]), range_text(v)) for name, v in trajectory.final.items()]
    stats = trajectory.stats
    run = [("optimizer", optimizer_text(trajectory.attrs["optimizer"])), ("backend", trajectory.attrs["backend"])]
    run += [("seconds", f"{stats['seconds']:.3g}, {stats['steps_per_second']:.4g} iterations a second")] if stats else []
    run += [(name, str(path)) for name, path in (("stored", out), ("drawn", picture)) if path]
    return f"{head}\nfinal\n{table(rows)}\nrun\n{table(run)}"


def range_text(values: Array) -> str:
    """Values (R, *shape) as text: the number of one seed, mean and range over seeds, or the range of an array."""
    low, high = number_text(values.min()), number_text(values.max())
    if values.ndim > 1:
        return f"in [{low}, {high}]"
    return low if values.size == 1 else f"mean {number_text(values.mean())}, in [{low}, {high}] over the seeds"


def optimizer_text(spec: Any) -> str:
    """An optimizer as text: name, learning rates, momentum and weight decay if used."""
    rates = [f"{group} {number_text(rate)}" for group, rate in spec["rates"].items()]
    values = settings_in_use(spec)
    more = [f"{name.replace('_', ' ')} {number_text(values[name])}" for name in ("momentum", "weight_decay") if values.get(name)]
    more += [f"falling to 0 in {counted(values['cosine'], 'update')}"] if values.get("cosine") else []
    return f"{spec['name']}, learning rate {', '.join([*rates, *more])}"
