"""What people ask of a GPU that they have, have not, or had: each ends in a result or in one sentence, and nothing is damaged."""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import odesim
from odesim.base import device as gpu
from odesim.base.errors import OdesimError
from odesim.cli import about as doctor
from odesim.cli import cli
from odesim.store.ensemble import EnsembleStore
from odesim.targets import nvrtc
from tests.cuda.test_threads import same
from tests.support.cupy_arrays import failure
from tests.support.matrix import slow_but

Shim = Callable[..., ModuleType]
CUPY = "the backend cuda needs cupy, which is not installed: pip install 'odesim[cuda"
MANY = "ensemble joma.nonlinear --vary mu=uniform(0.5,2) --members 5 --out r.zarr"
ONE, TRAIN = "integrate joma.nonlinear", "train scan_snap"

# without cupy: a command, to which --backend cuda is added unless it names one, and what it says
ABSENT = {
    "members": (MANY, CUPY),
    "too many states": (f"{MANY} --size M=65", CUPY),
    "no dtype": (f"{MANY} --dtype float16", "no dtype 'float16'"),
    "rescaled members": (f"{MANY} --clock rescaled", CUPY),
    "stiff single precision": (f"{MANY} --method rodas5p --dtype float32", CUPY),
    "late times": (f"{MANY} --save 0,99", CUPY),
    "a shard": (f"{MANY} --shard 1/2", CUPY),
    "a picture": (f"{MANY} --plot p.png", CUPY),
    "to be replaced": (f"{MANY} --overwrite --fail-fast", CUPY),
    "threads too": (f"{MANY} --threads 4", CUPY),
    "no size": (f"{MANY} --size M=0", "--size M=0: a size is at least 1"),
    "no memory": (f"{MANY} --size M=1000000000000", "mu (M,) takes 8e+03 GB"),
    "no method": (f"{MANY} --method lsoda", "no method 'lsoda'; choose from auto"),
    "no step": (f"{MANY} --method euler", "euler has no error estimate: give a fixed step"),
    "no threads": (f"{MANY} --threads 0", "--threads: must be at least 1"),
    "no shard": (f"{MANY} --shard 3/2", "--shard takes I/N"),
    "no observable": (f"{MANY} --observe nothing", "no observable 'nothing'"),
    "no members": ("ensemble joma.nonlinear --out r.zarr", "an ensemble needs members"),
    "nobody": (f"{MANY} --members 0", "--members: must be at least 1"),
    "capitals": (f"{MANY} --backend CUDA", "no backend 'CUDA' in an ensemble; choose from cuda, numba"),
    "cupy": (f"{MANY} --backend cupy", "no backend 'cupy' in an ensemble; choose from cuda, numba; did you mean 'cuda'?"),
    "numpy": (f"{MANY} --backend numpy", "no backend 'numpy' in an ensemble"),
    "one": (ONE, CUPY),
    "one to store": (f"{ONE} --out i.zarr --plot i.png", CUPY),
    "one rescaled": (f"{ONE} --clock rescaled", CUPY),
    "one with derivatives": (f"{ONE} --strict --sensitivity mu --out i.zarr", CUPY),
    "one stiff": (f"{ONE} --method rodas5p", "rodas5p is no method of the backend cuda for a run; it has dop853"),
    "one without a dtype": (f"{ONE} --dtype float16", "no dtype 'float16'"),
    "gpu": (f"{ONE} --backend gpu", "no backend 'gpu' in a run; choose from cuda, numba, numpy"),
    "a training": (f"{TRAIN} --out t.zarr", CUPY),
    "a training to go on with": (f"{TRAIN} --resume --out t.zarr", CUPY),
    "a training to draw": (f"{TRAIN} --plot t.png --json", CUPY),
    "no seeds": (f"{TRAIN} --seeds 0:0", "--seeds 0:0 has no seed"),
    "a training by numba": (f"{TRAIN} --backend numba", "no backend 'numba' in a training; choose from cuda, numpy"),
    "a comparison": ("compare scan_snap.full --task scan_snap", CUPY),
    "from a file": (f"{ONE} --params {{toml}} --backend cuda", CUPY),
}


