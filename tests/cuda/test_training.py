"""Trainings with cupy's arrays: the bits of numpy's where they lie in numpy's memory, its numbers on a device."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.api.differences import HALF
from odesim.base.arrays import array_namespace, on_same_device
from odesim.base.errors import ParamError
from odesim.lab.networks import layers as embedding
from odesim.lab.tasks import TASKS
from odesim.lab.training.loop import Trajectory
from odesim.lab.training.optimizers import OPTIMIZERS
from tests.support import transformer_cases
from tests.support.cupy_arrays import FUNCTIONS, LINALG, OnDevice
from tests.support.joma_cases import ATTENTIONS, PHIS, SIGNALS, batch_of, block_of, start_of

P = [[0.5, 0.3, 0.2, 0.0], [0.1, 0.0, 0.4, 0.5], [0.25, 0.25, 0.25, 0.25]]
SMALL: dict[str, dict[str, Any]] = {
    "committee": {"N": 9, "K": 3, "M": 2, "eta_v": 0.5, "sigma": 0.1},
    "corpus": {"vocabulary": 50, "length": 6, "num_next": 4, "num_query": 2, "batch": 8, "width": 6, "mlp": 7},
    "dyck": {"k": 2, "depth": 2, "length": 6, "test_length": 8, "batch": 5, "width": 4, "mlp": 5},
    "hierarchy_dag": {"num_classes": 5, "n0": 4, "n1": 5, "vocabulary": 12, "length": 10, "width": 6, "layers": 2, "mlp": 7, "batch": 9},
    "hierarchy_layers": {"num_classes": 5, "n0": 4, "n1": 5, "vocabulary": 12, "K1": 4, "K2": 3},
    "hops": {"letters": 3, "hops": 2, "length": 6, "width": 4, "mlp": 5, "batch": 5},
    "in_context": {"D": 3, "N": 5, "H": 2, "batch": 6},
    "induction": {"N": 4, "V": 6, "batch": 5, "width": 4},
    "joma_gaussian": {"num_distinct": 4, "num_common": 3, "num_classes": 5, "d": 9},
    "joma_regression": {"M": 3, "batch": 5},
    "markov": {"k": 3, "length": 6, "width": 4, "batch": 5},
    "modular": {"p": 5, "N": 3},
    "pcfg": {"depth": 2, "width": 4, "mlp": 5, "batch": 5},
    "power_law": {"n": 7, "batch": 3},
    "flip_flop": {"instructions": 5, "width": 4, "mlp": 5, "batch": 5},
    "composition": {"entries": 3, "width": 4, "mlp": 5, "batch": 5},
    "counting": {"length": 6, "width": 4, "mlp": 5, "batch": 5},
    "reversal": {"pairs": 4, "both": 0.5, "vocabulary": 13},
    "selection": {"N": 3, "T": 4, "d": 5},
    "next_token": {"K": 4, "batch": 5},
    "single_location": {"d": 6, "L": 3, "batch": 4},
    "binary_chain": {"w": -0.2, "batch": 5},
    "quadratic": {"n": 3},
    "valley": {},
    "tokens": {"n": 5, "d": 3, "kappa": 0.2, "attention": "unnormalised", "modes": 4},
    "simsiam": {"n1": 4, "n2": 3, "batch": 5},
    "scan_snap": {"num_common": 3, "num_unique_per_next": 2, "num_next_per_last": 2, "length": 7, "batch": 5},
    "topics": {"T": 3, "v": 2, "shortest": 5, "longest": 9, "batch": 4, "init_V": 0.3, "init_KQ": 0.3},
}
# each option that leads through other code, of each task
MORE: dict[str, tuple[str, dict[str, Any], str | None]] = {
    **{task: (task, {}, None) for task in TASKS},
    "committee normal": ("committee", {"init": "normal", "batch": 3}, None),
    "corpus transformer": ("corpus", {}, "transformer"),
    "corpus masked": ("corpus", {"objective": "masked", "start": "normal"}, "transformer"),
    "corpus post": ("corpus", {"norm": "post"}, "transformer"),
    "corpus clip": ("corpus", {"clip": 0.1}, "transformer"),
    "corpus drawn": ("corpus", {"contexts": "drawn"}, None),
    "corpus infinite": ("corpus", {"contexts": "infinite", "validation": 0.0}, None),
    **{f"joma {a}": ("joma_gaussian", {"attention": a, "init_scale": 0.3}, None) for a in ("linear", "exp")},
    **{f"joma {phi}": ("joma_gaussian", {"phi": phi}, None) for phi in ("relu", "softplus", "square")},
    **{f"joma {signal}": ("joma_gaussian", {"signal": signal, "coordinates": "w", "cosine": 0.2}, None) for signal in ("mse", "fixed")},
    "dyck heads": ("dyck", {"heads": 2, "norm": "post"}, None),
    "induction fixed": ("induction", {"samples": 4, "heads": 2, "optimizer": "sgd"}, None),
    "counting both sides": ("counting", {"sees": "all", "positions": "learned"}, None),
    "in context merged": ("in_context", {"weights": "merged"}, None),
    "modular held": ("modular", {"share": 0.6, "activation": "relu", "optimizer": "muon"}, None),
    "markov fixed": ("markov", {"samples": 4, "heads": 2, "optimizer": "sgd"}, None),
    "topics cross-entropy": ("topics", {"loss": "cross_entropy", "documents": 6, "optimizer": "adam", "lr": 0.1}, None),
    "topics infinite": ("topics", {"contexts": "infinite", "init": "symmetric"}, None),
    **{f"selection {kind}": ("selection", {"trained": kind}, None) for kind in ("weights", "key_query")},
    "binary chain best bias": ("binary_chain", {"bias": "best"}, None),
    "tokens softmax": ("tokens", {"attention": "softmax", "kappa": 0.0}, None),
    "simsiam average": ("simsiam", {"beta": 0.4, "stop": False}, None),
    "simsiam set": ("simsiam", {"predictor": "set"}, None),
    "reversal chains": ("reversal", {"data": "chains", "vocabulary": 16}, None),
    "scan_snap given": ("scan_snap", {"P": np.array(P), "residual": True}, None),
    "scan_snap options": ("scan_snap", {"residual": True, "attn_include_query": True, "init": "torch", "normalize": False}, None),
    "scan_snap official": ("scan_snap", {"rng": "official", "init": "torch"}, None),
    "scan_snap decorrelated": ("scan_snap", {"decoder": "decorrelated"}, None),
    **{name: ("scan_snap", {"optimizer": name}, None) for name in OPTIMIZERS},
    "adamw with decay": ("hierarchy_dag", {"optimizer": "adamw", "weight_decay": 0.1}, None),
    "dag official": ("hierarchy_dag", {"rng": "official"}, None),
    "sgd with decay": ("hierarchy_dag", {"optimizer": "sgd"}, None),
}
OF_SAMPLES = ("num_common", "num_unique_per_next", "num_next_per_last", "length", "batch")
BACKEND: dict[str, Any] = {"backend": "cuda"}


def trained(case: str, **options: Any) -> Trajectory:
    """A short training of three seeds, or of one where there is no chance, with all that can be watched."""
    task, given, model = MORE[case]
    kept = {name: value for name, value in SMALL[task].items() if "P" not in given or name not in OF_SAMPLES}
    seeds = (3,) if "P" in given or given.get("contexts") == "infinite" else (0, 3, 5)
    return odesim.train(task, settings={**kept, **given}, model=model, seeds=seeds, **{"steps": 4, **options})


def same(a: Trajectory, b: Trajectory) -> None:
    """Every recorded row, the end and how it ended; in numpy's memory."""
    assert (a.status, a.iteration, set(a.observables), set(a.final)) == (b.status, b.iteration, set(b.observables), set(b.final))
    for held, other in ((a.observables, b.observables), (a.final, b.final)):
        for name in held:
            assert type(held[name]) is type(other[name]) is np.ndarray and held[name].dtype == other[name].dtype
            np.testing.assert_array_equal(held[name], other[name], err_msg=name)


