"""Two runs beside each other: their units of time, what is said of them, and what is refused."""

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from sympy import Symbol

import odesim
from odesim.base.errors import ParamError, SpecError, StoreError
from odesim.lab.compare.comparison import title
from odesim.lab.compare.sides import TrainingClock
from odesim.plot.comparison import figure_of_comparison
from tests.support.comparisons import errors
from tests.support.texts import notes

UNITS = ("", "hours", "iterations", "SGD steps")
EVERY = ("relative_l2", "sup", "shift", "shift_worst")


@pytest.fixture(scope="module")
def training():
    """Three seeds of Syn-Small without momentum."""
    return odesim.train("scan_snap", settings={"momentum": 0.0, "eta_Y": 0.3, "eta_Z": 0.3}, seeds=range(3), steps=40)


@pytest.fixture(scope="module")
def flow():
    """The flow at the training's rates, a little further."""
    return odesim.integrate("scan_snap.full", params={"eta_Y": 0.3, "eta_Z": 0.3}, span=(0, 50), save=101, backend="numpy")


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", ["training", "flow"])
def test_a_run_beside_itself(kind, request):
    """Correlation 1, scale 1, no errors and no delay, exactly but for the rounding of sums."""
    run = request.getfixturevalue(kind)
    found = odesim.compare(run, run)
    assert {"loss", "c", "entropy", "Z"} <= set(errors(found))
    for row in found.table():
        assert [row[name] for name in EVERY] == [0, 0, 0, 0], row["observable"]
        assert (row["correlation"], row["scale"]) == pytest.approx((1, 1), abs=1e-12)


@pytest.mark.slow
def test_a_training_beside_an_integration(training, flow, tmp_path):
    """In whichever order, in memory or stored: iterations go on the clock of the flow, at the times of the coarser run."""
    stored = tmp_path / "training.zarr", tmp_path / "flow.zarr"
    given = {"momentum": 0.0, "eta_Y": 0.3, "eta_Z": 0.3}
    odesim.train("scan_snap", settings=given, seeds=range(3), steps=40, out=stored[0])
    from odesim.store.write import write_solution

    write_solution(flow, stored[1])
    found = [odesim.compare(a, b) for a, b in ((training, flow), (flow, training), stored)]
    assert all(errors(one) == errors(found[0]) for one in found)
    assert found[0].t[-1] == 40 and len(found[0].t) == 41
    beside = odesim.compare("scan_snap.full", task="scan_snap", settings=given, seeds=range(3), steps=40)
    for name, error in errors(found[0]).items():
        assert error == pytest.approx(errors(beside)[name], rel=0.02), name  # the stored flow has a tolerance of its own


@pytest.mark.first(2)
@pytest.mark.parametrize("units", [(a, b) for a in UNITS for b in UNITS], ids=str)
def test_two_runs_have_one_unit_of_time_or_a_note(units, flow):
    """Equal units are that of the axis; a unit beside none gives a note and no unit, in the table and in the picture; two are refused."""
    runs = [replace(flow, attrs={**flow.attrs, "time_unit": unit}) for unit in units]
    if all(units) and units[0] != units[1]:
        with pytest.raises(ParamError, match="no common unit of time"):
            odesim.compare(*runs, observables=["loss"])
        return
    found = odesim.compare(*runs, observables=["loss"])
    said = f"only the {'first' if units[0] else 'second'} run has a unit of time, {units[0] or units[1]!r}"
    shown = " ".join(notes(figure_of_comparison(found)))
    for text in (" ".join(found.notes), " ".join(str(found).split()), shown):
        assert (said in text) == (units[0] != units[1])
    assert found.said["unit"] == (units[0] if units[0] == units[1] else "")


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("unit", UNITS)
def test_the_clock_of_a_training_beside_a_flow(unit, momentum, flow, training):
    """Iterations beside a time in iterations are themselves, whatever the momentum; without a unit the clock has a note."""
    mine = replace(flow, model="my.flow", attrs={**flow.attrs, "time_unit": unit})
    trained = replace(training, attrs={**training.attrs, "optimizer": {**training.attrs["optimizer"], "momentum": momentum}})
    if unit == "hours":
        with pytest.raises(ParamError, match="nothing says how much"):
            odesim.compare(mine, trained)
        return
    found = odesim.compare(mine, trained, observables=["loss"])
    clock = TrainingClock(1.0, 0.0 if unit == "iterations" else momentum)
    assert found.said["clock"] == f"{clock}, i the iteration" and found.said["unit"] == unit
    iterations = trained.t[clock.times(trained.t) <= flow.t[-1]]
    np.testing.assert_array_equal(found.t, clock.times(iterations))
    assert ("the time of my.flow has no unit" in " ".join(found.notes)) == (unit == "")


