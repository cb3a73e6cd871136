"""The papers' figures: every feature within its tolerance, and picture, data and manifest beside each other."""

import ast
import hashlib
import json
import re
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.text import Text

from odesim.base.errors import StoreError
from odesim.plot.figures import (
    PUBLISHED,
    SCRIPT,
    THEORY,
    Feature,
    FigureRun,
    figures_by_question,
    left_out,
    list_figures,
    load_figure,
    run_figure,
)
from odesim.plot.style import FAINT, INK
from tests.support.matrix import slow_but
from tests.support.notation import ASCII, NUMBER
from tests.support.texts import clashes, drawn_texts

NAMES = list_figures()

QUICK = ["joma_fig4", "scan_snap_attention_frozen", "scan_snap_fig4"]


@pytest.fixture(scope="module", params=slow_but(NAMES, QUICK))
def done(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FigureRun:
    """Each figure, fast, run once."""
    return run_figure(request.param, fast=True, out=tmp_path_factory.mktemp("figures") / "made", formats=("png", "pdf"))


@pytest.fixture(scope="module")
def table(done: FigureRun) -> xr.Dataset:
    """The data of the figure as they are stored."""
    return xr.load_dataset(done.files[0].parent / f"{done.name}.nc", engine="scipy")


@pytest.fixture(scope="module")
def figure(done: FigureRun, table: xr.Dataset) -> Figure:
    """The figure, drawn once from the stored data, which stay as they are."""
    before = table.copy(deep=True)
    figure = load_figure(done.name).draw(table)
    xr.testing.assert_identical(table, before)
    return figure


@pytest.mark.first(1)
def test_features(done: FigureRun) -> None:
    """What the paper's figure shows, ours shows."""
    assert [feature for feature in done.features if not feature.passed] == []
    assert done.passed and len({feature.name for feature in done.features}) == len(done.features) > 5


def test_every_figure_answers_a_question() -> None:
    """Each has one of the questions, no question is without answers, and no figure stands twice."""
    found = figures_by_question()
    assert sorted(name for answers in found.values() for name in answers) == NAMES and all(found.values())


def test_fast_is_said() -> None:
    """Where data(fast) reads `fast`, its docstring says what it has less of, and nowhere else: the pages of figures say it."""
    said = {name: bool(left_out(load_figure(name))) for name in NAMES}
    trees = {name: ast.parse(Path(load_figure(name).__file__).read_text()) for name in NAMES}
    reads = {name: any(isinstance(node, ast.Name) and node.id == "fast" for node in ast.walk(tree)) for name, tree in trees.items()}
    assert said == reads


@pytest.mark.first(1)
def test_files(done: FigureRun) -> None:
    """The manifest holds every feature and the sha256 of pictures and data; the data are those that were judged and drawn."""
    folder = done.files[0].parent
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in done.files)
    manifest = json.loads((folder / f"{done.name}.json").read_text())
    assert manifest["question"] == load_figure(done.name).QUESTION
    assert manifest["figure"] == done.name and manifest["fast"] is True and "Stands beside" in manifest["beside"]
    assert [row["measured"] for row in manifest["features"]] == [feature.measured for feature in done.features]
    assert manifest["versions"]["numpy"] == np.__version__
    assert sorted(manifest["files"]) == [f"{done.name}.nc", f"{done.name}.pdf", f"{done.name}.png"]
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    with xr.open_dataset(folder / f"{done.name}.nc", engine="scipy") as table:
        assert tuple(load_figure(done.name).expected(table)) == done.features


@pytest.mark.first(1)
def test_legible(figure: Figure) -> None:
    """No word on another, none over the edge."""
    assert clashes(figure, drawn_texts(figure)) == []


@pytest.mark.first(1)
def test_no_ascii_mathematics_is_drawn(figure: Figure) -> None:
    """A minus is one, powers stand high, a number has its 0."""
    words = [re.sub(r"\$[^$]+\$", "", text) for text, _ in drawn_texts(figure)]
    assert [text for text in words if ASCII.search(text) or NUMBER.search(text)] == []


@pytest.mark.first(1)
def test_panels_have_letters_and_bars_names(figure: Figure) -> None:
    """Of several panels each has its letter, every colour bar says what it is of, and row 0 of an image is on top."""
    bars = [axes for axes in figure.axes if str(axes.get_label()).startswith("<colorbar")]
    panels = [axes for axes in figure.axes if axes not in bars]
    letters = [axes.get_title(loc="left") for axes in panels]
    assert sorted(letters) == (list(ascii_lowercase)[: len(panels)] if len(panels) > 1 else [""])
    assert all(axes.get_ylabel() for axes in bars)
    assert all(axes.yaxis_inverted() for axes in panels if axes.images)


