"""The picture of a training: every panel legible, the loss on the axis that suits it, what is drawn of the seeds said above."""

from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.text import Text

from odesim.base.errors import ParamError, StoreError
from odesim.plot.choice import Choice
from odesim.plot.labels import place_names
from odesim.plot.style import SMALL
from odesim.plot.trajectory import MOST, PANELS, figure_of_trajectory
from tests.support.texts import clashes, drawn_texts, has_filled_rows, notes


def run(last: int, seeds: int, end: float, **shapes: tuple[int, ...]) -> xr.Dataset:
    """A training whose loss falls from 3 to end in last iterations, with arrays of these shapes beside it."""
    t = np.linspace(0, last, 51).round().astype(int)
    rng = np.random.default_rng(0)
    noise = 1 + 0.01 * rng.random((seeds, 51))
    variables: dict[str, Any] = {"loss": (("seed", "time"), 3 * (end / 3) ** (t / last) * noise)}
    for name, shape in shapes.items():
        axes = tuple(f"{name}_{k}" for k in range(len(shape)))
        variables[name] = ("seed", "time", *axes), np.cumsum(rng.normal(size=(seeds, 51, *shape)), axis=1)
    said = {"task": "some_task", "model": "net", "status": "ok", "message": ""}
    return xr.Dataset(variables, coords={"seed": np.arange(seeds) + 7, "time": t}, attrs=said)


RUNS = {
    "loss alone": partial(run, 100, 1, 1e-3),
    "a long training": partial(run, 4000, 1, 1e-3, entropy=(), c=(), v=()),
    "seeds and arrays": partial(run, 9999, 8, 2.5, entropy=(2,), c=(3, 29)),
    "a map": partial(run, 2000, 2, 2.9, entropy=(20,), z=()),
    "more than fit": partial(run, 100, 3, 0.1, **{f"x{i}": () for i in range(9)}),
    "rows by number": partial(run, 100, 2, 0.1, Y=(340, 802)),
    "attention to words": partial(run, 100, 3, 0.1, entropy=(6,), c=(6, 90), Z=(2, 90)),
}


DOC = "classes told by their tokens (tian2023scan, Syn-Small), or by a table"
"""A task in a line, as `odesim list --tasks` has it."""


@cache
def training_of(name: str) -> xr.Dataset:
    """The training of this name."""
    return RUNS[name]()


def test_a_training_says_what_its_task_is():
    """Below the title, without the source; a run of an earlier version, which does not say, has no such line."""
    plain = training_of("loss alone")
    assert "Classes told by their tokens, or by a table" in notes(figure_of_trajectory(plain.assign_attrs(doc=DOC)))
    assert notes(figure_of_trajectory(plain)) == []


@pytest.mark.first(2)
@pytest.mark.parametrize("name", RUNS)
def test_legible(name):
    """No word lies on another or leaves the page, none is below 6 points; the title says task, seeds, and what is drawn of them."""
    figure = figure_of_trajectory(training_of(name))
    assert clashes(figure, drawn_texts(figure)) == []
    assert min(float(text.get_fontsize()) for text in figure.findobj(Text)) >= SMALL
    said, count = notes(figure), training_of(name).sizes["seed"]
    assert figure.get_suptitle() == f"some_task (net), {'seed 7' if count == 1 else f'{count} seeds'}"
    entries = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert entries == (["mean of seeds", *["middle half"] * (count >= 8), "range"] if count > 1 else [])
    assert ("arrays: mean over seeds" in said) is (name in ("seeds and arrays", "a map", "attention to words", "rows by number"))
    assert ("not shown: x5, x6, x7, x8" in said) is (name == "more than fit")
    assert has_filled_rows(figure)
    bars = [axes for axes in figure.axes if str(axes.get_label()).startswith("<colorbar")]
    assert all(axes.get_xlabel() for axes in bars)


