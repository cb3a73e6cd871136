"""Theory beside training: what theory is exact for has no error, what it is the limit of has one of known order."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import odesim
from odesim.comparison.clock import TrainingClock
from odesim.comparison.table import title
from odesim.errors import ParamError, StoreError
from odesim.plot.comparison import figure_of_comparison
from odesim.reference.protocols import Experiment
from odesim.reference.tasks.scan_snap import ScanSnap, population_batch
from tests.support.texts import notes

# Syn-Small of tian2023scan: ten common tokens, ten of each of two classes
SMALL = np.zeros((2, 30))
SMALL[:, :10] = 1
SMALL[0, 10:20] = SMALL[1, 20:] = np.linspace(0.1, 1, 10)
SMALL /= SMALL.sum(axis=1, keepdims=True)
POPULATION = {"P": SMALL, "M": 34}
JOMA = {"attention": "exp", "signal": "fixed", "temperature": 1.0, "num_distinct": 4, "num_common": 2, "init_scale": 0.3}
# after four of e, f, g comes "on land", after four of b, c, d "on sea"; x is in both
DRAWN = np.random.default_rng(3)
WORDS = [
    [*DRAWN.choice([*side, "x"], 4, p=[0.5, 0.2, 0.2, 0.1]).tolist(), "on", ("land", "sea")[side == "bcd"]] for side in ("efg", "bcd") * 60
]
TEXT = " ".join(word for line in WORDS for word in line)
LAYERS = {"K1": 6, "K2": 4, "num_classes": 6, "n0": 5, "n1": 6, "vocabulary": 10}
UNITS = ("", "hours", "iterations", "SGD steps")
EVERY = ("relative_l2", "sup", "shift", "shift_worst")


def errors(comparison: odesim.Comparison) -> dict[str, float]:
    """{observable: relative L2}."""
    return {row["observable"]: row["relative_l2"] for row in comparison.table()}


@pytest.fixture(scope="module")
def training():
    """Three seeds of Syn-Small without momentum."""
    return odesim.train("scan_snap", settings={"momentum": 0.0, "eta_Y": 0.3, "eta_Z": 0.3}, seeds=range(3), steps=40)


@pytest.fixture(scope="module")
def flow():
    """The flow at the training's rates, a little further."""
    return odesim.integrate("scan_snap.full", params={"eta_Y": 0.3, "eta_Z": 0.3}, span=(0, 50), save=101)


@pytest.mark.parametrize("kind", ["training", "flow"])
def test_a_run_beside_itself(kind, request):
    """Correlation 1, scale 1, no errors and no delay, exactly but for the rounding of sums."""
    run = request.getfixturevalue(kind)
    found = odesim.compare(run, run)
    assert {"loss", "c", "entropy", "Z"} <= set(errors(found))
    for row in found.table():
        assert [row[name] for name in EVERY] == [0, 0, 0, 0], row["observable"]
        assert (row["correlation"], row["scale"]) == pytest.approx((1, 1), abs=1e-12)


def test_population_descent_is_the_discrete_map():
    """In infinite contexts descent with momentum is the map on the System's own right-hand side: Y, Z and all else to rounding.

    Loss 2.2277 after two steps and winning weight 0.1623 after a hundred: an independent numpy program without classes or counts.
    """
    found = odesim.compare("scan_snap.full", task="scan_snap", settings=POPULATION, map="discrete")
    assert set(errors(found)) == {"loss", "loss_batch", "c", "entropy", "entropy_distinct", "Y", "Z"}
    assert found.passed({name: {"relative_l2": 1e-12} for name in errors(found)})
    assert found.theory["loss"][0, 2] == pytest.approx(2.2277, abs=5e-5)
    assert found.theory["c"][0, -1, 0, 19] == pytest.approx(0.1623, abs=5e-5)


@pytest.mark.parametrize("attention", ["exp", "linear", "softmax"])
def test_joint_descent_is_the_discrete_map(attention):
    """Descent on V, Xi and Z of a JoMA block is the map on the System's own right-hand side, seed by seed, with momentum: to rounding."""
    given = {**JOMA, "num_classes": 3, "attention": attention, "signal": "ce", "temperature": 0.7, "eta_z": 0.03, "momentum": 0.4}
    asked: dict[str, Any] = {"observables": ["loss", "entropy", "V", "Xi", "Z", "attention"], "seeds": range(2), "steps": 30}
    found = odesim.compare(f"joma.joint_{attention}", task="joma_gaussian", settings=given, map="discrete", **asked)
    assert found.passed({name: {"relative_l2": 1e-12} for name in asked["observables"]})
    assert found.theory["attention"].shape == (2, 31, 3, 6) and np.abs(np.diff(found.theory["Xi"], axis=1)).max() > 1e-4


