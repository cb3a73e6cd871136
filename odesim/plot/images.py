"""Draws values as cells of colour with a labelled colour bar above, row 0 on top."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from odesim.base.arrays import Array
from odesim.plot.style import DIVERGING, SEQUENTIAL


def draw_cells(axes: Axes, x: Array, y: Array, shown: Any, label: str, over: Any = None) -> QuadMesh:
    """Draws masked values shown (m, n) as cells with borders x (n + 1,) and y (m + 1,), row 0 on top, and a labelled colour bar above.

    Values of both signs get diverging colours. over: masked values whose range the colours have, default those shown.
    """
    over = shown if over is None else over
    low, high = (float(over.min()), float(over.max())) if over.count() else (0.0, 1.0)
    size = max(abs(low), abs(high))
    two_sided = low < -0.1 * size and high > 0.1 * size
    if two_sided:
        low, high = -size, size
    elif low == high:
        low, high = low - (0.5 * size or 0.5), high + (0.5 * size or 0.5)
    mesh = axes.pcolormesh(x, y, shown, norm=Normalize(low, high), cmap=DIVERGING if two_sided else SEQUENTIAL, rasterized=True)
    axes.invert_yaxis()
    ticks: Any = MaxNLocator(3, steps=[1, 2, 2.5, 5, 10])
    if two_sided:
        power = 10.0 ** np.floor(np.log10(size))
        end = power * max(step for step in (1, 1.5, 2, 3, 4, 5, 6, 8) if step * power <= size * (1 + 1e-12))
        ticks = [-end, 0.0, end]
    figure: Any = axes.get_figure(root=True)
    bar = figure.colorbar(mesh, ax=axes, location="top", pad=0.03, aspect=22, fraction=0.06, ticks=ticks)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=1.5, pad=0.8)
    bar.set_label(label, labelpad=2.5)
    return mesh
