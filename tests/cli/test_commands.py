"""Every other command, and the pages of help."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from odesim import ensemble, list_models, load_model, open_run
from odesim.cli.about import SHELLS, features_text
from odesim.cli.app import COMMANDS
from odesim.cli.models import SCREEN, default_text
from odesim.cli.tables import Counter, Progress, bytes_text, table, wrap_formula
from odesim.inputs.registry import source_text, summary
from odesim.lab.tasks import TASKS
from odesim.plot import animate
from odesim.plot.figures import Feature, FigureRun
from odesim.targets.native import load_native
from tests.support.models import CHEAPEST_FIRST

RUN = ("integrate", "joma.nonlinear", "--size", "M=3", "--quiet", "--out", "run.zarr", "--save", "5", "--backend", "numpy")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns(command, odesim):
    """Every page fits, ends with 0 and has an Options part; -h is --help."""
    done = odesim(*command.split(), "--help")
    assert (done.exit_code, done.stderr) == (0, "") and "Options:" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert odesim(*command.split(), "-h").stdout == done.stdout


def test_no_command_is_help(odesim):
    """`odesim` alone prints what there is; --version one line."""
    assert odesim().stdout == odesim("--help").stdout
    assert all(f"  {command} " in odesim().stdout for command in COMMANDS)
    name, version = odesim("--version").stdout.split()
    assert name == "odesim" and version[0].isdigit()


def test_list_names_every_model(odesim):
    """By family, in the width and the height of a screen or two; a family or a part of names is described, as is a word of summaries,
    before the names of models whose files have it; --json has the models; where nothing fits, a sentence says so."""
    text, models = odesim("list").stdout, list_models()
    blocks = re.split(r"\n(?=\w)", text.partition("\n\n")[0])
    heads = [block.partition(":")[0] for block in blocks]
    families = [head.partition(".")[0] for head in heads]
    names = {f"{family}.{word.strip(',')}" for family, block in zip(families, blocks, strict=True) for word in block.split()}
    assert set(models) <= names | {*heads} and families == sorted({name.partition(".")[0] for name in models})
    assert max(map(len, text.splitlines())) <= 80 and len(text.splitlines()) <= 60
    for part in ("joma", "softmax"):
        found = odesim("list", part).stdout.splitlines()
        assert [line for line in found if line in models] == [name for name in models if part in name]
        assert any(line.startswith("  ") for line in found)
    assert [line for line in odesim("list", "--tasks").stdout.splitlines() if not line.startswith(" ")] == [*TASKS]
    tasks = odesim("list", "--tasks", "Dyck").stdout
    assert "dyck" in tasks.splitlines() and "scan_snap" not in tasks
    assert (done := odesim("list", "--tasks", "lozz")).exit_code == 2 and "no task has 'lozz' in its name" in done.stderr
    found = json.loads(odesim("list", "--json").stdout)
    assert [model["name"] for model in found] == models and all(model["summary"] for model in found)
    head, _, tail = odesim("list", "Loss").stdout.partition("\nalso in the files of\n")
    described = {name for name in models if re.search(r"\bloss", summary(name), re.IGNORECASE)}
    assert {line for line in head.splitlines() if not line.startswith(" ")} == described
    with_loss = {name for name in models if '"loss": ' in source_text(name) and "loss" in load_model(name).observables}
    assert with_loss <= described | {*tail.replace(",", "").split()} < {*models}
    assert len(json.loads(odesim("list", "loss", "--json").stdout)) == len(described) + len(tail.split())
    for text, sentence in (
        ("hopfeld", "; did you mean 'hopfield'?"),
        ("lozz", "; `odesim list` names all"),
        ("no such", "; `odesim list`"),
    ):
        wrong = odesim("list", text)
        assert wrong.exit_code == 2 and f"no model has {text!r} in its name, its summary or its file{sentence}" in wrong.stderr


@pytest.mark.first(5)
@pytest.mark.parametrize("model", CHEAPEST_FIRST)
def test_show_fits_and_says_all(model, odesim):
    """What it is, states, parameters, observables, invariants, events and closed forms are on a page of 80 columns; --json has them too."""
    page = odesim("show", model, "--all")
    assert page.exit_code == 0, page.stderr
    assert max(map(len, page.stdout.splitlines())) < 80 and " ".join(page.stdout.split()).startswith(f"{model} {summary(model)} ")
    found = json.loads(odesim("show", model, "--json").stdout, parse_constant=pytest.fail)
    assert found["name"] == model and found["source"]["key"] in page.stdout
    for part in ("states", "parameters", "observables", "invariants", "events", "closed_forms"):
        for thing in found[part]:
            assert re.search(f"[ ,] {re.escape(thing['name'])}", page.stdout) and [t["name"] for t in found[part]].count(thing["name"]) == 1
    meanings = [event["doc"] for event in found["events"]]
    assert all(meanings) and all(words.split()[0] in page.stdout for words in meanings)
    assert all(not isinstance(p["default"], str) for p in found["parameters"])  # bound at the default sizes
    whole, short = page.stdout.splitlines(), odesim("show", model).stdout.splitlines()
    more = re.compile(r"  \.\.\. \d+ more with --all")
    assert [line for line in short if not more.fullmatch(line)] == [line for line in whole if line in short]
    assert [line for line in whole if line[0] != " "] == [line for line in short if line[0] != " "]
    assert len(short) < 2 * SCREEN  # of the longest models, of nearly a hundred lines
    assert short == whole or (len(short) < len(whole) and any(map(more.fullmatch, short)) and len(whole) > SCREEN)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), ([0.5, 0.5], "0.5"), ([[0.2, 0.1], [0.3, 0.2]], "0.1 to 0.3"), ({"min": -1, "max": 2}, "-1 to 2"), ("a word", "a word")],
)
def test_a_default_is_its_range(value, text):
    """One number where all are equal, else the least and the largest, wherever they stand."""
    assert default_text(value) == text


def test_show_derived_adds_the_program(odesim):
    """Temporaries stand on the page only with --derived; --latex has no place for them and says so."""
    assert "program" not in odesim("show", "joma.nonlinear_softmax").stdout
    page = odesim("show", "joma.nonlinear_softmax", "--derived").stdout
    assert "program\n  r0 = max_l(v[l]^2/T)\n" in page and max(map(len, page.splitlines())) < 80
    assert json.loads(odesim("show", "joma.nonlinear_softmax", "--derived", "--json").stdout)["derived"][-1].startswith("d_v[l] = ")
    assert odesim("show", "joma.nonlinear_softmax", "--derived", "--latex").exit_code == 2


def test_show_latex_is_a_document(odesim):
    """--latex prints a document whose braces and environments balance."""
    text = odesim("show", "joma.nonlinear", "--latex").stdout
    assert text.startswith("\\documentclass") and text.endswith("\\end{document}\n")
    assert text.count("{") == text.count("}") and text.count("\\begin{") == text.count("\\end{")


@pytest.mark.parametrize("name", ["my.py", "my model-2.py", 'a"""b.py'])
def test_new_writes_a_model_that_runs(name, odesim):
    """The template can be shown and integrated, and its closed form is what comes out."""
    assert odesim("new", name).exit_code == 0
    assert odesim("show", name).exit_code == 0
    done = odesim("integrate", name, "--set", "tau=2", "--backend", "numpy", "--rtol", "1e-9", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    # s = 1, -1/2, 1/3, -1/4 and w = s (1 - exp(-t/tau)); ten times the tolerance
    np.testing.assert_allclose(found["final"]["w"], np.array([1, -1 / 2, 1 / 3, -1 / 4]) * -np.expm1(-8 / 2), rtol=1e-8)
    assert found["events"]["half_way"] == [{"t": pytest.approx(2 * np.log(2), rel=1e-8), "index": None}]
    assert odesim("new", name).exit_code == 2


def test_a_run_is_drawn_and_exported(odesim):
    """plot and export read what integrate stored; files lie beside the run unless --out says where."""
    assert odesim(*RUN).exit_code == 0
    assert odesim("plot", "run.zarr").stdout == "drawn in run.png\n"
    assert odesim("plot", "run.zarr", "--out", "other.svg").exit_code == 0
    assert odesim("export", "run.zarr", "--to", "csv").stdout == "written to run.csv\n"
    assert odesim("export", "run.zarr", "--to", "nc", "--out", "data.nc").exit_code == 0
    assert odesim("export", "run.zarr", "--out", "again.csv").exit_code == 0  # the format is that of the name
    assert Path("again.csv").read_bytes() == Path("run.csv").read_bytes()
    run = open_run("run.zarr")
    with Path("run.csv").open() as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_array_equal([float(row["v[1]"]) for row in rows], run.v[:, 1])
    with xr.open_dataset("data.nc") as found:
        np.testing.assert_array_equal(found.v, run.v)
    assert odesim("plot", "data.nc").exit_code == 0 and Path("data.png").read_bytes() == Path("run.png").read_bytes()
    assert Path("run.png").read_bytes()[:4] == b"\x89PNG" and "<svg" in Path("other.svg").read_text()
    done = odesim("export", "run.zarr", "--to", "csv")
    assert done.exit_code == 2 and "run.csv is there" in done.stderr
    done = odesim("export", "run.zarr", "--to", "csv", "--out", "other.nc")
    assert done.exit_code == 2 and "--to is csv, and --out is a file of nc" in done.stderr and not Path("other.nc").exists()
    assert odesim("export", "run.zarr", "--to", "csv", "--overwrite").exit_code == 0


def test_a_stored_picture_is_the_same(odesim):
    """`plot RUN` draws the very picture that `integrate --plot` drew."""
    # of fewer saved times the run itself computes what is about events and corners, which a stored one cannot
    assert odesim(*RUN, "--save", "1001", "--plot", "first.png").exit_code == 0
    assert odesim("plot", "run.zarr", "--out", "second.png").exit_code == 0
    assert Path("first.png").read_bytes() == Path("second.png").read_bytes()


@pytest.mark.slow
def test_a_stored_run_is_animated(odesim):
    """`plot RUN --animate` writes the film of Python's animate(), and says in a sentence what it cannot do, with nothing written."""
    assert odesim(*RUN).exit_code == 0
    assert odesim("plot", "run.zarr", "--animate", "v.gif").stdout == "drawn in v.gif\n"
    assert Path("v.gif").read_bytes() == animate("run.zarr", "again.gif", var="v").read_bytes()
    wrong = {
        "--animate w.gif --var w": "no array 'w' in joma.nonlinear; choose from gap, v",
        "--animate w.avi": "no picture format 'avi'; choose from gif, mp4",
        "--animate w.gif --out w.png": "choose one",
        "--animate w.gif --index 1": "index of a film is for ensembles",
    }
    for words, sentence in wrong.items():
        done = odesim("plot", "run.zarr", *words.split())
        assert done.exit_code == 2 and sentence in done.stderr
    assert not list(Path().glob("w.*"))


def test_doctor_says_what_is_here(odesim):
    """Versions, processor, cores, cache and GPU; what is missing comes with what to install."""
    done = odesim("doctor")
    assert done.exit_code == 0 and done.stderr == ""
    for word in ("odesim", "python", "numba", "sympy", "processor", "cores", "folder", "driver", "cupy", "nvrtc"):
        assert f"\n  {word} " in done.stdout
    assert np.__version__ in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_prints_a_script(shell, odesim):
    """The script asks odesim itself by the variable that the command line looks at."""
    assert "_ODESIM_COMPLETE" in odesim("completion", shell).stdout


@pytest.mark.first(8)
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("odesim int", {"integrate"}),
        ("odesim integrate joma.nonlinear_", {"joma.nonlinear_log", "joma.nonlinear_softmax"}),
        ("odesim integrate x --met", {"--method"}),
        ("odesim completion z", {"zsh"}),
        ("odesim integrate joma.nonlinear_softmax --set m", {"mu="}),
        ("odesim integrate scan_snap.full --set eta", {"eta_Y=", "eta_Z="}),
        ("odesim ensemble scan_snap.theorem4 --vary ", {f"{name}=" for name in ("K", "M", "eta_Y", "eta_Z", "C0", "z", "B", "u")}),
        ("odesim integrate joma.linear --size ", {"M="}),
        ("odesim integrate joma.linear --init ", {"v="}),
        ("odesim ensemble joma.nonlinear --observe e", {"entropy"}),
        ("odesim train scan_snap --set num_u", {"num_unique_per_next="}),
        ("odesim integrate no.such_model --set m", set()),
        ("odesim integrate my.py --set m", set()),
        ("odesim train nothing --set m", set()),
        ("odesim train scan_snap --lr ", {"Y=", "Z="}),
        ("odesim train nothing --lr ", set()),
        ("odesim train scan_snap --observe loss_p", {"loss_population"}),
        ("odesim compare --recipe reversal_", {"reversal_chains", "reversal_replacement", "reversal_shuffled"}),
        ("odesim compare scan_snap.full --observable c", {"c"}),
        ("odesim compare my.py --observable c", set()),
        ("odesim figure joma_fig4", {"joma_fig4"}),
        ("odesim integrate joma.linear --method rod", {"rodas4", "rodas5p"}),
        ("odesim ensemble joma.linear --dtype ", {"float32", "float64"}),
        ("odesim verify induction.half", {"induction.half_times", "induction.half_times_of_matrices"}),
        ("odesim verify reversal.ro", {"reversal.row"}),
        ("odesim plot many.zarr --var ", {"v", "gap"}),
        ("odesim plot many.zarr --x ", {"mu", "time"}),
        ("odesim plot nothing.zarr --var ", set()),
    ],
)
def test_completion_offers(words, offered, odesim, folder, monkeypatch):
    """What the shell is offered for the last word; a model file is not executed, and a fault is silent."""
    (folder / "my.py").write_text("raise SystemExit('executed')")
    if "many.zarr" in words:
        ensemble("joma.nonlinear", sizes={"M": 2}, vary={"mu": "uniform(1,2)"}, members=3, observe="gap", save=3, out=folder / "many.zarr")
    for name, value in (("_ODESIM_COMPLETE", "bash_complete"), ("COMP_WORDS", words), ("COMP_CWORD", len(words.split(" ")) - 1)):
        monkeypatch.setenv(name, str(value))
    done = odesim()
    assert {line.partition(",")[2] for line in done.stdout.split()} == offered and not done.stderr, done.stderr


