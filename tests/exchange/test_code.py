"""A System as code for others: it computes what our own arrays do, without odesim."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy import Interval, Symbol

import odesim
from odesim.base.errors import CodegenError, ParamError
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.ir.passes import lower
from odesim.symbolic import Param, Source, System
from odesim.targets.numpy_text import ArrayFunction, index_arrays
from tests.support.models import CHEAPEST_FIRST

OPERATIONS = ["galore.projected", "gibbs.training_flow", "hierarchy.gated", "edge.product"]
"""Models that have inverses, gathered sums, partial sums, updates."""
NAMES = [*OPERATIONS, *(name for name in CHEAPEST_FIRST if name not in OPERATIONS)]
GCC = shutil.which("gcc") or shutil.which("cc")


def point(name: str) -> tuple[Any, dict[str, np.ndarray], dict[str, Any]]:
    """Default numbers of a model, a state near its start, and the rates of our arrays there, at t = .3."""
    system = load_model(name)
    numbers, rng = bind(system), np.random.default_rng(0)
    y = {state: np.asarray(v) + 0.01 * rng.normal(size=np.shape(v)) for state, v in numbers.initial.items()}
    values = {"t": 0.3, **numbers.sizes, **numbers.params, **y}
    rates = ArrayFunction(lower(system, numbers.sizes))(numbers.sizes, values)
    return numbers, y, {state: rates[f"d_{state}"] for state in system.states}


def module(text: str) -> ModuleType:
    """The module of a text, which imports nothing of odesim."""
    assert "odesim." not in text and "import odesim" not in text
    made = ModuleType("exported")
    exec(compile(text, "exported.py", "exec"), made.__dict__)
    return made


def check(found: dict[str, Any], want: dict[str, Any]) -> None:
    """1e-11: inverses and long sums in another order."""
    assert found.keys() == want.keys()
    for state, rates in want.items():
        np.testing.assert_allclose(np.asarray(found[state]), rates, rtol=1e-11, atol=1e-13, err_msg=state)
        assert np.shape(found[state]) == np.shape(rates)


@pytest.mark.first(6)
@pytest.mark.parametrize("name", NAMES)
def test_numpy(name):
    _, y, want = point(name)
    made = module(odesim.to_code(name, "numpy"))
    with np.errstate(all="ignore"):
        check(made.right_hand_side(0.3, y), want)
    system = load_model(name)
    if any(isinstance(e, sp.Basic) for e in system.observables.values()):
        run = odesim.integrate(system, save=[*system.span], backend="numba" if system.noise else "numpy")
        seen = made.observables(float(run.t[0]), {state: rows[0] for state, rows in run.y.items()})
        for observable, value in seen.items():
            np.testing.assert_allclose(value, run.observables[observable][0], rtol=1e-11, atol=1e-13, err_msg=observable)


@pytest.mark.first(6)
@pytest.mark.parametrize("name", NAMES)
def test_jax(name):
    """jit and grad of a plain function, under JAX where it is installed (the extra bench)."""
    jax = pytest.importorskip("jax")
    _, y, want = point(name)
    made = module(odesim.to_code(name, "jax"))
    check(jax.jit(made.right_hand_side)(0.3, y), want)


def test_jax_gradients():
    """The gradient of a sum of rates is that of differences. 1e-6: central differences of step 1e-5 of functions of order 10."""
    jax = pytest.importorskip("jax")
    made = module(odesim.to_code("joma.nonlinear", "jax"))
    state = {"v": np.linspace(0.1, 0.9, 10)}

    def total(y: Any) -> Any:
        return made.right_hand_side(0.0, y)["v"].sum()

    slope = jax.grad(total)(state)["v"]
    for n in range(10):
        step = 1e-5 * np.eye(10)[n]
        difference = (total({"v": state["v"] + step}) - total({"v": state["v"] - step})) / 2e-5
        assert slope[n] == pytest.approx(float(difference), rel=1e-6, abs=1e-6)


def test_diffrax():
    """A run by diffrax of the exported function ends where ours does. 1e-6: 100 times the tolerance."""
    diffrax = pytest.importorskip("diffrax")
    made = module(odesim.to_code("joma.nonlinear", "jax"))
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(made.right_hand_side), diffrax.Tsit5(), *made.SPAN, None, made.INITIAL, made.PARAMETERS,
        stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10),
    )  # fmt: skip
    run = odesim.integrate("joma.nonlinear", rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(solution.ys["v"][0], run.y["v"][-1], rtol=1e-6)


@pytest.mark.skipif(GCC is None, reason="there is no C compiler")
@pytest.mark.first(6)
@pytest.mark.parametrize("name", NAMES)
def test_c(name, tmp_path):
    """gcc takes it with all warnings but those on what a right-hand side does not use; other parameters go in by the struct."""
    numbers, y, want = point(name)
    source, library = tmp_path / "model.c", tmp_path / "model.so"
    source.write_text(odesim.to_code(name, "c"))
    unused = ("-Wno-unused-const-variable", "-Wno-unused-variable", "-Wno-unused-parameter", "-Wno-missing-field-initializers")
    command = [str(GCC), "-std=c11", "-Wall", "-Wextra", "-Werror", *unused, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""
    system = load_model(name)
    indices = index_arrays(lower(system, numbers.sizes))
    values = [np.asarray(numbers.params[p.name], np.int64 if p.name in indices else float).tobytes() for p in system.params]
    state = np.concatenate([np.ravel(v) for v in y.values()])
    rates = np.full_like(state, np.nan)
    right = ctypes.CDLL(str(library)).right_hand_side
    right.restype = None
    right(ctypes.c_double(0.3), ctypes.c_void_p(state.ctypes.data), ctypes.c_void_p(rates.ctypes.data), b"".join(values) or b"\0")
    np.testing.assert_allclose(rates, np.concatenate([np.ravel(r) for r in want.values()]), rtol=1e-11, atol=1e-13)


@pytest.mark.skipif(GCC is None, reason="there is no C compiler")
@pytest.mark.parametrize("word", ["restrict", "register", "typeof", "linux", "unix", "asm", "y1", "double"])
def test_a_word_of_c_is_a_name_like_others(word, tmp_path):
    """A state and a parameter may be called as C's keywords, macros and functions are."""
    q = Symbol(word, real=True)
    for system in (
        System("toy", Source("k", "1"), {}, {q: -q}, (), {q: 1.0}),
        System("toy", Source("k", "1"), {}, {z: -q * z}, (Param(q, 1.0),), {z: 1.0}),
    ):
        source = tmp_path / "model.c"
        source.write_text(odesim.to_code(system, "c"))
        command = [str(GCC), "-Wall", "-Werror", "-Wno-unused-const-variable", "-fsyntax-only", str(source)]
        assert subprocess.run(command, capture_output=True, text=True).stderr == ""


