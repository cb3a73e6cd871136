"""`odesim ensemble`, `status`, `resume` and `rerun`: what they print, what they refuse, how they end."""

import csv
import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray

import odesim as library
from odesim.cli.results import EnsembleProgress
from odesim.plot import Choice, animate
from tests.support.metadata import change_attributes

RUN = "joma.nonlinear --vary mu=uniform(0.5,2.5) --members 30 --size M=2 --span 0:2 --save 3 --seed 4"
KEYS = [
    "model", "status", "message", "members", "done", "failed", "counts", "meanings", "new", "retried", "seconds", "members_per_second",
    "method", "methods", "auto", "backend", "out",
]  # fmt: skip


def strict(text: str) -> dict:
    """The one JSON object that text is: no NaN or Infinity."""
    return json.loads(text, parse_constant=pytest.fail)


SAME: dict[str, tuple[str, dict[str, Any]]] = {
    "random": (
        "--vary mu=uniform(0.5,2.5) --vary v=normal(0,0.1) --members 12 --seed 3",
        {"vary": {"mu": "uniform(0.5,2.5)", "v": "normal(0,0.1)"}, "members": 12, "seed": 3},
    ),
    "grid": ("--grid mu=linspace(1,2,3) --grid v=0.01,0.02", {"grid": {"mu": [1.0, 1.5, 2.0], "v": [0.01, 0.02]}}),
    "zip": ("--zip mu=1,2 --zip v=0.01,0.02", {"zipped": {"mu": [1, 2], "v": [0.01, 0.02]}}),
    "table": ("--vary mu=@mu.npy --init v=0.02", {"params": {"mu": np.linspace(1, 2, 8).reshape(4, 2)}, "initial": {"v": 0.02}}),
    "sensitivity": (
        "--grid mu=1,2 --save 3 --strict --sensitivity mu --max-events 0",
        {"grid": {"mu": [1, 2]}, "save": 3, "strict": True, "sensitivities": ["mu"], "max_events": 0},
    ),
    "options": (
        "--grid mu=1,2 --save 4 --method vern7 --rtol 1e-8 --atol 1e-10 --dtype float32 --threads 2 --max-events 0",
        {"grid": {"mu": [1, 2]}, "save": 4, "method": "vern7", "rtol": 1e-8, "atol": 1e-10, "dtype": "float32", "max_events": 0},
    ),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("case", SAME)
def test_the_command_line_is_the_library(case, odesim, folder):
    """Words of the command line and arguments of odesim.ensemble give the same bits."""
    words, arguments = SAME[case]
    np.save(folder / "mu.npy", np.linspace(1, 2, 8).reshape(4, 2))
    done = odesim("ensemble", "joma.nonlinear", *shlex.split(words), "--size", "M=2", "--span", "0:2", "--out", "a.zarr", "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    a, b = library.open_run("a.zarr"), library.ensemble("joma.nonlinear", sizes={"M": 2}, span=(0.0, 2.0), **arguments)
    for name in a.variables:
        np.testing.assert_array_equal(a[name], b[name])


TOML = """
seed = 3
span = [0, 2]
save = 4
method = "vern7"
rtol = 1e-8
atol = 1e-10
dtype = "float32"
[params]
mu = 9.0
[sizes]
M = 2
[initial]
v = 0.02
"""


@pytest.mark.slow
def test_a_file_says_the_rest(odesim, folder):
    """Options, sizes and shared values of a TOML file; what is varied on the command line is not taken from it."""
    (folder / "run.toml").write_text(TOML)
    words = "--params run.toml --grid mu=1,2 --max-events 0 --backend numba --out a.zarr --quiet"
    done = odesim("ensemble", "joma.nonlinear", *shlex.split(words))
    assert (done.exit_code, done.output) == (0, "")
    arguments = {**SAME["options"][1], "initial": {"v": 0.02}, "seed": 3}
    a, b = library.open_run("a.zarr"), library.ensemble("joma.nonlinear", sizes={"M": 2}, span=(0.0, 2.0), **arguments)
    for name in a.variables:
        np.testing.assert_array_equal(a[name], b[name])


def test_a_picture_of_the_run(odesim, folder):
    """--plot draws what `odesim plot` draws; somebody's file in its place is refused before anything is computed."""
    done = odesim("ensemble", *shlex.split(RUN), "--out", "run.zarr", "--plot", "now.png")
    assert done.exit_code == 0 and "drawn     now.png" in done.stdout
    odesim("plot", "run.zarr", "--out", "later.png")
    assert (folder / "now.png").read_bytes() == (folder / "later.png").read_bytes()
    (folder / "mine.png").write_text("mine")
    done = odesim("ensemble", *shlex.split(RUN), "--out", "other.zarr", "--plot", "mine.png")
    assert done.exit_code == 2 and "odesim did not draw it" in done.stderr and not (folder / "other.zarr").exists()


@pytest.mark.slow
def test_a_film_of_the_run(odesim, folder):
    """`plot --animate` takes the axes and scales of a picture, and draws what Python draws."""
    odesim("ensemble", *shlex.split("reversal.row --grid r=1,2 --grid eta_Y=0.1,0.3,0.9 --save 3 --out run.zarr --quiet"))
    assert odesim("plot", "run.zarr", "--animate", "a.gif", "--x", "eta_Y", "--log", "x").stdout == "drawn in a.gif\n"
    drawn = animate("run.zarr", "b.gif", choice=Choice(x="eta_Y", log="x"))
    assert (folder / "a.gif").read_bytes() == drawn.read_bytes()


def test_json_is_the_contract(odesim):
    """The keys in their order, members by status; status says the same, and resume of a finished run does nothing."""
    done = odesim("ensemble", *shlex.split(RUN), "--out", "run.zarr", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    found = strict(done.stdout)
    assert list(found) == KEYS
    assert (found["status"], found["members"], found["done"], found["new"], found["counts"]["ok"]) == ("ok", 30, 30, 30, 30)
    later = {**found, "new": 0, "seconds": 0.0, "members_per_second": None}
    assert strict(odesim("status", "run.zarr", "--json").stdout) == later
    again = odesim("resume", "run.zarr", "--json")
    assert again.exit_code == 0 and strict(again.stdout) == later
    assert odesim("rerun", "run.zarr").stdout == "30 members computed again: every bit is the same\n"


def test_text_fits(odesim):
    """People get tables of 80 columns, on a pipe without progress."""
    done = odesim("ensemble", *shlex.split(RUN), "--out", "run.zarr")
    assert (done.exit_code, done.stderr) == (0, "") and max(map(len, done.stdout.splitlines())) < 80
    assert done.stdout.startswith("joma.nonlinear: ok, 30 of 30 members\n") and "in lanes" in done.stdout
    assert odesim("status", "run.zarr").stdout.startswith("joma.nonlinear: ok, 30 of 30 members\n")


def test_a_shard_that_is_done_was_not_interrupted(odesim):
    """One of two shards: ok; the whole run is unfinished, with what goes on, until the other one is done."""
    run = ("ensemble", "joma.nonlinear", *shlex.split("--size M=2 --vary mu=uniform(0.5,2) --members 4097 --out run.zarr"))
    assert odesim(*run, "--shard", "1/2").stdout.startswith("joma.nonlinear: ok, 4096 of 4096 members\n")
    half = strict(odesim("status", "run.zarr", "--json").stdout)
    assert half["status"] == "unfinished" and half["message"].startswith("4096 of 4097 members done; ")
    assert odesim("status", "run.zarr").stdout.startswith("joma.nonlinear: unfinished, 4096 of 4097 members\n")
    assert odesim(*run, "--shard", "2/2").stdout.startswith("joma.nonlinear: ok, 1 of 1 member\n")
    assert strict(odesim("status", "run.zarr", "--json").stdout)["status"] == "ok"


@pytest.mark.slow
def test_failures_are_counted(odesim):
    """Members that failed: exit code 3, one sentence with their statuses, and what was computed is kept; they can be tried again."""
    done = odesim("ensemble", *shlex.split(RUN), "--max-steps", "12", "--out", "run.zarr", "--quiet")
    bad = int((library.open_run("run.zarr").status != 0).sum())
    assert 0 < bad < 30 and done.exit_code == 3
    assert done.stderr == f"odesim: {bad} of 30 members failed ({bad} max_steps); what was computed is in run.zarr\n"
    assert odesim("resume", "run.zarr", "--quiet").exit_code == 0  # nothing is left to do
    shown = odesim("status", "run.zarr").stdout
    assert shown.startswith(f"joma.nonlinear: failed, 30 of 30 members done, {bad} failed\n") and "  computed " not in shown
    tried = odesim("resume", "run.zarr", "--retry-failed", "--method", "rodas5p", "--json")
    assert strict(tried.stdout)["retried"] == bad
    said = odesim("status", "run.zarr").stdout
    assert "max_steps" in said and "--retry-failed" not in said  # rodas5p was tried
    assert odesim("rerun", "run.zarr", "--json").exit_code == 0


def test_observables_and_events_are_stored(odesim):
    """--observe and --max-events; csv holds the observables; status says what a status means and what to do, in 80 columns."""
    asked = shlex.split("--observe gap --max-events 2 --save 3 --max-steps 12 --method tsit5 --out run.zarr --quiet")
    odesim("ensemble", *shlex.split(RUN), *asked)
    run = library.open_run("run.zarr")
    assert run.gap.dims == ("member", "time", "l") and run.half_way_t.shape == (30, 2)
    odesim("export", "run.zarr", "--to", "csv")
    with Path("run.csv").open() as file:
        assert [float(r["gap[1]"]) for r in csv.DictReader(file)] == pytest.approx(run.gap.values[:, :, 1].ravel(), nan_ok=True, abs=0)
    said = odesim("status", "run.zarr").stdout
    assert "took max_steps steps" in said and max(map(len, said.split("\n"))) < 80
    assert set(strict(odesim("status", "run.zarr", "--json").stdout)["meanings"]) == {"max_steps"}
    assert dict(zip(run.attrs["status_names"], run.attrs["status_meanings"], strict=True))["max_steps"] in " ".join(said.split())


def test_a_difference_is_said(odesim):
    """rerun ends with 3 and one sentence where a stored number was changed."""
    from odesim.store.ensemble import EnsembleStore

    odesim("ensemble", *shlex.split(RUN), "--out", "run.zarr", "--quiet")
    EnsembleStore(Path("run.zarr")).arrays["v"][7, 0, 1] = 0.0
    done = odesim("rerun", "run.zarr", "--quiet")
    assert done.exit_code == 3 and "1 differs, the first is v of member 7" in done.stderr


def test_shards(odesim):
    """Two shards fill one run; a third command may not replace it by --overwrite."""
    for part in ("2/2", "1/2"):
        assert odesim("ensemble", *shlex.split(RUN), "--shard", part, "--out", "run.zarr", "--quiet").exit_code == 0
    assert strict(odesim("status", "run.zarr", "--json").stdout)["done"] == 30
    done = odesim("ensemble", *shlex.split(RUN), "--shard", "1/2", "--out", "run.zarr", "--overwrite")
    assert done.exit_code == 2 and "--shard would go on with" in done.stderr


@pytest.mark.first(1)
@pytest.mark.parametrize("save", [(), ("--save", "5")], ids=["end", "times"])
def test_a_run_is_drawn_and_exported(save, odesim):
    """plot draws bands or histograms; csv has a line a member and time, every number with all its digits; nc opens."""
    odesim("ensemble", *shlex.split(RUN), *save, "--max-steps", "12", "--method", "tsit5", "--out", "run.zarr", "--quiet")
    assert odesim("plot", "run.zarr").stdout == "drawn in run.png\n"
    assert odesim("export", "run.zarr", "--to", "csv").exit_code == 0
    assert odesim("export", "run.zarr", "--to", "nc").exit_code == 0
    run = library.open_run("run.zarr")
    with Path("run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(int(r["member"]), float(r["t"])) for r in rows] == [(m, t) for m in range(30) for t in run.time.values]
    np.testing.assert_array_equal([float(r["v[1]"]) for r in rows], run.v.values[:, :, 1].ravel())
    np.testing.assert_array_equal([float(r["mu[1]"]) for r in rows], np.repeat(run.mu.values[:, 1], run.sizes["time"]))
    assert {r["status"] for r in rows} == {"ok", "max_steps"}


WRONG = {
    "name": ("--vary nu=uniform(0,1) --members 3", "no parameter or state 'nu'"),
    "shared name": ("--grid mu=1,2 --set nu=1", "no parameter 'nu'"),
    "members and grid": ("--grid mu=1,2 --members 3", "already make 2 members; --members counts random draws at each of these points"),
    "zips": ("--zip mu=1,2 --zip v=1,2,3", "mu has 2, v has 3"),
    "no members": ("--vary mu=uniform(0,1) --members 0", "must be at least 1, not 0"),
    "no count": ("--vary mu=uniform(0,1)", "give --members N"),
    "nothing": ("", "an ensemble needs members"),
    "shard": ("--grid mu=1,2 --shard 3/2", "--shard takes I/N with 1 <= I <= N"),
    "shard word": ("--grid mu=1,2 --shard one", "--shard takes I/N"),
    "seed": ("--vary mu=uniform(0,1) --members 3 --seed -1", "must be at least 0, not -1"),
    "twice": ("--grid mu=1,2 --grid mu=3,4", "--grid mu is given twice"),
    "no =": ("--grid mu", "--grid takes NAME=POINTS"),
    "a component": (
        "--grid mu[0]=1,2",
        "--grid takes whole arrays, not mu[0]: give each member its row, as in --vary 'mu=[[1, 2], [3, 4]]'",
    ),
    "empty": ("--grid mu=", "--grid mu: the value is empty"),
    "observe": ("--grid mu=1,2 --observe gap,entrpy", "no observable 'entrpy'"),
    "events": ("--grid mu=1,2 --max-events -1", "must be at least 0, not -1"),
    "method": ("--grid mu=1,2 --method tsit6", "did you mean 'tsit5'?"),
    "strict": ("--grid mu=1,2 --method rodas5p --strict --dtype float32", "no strict mode for float32; tsit5"),
    "fixed": ("--grid mu=1,2 --method rk4", "no error estimate"),
    "span": ("--grid mu=1,2 --span 1:0", "does not go forward"),
    "save": ("--grid mu=1,2 --save 0,99 --span 0:1", "outside the span"),
    "threads": ("--grid mu=1,2 --threads 0", "must be at least 1"),
    "overflow": ("--grid mu=logspace(0,999,3)", "overflows"),
    "backend": ("--grid mu=1,2 --backend numpy", "no backend 'numpy' in an ensemble; choose from cuda, numba"),
    "file": ("--grid mu=1,2 --params absent.toml", "cannot read absent.toml"),
    "picture": ("--grid mu=1,2 --plot run.gif", "no picture format 'gif'"),
    "option": ("--gird mu=1,2", "did you mean '--grid'?"),
}


@pytest.mark.parametrize("option", ["--grid", "--zip", "--vary"])
def test_a_file_of_too_many_columns_is_named(odesim, folder, option):
    """v of one component takes a column; the sentence has the file and its shape."""
    (folder / "two.csv").write_text("a;b\n1;2\n3;4\n5;6\n")
    done = odesim("ensemble", "scan_snap.reduced_symmetric", option, "eta_Y=@two.csv", "--out", "run.zarr")
    assert done.stderr == f"odesim: {option} eta_Y takes one column of numbers, and two.csv has 3 rows and 2 columns\n"
    assert done.exit_code == 2 and not (folder / "run.zarr").exists()


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests(case, odesim, folder):
    """One sentence, exit code 2, nothing written."""
    words, said = WRONG[case]
    done = odesim("ensemble", "joma.nonlinear", *shlex.split(words), "--size", "M=2", "--out", "run.zarr")
    assert done.exit_code == 2 and said in done.stderr, done.stderr
    assert done.stderr.startswith("odesim: ") and done.stderr.count("\n") == 1 and done.stdout == ""
    assert not [*folder.iterdir()]
    nowhere = odesim("ensemble", "joma.nonlinear", *shlex.split(words), "--size", "M=2")
    assert nowhere.stderr == done.stderr  # not that --out is missing too


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"ensemble {RUN}", "ensemble needs --out RUN.zarr"),
        (f"ensemble {RUN} --out run.csv", "name it run.zarr"),
        (f"ensemble {RUN} --out absent/run.zarr", "no folder 'absent'"),
        ("status absent.zarr", "no run 'absent.zarr'"),
        ("resume absent.zarr", "no run 'absent.zarr'"),
        ("rerun absent.zarr", "no run 'absent.zarr'"),
    ],
)
def test_wrong_places(command, said, odesim, folder):
    """A place that is none: one sentence, exit code 2, nothing written."""
    done = odesim(*shlex.split(command))
    assert done.exit_code == 2 and said in done.stderr and not [*folder.iterdir()]


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"members": 31}, "is damaged"),
        ({"design": "x"}, "its attribute 'design'"),
        ({"design": [{"kind": "random"}]}, "is damaged"),
        ({"ref": "joma.nonlinaer"}, "did you mean"),
        ({"sizes": {"M": 4}}, "M|shape"),
    ],
)
def test_a_damaged_run(change, said, odesim):
    """Attributes that somebody changed: one sentence and no traceback."""
    odesim("ensemble", *shlex.split(RUN), "--out", "run.zarr", "--quiet")
    change_attributes("run.zarr", **change)
    done = odesim("rerun", "run.zarr")
    assert done.exit_code == 2 and any(part in done.stderr for part in said.split("|")), (done.stderr, done.exception)
    assert done.stderr.count("\n") == 1