@pytest.mark.slow
def test_units_of_time_are_not_mixed(training, flow):
    """Runs whose times have different units are refused, with both; so is a flow whose unit an iteration says nothing of."""
    other = odesim.integrate("scan_snap.theorem4", span=(0, 50), save=11)
    with pytest.raises(ParamError, match="no common unit of time: it is 'SGD steps' in one and \"the paper's time\" in the other"):
        odesim.compare(odesim.integrate("scan_snap.reduced_symmetric", save=11), other)
    with pytest.raises(ParamError, match="nothing says how much of it an iteration of scan_snap takes"):
        odesim.compare(training, other)
    assert odesim.compare(flow, odesim.integrate("scan_snap.symmetric", save=11)).said["unit"] == "SGD steps"


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"eta_Y": 0.3, "eta_Z": 0.3}, ()),
        ({"eta_Y": 0.3}, ("the integration has other parameters than the training: eta_Z is 1, not 0.3",)),
        (
            {"eta_Y": 0.3, "eta_Z": 0.3, "P": np.full((2, 30), 1 / 30), "M": 50},
            ("the integration has other parameters than the training: P, M is 50, not 34",),
        ),
    ],
)
def test_parameters_of_another_training_are_said(params, said, training):
    """An integration with the training's parameters is theory of it without a word; of others a sentence says which."""
    found = odesim.compare(training, odesim.integrate("scan_snap.full", params=params, span=(0, 50), save=51, backend="numpy"))
    assert found.doubts == said and all(sentence in " ".join(str(found).split()) for sentence in said)


def test_what_a_comparison_gives(training, flow):
    """worst() is the row of the largest error; a dataset holds both sides; the text fits in 80 columns."""
    found = odesim.compare(training, flow)
    assert found.worst()["relative_l2"] == max(errors(found).values())
    dataset = found.to_xarray()
    assert dataset["c_training"].shape == (3, 41, 2, 30) and dataset["c_theory"].shape == (41, 2, 30)
    assert max(map(len, str(found).splitlines())) < 80
    lines, each = str(found).splitlines(), found.table()[-1]["each"]["correlation"]
    beside = {line.split()[1]: float(line.split()[2]) for line in lines if line.startswith("  seeds: ")}  # of the last observable
    np.testing.assert_allclose([beside[word] for word in ("least", "median", "most")], np.quantile(each, (0, 0.5, 1)), atol=5e-6)
    assert found.table()[0]["each"]["sup"].shape == (3,) and "scan_snap" in repr(found)
    page = ElementTree.fromstring(found._repr_html_())
    assert [line[0].text or line[0][0].text for line in page.iter("tr")][1:] == [title(row) for row in found.table()]
    assert found == found and found != odesim.compare(training, flow) and len({found, found}) == 1


@pytest.mark.parametrize(
    ("metric", "said"),
    [("relative_l2", "loss: relative_l2 is 0.25, farther than 0.1 from 0"), ("scale", "loss: scale is 0.75, farther than 0.1 from 1")],
)
def test_what_fails_is_said(metric, said):
    """A sentence has the value, the bound, and the value of no difference; a curve of 3/4 the height has error 1/4, scale 3/4."""
    t = np.arange(3.0)
    sides = {"loss": np.array([[4.0, 2.0, 1.0]])}, {"loss": np.array([[3.0, 1.5, 0.75]])}
    found = odesim.Comparison(t, *sides, {"loss": ()}, {"theory": "a", "training": "b"}, (0,))
    assert found.passed({"loss": {metric: 0.1}}).failed == (said,) and found.passed({"loss": {metric: 0.25}})


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"los": {"sup": 1}}, "no observable 'los' in the comparison.*did you mean 'loss'"),
        ({"loss": {"supp": 1}}, "no metric 'supp'.*did you mean 'sup'"),
        ({}, "one bound at least"),
    ],
)
def test_bounds_must_be_of_something(bounds, said, flow):
    """A bound on nothing is no bound that was kept."""
    with pytest.raises(ParamError, match=said):
        odesim.compare(flow, flow).passed(bounds)


def test_what_is_no_number_does_not_pass(training):
    """The spread of seeds beside themselves is not defined, and a bound on it fails."""
    found = odesim.compare(training, training)
    assert np.isnan(found.table()[0]["spread"]) and not found.passed({"loss": {"spread": 1e9}})


