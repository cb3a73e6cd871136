"""`odesim integrate`: what it prints, where it writes, and how it ends."""

import errno
import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from odesim import open_run
from odesim.store.plain import to_plain
from odesim.store.read import read_solution

KEYS = [
    "model", "status", "message", "t", "final", "observables", "events", "invariants", "stats", "method", "auto", "clock", "blow_up_error",
    "backend", "out",
]  # fmt: skip
DERIVED = [(o, "") for o in ("entropy", "gap")] + [(f"d{o}", f"_d{p}") for o in ("entropy", "gap") for p in ("mu", "v_start")]
RUN = ("integrate", "joma.nonlinear", "--size", "M=3")
ENDLESS = (*RUN, "--span", "0:1e9", "--step", "1e-3", "--max-steps", "1e12", "--save", "log:50")


def strict(text: str) -> dict:
    """The one JSON object that text is: no NaN or Infinity."""
    return json.loads(text, parse_constant=pytest.fail)


def test_json_is_the_contract(odesim):
    """The keys of the contract in its order, numbers for scalars, lists for arrays, everything else on stderr."""
    done = odesim(*RUN, "--json", "--out", "run.zarr", "--plot", "run.png")
    assert (done.exit_code, done.stderr) == (0, "")
    found = strict(done.stdout)
    assert list(found) == KEYS
    assert (found["model"], found["status"], found["t"], found["backend"], found["out"]) == (
        "joma.nonlinear",
        "ok",
        5.0,
        "numba",
        "run.zarr",
    )
    assert len(found["final"]["v"]) == 3 and isinstance(found["observables"]["entropy"], float) and len(found["observables"]["gap"]) == 3
    assert {type(e["t"]) for e in found["events"]["half way"]} == {float} and found["events"]["half way"][0]["index"] == [2]
    assert list(found["stats"]) == ["steps", "rejected", "rhs_calls", "seconds", "compile_seconds"]
    assert isinstance(found["stats"]["steps"], int) and isinstance(found["message"], str)
    np.testing.assert_array_equal(open_run("run.zarr").v[-1], found["final"]["v"])
    assert open_run("run.zarr").sizes["time"] == 200
    assert Path("run.png").read_bytes().startswith(b"\x89PNG")


def test_an_rtol_below_rounding_is_said(odesim):
    """Four units of rounding of float64 are used in its place, and the table has them."""
    words = ("integrate", "joma.nonlinear", "--size", "M=2", "--span", "0:1", "--backend", "numpy", "--rtol", "1e-20")
    assert "8.9e-16: 1e-20 is below rounding" in odesim(*words).stdout
    assert "below rounding" not in odesim(*words[:-2]).stdout


def test_sensitivities_stand_with_the_rest(odesim):
    """Derivatives of states are final values, those of observables are observables, in JSON, in the picture and in a stored run."""
    words = ("--sensitivity", "mu", "--sensitivity", "v", "--backend", "numpy", "--json", "--out", "run.zarr", "--plot", "run.png")
    done = odesim(*RUN, *words)
    assert (done.exit_code, done.stderr) == (0, "")
    found = strict(done.stdout)
    assert list(found) == KEYS and list(found["final"]) == ["v", "dv_dmu", "dv_dv_start"]
    assert set(found["observables"]) == {f"{head}{tail}" for head, tail in DERIVED}
    stored = read_solution("run.zarr")
    np.testing.assert_array_equal(stored.sensitivities["mu"]["v"][-1], found["final"]["dv_dmu"])
    assert open_run("run.zarr").dv_dv_start.dims == ("time", "l", "v_start_0")
    assert Path("run.png").read_bytes().startswith(b"\x89PNG")


def test_json_of_large_arrays_is_a_digest(odesim):
    """Above 1000 entries: shape, min, max, and the sha256 of the bytes, which `integrate` from Python has too."""
    import odesim as library

    found = strict(odesim("integrate", "joma.nonlinear", "--size", "M=1001", "--span", "0:2", "--json").stdout)
    assert found["events"]["half way"]["shape"] == [1001]
    v = library.integrate("joma.nonlinear", sizes={"M": 1001}, span=(0, 2), save=200).y["v"][-1]
    assert found["final"]["v"] == {"shape": [1001], "min": v.min(), "max": v.max(), "sha256": hashlib.sha256(v.tobytes()).hexdigest()}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(2.5), 2.5),
        (np.array(2.5), 2.5),
        (np.float32(0.5), 0.5),
        (math.nan, None),
        (np.array([1.0, np.inf, np.nan]), [1.0, None, None]),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.arange(1000), list(range(1000))),
        ({"a": (1, None, True)}, {"a": [1, None, True]}),
        (Path("run.zarr"), "run.zarr"),
    ],
)
def test_plain(value, expected):
    """Numbers stay numbers, what is not finite is null, an array of 1000 entries is a list."""
    assert to_plain(value) == expected and type(to_plain(value)) is type(expected)


