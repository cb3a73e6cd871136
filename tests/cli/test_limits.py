"""What the system, the environment or the user does to a command at its worst: one sentence and an exit code, never a traceback."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.begun import begun
from tests.support.matrix import slow_but

ROOT = Path(__file__).parents[2]
RUN = "integrate joma.nonlinear --size M=3 --save 3 --quiet"
MAIN = "import sys; sys.path.pop(0); from odesim.cli import main; main()"
LONG = {"words": "x " * 5000, "commas": "x," * 5000, "numbers": "1 " * 5000, "a word": "y" * 10000}


def in_shell(before: str, words: str, folder: Path, *, code: str = MAIN) -> subprocess.CompletedProcess[str]:
    """The command in a shell of its own, with these words before it, such as a limit."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = f"{before} exec {shlex.join([sys.executable, '-c', code])} {words}"
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a run and an ensemble."""
    folder: Path = tmp_path_factory.mktemp("limits")
    begun(folder / "ens.zarr")
    return folder


# before the command, the command -> exit codes, a part of the sentence
WORST: dict[str, tuple[str, str, tuple[int, ...], str]] = {
    "numba is off": ("NUMBA_DISABLE_JIT=1", RUN, (0,), ""),
    "no such backend": ("MPLBACKEND=nope", "plot ens.zarr", (2,), "matplotlib does not load here"),
    "no such backend, before the run": ("MPLBACKEND=nope", f"{RUN} --out new.zarr --plot new.png", (2,), "matplotlib does not load here"),
    "few open files": ("ulimit -n 12;", "plot ens.zarr", (0, 2), ""),  # how many are needed depends on the machine
    "a matplotlibrc that is no text": ("printf 'font.size: \\377' > matplotlibrc;", "plot ens.zarr", (2,), "matplotlib does not load here"),
}


@pytest.mark.parametrize("case", slow_but(WORST, [case for case in WORST if case != "few open files"]))
def test_limits(case, place):
    """A limit of the system, or a setting of another package, is a sentence, and nothing is called damaged for it."""
    before, words, codes, piece = WORST[case]
    done = in_shell(before, words, place)
    (place / "matplotlibrc").unlink(missing_ok=True)
    assert done.returncode in codes and piece in done.stderr, done
    assert "Traceback" not in done.stderr and "damaged" not in done.stderr and not (place / "new.zarr").exists()
    assert done.returncode == 0 or done.stderr.splitlines()[-1].startswith("odesim: ")


INTERRUPTED = """
import sys; sys.path.pop(0)
import _signal, atexit

def count(event, args):
    global imports
    imports += event == "import" and (imports > 0 or args[0] == "click")
    if imports == MOMENT and event == "import":
        _signal.raise_signal(2)

imports = 0
sys.addaudithook(count)
from odesim.cli import main
atexit.register(lambda: print(imports))
main()
"""


@pytest.fixture(scope="module")
def imports(place) -> int:
    """How many modules a command imports."""
    return int(in_shell("", "doctor", place, code=INTERRUPTED.replace("MOMENT", "-1")).stdout.splitlines()[-1])


@pytest.mark.first(2)
@pytest.mark.parametrize("share", [0, 0.4, 0.1, 0.8])
def test_an_interrupt_at_an_import(share, place, imports):
    """Ctrl-C at the import of any module, click among them: exit code 3 and a sentence."""
    done = in_shell("", "doctor", place, code=INTERRUPTED.replace("MOMENT", str(1 + int(share * imports))))
    assert done.returncode == 3, done
    assert done.stderr.startswith("odesim: interrupted") and done.stderr.count("\n") == 1


FILES = {
    "integrate {}.py": "a pipe, not a file",
    "show {}.py": "a pipe, not a file",
    "integrate joma.nonlinear --set mu=@{}.csv": "a pipe, not a file",
    "integrate joma.nonlinear --init v=@{}.npy": "a pipe, not a file",
    "train corpus --set text=@{}.txt": "a pipe, not a file",
    "status {}.zarr": "is a file, not a run",
    "integrate joma.nonlinear --plot {}.png": "odesim did not draw it",
    "integrate joma.nonlinear --out {}.zarr": "is there",
}


@pytest.mark.parametrize("words", FILES)
def test_a_named_pipe_is_not_waited_for(words, odesim, folder):
    """A named pipe in the place of a file has no writer: no command waits for one."""
    words, piece = words.format("pipe").split(), FILES[words]
    os.mkfifo(folder / Path(words[-1].rpartition("@")[2]).name)
    done = odesim(*words)
    assert (done.exit_code, done.stdout) == (2, "") and piece in done.stderr


# commands that end in a value
VALUES = """
integrate
integrate joma.nonlinear --set mu=
integrate joma.nonlinear --size
integrate joma.nonlinear --span
integrate joma.nonlinear --save
integrate joma.nonlinear --method
integrate joma.nonlinear --rtol
integrate joma.nonlinear --seed
integrate joma.nonlinear --event
integrate joma.nonlinear --plot
ensemble joma.nonlinear --vary
ensemble joma.nonlinear --members
ensemble joma.nonlinear --cluster
train committee --steps
train committee --set
status
plot run.zarr --log
plot run.zarr --out
export run.zarr --to
figure
notebook
new
list
compare
completion
"""


@pytest.mark.parametrize("value", LONG)
@pytest.mark.parametrize("words", VALUES.strip().splitlines())
def test_a_long_value_is_not_repeated(words, value, odesim, folder):
    """A wrong value of 10,000 characters is shown with its beginning and its end."""
    *first, last = words.split()
    done = odesim(*first, f"{last}{LONG[value]}") if last.endswith("=") else odesim(*first, last, LONG[value])
    assert (done.exit_code, done.stdout) == (2, ""), done.output[:300]
    assert done.stderr.startswith("odesim: ") and len(done.stderr) < 1100


@pytest.mark.parametrize("command", ["status", "plot", "resume", "rerun", "export --to csv"])
def test_urls_lead_nowhere(command, odesim):
    """Runs lie in folders: exit code 2 and one sentence."""
    done = odesim(*command.split(), "s3://bucket/run.zarr")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("odesim: no run 's3:") and done.stderr.count("\n") == 1