SEEDS = re.compile(r"(\d+) seeds?\b")


@pytest.mark.first(1)
def test_seeds_are_counted(done: FigureRun, table: xr.Dataset, figure: Figure) -> None:
    """Whatever is drawn or stored beside the data says as many seeds as there are, with --fast too."""
    beside = json.loads((done.files[0].parent / f"{done.name}.json").read_text())["beside"]
    texts = [text.get_text() for text in figure.findobj(Text)]
    found = [int(number) for text in (*texts, beside) for number in SEEDS.findall(text)]
    assert set(found) == ({table.sizes["seed"]} if "seed" in table.sizes else set())


@pytest.mark.first(1)
def test_published_is_what_was_published(done: FigureRun, figure: Figure) -> None:
    """A target is called published where a file of published numbers lies beside the figure, and so is what is drawn."""
    module = load_figure(done.name)
    there = any(Path(module.__file__).with_name("published").glob(f"{done.name}[_.]*csv"))
    origins = {feature.origin for feature in done.features}
    assert (PUBLISHED in origins) is there and origins <= {PUBLISHED, THEORY, SCRIPT}
    words = [*(text.get_text() for text in figure.findobj(Text)), *(feature.name for feature in done.features)]
    assert any("published" in word for word in words) is there


def tiny(name: str) -> xr.Dataset:
    """Made-up numbers in the form of data(): few times, few curves."""
    rng = np.random.default_rng(0)
    if name == "joma_fig2_3":
        curves = {key: (("x", "seed", "iteration"), rng.uniform(-1, 1, (2, 3, 5))) for key in ("NC", "NC_first", "NC_second")}
        images = {key: (("token", "node"), rng.uniform(-1, 1, (4, 3))) for key in ("V_start", "V_end")}
        v0, X = rng.uniform(0, 2, (3, 5, 2)), rng.uniform(0, 1, (4, 2))
        rest = {"v0": (("seed", "iteration", "component"), v0), "X": (("token", "class"), X)}
        return xr.Dataset({**curves, **images, **rest}, {"x": ["gaussian", "random"], "iteration": np.arange(0, 50, 10)})
    if name == "joma_fig4":
        v, s = rng.uniform(0, 3, (6, 2)), rng.uniform(1, 2, 6)
        runs = {"v_euler": v, "v_flow": v[::2], "entropy_euler": s, "entropy_flow": s[::2], "deviation": s[::2] - 1, "mu": v[-1]}
        dims: dict[str, Any] = dict(
            zip(runs, (("iteration", "component"), ("t", "component"), "iteration", "t", "t", "component"), strict=True)
        )
        coords: dict[str, Any] = {"iteration": np.arange(6), "t": 0.02 * np.arange(0, 6, 2), "component": np.arange(2)}
        attrs = {"step": 0.02}
        return xr.Dataset({**{key: (dims[key], value) for key, value in runs.items()}, "entropy_limit": ((), 1.5)}, coords, attrs)
    if name == "scan_snap_fig4":
        loss, c = rng.uniform(1, 2, (2, 3, 5)), rng.uniform(size=(2, 2, 4))
        arrays: dict[str, Any] = {
            "loss": (("eta_Y", "seed", "iteration"), loss),
            "c": (("eta_Y", "row", "token"), c),
            "published": ("logged", [2.0, 1.0]),
            "replayed": ("iteration", rng.uniform(1, 2, 5)),
        }
        coords = {"eta_Y": [1.0, 10.0], "iteration": np.arange(5), "logged": [0, 2], "row": [0, 4], "token": np.arange(4)}
        return xr.Dataset(arrays, coords, {"common": 2})
    if name == "scan_snap_fig6":
        axes, entropy = ("num_last", "eta_Z", "ratio"), rng.uniform(1, 2, (2, 3, 4, 5))
        means = {"mean": (axes, entropy.mean(axis=-1)), "sd": (axes, 0.1 * entropy.std(axis=-1))}
        coords = {"num_last": [1, 3], "eta_Z": [0.5, 1.0, 2.0], "ratio": [1, 2, 5, 10]}
        return xr.Dataset({**means, "entropy": ((*axes, "seed"), entropy)}, coords)
    B = np.sort(rng.uniform(size=(3, 5)), axis=1)
    return xr.Dataset(
        {"B": (("eta", "t"), B), "t0": ("eta", [3.0, 2.0, 1.0]), "B_t0": ("eta", [0.5, 0.5, 0.5])},
        {"eta": [0.5, 1.0, 2.0], "t": np.arange(5.0)},
        {"nu": 1.0, "M": 10},
    )


