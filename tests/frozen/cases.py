"""Strict runs whose bits are written down in bits.txt: models x methods, one run and members in lanes.

python -m tests.frozen.cases writes the lines that bits.txt lacks. A line is: case, digest of what goes in, digest of what comes out, steps,
rejected. The lines are the truth that a change of the core is held to. Only where a result was wrong is a line written anew (delete it, and
run the command), and the change log says so.
"""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import odesim
from odesim.base.backends import SERIES
from odesim.base.errors import OdesimError
from tests.support.balls import BALLS
from tests.support.dips import DIPS
from tests.support.models import MAPS
from tests.support.pulses import PULSES
from tests.support.threads import LISTED as MODELS
from tests.support.threads import METHODS

FILE = Path(__file__).with_name("bits.txt")
SAVE = 5
# one starts each member from another matrix; the rates of others come from numpy's exp for each member, rounded as the processor does
ALONE = ("galore.projected", "gibbs.lumped", "gibbs.training_flow")
EVENTS: dict[str, dict[str, Any]] = {  # conditions on time, double zeros, resets
    "pulses": {"model": PULSES, "sizes": {"M": 3}, "params": {"late": [0.7, 3.1, 2.2]}},
    "dips": {"model": DIPS},
    "balls": {"model": BALLS, "params": {"h": [1.0, 0.5]}},
}
# the default, by numpy's svd, whose last bit is the processor's
P0 = [[float.fromhex("-0x1.653069fd9c15dp-1")], [float.fromhex("0x1.6ed2f97b46bffp-1")]]


@dataclass(frozen=True)
class Case:
    """A run of a model: alone, or three members with other values of a parameter, `how` being "one" or "lanes"."""

    model: str
    method: str
    how: str
    step: float | None = None

    def __str__(self) -> str:
        return "-".join([self.model, self.method + (f"@{self.step:g}" if self.step else ""), self.how])

    def run(self) -> tuple[str, str, int, int]:
        """(digest of what goes in, digest of what comes out, steps, rejected)."""
        given: dict[str, Any] = dict(MODELS.get(self.model) or EVENTS.get(self.model) or {})
        grid, model = given.pop("grid", None), given.pop("model", self.model)
        if model == "galore.projected":
            given["params"] = {"P0": P0}
        given |= {"strict": True, "save": SAVE, "step": self.step} | ({"method": self.method} if self.method != "map" else {})
        if self.how == "lanes":
            return digest_of_members(odesim.ensemble(model, grid=grid, **given))
        return digest_of_run(odesim.integrate(model, **given))


def digest(*arrays: Any) -> str:
    """Of the bytes and shapes of arrays; NaN of any sign is one."""
    h = hashlib.sha256()
    for a in map(np.asarray, arrays):
        if a.dtype.kind == "f":
            a = np.where(np.isnan(a), np.nan, a)
        h.update(repr((a.shape, a.dtype.str)).encode() + np.ascontiguousarray(a).tobytes())
    return h.hexdigest()[:16]


def digest_of_run(run: Any) -> tuple[str, str, int, int]:
    """Of parameters and start; of saved times and states, the end, events, status."""
    events = [np.array([float(e["t"]) for e in run.events[name]]) for name in sorted(run.events)]
    given = [np.asarray(value, float) for kind in ("params", "initial") for _, value in sorted(run.attrs[kind].items())]
    states = [a for name in sorted(run.y) for a in (run.y[name], run.y_end[name])]
    counts = [int(run.stats[name]) for name in ("steps", "rejected", "rhs_calls")]
    ends = [run.t, run.t_end, np.frombuffer(run.status.encode(), np.uint8), counts]
    return digest(*given), digest(*states, *events, *ends), counts[0], counts[1]


def digest_of_members(found: Any) -> tuple[str, str, int, int]:
    """Of the members' starts and own parameters; of all else."""
    states = sorted(found.attrs["states"])
    own = [found[name].values for name in sorted(found.coords) if name not in ("member", "time")]
    events = [found[name].values for name in sorted(map(str, found.data_vars)) if name.endswith(("_t", "_count"))]
    ends = [found[name].values for name in ("time", "t_end", "steps", "rejected", "status")]
    first = [found[name].isel(time=0).values for name in states]
    out = digest(*(found[name].values for name in states), *events, *ends)
    return digest(*own, *first), out, int(found.steps.sum()), int(found.rejected.sum())


def cases() -> Iterator[Case]:
    """All cases, by model."""
    for model in sorted([*MODELS, *EVENTS]):
        for method, steps in {**METHODS, **dict.fromkeys(SERIES, (None,))}.items():
            for step in steps:
                yield Case(model, method, "one", step)
                if "grid" in MODELS.get(model, {}) and model not in ALONE:
                    yield Case(model, method, "lanes", step)
    for model in MAPS:
        yield Case(model, "map", "one")


def known() -> dict[str, tuple[str, str, int, int]]:
    """The lines of bits.txt."""
    lines = (line.split() for line in FILE.read_text("utf-8").splitlines()) if FILE.exists() else ()
    return {name: (given, out, int(steps), int(rejected)) for name, given, out, steps, rejected in lines}


def main() -> None:
    """Writes the lines that are not there; with arguments, those of models that begin with one of them."""
    lines = {name: (*values,) for name, values in known().items()}
    for case in cases():
        if str(case) in lines or (sys.argv[1:] and not case.model.startswith(tuple(sys.argv[1:]))):
            continue
        try:
            lines[str(case)] = case.run()
        except OdesimError as error:
            print(f"{case}: {error}", flush=True)  # a method that cannot do it: there are no bits
            continue
        print(case, *lines[str(case)], flush=True)
        FILE.write_text("".join(" ".join(map(str, (name, *lines[name]))) + "\n" for name in sorted(lines)), "utf-8")


if __name__ == "__main__":
    main()
