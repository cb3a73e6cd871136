"""A GPU that is full, fails or is interrupted: one sentence, and what was computed is kept."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import odesim
from odesim.base.arrays import on_host
from odesim.base.errors import DeviceError
from odesim.cli import cli
from odesim.store.ensemble import EnsembleStore
from tests.support.cupy_arrays import failure, make_arrays

Shim = Callable[..., ModuleType]
ILLEGAL = "cudaErrorIllegalAddress: an illegal memory access was encountered"
TIMEOUT = "cudaErrorLaunchTimeout: the launch timed out and was terminated"
LOST, DISPLAY = "can use the GPU no more; try again in a new one", "also drives a display ends what runs for seconds"
FAILED = {"illegal address": (ILLEGAL, LOST), "timeout": (TIMEOUT, DISPLAY)}
ONE = "integrate joma.nonlinear --size M=1000 --backend cuda --strict --save 300 --method tsit5 --out one.zarr"
MANY = "ensemble joma.nonlinear --vary mu=uniform(0.5,2) --members 5000 --size M=2 --span 0:0.1 --method tsit5 --strict --max-events 0"
MANY += " --backend cuda --out many.zarr"


def run(command: str) -> Result:
    return CliRunner().invoke(cli, command.split())


def sentence(done: Result, code: int) -> str:
    """What a command said: one line, no traceback."""
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    (line,) = done.stderr.splitlines()
    assert line.startswith("odesim: ")
    return line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_shim_one_large_run_without_memory(shim: Shim, folder: Path) -> None:
    """How much was asked for, by what, what there is, and what to do; from Python a DeviceError."""
    shim(room=1_000_000)
    said = sentence(run(ONE), 2)
    assert "the GPU has no memory left for joma.nonlinear (M = 1000): Out of memory allocating 2,408,000 bytes" in said
    assert "1e+03 of its 2e+03 GB are free; take smaller sizes, fewer saved times or float32" in said
    assert not list(folder.iterdir())
    with pytest.raises(DeviceError, match="no memory left"):
        odesim.integrate("joma.nonlinear", sizes={"M": 1000}, save=300, backend="cuda", strict=True)


def test_shim_one_large_run_that_cannot_fit(shim: Shim, folder: Path) -> None:
    """What the device has is asked before anything is put there: 301 rows, 7 stages and 3 states of 1000 numbers take 2.49 MB.
    A search of events of 1000 components takes 0.27 MB: 0.23 of the places of its samples, and 5 rows of 1000 numbers.
    """
    cupy = shim(free=2_400_000)
    said = sentence(run(ONE), 2)
    assert "joma.nonlinear: 300 saved times of 1000 numbers, and 10 more states of a run, take 0.00276 GB on the GPU" in said
    assert "and 0.0024 GB are free there" in said and not cupy.launches
    shim(free=3_000_000)
    assert run(f"{ONE} --quiet").exit_code == 0


def test_shim_what_stays_on_the_device_needs_no_memory_here(shim: Shim) -> None:
    """16 TB of saved times: too much for the device, and nobody asks whether this computer has them."""
    shim()
    with pytest.raises(
        DeviceError, match=r"2000000 saved times of 1000000 numbers, and 10 more .* take 1\.6e\+04 GB on the GPU, and 1e\+03 GB"
    ):
        odesim.integrate("joma.nonlinear", sizes={"M": 10**6}, save=2 * 10**6, method="tsit5", backend="cuda", strict=True, arrays="cupy")


def test_shim_members_without_memory_keep_what_is_done(shim: Shim, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one member fits: exit code 3, and the same command with more memory goes on."""
    from odesim.run import threads as device_engine

    shim(room=40)
    said = sentence(run(MANY), 3)
    assert "the GPU has no memory for one member of" in said and "0 members kept in many.zarr, odesim resume continues it" in said
    shim()
    monkeypatch.setattr(device_engine, "TOGETHER", 4096)
    assert run("resume many.zarr --quiet").exit_code == 0
    assert (EnsembleStore(folder / "many.zarr").status(0, 5000) == 0).all()


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", FAILED)
def test_shim_a_launch_fails(kind: str, shim: Shim, folder: Path) -> None:
    """What ran, what the driver said and what to do; the run's place stays free, or holds what was done."""
    said, advice = FAILED[kind]
    shim(fails=said)
    one = sentence(run(ONE), 2)
    assert f"joma.nonlinear (M = 1000) failed on the GPU: {said}; " in one and advice in one
    assert not list(folder.iterdir())
    many = sentence(run(MANY), 3)
    assert f"5000 members of joma.nonlinear failed on the GPU: {said}; " in many and advice in many
    assert "0 members kept in many.zarr" in many
    with pytest.raises(DeviceError, match="failed on the GPU"):
        odesim.ensemble("joma.nonlinear", grid={"mu": [1.0, 2.0]}, strict=True, backend="cuda")