def test_progress_says_how_far(capsys, monkeypatch):
    """Members, failures, their rate since this command began, and the time that is left."""
    now = iter([0.0, 0.0, 1.0, 3.0])  # made, then shown three times
    monkeypatch.setattr("odesim.cli.tables.time", SimpleNamespace(monotonic=lambda: next(now)))
    progress = EnsembleProgress("model", True)
    progress.show(1000, 9000, 0)
    progress.show(1000, 9000, 0)
    progress.show(4000, 9000, 2)
    line = capsys.readouterr().err.split("\r")[-1]
    assert "4000/9000, 2 failed, 1k members/s, about 5 s left" in line


@pytest.mark.parametrize(("rate", "said"), [(12.34, "12.3"), (950.4, "950"), (999.6, "1k"), (22846, "22.8k"), (1.26e6, "1.26M")])
def test_the_line_fits(rate, said, capsys, monkeypatch):
    """A bar, failures, members a second and the time left in 80 columns, for millions of members."""
    now = iter([0.0, 0.0, 200000 / rate])
    monkeypatch.setattr("odesim.cli.tables.time", SimpleNamespace(monotonic=lambda: next(now)))
    monkeypatch.setenv("COLUMNS", "80")
    progress = EnsembleProgress("joma.nonlinear", True)
    progress.show(0, 1000000, 0)
    progress.next = 0.0
    progress.show(200000, 1000000, 1234)
    line = capsys.readouterr().err.split("\r")[-1]
    assert " [" in line and f"200000/1000000, 1234 failed, {said} members/s, " in line and line.rstrip().endswith("left") and len(line) < 80


