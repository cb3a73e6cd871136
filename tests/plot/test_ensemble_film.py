"""Films of an ensemble: every frame is the picture of its time, on one scale."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb

import odesim
from odesim.base.errors import ParamError
from odesim.plot import Choice, animate
from odesim.plot.ensemble import figure_of_ensemble
from odesim.plot.film import film_of_members
from odesim.plot.frames import make_frames
from odesim.plot.scales import PALE
from tests.support.texts import clashes, drawn_texts, notes

GRID = {"r": [1, 2, 4], "eta_Y": [0.1, 0.3, 0.9, 2.7], "N": [5, 9]}
TWO, ONE = ("r", "eta_Y"), ("eta_Y",)


@cache
def members(*names: str) -> Any:
    """An ensemble of reversal.row over the grid of these numbers, five times saved."""
    grid = {name: GRID[name] for name in names}
    return odesim.ensemble("reversal.row", grid=grid, save=5, span=(0.0, 200.0), observe=("loss",), max_events=0)


def values_in(figure: Any) -> Any:
    """What a picture of one panel shows: a map's colours, or the heights of a curve."""
    axes = figure.axes[0]
    meshes: list[Any] = [mesh for mesh in axes.collections if isinstance(mesh, QuadMesh)]
    return np.ma.filled(meshes[0].get_array(), np.nan) if meshes else axes.lines[-1].get_ydata()


@pytest.mark.slow
@pytest.mark.parametrize("axes", [TWO, ONE])
@pytest.mark.parametrize("var", ["v", "loss"])
def test_a_frame_is_the_picture_of_its_time(axes, var):
    """To the bit; the time in words; limits and places are those of every other frame."""
    run, scales = members(*axes), set()
    figure, show = make_frames(film_of_members(run, Choice((var,))))
    for k in (4, 0, 2):
        show(k)
        still = figure_of_ensemble(run, Choice((var,), at=float(run.time[k]), log="none"))
        np.testing.assert_array_equal(np.ravel(values_in(figure)), np.ravel(values_in(still)))
        assert notes(figure)[-1] == f"$t$ = {float(run.time[k]):.4g} (SGD steps)"
        assert clashes(figure, drawn_texts(figure)) == []
        panel = figure.axes[0]
        scales.add((panel.get_xlim(), panel.get_ylim(), panel.get_position().bounds, *(c.get_clim() for c in panel.collections)))
    assert len(scales) == 1


def damaged(*names: str) -> Any:
    """The ensemble, in which member 2 has no value from the third time on, and ended early."""
    run = members(*names).copy(deep=True)
    run["v"][{"member": 2, "time": slice(2, None)}] = np.nan
    run["status"][{"member": 2}] = run.attrs["status_names"].index("max_steps")
    return run


def test_members_without_a_value_are_hatched():
    """A note says what the hatch is, and how many there are at the end; the other cells stay as they are."""
    figure, show = make_frames(film_of_members(damaged(*TWO), Choice(("v",))))
    show(3)
    assert notes(figure)[:2] == ["hatched: no member has a value", "at the end 1 of 12 members without a value: 1 max_steps"]
    assert np.isnan(values_in(figure)).sum() == 1 and figure.axes[0].patch.get_hatch()
    show(1)
    assert np.isfinite(values_in(figure)).all()


def test_a_median_of_those_that_are_left_says_so():
    figure, _ = make_frames(film_of_members(damaged(*ONE), Choice(("v",))))
    assert notes(figure)[0] == "at the end 1 of 4 members without a value: 1 max_steps"


def test_what_a_logarithmic_scale_does_not_have_is_pale():
    """Cells <= 0 are no cells without a value: only those are masked, and hatched."""
    run = damaged(*TWO)
    run["v"][{"member": 5}] = -1.0
    figure, show = make_frames(film_of_members(run, Choice(("v",), log="c")))
    show(3)
    mesh: Any = next(c for c in figure.axes[0].collections if isinstance(c, QuadMesh))
    colors = mesh.cmap(mesh.norm(mesh.get_array())).reshape(-1, 4)
    pale = np.all(np.isclose(colors[:, :3], to_rgb(PALE)), axis=1)
    assert np.ma.count_masked(mesh.get_array()) == 1 and pale.sum() == 1


def test_random_members_are_histograms():
    """Of three numbers that vary: each frame counts all members, in bins and on an axis of all times, as numpy does."""
    film = film_of_members(members(*TWO, "N"), Choice(("v",)))
    figure, show = make_frames(film)
    (steps,) = figure.axes[0].patches
    heights = set()
    for k in (4, 0, 2):
        show(k)
        heights.add(figure.axes[0].get_ylim()[1])
        counts, edges, _ = steps.get_data()  # type: ignore[attr-defined]
        np.testing.assert_array_equal(counts, np.histogram(film.values[k], edges)[0])
        assert counts.sum() == 24 and clashes(figure, drawn_texts(figure)) == []
        assert counts.max() <= max(heights) or "higher bars are cut" in notes(figure)[-2]
    assert len(heights) == 1 and edges[[0, -1]] == pytest.approx([film.values.min(), film.values.max()], rel=1e-9)


REFUSED: dict[str, Any] = {
    "time": (TWO, {"x": "time"}, "a film shows all saved times"),
    "at": (TWO, {"at": 1.0}, "a film shows all saved times"),
    "name": (TWO, {"x": "eta"}, "did you mean 'eta_Y'"),
    "colours": (ONE, {"log": "c"}, "this picture has no colours"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    """One sentence, and nothing is written."""
    grid, given, sentence = REFUSED[case]
    run = members(*grid)
    with pytest.raises(ParamError, match=sentence):
        animate(run, tmp_path / "v.gif", choice=Choice(**given))
    assert not list(tmp_path.iterdir())