def test_decorrelated_descent_is_the_discrete_map():
    """As above for scan_snap.full_decorrelated, whose training solves for the decorrelated gradient: to rounding."""
    given = {**POPULATION, "decoder": "decorrelated"}
    found = odesim.compare("scan_snap.full_decorrelated", task="scan_snap", settings=given, steps=30, map="discrete")
    assert set(errors(found)) == {"loss", "loss_batch", "c", "entropy", "entropy_distinct", "Y", "Z"}
    assert found.passed({name: {"relative_l2": 1e-12} for name in errors(found)})


class InfiniteContexts(ScanSnap):
    """The task, with the gradient of the population in the place of its batches: from any start, as given tables have it from 0."""

    def make(self, values: Mapping[str, Any], **options: Any) -> Experiment:
        return replace(super().make(values, **options), stream=population_batch)


@pytest.mark.parametrize("rng", ["numpy", "official"])
def test_random_starts_are_those_of_the_discrete_map(rng):
    """Every seed's map begins at its own Y and Z and stays with its descent in infinite contexts, every column of Y too: to rounding."""
    given: dict[str, Any] = {"init": "torch", "rng": rng, "num_next_per_last": 2, "num_common": 4, "num_unique_per_next": 3, "num_last": 3}
    found = odesim.compare("scan_snap.full", task=InfiniteContexts(), settings=given, seeds=(1, 4), steps=30, map="discrete")
    assert set(errors(found)) == {"loss", "loss_batch", "c", "entropy", "entropy_distinct", "Y", "Z"}
    assert found.passed({name: {"relative_l2": 1e-12} for name in errors(found)})
    assert found.theory["Y"].shape == (2, 31, 22, 31) and found.theory["c"].shape == (2, 31, 6, 22)
    starts = found.theory["Y"][:, 0]
    assert np.all(np.abs(starts).max(axis=(1, 2)) > 0.9 * 31**-0.5) and not np.allclose(*starts)


@pytest.mark.parametrize(
    ("system", "task", "settings", "rates", "time"),
    [
        ("scan_snap.full", "scan_snap", {**POPULATION, "momentum": 0.0}, ("eta_Y", "eta_Z"), 12.0),
        ("scan_snap.full", "scan_snap", {**POPULATION, "momentum": 0.5}, ("eta_Y", "eta_Z"), 12.0),
        (
            "scan_snap.full",
            "corpus",
            {"contexts": "infinite", "text": TEXT, "vocabulary": 11, "num_next": 2, "length": 5},
            ("eta_Y", "eta_Z"),
            8.0,
        ),
        ("joma.linear", "joma_gaussian", {**JOMA, "num_classes": 1}, ("eta",), 2.0),
        ("joma.linear_multinode", "joma_gaussian", {**JOMA, "num_classes": 3}, ("eta",), 2.0),
        ("hierarchy.multilayer", "hierarchy_layers", LAYERS, ("eta",), 4.0),
        ("joma.joint_softmax", "joma_gaussian", {**JOMA, "num_classes": 3, "attention": "softmax", "signal": "ce"}, ("eta",), 2.0),
    ],
)
def test_descent_tends_to_the_flow(system, task, settings, rates, time):
    """Half the learning rate, half the error, in every observable: the order is 1, up to terms of the second order (15 %)."""
    etas = 0.1, 0.05
    seeds = range(2) if task in ("joma_gaussian", "hierarchy_layers") else (0,)
    found = [
        errors(odesim.compare(system, task=task, settings={**settings, **dict.fromkeys(rates, eta)}, steps=round(time / eta), seeds=seeds))
        for eta in etas
    ]
    for name in found[0]:
        assert found[0][name] / found[1][name] == pytest.approx(2, rel=0.15), name
        assert found[1][name] < 0.05


@pytest.mark.parametrize(
    ("task", "settings"), [("scan_snap", {}), ("corpus", {"text": TEXT, "vocabulary": 11, "num_next": 2, "length": 5})]
)
def test_theory_is_held_against_the_loss_of_infinite_contexts(task, settings):
    """That of the batch, where contexts are drawn or of a text, has a row of its own, and both say what they are.

    Y and Z are compared when they are asked for.
    """
    found = odesim.compare("scan_snap.full", task=task, settings=settings, steps=5, observables=["loss", "loss_batch", "Z", "Y"])
    same = odesim.train(task, settings=settings, steps=5)
    assert np.array_equal(found.training["loss"], same.observables["loss_population"])
    assert np.array_equal(found.training["loss_batch"], same.observables["loss"])
    assert np.array_equal(found.theory["loss"], found.theory["loss_batch"]) and set(errors(found)) == {"loss", "loss_batch", "Z", "Y"}
    meanings = [row["meaning"] for row in found.table()]
    assert "loss_population" in meanings[0] and "batches" in meanings[1] and all(text in str(found) for text in meanings)