REDUCED = "noise.sgd_least_squares --members 40 --span 0:1 --save 5 --observe risk --seed 3 --strict"


def test_statistics(odesim, folder):
    """--reduce prints and stores the numbers of the library, draws them, and stops early with exit code 3."""
    done = odesim("ensemble", *REDUCED.split(), "--reduce", "mean,quantiles", "--json", "--out", "fan.nc", "--plot", "fan.png")
    want = library.ensemble(
        "noise.sgd_least_squares", members=40, span=(0, 1), save=5, observe="risk", seed=3, strict=True, reduce=("mean", "quantiles")
    )
    found = strict(done.stdout)
    assert done.exit_code == 0 and found["statuses"] == {"ok": 40} and Path("fan.png").is_file()
    stored = xarray.open_dataset("fan.nc", engine="scipy")
    for name, values in want.variables.items():
        np.testing.assert_array_equal(found[name], values.values)
        np.testing.assert_array_equal(stored[name], values.values)
    again = odesim("plot", "fan.nc", "--out", "again.png")
    assert again.exit_code == 0 and Path("again.png").read_bytes() == Path("fan.png").read_bytes()
    words = odesim("ensemble", *REDUCED.split(), "--reduce", "mean")
    assert words.exit_code == 0 and "40 of 40 members done" in words.stdout and "risk_mean" in words.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--grid eta=0.1,0.2", "run an ensemble for each point"),
        ("--out a.zarr", "its statistics go to --out FILE.nc"),
        ("--cluster local:2", "--cluster is for members"),
        ("--plot a.png --x eta", "--x is for members"),
        ("--shard 1/2", "--shard is for members"),
        ("--fail-fast", "--fail-fast is for members"),
        ("--plot a.png --var nix", "no kept state or observable 'nix'"),
    ],
)
def test_statistics_are_of_no_member(odesim, folder, words, sentence):
    """What is for members is refused in one sentence."""
    refused = odesim("ensemble", *REDUCED.split(), "--reduce", "mean", *words.split())
    assert refused.exit_code in (2, 3) and sentence in refused.stderr and len(refused.stderr.splitlines()) == 1
