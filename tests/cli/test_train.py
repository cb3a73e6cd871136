"""`odesim train`: what it prints, what it refuses, and how it ends."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import odesim as library
from odesim.base.errors import ParamError
from odesim.lab.commands import TrainingProgress
from odesim.lab.compare.pairs import pairs_of
from odesim.lab.tasks import TASKS, load_task
from odesim.lab.training.task import check_settings
from tests.support import toy

ROOT = Path(__file__).parents[2]
KEYS = ["task", "model", "status", "message", "steps", "seeds", "time", "final", "stats", "optimizer", "backend", "out"]


@pytest.fixture(autouse=True)
def with_toy(monkeypatch):
    """`toy` is a task like the others."""
    from odesim.lab import tasks

    monkeypatch.setattr(tasks, "TASKS", (*tasks.TASKS, "toy"))
    monkeypatch.setitem(sys.modules, "odesim.lab.tasks.toy", toy)


def strict(text: str) -> dict:
    """The one JSON object that text is: no NaN or Infinity."""
    return json.loads(text, parse_constant=pytest.fail)


def test_json_is_the_contract(odesim):
    """The keys in their order, a list over seeds for every final value, digests above 1000 entries; the numbers of odesim.train."""
    done = odesim(
        "train", "toy", "--seeds", "2:5", "--set", "size=2", "--set", "rate=0.2", "--json", "--out", "run.zarr", "--plot", "r.png"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    found, same = strict(done.stdout), library.train("toy", settings={"size": 2, "rate": 0.2}, seeds=range(2, 5))
    assert list(found) == KEYS
    assert (found["task"], found["model"], found["status"], found["steps"], found["time"]) == ("toy", "linear", "ok", 20, 20)
    assert (found["seeds"], found["out"], found["optimizer"]["rates"]) == ([2, 3, 4], "run.zarr", {"w": 0.2})
    assert set(found["stats"]) == {"seconds", "steps_per_second"} and set(found["final"]) == set(same.final)
    for name in ("loss", "norm", "w", "cubes"):
        np.testing.assert_array_equal(found["final"][name], same.final[name])
        assert name == "cubes" or np.array_equal(library.open_run("run.zarr")[name], same.observables[name])
    assert [one["shape"] for one in found["final"]["outer"]] == [[1001]] * 3
    assert Path("r.png").read_bytes().startswith(b"\x89PNG")


def test_summary_fits_and_quiet_is_quiet(odesim):
    """People get a table of 80 columns, on a pipe without progress; --quiet prints nothing."""
    done = odesim("train", "toy", "--seeds", "0:3", "--optimizer", "adam")
    assert (done.exit_code, done.stderr) == (0, "") and max(map(len, done.stdout.splitlines())) < 80
    for word in ("toy (linear): ok at iteration 20, 3 seeds", "loss", "norm", "adam, learning rate w 0.1"):
        assert word in done.stdout
    assert odesim("train", "toy", "--quiet").output == ""


SAME: dict[str, Any] = {
    "settings": (
        "--set size=2 --set noise=normal --set flag=true --set scale=1,2",
        {"settings": {"size": 2, "noise": "normal", "flag": True, "scale": [1, 2]}},
    ),
    "text of a file": ("--set text=@note.txt", {"settings": {"text": "a line\n"}}),
    "table of a file": ("--set size=2 --set scale=@scale.npy", {"settings": {"size": 2, "scale": [1, 2]}}),
    "row of a csv": ("--set size=2 --set scale=@scale.csv", {"settings": {"size": 2, "scale": [1, 2]}}),
    "run": ("--steps 1e1 --save 4 --dtype float32 --seeds 4:6", {"steps": 10, "save": 4, "dtype": "float32", "seeds": (4, 5)}),
    "optimizer": ("--optimizer adamw --lr w=0.3", {"optimizer": "adamw", "rates": {"w": 0.3}}),
    "momentum": ("--optimizer momentum", {"optimizer": "momentum"}),
    "observe": ("--observe cubes --observe outer", {"observe": ("cubes", "outer")}),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("case", SAME)
def test_the_command_line_is_the_library(case, odesim, folder):
    """Words of the command line and arguments of odesim.train store the same configuration and the same bits."""
    words, arguments = SAME[case]
    (folder / "note.txt").write_text("a line\n")
    (folder / "scale.csv").write_text("1,2\n")
    np.save(folder / "scale.npy", np.array([1, 2]))
    assert odesim("train", "toy", *shlex.split(words), "--out", "a.zarr", "--quiet").exit_code == 0
    library.train("toy", **arguments, out="b.zarr")
    a, b = library.open_run("a.zarr"), library.open_run("b.zarr")
    assert set(a.variables) == set(b.variables)
    for key in ("config", "optimizer", "seeds", "steps", "save", "observe", "dtype"):
        assert a.attrs[key] == b.attrs[key]
    for name in a.variables:
        np.testing.assert_array_equal(a[name], b[name])


def test_optimizer_is_the_setting(odesim):
    """Where a task has the setting `optimizer`, --optimizer is it: scan_snap with adam either way."""
    a, b = (odesim("train", "scan_snap", "--steps", "3", "--json", *w) for w in (("--optimizer", "adam"), ("--set", "optimizer=adam")))
    assert a.exit_code == 0, a.stderr
    assert strict(a.stdout)["final"] == strict(b.stdout)["final"] and strict(a.stdout)["optimizer"]["name"] == "adam"
    assert "momentum" not in strict(a.stdout)["optimizer"] and "betas" in strict(a.stdout)["optimizer"]
    said = odesim("train", "scan_snap", "--steps", "3", "--optimizer", "adam", "--out", "run.zarr").stdout
    assert "adam, learning rate Y 1, Z 1" in said and "momentum" not in said
    assert "momentum" not in library.open_run("run.zarr").attrs["config"]
    assert odesim("resume", "run.zarr").exit_code == 0


RATES = [
    (task, setting.name.removeprefix("eta_")) for task in TASKS for setting in load_task(task).settings if setting.name.startswith("eta_")
]
RATES.remove(("committee", "v"))  # eta_v / N, see its own tests


@pytest.mark.first(4)
@pytest.mark.parametrize(("task", "group"), RATES)
def test_a_learning_rate_is_its_setting(task, group):
    """--lr GROUP=RATE and --set eta_GROUP=RATE are one training: bits, stored settings, and theory of the rates that were used."""
    name = f"eta_{group}"
    small = {"length": 8, "num_next": 2, "num_query": 2, "text": "the cat sat on the mat " * 40, "vocabulary": 6, "validation": 0.0}
    settings = small if task == "corpus" else {}
    found = [
        library.train(task, steps=2, **given)
        for given in ({"settings": {**settings, name: 0.37}}, {"settings": settings, "rates": {group: 0.37}})
    ]
    assert found[0].config == found[1].config and found[1].config[name] == found[1].attrs["optimizer"]["rates"][group] == 0.37
    for key, value in found[0].final.items():
        np.testing.assert_array_equal(value, found[1].final[key])
    with pytest.raises(ParamError, match="given twice"):
        library.train(task, settings={**settings, name: 0.2}, rates={group: 0.37})


WRONG = {
    "task": ("tox", "no task 'tox'", "did you mean 'toy'?"),
    "no task": ("", "train needs TASK"),
    "option": ("toy --sedes 0:1", "no option '--sedes'", "did you mean '--seeds'?"),
    "model": ("toy --model linaer", "no model 'linaer' in toy", "did you mean 'linear'?"),
    "setting": ("toy --set raet=1", "no setting 'raet' in toy", "did you mean 'rate'?"),
    "setting twice": ("toy --set size=2 --set size=3", "--set size is given twice"),
    "no =": ("toy --set size", "--set takes NAME=VALUE", "size"),
    "empty": ("toy --set size=", "--set size: the value is empty"),
    "choice": ("toy --set noise=norml", "no noise 'norml' in toy", "did you mean 'normal'?"),
    "word as number": ("toy --set rate=much", "--set rate", "'much' is not a number"),
    "nan": ("toy --set rate=nan", "--set rate", "nan is not a finite number"),
    "not whole": ("toy --set size=2.5", "size of toy is a whole number, not 2.5"),
    "below": ("toy --set size=0", "size of toy must be at least 1, not 0"),
    "not above": ("toy --set rate=0", "rate of toy must be above 0"),
    "list as number": ("toy --set size=1,2", "--set size is one number"),
    "flag": ("toy --set flag=perhaps", "--set flag is true or false, not 'perhaps'"),
    "code": ("toy --set \"size=__import__('os').system('touch hacked')\"", "--set size", "__import__"),
    "shape": ("toy --set scale=1,2", "scale has shape (2,), not (3,)"),
    "fill without shape": ("toy --set 'scale=linspace(0,1)'", "--set scale", "fills a shape"),
    "no file": ("toy --set text=@absent.txt", "there is no file 'absent.txt'"),
    "binary": ("toy --set text=@binary", "'binary' is no UTF-8 text"),
    "empty text": ("toy --set text=@empty", "'empty' is empty"),
    "optimizer": ("toy --optimizer adma", "no optimizer 'adma'", "did you mean 'adam'?"),
    "group": ("toy --lr v=1", "no group of parameters 'v' in toy", "w"),
    "rate": ("toy --lr w=-1", "learning rate of w must be finite and at least 0"),
    "rate of 0 that has a meaning": (
        "joma_gaussian --lr w=0",
        "the learning rate of w cannot be 0 in joma_gaussian, where eta_w=0 stands for 0.1",
    ),
    "momentum of adam": ("scan_snap --optimizer adam --set momentum=0.5", "momentum=0.5 has no meaning with the optimizer adam"),
    "rate without group": ("toy --lr 0.1", "--lr takes GROUP=RATE"),
    "observable": ("toy --observe nrom", "no observable 'nrom'", "did you mean 'norm'?"),
    "dtype": ("toy --dtype float16", "no dtype 'float16'", "float32, float64"),
    "seeds": ("toy --seeds 5", "--seeds takes A:B"),
    "seeds not whole": ("toy --seeds 0:x", "--seeds", "'x' is not a number"),
    "seeds half": ("toy --seeds 0:1.5", "whole numbers"),
    "seeds empty": ("toy --seeds 3:3", "--seeds 3:3 has no seed"),
    "seeds negative": ("toy --seeds=-1:3", "whole numbers from 0 up"),
    "seeds too many": ("toy --seeds 0:1000000000", "1 to 100000 seeds"),
    "steps": ("toy --steps -1", "--steps", "at least 0"),
    "save": ("toy --save 1", "--save", "at least 2"),
    "present run": ("toy --out run.zarr", "run.zarr is there", "--overwrite"),
    "run named csv": ("toy --out run.csv", "run.zarr"),
    "no folder": ("toy --out no/run.zarr", "no folder 'no'"),
    "picture": ("toy --plot r.bmp", "no picture format 'bmp'"),
    "resume without out": ("toy --resume", "--out RUN.zarr"),
    "overwrite without out": ("toy --overwrite", "--out RUN.zarr"),
    "resume and overwrite": ("toy --resume --overwrite --out run.zarr", "choose one"),
    "resume of another": ("toy --resume --out run.zarr --set size=2", "setting size = 3, not 2", "--resume"),
    "fewer steps": ("toy --resume --out run.zarr --steps 1", "4 iterations already, more than the 1"),
    "rows of P overflow": ("scan_snap --set P=[[1e308,1e308]]", "row 0 of P must sum to 1"),
    "psi beyond all": ("scan_snap --set P=[[1,0],[0,1]] --set psi=0,1e300", "psi must use every query", "1e+300"),
    "seeds beyond memory": ("scan_snap --seeds 0:100000 --set batch=100000", "100000 seeds of scan_snap", "GB that are free"),
    "size beyond memory": ("joma_gaussian --set num_classes=9000000000000000000", "would take", "GB, most of it for", "GB that are free"),
    "optimizer twice": ("scan_snap --optimizer adam --set optimizer=sgd", "given twice"),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A stored training of four steps."""
    path = tmp_path_factory.mktemp("trained") / "run.zarr"
    library.train(toy.TASK, steps=4, out=path)
    return path