def test_digest_says_that_an_entry_is_not_finite():
    """min and max are null where an entry is NaN; the bytes are hashed little-endian, in C order."""
    values = np.zeros((30, 40))
    values[3, 4] = np.nan
    found = to_plain(np.asfortranarray(values.astype(">f8")))
    assert (found["shape"], found["min"], found["max"]) == ([30, 40], None, None)
    assert found["sha256"] == hashlib.sha256(values.tobytes()).hexdigest()


def test_table_fits_80_columns(odesim):
    """Without --json people get a table; --quiet prints nothing."""
    sizes = ("--set", "P=linspace(0.5,0.5)", "--size", "S=2", "--size", "K=3")
    done = odesim("integrate", "scan_snap.full", *sizes, "--span", "0:1", "--backend", "numpy")
    assert done.exit_code == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) < 80
    for word in ("scan_snap.full: ok at t = 1", "final", "observables", "loss", "invariants", "tsit5 on numpy"):
        assert word in done.stdout
    assert odesim(*RUN, "--quiet").output == ""


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((*RUN, "--max-steps", "5"), "max_steps"),
        (("integrate", "joma.linear", "--span", "0:100", "--backend", "numpy"), "blow_up"),
        ((*RUN, "--init", "v=60"), "non_finite"),
        ((*RUN, "--max-steps", "5", "--save", "4,5"), "max_steps"),
        (("integrate", "joma.linear", "--span", "0:100", "--save", "50,60"), "blow_up"),
    ],
)
def test_an_early_end_is_3_and_kept(arguments, status, odesim):
    """A run that stops early, before the first saved time too, says why on stderr; it is printed, stored and drawn as far as it went."""
    done = odesim(*arguments, "--json", "--out", "run.zarr", "--plot", "run.png")
    found = strict(done.stdout)
    assert done.exit_code == 3 and done.stderr == f"odesim: {found['message']}\n"
    assert found["status"] == status
    run = open_run("run.zarr")
    assert run.attrs["status"] == found["status"] and float(run.time[-1]) == found["t"]
    assert Path("run.png").exists()
    assert odesim("plot", "run.zarr", "--out", "again.png").exit_code == 0 and odesim("export", "run.zarr", "--to", "csv").exit_code == 0


def test_overwrite_replaces_the_run(odesim):
    """The second run is there, and nothing of the first."""
    assert odesim(*RUN, "--quiet", "--out", "run.zarr").exit_code == 0
    assert odesim(*RUN, "--quiet", "--out", "run.zarr", "--overwrite", "--save", "7").exit_code == 0
    assert open_run("run.zarr").sizes["time"] == 7 and os.listdir() == ["run.zarr"]


def test_toml_holds_what_the_command_line_says(odesim, folder):
    """A file of parameters, sizes, initial values and options is the same run; the command line wins; tables lie beside the file."""
    (folder / "sub").mkdir()
    (folder / "sub" / "mu.csv").write_text("1\n2\n")
    (folder / "sub" / "run.toml").write_text(
        'span = [0, 2]\nsave = [0, 0.5, 1]\nmethod = "vern7"\nrtol = 1e-8\n[params]\nmu = "@mu.csv"\n[initial]\nv = [0.1, 0.2]\n'
    )
    given = ("--set", "mu=1,2", "--init", "v=0.1,0.2", "--save", "0,0.5,1", "--method", "vern7", "--rtol", "1e-8")
    by_file = strict(odesim("integrate", "joma.nonlinear", "--params", "sub/run.toml", "--json").stdout)
    by_hand = strict(odesim("integrate", "joma.nonlinear", *given, "--span", "0:2", "--json").stdout)
    same = ("t", "final", "method", "events")
    assert [by_file[k] for k in same] == [by_hand[k] for k in same] and by_file["method"] == "vern7"
    won = strict(odesim("integrate", "joma.nonlinear", "--params", "sub/run.toml", "--method", "tsit5", "--set", "mu=1,1", "--json").stdout)
    twice = odesim("integrate", "joma.nonlinear", "--params", "sub/run.toml", "--set", "mu=1,1", "--set", "mu=1,2")
    assert twice.exit_code == 2  # the file may say it too, the command line only once
    assert won["method"] == "tsit5" and won["final"]["v"][1] < 1 < by_file["final"]["v"][1]


