"""Wrong requests: each ends with 2 and one sentence that says what is wrong, before anything is computed or written."""

import os
import pickle
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

GOOD = """
from sympy import Interval, oo
from odesim.symbolic import IndexedBase, Param, Source, System, index, sizes
(m,) = index("m")
(M,) = sizes("M")
w, s = IndexedBase("w", shape=(M,)), IndexedBase("s", shape=(M,))
SYSTEM = System(
    name="good.one", source=Source("key", "eq. 1"), axes={m: M}, equations={w[m]: s[m] - w[m]},
    params=(Param(s, 1.0, Interval(-oo, oo), "target"),), initial={w[m]: 0.0}, sizes={M: 2},
)
"""
FULL = "integrate scan_snap.full --set P=@P.csv"
JOMA = "integrate joma.nonlinear"

# command, then pieces of the sentence; {closed} is a folder where nothing can be written
TABLE = {
    # names
    "command of other programs": ("run joma.nonlinear", "no command 'run'", "did you mean 'integrate'?"),
    "command": ("intergate joma.nonlinear", "no command 'intergate'", "did you mean 'integrate'?"),
    "option": (f"{JOMA} --mehtod tsit5", "no option '--mehtod'", "did you mean '--method'?"),
    "parameter as option": (f"{JOMA} --mu 3", "no option '--mu' of odesim integrate; it is a parameter of joma.nonlinear: --set mu=3"),
    "size as option": (f"{JOMA} --M=3", "; it is a size of joma.nonlinear: --size M=3"),
    "state as option": (f"{JOMA} --v --quiet", "; it is a state of joma.nonlinear: --init v=VALUE"),
    "parameter of a file": ("integrate my.py --beta 3", "; if it is a parameter of the model: --set beta=3"),
    "step of others": (f"{JOMA} --dt 0.1", "no option '--dt'", "did you mean '--step'?"),
    "time of others": (f"{JOMA} --t_span 0:1", "no option '--t_span'", "did you mean '--span'?"),
    "output of others": (f"{JOMA} -o a.zarr", "no option '-o'", "did you mean '--out'?"),
    "option with a file": ("integrate my.py --mehtod tsit5", "did you mean '--method'?"),
    "option of others": ("show joma.nonlinear --event x", "no option '--event' of odesim show; it is an option of integrate, ensemble"),
    "model": ("integrate joma.nonlinaer", "no model 'joma.nonlinaer'", "did you mean 'joma.nonlinear'?"),
    "model to show": ("show joma.nonlinaer", "no model", "did you mean 'joma.nonlinear'?"),
    "parameter": (f"{JOMA} --set mv=1", "no parameter 'mv' in joma.nonlinear", "mu"),
    "state": (f"{JOMA} --init w=1", "no state 'w' in joma.nonlinear", "v"),
    "sensitivity": (f"{JOMA} --sensitivity muu", "no parameter or state 'muu' in joma.nonlinear; choose from mu, v", "did you mean 'mu'?"),
    "sensitivity to whole numbers": (f"{FULL} --sensitivity psi", "psi takes whole numbers, so there is no derivative"),
    "sensitivity of members": ("ensemble joma.nonlinear --grid mu=1,2 --sensitivity mv --out e.zarr", "no parameter or state 'mv'"),
    "sensitivity twice": (f"{JOMA} --sensitivity mu --sensitivity mu", "the sensitivities to mu are requested twice"),
    "size": (f"{JOMA} --size N=3", "no size 'N' in joma.nonlinear", "M"),
    "method": (f"{JOMA} --method tsit6", "no method 'tsit6'", "did you mean 'tsit5'?"),
    "method of scipy": (f"{JOMA} --method RK45", "no method 'RK45'", "did you mean 'tsit5'?"),
    "stiff method of scipy": ("ensemble joma.nonlinear --grid mu=1,2 --method BDF --out e.zarr", "no method 'BDF'", "'rodas5p'?"),
    "both methods of scipy": (f"{JOMA} --method lsoda", "no method 'lsoda'", "did you mean 'auto'?"),
    "method in capitals": (f"{JOMA} --method DOP853", "no method 'DOP853'", "did you mean 'dop853'?"),
    "option but for a letter": ("list --task", "no option '--task' of odesim list; did you mean '--tasks'?"),
    "model to plot": ("plot joma.nonlinear", "joma.nonlinear is a model, not a run", "`odesim integrate joma.nonlinear --plot FILE.png`"),
    "method of the explorer": ("explore joma.nonlinear --method tsit6", "no method 'tsit6'", "did you mean 'tsit5'?"),
    "port": ("explore joma.nonlinear --no-browser --port 65536", "65536 is too large: at most 65535"),
    "unknown dtype": (f"{JOMA} --dtype float", "no dtype 'float'", "float32, float64"),
    "dtype": (f"{JOMA} --dtype float16", "no dtype 'float16'", "float32, float64"),
    "backend of others": (f"{JOMA} --backend gpu", "no backend 'gpu'", "did you mean 'cuda'?"),
    "backend": (f"{JOMA} --backend nunba", "no backend 'nunba'", "did you mean 'numba'?"),
    "cuda": (f"{JOMA} --backend cuda", "cuda"),
    "a training at a URL": ("train scan_snap --out s3://bucket/x.zarr", "nothing is written at URLs", "give 'x.zarr' a folder"),
    "an ensemble at a URL": ("ensemble joma.linear --members 3 --out s3://bucket/x.zarr", "nothing is written at URLs"),
    "figure": ("figure joma_fig44", "no figure 'joma_fig44'", "did you mean 'joma_fig4'?"),
    "figure format": ("figure joma_fig4 --format bmp", "no picture format 'bmp'", "png"),
    "export format": ("export run.zarr --to xlsx", "no format 'xlsx'", "csv, jax, json, nc"),
    "shell": ("completion tcsh", "no shell 'tcsh'", "bash, fish, zsh"),
    "cache action": ("cache clean", "no action 'clean'", "clear"),
    # nothing where something must be
    "no model": ("integrate", "integrate needs MODEL"),
    "no value": (f"{JOMA} --set", "'--set' requires an argument"),
    "no format": ("export run.zarr", "export needs --to csv|nc|parquet|json|numpy|jax|c, or --out FILE"),
    "no format of a name": ("export run.zarr --out run.xlsx", "parquet, json, c, not 'run.xlsx'"),
    "size without its option": (f"{JOMA} M=3", "unexpected extra argument", "it is a size of joma.nonlinear: --size M=3"),
    "two models": (f"{JOMA} joma.linear", "unexpected extra argument"),
    # files without an end
    "device as a model": ("integrate /dev/zero", "'/dev/zero' is a device, not a file"),
    "device of options": (f"{JOMA} --params /dev/zero", "'/dev/zero' is a device, not a file"),
    "device of text": ("train corpus --set text=@/dev/zero", "--set text", "'/dev/zero' is a device, not a file"),
    # values
    "empty --set": (f"{JOMA} --set ''", "--set takes NAME=VALUE"),
    "no =": (f"{JOMA} --set mu", "--set takes NAME=VALUE", "mu"),
    "no name": (f"{JOMA} --set =1", "--set takes NAME=VALUE"),
    "empty value": (f"{JOMA} --set mu=", "mu", "empty"),
    "not a number": (f"{JOMA} --set mu=abc", "mu", "'abc' is not a number"),
    "nan": (f"{JOMA} --set mu=nan", "mu", "nan is not a finite number"),
    "inf": (f"{JOMA} --set mu=-inf", "mu", "-inf is not a finite number"),
    "overflow": (f"{JOMA} --set mu=1e400", "mu", "'1e400' overflows"),
    "nan in a list": (f"{JOMA} --set mu=1,nan", "mu", "not a finite number"),
    "open bracket": (f"{JOMA} --set 'mu=[1, 2'", "mu", "a ] is missing"),
    "ragged list": (f"{FULL.replace('@P.csv', '[[1,0],[1]]')}", "rows have different lengths"),
    "code": (f"{JOMA} --set \"mu=__import__('os').system('touch hacked')\"", "mu", "__import__"),
    "code in init": (f"{JOMA} --init \"v=open('hacked','w')\"", "v", "open"),
    "code in size": (f'{JOMA} --size "M=exit()"', "M", "exit"),
    "code in span": (f'{JOMA} --span "0:exit()"', "--span", "exit"),
    "deep brackets": (f"{JOMA} --set mu={'[' * 5000}", "mu", "deeper"),
    "unknown fill": (f"{JOMA} --set 'mu=linspaec(0,1)'", "no function 'linspaec'", "did you mean 'linspace'?"),
    "wrong shape": (f"{JOMA} --set 'mu=[[1, 2], [3, 4]]'", "mu", "(2, 2)"),
    "wrong shape of P": ("integrate scan_snap.full --set P=1,0", "P", "(2,)"),
    "outside": ("integrate joma.nonlinear_softmax --set T=-1", "T", "-1", "(0, inf)"),
    "outside: theorem4": ("integrate scan_snap.theorem4 --set K=0", "K", "0"),
    "size twice": (f"{JOMA} --size M=3 --size M=4", "--size M is given twice"),
    "parameter twice": (f"{JOMA} --set mu=1 --set mu=2", "--set mu is given twice"),
    "initial value twice": (f"{JOMA} --init v=1 --init v=1", "--init v is given twice"),
    "L of the tree": ("integrate hierarchy.grouped --size L=1", "its axis L - 1 is 0 long (L = 1 as given); it must be at least 1"),
    "negative P": ("integrate scan_snap.full --set 'P=[[0.5, 0.75, -0.25]]'", "P[0, 2] = -0.25"),
    "rows of P": ("integrate scan_snap.full --set 'P=[[0.5, 0.4], [0.5, 0.5]]'", "rows of P must sum to 1: row 0 sums to 0.9"),
    "psi too long": (f"{FULL} --set psi=0,0,1", "psi"),
    "psi skips": (f"{FULL} --set psi=0,2", "psi", "out of range"),
    "psi below": (f"{FULL} --set psi=0,-1", "psi", "-1"),
    "psi not whole": (f"{FULL} --set psi=0,0.5", "psi", "0.5"),
    "M below K": (f"{FULL} --set M=1", "M"),
    "sizes disagree": (f"{JOMA} --size M=4 --set mu=1,2,3", "sizes disagree", "M = 4", "M = 3"),
    "arrays disagree": (f"{JOMA} --set mu=1,2,3 --init v=1,2", "sizes disagree", "3", "2"),
    "size 0": (f"{JOMA} --size M=0", "M", "0", "at least 1"),
    "size below 0": (f"{JOMA} --size M=-2", "M", "-2", "at least 1"),
    "size not whole": (f"{JOMA} --size M=2.5", "M", "2.5", "whole number"),
    "size not finite": (f"{JOMA} --size M=inf", "M", "inf"),
    "size without =": (f"{JOMA} --size M", "--size takes NAME=N"),
    "size beyond memory": (f"{JOMA} --size M=1000000000000000", "M"),
    # files
    "no file": (f"{JOMA} --set mu=@absent.csv", "absent.csv"),
    "ragged csv": (f"{JOMA} --set mu=@ragged.csv", "ragged.csv", "line 2"),
    "empty csv": (f"{JOMA} --set mu=@empty.csv", "empty.csv"),
    "words in csv": (f"{JOMA} --set mu=@words.csv", "words.csv"),
    "garbage npy": (f"{JOMA} --set mu=@garbage.npy", "garbage.npy"),
    "pickled npy": (f"{JOMA} --set mu=@pickled.npy", "pickled.npy"),
    "nan in npy": (f"{JOMA} --set mu=@nan.npy", "mu"),
    "folder as file": (f"{JOMA} --set mu=@folder.csv", "folder.csv"),
    # span, saved times, method
    "span backwards": (f"{JOMA} --span 5:1", "span", "forward"),
    "span empty": (f"{JOMA} --span 1:1", "span", "forward"),
    "span infinite": (f"{JOMA} --span 0:inf", "--span", "inf"),
    "span overflows": (f"{JOMA} --span 0:1e400", "--span", "overflows"),
    "not a span": (f"{JOMA} --span 5", "--span takes T0:T1"),
    "span of three": (f"{JOMA} --span 0:1:2", "--span takes T0:T1"),
    "save below 0": (f"{JOMA} --save -4", "--save -4"),
    "save log:0": (f"{JOMA} --save log:0", "--save log:0"),
    "save log:1": (f"{JOMA} --save log:1", "--save log:1"),
    "save one": (f"{JOMA} --save 2.5", "whole number", "--save 2.5,"),
    "save beyond memory": (f"{JOMA} --size M=1000000 --save 100000000", "100000000 saved times of 1000000 numbers would take 8e+05 GB"),
    "save words": (f"{JOMA} --save lin:5", "--save"),
    "save a word": (f"{JOMA} --save log", "'log' is not a number", "log:N"),
    "save backwards": (f"{JOMA} --save 1,0.5", "increase"),
    "save outside": (f"{JOMA} --span 0:1 --save 0,2", "outside the span"),
    "rtol 0": (f"{JOMA} --rtol 0", "--rtol", "above 0"),
    "rtol below 0": (f"{JOMA} --rtol -1e-6", "--rtol", "above 0"),
    "rtol nan": (f"{JOMA} --rtol nan", "--rtol", "not a finite number"),
    "atol below 0": (f"{JOMA} --atol -1", "--atol", "at least 0"),
    "step 0": (f"{JOMA} --step 0", "--step", "above 0"),
    "max steps 0": (f"{JOMA} --max-steps 0", "--max-steps", "at least 1"),
    "seed": (f"{JOMA} --seed x", "--seed", "whole number"),
    "euler without step": (f"{JOMA} --method euler", "euler", "step"),
    # outputs
    "present run": (f"{JOMA} --out run.zarr", "run.zarr is there", "--overwrite"),
    "present other": (f"{JOMA} --out folder.csv/.. --overwrite", "not a run"),
    "present file": (f"{JOMA} --out note --overwrite", "note is there and is not a run"),
    "run named csv": (f"{JOMA} --out run.csv", "run.zarr"),
    "no folder for out": (f"{JOMA} --out no/run.zarr", "no folder 'no' to write 'run.zarr' into"),
    "no folder for plot": (f"{JOMA} --plot no/run.png", "no folder 'no' to write 'run.png' into"),
    "no permission for out": (f"{JOMA} --out {{closed}}/run.zarr", "no permission to write 'run.zarr' into '{closed}'"),
    "no permission for plot": (f"{JOMA} --plot {{closed}}/run.png", "no permission to write 'run.png' into '{closed}'"),
    "no permission for new": ("new {closed}/my.py", "no permission to write 'my.py' into '{closed}'"),
    "no permission for a figure": ("figure joma_fig4 --out {closed}", "no permission to write 'joma_fig4.png' into '{closed}'"),
    "picture format": (f"{JOMA} --plot run.bmp", "no picture format 'bmp'", "pdf, png, svg"),
    "picture without format": (f"{JOMA} --plot run", "'run' has no extension"),
    "picture is a folder": (f"{JOMA} --plot folder.png", "folder"),
    "picture of somebody else": (f"{JOMA} --plot mine.png", "mine.png is there and odesim did not draw it"),
    "plot over somebody else's": ("plot run.zarr --out mine.png", "mine.png is there"),
    "figure over somebody else's": ("figure joma_fig4 --out figures", "joma_fig4.png is there"),
    "present model": ("new good.py", "good.py exists already"),
    "model without a name": ("new ''", "names no file", "my_model.py"),
    "model with other suffix": ("new my.txt", "my.py"),
    "present csv": ("export run.zarr --to csv --out empty.csv", "run.zarr"),
    "absent run": ("plot absent.zarr", "no run 'absent.zarr'"),
    "not a run": ("plot good.py", "good.py is a file, not a run"),
    "export of nothing": ("export absent.zarr --to csv", "no run 'absent.zarr'"),
    # model files
    "absent model file": ("integrate goood.py", "goood.py", "did you mean 'good.py'?"),
    "model file that raises": ("integrate raises.py", "raises.py, line 2", "ZeroDivisionError"),
    "model file that exits": ("integrate exits.py", "exits.py, line 2", "SystemExit"),
    "model file that does not parse": ("integrate broken.py", "broken.py, line 1", "SyntaxError"),
    "model file without SYSTEM": ("integrate none.py", "none.py has no SYSTEM"),
    "model file without the one named": ("integrate good.py:SYSTME", "good.py has no SYSTME", "did you mean 'SYSTEM'?"),
    "SYSTEM is no System": ("integrate wrong.py", "must be a System, not int"),
    "model file that is a folder": ("integrate folder.py", "folder.py"),
    "show a file that raises": ("show raises.py", "raises.py, line 2"),
    # --params
    "absent toml": (f"{JOMA} --params absent.toml", "cannot read absent.toml"),
    "not toml": (f"{JOMA} --params good.py", "good.py is not TOML"),
    "unknown key": (f"{JOMA} --params key.toml", "no key 'rtoll' in key.toml", "did you mean 'rtol'?"),
    "parameter outside [params]": (f"{JOMA} --params flat.toml", "no key 'mu' in flat.toml: a parameter belongs under [params]"),
    "unknown parameter in toml": (f"{JOMA} --params name.toml", "no parameter 'mv'"),
    "inf in toml": (f"{JOMA} --params inf.toml", "inf.toml: mu", "finite"),
    "bool in toml": (f"{JOMA} --params bool.toml", "bool.toml: mu", "True"),
    "rtol in toml": (f"{JOMA} --params rtol.toml", "rtol.toml: rtol", "above 0"),
    "table in toml": (f"{JOMA} --params table.toml", "table.toml: span is not a table"),
    "size in toml": (f"{JOMA} --params size.toml", "M", "at least 1"),
}  # fmt: skip


