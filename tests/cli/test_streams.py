"""What surrounds a command: closed and full streams, foreign files. The exit code is that of the command, and it touches none of them."""

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


@pytest.mark.first(2)
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


def test_files_of_the_current_folder_are_no_modules(folder):
    """Files named like modules that odesim imports, beside which a command runs: they are not read, whichever way it is called."""
    for name in (
        "click",
        "numba",
        "numpy",
        "sympy",
        "random",
        "json",
        "hashlib",
        "difflib",
        "llvmlite",
        "models",
        "xarray",
        "zarr",
        "scipy",
    ):
        (folder / f"{name}.py").write_text("raise RuntimeError('a file of the current folder')\n")
    command = [sys.executable, "-m", "odesim", "integrate", "joma.nonlinear", "--size", "M=3", "--save", "3", "--out", "run.zarr", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and '"status": "ok"' in done.stdout
