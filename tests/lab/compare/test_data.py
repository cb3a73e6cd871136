"""A theory beside data: curves of the model itself, scipy's fit, seeds by numpy, and what W&B and TensorBoard export."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.optimize import brentq, curve_fit
from sympy import Interval, exp, oo, symbols

import odesim
from odesim.base.errors import OdesimError
from odesim.symbolic import IndexedBase, Map, Param, Source, System, index, sizes

SOURCE = Source("none", "made for the tests")
a = symbols("a", positive=True)
(m,), (M,) = index("m"), sizes("M")
v, mu = IndexedBase("v", shape=(M,)), IndexedBase("mu", shape=(M,))
POSITIVE = Interval.open(0, oo)
MODEL = System(
    "test.decay",
    SOURCE,
    {m: M},
    {v[m]: -mu[m] * v[m]},
    (Param(mu, 1.0, POSITIVE, "rates"),),
    {v[m]: 1.0},
    sizes={M: 3},
    span=(0.0, 4.0),
    observables={"loss": exp(v[0])},
)
x = symbols("x", real=True)
SHRINK = Map("test.shrink", SOURCE, {}, {x: a * x}, (Param(a, 0.9, POSITIVE, "factor"),), {x: 1.0})
RATES = np.array([0.4, 1.0, 2.0])
T = np.linspace(0, 4, 21)
V = np.exp(-np.outer(T, RATES))
LOSS = np.exp(V[:, 0])


def noisy(values, seed, size=0.02):
    """values with normal noise."""
    return values + size * np.random.default_rng(seed).normal(size=np.shape(values))


def test_observables_stand_in_their_order():
    """What is named first comes first, whatever the order of the columns; an array and one of its entries are compared once."""
    data = {"t": T, "v": V, "loss": LOSS}
    assert list(odesim.compare(MODEL, data=data, params={"mu": RATES}, observables=["loss", "v[1]", "v"]).theory) == ["loss", "v"]


@pytest.mark.first(3)
@pytest.mark.parametrize(
    ("data", "columns", "names"),
    [
        ({"t": T, "v": V, "loss": LOSS}, {}, {"v": (3,), "loss": ()}),
        ({"t": T[::-1], "v[2]": V[::-1, 2], "b": LOSS[::-1]}, {"loss": "b"}, {"loss": (), "v[2]": ()}),
        ({"t": np.repeat(T, 2), "loss": np.repeat(LOSS, 2) + np.tile([0.1, -0.1], 21)}, {}, {"loss": ()}),
        ({"t": T, "loss": np.where(np.arange(21) % 5, np.nan, LOSS), "v[1]": V[:, 1]}, {}, {"loss": (), "v[1]": ()}),
    ],
    ids=["whole", "entries", "repeated", "gaps"],
)
def test_data_of_the_model_itself(data, columns, names):
    """Data in closed form differ from the theory by its tolerance; of an array all entries, or some; of values at one time their mean."""
    comparison = odesim.compare(MODEL, data=data, columns=columns, params={"mu": RATES})
    rows = comparison.table()
    assert {row["observable"]: row["shape"] for row in rows} == names and comparison.sides == ("theory", "data")
    assert max(row["sup"] for row in rows) < 1e-8  # 10 rtol of the theory
    assert len(comparison.t) == (5 if "v[1]" in names else 21) and comparison.notes == ()


def test_a_map():
    """The times of a Map are its updates, and nothing is left over."""
    comparison = odesim.compare(SHRINK, data={"step": np.arange(6), "x": 0.8 ** np.arange(6)}, params={"a": 0.8})
    assert comparison.table()[0]["sup"] < 1e-15


def test_fitted_numbers_are_those_of_scipy():
    """Rates fitted to two seeds with times of their own are those of curve_fit on all their numbers; odesim.fit gives the same bits."""
    seeds = [{"t": t, "v": noisy(np.exp(-np.outer(t, RATES)), k)} for k, t in enumerate((T, T[::2]))]
    comparison = odesim.compare(MODEL, data=seeds, free=["mu"])
    fitted = comparison.fit
    assert fitted is not None
    for n in range(3):
        times, values = (np.concatenate(parts) for parts in zip(*((s["t"], s["v"][:, n]) for s in seeds), strict=True))
        best = curve_fit(lambda t, k: np.exp(-k * t), times, values, (1,), xtol=1e-12)[0]
        np.testing.assert_allclose(fitted["value"][n], best[0], rtol=1e-6)  # the search stops at 1e-9, in curves good to 1e-8
    np.testing.assert_array_equal(fitted["value"], odesim.fit(MODEL, seeds, free=["mu"])["value"])
    np.testing.assert_allclose(comparison.theory["v"][0], np.exp(-np.outer(comparison.t, fitted["value"])), atol=1e-8)
    assert "mu[2] = " in str(comparison) and "95 % interval" in str(comparison)


def test_seeds_by_numpy():
    """Three seeds, one with half the times: all at the times of that one, by numpy's interpolation; the table has median, least, most."""
    times = [T, T[::2], np.sort(np.append(T[1:-1], [0.0, 4.0, 1.234]))]
    seeds = [{"t": t, "loss": noisy(np.exp(np.exp(-0.4 * t)), k)} for k, t in enumerate(times)]
    comparison = odesim.compare(MODEL, data=seeds, params={"mu": RATES})
    np.testing.assert_array_equal(comparison.t, T[::2])
    rows = np.stack([np.interp(comparison.t, s["t"], s["loss"]) for s in seeds])
    np.testing.assert_allclose(comparison.training["loss"], rows, rtol=1e-14)
    truth = LOSS[::2]
    each = [np.max(np.abs(row - truth)) for row in rows]
    np.testing.assert_allclose(comparison.table()[0]["each"]["sup"], each, atol=1e-8)
    text = str(comparison)
    for word, number in (("median", np.median(each)), ("least", np.min(each)), ("most", np.max(each))):
        line = next(line for line in text.splitlines() if line.startswith(f"  seeds: {word}"))
        assert float(line.split()[4]) == pytest.approx(number, rel=0.01)  # corr, rel L2, sup: three digits


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_clock_for_steps(momentum):
    """Steps of descent take lr each, with momentum the sum of what each update is worth, by hand."""
    lr, steps = 0.02, np.arange(0, 61, 5)
    worth = lr * (1 - momentum ** np.arange(1, 61)) / (1 - momentum)
    time = np.append(0, np.cumsum(worth))[steps]
    comparison = odesim.compare(MODEL, data={"Step": steps, "v[1]": np.exp(-time)}, lr=lr, momentum=momentum)
    np.testing.assert_allclose(comparison.t, time, rtol=1e-13)
    assert comparison.table()[0]["sup"] < 1e-8 and "i the column Step" in comparison.said["clock"]