def test_figures_are_held_against_their_targets(odesim, monkeypatch):
    """The features stand in a table; one off its target is exit code 3 and named."""
    good, off = Feature("a number of some paper with a long name", 1.0, 1.0, 0.0), Feature("another", 2.0, 1.0, 0.5)
    runs = {"one": FigureRun("one", (good,), (Path("one.png"),)), "two": FigureRun("two", (good, off), (Path("two.png"),))}
    monkeypatch.setattr("odesim.plot.figures.list_figures", lambda: list(runs))
    monkeypatch.setattr("odesim.plot.figures.load_figure", lambda name: None)
    monkeypatch.setattr("odesim.plot.figures.run_figure", lambda name, **_: runs[name])
    assert odesim("figure", "one").exit_code == 0
    done = odesim("figure", "all", "--format", "png,pdf")
    assert done.exit_code == 3 and "two: 1 of 2 features are off their target: another" in done.stderr
    assert done.stdout == f"{features_text(runs['one'])}\n{features_text(runs['two'])}\n"
    assert "OFF" in features_text(runs["two"]) and "OFF" not in features_text(runs["one"])


def test_progress_is_for_terminals(capsys):
    """A line that is rewritten and wiped where somebody watches; nothing in a pipe."""
    for watched in (False, True):
        with Progress("joma.nonlinear", watched) as progress:
            progress(0.05)  # what came before, as compiling did, counts neither as long nor in the time of the rest
            progress.began, progress.next = progress.began - 10.0, 0.0
            progress(0.25)
            progress(0.26)  # too soon to be shown
        lines = capsys.readouterr().err.split("\r")
        if watched:
            assert lines[:2] == ["", "joma.nonlinear: starting"] and lines[2].startswith("joma.nonlinear:  25.0 %")
            assert lines[2].endswith("about 38 s left")  # 0.2 in 10 s, and 0.75 are left
            assert lines[3:] == [" " * max(map(len, lines)), ""]
        else:
            assert lines == [""]


