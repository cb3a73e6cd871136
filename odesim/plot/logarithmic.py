"""Logarithmic axes where values are not all positive: an axis of numbers is refused, values are left out and counted."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, counted


def check_axis(scale: str, name: str, points: Array) -> None:
    """Raises ParamError if the numbers (n,) along a logarithmic axis, in order, are not all positive. scale: `x` or `y`."""
    if len(points) and points[0] <= 0:
        raise ParamError(
            f"log {scale}: {name} goes down to {points[0]:g}, and a logarithmic axis needs values > 0; leave {scale} out of log"
        )


def make_log(axes: Axes, label: str) -> list[str]:
    """Makes the value axis logarithmic; lines leave out values <= 0. Returns notes. label: of the quantity.

    Where no value is positive the axis stays linear.
    """
    lines = [line for line in axes.get_lines() if line.get_transform() is axes.transData]
    values: list[Array] = [np.ma.filled(np.ma.masked_invalid(np.ma.asarray(line.get_ydata(), float)), np.nan) for line in lines]
    finite = np.concatenate([v[np.isfinite(v)] for v in values]) if values else np.empty(0)
    bands = [np.asarray(p.vertices)[:, 1] for c in axes.collections if isinstance(c, PolyCollection) for p in c.get_paths()]
    if not (finite > 0).any() and not any((edge > 0).any() for edge in bands):
        return [f"{label}: no value > 0, so that its axis is linear"]
    for line, value in zip(lines, values, strict=True):
        line.set_ydata(np.where(value > 0, value, np.nan))
    axes.set_yscale("log")
    axes.autoscale(axis="y")
    notes = [left_out(label, finite)] * bool((finite <= 0).any())
    return notes + [f"{label}: the band reaches values ≤ 0, beyond the axis"] * any((edge <= 0).any() for edge in bands)


def left_out(label: str, finite: Array) -> str:
    """How many of finite values (n,) are <= 0, as a note."""
    return f"{label}: {int((finite <= 0).sum())} of {counted(len(finite), 'value')} ≤ 0, not shown (log)"
