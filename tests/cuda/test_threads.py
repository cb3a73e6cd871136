"""An ensemble by the CUDA text, one member a thread: the bits, steps and events of numba's lanes, by the shim and on a device."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import xarray as xr

import odesim
from odesim.base.errors import OdesimError, SolveError
from odesim.run import threads as device_engine
from odesim.stepper.codes import UNDONE
from tests.run.test_events import W, turning
from tests.support.dips import DIPS
from tests.support.dips import own as own_dips
from tests.support.matrix import slow_but
from tests.support.models import FLOWS
from tests.support.pulses import PULSES, own
from tests.support.stiff_set import SET, Known, drag
from tests.support.systems import SYSTEMS, numbers
from tests.support.threads import IN_THREADS, METHODS, MODELS, asked, same_as_runs
from tests.symbolic.test_tables import KINDS, POINTS, driven

Shim = Callable[..., ModuleType]
RNG = np.random.default_rng(5)
N = 150  # more than two blocks
MU, V0 = RNG.uniform(0.5, 2.5, (N, 2)), 0.01 * np.abs(RNG.normal(size=(N, 2)))
JOMA: dict[str, Any] = {"params": {"mu": MU}, "initial": {"v": V0}, "span": (0.0, 4.0), "strict": True}
QUICK = {("euler", 0.05, "float64"), ("rk4", 0.05, "float32"), ("tsit5", None, "float32")}
QUICK |= {("vern7", None, "float64"), ("dop853", None, "float64"), ("tsit5", 0.05, "float64")}
TABLE = [
    # a text each: by default each method on one model, and each width
    pytest.param(model, method, step, dtype, marks=() if model == "joma.nonlinear" and (method, step, dtype) in QUICK else pytest.mark.slow)
    for model in ("joma.nonlinear", "joma.nonlinear_softmax")
    for method, steps in METHODS.items()
    for step in steps
    for dtype in ("float64", "float32")
    if not (method.startswith("rodas") and dtype == "float32")
]


def same(a: xr.Dataset, b: xr.Dataset) -> None:
    """Two ensembles with the same bits in everything that is known of a member."""
    assert set(a.variables) == set(b.variables)
    for name in a.variables:
        np.testing.assert_array_equal(a[name].values, b[name].values, err_msg=str(name))


def both(model: Any, **options: Any) -> tuple[xr.Dataset, xr.Dataset]:
    """The ensemble by numba and by the CUDA text."""
    return odesim.ensemble(model, **options), odesim.ensemble(model, backend="cuda", **options)


def test_every_model_has_threads() -> None:
    """The table of models is whole."""
    assert set(MODELS) == set(FLOWS)


@pytest.mark.parametrize("model", sorted(MODELS.keys() - set(IN_THREADS)))
def test_a_model_that_sets_states_is_refused(model: str, cuda: Shim) -> None:
    """One sentence says what a thread cannot do, and which backend can."""
    cuda()
    with pytest.raises(SolveError, match=f"an ensemble of {model} has no backend cuda for events that set states; the backend numba can"):
        odesim.ensemble(model, backend="cuda", **MODELS[model])


@pytest.mark.parametrize("model", slow_but(IN_THREADS, ["joma.nonlinear", "scan_snap.theorem4"]))
def test_threads_have_numba_s_bits(model: str, cuda: Shim) -> None:
    """Strict, tsit5, float64, saved on the way: one arithmetic."""
    cuda()
    (name,) = MODELS[model]["grid"]
    run: dict[str, Any] = {"method": "tsit5", "save": 4, "sizes": MODELS[model].get("sizes")}
    found = odesim.ensemble(model, backend="cuda", grid=MODELS[model]["grid"], strict=True, **run)
    same_as_runs(found, model, 3, {name: found[name].values}, **run)


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_from_data(kind: str, cuda: Shim) -> None:
    """Each thread stops at the points of its own table."""
    cuda()
    many = {"T": np.multiply.outer(1 + np.arange(9) / 50, POINTS["T"]), "u": np.multiply.outer(1 + np.arange(9) / 10, POINTS["u"])}
    same(*both(driven(kind), zipped=many, strict=True, method="tsit5", save=5))


@pytest.mark.parametrize(("model", "method", "step", "dtype"), TABLE)
def test_threads_methods_and_dtypes(model: str, method: str, step: float | None, dtype: str, cuda: Shim) -> None:
    """Every method in both widths: the end alone, and a grid."""
    cuda()
    run: dict[str, Any] = {"span": (0.0, 4.0), "method": method, "step": step, "dtype": dtype, "rtol": 1e-5}
    for save in (None, 5):
        found = odesim.ensemble(model, backend="cuda", save=save, **{**JOMA, **run})
        same_as_runs(found, model, 4, JOMA["params"], JOMA["initial"], save=save, **run)


@pytest.mark.parametrize(
    ("method", "step"), [("tsit5", None), *(pytest.param(*row, marks=pytest.mark.slow) for row in (("rodas5p", None), ("rk4", 0.05)))]
)
def test_threads_end_at_events(method: str, step: float | None, cuda: Shim) -> None:
    """Terminal events and many of them: times, components, counts and the states where members ended."""
    cuda()
    a, b = both(turning(), method=method, step=step, params={"w": W[:9]}, strict=True, save=5, max_events=2)
    assert set(a.status.values) == {0, 1}
    same(a, b)


@pytest.mark.parametrize("method", ["tsit5", pytest.param("rodas5p", marks=pytest.mark.slow)])
def test_threads_have_tolerances_by_state(method: str, cuda: Shim) -> None:
    """Numba's bits, with an array of tolerances."""
    cuda()
    same(*both("joma.nonlinear", **JOMA, method=method, save=5, atol={"v": [1e-4, 1e-12]}))


