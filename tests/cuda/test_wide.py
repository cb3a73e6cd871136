"""One large system by the CUDA text: the bits, steps and events of numba, by the shim and on a device."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sympy import Piecewise, Range, S, Sum, symbols, tanh

import odesim
from odesim.base.device import architecture
from odesim.base.errors import OdesimError, SolveError
from odesim.symbolic import IndexedBase, Param, System, index, over, sizes
from tests.support.balls import BALLS
from tests.support.matrix import slow_but
from tests.support.models import FLOWS
from tests.support.pulses import PULSES
from tests.support.systems import SOURCE, SYSTEMS, numbers, param

Shim = Callable[..., ModuleType]
# a kernel each in strict mode, besides those that other tests compile
MODELS = slow_but(FLOWS, ["hierarchy.grouped", "joma.nonlinear", "scan_snap.reduced_symmetric", "scan_snap.theorem4"])
LOOPS = slow_but(SYSTEMS, ["elementwise", "mean_field", "softmax", "gathered", "shuffled", "masked"])
METHODS = ("euler", "rk4", "tsit5", "vern7", "dop853")
SPANS = {"topics.full": {"span": (0.0, 100.0)}}
"""Where the run by default takes a processor in place of a GPU a minute."""
TWO = ("joma.nonlinear", pytest.param("joma.nonlinear_softmax", marks=pytest.mark.slow))


def same(a: Any, b: Any) -> None:
    """Two Solutions with the same bits, steps and events."""
    assert (a.status, a.t_end) == (b.status, b.t_end)
    assert [a.stats[k] for k in ("steps", "rejected", "rhs_calls")] == [b.stats[k] for k in ("steps", "rejected", "rhs_calls")]
    np.testing.assert_array_equal(a.t, b.t)
    for name in a.y:
        np.testing.assert_array_equal(a.y[name], b.y[name])
        np.testing.assert_array_equal(a.y_end[name], b.y_end[name])
    np.testing.assert_array_equal(list(a.invariants.values()), list(b.invariants.values()))
    for name in a.events:
        assert list(a.events[name]) == list(b.events[name])


@pytest.mark.parametrize("model", MODELS)
def test_wide_has_numba_s_bits(model: str, cuda: Shim) -> None:
    """Strict, tsit5, float64: one arithmetic."""
    cuda()
    options: dict[str, Any] = {"method": "tsit5", "strict": True, "save": 5, **SPANS.get(model, {})}
    same(odesim.integrate(model, **options), odesim.integrate(model, backend="cuda", **options))


def test_wide_stops_where_conditions_change(cuda: Shim) -> None:
    """The conditions are held there too: part by part, with numba's bits."""
    cuda()
    options: dict[str, Any] = {"method": "tsit5", "strict": True, "save": 5, "sizes": {"M": 3}, "params": {"late": [0.7, 3.1, 2.2]}}
    same(odesim.integrate(PULSES, **options), odesim.integrate(PULSES, backend="cuda", **options))


def test_wide_sets_states_at_events(cuda: Shim) -> None:
    """A run on the device is stopped by its events, which set states, with numba's bits; an ensemble there is refused in a sentence."""
    cuda()
    options: dict[str, Any] = {"method": "tsit5", "strict": True, "save": 5, "params": {"h": [1.0, 0.5]}}
    same(odesim.integrate(BALLS, **options), odesim.integrate(BALLS, backend="cuda", **options))
    with pytest.raises(SolveError, match="an ensemble of balls has no backend cuda for events that set states; the backend numba can"):
        odesim.ensemble(BALLS, params={"c": [0.7, 0.8]}, backend="cuda")


@pytest.mark.parametrize("dtype", slow_but(["float64", "float32"], ["float64"]))
def test_wide_has_tolerances_by_state(dtype: str, cuda: Shim) -> None:
    """A tolerance that is an array has numba's bits, and another number of steps than one number."""
    cuda()
    options: dict[str, Any] = {"method": "tsit5", "strict": True, "save": 5, "dtype": dtype, "atol": {"v": [1e-3, 1e-5, 1e-7]}}
    a, b = (odesim.integrate("joma.nonlinear", sizes={"M": 3}, backend=backend, **options) for backend in ("numba", "cuda"))
    same(a, b)
    assert a.stats["steps"] != odesim.integrate("joma.nonlinear", sizes={"M": 3}, **{**options, "atol": 1e-3}).stats["steps"]


