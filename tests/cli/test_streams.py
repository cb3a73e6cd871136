"""Closed and full streams: the exit code is that of the command, and nothing is written to another stream or file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CLOSED = ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"]
RUN = "integrate joma.nonlinear --size M=2 --backend numpy --method tsit5 --out run.zarr"
COMMANDS = {"--version": 0, "nope": 2}


def shell(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("closed", CLOSED)
def test_closed_streams(closed, tmp_path):
    """Each command as with open streams: code, files, and on each stream that is open nothing that belongs to the other."""
    for command, code in COMMANDS.items() if closed != CLOSED[-1] else [(RUN, 0)]:
        done = shell(f"{sys.executable} -m odesim {command} {closed}", tmp_path)
        assert done.returncode == code, (command, done)
        out, err = (">&-" not in closed.replace("2>&-", "")), "2>&-" not in closed
        assert bool(done.stdout) == (out and code == 0), done
        assert bool(done.stderr) == (err and code == 2), done
    if closed == CLOSED[-1]:
        data = [p.read_bytes() for p in (tmp_path / "run.zarr").rglob("*") if p.is_file() and p.name != "zarr.json"]
        assert os.listdir(tmp_path) == ["run.zarr"] and b"joma" not in b"".join(data)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_stdout(tmp_path):
    """What is printed has no room: exit code 3 and a sentence; a wrong request stays 2."""
    done = shell(f"{sys.executable} -m odesim --help > /dev/full", tmp_path)
    assert done.returncode == 3 and done.stderr.startswith("odesim: cannot write") and done.stderr.count("\n") == 1, done
    assert shell(f"{sys.executable} -m odesim nope > /dev/full", tmp_path).returncode == 2
    assert shell(f"{sys.executable} -m odesim nope 2> /dev/full", tmp_path).returncode == 2