@pytest.mark.slow  # the text that searches is that of test_threads_end_at_events, and takes as long to compile
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_threads_find_dips(method: str, cuda: Shim) -> None:
    """Zeros that come and go between two samples of a step."""
    cuda()
    a, b = both(DIPS, method=method, params=own_dips(), strict=True, save=3)
    assert set(a.status.values) == {0, 1} and (a.square_count == 2).all()
    same(a, b)


@pytest.mark.slow  # each compiles a large stiff step twice; test_threads_contracts_outside_strict_mode has one in threads
@pytest.mark.parametrize("name", ["e5", "pollution", "drag"])
def test_threads_keep_linear_invariants(name: str, cuda: Shim) -> None:
    """A stiff step of a thread moves states to where their sums are those of its own start; of few states and of many."""
    cuda()
    known = SET.get(name, Known(drag(), {2.0: (), 4.0: ()}, ((1e-6, 1e-20),)))
    start = {x: float(value) * np.array([1.0, 1.5]) for x, value in zip(known.system.states, known.system.initial.values(), strict=True)}
    params = {"m1": np.array([0.5, 2.0])} if name == "drag" else {}
    rtol, atol = known.tolerances[0]
    run: dict[str, Any] = {"method": "rodas5p", "rtol": rtol, "atol": atol, "strict": True, "save": list(known.states)}
    same(*both(known.system, initial=start, params=params, **run))


@pytest.mark.parametrize(("method", "save"), slow_but([("tsit5", 5), ("rodas5p", None)], [("tsit5", 5)], several=True))
def test_threads_in_parts(method: str, save: int | None, cuda: Shim) -> None:
    """Members whose conditions change at times of their own: a launch for each part, with numba's bits."""
    cuda()
    run: dict[str, Any] = {"params": own(N), "method": method, "save": save, "strict": True, "stop_at": 1.5, "max_step": 0.7}
    run |= {"first_step": 0.05}
    same(*both(PULSES, **run))


def test_threads_fail_one_by_one(cuda: Shim) -> None:
    """A member with NaN, infinity, overflow or a blow-up has its own status, as in lanes, and max_steps is a member's own."""
    cuda()
    mu, v = MU.copy(), V0.copy()
    mu[3, 1], mu[5, 0], mu[64, 1], v[0, 0], v[66, 1] = np.nan, 37.0, 1e308, np.inf, 60.0
    run = {**JOMA, "params": {"mu": mu}, "initial": {"v": v}, "method": "tsit5", "save": 3}
    a, b = both("joma.nonlinear", **run)
    assert len(set(a.status.values)) >= 4
    same(a, b)
    same(*both("joma.nonlinear", **{**run, "max_steps": 20}))
    same(*both("joma.nonlinear", **{**run, "step": 0.1, "max_events": 0}))


