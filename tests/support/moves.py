"""Sensitivities beside the difference of two runs: how far everything moves when one parameter or initial value does."""

from typing import Any

import numpy as np
import xarray as xr

import odesim
from odesim.symbolic import System, sensitivities

STEP = 1e-5
# the same 10 steps of rk4 for every run: differentiating commutes with them, so that no error control stands between the two
RUN: dict[str, Any] = {"method": "rk4", "backend": "numpy"}


def moves(system: System, name: str, way: np.ndarray, params: dict[str, Any], initial: dict[str, Any], **run: Any) -> Any:
    """{state or observable: (its derivative along way, the central difference)} at the end of runs with these numbers.

    way: a direction of the shape of the parameter, or of the state for its initial value. A state that is not in initial starts as
    the System says. Truncation is 1e-10 times third derivatives, rounding 1e-16 / 1e-5.
    """
    run = {**RUN, **run, "step": (run["span"][1] - run["span"][0]) / 10}
    kept = {**params, **initial}

    def end(**more: Any) -> xr.Dataset:
        solution = odesim.integrate(system, **more, **run)
        assert solution.status == "ok", solution.message
        return solution.to_xarray().isel(time=-1)

    both = end(params=params, initial=initial, sensitivities=name)
    made = sensitivities(system, name)
    dims = [i.name for i in list(made.axes)[len(system.axes) :]]
    ends = []
    for e in (STEP, -STEP):
        moved = {name: kept[name] + e * way}
        start = {**initial, **(moved if name in system.states else {})}
        values = {**params, **({} if name in system.states else moved)}
        ends.append(end(params=values, initial=start))
    along = xr.DataArray(way, dims=dims)
    found = {}
    for what, slope in made.sensitivities[name].items():
        want = (ends[0][what] - ends[1][what]) / (2 * STEP)
        found[what] = xr.broadcast((both[slope] * along).sum(dims), want)
    return found


def check_moves(found: Any) -> None:
    """Derivatives are differences, to 1e-7 of the largest: third derivatives stay below 1000."""
    for what, (got, want) in found.items():
        scale = 1 + float(np.abs(want).max())
        np.testing.assert_allclose(got.transpose(*want.dims), want, rtol=0, atol=1e-7 * scale, err_msg=what)
