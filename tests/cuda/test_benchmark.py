"""The benchmark of a GPU, all of it, by the shim at tiny sizes: that it runs, and what it computes beside times."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from odesim.lab.networks import layers
from odesim.run import threads as device_engine
from odesim.targets import cuda_system
from odesim.targets.nvrtc import Cubin
from tests.support.cupy_arrays import make_arrays
from tests.support.threads import asked

FOLDER = Path(__file__).parents[2] / "benchmarks"
WIDE, PRODUCTS = "One large system, tsit5, 1e-6", "Products of matrices, Y' = A Y - Y"
STEP, PEERS = "Loss and gradients of a transformer", "Other libraries on the same GPU"
LOG = """ptxas info : 8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info : Used 40 registers
ptxas info : Used 90 registers
"""


@pytest.fixture
def bench(shim: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Imports a module of benchmarks/, whose kernels run here, and forgets all of them afterwards."""
    cupy, arrays = shim(), make_arrays()
    for name in set(vars(arrays)) - set(vars(cupy)):  # what a transformer needs beside
        setattr(cupy, name, getattr(arrays, name))
    monkeypatch.setattr(layers, "_by_rows", layers._by_product)
    for module in (cuda_system, device_engine):
        monkeypatch.setattr(module, "compile_cubin", lambda text, stem, options: Cubin(text.encode(), LOG))
    for name in (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "XLA_FLAGS",
        "JAX_PLATFORMS",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
    ):
        monkeypatch.setenv(name, "1")  # as they were, when the test is over
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for path in FOLDER.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.slow
def test_gpu_benchmark_runs(bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every part leaves rows; strict bits are the processor's; errors are those of the tolerance."""
    path = tmp_path / "gpu.json"
    options = ["--members", "64", "--cpu", "32", "--rounds", "1", "--largest", "1e4", "--json", str(path)]
    monkeypatch.setattr(sys, "argv", ["gpu.py", *options])
    bench("gpu").main()
    found = json.loads(path.read_text(encoding="utf-8"))
    tables = {t["title"].partition(".")[0].partition(":")[0]: t["rows"] for t in found["tables"]}
    assert list(tables) == ["Strict mode", "W2", "W1", WIDE, "W4j", PRODUCTS, STEP, PEERS]
    assert found["measured"]["gpu strict"] == 0 and all(row["count"] > 60 for row in tables["Strict mode"])
    for row in (*tables["W2"], *tables["W1"]):
        assert (row["members"], row["failed"], row["registers"], row["stack"], row["spills"]) == (64, 0, 90, 8, 4)
        assert row["kernel"] > 0 and 0 < row["busy"] <= 1 and row["peak"] > 0
        assert row["error"] < (1e-4 if row["dtype"] == "float32" else 2e-5)
    assert tables[WIDE][0]["error"] < 1e-5
    assert [row["n"] for row in tables[PRODUCTS]] == [64] and tables[PRODUCTS][0]["error"] < 1e-13
    assert [row["dtype"] for row in tables[STEP] if row["odesim"] > 0] == ["float32", "float64"]
    assert "left out" in capsys.readouterr().err or len(tables[PEERS]) > 3


def test_operations_of_a_step(bench: Any) -> None:
    """Lorenz by tsit5 in fixed steps: 6 right-hand sides of 8, 21 products of h and a weight, and for each of these a multiply-add of 2
    for each of 3 states; at most a quarter more beside, for time and control; one right-hand side costs as much as is written."""
    flops, ours, works = bench("flops"), bench("ours"), bench("works")
    work = works.make_work("W2f", 3)
    _, engine = bench("direct").make_prepared(**ours.ensemble_arguments(work), method="tsit5", step=1e-3, backend="cuda")
    found = flops.step_operations(engine.plan)
    least = 6 * 8 + 21 + 2 * 3 * 21
    assert least <= found <= 1.25 * least
    scope = flops.thread_scope(asked("joma.nonlinear", method="tsit5", grid={"mu": "linspace(0.9,1.0,3)"}, sizes={"M": 1})[1].plan)
    assert flops.function_operations(scope, "right") - flops._callee_operations(scope, "exp") == 4  # (mu - v) * exp(0.5 v v)


def test_busy_and_passes(bench: Any) -> None:
    """A warp takes as many turns as its slowest member; the passes of tsit5: 21 slopes, 6 times 8, and 9 of the error norm."""
    gpu = bench("gpu")
    assert gpu.busy_share(np.array([4] * 32 + [2] * 16)) == pytest.approx((128 + 32) / (128 + 64))
    assert gpu.memory_passes(1) == 21 + 6 * 8 + 9


def test_numbers_of_a_log(bench: Any) -> None:
    """The largest of each; what is not said has no number."""
    registers = bench("registers")
    assert registers.register_counts(LOG) == {"registers": 90, "stack": 8, "spills": 4} and registers.register_counts("") == {}
