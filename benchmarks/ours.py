"""odesim as a solver of a Work."""

from functools import cache
from typing import Any

import numpy as np
from measuring import Solver
from sympy import Interval, Rational, oo, symbols
from works import ROBERTSON, Work

import odesim
from odesim.symbolic import Param, Source, System

NAMES = {"joma": ("v",), "lorenz": ("x", "y", "z"), "robertson": ("x", "y", "z")}


@cache
def lorenz_system() -> System:
    """The System of Lorenz's three equations with parameter rho."""
    x, y, z, rho = symbols("x y z rho")
    return System(
        name="benchmark.lorenz",
        source=Source("none", "workload W2"),
        axes={},
        equations={x: 10 * (y - x), y: x * (rho - z) - y, z: x * y - Rational(8, 3) * z},
        params=(Param(rho, 28.0, Interval(0, oo), "heating"),),
        initial={x: 1.0, y: 0.0, z: 0.0},
    )


@cache
def robertson_system() -> System:
    """The System of Robertson's three reactions with their rates as parameters."""
    x, y, z, *k = symbols("x y z k1 k2 k3")
    first, second, third = k[0] * x, k[1] * y**2, k[2] * y * z
    return System(
        name="benchmark.robertson",
        source=Source("none", "workload W4r"),
        axes={},
        equations={x: third - first, y: first - second - third, z: second},
        params=tuple(Param(name, rate, Interval(0, oo), "rate") for name, rate in zip(k, ROBERTSON, strict=True)),
        initial={x: 1.0, y: 0.0, z: 0.0},
    )


def ensemble_arguments(work: Work) -> dict[str, Any]:
    """Model, members and times of a work, as `odesim.ensemble` takes them; events only where the work has them."""
    model: Any = {"lorenz": lorenz_system, "robertson": robertson_system}.get(work.system, lambda: "joma.nonlinear")()
    own: dict[str, Any] = {"params": {"mu": work.params}, "initial": {"v": work.start}}
    if work.system != "joma":
        own = {"params": dict(zip([p.name for p in model.params], work.params.T, strict=True))}
    return {"model": model, "span": (0.0, work.end), "save": work.times if work.grid else None, "max_events": 8 * work.events, **own}


def odesim_solver(work: Work, method: str, **more: Any) -> Solver:
    """A Solver that integrates all members in one call of `odesim.ensemble`. more: further arguments of it."""
    given = {**ensemble_arguments(work), "rtol": work.tolerance, "atol": work.absolute, "method": method, **more}
    model = given.pop("model")

    def read(found: Any) -> tuple[np.ndarray, int]:
        failed, names = int(np.sum(found["status"].values != 0)), NAMES[work.system]
        return found["v"].values if names == ("v",) else np.stack([found[name].values for name in names], axis=-1), failed

    def counts(found: Any) -> dict[str, float]:
        names = {"steps": "steps", "rejected": "rejected", "half_way_count": "events"}
        return {shown: float(found[name].values.mean()) for name, shown in names.items() if name in found}

    looks = ", no events" if work.system == "joma" and more.get("max_events", 1) == 0 else ""
    return Solver(f"odesim {method}{looks}", len(work.start), lambda: odesim.ensemble(model, **given), read, counts)