@pytest.mark.parametrize("option", [("--save", "5"), ("--save", "log:5"), ("--save", "0,1,2"), ("--save", "1.5,")])
def test_saved_times(option, odesim):
    """N even times, N geometric ones after the start, or those given; a run always keeps the ones it was asked for."""
    assert odesim(*RUN, "--quiet", "--span", "0:2", *option, "--out", "run.zarr").exit_code == 0
    expected = {"5": [0, 0.5, 1, 1.5, 2], "log:5": [0, *np.geomspace(2e-4, 2, 4)], "0,1,2": [0, 1, 2], "1.5,": [1.5]}[option[1]]
    np.testing.assert_allclose(open_run("run.zarr").time, expected, rtol=1e-15)


def test_ctrl_c_keeps_the_run(odesim, monkeypatch):
    """SIGINT at the first sign of progress: exit code 3, a sentence, and the run so far in the table, the folder and the picture."""
    monkeypatch.setattr("odesim.cli.tables.Progress.__call__", lambda self, fraction: signal.raise_signal(signal.SIGINT))
    done = odesim(*ENDLESS, "--json", "--out", "run.zarr", "--plot", "run.png")
    found = strict(done.stdout)
    assert (done.exit_code, found["status"]) == (3, "interrupted")
    assert done.stderr == f"odesim: {found['message']}\n" and "interrupted" in found["message"]
    run = open_run("run.zarr")
    assert run.attrs["status"] == "interrupted" and 0 < float(run.time[-1]) == found["t"] < 1e9
    np.testing.assert_array_equal(run.v[-1], found["final"]["v"])
    assert Path("run.png").exists()


WATCHED = """
import pathlib, odesim.cli.tables
odesim.cli.tables.Progress.__call__ = lambda self, fraction: pathlib.Path("running").touch()
from odesim.cli import main
main()
"""