@pytest.mark.parametrize("method", ["tsit5", pytest.param("rodas5p", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["masked", "largest"])
def test_threads_leave_out_and_choose(name: str, method: str, cuda: Shim) -> None:
    """Weights that are 0, and maxima that count: one arithmetic."""
    cuda()
    x, a = numbers(SYSTEMS[name], big=3), np.linspace(0.5, 1.5, 9).reshape(3, 3)
    run: dict[str, Any] = {"span": (0.0, 0.3), "method": method, "save": 3, "sizes": x.sizes}
    given: dict[str, Any] = {"params": {**x.params, "a": a}, "initial": x.states}
    found = odesim.ensemble(SYSTEMS[name], backend="cuda", strict=True, **given, **run)
    shared = {n: value for n, value in x.params.items() if n != "a"}
    for i in range(3):
        one = odesim.integrate(SYSTEMS[name], params={**shared, "a": a[i]}, initial=x.states, strict=True, **run)
        for state, values in one.y.items():
            np.testing.assert_array_equal(found[state].values[i], values)


@pytest.mark.first(1)
@pytest.mark.parametrize(("devices", "room"), [(1, np.inf), (3, np.inf), (1, 40 * 2 * 8), (2, 20 * 2 * 8)])
def test_shim_bits_do_not_depend_on_devices_or_memory(devices: int, room: float, shim: Shim) -> None:
    """Several GPUs share the members; what one has no memory for is done in halves, and halves of these."""
    cupy = shim(room=room, devices=devices)
    a, b = both("joma.nonlinear", method="tsit5", max_events=0, **JOMA)
    same(a, b)
    assert sum(blocks for _, blocks, _ in cupy.launches) >= 2
    assert cupy.used == set(range(devices))
    assert len(cupy.launches) == devices if room == np.inf else len(cupy.launches) > devices


def test_shim_without_memory_for_one_member(shim: Shim) -> None:
    """One sentence."""
    shim(room=16)
    with pytest.raises(OdesimError, match="the GPU has no memory for one member of"):
        odesim.ensemble("joma.nonlinear", backend="cuda", method="tsit5", max_events=0, **JOMA)


def test_threads_contracts_outside_strict_mode(cuda: Shim) -> None:
    """The compiler may fuse: the flow is the same one within some tens of the tolerance."""
    cuda(strict=False)
    exact = [
        odesim.integrate("joma.nonlinear", params={"mu": MU[i]}, initial={"v": V0[i]}, span=(0.0, 4.0), save=6, method="dop853", rtol=1e-11)
        for i in range(8)
    ]
    for method, save in (("tsit5", None), ("tsit5", 6), ("rodas5p", 6)):
        run: dict[str, Any] = {**JOMA, "strict": False, "method": method, "save": save, "rtol": 1e-8, "atol": 1e-8, "max_events": 0}
        found = odesim.ensemble("joma.nonlinear", backend="cuda", **run).v.values
        for i, one in enumerate(exact):
            np.testing.assert_allclose(found[i], one.y["v"] if save else one.y["v"][-1:], rtol=5e-7, atol=5e-7)


def test_shim_runs_on_disk_and_rerun(shim: Shim, tmp_path: Path) -> None:
    """Chunks of a run are integrated together, a resumed run ends with the same bits, and rerun reproduces it."""
    cupy = shim()
    run: dict[str, Any] = {"vary": {"mu": "uniform(0.5,2.5)"}, "members": 9000, "strict": True, "method": "tsit5"}
    run |= {"span": (0.0, 0.5), "sizes": {"M": 2}, "save": 3}
    a = odesim.ensemble("joma.nonlinear", backend="cuda", out=tmp_path / "run.zarr", **run)
    assert [blocks for _, blocks, _ in cupy.launches] == [-(-9000 // 64)]
    b = odesim.ensemble("joma.nonlinear", **run)
    for name in ("v", "status", "steps", "t_end"):
        np.testing.assert_array_equal(a[name].values, b[name].values)
    assert a.attrs["backend"] == "cuda"
    from odesim.api.rerun import rerun_ensemble

    assert rerun_ensemble(tmp_path / "run.zarr").same


def test_threads_stop_leaves_members_undone(cuda: Shim) -> None:
    """A launch that is asked to stop ends: what it was doing is not done."""
    cuda()
    options: dict[str, Any] = {"params": {"mu": MU}, "initial": {"v": V0}, "span": (0.0, 1.0), "max_events": 0}
    _, engine = asked("joma.nonlinear", method="rk4", step=1e-5, strict=True, **options)
    chunk = engine.integrate({"mu": MU}, {"v": V0}, N, np.ones(1, np.int64), None)
    assert (chunk.status == UNDONE).all()


def test_shim_launch_that_faults_ends(shim: Shim) -> None:
    """What cupy raises is raised: nobody waits for an event that never comes."""
    cupy, fault = shim(), RuntimeError("cudaErrorIllegalAddress")

    def raise_it(event: Any) -> None:
        raise fault

    answers = iter([600, 600, 700])  # not ready, and then an error for ever, which nobody asks for again
    cupy.cuda.runtime.eventQuery = lambda event: next(answers)
    cupy.cuda.Event.synchronize = raise_it
    with pytest.raises(RuntimeError, match="cudaErrorIllegalAddress"):
        odesim.ensemble("joma.nonlinear", backend="cuda", method="tsit5", max_events=0, **JOMA)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sizes": {"M": 65}}, "no backend cuda for 65 states: at most 64; the backend numba can do it"),
        ({"clock": "rescaled"}, "no backend cuda for the rescaled clock"),
        ({"method": "rodas4", "dtype": "float32"}, "no backend cuda for rodas4 with float32; the backend numba can do it"),
        ({"method": "rodas5p", "step": 0.1}, "no backend cuda for rodas5p with a fixed step; the backend numba can do it"),
        ({"sizes": {"M": 65}, "method": "rodas4"}, "no backend cuda for 65 states: at most 64"),
    ],
)
def test_what_threads_of_cuda_cannot_do(options: dict[str, Any], sentence: str, shim: Shim) -> None:
    """One sentence that says why; no other backend is taken."""
    shim()
    run: dict[str, Any] = {"vary": {"mu": "uniform(0.5,1)"}, "members": 3, "method": "tsit5", **options}
    with pytest.raises(OdesimError, match=sentence):
        odesim.ensemble("joma.nonlinear", backend="cuda", **run)


@pytest.mark.parametrize("arrays", ["numpy", "cupy"])
@pytest.mark.parametrize("threads", [1, 64])
def test_shim_launches_do_not_depend_on_threads(threads: int, arrays: str, shim: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the processor: a launch has whole chunks of 4096 members, as many as its memory may hold."""
    cupy = shim()
    monkeypatch.setattr(device_engine, "MOST_BYTES", 5000 * 8)
    run: dict[str, Any] = {"vary": {"mu": "uniform(0.5,1)"}, "members": 10_000, "sizes": {"M": 1}, "method": "rk4", "step": 0.1}
    odesim.ensemble("joma.nonlinear", backend="cuda", threads=threads, arrays=arrays, span=(0.0, 0.2), max_events=0, strict=True, **run)
    assert [blocks for _, blocks, _ in cupy.launches] == [-(-n // 64) for n in (4096, 4096, 10_000 - 8192)]


def test_threads_by_auto(cuda: Shim) -> None:
    """Members have the methods there that they have on a processor."""
    cuda()
    a, b = both("joma.nonlinear", vary={"mu": "uniform(0.5,5)"}, members=40, sizes={"M": 2}, strict=True)
    assert a.attrs["method"] == b.attrs["method"]
    same(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["tsit5", "rodas5p"])
def test_threads_end_where_a_state_leaves_its_set(method: str, cuda: Shim) -> None:
    """The status of a guard, and every bit of numba's lanes."""
    from tests.api.test_guards import LEAVES

    cuda()
    rates = np.array([[0.1, 0.2, 3.0], [0.1, 0.2, 0.3], [-0.1, 0.2, 0.3]])
    a, b = both(LEAVES, params={"a": rates}, method=method, strict=True, span=(0.0, 1.0))
    same(a, b)
    assert [a.attrs["status_names"][int(s)] for s in b.status] == ["left_domain", "ok", "ok"]