def test_steps_beside_a_logarithmic_clock():
    """Steps of .5 of a model whose time is ln(1 + t): u + 2 e^u = 3 t / 2 + 2 for two labels and another word."""
    steps = np.arange(0, 400, 50)
    u = np.array([brentq(lambda u, t=t: u + 2 * np.exp(u) - 1.5 * t - 2, 0, 10, xtol=1e-14) for t in 0.5 * steps])
    for time, lr in ((steps, 0.5), (np.log1p(0.5 * steps), None)):
        found = odesim.compare("margin.next_token", data={"Step": time, "w[0]": -2 * u / 3}, params={"y": [0, 0.5, 0.5]}, lr=lr)
        np.testing.assert_allclose(found.t, np.log1p(0.5 * steps), rtol=1e-13)
        assert found.table()[0]["sup"] < 1e-7 and ("ln(1 + t), t = 0.5 i" in found.said["clock"]) is (lr is not None)


# What W&B and TensorBoard write. A chart of W&B: "Step","RUN - METRIC","RUN - METRIC__MIN","RUN - METRIC__MAX", ...; its axis may have
# another name, a run that ended has empty cells, and RUN - _step stands beside where the axis is not Step (as in wandb/wandb issue 5349).
# TensorBoard's scalars: a file run-RUN-tag-TAG.csv for each, with Wall time,Step,Value (tensorboard/plugins/scalar/scalars_plugin.py).

RUNS = {"brisk - pond-1": noisy(LOSS, 5), "solar-2": noisy(LOSS, 6)}
SECOND = {run: noisy(V[:, 1], k) for k, run in enumerate(RUNS)}


def chart(series, metric, axis="Step", **beside):
    """The table of a chart of W&B."""
    table = {axis: np.arange(21), **beside}
    for run, values in series.items():
        table |= {f"{run} - {metric}{end}": values for end in ("", "__MIN", "__MAX")}
    return pd.DataFrame(table)