@pytest.mark.first(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_a_signal_from_outside(number, folder):
    """The same for a process of its own, and for SIGTERM: it ends soon after the signal, in order."""
    process = subprocess.Popen(
        [sys.executable, "-c", WATCHED, *ENDLESS, "--out", "run.zarr", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    while not (folder / "running").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == 3, err
    assert strict(out)["status"] == "interrupted" == open_run("run.zarr").attrs["status"]
    assert err.startswith("odesim: interrupted") and len(err.splitlines()) == 1


def test_ctrl_c_before_the_run(odesim, monkeypatch):
    """An interrupt while the model is compiled: exit code 3, one sentence, nothing written."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("odesim.api.integrate.integrate_problem", interrupt)
    done = odesim(*RUN, "--out", "run.zarr", "--plot", "run.png")
    assert (done.exit_code, done.stdout, os.listdir()) == (3, "", [])
    assert done.stderr == "odesim: interrupted; nothing more was written\n"


@pytest.mark.parametrize("what", ["run", "picture"])
def test_a_full_disk_is_3(what, odesim, monkeypatch):
    """A disk that fills after the run was computed: exit code 3, the result is still printed, the other file is kept."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    where = {"run": "odesim.store.write.blocks", "picture": "matplotlib.figure.Figure.savefig"}[what]
    monkeypatch.setattr(where, full)
    done = odesim(*RUN, "--json", "--out", "run.zarr", "--plot", "run.png")
    assert done.exit_code == 3 and strict(done.stdout)["status"] == "ok"
    assert "No space left on device" in done.stderr and len(done.stderr.splitlines()) == 1
    assert os.listdir() == ["run.png" if what == "run" else "run.zarr"]
    assert strict(done.stdout)["out"] == (None if what == "run" else "run.zarr")
    assert ("nothing could be stored" in strict(done.stdout)["message"]) == (what == "run")


def test_a_run_cut_short_by_the_disk_says_so(odesim, monkeypatch):
    """The chunks of half of the rows fit: exit code 3; stderr, JSON and the stored run all say how many of how many rows there are."""
    import zarr.storage._local as local

    put = local._put

    def half(path, *rest, **named):
        if path.parts[-4:-2] == ("v", "c") and int(path.parts[-2]) >= 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return put(path, *rest, **named)

    monkeypatch.setattr("odesim.store.write.CHUNK_BYTES", 10 * 3 * 8)  # ten rows of v, thirty of the times
    monkeypatch.setattr(local, "_put", half)
    done = odesim(*RUN, "--json", "--out", "run.zarr")
    found, run = strict(done.stdout), open_run("run.zarr")
    sentence = "90 of 200 saved times are stored in run.zarr: No space left on device"
    assert (done.exit_code, done.stderr) == (3, f"odesim: {sentence}\n")
    assert (found["status"], found["t"], found["out"]) == ("ok", 5.0, "run.zarr") and found["message"].endswith(f"; {sentence}")
    assert (run.attrs["status"], run.sizes["time"]) == ("incomplete", 90)
    assert run.attrs["message"].startswith("90 of 200 saved times are stored") and "reached t = 5" in run.attrs["message"]


RAISES = """
from sympy import Symbol
from odesim.symbolic import Source, System
w = Symbol("w", real=True)
SYSTEM = System(
    name="my.raiser", source=Source("key", "eq. 1"), axes={}, equations={w: -w}, params=(), initial={w: 1.0},
    observables={"square": lambda t, y, dy, params: y["absent"]},
)
"""


def test_an_observable_that_raises_is_the_models_fault(odesim, folder):
    """Exit code 2, one sentence with the model's and the observable's name, nothing written; without output nothing is asked for."""
    (folder / "raises.py").write_text(RAISES)
    done = odesim("integrate", "raises.py", "--json", "--out", "run.zarr", "--plot", "run.png", "--span", "0:1")
    assert (done.exit_code, done.stdout, os.listdir()) == (2, "", ["raises.py"])
    assert done.stderr.count("\n") == 1 and "'square' of my.raiser" in done.stderr and "absent" in done.stderr
    assert odesim("integrate", "raises.py", "--span", "0:1", "--quiet").exit_code == 0


@pytest.mark.parametrize(("kappa", "broken"), [(0.3, False), (0.005, True)])
def test_a_broken_law_is_said(kappa, broken, odesim):
    """24 modes do not resolve the density of tokens at a hundredth of the noise: |a_1| = |E cos| > 1, and the density is negative."""
    done = odesim("integrate", "particles.density", "--set", f"kappa={kappa}", "--json")
    assert done.exit_code == 0
    assert (np.abs(strict(done.stdout)["final"]["a"]).max() > 1) == broken
    assert ("the invariant 'the modes resolve the density' is violated" in done.stderr) == broken == bool(done.stderr)


def test_the_end_is_printed_where_it_is_not_saved(odesim):
    """--save 0,1 of a run to 5: t, final and observables are those at 5, in JSON, in the table and in the stored run."""
    kept = strict(odesim(*RUN, "--json", "--save", "0,1,5").stdout)
    done = strict(odesim(*RUN, "--json", "--save", "0,1", "--out", "run.zarr").stdout)
    assert done["t"] == 5 == open_run("run.zarr").attrs["t_end"] and open_run("run.zarr").time.values.tolist() == [0, 1]
    assert (done["final"], done["observables"]) == (kept["final"], kept["observables"])
    assert read_solution("run.zarr").final["v"].tolist() == done["final"]["v"]
    assert "ok at t = 5, 2 saved times" in odesim(*RUN, "--save", "0,1").stdout


LIMITED = """
import resource, sys
import odesim.store.write as write
write.CHUNK_BYTES = 1 << 16
from odesim import integrate
from odesim.store.write import write_solution
run = integrate("joma.nonlinear", sizes={"M": 1200}, save=100, backend="numpy")
run.y["v"][:], run.observables["gap"][:40] = 0.5, 0.25  # what compresses, and then what does not
run.observables["gap"][40:] = __import__("numpy").random.default_rng(0).normal(size=(60, 1200))
resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))
stored = write_solution(run, "run.zarr")
print(stored.rows, stored.sentence)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs setrlimit")
def test_a_limit_of_the_system_keeps_whole_rows(folder):
    """Where the system lets no file grow above 40 kB, the chunks (of six rows) before the first such one are a run."""
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    rows = int(done.stdout.split()[0])
    assert rows == 42 and f"{rows} of 100 saved times are stored in run.zarr" in done.stdout, done.stdout
    assert open_run("run.zarr").sizes["time"] == rows and os.listdir() == ["run.zarr"]


def test_a_bug_is_1_and_says_so(odesim, monkeypatch):
    """What nobody foresaw: exit code 1, a sentence that asks for a report, and the traceback."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr("odesim.api.integrate.integrate_problem", broken)
    done = odesim(*RUN)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "this is a bug in odesim; please report it" in done.stderr and "Traceback" in done.stderr and "surprise" in done.stderr


@pytest.mark.parametrize("value", [-0.0, np.float64(-0.0), np.float32(-0.0)])
def test_zero_has_no_sign(value):
    """A sum of negative zeros, such as the entropy of one certain thing, is printed as 0, in every table."""
    from odesim.cli.results import values_text
    from odesim.cli.tables import number_text
    from odesim.lab.compare.comparison import short

    assert number_text(value) == short(value) == "0" and values_text(np.full(3, value)) == "0  0  0"
    assert number_text(-1e-300) == "-1e-300" and number_text(3) == "3"