@pytest.mark.slow
@pytest.mark.parametrize("model", [name for name in FLOWS if name != "induction.full"][::3])  # that one takes g++ a minute
def test_wide_rounds_as_numba(model: str, cuda: Shim) -> None:
    """float32: where a state is rounded while it is summed is part of the arithmetic."""
    cuda()
    options: dict[str, Any] = {"method": "dop853", "strict": True, "dtype": "float32", "rtol": 1e-5, **SPANS.get(model, {})}
    same(odesim.integrate(model, **options), odesim.integrate(model, backend="cuda", **options))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", TWO)
def test_wide_methods_and_dtypes(model: str, method: str, dtype: str, cuda: Shim) -> None:
    """All methods, with a step of their own or a fixed one, in both widths."""
    cuda()
    span = (0.0, 1.0)
    for step in (0.05, None) if method not in ("euler", "rk4") else (0.05,):
        options: dict[str, Any] = {"method": method, "strict": True, "save": 4, "dtype": dtype, "step": step, "span": span, "rtol": 1e-5}
        same(odesim.integrate(model, **options), odesim.integrate(model, backend="cuda", **options))


def run(system: str, big: int, **options: Any) -> Any:
    """A short strict run of one of the systems of tests/systems.py with numbers drawn for it."""
    x = numbers(SYSTEMS[system], big=big)
    params = {**x.params, **({"phi": np.arange(big)[::-1].copy()} if system == "shuffled" else {})}  # a permutation
    states: dict[str, Any] = {name: value if np.ndim(value) else float(value) for name, value in x.states.items()}
    asked: dict[str, Any] = {"params": params, "initial": states, "sizes": x.sizes, "span": (0.0, 0.2), "save": 3, "strict": True}
    return odesim.integrate(SYSTEMS[system], **asked, **options)


@pytest.mark.parametrize("system", LOOPS)
def test_wide_has_every_loop(system: str, cuda: Shim) -> None:
    """Each difficulty of lowering: gathers, scatters, rows, products, several states."""
    cuda()
    same(run(system, 13), run(system, 13, backend="cuda"))


def test_wide_has_rows_of_more_axes(cuda: Shim) -> None:
    """Sums along the last axis of an array of three axes, and along a row that a matrix names; conditions by not."""
    cuda()
    (m, k, l), (M, K) = index("m k l"), sizes("M K")
    x, X, W, psi = (IndexedBase(n, shape=s) for n, s in (("x", (M,)), ("X", (K, M, M)), ("W", (M, M)), ("psi", (M, K))))
    rows = over(Sum, X[k, m, l] * tanh(x[l]) + W[psi[m, k], l] * x[l], (l, M), (k, K))
    system = System(
        name="deep", source=SOURCE, axes={m: M},
        equations={x[m]: rows / (1 + M) - Piecewise((x[m], ~((x[m] > 0) & (x[0] > 0))), (1, True))},
        params=(param(X), param(W), Param(psi, lambda n: np.arange(n["M"] * n["K"]).reshape(n["M"], n["K"]) % n["M"], S.Naturals0, "", M)),
        initial={x[m]: 1 / (1 + m)}, sizes={M: 33, K: 2},
    )  # fmt: skip
    asked: dict[str, Any] = {"method": "rk4", "step": 0.1, "span": (0.0, 0.3), "strict": True}
    same(odesim.integrate(system, **asked), odesim.integrate(system, backend="cuda", **asked))


