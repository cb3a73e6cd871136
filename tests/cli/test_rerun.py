"""`odesim status`, `resume` and `rerun` of every kind of run: the same bits again, and what is said where they are others."""

import json
import re
import sys
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import odesim as library
from odesim.base.errors import counted
from odesim.stepper.codes import Status
from odesim.store.paths import group_attributes
from tests.support import toy
from tests.support.matrix import slow_but
from tests.support.metadata import edit

MODEL = """
from sympy import Interval, oo
from odesim.symbolic import Event, IndexedBase, Param, Source, System, index, sizes
(m,), (M,) = index("m"), sizes("M")
x, a = IndexedBase("x", shape=(M,)), IndexedBase("a", shape=(M,))
SYSTEM = System(
    name="my.decay", source=Source("none", "test"), axes={m: M}, equations={x[m]: -a[m] * x[m]},
    params=(Param(a, 1.0, Interval(0, oo), "rate"),), initial={x[m]: 2 * a[m]}, sizes={M: 3}, span=(0.0, 2.0),
    observables={"twice": 2 * x[m]}, events=(Event("one", x[m] - 1, -1, False), Event("low", x[m] - 0.4, -1, True)),
)
"""
ONE = "joma.nonlinear --size M=3 --span 0:2"
INTEGRATIONS = {
    "plain": ONE,
    "random": f"{ONE} --set mu=uniform(0.5,2) --init v=normal(0,0.1) --seed 3 --save log:20",
    "float32": f"{ONE} --dtype float32 --method vern7",
    "strict": f"{ONE} --strict",
    "fixed": f"{ONE} --method rk4 --step 0.1 --save 0.25,",
    "stiff": f"{ONE} --method rodas5p --rtol 1e-8",
    "stiff, strict": f"{ONE} --method rodas5p --strict",
    "numpy": f"{ONE} --backend numpy --save 5",
    "large": "joma.nonlinear --size M=1500 --init v=uniform(0,0.1) --span 0:1 --save 3",
    "blow-up": "joma.linear --span 0:1000 --save 9",
    "few steps": f"{ONE} --max-steps 3 --save 50",
    "few steps, no time": f"{ONE} --max-steps 3 --save 2,",
    "slopes": f"{ONE} --sensitivity mu --sensitivity v --save 3",
    "rescaled": "joma.linear --clock rescaled --span 0:1000 --save 9",
    "rescaled, times": "joma.linear --clock rescaled --span 0:1000 --save 0.5,1,999",
    "file": "my.py",
    "event": "my.py --set a=3 --save 7",
}


@pytest.fixture
def run(odesim, folder):
    """run(words) -> Result of the command line; my.py is a model in its folder."""
    (folder / "my.py").write_text(MODEL)
    return lambda words: odesim(*words.split())


def change(path: str, **attributes: Any) -> None:
    """Other attributes in a stored run."""
    edit(Path(path, "zarr.json"), lambda said: {**said, "attributes": {**said["attributes"], **attributes}})


def test_status_says_how_one_run_was_computed(run):
    """Method, backend, steps; of a training its optimizer and seeds. What is not stored is left out."""
    run(f"integrate {ONE} --save 3 --out run.zarr --quiet")
    steps = json.loads(run("status run.zarr --json").stdout)["stats"]["steps"]
    shown = run("status run.zarr").stdout
    assert "\nmethod   tsit5 on numba\n" in shown and re.search(rf"\nsteps    {steps:.0f}, \d+ rejected, \d+ right-hand sides\n", shown)
    change("run.zarr", stats={"steps": None})
    assert "\nsteps" not in run("status run.zarr").stdout
    run("train scan_snap --steps 2 --seeds 3:5 --out t.zarr --quiet")
    shown = run("status t.zarr").stdout
    assert "\noptimizer  sgd, learning rate Y 1, Z 1, momentum 0.9\n" in shown and "\nseeds      3, 4\n" in shown


SLOW = ("float32", "slopes", "stiff, strict")  # a kernel each that is no other test's


@pytest.mark.first(4)
@pytest.mark.parametrize("case", slow_but(INTEGRATIONS, [name for name in INTEGRATIONS if name not in SLOW]))
def test_an_integration_again(case, run, folder, monkeypatch):
    """Every bit of an integration comes again from what is stored, also from another folder, and nothing is written."""
    assert run(f"integrate {INTEGRATIONS[case]} --out run.zarr --quiet").exit_code in (0, 3)
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    file = "--model ../my.py" if INTEGRATIONS[case].startswith("my.py") else ""
    done = run(f"rerun ../run.zarr {file}")
    rows = library.open_run("../run.zarr").sizes["time"]
    assert (done.exit_code, done.stdout) == (0, f"{counted(rows, 'saved time')} computed again: every bit is the same\n"), done.stderr
    (folder / "elsewhere" / "my.py").unlink(missing_ok=True)
    (folder / "elsewhere").rmdir()
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before