def in_one_chart(folder):
    chart(RUNS, "train/loss").to_csv(folder / "wandb_export_2026-01-01T00_00_00.000+01_00.csv", index=False)
    return {"loss": "train/loss"}


def in_two_charts(folder):
    steps = {f"{run} - _step": np.arange(21) for run in RUNS}
    chart(RUNS, "train/loss", "epoch", **steps).to_csv(folder / "a.csv", index=False)
    chart(SECOND, "w").to_csv(folder / "b.csv", index=False)
    return {"loss": "train/loss", "v[1]": "w"}


def of_tensorboard(folder):
    for tag, series in (("train_loss", RUNS), ("w", SECOND)):
        for run, values in series.items():
            table = pd.DataFrame({"Wall time": 1.7e9 + np.arange(21), "Step": np.arange(21), "Value": values})
            table.to_csv(folder / f"run-{run}-tag-{tag}.csv", index=False)
    return {"loss": "train/loss", "v[1]": "w"}


def history(folder):
    for k, (run, values) in enumerate(RUNS.items()):
        pd.DataFrame({"_step": np.arange(21), "_runtime": 0.1, "train/loss": values, "name": run}).to_csv(folder / f"{k}.csv")
    return {"loss": "train/loss"}


def long_table(folder):
    rows = [pd.DataFrame({"seed": k, "step": np.arange(21), "q": values}) for k, values in enumerate(RUNS.values())]
    pd.concat(rows).to_csv(folder / "all.csv", index=False)
    return {"loss": "q"}


def datasets(folder):
    data = xr.Dataset({"q": (("seed", "time"), np.stack(list(RUNS.values())))}, coords={"time": np.arange(21), "seed": [3, 4]})
    data.to_zarr(folder / "data.zarr", zarr_format=3, consolidated=False)
    return {"loss": "q"}


@pytest.mark.first(6)
@pytest.mark.parametrize("write", [in_one_chart, in_two_charts, of_tensorboard, history, long_table, datasets], ids=lambda f: f.__name__)
def test_exported_folders(write, tmp_path):
    """Two runs are two seeds, in whatever form they come; a chart's bounds are no seeds, and curves of a run are put together."""
    columns = write(tmp_path)
    comparison = odesim.compare(MODEL, data=tmp_path, columns=columns, params={"mu": RATES}, lr=0.2)
    assert comparison.training["loss"].shape == (2, 21)
    by_seed = sorted(comparison.training["loss"].tolist())
    assert by_seed == sorted(values.tolist() for values in RUNS.values())
    if "v[1]" in columns:  # curves of one run belong together
        first = next(iter(RUNS))
        row = [values.tolist() for values in comparison.training["loss"]].index(RUNS[first].tolist())
        assert comparison.training["v[1]"][row].tolist() == SECOND[first].tolist()
    np.testing.assert_allclose(comparison.theory["loss"][0], LOSS, atol=1e-8)


def test_a_run_that_ended_early(tmp_path):
    """Empty cells of a chart are no measurements: the comparison goes to the end of the shorter run."""
    table = chart(RUNS, "loss")
    table.loc[12:, [name for name in table if name.startswith("solar")]] = np.nan
    table.to_csv(tmp_path / "chart.csv", index=False)
    comparison = odesim.compare(MODEL, data=tmp_path / "chart.csv", params={"mu": RATES}, lr=0.2)
    assert (
        comparison.t[-1] == pytest.approx(11 * 0.2)
        and comparison.said["training"] == f"{tmp_path / 'chart.csv'}, 2 seeds: {', '.join(RUNS)}"
    )