def run(command: str) -> Result:
    return CliRunner().invoke(cli, command.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands run, empty."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize("kind", ABSENT)
def test_cuda_request_without_cupy(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, one sentence, and nothing is written: no empty run either."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    toml = folder.parent / "f.toml"
    toml.write_text("save = 5\n")
    command, said = ABSENT[kind]
    done = run(command.replace("{toml}", str(toml)) + ("" if "--backend" in command else " --backend cuda"))
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert said in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(folder.iterdir())


def raising(said: str) -> Callable[..., Any]:
    """A function of cupy's that raises what the driver says."""

    def call(*_: Any) -> Any:
        raise failure("CUDARuntimeError")(said)

    return call


OLD = "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
# the driver; functions of cupy's that are other ones, or None without cupy; packages; NVRTC; what doctor says
DOCTOR: dict[str, tuple[int | None, dict[str, Any] | None, tuple[str, ...], tuple[int, int], tuple[str, ...]]] = {
    "all is here": (13000, {}, ("cupy-cuda13x",), (13, 5), ("CUDA 13.0", "cupy-cuda13x 14.2.0", "13.5", "Pretended, sm_90, 1.07 GB")),
    "an older compiler": (13000, {}, ("cupy-cuda13x",), (12, 9), ("12.9",)),
    "an older driver": (
        12040, {"getDeviceCount": raising(OLD)}, ("cupy-cuda13x",), (13, 5),
        (
            "cupy-cuda13x 14.2.0; cupy-cuda13x is newer than the driver: pip install 'odesim[cuda12]' in its place",
            "13.5, which is newer than the driver, so that kernels may not load: pip install 'odesim[cuda12]'",
            f"none that cupy reaches: {OLD}",
        ),
    ),
    "a very old driver": (11080, None, (), (11, 8), ("absent: pip install 'odesim[cuda12]', and a newer driver",)),
    "no device": (12080, {"getDeviceCount": lambda: 0}, ("cupy-cuda12x",), (12, 9), ("cupy-cuda12x 14.2.0", "reaches: no device")),
    "a lost device": (
        13000, {"getDeviceProperties": raising("cudaErrorECCUncorrectable")}, ("cupy-cuda13x",), (13, 5),
        ("gpu 0", "does not answer: cudaErrorECCUncorrectable"),
    ),
    "nothing": (None, None, (), (13, 5), ("absent; with an NVIDIA GPU: pip install 'odesim[cuda13]', or [cuda12] with an older driver",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", DOCTOR)
def test_shim_doctor_says_why_there_is_no_gpu(kind: str, shim: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is here, what is wrong with it and what to install: as the error of a run says, which names doctor."""
    driver, functions, packages, version, said = DOCTOR[kind]
    runtime = shim().cuda.runtime
    for name, function in (functions or {}).items():
        setattr(runtime, name, function)
    if functions is None:
        monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(gpu, "cuda_driver", lambda: driver)
    monkeypatch.setattr(doctor, "version_of", lambda name: "14.2.0" if name in packages else None)
    monkeypatch.setattr(nvrtc, "compiler_version", lambda: version)
    done = run("doctor")
    assert (done.exit_code, done.stderr) == (0, "")
    found = " ".join(done.stdout.partition("\ngpu\n")[2].split())
    for words in said:
        assert words in found
    assert ("newer than the driver" in found) == (kind == "an older driver")
    if functions is None:
        assert gpu.install_command() in found and gpu.install_command() in run(f"{ONE} --backend cuda").stderr


@pytest.mark.parametrize(
    ("driver", "first"),
    [(None, ["13", "12", "13.1", "12.4"]), (13000, ["13", "12", "13.1", "12.4"]), (12080, ["12", "12.4", "13", "13.1"])],
)
def test_nvrtc_that_the_driver_knows_comes_first(driver: int | None, first: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver may not load what a compiler of a later major version makes; where there is no other, that one is tried."""
    tried: list[str] = []

    def absent(path: str) -> Any:
        tried.append(path.removeprefix("/x/libnvrtc.so."))
        raise OSError

    monkeypatch.setattr(nvrtc, "_places", lambda: [f"/x/libnvrtc.so.{number}" for number in ("13", "12", "13.1", "12.4")])
    monkeypatch.setattr(nvrtc, "cuda_driver", lambda: driver)
    monkeypatch.setattr(nvrtc.ctypes, "CDLL", absent)
    with pytest.raises(OdesimError, match="NVRTC, which compiles for a GPU, is not installed: pip install"):
        nvrtc._library.__wrapped__()
    assert tried == first


ROW: dict[str, Any] = {"vary": {"mu": "uniform(0.5,2)"}, "members": 5, "sizes": {"M": 2}, "span": (0.0, 2.0), "method": "tsit5"}
# with a GPU: what the bits of numba are held to
PRESENT: dict[str, dict[str, Any]] = {
    "one state": {"sizes": {"M": 1}},
    "64 states": {"sizes": {"M": 64}, "span": (0.0, 0.1)},
    "one member": {"members": 1},
    "the start alone": {"save": [0.0]},
    "both ends": {"save": [0.0, 2.0]},
    "one time inside": {"save": [0.7]},
    "many times": {"save": 20_000},
    "float32 with events": {"dtype": "float32", "span": (0.0, 4.0), "save": 5},
    "observables": {"observe": "all", "save": 5},
    "derivatives": {"sensitivities": "mu", "save": 3},
    "threads": {"threads": 4},
    "few steps": {"max_steps": 3},
    "euler": {"method": "euler", "step": 0.1, "max_events": 0},
    "a step beyond the span": {"method": "rk4", "step": 50.0},
    "a span of nothing": {"span": (0.0, 1e-300)},
    "no tolerance": {"atol": 0.0, "rtol": 1e-14, "max_steps": 500},
    "auto": {"method": "auto", "save": 4},
}


# a kernel for the processor that is no other test's
LONG = {"64 states", "derivatives", "one state", "float32 with events", "a step beyond the span"}


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) if k in LONG else k for k in PRESENT])
def test_shim_odd_requests_of_members(kind: str, shim: Shim) -> None:
    """The members of numba, bit for bit."""
    shim()
    given = {**ROW, **PRESENT[kind], "strict": True}
    if kind == "64 states":
        given["sizes"] = {"M": 16}  # g++ takes minutes for 64
    a = odesim.ensemble("joma.nonlinear", **given)
    same(a, odesim.ensemble("joma.nonlinear", backend="cuda", **given))


@pytest.mark.slow
def test_shim_a_run_is_on_the_current_device(shim: Shim) -> None:
    """integrate computes where cupy does, each device by a kernel of its own, and times asked for later too; members are on all."""
    cupy = shim(devices=2)
    given: dict[str, Any] = {"method": "tsit5", "strict": True, "span": (0.0, 1.0)}
    here = odesim.integrate("joma.nonlinear", **given).at(0.3)["v"]
    first = odesim.integrate("joma.nonlinear", backend="cuda", **given)
    assert cupy.used == {0} and gpu.architecture() == "sm_90"
    with cupy.cuda.Device(1):
        second = odesim.integrate("joma.nonlinear", backend="cuda", **given)
        assert cupy.used == {0, 1} and gpu.architecture() == "sm_80"
    for run in (first, second):
        cupy.used.clear()
        with cupy.cuda.Device(0 if run is second else 1):
            np.testing.assert_array_equal(run.at(0.3)["v"], here)
        assert cupy.used == {int(run is second)}
    cupy.used.clear()
    with cupy.cuda.Device(1):
        odesim.ensemble("joma.nonlinear", grid={"mu": "linspace(0.5,1.5,70)"}, backend="cuda", max_events=0, **given)
        assert cupy.used == {0, 1} and gpu.current_device() == 1


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "65 states": ("joma.nonlinear", {"sizes": {"M": 65}}, "no backend cuda for 65 states: at most 64; the backend numba can do it$"),
    "derivatives": ("joma.nonlinear", {"sizes": {"M": 40}, "sensitivities": "mu"}, "no backend cuda for 1640 states"),
    "a stiff method with a step": ("joma.nonlinear", {"method": "rodas4", "step": 0.1}, "no (backend cuda|strict mode) for a fixed step"),
    "a late time": ("joma.nonlinear", {"save": [0.5, 7.0]}, "save: 7 lies outside the span 0:2"),
    "rows of all": ("scan_snap.full", {"vary": {}, "grid": {"psi": [0, 1]}, "members": None, "sizes": None}, "psi names rows of arrays"),
    "a large table": (
        "scan_snap.full",
        {"vary": {}, "grid": {"eta_Y": [1.0]}, "members": None, "sizes": None},
        "for 150 states: at most 64",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_shim_refuses_members(kind: str, shim: Shim, folder: Path) -> None:
    """What a thread cannot do is said before anything is written."""
    cupy = shim()
    model, given, said = REFUSED[kind]
    with pytest.raises(OdesimError, match=said):
        odesim.ensemble(model, backend="cuda", out="r.zarr", **{**ROW, **given, "strict": True})
    assert not list(folder.iterdir()) and not cupy.launches


def content(path: Path) -> str:
    """A digest of all files in a folder."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and "lock" not in file.name)
    return hashlib.sha256(b"".join(str(file.relative_to(path)).encode() + file.read_bytes() for file in files)).hexdigest()


STORED = "ensemble joma.nonlinear --strict --vary mu=uniform(0.5,2) --members 5000 --size M=2 --span 0:1 --save 3 --method tsit5 --quiet"


@pytest.mark.first(1)
@pytest.mark.parametrize(("first", "second"), [("cuda", "numba"), ("numba", "cuda")])
def test_shim_a_run_keeps_its_backend(first: str, second: str, shim: Shim, folder: Path) -> None:
    """A shard by the other backend is refused and says why; resume takes the one that is stored, and ends with the same bits."""
    cupy = shim()
    assert run(f"{STORED} --out a.zarr --shard 1/2 --backend {first}").exit_code == 0
    before = content(folder / "a.zarr")
    done = run(f"{STORED} --out a.zarr --shard 2/2 --backend {second}")
    assert done.exit_code == 2 and done.stderr == "odesim: a.zarr holds another ensemble: its backend differs\n"
    assert content(folder / "a.zarr") == before
    cupy.launches.clear()
    assert run("resume a.zarr --quiet").exit_code == 0
    assert bool(cupy.launches) == (first == "cuda")
    found = json.loads(run("status a.zarr --json").stdout)
    assert (found["backend"], found["done"]) == (first, 5000)
    assert ("a thread of a GPU each" in run("status a.zarr").stdout) == (first == "cuda")
    assert run(f"{STORED} --out b.zarr --backend {second}").exit_code == 0
    a, b = (EnsembleStore(folder / name).read(0, 5000) for name in ("a.zarr", "b.zarr"))
    for name in ("y", "status", "steps", "t_end", "event_t"):
        np.testing.assert_array_equal(a.arrays[name], b.arrays[name])


@pytest.mark.slow
def test_shim_members_that_failed_are_tried_on_the_gpu(shim: Shim, folder: Path) -> None:
    """--retry-failed with another method runs there too, and has the bits of a run of numba that went the same way."""
    cupy = shim()
    for name, backend in (("a", "cuda"), ("b", "numba")):
        assert run(f"{STORED} --out {name}.zarr --max-steps 6 --backend {backend}").exit_code == 3
        cupy.launches.clear()
        done = run(f"resume {name}.zarr --retry-failed --method rodas5p --quiet")
        assert done.exit_code in (0, 3) and bool(cupy.launches) == (backend == "cuda"), done.output
    a, b = (EnsembleStore(folder / name).read(0, 5000) for name in ("a.zarr", "b.zarr"))
    for name in ("y", "status", "steps", "t_end"):
        np.testing.assert_array_equal(a.arrays[name], b.arrays[name])
    assert "5000 members computed again: every bit is the same" in run("rerun a.zarr --threads 4").stdout


@pytest.mark.first(1)
@pytest.mark.parametrize("missing", ["cupy", "device"])
def test_shim_stored_runs_where_there_is_no_gpu(missing: str, shim: Shim, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What must compute is refused in one sentence, what only reads works; nothing that is stored changes."""
    shim()
    assert run(f"{STORED} --out half.zarr --shard 1/2 --backend cuda").exit_code == 0
    assert run(f"{STORED.replace('5000', '50')} --out whole.zarr --backend cuda").exit_code == 0
    assert run("integrate joma.nonlinear --backend cuda --strict --out one.zarr --quiet").exit_code == 0
    before = {path.name: content(path) for path in folder.iterdir()}
    if missing == "cupy":
        monkeypatch.setitem(sys.modules, "cupy", None)
    else:
        shim().cuda.runtime.getDeviceCount = lambda: 0
    for command in (
        *("rerun whole.zarr", "rerun one.zarr", "resume half.zarr", f"{STORED} --out half.zarr --shard 2/2 --backend cuda"),
        *(f"{STORED} --out half.zarr --overwrite --backend cuda", "integrate joma.nonlinear --backend cuda --out one.zarr --overwrite"),
    ):
        done = run(command)
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), command
        assert done.stderr.startswith("odesim: the backend cuda needs ")
    for command in ("status half.zarr", "resume whole.zarr", "status whole.zarr --json"):
        assert run(command).exit_code == 0, command
    assert {path.name: content(path) for path in folder.iterdir()} == before


def test_shim_a_kernel_that_does_not_compile_leaves_no_run(shim: Shim, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVRTC is missing, say: nothing is written."""
    from odesim.base.errors import CodegenError
    from odesim.run import threads as device_engine

    shim()

    def absent(*_: Any) -> Any:
        raise CodegenError("NVRTC, which compiles for a GPU, is not installed")

    monkeypatch.setattr(device_engine, "compile_cubin", absent)
    done = run(f"{STORED} --out a.zarr --backend cuda")
    assert done.exit_code == 2 and done.stderr == "odesim: NVRTC, which compiles for a GPU, is not installed\n"
    assert not list(folder.iterdir())


SINGLE: dict[str, dict[str, Any]] = {
    "the start alone": {"save": [0.0]},
    "rescaled": {"clock": "rescaled", "save": 7},
    "derivatives in single precision": {"dtype": "float32", "sensitivities": "mu", "sizes": {"M": 3}},
    "a span of nothing": {"span": (0.0, 1e-300)},
    "a start that overflows": {"initial": {"v": 1e308}},
    "a step beyond the span": {"method": "rk4", "step": 50.0},
    "one step": {"max_steps": 1},
}


@pytest.mark.parametrize("kind", slow_but(SINGLE, set(SINGLE) - {"rescaled", "derivatives in single precision"}))
def test_shim_odd_requests_of_one_run(kind: str, shim: Shim) -> None:
    """The run of numba, bit for bit, its messages too."""
    shim()
    given: dict[str, Any] = {"strict": True, "method": "tsit5", **SINGLE[kind]}
    a, b = odesim.integrate("joma.nonlinear", **given), odesim.integrate("joma.nonlinear", backend="cuda", **given)
    stiff = " (where it is stiff, rodas5p needs far fewer)"  # which a GPU does not have
    assert (a.status, a.message.replace(stiff, ""), a.t_end) == (b.status, b.message, b.t_end)
    for name in a.y:
        np.testing.assert_array_equal(a.y[name], b.y[name])
        np.testing.assert_array_equal(a.y_end[name], b.y_end[name])
    for name in a.observables:
        np.testing.assert_array_equal(a.observables[name], b.observables[name])
