"""What `odesim plot` can be asked, and what is refused in a sentence."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.text import Text

import odesim
from odesim.base.errors import ParamError, nearest
from odesim.plot.choice import Choice
from odesim.plot.ensemble import figure_of_ensemble
from odesim.plot.scales import color_scale
from odesim.plot.style import SMALL
from tests.support.texts import clashes, drawn_texts

STATUSES = ["ok", "event", "blow_up"]
MU, START = np.linspace(0.5, 2.5, 7), np.logspace(-3, -1, 5)


def grid(times: Any = (0.0, 1.0, 2.0), *, failed: int = 0, names: str = "mu v", components: int = 3) -> xr.Dataset:
    """Members over mu and a start of v, v[l] = (mu + start)(1 + l) t; the last `failed` ones blow up at t = 1.5."""
    t = np.array(times)
    mu, start = (side.ravel() for side in np.meshgrid(MU, START, indexing="ij"))
    v = (mu + start)[:, None, None] * np.arange(1, components + 1) * t[None, :, None]
    status = np.zeros(len(mu), np.int8)
    status[len(mu) - failed :] = STATUSES.index("blow_up")
    v[status > 0] = np.where(t[:, None] <= 1.5, v[status > 0], np.nan)
    data: dict[str, Any] = {"v": (("member", "time", "l"), v), "gap": (("member", "time"), v[..., 0] - 1)}
    data |= {"status": ("member", status), "t_end": ("member", np.where(status > 0, 1.5, t[-1]))}
    coords: dict[str, Any] = {"mu": ("member", mu), "v_start": ("member", start)}
    coords = {name: value for name, value in coords.items() if name[:2].strip("_") in names.split()}
    attrs = {"model": "my.grid", "states": ["v"], "observables": ["gap"], "status_names": STATUSES, "time_unit": "s"}
    return xr.Dataset(data, {"time": t, **coords}, attrs)


def notes(figure: Any) -> str:
    """Title and notes in one line."""
    return " ".join([figure.get_suptitle(), *(text.get_text() for text in figure.texts)]).replace("\n", " ")


def test_two_numbers_are_a_map():
    """A cell for each pair has the value at the end; the axis of geometric points is logarithmic, the other one linear."""
    run = grid()
    figure = figure_of_ensemble(run, Choice(var=("v",), index=(2,)))
    axes = figure.axes[0]
    mesh: Any = next(c for c in axes.collections if isinstance(c, QuadMesh))
    want = run["v"].values[:, -1, 2].reshape(len(MU), len(START)).T
    np.testing.assert_array_equal(np.ma.getdata(mesh.get_array()), want)
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    assert axes.get_xlabel() == r"$\mu$" and axes.get_ylabel() == "$v$ at the start"


def test_a_map_does_not_depend_on_the_order_of_members():
    """Shuffled members, the same cells."""
    run = grid(failed=6)
    other = run.isel(member=np.random.default_rng(0).permutation(run.sizes["member"]))
    cells = []
    for each in (run, other):
        mesh: Any = figure_of_ensemble(each, Choice(var=("gap",))).axes[0].collections[0]
        cells.append(np.ma.filled(mesh.get_array(), -1.0))
    np.testing.assert_array_equal(cells[0], cells[1])


def test_members_without_a_value_are_hatched_and_counted():
    """9 of 35 blow up: as many cells are masked, hatched and counted; at a time before, none is."""
    run = grid(failed=9)
    figure = figure_of_ensemble(run, Choice(var=("gap",)))
    mesh: Any = figure.axes[0].collections[0]
    assert np.ma.getmaskarray(mesh.get_array()).sum() == 9
    area = sum(float(np.ptp(np.asarray(c.get_paths()[0].vertices)[:, 0])) for c in figure.axes[0].collections[1:])
    step = MU[1] - MU[0]
    assert all(c.get_hatch() for c in figure.axes[0].collections[1:]) and area == pytest.approx(9 * step)
    assert "hatched: 9 of 35 members without a value: 9 blow_up" in notes(figure)
    before = figure_of_ensemble(run, Choice(var=("gap",), at=1.1))
    assert "hatched" not in notes(before) and "$t$ = 1" in notes(before)


def test_negative_values_are_dotted():
    """Of both signs, the cells below 0 are dotted and a note says so: colours whose ends are both dark show no sign in grey."""
    run = grid()
    run["gap"] = run["gap"] - 2
    figure = figure_of_ensemble(run, Choice(x="mu", y="v_start", var=("gap",)))
    (dots,) = (np.asarray(c.get_offsets()) for c in figure.axes[0].collections if isinstance(c, PathCollection))
    below = run["gap"].values[:, -1] < 0
    assert 0 < below.sum() < 35
    wanted = np.stack([run["mu"].values, run["v_start"].values], axis=1)[below]
    np.testing.assert_allclose(dots[np.lexsort(dots.T)], wanted[np.lexsort(wanted.T)], rtol=1e-12)  # the middles of their cells
    assert "dotted: values < 0" in notes(figure) and "dotted" not in notes(figure_of_ensemble(grid(), Choice(var=("gap",))))


def test_points_that_form_no_grid_are_points():
    """Random pairs: a point for each member with a value, a cross for each without, all counted."""
    run = grid(failed=9)
    random = np.random.default_rng(3).random((2, run.sizes["member"]))
    run = run.assign_coords(mu=("member", random[0]), v_start=("member", random[1]))
    figure = figure_of_ensemble(run, Choice(var=("gap",)))
    sizes = [len(np.asarray(c.get_offsets())) for c in figure.axes[0].collections if isinstance(c, PathCollection)]
    assert sizes == [26, 9] and "× 9 of 35" in notes(figure)


def test_one_number_is_a_curve_with_the_quantiles_of_those_that_share_it():
    """Five members share a value of mu: the line is their median, the band their middle 80 %."""
    run = grid(names="mu")
    line = figure_of_ensemble(run, Choice(var=("gap",))).axes[0].lines[0]
    by_mu = run["gap"].values[:, -1].reshape(len(MU), len(START))
    np.testing.assert_allclose(np.asarray(line.get_xdata(), float), MU)
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), np.median(by_mu, axis=1), rtol=1e-14)
    band = figure_of_ensemble(run, Choice(var=("gap",))).axes[0].collections[0].get_paths()[0].vertices
    assert np.asarray(band)[:, 1].max() == pytest.approx(np.quantile(by_mu[-1], 0.9), rel=1e-12)


@pytest.mark.parametrize("var", ["gap", "v"])
def test_members_without_a_value_are_counted_at_each_place(var):
    """9 of 35 blow up, at the two largest of mu: `4×` and `5×` above the panel, where the note says what they are."""
    figure = figure_of_ensemble(grid(failed=9), Choice(x="mu", var=(var,)))
    axes = figure.axes[0]
    counts = {float(t.get_position()[0]): t.get_text() for t in axes.texts if "×" in t.get_text()}
    assert counts == {MU[-2]: "4×", MU[-1]: "5×"} and "× 9 of 35 members without a value" in notes(figure)
    assert all(t.get_position()[1] > 1 for t in axes.texts if "×" in t.get_text())


@pytest.mark.parametrize("name", ["mu", "v"])
def test_the_outer_dots_are_whole(name):
    """The axis has room for half a dot on both sides, linear or logarithmic."""
    figure = figure_of_ensemble(grid(names=name), Choice(var=("gap",)))
    axes = figure.axes[0]
    xs = np.asarray(axes.lines[0].get_xdata(), float)
    box, half = axes.get_window_extent(), 0.5 * 2.5 / 72 * figure.dpi
    ends = axes.transData.transform([[xs[0], 0.5], [xs[-1], 0.5]])[:, 0]
    assert axes.lines[0].get_marker() == "o" and box.x0 + half <= ends[0] < ends[1] <= box.x1 - half


def test_zipped_numbers_are_named_on_the_axis():
    """The first of them is the axis, of a map and of a curve; its label names the other one."""
    run = grid().assign_coords(nu=("member", grid()["mu"].values ** 2))
    for name, design in (("mu", "zip"), ("nu", "zip"), ("v_start", "grid")):
        run[name].attrs["design"] = design
    figure = figure_of_ensemble(run, Choice(var=("gap",)))
    assert {figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()} == {r"$\mu$ (with $\nu$)", "$v$ at the start"}
    assert figure_of_ensemble(run, Choice(x="nu")).axes[0].get_xlabel() == r"$\nu$ (with $\mu$)"


WRONG = {
    "name": (Choice(var=("vv",)), "no stored state or observable 'vv' in my.grid; choose from gap, v; did you mean 'v'?"),
    "index": (Choice(var=("v",), index=(3,)), "index 3 is outside v, whose shape is (3): choose 0 to 2"),
    "index of a number": (Choice(var=("gap",), index=(0,)), "index 0 has 1 number, and gap is one number without an index"),
    "axes of an index": (Choice(var=("v",), index=(0, 1)), "index 0,1 has 2 numbers, and v has 1 axis"),
    "time": (Choice(at=7.0), "at = 7 is outside the saved times, which go from 0 to 2"),
    "x": (Choice(x="nu"), "no varied number (x) 'nu' in my.grid; choose from mu, time, v_start; did you mean 'mu'?"),
    "x with an index": (Choice(x="mu[0]"), "x = 'mu[0]' is not one number of mu"),
    "y alone": (Choice(y="mu"), "y = 'mu' needs x too"),
    "x is y": (Choice(x="mu", y="mu"), "x and y are both 'mu'"),
    "time twice": (Choice(x="time", at=1.0), "x = 'time' shows all times"),
    "scale": (Choice(log="z"), "log takes letters of x, y and c (colours), each once, or none, not 'z'"),
    "scale twice": (Choice(log="xx"), "log takes letters of x, y and c (colours), each once, or none, not 'xx'"),
    "log of an axis of both signs": (Choice(x="gain", log="x"), "log x: gain goes down to -1, and a logarithmic axis needs values > 0"),
    "log of a map's axis from 0": (Choice(x="mu", y="gain", log="y"), "log y: gain goes down to -1"),
    "log of colours without a map": (Choice(x="time", log="c"), "log c: this picture has no colours"),
}


def test_a_number_that_no_member_has_is_refused():
    """NaN in every member is no axis."""
    run = grid().assign_coords(mu=("member", np.full(len(MU) * len(START), np.nan)))
    with pytest.raises(ParamError, match="x = 'mu' is finite in no member"):
        figure_of_ensemble(run, Choice(x="mu"))


@pytest.mark.parametrize("wrong", WRONG)
def test_what_the_run_does_not_have_is_one_sentence(wrong):
    """The value, the choices and the nearest spelling."""
    choice, sentence = WRONG[wrong]
    run = grid()
    with pytest.raises(ParamError) as raised:
        figure_of_ensemble(run if "log" not in wrong else run.assign_coords(gain=run["mu"] - 1.5), choice)
    assert sentence in str(raised.value)


LEFT_OUT = {  # gap of 7 x 5 members, or medians over those with one mu, or over all members at three times
    "map": (Choice(x="mu", y="v_start", var=("gap",), at=1.0, log="c"), "gap: 10 of 35 values ≤ 0, not shown (log)"),
    "curve": (Choice(x="mu", var=("gap",), at=1.0, log="y"), "gap: 2 of 7 values ≤ 0, not shown (log)"),
    "bands": (Choice(x="time", var=("gap",), log="y"), "gap: 1 of 3 values ≤ 0, not shown (log) gap: the band reaches values ≤ 0"),
    "time": (Choice(x="time", var=("gap",), log="x"), "$t$ = 0, not shown (log)"),
    "nothing positive": (Choice(x="time", var=("loss",), log="y"), "loss: no value > 0, so that its axis is linear"),
    "no colour": (Choice(var=("loss",), log="c"), "loss: no value > 0, so that its colours are linear"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_values_without_a_logarithm_are_left_out_and_counted(case):
    """Of a logarithmic scale for values, and of one for time; no line goes to the foot of the panel."""
    run = grid()
    run["loss"] = -1 - run["gap"] ** 2
    run.attrs["observables"] = ["gap", "loss"]
    choice, sentence = LEFT_OUT[case]
    figure = figure_of_ensemble(run, choice)
    assert sentence in notes(figure)
    axes = figure.axes[0]
    if axes.get_yscale() == "log" and case != "map":
        heights = np.asarray(axes.lines[0].get_ydata(), float)
        assert np.isnan(heights).sum() == int(sentence[5]) and np.nanmin(heights) > 0
    if case == "map":
        mesh: Any = axes.collections[0]
        assert (mesh.get_array() < mesh.norm.vmin).sum() == 10  # pale


@pytest.mark.parametrize(
    ("values", "shown", "beyond"),
    [
        ([*range(20), 5e5], (0, 19), "1 of 21 values beyond the colours (up to 5e+05)"),
        ([*range(20), -5e5], (0, 19), "1 of 21 values beyond the colours (down to -5e+05)"),
        ([*range(40), -5e5, 7e5], (0, 39), "2 of 42 values beyond the colours (-5e+05 to 7e+05)"),
        ([*range(20), 150], (0, 150), ""),  # all are seen
        ([0.0] * 20 + [1.0], (0, 1), ""),  # two colours
        ([*range(10), *[5e5] * 5], (0, 5e5), ""),  # a third is not few
    ],
)
def test_few_far_values_do_not_make_all_others_one_colour(values, shown, beyond):
    """They have the colour at the end of a pointed bar, and are counted."""
    scale = color_scale(np.array(values, float), "w", False, robust=True)
    assert (scale.norm.vmin, scale.norm.vmax) == shown
    assert [note.removeprefix("w: ") for note in scale.notes] == [beyond] * bool(beyond) and (scale.extend == "neither") is not bool(beyond)


RIGHT = {
    "map": Choice(),
    "map of v": Choice(x="v", y="mu", var=("v",)),
    "curve": Choice(x="mu"),
    "bands": Choice(x="time"),
    "at": Choice(at=0.9, var=("v",), index=(1,)),
    "log": Choice(log="xyc"),
    "log of values": Choice(x="time", log="xy"),
    "linear": Choice(log="none"),
}


@pytest.mark.first(1)
@pytest.mark.parametrize(("right", "failed"), [*((right, 9) for right in RIGHT), ("map", 0), ("map", 35), ("curve", 35)])
def test_legible(right, failed):
    """No word on another or over the edge, none below 6 points, and at most two lines of title."""
    figure = figure_of_ensemble(grid(failed=failed), RIGHT[right])
    assert clashes(figure, drawn_texts(figure)) == []
    assert min(float(text.get_fontsize()) for text in figure.findobj(Text)) >= SMALL
    assert figure.get_suptitle().count("\n") < 2


def test_losses_and_entropies_are_first():
    """On a page that nobody chose; names that were given keep their order."""
    names = ["v", "entropy", "Z", "train_loss", "S"]
    assert Choice().page(names, 3) == (["train_loss", "entropy", "v"], ["Z", "S"])
    assert Choice(tuple(names)).page(names, 3)[0] == names[:3]


def test_words_that_a_call_does_not_have_are_refused():
    """Keywords of runs and of pictures; a name that is only a little alike is not suggested."""
    run = odesim.integrate("particles.two_clusters", span=(0.0, 1.0))
    with pytest.raises(ParamError, match=r"no argument 'vars' in plot\(\); choose from .*did you mean 'var'"):
        run.plot(vars="r")  # type: ignore[call-arg]
    with pytest.raises(ParamError, match=r"no argument 'sensitivity' in integrate\(\).*did you mean 'sensitivities'"):
        odesim.integrate("particles.two_clusters", sensitivity="beta")  # type: ignore[call-arg]
    assert not nearest("nothere", ["theorem4"]) and nearest("theorem", ["theorem4"])
