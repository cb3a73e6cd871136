"""The current folder may be a stranger's: no command executes a file of it, but a model file that it is given."""

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONAL = "bottleneck brotli cftime colorama cupy flox h5netcdf jax netCDF4 numbagg numexpr sitecustomize torch usercustomize uvloop"
ENSEMBLE = "ensemble joma.nonlinear --size M=2 --span 0:1 --save 3 --vary mu=uniform(1,2) --members 9 --quiet"
TRAIN = "train committee --set N=5 --steps 3 --seeds 0:2 --quiet"
# what draws or looks for packages
QUICK = """
new my_model.py
integrate my_model.py --save 3 --out run.zarr --plot run.png
plot run.zarr --animate run.mp4
plot run.zarr --animate run.gif
doctor
"""
# each command, in all that it does
EVERY = f"""
list
show joma.nonlinear
show joma.nonlinear --html page.html
new my_model.py
integrate my_model.py --out run.zarr --plot run.png
{ENSEMBLE} --out ens.zarr --plot ens.png
{TRAIN} --out train.zarr --plot train.svg
compare train.zarr train.zarr
status run.zarr
resume ens.zarr
rerun run.zarr --model my_model.py
plot run.zarr --out again.pdf
plot run.zarr --animate run.mp4
plot run.zarr --animate run.gif
export run.zarr --to csv
export run.zarr --to nc
export run.zarr --to parquet
figure classics_committee --fast
verify memory.power_law
notebook first_steps
cache
doctor
completion bash
integrate joma.nonlinear --backend cuda
"""
CLUSTER = f"{ENSEMBLE} --out spread.zarr --cluster local:1"


def strange_folder(folder: Path, *, stdlib: bool) -> Path:
    """Fills a folder with files that leave a mark where they are executed; returns the mark.

    They have the names of all modules of Python (stdlib), of installed packages, and of some that are looked for in case they are there.
    """
    mark = folder.parent / "mark"
    names = {*OPTIONAL.split(), *packages_distributions(), *(sys.stdlib_module_names if stdlib else ())} - {"odesim"}
    for name in names:
        if name.isidentifier():
            (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write('{name} ')\nraise ImportError('evil')\n")
    program = folder / "evil.sh"
    program.write_text(f"#!/bin/sh\necho program >> {mark}\nexit 1\n")
    program.chmod(0o755)
    settings = ("animation.ffmpeg_path", "animation.convert_path")
    (folder / "matplotlibrc").write_text("".join(f"{name}: ./evil.sh\n" for name in settings) + "text.usetex: True\n")
    return mark


def run_here(folder: Path, commands: str, programs: Path, *python: str) -> list[str]:
    """The exit codes of these commands, all run by one process in the folder, with these programs first."""
    environment = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"} | {"PYTHONPATH": str(ROOT), "COMMANDS": commands.strip()}
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    done = subprocess.run([sys.executable, *python], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


SCRIPT = """
import os
if __name__ == "__main__":
    from odesim.cli import cli
    codes = []
    for line in os.environ["COMMANDS"].splitlines():
        try:
            cli.main(line.split(), prog_name="odesim")
        except SystemExit as end:
            codes.append(str(end.code))
    print()
    print(*codes)
"""


@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(QUICK, id="quick"),
        pytest.param(EVERY, id="every", marks=pytest.mark.slow),
        pytest.param(CLUSTER, id="cluster", marks=pytest.mark.slow),
    ],
)
def test_nothing_of_the_folder_is_executed(commands, tmp_path):
    """Every command, in a folder whose files have the names of all modules, and whose matplotlibrc names a program for films.

    The program on the PATH makes them: here one that keeps a word.
    """
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ffmpeg").write_text('#!/bin/sh\nfor last; do :; done\ncat > /dev/null\necho film > "$last"\n')
    (tmp_path / "bin" / "ffmpeg").chmod(0o755)
    (tmp_path / "bin" / "odesim").write_text(SCRIPT)  # as the installed one: Python looks beside it, not in the current folder
    folder = tmp_path / "stranger"
    folder.mkdir()
    mark = strange_folder(folder, stdlib=True)
    codes = run_here(folder, commands, tmp_path / "bin", str(tmp_path / "bin" / "odesim"))
    assert not mark.exists(), mark.read_text()
    assert set(codes) <= {"0", "2"}  # 2 without pyarrow or a GPU
    assert "--animate run.mp4" not in commands or (folder / "run.mp4").read_text() == "film\n"


def test_module_of_python(tmp_path):
    """`python -m odesim`, which Python starts with the current folder in its path, takes nothing from there once it is ours."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    mark = strange_folder(folder, stdlib=False)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "odesim", "doctor"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and not mark.exists(), mark.read_text()