def test_numbers_that_are_given():
    made = module(odesim.to_code("joma.nonlinear", "numpy", params={"mu": [1.0, 2.0]}, initial={"v": 0.3}, span=(0, 2)))
    assert made.SIZES == {"M": 2} and made.SPAN == (0.0, 2.0)
    assert made.PARAMETERS["mu"].tolist() == [1.0, 2.0] and made.INITIAL["v"].tolist() == [0.3, 0.3]


def test_a_module_needs_no_odesim(tmp_path):
    """It runs in an isolated interpreter, which has numpy alone of what it imports."""
    (tmp_path / "model.py").write_text(odesim.to_code("joma.nonlinear", "numpy"))
    code = "import sys; sys.path.insert(0, '.'); import model as m; print(m.right_hand_side(0, m.INITIAL), 'odesim' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "array([" in done.stdout and done.stdout.endswith(" False\n"), done.stderr


z, b = Symbol("z", real=True), Symbol("b", positive=True)
whole, part = (Symbol(name, integer=True) for name in ("whole", "part"))


@pytest.mark.parametrize(
    ("e", "at", "want"),
    [
        *((sp.LambertW(z), x, w) for x, w in ((-0.4, np.nan), (-1.0, np.nan), (-0.2, -0.2591711018190738), (1.0, 0.5671432904097838))),
        *((sp.LambertW(z, -1), x, w) for x, w in ((-0.4, np.nan), (0.5, np.nan), (-0.2, -2.5426413577735265))),
        *((sp.binomial(whole, part), nk, n) for nk, n in (((-2, 1), 0), ((-3, -1), 0), ((3, -1), 0), ((3, 4), 0), ((5, 2), 10))),
    ],
)
def test_numpy_where_a_function_has_no_real_value(e, at, want):
    """Outside its domain a function is what its page says, NaN or 0, as in a run; W inside by mpmath: rounding."""
    integers = (Param(whole, 0, sp.S.Integers), Param(part, 0, sp.S.Integers))
    params = tuple(p for p in integers if e.has(p.symbol))
    made = module(odesim.to_code(System("toy", Source("k", "w"), {}, {z: e}, params, {z: 0.0}), "numpy"))
    state, numbers = (0.0, dict(zip(("whole", "part"), at, strict=True))) if params else (at, {})
    np.testing.assert_allclose(made.right_hand_side(0.0, {"z": state}, numbers)["z"], want, rtol=1e-14)


@pytest.mark.parametrize(("language", "e"), [("jax", sp.LambertW(b)), ("c", sp.LambertW(b)), ("c", sp.LambertW(b, -1))])
def test_what_a_language_lacks_is_said(language, e):
    toy = System("toy", Source("k", "w"), {}, {z: e - z}, (Param(b, 1.0, Interval.open(0, sp.oo), "rate"),), {z: 1.0})
    with pytest.raises(CodegenError, match=r"(JAX|C) has no \w+\(\)"):
        odesim.to_code(toy, language)


def test_a_language_that_is_none():
    with pytest.raises(ParamError, match="no language 'julia'; choose from c, jax, numpy"):
        odesim.to_code("joma.nonlinear", "julia")


def test_the_command(tmp_path, monkeypatch):
    """It prints, writes, refuses to overwrite, and a document is a model of every command."""
    from click.testing import CliRunner

    from odesim.cli import cli

    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli, ["export", *words])
        return done.exit_code, done.stdout + done.stderr

    assert command("joma.nonlinear", "--to", "c", "--size", "M=3")[1].startswith("/*\n   joma.nonlinear: tian2023joma")
    assert command("joma.nonlinear", "--out", "system.json") == (0, "written to system.json\n")
    assert command("joma.nonlinear", "--out", "system.json")[0] == 2
    assert command("joma.nonlinear", "--to", "json", "--set", "mu=1") == (2, "odesim: --set is for the formats numpy, jax, c, not json\n")
    assert "M = 10" in CliRunner().invoke(cli, ["show", "system.json"]).stdout
    Path("system.json").write_text('{"format": 1}')
    done = CliRunner().invoke(cli, ["show", "system.json"])
    assert done.exit_code == 2 and "system.json: the document is no System" in done.stderr


@pytest.mark.parametrize("language", ["numpy", "c"])
def test_a_name_is_no_code(language):
    """What a document calls itself, or its source, stays in the comment of the file."""
    evil = '*/ int main; """ \\'
    toy = System("toy", Source("k", evil), {}, {z: -z}, (), {z: 1.0})
    text = odesim.to_code(toy, language)
    if language == "c":
        assert text.count("*/") == text.count("/*")
    else:
        assert module(text).right_hand_side(0.0, {"z": 2.0})["z"] == -2.0
