"""The training loop: what is recorded when, seeds alone and together, losses that are not finite; and settings."""

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from odesim.base.errors import ParamError
from odesim.lab.training.loop import TrainingOptions, train
from odesim.lab.training.record import extend_iterations, recorded_iterations
from odesim.lab.training.task import Setting, check_settings
from tests.support.toy import TASK


def experiment(seeds=(0, 1), **values):
    return TASK.make(check_settings("toy", TASK.settings, values), seeds=seeds)


def test_the_loop_is_this_loop():
    """loss[i] is that of batch i before update i; observables are those before it; the last row is after the last update."""
    e = experiment((4, 7))
    got = train(e, TrainingOptions(steps=6))
    w = np.stack([np.random.default_rng([seed, 0, 0]).normal(size=3) for seed in (4, 7)])
    v = 0 * w
    for i in range(7):
        x = e.stream(i)["x"]
        residual = np.einsum("rbd,rd->rb", x, w - 1)
        # rounding of a few sums of products
        np.testing.assert_allclose(got.observables["loss"][:, i], np.mean(residual**2, axis=1) / 2, rtol=1e-12)
        np.testing.assert_allclose(got.observables["w"][:, i], w, rtol=1e-12)
        if i < 6:
            v = 0.5 * v + np.einsum("rb,rbd->rd", residual, x) / 4
            w = w - 0.1 * v
    np.testing.assert_allclose(got.final["cubes"], w**3, rtol=1e-12)
    assert got.t.tolist() == list(range(7)) and (got.iteration, got.status) == (6, "ok")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_seeds_together_are_seeds_alone(dtype):
    """Row r of R seeds has the bits of that seed alone, in rows and final values, and the dtype asked for."""
    together = train(experiment((3, 5, 8)), TrainingOptions(dtype=dtype))
    for r, seed in enumerate((3, 5, 8)):
        alone = train(experiment((seed,)), TrainingOptions(dtype=dtype))
        for name, rows in together.observables.items():
            assert rows.dtype == dtype
            np.testing.assert_array_equal(rows[r], alone.observables[name][0])
        for name, value in together.final.items():
            np.testing.assert_array_equal(value[r], alone.final[name][0])


def test_what_is_recorded():
    """Costly and large observables come at the end only, unless they are named; the last row is the final value."""
    plain = train(experiment(), TrainingOptions(steps=3))
    assert set(plain.observables) == {"loss", "norm", "w"} and set(plain.final) == {"loss", "norm", "w", "cubes", "outer"}
    named = train(experiment(), TrainingOptions(steps=3, observe=["outer", "cubes"]))
    assert named.observables["outer"].shape == (2, 4, 1001)
    for name, rows in named.observables.items():
        np.testing.assert_array_equal(rows[:, -1], plain.final[name])
    dataset = plain.to_xarray()
    assert dataset.w.dims == ("seed", "time", "d") and dataset.outer.dims == ("seed", "wide") and dataset.sizes["time"] == 4
    page = ElementTree.fromstring(plain._repr_html_())
    kept = {row[0][0].text: row[3].text for row in [*page.iter("tr")][1:]}
    assert kept == {name: "at every recorded iteration" if name in plain.observables else "at the end only" for name in plain.final}


GRIDS = [(0, None, 1), (1, None, 2), (1000, None, 1001), (1001, None, 1001), (12345, None, 1001), (100, 5, 5), (3, 50, 4), (10**9, 7, 7)]


@pytest.mark.parametrize(("steps", "save", "count"), GRIDS)
def test_grid(steps, save, count):
    """All iterations up to 1000 steps, else evenly spread ones with both ends: gaps differ by 1 at most."""
    times = recorded_iterations(steps, save)
    assert len(times) == count and times[0] == 0 and times[-1] == steps
    assert len(times) == 1 or np.ptp(np.diff(times)) <= 1
    longer = extend_iterations(times, 2 * steps + 3, save)
    np.testing.assert_array_equal(longer[:count], times)
    assert longer[-1] == 2 * steps + 3 and np.all(np.diff(longer) > 0)


def test_thinning_changes_nothing():
    """Rows of a thinned training are rows of the whole one."""
    few, every = train(experiment(), TrainingOptions(save=4)), train(experiment())
    assert few.t.tolist() == [0, 7, 13, 20]
    for name, rows in few.observables.items():
        np.testing.assert_array_equal(rows, every.observables[name][:, few.t])


def test_a_lost_seed_harms_no_other():
    """A loss that is not finite is reported with its seed and first iteration; other seeds keep their bits."""
    e, healthy = experiment((0, 1, 2)), train(experiment((0, 1, 2)))

    def stream(i):
        x = e.stream(i)["x"].copy()
        if i == 5:
            x[1] = np.inf
        return {"x": x}

    got = train(replace(e, stream=stream))
    assert (got.status, got.bad) == ("non_finite", {1: 5}) and "seed 1 from iteration 5 on" in got.message
    for name, rows in healthy.observables.items():
        np.testing.assert_array_equal(got.observables[name][[0, 2]], rows[[0, 2]])
    assert np.isnan(got.final["loss"][1]) and np.isfinite(got.observables["loss"][1, :5]).all()