@pytest.mark.first(1)
@pytest.mark.parametrize("name", RUNS)
def test_numbers_at_the_time_axis_are_apart(name):
    """Between two of them there is at least the width of a digit."""
    figure = figure_of_trajectory(training_of(name))
    figure.draw_without_rendering()
    for axes in figure.axes:
        low, high = axes.get_window_extent().intervalx
        upright = [label for label in axes.get_xticklabels() if label.get_text() and label.get_visible() and not label.get_rotation()]
        found = [label.get_window_extent() for label in upright]
        shown = [box for box in found if low - 1 <= (box.x0 + box.x1) / 2 <= high + 1]
        digit = min((box.height for box in shown), default=0.0) / 2
        assert all(right.x0 - left.x1 >= digit for left, right in pairwise(shown))


@pytest.mark.first(3)
@pytest.mark.parametrize(("end", "scale"), [(1e-3, "log"), (0.299, "log"), (0.31, "linear"), (2.5, "linear")])
def test_loss_axis(end, scale):
    """Logarithmic from one decade on, 3 to 0.299; below it the ticks would stand at odd numbers such as 2.9 x 10^0."""
    quiet = run(100, 1, end)
    quiet["loss"] = quiet.loss.copy(data=3 * (end / 3) ** (quiet.time.values / 100)[None])
    assert figure_of_trajectory(quiet).axes[0].get_yscale() == scale


def test_chosen_scales():
    """Letters of log decide in every panel, for colours too; what is left out is a note, and colours that are not there are refused."""
    case = training_of("attention to words")
    chosen = figure_of_trajectory(case, choice=Choice(log="xyc"))
    assert all((axes.get_xscale(), axes.get_yscale()) == ("log", "log") for axes in chosen.axes if axes.lines)
    meshes = [mesh for axes in chosen.axes for mesh in axes.collections if isinstance(mesh, QuadMesh)]
    norms = [type(mesh.norm) for mesh in meshes if mesh.cmap.N > 1]  # grey cells, <= 0, have no scale
    assert norms and set(norms) == {LogNorm}
    assert any("$t$ = 0, not shown (log)" in note for note in notes(chosen))
    plain = figure_of_trajectory(case, choice=Choice(log="none"))
    assert all((axes.get_xscale(), axes.get_yscale()) == ("linear", "linear") for axes in plain.axes if axes.lines)
    with pytest.raises(ParamError, match="no colours"):
        figure_of_trajectory(case[["loss"]], choice=Choice(log="c"))


def test_what_is_asked_for_alone():
    """A matrix at the end without times, a component that stays 0, and a vector at the end, which is no picture."""
    training = run(100, 3, 0.01, c=(6, 9))
    training["Y"] = training.c.isel(time=-1).rename(c_0="m", c_1="l")
    training["rank"] = training.Y.isel(m=0)
    training["c"][..., 2, 5] = 0.0
    shown = {"Y": Choice(var=("Y",)), "c[2,5]": Choice(var=("c",), index=(2, 5)), "c[2,4]": Choice(var=("c",), index=(2, 4))}
    for name, choice in shown.items():
        (panel,) = (axes for axes in figure_of_trajectory(choice.of_training(training)).axes if axes.get_label() != "<colorbar>")
        assert bool(panel.lines) is (name != "Y")
    with pytest.raises(ParamError, match="rank: recorded at the end only, and no matrix"):
        figure_of_trajectory(Choice(var=("rank",)).of_training(training))


WORDS = {"c_1": [f"word{i}" for i in range(90)], "c_0": [f"after {i}" for i in range(6)]}


@pytest.mark.first(2)
@pytest.mark.parametrize("name", [*reversed(RUNS)])
def test_a_page_is_wider_than_high(name):
    """Of at most six panels, matrices among them; all, where all are asked for; what has none is named once."""
    case = training_of(name)
    figure, whole = figure_of_trajectory(case), figure_of_trajectory(case, choice=Choice(all=True))
    panels, every = ([axes for axes in one.axes if axes.get_label() != "<colorbar>"] for one in (figure, whole))
    assert figure.get_figwidth() > figure.get_figheight() and len(panels) <= PANELS
    assert len(every) == len(case.data_vars) >= len(panels)
    left_out = [word for note in notes(figure) for word in note.split("; ") if word.startswith("not shown: ")]
    names = ", ".join(left_out).removeprefix("not shown: ").split(", ") if left_out else []
    assert len(left_out) <= 1 and len(names) == len(every) - len(panels)


