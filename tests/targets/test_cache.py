"""Generated modules on disk: named by content, whole or not there, and machine code that needs no numba to start."""

import ast
import ctypes
import gc
import subprocess
import sys
from pathlib import Path

import pytest

from odesim.base.errors import CacheWarning
from odesim.runtime.functions import Function
from odesim.stepper.drive import SEARCHED
from odesim.stepper.one_system import SHARED
from odesim.targets import cache, native

TEXT = """
from odesim.runtime.functions import njit


@njit("int64(int64, float64)")
def scaled(n, x):
    total = 0.0
    for i in range(n):
        total += x * i
    return int(total)
"""

OTHERS = ("linear_steps", "noise_draw", "front_solver")
"""Of the stepper: modules that one kind of driver has beside those of all."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, also for what this process has loaded already."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # other processes may leave theirs in the common one
    monkeypatch.setenv("ODESIM_CACHE_DIR", str(tmp_path / "cache"))
    native._addresses.cache_clear()
    for name in [n for n in sys.modules if n.startswith("sample_")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path / "cache"


def scaled(address: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_double)(address)(5, 0.5))


def test_name_is_content(folder: Path) -> None:
    """The same text has the same file, written once; another text has another one."""
    first = cache.load_module("x = 1\n", "sample")
    file = Path(str(first.__file__))
    before = file.stat().st_mtime_ns
    assert file.parent == folder and file.read_text() == "x = 1\n"
    assert cache.load_module("x = 1\n", "sample") is first
    del sys.modules[first.__name__]
    assert cache.load_module("x = 1\n", "sample").x == 1 and file.stat().st_mtime_ns == before
    assert cache.module_name("x = 2\n", "sample") != cache.module_name("x = 1\n", "sample")
    assert not list(folder.glob("*.tmp"))


def test_module_that_fails_is_forgotten(folder: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            cache.load_module("1 / 0\n", "sample")


def test_unwritable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Where the cache cannot be written, a private temporary folder serves; it is listed and cleared too."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ODESIM_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    module = cache.load_module("x = 3\n", "sample")
    assert Path(str(module.__file__)).parent.parent == tmp_path
    (entry,) = cache.cache_entries()
    assert entry.path == Path(str(module.__file__)) and cache.clear_cache() == entry.size and cache.cache_entries() == ()


def test_folder_of_others_is_not_used(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is not loaded from a folder where anybody can put files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder.mkdir()
    folder.chmod(0o777)
    assert Path(str(cache.load_module("x = 4\n", "sample").__file__)).parent != folder


def test_entries_and_clear(folder: Path) -> None:
    """What the cache holds with the bytes it takes; clearing leaves other files alone."""
    native.load_native(TEXT, "sample", ["scaled"])
    (folder / "notes.py").write_text("")
    (entry,) = cache.cache_entries()
    assert entry.name == cache.module_name(TEXT, "sample")
    assert entry.size > len(TEXT) + 500
    assert cache.clear_cache() == entry.size
    assert cache.cache_entries() == () and (folder / "notes.py").exists()
    assert [p.name for p in folder.glob("*.*")] == ["notes.py"]


def test_native(folder: Path) -> None:
    """Machine code computes what the function does; a damaged file is made anew."""
    address = native.load_native(TEXT, "sample", ["scaled"])["scaled"]
    assert scaled(address) == 5
    file = folder / f"{cache.module_name(TEXT, 'sample')}.o"
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[:40], b"", whole[:100] + b"?" + whole[101:]):
        file.write_bytes(damaged)
        native._addresses.cache_clear()
        assert scaled(native.load_native(TEXT, "sample", ["scaled"])["scaled"]) == 5
        assert file.read_bytes() == whole


def test_native_where_numba_is_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NUMBA_DISABLE_JIT is for functions of the user: the integrator is compiled all the same."""
    monkeypatch.setattr("numba.core.config.DISABLE_JIT", 1)
    assert scaled(native.load_native(TEXT, "sample", ["scaled"])["scaled"]) == 5
    assert list(folder.glob("*.o"))


def test_native_of_what_calls_foreign_code(folder: Path) -> None:
    """A function that allocates needs numba's run time: numba compiles it and keeps it in memory, and nothing is written."""
    text = TEXT.replace("total = 0.0", "total = np.zeros(n).sum()").replace("from odesim", "import numpy as np\nfrom odesim")
    with pytest.warns(CacheWarning, match="numba compiles sample, .*: CodegenError: scaled calls zeros"):
        assert scaled(native.load_native(text, "sample", ["scaled"])["scaled"]) == 5
    assert not list(folder.glob("*.o"))


def test_sources_text() -> None:
    """One text of several files: in order, without their imports of each other."""
    text = cache.sources_text(["odesim.stepper.control", "odesim.stepper.operations"])
    assert "from odesim.stepper" not in text and "from odesim.runtime.intrinsics import" in text
    assert text.index("SAFETY =") < text.index("def weigh")
    compile(text, "text", "exec")


@pytest.mark.parametrize("module", sorted({*SHARED, *SEARCHED, *(f"odesim.stepper.{name}" for name in OTHERS)}))
def test_sources_text_is_what_the_syntax_tree_says(module: str) -> None:
    """Of every module whose text is joined: imports left out whole, each function with the decorator, all else as it was."""
    lines = cache.source_of(module).splitlines()
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.FunctionDef):
            lines[node.lineno - 1] = f"@helper\n{lines[node.lineno - 1]}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("odesim.stepper", "__future__")):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
    want = "\n".join(lines).strip("\n")
    assert cache.sources_text([module], [module], "@helper").split(f"# {module}\n")[1].rstrip("\n") == want


def test_driver_needs_no_numba(folder: Path) -> None:
    """A process integrates a callback system without numba, whether it compiles the integrator or finds it in the cache."""
    code = (
        "import sys, numpy as np\n"
        "from odesim.base.arrays import Layout\n"
        "from odesim.run.integrate import integrate_problem\n"
        "from odesim.stepper.callback import CallbackSystem\n"
        "from odesim.stepper.problem import Problem\n"
        "f = CallbackSystem(lambda t, y, out: np.negative(y, out=out), Layout(('y',), ((3,),)))\n"
        "run = integrate_problem(Problem(f, np.ones(3), 0.0, 1.0))\n"
        "print(run.status, 'numba' in sys.modules)\n"
    )
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == ["ok", "False"]


def test_a_built_module_is_released(folder: Path) -> None:
    """A module, whose text is long where it is a kernel, goes once its machine code is there; the code stays."""

    def functions() -> int:
        gc.collect()
        return sum(type(thing) is Function for thing in gc.get_objects())

    assert scaled(native.load_native(TEXT, "sample", ["scaled"])["scaled"]) == 5
    before = functions(), sum(name.startswith("sample_") for name in sys.modules)
    addresses = [native.load_native(TEXT.replace("0.0", f"{k}.0"), "sample", ["scaled"])["scaled"] for k in (1, 2, 3)]
    assert before == (functions(), sum(name.startswith("sample_") for name in sys.modules))
    assert [scaled(address) for address in addresses] == [6, 7, 8]
