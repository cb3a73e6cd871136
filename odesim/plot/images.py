"""Draws values as cells of colour with a labelled colour bar above, row 0 on top."""

from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from odesim.base.arrays import Array
from odesim.plot.scales import above, add_bar, by_root, color_scale, with_pale
from odesim.plot.style import DIVERGING


def draw_cells(
    axes: Axes, x: Array, y: Array, shown: Any, label: str, over: Any = None, *, colors_from: float | Literal["root"] | None = None
) -> tuple[QuadMesh, tuple[str, ...]]:
    """Draws masked values shown (m, n) as cells with borders x (n + 1,) and y (m + 1,), with a labelled colour bar above.

    Row 0 is on top.
    Values of both signs get diverging colours. over: masked values whose range the colours have, default those shown. colors_from: where
    logarithmic colours begin (0: at the smallest value > 0), cells below are grey; None: linear colours; root: those of by_root.
    Returns the cells and notes on values that have no colour.
    """
    over = shown if over is None else over
    values, start = over.compressed(), None if colors_from == "root" else colors_from
    scale = above(color_scale(values, label, start is not None), start or 0.0)
    scale = by_root(scale, values) if colors_from == "root" else scale
    shown, colors = with_pale(shown, scale)
    mesh = axes.pcolormesh(x, y, shown, norm=scale.norm, cmap=colors, rasterized=True)
    axes.invert_yaxis()
    ticks: Any = None
    if scale.cmap == DIVERGING:
        size = float(scale.norm.vmax or 1.0)
        power = 10.0 ** np.floor(np.log10(size))
        end = power * max(step for step in (1, 1.5, 2, 3, 4, 5, 6, 8) if step * power <= size * (1 + 1e-12))
        ticks = [-end, 0.0, end]
    add_bar(axes, mesh, label, scale, ticks)
    return mesh, scale.notes