@pytest.mark.first(22)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_request(name, odesim, folder, trained):
    """Exit code 2, nothing on stdout, one sentence with all its pieces, no file touched."""
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    (folder / "empty").touch()
    words, *pieces = WRONG[name]
    words = words.replace("run.zarr", str(trained)) if "--out run.zarr" in words else words
    before = {p: p.stat().st_mtime_ns for place in (folder, trained) for p in [place, *place.rglob("*")]}
    done = odesim("train", *shlex.split(words))
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("odesim: ")
    for piece in pieces:
        assert piece in sentence
    assert before == {p: p.stat().st_mtime_ns for place in (folder, trained) for p in [place, *place.rglob("*")]}


def test_settings_are_listed(odesim):
    """--settings: names, defaults, words and ranges of the settings, and the models, in 80 columns; nothing is trained."""
    page = odesim("train", "toy", "--settings").stdout
    assert max(map(len, page.splitlines())) < 80
    assert all(piece in page for setting in toy.TASK.settings for piece in (setting.name, setting.doc, *setting.choices))
    assert all(f"model {word}" in page for word in toy.TASK.models) and "0.1" in page
    assert "w 0.1 (--lr GROUP=RATE)" in page and re.search(r"steps +20$", page, re.MULTILINE)
    (costly,) = re.findall(r"^  cubes \(d\) +(.*)$", page, re.MULTILINE)[:1]
    assert costly == "w^3; at the end" and "described by" not in page


