"""`odesim.explore`: the explorer of a model as a widget in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odesim.base.errors import ParamError, StoreError, value_text
from odesim.explorer.controls import Controls, Explored, number_text
from odesim.inputs.arguments import check_arguments
from odesim.symbolic.system import System


@check_arguments
def explore(
    model: str | PathLike[str] | System,
    *,
    params: Mapping[str, ArrayLike] | None = None,
    initial: Mapping[str, ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    span: tuple[float, float] | None = None,
    method: str = "auto",
    step: float | None = None,
    seed: int = 0,
) -> Any:
    """A widget for a notebook, with a slider for each parameter, size and initial value, and curves that follow them.

    Parameters
    ----------
    model, params, initial, sizes, span, method, step, seed
        As of `integrate`: they say where the sliders begin.

    Returns
    -------
    widget
        Jupyter shows it. `odesim explore MODEL` shows the same in a browser.

    Raises
    ------
    OdesimError
        For wrong arguments, and where bokeh and jupyter-bokeh, the extra `odesim[explore]`, are not installed.

    Examples
    --------
    >>> odesim.explore("joma.nonlinear", sizes={"M": 3})  # doctest: +SKIP
    """
    ref = model if isinstance(model, str | System) else str(model)
    options: dict[str, Any] = {
        "span": span and ":".join(map(number_text, span)),
        "step": step and number_text(step),
        "seed": seed and str(seed),
    }
    texts: dict[str, Any] = {
        "params": value_texts(params),
        "initial": value_texts(initial),
        "sizes": {name: str(n) for name, n in (sizes or {}).items()},
    }
    files = frozenset(text for values in texts.values() for text in values.values() if text.startswith("@"))
    begin = Controls(**texts, **{name: text for name, text in options.items() if text}, method=method, files=files)
    explored = Explored(ref)
    explored.numbers(begin)
    try:
        from bokeh.io import output_notebook
        from bokeh.resources import INLINE
        from jupyter_bokeh import BokehModel

        from odesim.explorer.app import Explorer
    except ModuleNotFoundError as error:
        raise StoreError(f"the explorer needs {error.name}: pip install 'odesim[explore]'") from None
    explorer = Explorer(begin, explored)
    explorer.redraw()
    # the widget draws by a BokehJS that it expects on the page; from here, since a page of another machine may not be reached
    output_notebook(INLINE, hide_banner=True)
    return BokehModel(explorer.root, combine_events=True)


def value_texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    """Numbers, lists, arrays and texts as texts of the command line. Raises ParamError."""
    texts = {}
    for name, value in (values or {}).items():
        if isinstance(value, str):
            texts[name] = value
            continue
        try:
            array = np.asarray(value, float)
        except (TypeError, ValueError):
            raise ParamError(f"{name} takes numbers, not {value_text(value)}") from None
        texts[name] = str(array.tolist()) if array.ndim else number_text(float(array))
    return texts