@pytest.mark.parametrize(
    ("first", "given", "said"),
    [
        ("scan_snap.full", {}, r"needs a model and a task \(--task\) or data \(--data\), or two stored runs"),
        ("scan_snap.full", {"other": "x", "task": "scan_snap"}, "one model, or two runs"),
        ("scan_snap.full", {"other": "x", "seeds": 3}, "seeds belongs to a training, and no task is given"),
        ("scan_snap.full", {"task": "scan_snap", "map": "flaw"}, "no map 'flaw'; .*did you mean 'flow'"),
        ("scan_snap.full", {"task": "scan_snap", "clock": "limits"}, "no clock 'limits'; .*did you mean 'limit'"),
        (
            "scan_snap.theorem4",
            {"task": "scan_snap"},
            "no model 'scan_snap.theorem4' in the theory of scan_snap; choose from scan_snap.full, ",
        ),
        (
            "scan_snap.full",
            {"task": "joma_gaussian"},
            "no model 'scan_snap.full' in the theory of joma_gaussian; choose from joma.joint_exp, ",
        ),
        (
            "scan_snap.full",
            {"task": "hops", "settings": {"optimizer": "sgd"}},
            "no System describes hops, whatever its settings",
        ),
        (
            "classics.committee",
            {"task": "committee", "settings": {"batch": 2, "optimizer": "adam"}},
            "does not describe this training of committee: the optimizer is adam, not sgd or momentum; batch is 2, not 1$",
        ),
        (
            "topics.full",
            {"task": "topics", "settings": {"keys": "unmasked", "loss": "cross_entropy"}},
            "does not describe this training of topics: keys is unmasked, not all; loss is cross_entropy, not squared$",
        ),
        ("topics.reduced", {"task": "topics"}, "init is normal, not symmetric"),
        ("classics.committee", {"task": "committee", "map": "discrete", "settings": {"N": 9}}, "has no discrete map"),
        ("scan_snap.full", {"task": "scan_snap", "observables": ["entrpy"]}, "no observable 'entrpy' in both.*did you mean 'entropy'"),
        ("scan_snap.full", {"task": "scan_snap", "align": ["q"], "steps": 10**7}, "no axis 'q'.*choose from"),  # before the training
        ("scan_snap.full", {"task": "scan_snap", "steps": 0}, "nothing to compare"),
        ("scan_snap.full", {"task": "scan_snap", "settings": {"optimizer": "adam"}}, "the optimizer is adam, not sgd or momentum"),
        ("scan_snap.symmetric", {"task": "scan_snap", "settings": {"init": "torch"}}, "init is torch, not zero"),
        (
            "scan_snap.full",
            {"task": "scan_snap", "settings": {"init": "torch", "num_common": 0}},
            "does not describe this training of scan_snap: init is torch, and no token is of two classes$",
        ),
        (
            "scan_snap.symmetric",
            {"task": "scan_snap", "settings": {"init": "torch", "optimizer": "adam", "normalize": False}},
            "the optimizer is adam, .*; init is torch, .*; normalize is false, not true",
        ),
        (
            "scan_snap.reduced_symmetric",
            {"task": "scan_snap", "map": "discrete", "settings": {"decoder": "decorrelated"}},
            "has no discrete map",
        ),
    ],
)
def test_refusals(first, given, said):
    """One sentence that names the thing, the choices and the nearest spelling."""
    with pytest.raises(ParamError, match=said):
        odesim.compare(first, **given)


@pytest.mark.slow
def test_runs_that_have_nothing_in_common(training, flow, tmp_path):
    """Another System's run, another time, no run at all."""
    other = odesim.integrate("joma.linear", save=5)
    with pytest.raises(ParamError, match="no observable in common: one run has entropy, v, the other B"):
        odesim.compare(other, odesim.integrate("scan_snap.theorem4", save=5))
    late = odesim.integrate("scan_snap.full", span=(60, 70), save=5)
    with pytest.raises(ParamError, match="no overlap in time: one run goes from 60 to 70, the other from 0 to 40"):
        odesim.compare(training, late)
    with pytest.raises(StoreError, match="no run"):
        odesim.compare(tmp_path / "x.zarr", flow)
    with pytest.raises(ParamError, match="not a run"):
        odesim.compare(flow, task="scan_snap")
    with pytest.raises(ParamError, match="not int"):
        odesim.compare(flow, 3)  # type: ignore[arg-type]


def test_a_system_with_noise_has_a_path_for_each_seed():
    """The theory of a seed is the path of that seed; gradient descent with noise is refused."""
    plain = odesim.load_model("scan_snap.symmetric")
    noisy = replace(plain, noise={key: {Symbol("B"): 0.1} for key in list(plain.equations)[:1]}, step=1.0, events=())
    given: dict[str, Any] = {"task": "scan_snap", "settings": {"momentum": 0.0}, "seeds": [3, 5], "steps": 4}
    found = odesim.compare(noisy, **given, observables=["loss"]).to_xarray().loss_theory
    one, other = found.sel(seed=3).values, found.sel(seed=5).values
    assert found.sizes["seed"] == 2 and one[0] == other[0] and np.all(one[1:] != other[1:])
    with pytest.raises(SpecError, match="has noise, which descent"):
        odesim.compare(noisy, **given, map="discrete")


def test_large_rows_are_fewer(monkeypatch):
    """Where nobody says how often, a comparison records what fits its room: as if that number was asked for."""
    monkeypatch.setattr("odesim.lab.compare.runs.ROOM", 1)
    asked: dict[str, Any] = {"task": "scan_snap", "settings": {"momentum": 0.0}, "steps": 40}
    few, same, more = (odesim.compare("scan_snap.full", save=save, **asked) for save in (None, 20, 30))
    assert len(few.t) == 20 and len(more.t) == 30 and errors(few) == errors(same) != errors(more)
    monkeypatch.setattr("odesim.base.device.free_bytes", lambda: 1)
    with pytest.raises(ParamError, match=r"a comparison at 30 iterations of .* more than the 1e-09 GB that are free"):
        odesim.compare("scan_snap.full", save=30, **asked)