def test_shim_a_later_launch_fails(shim: Shim, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chunks before it are kept, and resume ends with the bits of a run that never failed."""
    from odesim.run import threads as device_engine

    monkeypatch.setattr(device_engine, "TOGETHER", 4096)
    cupy = shim()
    whole = device_engine.Launch.run

    def second_fails(self: Any, *given: Any) -> None:
        if cupy.launches:
            raise cupy.cuda.runtime.CUDARuntimeError(ILLEGAL)
        whole(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(device_engine.Launch, "run", second_fails)
        assert "904 members of joma.nonlinear failed on the GPU" in (said := sentence(run(MANY), 3))
        assert "4096 members kept in many.zarr, odesim resume continues it" in said
    assert run("resume many.zarr --quiet").exit_code == 0
    assert run(f"{MANY.replace('many', 'other')} --quiet").exit_code == 0
    stores = [EnsembleStore(folder / name).read(0, 5000) for name in ("many.zarr", "other.zarr")]
    np.testing.assert_array_equal(stores[0].y, stores[1].y)


def test_what_is_not_cupy_s_stays_what_it_is(shim: Shim) -> None:
    """An error of Python's own is a bug, and is shown as one."""
    from odesim.base.device import device_errors

    for error in (ZeroDivisionError("x"), MemoryError("host")):
        with pytest.raises(type(error)), device_errors("a run", "less"):
            raise error
    shim().cuda.Device.mem_info = property(lambda _: 1 / 0)
    with pytest.raises(DeviceError, match=r"^the GPU has no memory left for a run: full; take less$"), device_errors("a run", "less"):
        raise failure("OutOfMemoryError", MemoryError)("full.")


FULL = failure("OutOfMemoryError", MemoryError)("Out of memory allocating 1,024 bytes (allocated so far: 512 bytes).")
TRAINING: dict[str, tuple[Exception, str]] = {
    "full": (FULL, "the GPU has no memory left for this training: Out of memory allocating 1,024 bytes"),
    "no room to run": (
        failure("CUDADriverError")("CUDA_ERROR_OUT_OF_MEMORY: out of memory"),
        "the GPU has no memory left for this training: CUDA_ERROR_OUT_OF_MEMORY",
    ),
    "failed": (failure("CUBLASError")("CUBLAS_STATUS_EXECUTION_FAILED"), "this training failed on the GPU: CUBLAS_STATUS_EXECUTION_FAILED"),
}


@pytest.mark.parametrize("when", ["start", "later"])
@pytest.mark.parametrize("kind", TRAINING)
def test_cuda_training_on_a_device_that_gives_up(kind: str, when: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence; with a checkpoint it says so, and resume ends with the bits of a training that never failed."""
    cupy: Any = make_arrays()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    error, said = TRAINING[kind]
    whole, calls = cupy.exp, iter(range(10**6))

    def broken(*given: Any, **options: Any) -> Any:
        if next(calls) >= {"start": 0, "later": 14}[when]:
            raise error
        return whole(*given, **options)

    given: dict[str, Any] = {"backend": "cuda", "steps": 6, "checkpoint_every": 0.0}
    with monkeypatch.context() as patch:
        patch.setattr(cupy, "exp", broken)
        with pytest.raises(DeviceError) as found:
            odesim.train("scan_snap", out="a.zarr", **given)
    assert str(found.value).startswith(said) and found.value.stored == (when == "later")
    assert str(found.value).endswith("; --resume continues from the last checkpoint") == found.value.stored
    again, other = odesim.train("scan_snap", out="a.zarr", resume=True, **given), odesim.train("scan_snap", **given)
    for name, values in other.final.items():
        np.testing.assert_array_equal(again.final[name], values)
    with monkeypatch.context() as patch:
        patch.setattr(cupy, "exp", broken)
        assert said in sentence(run("train scan_snap --backend cuda --steps 3"), 2)


def interrupt(times: int = 1) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, as in a program of its own."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("arrays", ["numpy", "cupy"])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("place", ["between", "within", "after"])
def test_shim_one_large_run_is_interrupted(place: str, times: int, arrays: str, shim: Shim, interrupts: None) -> None:
    """Between two slices, while the device runs, or while the processor asks how far it came: the part before it, with its bits.

    times: a second one ends the wait for the end of the slice.
    """
    cupy = shim()
    given: dict[str, Any] = {"method": "rk4", "step": 1e-3, "span": (0.0, 4.0), "save": 401, "strict": True}
    whole = odesim.integrate("joma.nonlinear", **given)
    told: list[float] = []

    def progress(done: float) -> None:
        told.append(done)
        if len(told) == 2 and place == "between":
            interrupt(times)

    if place == "within":
        get_function = cupy.cuda.function.Module.get_function

        def launching(self: Any, name: str) -> Any:
            launch = get_function(self, name)

            def both(*arguments: Any, **options: Any) -> None:
                launch(*arguments, **options)
                if len(cupy.launches) == 3:
                    interrupt(times)

            return both

        cupy.cuda.function.Module.get_function = launching
    if place == "after":
        from odesim.stepper.device import DeviceRun

        catch_up, asked = DeviceRun.catch_up, iter(range(10**6))

        def late(self: Any) -> None:
            catch_up(self)
            if next(asked) == 2:
                interrupt(times)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DeviceRun, "catch_up", late)
            found = odesim.integrate("joma.nonlinear", backend="cuda", arrays=arrays, progress=progress, **given).to_numpy()
    else:
        found = odesim.integrate("joma.nonlinear", backend="cuda", arrays=arrays, progress=progress, **given).to_numpy()
    assert found.status == "interrupted" and 0 < found.t_end < 4.0
    assert "the part before it is kept" in found.message
    rows = int(np.searchsorted(whole.t, found.t_end, side="right"))
    assert len(found.t) in (rows, rows + 1) and rows > 1
    np.testing.assert_array_equal(found.y["v"][:rows], whole.y["v"][:rows])
    np.testing.assert_allclose(found.y_end["v"], whole.at(found.t_end)["v"], rtol=1e-9)
    np.testing.assert_array_equal(found.y["v"][-1], found.y_end["v"])


@pytest.mark.first(1)
@pytest.mark.parametrize(("times", "arrays"), [(1, "numpy"), (1, "cupy"), (2, "numpy")])
def test_shim_members_are_interrupted(times: int, arrays: str, shim: Shim, interrupts: None) -> None:
    """The flag that the device reads ends a launch that is under way within a moment; its members are interrupted, nothing is damaged."""
    cupy = shim(later=True)
    given: dict[str, Any] = {
        "grid": {"mu": "linspace(0.5,1.5,200)"},
        "sizes": {"M": 3},
        "span": (0.0, 1.0),
        "strict": True,
        "max_events": 0,
        "max_steps": 10**9,
    }
    odesim.ensemble("joma.nonlinear", backend="cuda", method="rk4", step=0.1, **given)  # compiled
    cupy.launches.clear()

    def press() -> None:
        while not cupy.launches:
            time.sleep(0.01)
        time.sleep(0.2)
        for _ in range(times):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.15)

    began, thread = time.process_time(), threading.Thread(target=press)
    thread.start()
    try:
        if times == 1:
            found = odesim.ensemble("joma.nonlinear", backend="cuda", method="rk4", step=1e-7, arrays=arrays, **given)
            assert (found.status == found.attrs["status_names"].index("interrupted")).all()
            assert np.isnan(on_host(found.v.data)).all()
        else:
            with pytest.raises(KeyboardInterrupt):
                odesim.ensemble("joma.nonlinear", backend="cuda", method="rk4", step=1e-7, **given)
                thread.join()  # the second one may come after the first has ended the run
    finally:
        thread.join()
    assert time.process_time() - began < 30  # whole it takes minutes, of the processor as of the clock
    cupy.cuda.Device().synchronize()


def test_shim_a_stored_run_is_interrupted(shim: Shim, folder: Path, interrupts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches that are done are kept, exit code 3; resume ends with the bits of a run that nobody stopped."""
    from odesim.run import threads as device_engine

    shim()
    monkeypatch.setattr(device_engine, "TOGETHER", 4096)
    command = MANY.replace("--members 5000", "--members 20000")
    assert run(f"{command.replace('many', 'whole')} --quiet").exit_code == 0
    whole, launches = device_engine.Launch.run, iter(range(100))

    def second_is_interrupted(self: Any, *given: Any) -> None:
        whole(self, *given)
        if next(launches) == 1:
            before = signal.getsignal(signal.SIGINT)
            interrupt()
            while signal.getsignal(signal.SIGINT) is before:  # until the main thread has heard of it
                time.sleep(0.01)

    with monkeypatch.context() as patch:
        patch.setattr(device_engine.Launch, "run", second_is_interrupted)
        said = sentence(run(f"{command} --quiet"), 3)
    assert "stopped after 8192 of 20000 members; what is done is kept in many.zarr" in said
    assert run("resume many.zarr --quiet").exit_code == 0
    stores = [EnsembleStore(folder / name).read(0, 20000) for name in ("many.zarr", "whole.zarr")]
    np.testing.assert_array_equal(stores[0].y, stores[1].y)


@pytest.mark.parametrize("devices", [1, 2])
def test_shim_the_pilot_is_interrupted(devices: int, shim: Shim, interrupts: None) -> None:
    """Nothing is kept of a pilot, but the device has ended what it did before its memory is used again."""
    cupy, count = shim(later=True, devices=devices), 70

    def press() -> None:
        while not cupy.launches:
            time.sleep(0.01)
        time.sleep(0.1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    given: dict[str, Any] = {
        "params": {"mu": np.ones((count, 3))},
        "method": "rk4",
        "step": 1e-7,
        "strict": True,
        "max_events": 0,
        "max_steps": 10**9,
    }
    from tests.support.threads import asked

    _, engine = asked("joma.nonlinear", **given)
    engine.prepare()
    thread = threading.Thread(target=press)
    thread.start()
    began = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        engine.integrate({"mu": np.ones((count, 3))}, {}, count, np.zeros(1, np.int64), None)
    thread.join()
    assert time.process_time() - began < 30  # whole it takes minutes, of the processor as of the clock
    assert not any(t.is_alive() for t in threading.enumerate() if "run" in t.name)