@pytest.mark.first(7)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", MORE)
def test_cuda_has_numpy_s_bits(case: str, dtype: str, arrays: Any) -> None:
    """Every task, model and option; all of its arrays went to the device and came back."""
    there = trained(case, dtype=dtype, **BACKEND)
    assert arrays.copied and there.attrs["backend"] == "cuda"
    same(trained(case, dtype=dtype), there)


@pytest.mark.parametrize("extras", transformer_cases.EXTRAS.values(), ids=transformer_cases.EXTRAS)
@pytest.mark.parametrize("case", transformer_cases.CASES)
def test_cuda_has_every_transformer(case: str, extras: tuple[str, ...], arrays: Any) -> None:
    """Architectures and batches that no task has: loss, gradients and what is watched."""
    model = transformer_cases.make(case)
    batch = transformer_cases.batch_for(model, extras)
    params = transformer_cases.start(model)
    results: list[dict[str, Any]] = []
    for p in (params, {name: arrays.asarray(w) for name, w in params.items()}):
        loss, gradients = model.loss_and_gradients(p, batch)
        watched = {o.name: o.function(p) for o in replace(model, watch=batch).observables}
        results.append({"loss": loss, "loss alone": model.loss_of(p, batch), **gradients, **watched})
    for name, value in results[0].items():
        np.testing.assert_array_equal(results[1][name].get(), value, err_msg=name)


@pytest.mark.parametrize("oblique", [False, True], ids=["v", "w"])
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_cuda_has_every_joma_block(attention: str, phi: str, signal: str, oblique: bool, arrays: Any) -> None:
    """Several queries and a matrix above the nodes, which no task has."""
    options: dict[str, Any] = {"top": None} if signal == "fixed" else {}
    block = block_of(attention, phi, signal, oblique=oblique, **options)
    batch, params = batch_of(2), start_of(block, 2)
    loss, gradients = block.loss_and_gradients(params, batch)
    moved: Any = block.loss_and_gradients({name: arrays.asarray(w) for name, w in params.items()}, batch)
    there = {"loss": moved[0], **moved[1]}
    for name, value in {"loss": loss, **gradients}.items():
        np.testing.assert_array_equal(there[name].get(), value, err_msg=name)