@pytest.mark.first(7)
@pytest.mark.parametrize("task", TASKS)
def test_settings_of_the_tasks(task, odesim):
    """Of every task: what its default training records is named, and the Systems that are compared with it, in 80 columns."""
    page = odesim("train", task, "--settings").stdout
    assert max(map(len, page.splitlines())) < 80
    loaded = load_task(task)
    made = loaded.make(check_settings(task, loaded.settings, {}), seeds=(0,))
    assert all(re.search(rf"^  {o.name}\b", page, re.MULTILINE) for o in made.model.observables)
    described = list(pairs_of(task))
    assert [system for system in described if f"  {system} " in page] == described


def test_help_names_the_tasks(odesim):
    """Every task of this package is on the page of help."""
    assert all(name in odesim("train", "--help").stdout for name in TASKS)


COMMAND = """
import sys
sys.path.insert(0, {root!r})
from odesim.lab import tasks
from tests.support import toy
tasks.TASKS, sys.modules["odesim.lab.tasks.toy"] = ("toy",), toy
import pathlib, odesim.lab.commands
odesim.lab.commands.TrainingProgress.show = lambda self, done, *_: done == 3 and pathlib.Path("running").touch()
from odesim.cli import main
main()
"""


@pytest.mark.first(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_stopped_from_outside(number, folder, odesim):
    """Ctrl-C or SIGTERM: exit code 3, a sentence with --resume, the rows so far; --resume goes on, a second time it does nothing."""
    words = ("train", "toy", "--set", "slow=0.1", "--steps", "200", "--out", "run.zarr", "--json")
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND.format(root=str(ROOT)), *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    while not (folder / "running").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate()
    found = strict(out)
    assert process.returncode == 3, err
    assert err.startswith("odesim: interrupted at iteration") and "--resume" in err and len(err.splitlines()) == 1
    done = found["time"]
    assert found["status"] == "interrupted" == library.open_run("run.zarr").attrs["status"] and 0 < done < 200
    assert library.open_run("run.zarr").sizes["time"] == done
    more = ("train", "toy", "--set", "slow=0.1", "--steps", str(done + 2), "--out", "run.zarr", "--json", "--resume")
    ended = odesim(*more)
    assert ended.exit_code == 0 and strict(ended.stdout)["time"] == done + 2
    assert strict(odesim(*more).stdout) == strict(ended.stdout)


def test_a_lost_seed_is_3(odesim):
    """A learning rate that makes the weights diverge: exit code 3, null for what is not finite, the sentence says which seed and when."""
    done = odesim("train", "toy", "--set", "rate=1e200", "--seeds", "0:2", "--json", "--out", "run.zarr", "--plot", "r.png")
    found = strict(done.stdout)
    assert (done.exit_code, found["status"], found["final"]["loss"]) == (3, "non_finite", [None, None])
    assert done.stderr == f"odesim: {found['message']}\n" and "seed 0 from iteration 1 on" in found["message"]


def test_plot_and_export_read_a_training(odesim, trained, folder):
    """A stored training is drawn, and written as csv (one line an iteration, a column a seed) and as netCDF."""
    for command in (
        ("plot", trained, "--out", "a.png"),
        ("export", trained, "--to", "csv", "--out", "a.csv"),
        ("export", trained, "--to", "nc", "--out", "a.nc"),
    ):
        done = odesim(*command)
        assert done.exit_code == 0, done.stderr
    head, *lines = (folder / "a.csv").read_text().splitlines()
    assert head == 't,loss[0],norm[0],"w[0, 0]","w[0, 1]","w[0, 2]"' and len(lines) == 5
    np.testing.assert_array_equal([float(line.split(",")[2]) for line in lines], library.open_run(trained).norm[0])
    assert sorted(os.listdir()) == ["a.csv", "a.nc", "a.png"]


def test_progress(capsys):
    """A watched training shows a bar, the loss and the time left; a piped one nothing."""
    for watched in (True, False):
        with TrainingProgress("toy", watched) as progress:
            for done in (50, 75):
                progress.next = 0.0
                progress.show(done, 100, np.array([1.0, 2.0]))
        said = capsys.readouterr().err
        assert ("[##########..........] 50/100, loss 1.5" in said and "about" in said) if watched else said == ""


@pytest.mark.parametrize(
    ("resumed", "rate", "left"), [(0, 10.0, "9 s"), (60, 10.0, "3 s"), (0, 0.1, "15 min"), (0, 0.01, "2.5 h"), (0, 0.9, "100 s")]
)
def test_time_left(resumed, rate, left, capsys, monkeypatch):
    """Iterations left over the rate since the first one seen, also where a run goes on; shorter than a line of the terminal."""
    clock = [1000.0]
    monkeypatch.setattr("odesim.cli.tables.time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setenv("COLUMNS", "80")
    with TrainingProgress("a_task_of_a_very_long_name", True) as progress:
        progress.start = progress.next = 990.0  # reading took 10 s
        for k in range(11):
            progress.next = 0.0
            progress.show(resumed + k, 100, np.array([1.2345e-10]))
            clock[0] += 1 / rate
    lines = capsys.readouterr().err.split("\r")
    assert max(map(len, lines)) < 80
    assert "starting" in lines[1] and f"{resumed + 10}/100" in lines[12] and lines[12].rstrip().endswith(f"about {left} left")
