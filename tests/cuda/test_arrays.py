"""Arrays of cupy: given to every backend, and results that stay on the device."""

import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import xarray as xr

import odesim
from odesim.base.arrays import on_host
from odesim.base.errors import DeviceError, OdesimError
from odesim.ensembles.ledger import Tally
from odesim.lab.compare.sides import side_of_solution
from odesim.plot.solution import figure_of_solution
from odesim.store.read import read_solution
from odesim.store.write import write_solution
from odesim.symbolic.system import System
from tests.cuda.test_threads import same as same_members
from tests.cuda.test_wide import same
from tests.run.test_events import W, turning
from tests.support.cupy_arrays import OnDevice, failure
from tests.support.matrix import slow_but

Shim = Callable[..., ModuleType]
RNG = np.random.default_rng(7)
MU, V0 = RNG.uniform(0.5, 2.5, 2), 0.01 * np.abs(RNG.normal(size=2))
ROWS, STARTS = RNG.uniform(0.5, 2.5, (70, 2)), 0.01 * np.abs(RNG.normal(size=(70, 2)))
ENSEMBLES: dict[str, dict[str, Any]] = {
    "rows": {"params": {"mu": ROWS}, "initial": {"v": STARTS}},
    "shared": {"params": {"mu": MU}, "initial": {"v": STARTS}},
    "vary": {"vary": {"mu": ROWS}},
    "grid": {"grid": {"mu": ROWS[:2], "v": np.array([0.01, 0.02])}, "sizes": {"M": 2}},
    "zip": {"zipped": {"mu": [1.0, np.array(2.0)], "v": np.array([0.01, 0.02])}, "sizes": {"M": 2}},
    "save": {"params": {"mu": ROWS}, "save": np.array([0.0, 0.5, 1.0])},
}