def test_cuda_sums_rows_of_an_embedding_as_numpy_does(arrays: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one sum in another order: equal to rounding, of some 20 terms near 1."""
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    tokens, dy = rng.integers(0, 4, (2, 3, 9)), rng.standard_normal((2, 27, 5))
    rows, product = embedding.embed_back(dy, tokens, 5), embedding._by_product(dy, tokens, 5)
    np.testing.assert_allclose(product, rows, atol=1e-13)


def test_cuda_arrays_meet_no_array_of_numpy_s(arrays: Any) -> None:
    """What the tests above rest on: what cupy refuses is refused."""
    here, there = np.ones(3), arrays.asarray(np.ones(3))
    refused: list[Callable[[], Any]] = [lambda: here + there, lambda: there + here, lambda: np.sqrt(there), lambda: np.sum(there)]
    refused += [
        lambda: np.asarray(there),
        lambda: here.__iadd__(there),
        lambda: there.__iadd__(here),
        lambda: arrays.where(here > 0, 1, there),
    ]
    refused += [lambda: there.__setitem__(0, here), lambda: there[here > 0], lambda: np.add.at(there, [0], 1), lambda: arrays.stack([here])]
    for use in refused:
        with pytest.raises(TypeError):
            use()
    assert float(there.sum()) == 3.0 and type(there.get()) is np.ndarray
    assert array_namespace(there) is arrays and on_same_device(here, {"a": here})["a"] is here
    assert on_same_device(there, {"a": there})["a"] is there and isinstance(on_same_device(there, {"a": here})["a"], OnDevice)


def test_cuda_arrays_have_no_more_than_cupy_s() -> None:
    """Functions, methods and operators of the stand-in are there in cupy itself, with or without a device."""
    cupy = pytest.importorskip("cupy", reason="holds the stand-in against cupy; install cupy to run it")
    named = {cupy: FUNCTIONS, cupy.linalg: LINALG, cupy.ndarray: {*vars(OnDevice)} - {"held", "__dict__", "__weakref__"}}
    assert {name for where, names in named.items() for name in names if not hasattr(where, name)} == set()


@pytest.mark.slow
def test_cuda_trains_what_a_theory_is_compared_with(arrays: Any) -> None:
    """odesim.compare has the same table from either."""
    options: dict[str, Any] = {"task": "scan_snap", "settings": SMALL["scan_snap"], "steps": 4, "map": "discrete"}
    here = str(odesim.compare("scan_snap.full", **options))
    assert not arrays.copied
    assert str(odesim.compare("scan_snap.full", **options, **BACKEND)) == here and arrays.copied
    with pytest.raises(ParamError, match="backend belongs to a training"):
        odesim.compare("a.zarr", "b.zarr", **BACKEND)


def test_cuda_progress_is_told_in_numpy(arrays: Any) -> None:
    """The losses that progress is called with, and those of a seed whose loss is not finite."""
    told: list[Any] = []
    trained("scan_snap", progress=lambda done, steps, losses: told.append(losses), **BACKEND)
    assert [type(losses) for losses in told] == [np.ndarray] * 4
    assert trained("joma exp", steps=200, rates={"w": 1e6, "z": 1e6}, **BACKEND).status == "non_finite"


@pytest.mark.parametrize("use", [partial(odesim.train, "scan_snap"), partial(odesim.compare, "scan_snap.full", task="scan_snap")])
def test_cuda_is_what_cudo_meant(use: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another name is one sentence with the choices, before an array is made."""
    for module in ("experiment", "compare.runs"):
        monkeypatch.setattr(f"odesim.lab.{module}.make_experiment", lambda *_, **__: pytest.fail("it was made"))
    with pytest.raises(ParamError, match="no backend 'cudo' in a training; choose from cuda, numpy; did you mean 'cuda'"):
        use(backend="cudo")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", MORE)
def test_cuda_device_has_numpy_s_numbers(case: str, dtype: str) -> None:
    """Ten steps from one start: sums of some hundred terms in another order, so far from half the digits of the largest entry.

    Where the terms cancel, float32 has fewer: then it is as near to float64 as numpy's, but for a factor of ten.
    """
    here, there = trained(case, steps=10, dtype=dtype), trained(case, steps=10, dtype=dtype, **BACKEND)
    exact = trained(case, steps=10).final if dtype == "float32" else here.final
    for name, value in here.final.items():
        near = max(HALF[dtype] * np.abs(value).max(), 10 * np.abs(value - exact[name]).max())
        np.testing.assert_allclose(there.final[name], exact[name], rtol=0, atol=near, err_msg=name)


@pytest.mark.gpu
@pytest.mark.parametrize("case", ["scan_snap", "joma_gaussian", "hierarchy_dag", "corpus transformer"])
def test_cuda_device_has_its_own_bits_again(case: str) -> None:
    """No sum on the device depends on who comes first."""
    same(trained(case, steps=10, **BACKEND), trained(case, steps=10, **BACKEND))
