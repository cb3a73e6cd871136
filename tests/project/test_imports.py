"""What a command imports: a light command stays light, and an integration loads nothing that it does not use."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# runs odesim with the arguments given, then prints the names of all modules that were imported
PROBE = """
import json, sys
from odesim.cli import main
try:
    status = main()
except SystemExit as exit:
    status = exit.code
print(json.dumps({"status": status or 0, "modules": sorted(sys.modules)}), file=sys.stderr)
"""


def modules_after(arguments: list[str], folder: Path) -> set[str]:
    """Names in sys.modules after `odesim ARGUMENTS`, run in a fresh interpreter in folder."""
    command = [sys.executable, "-c", PROBE, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stderr.splitlines()[-1])
    assert report["status"] == 0, done.stderr
    return set(report["modules"])


@pytest.mark.first(2)
@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["integrate", "--help"], ["train", "--help"], ["compare", "--help"]], ids=" ".join
)
def test_help_is_light(arguments, tmp_path):
    """Help and version come without numbers, symbols, compilers or pictures, and without a look at other packages."""
    heavy = {"numpy", "sympy", "numba", "scipy", "matplotlib", "xarray", "zarr", "importlib.metadata"}
    assert not heavy & modules_after(arguments, tmp_path)


def test_a_list_of_models_needs_no_symbols(tmp_path):
    """`odesim list` reads names and first lines: it waits neither for sympy nor for numpy, three quarters of its time."""
    assert not {"numpy", "sympy"} & modules_after(["list"], tmp_path)


def test_modules_that_text_names_are_there():
    """Modules imported late, and sources that go into a key, stand as text, which no import and no type checker looks at."""
    formats = {"odesim.claims", "odesim.system"}  # of files
    for path in sorted((ROOT / "odesim").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"odesim(\.\w+)+(:\w+)?", node.value):
                module, _, name = node.value.partition(":")
                if module not in formats:
                    assert importlib.util.find_spec(module), f"{path}: {node.value}"
                    assert not name or hasattr(importlib.import_module(module), name), f"{path}: {node.value}"


@pytest.mark.slow
def test_integrate_imports_no_store_and_no_plot(tmp_path):
    """A plain run loads neither what stores, draws or validates nor another integrator; what is compiled needs no compiler."""
    command = ["integrate", "joma.nonlinear", "--size", "M=3", "--json"]
    for run in ("maybe cold", "warm"):
        loaded = modules_after(command, tmp_path)
        assert "llvmlite" in loaded  # it did run
        assert not {"zarr", "xarray", "pandas", "matplotlib", "scipy.integrate"} & loaded
        assert run == "maybe cold" or "numba" not in loaded


@pytest.mark.parametrize("what", ["integrate", "ensemble"])
def test_what_a_run_imports_has_no_compiler(what):
    """Before anything is compiled numba is not loaded: half a second of every command."""
    code = f"import sys, odesim.api.{what}; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_a_band_is_ordered_without_scipy():
    """A chain of states is eliminated from its ends: a first stiff run of it loads no scipy.sparse, a sixth of a second."""
    code = "import sys, numpy as np; from odesim.ir.fronts import make_fronts; i = np.arange(59); make_fronts(60, i, i + 1); "
    code += "sys.exit('scipy.sparse' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_symbols_need_no_scipy():
    """Importing odesim.symbolic, as every model does, loads no scipy: a fifth of a second."""
    code = "import sys, odesim.symbolic; sys.exit(any(name.split('.')[0] == 'scipy' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.slow
def test_solve_runs_without_sympy(tmp_path):
    """Importing every module of odesim.stepper loads no sympy."""
    code = (
        "import sys, pkgutil, importlib, odesim.stepper as s\n"
        "for m in pkgutil.walk_packages(s.__path__, 'odesim.stepper.'): importlib.import_module(m.name)\n"
        "sys.exit('sympy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, stdin=subprocess.DEVNULL)


ABSENT = ("zarr", "xarray", "platformdirs", "click", "matplotlib", "pandas")  # on a bare machine with a GPU, say
MISSING = f"""
import os, sys
from pathlib import Path

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""
# runs an ensemble and one large system there; where the cache lies is asked too
WITHOUT = f"""{MISSING}
import odesim
from odesim.targets.cache import cache_dir
from direct import integrate_all, make_prepared

members = make_prepared("joma.nonlinear", method="tsit5", params={{"mu": [[0.5], [1.0]]}}, max_events=0)
print(integrate_all(*members).status.tolist(), odesim.integrate("joma.nonlinear", method="tsit5").status)
os.environ.pop("ODESIM_CACHE_DIR", None)
assert cache_dir() == Path.home() / ".cache" / "odesim"
"""


@pytest.mark.slow
def test_numbers_need_no_store_and_no_command_line(tmp_path):
    """What computes runs where only numpy, scipy, sympy and numba are."""
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])}
    done = subprocess.run([sys.executable, "-c", WITHOUT], cwd=tmp_path, env=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[0, 0] ok\n"), done.stderr


@pytest.mark.slow
def test_tests_of_a_gpu_need_no_store_and_no_command_line(tmp_path):
    """Where such packages are not, the tests that need them are left out, and the others are there."""
    options = ["-p", "no:cacheprovider", "-o", "addopts=", "-q", "--collect-only", "-m", "gpu", "tests/cuda"]
    code = f"{MISSING}\nimport pytest\nsys.exit(pytest.main({options}))"
    here = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert found == {f"tests/cuda/test_{name}.py" for name in ("products", "special_functions", "training", "translation", "wide")}