def there(value: Any, cupy: ModuleType) -> Any:
    """Every array of numpy's in value on the device."""
    if isinstance(value, dict):
        return {name: there(inner, cupy) if name != "sizes" else inner for name, inner in value.items()}
    if isinstance(value, list):
        return [there(inner, cupy) for inner in value]
    return cupy.asarray(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("backend", ["numba", "numpy", "cuda"])
def test_shim_arrays_in(backend: str, shim: Shim) -> None:
    """A run whose parameters, start and saved times lie on the device is that of numpy's arrays; sizes follow from them."""
    cupy = shim()
    given: dict[str, Any] = {"params": {"mu": MU}, "initial": {"v": V0}, "save": np.array([0.0, 0.3, 1.0])}
    options: dict[str, Any] = {"method": "tsit5", "span": (0.0, 1.0), "strict": True, "backend": backend}
    found = odesim.integrate("joma.nonlinear", **there(given, cupy), **options)
    same(odesim.integrate("joma.nonlinear", **given, **options), found)
    assert type(found.attrs["params"]["mu"]) is np.ndarray
    np.testing.assert_array_equal(found.dense(cupy.asarray(np.array([0.2])))["v"], found.dense(np.array([0.2]))["v"])


@pytest.mark.first(2)
@pytest.mark.parametrize("backend", ["numba", "cuda"])
@pytest.mark.parametrize("kind", ENSEMBLES)
def test_shim_arrays_into_ensembles(kind: str, backend: str, shim: Shim) -> None:
    """Rows, tables, grids and saved times on the device give the members of numpy's."""
    cupy = shim()
    options: dict[str, Any] = {"method": "tsit5", "span": (0.0, 1.0), "strict": True, "backend": backend}
    given = ENSEMBLES[kind]
    same_members(odesim.ensemble("joma.nonlinear", **given, **options), odesim.ensemble("joma.nonlinear", **there(given, cupy), **options))


def test_on_host_leaves_the_rest(shim: Shim) -> None:
    """What is on no device is the same object."""
    cupy = shim()
    for value in (1.5, "uniform(0,1)", [1.0, 2.0], MU, None, (3, 4)):
        assert on_host(value) is value
    assert type(on_host(cupy.asarray(MU))) is np.ndarray


RUNS: dict[str, dict[str, Any]] = {
    "ok": {"save": 6},
    "early": {"save": 6, "max_steps": 4},
    "times": {"save": [0.0, 0.3, 1.0], "method": "dop853"},
    "float32": {"save": 4, "dtype": "float32"},
    "derivatives": {"save": 3, "sensitivities": "mu"},
}


@pytest.mark.parametrize("kind", RUNS)
def test_shim_states_stay_on_the_device(kind: str, shim: Shim) -> None:
    """y, y_end and dense() are cupy's arrays with the bits of numpy's; all saved rows are never copied out."""
    cupy = shim()
    given: dict[str, Any] = {"params": {"mu": MU}, "span": (0.0, 5.0), "strict": True, "method": "tsit5", "backend": "cuda", **RUNS[kind]}
    here = odesim.integrate("joma.nonlinear", **given)
    cupy.fetched.clear()
    found = odesim.integrate("joma.nonlinear", arrays="cupy", **given)
    n = sum(rows[0].size for rows in here.y.values())
    assert cupy.fetched and not any(shape[0] > 1 and shape[-1] == n for shape in cupy.fetched if len(shape) == 2)
    assert all(type(found.y[name]) is not np.ndarray and isinstance(found.y_end[name], OnDevice) for name in found.y)
    assert isinstance(found.dense(np.array([0.1]))["v"], OnDevice)
    copied = found.to_numpy()
    same(here, copied)
    for name, rows in here.observables.items():
        np.testing.assert_array_equal(found.observables[name], rows)
        np.testing.assert_array_equal(found.final_observables[name], here.final_observables[name])
    np.testing.assert_array_equal(copied.at(0.1)["v"], here.at(0.1)["v"])
    assert isinstance(found.to_xarray()["v"].variable.data, OnDevice)
    assert found._repr_html_() == here._repr_html_()


def test_shim_states_on_the_device_are_stored_and_drawn(shim: Shim, tmp_path: Path) -> None:
    """Whatever needs numpy's arrays copies them."""
    shim()
    given: dict[str, Any] = {"save": 6, "strict": True, "backend": "cuda"}
    here, found = (odesim.integrate("joma.nonlinear", arrays=arrays, **given) for arrays in ("numpy", "cupy"))
    write_solution(found, tmp_path / "run.zarr")
    np.testing.assert_array_equal(read_solution(tmp_path / "run.zarr").y["v"], here.y["v"])
    np.testing.assert_array_equal(side_of_solution(found).values("v"), here.y["v"][None])
    assert len(figure_of_solution(found).axes) == len(figure_of_solution(here).axes)
    assert here.to_numpy() is here and pickle.loads(pickle.dumps(found.to_numpy())).status == "ok"


def failing() -> dict[str, Any]:
    """Members that end in several ways."""
    mu = ROWS.copy()
    mu[3, 1], mu[5, 0] = np.nan, 37.0
    return {"params": {"mu": mu}, "initial": {"v": STARTS}, "save": 4, "span": (0.0, 4.0)}


MEMBERS: dict[str, tuple[str | System, dict[str, Any]]] = {
    "grid": ("joma.nonlinear", {"grid": {"mu": "linspace(0.5,1.5,70)"}, "sizes": {"M": 2}, "save": 3}),
    "end": ("joma.nonlinear", {"params": {"mu": ROWS}}),
    "failing": ("joma.nonlinear", failing()),
    "observed": ("joma.nonlinear", {"params": {"mu": ROWS}, "save": 3, "observe": "all"}),
    "events": (turning(), {"params": {"w": W[:9]}, "save": 5}),
    "stiff": ("joma.nonlinear", {"params": {"mu": ROWS}, "save": 3, "method": "rodas5p"}),
    "fixed": ("joma.nonlinear", {"params": {"mu": ROWS}, "save": 3, "step": 0.1, "max_events": 0}),
    "float32": ("joma.nonlinear", {"params": {"mu": ROWS}, "save": 3, "dtype": "float32"}),
    "derivatives": ("joma.nonlinear", {"params": {"mu": ROWS}, "save": 3, "sensitivities": "mu", "max_events": 0}),
    "several states": ("scan_snap.theorem4", {"grid": {"eta_Z": "linspace(0.9,1.0,3)"}, "save": 3, "span": (0.0, 1.0), "max_events": 0}),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", slow_but(MEMBERS, set(MEMBERS) - {"derivatives", "fixed", "float32", "several states"}))
def test_shim_members_stay_on_the_device(kind: str, shim: Shim) -> None:
    """The states of the Dataset are cupy's arrays with the bits of numba's, statuses and events numpy's; on the first of three too."""
    model, given = MEMBERS[kind]
    given = {"strict": True, "method": "tsit5", **given}
    here = odesim.ensemble(model, **given)
    for about in ({}, {"devices": 3}):
        cupy = shim(**about)
        found = odesim.ensemble(model, backend="cuda", arrays="cupy", **given)
        n = sum(here[name][0, 0].size for name in found.data_vars if isinstance(found[name].variable.data, OnDevice))
        assert ((here.sizes["member"], here.sizes["time"], n) in cupy.fetched) == (kind == "observed")
        assert cupy.used == {0}
        states = [name for name in here.data_vars if isinstance(found[name].variable.data, OnDevice)]
        assert states and {"status", "t_end", "steps"}.isdisjoint(map(str, states))
        copied = xr.Dataset({name: (v.dims, on_host(v.data)) for name, v in found.variables.items()}, attrs=found.attrs)
        same_members(here.reset_coords(), copied.reset_coords())


def test_shim_members_stay_on_a_device_that_is_nearly_full(shim: Shim) -> None:
    """What is launched is halved; where the states themselves do not fit there is one sentence."""
    given: dict[str, Any] = {"params": {"mu": ROWS}, "strict": True, "method": "tsit5", "max_events": 0, "save": 2}
    shim()
    here = odesim.ensemble("joma.nonlinear", backend="cuda", **given)
    cupy = shim(room=70 * 2 * 2 * 8)
    found = odesim.ensemble("joma.nonlinear", backend="cuda", arrays="cupy", **given)
    np.testing.assert_array_equal(on_host(found.v.data), here.v)
    assert len(cupy.launches) == 1
    shim(room=70 * 2 * 2 * 8 - 1)
    with pytest.raises(OdesimError, match="no memory left for 70 members, 2 saved times of 2 numbers each: Out of memory allocating 2,240"):
        odesim.ensemble("joma.nonlinear", backend="cuda", arrays="cupy", **given)


SHORT: dict[str, Any] = {"backend": "cuda", "method": "tsit5", "strict": True, "save": 3, "span": (0.0, 1.0)}
STAYS: dict[str, Any] = {"params": {"mu": ROWS[:3]}, "max_events": 0, "arrays": "cupy", **SHORT}
FROM_PYTHON: dict[str, Callable[[Any], Any]] = {
    "states that stay": lambda mu: odesim.integrate("joma.nonlinear", arrays="cupy", **SHORT).to_numpy(),
    "observables": lambda mu: odesim.integrate("joma.nonlinear", arrays="cupy", **SHORT).observables,
    "a time between": lambda mu: odesim.integrate("joma.nonlinear", **SHORT).at(0.3),
    "a parameter there": lambda mu: odesim.integrate("joma.nonlinear", params={"mu": mu[0]}, **SHORT),
    "members that stay": lambda mu: odesim.ensemble("joma.nonlinear", dtype="float32", **STAYS),
    "members observed": lambda mu: odesim.ensemble("joma.nonlinear", observe="all", **STAYS),
    "a table there": lambda mu: odesim.ensemble("joma.nonlinear", vary={"mu": mu}, max_events=0, **SHORT),
}
FAILURES = {
    "full": failure("OutOfMemoryError", MemoryError)("Out of memory allocating 1,024 bytes."),
    "fault": failure("CUDARuntimeError")("cudaErrorIllegalAddress: an illegal memory access was encountered"),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("why", FAILURES)
@pytest.mark.parametrize("kind", FROM_PYTHON)
def test_shim_any_call_that_fails_is_a_sentence(kind: str, why: str, shim: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call that reaches the device fails, one after another: a DeviceError, or for lack of memory in halves the result."""
    cupy, ask = shim(), FROM_PYTHON[kind]
    mu, calls = cupy.asarray(ROWS[:3]), iter([0])

    def counted(whole: Callable[..., Any], *given: Any, **options: Any) -> Any:
        if next(calls) == 0:
            raise FAILURES[why]
        return whole(*given, **options)

    for name in ("get", "astype", "__setitem__"):
        whole = getattr(OnDevice, name)
        monkeypatch.setattr(OnDevice, name, lambda *given, whole=whole, **options: counted(whole, *given, **options))
    for name in ("asarray", "ascontiguousarray", "empty", "zeros", "full"):
        monkeypatch.setattr(cupy, name, partial(counted, getattr(cupy, name)))
    calls = iter(range(1, 10**6))
    ask(mu)
    for k in range(next(calls) - 1):
        calls = iter(range(-k, 10**6))
        with suppress(DeviceError):
            ask(mu)
            assert why == "full"
        assert next(calls) > 0


def test_shim_members_that_a_stop_left(shim: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    """To say that they are not done takes no memory there."""
    cupy = shim()

    def stopped(*_: Any, **__: Any) -> Tally:
        monkeypatch.delattr(cupy, "asarray")
        return Tally(3)

    monkeypatch.setattr("odesim.api.ensemble.run_chunks", stopped)
    assert np.isnan(on_host(odesim.ensemble("joma.nonlinear", **STAYS).v.data)).all()


def test_shim_members_that_a_stop_left_on_a_lost_device(shim: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence."""

    def lost(*_: Any) -> None:
        raise FAILURES["fault"]

    shim()

    def stopped(*_: Any, **__: Any) -> Tally:
        monkeypatch.setattr(OnDevice, "__setitem__", lost)
        return Tally(3)

    monkeypatch.setattr("odesim.api.ensemble.run_chunks", stopped)
    with pytest.raises(DeviceError, match=r"the states of 3 members of joma\.nonlinear failed on the GPU: cudaErrorIllegalAddress"):
        odesim.ensemble("joma.nonlinear", **STAYS)


WRONG: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "name": (odesim.integrate, {"arrays": "cupi"}, "no kind of arrays 'cupi'; choose from cupy, numpy; did you mean 'cupy'"),
    "numba": (
        odesim.integrate,
        {"arrays": "cupy"},
        "arrays='cupy' leaves results on the GPU of the backend cuda; those of the backend numba",
    ),
    "clock": (odesim.integrate, {"arrays": "cupy", "backend": "cuda", "clock": "rescaled"}, "arrays='cupy' is for the ordinary clock"),
    "members": (odesim.ensemble, {"arrays": "cupy"}, "those of the backend numba are numpy's"),
    "members' name": (odesim.ensemble, {"arrays": None}, "arrays must be a text, not None"),
    "out": (odesim.ensemble, {"arrays": "cupy", "backend": "cuda", "out": "run.zarr"}, "leaves results on the GPU, and out writes them"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_arrays_that_cannot_be(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, with cupy or without; nothing is written."""
    monkeypatch.chdir(tmp_path)
    call, options, sentence = WRONG[kind]
    more: dict[str, Any] = {"grid": {"mu": [1.0, 2.0]}} if call is odesim.ensemble else {}
    with pytest.raises(OdesimError, match=sentence):
        call("joma.nonlinear", **more, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.gpu
def test_device_arrays_in_and_out() -> None:
    """On a device: strict runs and members with the bits of numpy's arrays, given and left there."""
    import cupy

    options: dict[str, Any] = {"method": "tsit5", "span": (0.0, 4.0), "strict": True, "save": 5}
    here = odesim.integrate("joma.nonlinear", params={"mu": MU}, **options)
    found = odesim.integrate("joma.nonlinear", params={"mu": cupy.asarray(MU)}, backend="cuda", arrays="cupy", **options)
    assert isinstance(found.y["v"], cupy.ndarray) and isinstance(found.y_end["v"], cupy.ndarray)
    same(here, found.to_numpy())
    options |= {"max_events": 0}
    members = odesim.ensemble("joma.nonlinear", params={"mu": ROWS}, **options)
    there_ = odesim.ensemble("joma.nonlinear", params={"mu": cupy.asarray(ROWS)}, backend="cuda", arrays="cupy", **options)
    assert isinstance(there_.v.data, cupy.ndarray)
    same_members(members, there_.as_numpy())


@pytest.mark.gpu
def test_device_that_is_full_says_so() -> None:
    """More than any has."""
    with pytest.raises(OdesimError, match=r"GB are free there|the GPU has no memory left for joma\.nonlinear"):
        odesim.integrate("joma.nonlinear", sizes={"M": 10**6}, save=10**6, backend="cuda", arrays="cupy")