CHANGED = {
    "state": ("v", (3, 1), 1.0, "1 differs, the first is v of t = 0.75; the largest difference is 1"),
    "parameter": ("params/mu", (1,), 1e-9, "9 differ, the first is gap of t = 0;"),
    "start": ("initial/v", (0,), 1e-9, "differ, the first is v of t = 0"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_a_changed_number_is_found(case, run):
    """A number that somebody changed: exit code 3, where the first difference is and how large it gets."""
    name, at, by, said = CHANGED[case]
    run(f"integrate {ONE} --save 9 --out run.zarr --quiet")
    array: Any = zarr.open_array(f"run.zarr/{name}")
    array[at] = array[at] + by
    done = run("rerun run.zarr --quiet")
    assert done.exit_code == 3 and said in done.stderr and "9 saved times computed again: " in done.stderr, done.stderr


@pytest.mark.slow
def test_another_end_is_found(run):
    """A status or a time of an event that is another one."""
    run("integrate my.py --set a=3 --save 7 --out run.zarr --quiet")
    for changed in ({"t_end": 0.5}, {"status": "ok"}, {"events": {**group_attributes(Path("run.zarr"))["events"], "one": []}}):  # type: ignore[index, dict-item]
        old = group_attributes(Path("run.zarr"))
        change("run.zarr", **changed)
        assert "the first is" in run("rerun run.zarr --model my.py").stderr
        change("run.zarr", **old)  # type: ignore[arg-type]
    assert run("rerun run.zarr --model my.py").exit_code == 0


KINDS = {
    "integration": (f"integrate {ONE} --save 9", "v", "20 times its tolerances"),
    "ensemble": ("ensemble joma.nonlinear --size M=2 --span 0:2 --method tsit5 --grid mu=1,2 --save 9", "v", "20 times its tolerances"),
    "training": ("train toy --steps 9", "w", "half the digits of float64"),
}


@pytest.fixture
def with_toy(monkeypatch):
    """`toy` is a task like the others."""
    from odesim.lab import tasks

    monkeypatch.setattr(tasks, "TASKS", (*tasks.TASKS, "toy"))
    monkeypatch.setitem(sys.modules, "odesim.lab.tasks.toy", toy)


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", KINDS)
def test_by_other_code(kind, run, with_toy):
    """Where the code or numpy was another one, that is said; small differences pass, large ones do not."""
    words, name, bound = KINDS[kind]
    run(f"{words} --out run.zarr --quiet")
    versions: Any = group_attributes(Path("run.zarr"))["versions"]  # type: ignore[index]
    change("run.zarr", kernel="another", versions={**versions, "numpy": "1.0"})
    same = run("rerun run.zarr")
    assert same.exit_code == 0 and f"by other code (numpy 1.0 then, {np.__version__} now): every bit is the same" in same.stdout
    array: Any = zarr.open_array(f"run.zarr/{name}")
    first = array[...]
    array[...] = first + 1e-10
    small = run("rerun run.zarr --json")
    found = json.loads(small.stdout)
    assert (small.exit_code, small.stderr, found["same"]) == (0, "", False) and f"is 1e-10, within {bound}" in found["message"]
    array[...] = first + 1e-2
    large = run("rerun run.zarr")
    assert large.exit_code == 3 and f"is 0.01, more than {bound}" in large.stderr


def test_a_system_of_python_cannot_come_again(run, folder):
    """A run of a System does not know where it comes from: one sentence."""
    namespace: dict[str, Any] = {}
    exec(MODEL, namespace)
    from odesim.store.write import write_solution

    write_solution(library.integrate(namespace["SYSTEM"]), folder / "run.zarr")
    done = run("rerun run.zarr")
    assert done.exit_code == 2 and "was made in Python from a System" in done.stderr and done.stderr.count("\n") == 1
    write_solution(library.integrate(folder / "my.py"), folder / "file.zarr")
    assert run("rerun file.zarr --model my.py").exit_code == 0


TRAININGS = {
    "one seed": "toy",
    "seeds": "toy --seeds 2:5 --set size=2 --set rate=0.2 --optimizer adam --save 5",
    "costly": "toy --observe cubes --dtype float32",
    "diverged": "toy --set rate=1e200 --seeds 0:2",
    "no step": "toy --steps 0",
    "table": "scan_snap --set num_common=3 --set eta_Z=0.5 --steps 4 --seeds 0:2",
}


@pytest.mark.first(1)
@pytest.mark.parametrize("case", TRAININGS)
def test_a_training_again(case, run, with_toy):
    """Every bit of a training comes again, and of one that was made longer; a changed row is named."""
    done = run(f"train {TRAININGS[case]} --out run.zarr --json")
    assert done.exit_code in (0, 3), done.stderr
    for _ in range(2):
        again = run("rerun run.zarr")
        assert again.exit_code == 0 and again.stdout.endswith("computed again: every bit is the same\n"), again.stderr
        longer = json.loads(done.stdout)["steps"] + 7
        run(f"train {TRAININGS[case].split(' --steps')[0]} --out run.zarr --resume --steps {longer} --quiet")
    loss: Any = zarr.open_array("run.zarr/loss")
    loss[0, 1] = 0.5
    assert "1 differs, the first is loss of iteration" in run("rerun run.zarr").stderr


def stopped(monkeypatch, at: int) -> None:
    """Trainings stop when they have asked so many times whether to go on."""
    from contextlib import contextmanager

    asked = count()

    @contextmanager
    def stopping():
        yield lambda: next(asked) >= at

    monkeypatch.setattr("odesim.lab.resume.stop_signals", stopping)


@pytest.mark.parametrize("at", [0, 7])
def test_a_stopped_training_again(at, run, with_toy, monkeypatch):
    """One that was interrupted comes again as far as it was; resume ends it with the bits of one that never stopped."""
    with monkeypatch.context() as patched:
        stopped(patched, at)
        assert run("train toy --seeds 0:2 --out run.zarr --quiet").exit_code == 3
    done = run("rerun run.zarr")
    assert (done.exit_code, done.stdout) == (0, f"{at} recorded iterations of 2 seeds computed again: every bit is the same\n"), done.stderr
    ended = run("resume run.zarr --json")
    assert ended.exit_code == 0 and json.loads(ended.stdout)["time"] == 20
    run("train toy --seeds 0:2 --out whole.zarr --quiet")
    assert library.open_run("run.zarr").drop_attrs().identical(library.open_run("whole.zarr").drop_attrs())
    assert run("resume run.zarr --quiet").output == ""  # of a finished one nothing is done


def test_a_killed_training_again(run, with_toy):
    """Of one that was killed the rows that are there are compared."""
    run("train toy --out run.zarr --quiet")
    change("run.zarr", status="running", iteration=0, rows=11)
    assert run("rerun run.zarr").stdout == "11 recorded iterations computed again: every bit is the same\n"
    change("run.zarr", rows=0)
    assert run("rerun run.zarr").stdout == "0 recorded iterations computed again: every bit is the same\n"


def test_resume_of_what_cannot_be_resumed(run, with_toy):
    """A finished integration needs nothing; a stopped one says what to do; options of ensembles are for ensembles."""
    run(f"integrate {ONE} --out run.zarr --quiet")
    done = run("resume run.zarr")
    assert done.exit_code == 0 and done.stdout.startswith("run.zarr is complete, to t = ") and done.stdout.count("\n") == 1
    assert run("resume run.zarr --quiet").output == ""
    run(f"integrate {ONE} --max-steps 3 --out short.zarr --quiet")
    done = run("resume short.zarr")
    assert done.exit_code == 2 and "ended as max_steps at t = " in done.stderr and "cannot be continued" in done.stderr
    done = run("resume run.zarr --retry-failed")
    assert done.exit_code == 2 and "--retry-failed is for ensembles, and run.zarr is an integration" in done.stderr


def test_resume_of_another_task(run, monkeypatch):
    """A task of somebody's own has no name here: one sentence."""
    library.train(toy.TASK, out="run.zarr", steps=3)
    for command in ("resume", "rerun"):
        done = run(f"{command} run.zarr")
        assert done.exit_code == 2 and "toy of run.zarr is a task of a file or a program" in done.stderr and done.stderr.count("\n") == 1


def test_every_kind_has_a_status(run, with_toy):
    """status of an integration and of a training."""
    run(f"integrate {ONE} --out one.zarr --quiet")
    run("train toy --out two.zarr --quiet")
    assert json.loads(run("status one.zarr --json").stdout)["kind"] == "integration"
    assert json.loads(run("status two.zarr --json").stdout)["iteration"] == 20


def test_an_interrupted_integration_again(run):
    """Of one that Ctrl-C ended the saved times that it reached are compared; it has no end of its own."""
    run(f"integrate {ONE} --max-steps 3 --save 50 --out run.zarr --quiet")
    change("run.zarr", status=str(Status.INTERRUPTED), max_steps=1000)
    done = run("rerun run.zarr")
    assert done.exit_code == 0 and "every bit is the same" in done.stdout, done.stderr