def test_the_effective_clock_has_the_lag():
    """With momentum 0.9 and small steps a training is late on the limit clock by what the clocks differ, and in time on the other.

    When the loss is half way, after some 20 iterations, that is 90 (1 - 0.9^20) = 79 steps; a twentieth is left for the step's error.
    """
    given: dict[str, Any] = {
        "task": "scan_snap",
        "settings": {**POPULATION, "eta_Y": 0.02, "eta_Z": 0.02},
        "steps": 60,
        "observables": ["loss"],
    }
    shift = {clock: odesim.compare("scan_snap.full", clock=clock, **given).table()[0]["shift"] for clock in ("effective", "limit")}
    assert abs(shift["effective"]) < 4 and 60 < shift["limit"] < 90


def test_the_reduced_flow_describes_the_decorrelated_decoder_alone():
    """Syn-Small at t = K ln M: decorrelated, z is the paper's within a few per cent; vanilla, theory is 9.8 times too fast.

    9.8 is T2/T1 of z of a common token by two other integrators; 3 % for the steps, the samples and eta_Z/eta_Y = 0.01.
    With the vanilla decoder it is refused as theory; two runs stand beside each other with a sentence that says why they should not.
    """
    rates = {"eta_Y": 0.1, "eta_Z": 0.001}
    given: dict[str, Any] = {**rates, "momentum": 0.0, "batch": 128, "length": 1024}
    asked: dict[str, Any] = {"steps": 71, "seeds": range(2), "save": 72}
    system, task = "scan_snap.reduced_symmetric", "scan_snap"
    good = odesim.compare(system, task=task, settings={**given, "decoder": "decorrelated"}, **asked)
    bounds = {name: {"relative_l2": 0.05, "scale": 0.05, "correlation": 1e-3} for name in ("z", "zc", "c", "cc")}
    assert good.passed(bounds) and good.doubts == ()
    with pytest.raises(ParamError, match="decoder is vanilla, not decorrelated"):
        odesim.compare(system, task=task, settings=given, **asked)
    training = odesim.train(task, settings=given, **asked, observe=["Z"])
    bad = odesim.compare(training, odesim.integrate(system, params=rates, span=(0, 71), save=72))
    assert not bad.passed(bounds) and any("z: relative_l2" in sentence for sentence in bad.passed(bounds).failed)
    assert bad.doubts == ("scan_snap.reduced_symmetric does not describe this training of scan_snap: decoder is vanilla, not decorrelated",)
    zc = bad.theory["zc"][0, :, 0], bad.training["zc"].mean(axis=0)[:, 0]
    assert zc[0][-1] / zc[1][-1] == pytest.approx(9.8, rel=0.1)


def test_the_symmetric_system_is_the_full_one():
    """Both flows are the same theory of one training: their distances to it are equal, to the tolerance of integration."""
    given: dict[str, Any] = {"task": "scan_snap", "settings": {"momentum": 0.0}, "steps": 30, "observables": ["loss"]}
    full, symmetric = (odesim.compare(name, **given).theory["loss"] for name in ("scan_snap.full", "scan_snap.symmetric"))
    assert full == pytest.approx(symmetric, rel=1e-6)


def test_a_training_beside_an_integration(training, flow, tmp_path):
    """In whichever order, in memory or stored: iterations go on the clock of the flow, at the times of the coarser run."""
    stored = tmp_path / "training.zarr", tmp_path / "flow.zarr"
    given = {"momentum": 0.0, "eta_Y": 0.3, "eta_Z": 0.3}
    odesim.train("scan_snap", settings=given, seeds=range(3), steps=40, out=stored[0])
    from odesim.store import write_solution

    write_solution(flow, stored[1])
    found = [odesim.compare(a, b) for a, b in ((training, flow), (flow, training), stored)]
    assert all(errors(one) == errors(found[0]) for one in found)
    assert found[0].t[-1] == 40 and len(found[0].t) == 41
    beside = odesim.compare("scan_snap.full", task="scan_snap", settings=given, seeds=range(3), steps=40)
    for name, error in errors(found[0]).items():
        assert error == pytest.approx(errors(beside)[name], rel=0.02), name  # the stored flow has a tolerance of its own