NOBODY = 65534


@pytest.fixture
def closed() -> Iterator[str]:
    """A folder that can be read and not written, by root neither once it is somebody()."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        yield folder
        Path(folder).chmod(0o700)


def open_to_all() -> bool:
    """Whether a user without rights can read this checkout: figures are looked for in it."""
    return os.geteuid() != 0 or all(folder.stat().st_mode & 0o5 == 0o5 for folder in Path(__file__).parents)


@contextmanager
def somebody() -> Iterator[None]:
    """Within it this process is no longer root's, who may write everywhere. Skips where nobody else may read this tree."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        if not os.access(__file__, os.R_OK, effective_ids=True):
            pytest.skip("the tree stands in a folder that only root may enter")
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def workshop(folder, monkeypatch) -> Path:
    """The current folder with good and bad files; the cache of compiled code is in it too, and not there yet."""
    texts = {
        "good.py": GOOD,
        "raises.py": "x = 1\nx / 0\n",
        "exits.py": "import sys\nsys.exit(0)\n",
        "broken.py": "SYSTEM = (\n",
        "none.py": "x = 1\n",
        "wrong.py": "SYSTEM = 3\n",
        "note": "mine",
        "mine.png": "mine",
        "figures/joma_fig4.png": "mine",
        "P.csv": "0.5,0.5\n0.25,0.75\n",
        "ragged.csv": "1,2\n3\n",
        "empty.csv": "",
        "words.csv": "a,b\n",
        "key.toml": "rtoll = 1e-3\n",
        "flat.toml": "mu = [1, 2]\n",
        "name.toml": "[params]\nmv = 1\n",
        "inf.toml": "[params]\nmu = inf\n",
        "bool.toml": "[params]\nmu = true\n",
        "rtol.toml": "rtol = 0\n",
        "table.toml": "[span]\nstart = 0\n",
        "size.toml": "[sizes]\nM = 0\n",
    }
    (folder / "figures").mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name in ("folder.csv", "folder.png", "folder.py"):
        (folder / name).mkdir()
    (folder / "garbage.npy").write_bytes(bytes(range(256)))
    np.save(folder / "nan.npy", np.array([1.0, np.nan]))
    np.save(folder / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert pickle.dumps({"a": 1})[:2] in (folder / "pickled.npy").read_bytes()
    (folder / "run.zarr").mkdir()
    (folder / "run.zarr" / "zarr.json").write_text('{"node_type": "group", "attributes": {"run_format": 1}}')
    monkeypatch.setenv("ODESIM_CACHE_DIR", str(folder / "cache"))
    return folder


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder below with its time and content."""
    return {str(p): (p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in [folder, *folder.rglob("*")]}


@pytest.mark.first(46)
@pytest.mark.parametrize("name", TABLE)
def test_wrong_request(name, workshop, odesim, closed, monkeypatch):
    """Exit code 2, nothing on stdout, one sentence with all its pieces on stderr, no file touched, no run begun."""

    def fail(*_: object, **__: object) -> None:
        pytest.fail("it was computed")

    monkeypatch.setattr("odesim.stepper.drive.RunState", fail)
    command, *pieces = TABLE[name]
    if command.startswith("figure") and "{closed}" in command and not open_to_all():
        pytest.skip("somebody else could not even read this checkout")
    before = snapshot(workshop)
    with somebody() if "{closed}" in command else nullcontext():
        done = odesim(*(word.replace("{closed}", closed) for word in shlex.split(command)))
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("odesim: ") and len(sentence) < 900  # all figures are named
    for piece in pieces:
        assert piece.replace("{closed}", closed) in sentence
    assert snapshot(workshop) == before


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "name", ["rows of P", "present run", *(pytest.param(name, marks=pytest.mark.slow) for name in ("method", "euler without step"))]
)
def test_wrong_request_compiles_nothing(name, workshop):
    """In a process of its own, where nothing is compiled yet: no cache of compiled code appears."""
    command, *pieces = TABLE[name]
    before = snapshot(workshop)
    done = subprocess.run([sys.executable, "-m", "odesim", *shlex.split(command)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "") and all(piece in done.stderr for piece in pieces), done.stderr
    assert snapshot(workshop) == before