@pytest.mark.parametrize("names", ["int int_ typedef fma NULL", "team fabs nullptr odesim_keep M_PI"])
def test_wide_has_names_of_the_language(names: str, cuda: Shim) -> None:
    """A state, a size, an index and numbers that are words of C++ or of ours; a whole number, which is the only number."""
    cuda()
    state, size, at, number, array = names.split()
    (i, j), (M,) = index(f"{at} j"), sizes(size)
    x, a, b = IndexedBase(state, shape=(M,)), IndexedBase(array, shape=(M,)), symbols(number)
    system = System(
        name="named", source=SOURCE, axes={i: M}, equations={x[i]: b * a[i] * over(Sum, tanh(x[j]), (j, M)) - abs(x[i])},
        params=(param(a), Param(b, 2, Range(1, 4), "a whole number")), initial={x[i]: i / (1 + M)}, sizes={M: 40},
    )  # fmt: skip
    same(odesim.integrate(system, strict=True), odesim.integrate(system, strict=True, backend="cuda"))


@pytest.mark.first(1)
@pytest.mark.parametrize("multiprocessors", [1, 2, 3])
@pytest.mark.parametrize("system", ["mean_field", "softmax"])
def test_shim_bits_do_not_depend_on_the_launch(system: str, multiprocessors: int, shim: Shim) -> None:
    """Three blocks of 1024, for one, three and five workers."""
    shim(multiprocessors=multiprocessors)
    same(run(system, 2500), run(system, 2500, backend="cuda"))


@pytest.mark.first(1)
@pytest.mark.parametrize("system", ["mean_field", "softmax"])
def test_shim_tree_of_many_blocks(system: str, shim: Shim) -> None:
    """Forty blocks of 1024: halves are added by several threads, which wait for each other."""
    shim(multiprocessors=2)
    same(run(system, 40000), run(system, 40000, backend="cuda"))


@pytest.mark.gpu
@pytest.mark.parametrize("big", [1000, 2500, 10**5, 10**6, 3 * 10**6 + 7])
@pytest.mark.parametrize("system", ["mean_field", "softmax"])
def test_device_sums_by_one_tree(system: str, big: int, on_device: Shim) -> None:
    """From one block of 1024 to thousands, each added by whichever warp is free."""
    on_device()
    same(run(system, big), run(system, big, backend="cuda"))


@pytest.mark.gpu
def test_device_runs_what_is_compiled_for_it(on_device: Shim) -> None:
    """Its own architecture, not one whose text the driver would translate."""
    about = on_device().cuda.runtime.getDeviceProperties(0)
    assert architecture() == f"sm_{about['major']}{about['minor']}"
    assert odesim.integrate("joma.nonlinear", backend="cuda").status == "ok"


def test_wide_contracts_outside_strict_mode(cuda: Shim) -> None:
    """The text is the same, the compiler may fuse: equal to a few roundings."""
    cuda(strict=False)
    x = odesim.integrate("joma.nonlinear", backend="cuda", rtol=1e-8)
    np.testing.assert_allclose(x.y_end["v"], odesim.integrate("joma.nonlinear", rtol=1e-8).y_end["v"], rtol=1e-6)


def test_cuda_without_cupy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence; nothing falls back to another backend."""
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(OdesimError, match=r"needs cupy, which is not installed: pip install 'odesim\[cuda"):
        odesim.integrate("joma.nonlinear", backend="cuda")


def test_cuda_without_a_gpu_says_so(shim: Shim) -> None:
    """cupy is there, the driver is not."""
    cupy = shim()

    def absent() -> int:
        raise cupy.cuda.runtime.CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")

    cupy.cuda.runtime.getDeviceCount = absent
    with pytest.raises(OdesimError, match="needs an NVIDIA GPU and its driver: cudaErrorNoDevice"):
        odesim.integrate("joma.nonlinear", backend="cuda")


@pytest.mark.slow
def test_wide_ends_where_a_state_leaves_its_set(cuda: Shim) -> None:
    """The bits, the time and the sentence of numba."""
    from tests.api.test_guards import LEAVES

    cuda()
    a, b = (odesim.integrate(LEAVES, strict=True, backend=name) for name in ("numba", "cuda"))
    same(a, b)
    assert b.status == "left_domain" and a.message == b.message
