"""A limit of time stops a run as Ctrl-C does: what was computed is kept, and said to be a part. No test waits for a clock."""

import signal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import odesim
from odesim.api.ensemble import run_ensemble
from odesim.api.ensemble_request import make_execution
from odesim.api.stored import resume
from odesim.base import signals
from odesim.base.options import RunOptions, Values, Work
from odesim.base.signals import ctrl_c, stop_signals, time_limit
from odesim.cli import cli
from odesim.stepper import drive
from odesim.store.paths import Destination

MEMBERS: dict[str, Any] = {"params": {"mu": np.linspace(0.5, 1.5, 12).reshape(4, 3)}, "method": "tsit5"}
RUNS: dict[str, dict[str, Any]] = {
    "explicit": {"method": "tsit5"},
    "stiff": {"method": "rodas5p"},
    "auto": {},
    "strict": {"method": "tsit5", "strict": True},
    "rescaled": {"method": "tsit5", "clock": "rescaled"},
    "numpy": {"backend": "numpy"},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_without_time_is_interrupted(name):
    """No second is not enough for any run: it says so, and where it stands."""
    model = "joma.nonlinear"
    run = odesim.integrate(model, max_seconds=0, **RUNS[name])
    assert run.status == "interrupted" and run.message.startswith("max_seconds = 0: interrupted")
    assert run.t_end == run.t[-1] < odesim.load_model(model).span[1]


@pytest.mark.parametrize("name", ["explicit", "stiff"])
def test_what_is_compiled_does_not_count(name, monkeypatch):
    """A run whose kernels take 100 seconds to compile has its 50 seconds of steps all the same."""
    clock, compiled = [0.0], drive.driver

    def driver(*words):
        clock[0] += 100.0
        return compiled(*words)

    monkeypatch.setattr(signals, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(drive, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(drive, "driver", driver)
    run = odesim.integrate("joma.nonlinear", max_seconds=50, **RUNS[name])
    assert run.status == "ok" and run.stats["compile_seconds"] == 100 and run.stats["seconds"] == 0


@pytest.mark.parametrize("name", ["explicit", "stiff"])
def test_enough_time_changes_no_bit(name):
    """A limit that is not reached leaves no trace."""
    one, other = (odesim.integrate("joma.nonlinear", sizes={"M": 3}, max_seconds=s, **RUNS[name]) for s in (None, 1e9))
    assert one.y["v"].tobytes() == other.y["v"].tobytes() and one.message == other.message


def test_an_ensemble_goes_on_where_its_time_ended(tmp_path):
    """In memory its members are interrupted; a stored one is kept, and resume completes it with the bits of one that had the time."""
    whole = odesim.ensemble("joma.nonlinear", **MEMBERS)
    assert set(odesim.ensemble("joma.nonlinear", max_seconds=0, **MEMBERS).status.values) == {
        whole.attrs["status_names"].index("interrupted")
    }
    to = Destination(tmp_path / "run.zarr")
    asked = Values(params=MEMBERS["params"])
    run = run_ensemble("joma.nonlinear", asked, RunOptions(method="tsit5"), to, make_execution(Work(max_seconds=0), None, None))
    assert run.status == "interrupted" and run.message.startswith("max_seconds = 0: stopped after 0 of 4 members")
    assert resume(to.path).status == "ok"
    assert odesim.open_run(to.path).v.values.tobytes() == whole.v.values.tobytes()


def test_a_training_goes_on_where_its_time_ended(tmp_path):
    """In memory and stored; resume completes it with the bits of one that had the time."""
    run = odesim.train("scan_snap", steps=3, max_seconds=0)
    assert run.status == "interrupted" and run.message.startswith("max_seconds = 0: ")
    out = tmp_path / "run.zarr"
    assert odesim.train("scan_snap", steps=3, out=out, max_seconds=0).iteration < 3
    done, whole = odesim.train("scan_snap", steps=3, out=out, resume=True), odesim.train("scan_snap", steps=3)
    assert done.status == "ok"
    assert all(done.final[name].tobytes() == values.tobytes() for name, values in whole.final.items())


def test_on_the_command_line(tmp_path):
    """Exit code 3, and the part before it is stored."""
    out = str(tmp_path / "run.zarr")
    done = CliRunner().invoke(cli, ["integrate", "joma.nonlinear", "--max-seconds", "0", "--out", out])
    assert done.exit_code == 3 and "max_seconds = 0: interrupted" in done.stderr
    assert "interrupted" in CliRunner().invoke(cli, ["status", out]).stdout
    for wrong in ("-1", "nan"):
        assert CliRunner().invoke(cli, ["integrate", "joma.nonlinear", "--max-seconds", wrong]).exit_code == 2


def test_the_shorter_limit_counts():
    """Limits inside each other: the first to end does; behind them there is none."""
    stopped: list[int] = []
    with time_limit(0) as late, time_limit(1e9), stop_signals() as asked, ctrl_c(lambda: stopped.append(1)):
        assert late() and asked() and stopped == [1]
    with time_limit(1e9) as late, stop_signals() as asked, ctrl_c(lambda: stopped.append(2)):
        assert not late() and not asked()
    with stop_signals() as asked, ctrl_c(lambda: stopped.append(3)):
        assert not asked()
    assert stopped == [1]


@pytest.mark.parametrize("method", ["tsit5", "rkc"])
def test_what_was_interrupted_is_known_between_its_ends(method: str) -> None:
    """dense() does the run again up to where it came, not to the end of its span, which is never reached."""
    words: dict[str, Any] = {"sizes": {"M": 2}, "method": method, "step": 1e-3, "span": (0, 1e9), "max_steps": 10**12}
    run = odesim.integrate("joma.nonlinear", **words, progress=lambda part: signal.raise_signal(signal.SIGINT))
    found = run.dense(np.linspace(0, run.t_end, 5)[1:])["v"]
    assert run.status == "interrupted" and np.array_equal(found[-1], run.y_end["v"]) and np.all(np.isfinite(found))