@pytest.mark.parametrize("units", [(a, b) for a in UNITS for b in UNITS], ids=str)
def test_two_runs_have_one_unit_of_time_or_a_note(units, flow):
    """Equal units are that of the axis; a unit beside none gives a note and no unit, in the table and in the picture; two are refused."""
    runs = [replace(flow, attrs={**flow.attrs, "time_unit": unit}) for unit in units]
    if all(units) and units[0] != units[1]:
        with pytest.raises(ParamError, match="no common clock"):
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


def test_units_of_time_are_not_mixed(training, flow):
    """Runs whose times have different units are refused, with both; so is a flow whose unit an iteration says nothing of."""
    other = odesim.integrate("scan_snap.theorem4", span=(0, 50), save=11)
    with pytest.raises(ParamError, match="no common clock: the unit of time is 'SGD steps' in one and \"the paper's time\" in the other"):
        odesim.compare(odesim.integrate("scan_snap.reduced_symmetric", save=11), other)
    with pytest.raises(ParamError, match="nothing says how much of it an iteration of scan_snap takes"):
        odesim.compare(training, other)
    assert odesim.compare(flow, odesim.integrate("scan_snap.symmetric", save=11)).said["unit"] == "SGD steps"


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
    found = odesim.compare(training, odesim.integrate("scan_snap.full", params=params, span=(0, 50), save=51))
    assert found.doubts == said and all(sentence in " ".join(str(found).split()) for sentence in said)


@pytest.mark.parametrize("steps", [39, 300])
def test_blow_up_ends_the_comparison(steps):
    """Where theory runs away in finite time, what was before it is compared, and notes say what ended, of descent too if it overflows."""
    found = odesim.compare("joma.linear", task="joma_gaussian", settings={**JOMA, "num_classes": 1}, steps=steps)
    assert found.t[-1] < 0.1 * steps and "t = " in found.notes[0] and len(found.notes) == (1 if steps < 40 else 2)
    assert all(np.all(np.isfinite(values)) for side in (found.theory, found.training) for values in side.values())


def test_what_a_comparison_gives(training, flow):
    """worst() is the row of the largest error; a dataset holds both sides; the text fits in 80 columns."""
    found = odesim.compare(training, flow)
    assert found.worst()["relative_l2"] == max(errors(found).values())
    dataset = found.to_xarray()
    assert dataset["c_training"].shape == (3, 41, 2, 30) and dataset["c_theory"].shape == (41, 2, 30)
    assert max(map(len, str(found).splitlines())) < 80 and "+- over seeds" in str(found)
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
        ("scan_snap.full", {}, "needs a task for the model, or two runs"),
        ("scan_snap.full", {"other": "x", "task": "scan_snap"}, "one model, or two runs"),
        ("scan_snap.full", {"other": "x", "seeds": 3}, "seeds: there is no task to train"),
        ("scan_snap.full", {"task": "scan_snap", "map": "flaw"}, "no map 'flaw'; .*did you mean 'flow'"),
        ("scan_snap.full", {"task": "scan_snap", "clock": "limits"}, "no clock 'limits'; .*did you mean 'limit'"),
        (
            "scan_snap.theorem4",
            {"task": "scan_snap"},
            "no System 'scan_snap.theorem4' in the theory of scan_snap; choose from scan_snap.full, ",
        ),
        (
            "scan_snap.full",
            {"task": "joma_gaussian"},
            "no System 'scan_snap.full' in the theory of joma_gaussian; choose from joma.joint_exp, ",
        ),
        (
            "scan_snap.full",
            {"task": "hierarchy_tree", "settings": {"optimizer": "sgd"}},
            "no System describes hierarchy_tree, whatever its settings",
        ),
        (
            "classics.committee",
            {"task": "committee", "settings": {"batch": 2, "activation": "relu"}},
            "does not describe this training of committee: activation is relu, not erf; batch is 2, not 1$",
        ),
        (
            "topics.full",
            {"task": "topics", "settings": {"keys": "unmasked", "loss": "cross_entropy"}},
            "does not describe this training of topics: keys is unmasked, not all; loss is cross_entropy, not squared$",
        ),
        ("topics.reduced", {"task": "topics"}, "init is normal, not symmetric"),
        ("classics.committee", {"task": "committee", "map": "discrete", "settings": {"N": 9}}, "has no discrete map"),
        ("scan_snap.full", {"task": "scan_snap", "observables": ["entrpy"]}, "no observable 'entrpy' in both.*did you mean 'entropy'"),
        ("scan_snap.full", {"task": "scan_snap", "align": ["q"]}, "no axis 'q'"),
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
