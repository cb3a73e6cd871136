"""What integrates members: each a row of the tables of laws."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import odesim
from odesim.base.arrays import Array
from odesim.stepper.methods import METHODS
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.symbolic import System


@dataclass(frozen=True)
class Members:
    """y {state: (N, T, *shape)}, NaN where a member did not come; status, t_end, steps, rejected (N,)."""

    y: dict[str, Array]
    status: list[str]
    t_end: Array
    steps: Array
    rejected: Array

    @property
    def attempts(self) -> Array:
        return self.steps + self.rejected


@dataclass(frozen=True)
class Engine:
    """A method, in an ensemble or member by member in `integrate`."""

    method: str
    together: bool = True
    strict: bool = False

    def __str__(self) -> str:
        return f"{self.method}, {'ensemble' if self.together else 'integrate'}{', strict' if self.strict else ''}"

    @property
    def table(self) -> Any:
        return {**METHODS, **ROSENBROCK}[self.method]

    @property
    def stiff(self) -> bool:
        return self.method in ROSENBROCK

    def run(self, system: System, params: Mapping[str, Any], initial: Mapping[str, Any], save: Array, **options: Any) -> Members:
        """Members of a System, whose params and initial all have a row (N, ...) for each of them; save (T,) are times."""
        states = [str(name) for name in system.states]
        asked: dict[str, Any] = {"method": self.method, "strict": self.strict, "save": save, **options}
        if self.together:
            found = odesim.ensemble(system, params=params, initial=initial, **asked)
            status = [found.attrs["status_names"][int(s)] for s in found.status]
            return Members(
                {n: found[n].values for n in states},
                status,
                *(found[n].values for n in ("t_end", "steps", "rejected")),
            )
        count = len(next(iter({**params, **initial}.values())))
        runs = []
        for i in range(count):
            own, start = ({name: rows[i] for name, rows in given.items()} for given in (params, initial))
            runs.append(odesim.integrate(system, params=own, initial=start, **asked))
        y: dict[str, Array] = {}
        for name in states:
            y[name] = np.full((count, len(save), *runs[0].y[name].shape[1:]), np.nan)
            for i, run in enumerate(runs):
                kept = np.isin(run.t, save)  # a run that stops early keeps its last state too
                y[name][i, : kept.sum()] = run.y[name][kept]
        return Members(
            y, [r.status for r in runs], np.array([r.t_end for r in runs]), *(np.array([r.stats[n] for r in runs]) for n in COUNTS)
        )


COUNTS = ("steps", "rejected")
ADAPTIVE = [m.name for m in METHODS.values() if m.adaptive]
SINGLE = [Engine(m, together=False) for m in (*ADAPTIVE, *ROSENBROCK)]
TOGETHER = [Engine(m) for m in (*ADAPTIVE, *ROSENBROCK)]
STRICT = [Engine(m, strict=True) for m in ADAPTIVE]
STIFF_STRICT = [Engine(m, strict=True) for m in ROSENBROCK]
EVERY = [*SINGLE, *TOGETHER, *STRICT]