def curves_of(name: str, table: xr.Dataset) -> Any:
    """The curves (n, time) that the figure must show."""
    if name == "joma_fig2_3":
        return [*table.NC.values.mean(axis=1), *table.v0.values.mean(axis=0).T]
    if name == "scan_snap_fig4":
        return [*np.exp(np.log(table.loss.values).mean(axis=1)), table.published.values, table.replayed.values]
    if name == "scan_snap_fig6":
        return [*table.entropy.values.mean(axis=-1).reshape(-1, 4), *table["mean"].values.reshape(-1, 4)]
    return table.v_euler.values.T if name == "joma_fig4" else table.B.values


MADE_UP = ("joma_fig2_3", "joma_fig4", "scan_snap_attention_frozen", "scan_snap_fig4", "scan_snap_fig6")


def rows_of(table: xr.Dataset) -> set[tuple[float, ...]]:
    """Every row of numbers in a table, along each of its dimensions; of what has seeds, those of the mean over them too."""
    arrays = [v.values for v in table.variables.values() if v.ndim and v.dtype.kind in "if"]
    arrays += [v.mean("seed").values for v in table.values() if "seed" in v.dims]
    return {tuple(row) for a in arrays for axis in range(a.ndim) for row in np.moveaxis(a, axis, -1).reshape(-1, a.shape[axis])}


@pytest.mark.first(2)
def test_curves_are_the_data(done: FigureRun, table: xr.Dataset, figure: Figure) -> None:
    """Each curve in colour, from its first point on, is a row of the data. Grey and black ones are for comparison."""
    if done.name in MADE_UP:
        pytest.skip("test_draw_only_draws has it")
    rows = rows_of(table)
    drawn = [line for axes in figure.axes for line in axes.lines if line.get_color() not in (FAINT, INK)]
    curves = [ys for ys in (tuple(np.asarray(line.get_ydata(), float)) for line in drawn) if len(ys) > 2]
    assert curves and [y for y in curves if not any(y == row[len(row) - len(y) :] for row in rows)] == []


@pytest.mark.first(3)
@pytest.mark.parametrize("name", MADE_UP)
def test_draw_only_draws(name: str) -> None:
    """draw() takes any numbers of the right form, draws each curve as it is and changes none."""
    table = tiny(name)
    before = table.copy(deep=True)
    figure = load_figure(name).draw(table)
    xr.testing.assert_identical(table, before)
    curves = {tuple(np.asarray(line.get_ydata(), float)) for axes in figure.axes for line in axes.lines}
    for curve in curves_of(name, table):
        assert tuple(curve) in curves


def test_a_feature_can_fail() -> None:
    """Off by more than the tolerance, or not a number: not passed."""
    assert Feature("a", 1.0, 1.1, 0.11).passed
    assert not Feature("a", 1.0, 1.2, 0.11).passed
    assert not Feature("a", float("nan"), 1.2, 0.11).passed
    wrong = tiny("scan_snap_attention_frozen").assign_coords(eta=[8.0, 1.0, 0.5])
    assert any(not feature.passed for feature in load_figure("scan_snap_attention_frozen").expected(wrong.reindex(eta=[0.5, 1, 2, 4, 8])))


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such figure": ({"name": "joma_fig44"}, "did you mean 'joma_fig4'"),
    "no such format": ({"formats": ("png", "gif")}, "no picture format 'gif'"),
    "a file in the way": ({"out": "taken"}, "cannot make the folder"),
    "a file above": ({"out": "taken/deeper"}, "cannot make the folder"),
    "a folder in the way": ({"out": "full"}, "is a folder"),
    "a picture as the folder": ({"out": "deeper/x.PNG"}, "not the name of a picture"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, before anything is computed or written."""
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    Path("full/joma_fig4.nc").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(load_figure("joma_fig4"), "data", lambda fast: pytest.fail("computed"))
    given, sentence = REFUSED[case]
    with pytest.raises(StoreError) as caught:
        run_figure(**{"name": "joma_fig4", **given})
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before