@pytest.mark.parametrize("kind", [Progress, Counter])
def test_a_compilation_is_said(capsys, monkeypatch, tmp_path, kind):
    """That it compiles is said first, and how long it took at the end, where somebody watches; what is there already is no compiling."""
    monkeypatch.setattr("odesim.cli.tables.LONG", 1e-9)
    monkeypatch.setenv("ODESIM_CACHE_DIR", str(tmp_path))
    text = (
        'from odesim.runtime.functions import njit\n\n\n@njit("float64(float64)")\ndef run(x):\n    return x + {}\n'
        + f"# {kind.__name__}\n"
    )
    said = []
    for watched, number in ((False, 1), (True, 2), (True, 2)):
        with kind("toy", watched):
            load_native(text.format(number), "toy", ["run"])
        said.append([words.strip() for words in capsys.readouterr().err.split("\r")])
    compiled = ["", "toy: starting", "toy: compiling", "toy: starting", "", "toy: compiled in 0 s, kept for later runs"]
    assert said == [[""], compiled, ["", "toy: starting", "", ""]]


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(folder):
    """`odesim show MODEL | head -1` ends quietly."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(1); from odesim.cli import main; main()", "show", "scan_snap.full"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait() == 0
    process.stderr.close()


def test_text():
    """Columns align, long last columns wrap below themselves, formulas break outside brackets only."""
    lines = table([("a", "1", "x " * 60), ("bcd", "22", "y")], right=(1,)).splitlines()
    assert lines[0].startswith("  a     1  x x") and lines[1].startswith(" " * 11 + "x") and lines[-1] == "  bcd  22  y"
    assert max(map(len, lines)) < 80
    text = " + ".join(f"w[m, {i}]*x[n, {i}]" for i in range(12))
    broken = wrap_formula(text)
    assert max(map(len, broken.splitlines())) < 80 and all(line.count("[") == line.count("]") for line in broken.splitlines())
    assert "".join(broken.split()) == "".join(text.split())
    assert [bytes_text(n) for n in (0, 999, 1500, 25_300_000_000)] == ["0 B", "999 B", "1.5 kB", "25.3 GB"]