DATA = {"t": T, "loss": LOSS}
WRONG: dict[str, Any] = {
    "column": ({"data": DATA, "columns": {"loss": "los"}}, "no column 'los' in the data; choose from loss; did you mean 'loss'?"),
    "nothing": ({"data": {"t": T, "x": T}}, "no column of the data is named as a state or observable of test.decay, "),
    "observable": ({"data": DATA, "observables": ["v"]}, "no observable 'v' in both test.decay and the data; choose from loss"),
    "time": ({"data": DATA, "time": "day"}, "no column 'day' in the data; choose from loss, t"),
    "early": ({"data": {"t": T - 1, "loss": LOSS}}, "begin at t = -1, before the run, which begins at 0: give span"),
    "one time": ({"data": {"t": [0.0], "loss": [1.0]}}, "has values at 1 time: a curve needs two"),
    "apart": ({"data": [{"t": T[:5], "loss": T[:5]}, {"t": T[9:], "loss": T[9:]}]}, "no overlap in time"),
    "lacking": ({"data": [DATA, {"t": T, "v[0]": T}]}, "no column 'v[0]' in the data; choose from loss"),
    "rate": ({"data": DATA, "lr": -1.0}, "lr, the time of one step, must be above 0, not -1"),
    "momentum": ({"data": DATA, "momentum": 0.9}, "give lr too"),
    "free": ({"data": DATA, "free": ["nu"]}, "no parameter or state 'nu'"),
    "params": ({"data": DATA, "params": {"nu": 1}}, "no parameter 'nu' in test.decay; choose from mu; did you mean 'mu'?"),
    "task": ({"data": DATA, "task": "scan_snap"}, "give a task, which is trained, or data, which are there, not both"),
    "map": ({"data": DATA, "map": "discrete"}, "a column of data is named as NAME=COLUMN"),
    "steps": ({"data": DATA, "steps": 3}, "steps belongs to a training"),
    "no data": ({"free": ["mu"]}, "free belongs to a comparison with data"),
    "none": ({"data": []}, "give at least one file or table"),
    "run": ({"data": DATA, "other": "x.zarr"}, "data are compared with one model"),
}


@pytest.mark.first(4)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_a_sentence(name):
    """What cannot be compared is refused."""
    words, sentence = WRONG[name]
    words = {"other": None, **words}
    with pytest.raises(OdesimError) as error:
        odesim.compare(MODEL, words.pop("other"), **words)
    assert sentence in str(error.value)


def test_noise_is_refused():
    """A path of noise is no theory of a curve."""
    with pytest.raises(OdesimError, match="has noise, and data are compared with equations without"):
        odesim.compare("particles.noisy_circle", data=DATA)


FILE = """
from sympy import Interval, oo, symbols
from odesim.symbolic import Param, Source, System
x = symbols("x", real=True)
k = symbols("k", positive=True)
SOURCE = Source("none", "none")
SYSTEM = System("my.decay", SOURCE, {}, {x: -k * x}, (Param(k, 1.0, Interval.open(0, oo), "rate"),), {x: 1.0}, span=(0.0, 4.0))
"""


@pytest.fixture
def odesim_command(tmp_path, monkeypatch):
    """Runs `odesim compare decay.py ...` in a folder with the model and an exported folder."""
    from click.testing import CliRunner

    from odesim.cli.app import cli

    monkeypatch.chdir(tmp_path)
    (tmp_path / "decay.py").write_text(FILE)
    (tmp_path / "runs").mkdir()
    chart(RUNS, "train/x").to_csv("runs/chart.csv", index=False)
    return lambda *words: CliRunner().invoke(cli, ["compare", "decay.py", *words])


def test_the_command(odesim_command, tmp_path):
    """A table in 80 columns, a picture, and JSON with the fit; what is wrong is one sentence with code 2, and writes nothing."""
    words = ["--data", "runs", "--map", "x=train/x", "--lr", "0.2", "--free", "k=0.01:5", "--free", "x", "--plot", "c.png"]
    for wrong in (["--map", "x"], ["--map", "x=q"], ["--free", "kk"], ["--set", "q=1"], ["--data", "nowhere"], ["--time", "q"]):
        done = odesim_command(*words, *wrong)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.output
    assert not (tmp_path / "c.png").exists()
    done = odesim_command(*words)
    assert (done.exit_code, done.stderr) == (0, "") and max(map(len, done.stdout.splitlines())) < 80, done.output
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG" and "drawn in c.png" in done.stdout
    printed = json.loads(odesim_command(*words[:-2], "--json").stdout)
    t, values = np.tile(0.2 * np.arange(21), 2), np.concatenate(list(RUNS.values()))
    bounds = ((0.01, -np.inf), (5, np.inf))
    best = curve_fit(lambda t, k, x: x * np.exp(-k * t), t, values, (1, 1), bounds=bounds, xtol=1e-12, ftol=1e-12)[0].tolist()
    assert printed["fit"]["free"] == ["k", "x"] and printed["fit"]["value"] == pytest.approx(best, rel=1e-5)
    given = json.loads(odesim_command(*words[:6], "--set", f"k={best[0]!r}", "--init", f"x={best[1]!r}", "--json").stdout)
    assert given["observables"][0]["sup"] == pytest.approx(printed["observables"][0]["sup"], rel=1e-4) and "fit" not in given