def words_on(axis: Any) -> list[str]:
    """The labels of an axis."""
    return [label.get_text() for label in axis.get_ticklabels()]


def test_attention_has_its_words():
    """The columns are the tokens with most attention, with their words; rows are classes, the first on top; values are means over seeds."""
    case = training_of("attention to words")
    case = case.assign(c=abs(case.c))
    axes = next(axes for axes in figure_of_trajectory(case, WORDS).axes if words_on(axes.xaxis)[:1] and "word" in words_on(axes.xaxis)[0])
    last = case.c.isel(time=-1).mean("seed").values
    columns = [int(word.removeprefix("word")) for word in words_on(axes.xaxis)]
    assert set(columns) == set(np.argsort(-last.max(axis=0))[: MOST[1]].tolist())
    assert words_on(axes.yaxis) == WORDS["c_0"] and axes.yaxis_inverted()
    mesh: Any = axes.collections[0]
    np.testing.assert_allclose(np.asarray(mesh.get_array()), last[:, columns], rtol=1e-12)  # sums in another order


def test_a_constant_has_no_panel():
    """It is a note under the title; what differs between seeds is no constant."""
    case = run(50, 3, 2.5, still=(), other=())
    case["still"][:], case["other"][:] = 0.5, np.arange(3)[:, None]
    figure = figure_of_trajectory(case)
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss", "other"]
    assert "constant: still = 0.5" in notes(figure)
    case["p_least"] = case["still"] / 2
    assert r"constant: still = 0.5, $p_{\mathrm{least}}$ = 0.25" in notes(figure_of_trajectory(case))


@pytest.mark.parametrize(("change", "drawn"), [(1e-13, False), (1e-10, True)])
def test_rounding_is_no_change(change, drawn):
    """What changes by the rounding of a sum is a constant too: its axis would show digits that mean nothing."""
    case = run(50, 2, 2.5, still=())
    case["still"][:] = 1.831 * (1 + change * np.linspace(0, 1, case.sizes["time"]))
    figure = figure_of_trajectory(case)
    assert ("still" in [axes.get_ylabel() for axes in figure.axes]) is drawn is not ("constant: still = 1.831" in notes(figure))


def test_letters_that_the_font_does_not_have():
    """Such a word is the number of its place: boxes would say nothing. Others stay, and no text is a formula."""
    assert place_names(["façade", "東京", "$x", "a_b", "", "は a"]) == ["façade", "#1", "$x", "a_b", "", "#5"]
    figure = figure_of_trajectory(run(20, 1, 0.1, c=(6, 90)), {"c_0": ["は"] * 6, "c_1": ["$5", *["東京"] * 89]})
    figure.draw_without_rendering()  # a missing letter is a warning, which fails


def test_nothing_finite_is_drawn():
    """A loss that is not finite from the start leaves its panel empty and draws the others."""
    lost = run(50, 3, 2.5, c=(2,))
    lost["loss"][:] = np.nan
    figure = figure_of_trajectory(lost)
    lines = [line for line in figure.axes[0].get_lines() if np.size(line.get_xdata())]
    assert figure.axes[0].get_ylabel() == "loss" and not lines and figure.axes[1].get_lines()


def test_no_rows_yet():
    """A training that was stopped before its first row has nothing to draw, which is said."""
    with pytest.raises(StoreError, match="no iteration is recorded yet"):
        figure_of_trajectory(run(50, 3, 2.5).isel(time=slice(0)))


def test_tokens_on_a_circle_are_points():
    """Each on the circle where it is at the end; of columns of their coordinates one would have to read angles. Other matrices are maps."""
    angle = np.linspace(0, 5, 40)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    for size in (1.0, 1.5):
        data = training_of("loss alone")
        data = data.assign(x=(("seed", "i", "a"), np.broadcast_to(size * x, (data.sizes["seed"], 40, 2))))
        panel = figure_of_trajectory(data).axes[1]
        dots = [np.asarray(line.get_xydata())[0] for line in panel.lines if line.get_marker() == "o"]
        assert len(dots) == (40 if size == 1.0 else 0)
        np.testing.assert_allclose(dots, x if size == 1.0 else np.empty(0), atol=1e-12)