def test_stop_keeps_the_rows():
    """Asked to stop before iteration 4: rows 0 to 3, and the final values after four updates."""
    asked = iter([False] * 4 + [True])
    got = train(experiment(), stop=lambda: next(asked))
    assert (got.status, got.iteration, got.t.tolist()) == ("interrupted", 4, [0, 1, 2, 3])
    whole = train(experiment())
    np.testing.assert_array_equal(got.observables["w"], whole.observables["w"][:, :4])
    np.testing.assert_array_equal(got.final["w"], whole.observables["w"][:, 4])
    np.testing.assert_array_equal(got.final["loss"], whole.observables["loss"][:, 4])


WRONG_RUNS: dict[str, Any] = {
    "observable": ({"observe": ["nrom"]}, "no observable 'nrom'", "did you mean 'norm'?"),
    "steps": ({"steps": -1}, "steps must be 0 to"),
    "steps not whole": ({"steps": 2.5}, "steps must be a whole number"),
    "save": ({"save": 1}, "save must be 2 to"),
    "save of too many": ({"save": 10**9, "steps": 10**9}, "save must be 2 to 1000000"),
}


@pytest.mark.parametrize("name", WRONG_RUNS)
def test_wrong_run(name):
    """A wrong request is one sentence."""
    options, *pieces = WRONG_RUNS[name]
    with pytest.raises(ParamError) as raised:
        train(experiment(), TrainingOptions(**options))
    assert all(piece in str(raised.value) for piece in pieces), raised.value


SETTINGS = (
    Setting("n", 3, "", low=1, high=9),
    Setting("x", 0.5, "", low=0, open_low=True),
    Setting("word", "a", "", choices=("a", "bc")),
    Setting("text", "", ""),
    Setting("flag", False, ""),
    Setting("P", None, "", low=0),
)
GOOD = [
    ({}, {"n": 3, "x": 0.5, "word": "a", "text": "", "flag": False, "P": None}),
    ({"n": 4.0, "x": 1, "flag": True}, {"n": 4, "x": 1.0, "flag": True}),
    ({"n": np.int32(9), "x": np.float32(0.25), "word": "bc"}, {"n": 9, "x": 0.25, "word": "bc"}),
    ({"P": 3, "text": "x = 1"}, {"P": 3, "text": "x = 1"}),
]


@pytest.mark.parametrize(("given", "expected"), GOOD)
def test_settings(given, expected):
    """Every setting is there, each of the type of its default."""
    got = check_settings("toy", SETTINGS, given)
    assert [*got] == [s.name for s in SETTINGS]
    for name, value in expected.items():
        assert got[name] == value and type(got[name]) is type(value)
    assert check_settings("toy", SETTINGS, {"P": [[1, 2]]})["P"].shape == (1, 2)


WRONG_SETTINGS: dict[str, Any] = {
    "name": ({"wrod": "a"}, "no setting 'wrod' in toy", "did you mean 'word'?"),
    "word": ({"word": "bd"}, "no word 'bd' in toy", "a, bc", "did you mean 'bc'?"),
    "word as number": ({"word": 3}, "one of a, bc", "3"),
    "text as number": ({"text": 3}, "text of toy is text", "3"),
    "number as word": ({"x": "much"}, "x of toy is a number", "'much'"),
    "number as array": ({"x": np.ones(2)}, "x of toy is a number"),
    "number as flag": ({"n": True}, "n of toy is a whole number", "True"),
    "not whole": ({"n": 2.5}, "n of toy is a whole number, not 2.5"),
    "flag as number": ({"flag": 1}, "flag of toy is true or false, not 1"),
    "nan": ({"x": float("nan")}, "finite"),
    "low": ({"n": 0}, "n of toy must be at least 1, not 0"),
    "open low": ({"x": 0}, "x of toy must be above 0, not 0"),
    "high": ({"n": 10}, "n of toy must be at most 9, not 10"),
    "array of words": ({"P": ["a"]}, "P of toy is an array of numbers"),
    "ragged": ({"P": [[1], [1, 2]]}, "P of toy"),
    "array below": ({"P": [[1, -2]]}, "P of toy must be at least 0, not -2"),
    "array with nan": ({"P": [np.nan]}, "P of toy", "not finite"),
    "empty array": ({"P": []}, "P of toy"),
}


@pytest.mark.parametrize("name", WRONG_SETTINGS)
def test_wrong_setting(name):
    """A wrong name, word, type or range is one sentence."""
    given, *pieces = WRONG_SETTINGS[name]
    with pytest.raises(ParamError) as raised:
        check_settings("toy", SETTINGS, given)
    assert all(piece in str(raised.value) for piece in pieces), raised.value
