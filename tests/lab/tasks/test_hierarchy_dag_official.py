"""The task hierarchy_dag with rng=official: the runs of `decoder_only_hier.py`, whose classes PyTorch ran for the numbers here."""

from typing import Any

import numpy as np
import pytest

from odesim.base.arrays import Array
from odesim.lab.networks.transformer import Transformer
from odesim.lab.tasks.hierarchy_dag import OFFICIAL_SHIFT, TASK, draw_dag, draw_start, official_tokens, start_outputs
from odesim.lab.training.loop import TrainingOptions, initial_params, train
from odesim.lab.training.randomness import TorchGenerator
from odesim.lab.training.task import Experiment

DEFAULTS = {setting.name: setting.default for setting in TASK.settings}
TINY: dict[str, Any] = {"width": 8, "mlp": 7, "layers": 2, "num_classes": 5, "n0": 7, "n1": 6, "vocabulary": 12, "length": 11, "batch": 16}


def official(seeds: Any = (0,), dtype: str = "float64", **values: Any) -> Experiment:
    return TASK.make({**DEFAULTS, "rng": "official", **values}, seeds=seeds, dtype=dtype)


def test_tokens() -> None:
    """Each class has the tokens of the hierarchy, in the order in which the original lists them."""
    dag = draw_dag(1, {"n0": 20, "n1": 30, "num_classes": 20}, 2, 100)
    tokens = official_tokens(dag)
    assert [sorted(own) for own in tokens] == dag.ascending
    assert tokens[0] == [33, 98, 6, 40, 44, 16, 20, 52]
    run = official((1,), n0=20, n1=30)
    assert run.stream(0)["tokens"][0, :2].tolist() == [[99, 33, 98, 6, 40, 44, 16, 20, 52], [99, 99, 37, 6, 53, 22, 87, 58, 60]]


LOSSES = {  # seed 3, width 64, Adam with lr 1e-3, by torch in float32
    0: 3.245063304901123, 1: 2.8995845317840576, 2: 2.733201503753662, 5: 2.2099478244781494, 10: 1.6980669498443604,
    20: 1.047377586364746, 29: 0.5820810794830322,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_losses(dtype: str) -> None:
    """Hierarchy, start, labels, network and Adam are the original's: losses of 30 steps to 1e-6, some roundings of its float32."""
    run = train(official((3,), dtype, width=64, lr=1e-3), TrainingOptions(steps=29, dtype=dtype))
    ours = run.observables["loss"][0]
    np.testing.assert_allclose([ours[i] for i in LOSSES], list(LOSSES.values()), rtol=1e-6)


EMBEDDINGS = [(12, 8), (3, 11), (5, 3)]  # whole groups of 16, a group redrawn at the end, fewer than 16


@pytest.mark.parametrize(("vocabulary", "width"), EMBEDDINGS)
def test_start(vocabulary: int, width: int) -> None:
    """Parts in torch's order, matrices transposed; labels begin where the start ends."""
    made = Transformer(vocabulary, width, layers=2, mlp=7, outputs=5, norm="post", projection=False, biases=("mlp", "head"))
    torch = TorchGenerator(3)
    drawn = dict(draw_start(torch, made))
    again = TorchGenerator(3)
    np.testing.assert_array_equal(drawn["embedding"], again.normal((vocabulary, width)))
    np.testing.assert_array_equal(drawn["head"].T, again.uniform(-(width**-0.5), width**-0.5, (5, width)))
    assert {name: values.shape for name, values in drawn.items()} == {
        name: law.shape for name, law in made.laws.items() if law.law != "constant"
    }
    skipped = TorchGenerator(3)
    skipped.skip(start_outputs(made))
    np.testing.assert_array_equal(torch.raw(4), skipped.raw(4))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_seeds_apart(dtype: str) -> None:
    """A seed has its own start and labels, whatever the others are and whatever was asked for before."""
    together, alone = official((4, 1), dtype, **TINY), official((1,), dtype, **TINY)
    starts = [initial_params(experiment, dtype) for experiment in (together, alone)]
    for name, values in starts[1].items():
        assert values.dtype == dtype
        np.testing.assert_array_equal(values[0], starts[0][name][1])
    in_order = [alone.stream(i)["weight"] for i in range(5)]
    for i in (3, 0, 1, 1, 4, 2):
        weight = together.stream(i)["weight"]
        np.testing.assert_array_equal(weight[1], in_order[i][0])
        assert np.all(weight.sum(axis=1) == 16) and not np.array_equal(weight[0], weight[1])


def test_labels() -> None:
    """Labels are torch's outputs after the start, modulo the classes; those of the test come after 10000 batches."""
    run = official((2,), **TINY)
    torch = TorchGenerator(2 + OFFICIAL_SHIFT)
    for _ in draw_start(torch, run.model):  # type: ignore[arg-type]
        pass
    raw = (torch.raw(10000 * 16 + 1280) % 5).astype(int)
    for i in range(3):
        np.testing.assert_array_equal(run.stream(i)["weight"][0], np.bincount(raw[16 * i : 16 * i + 16], minlength=5))
    np.testing.assert_array_equal(run.model.watch["weight"][0], np.bincount(raw[10000 * 16 :]))  # type: ignore[attr-defined]


# classes, children, n0, n1: NCorr of the untrained networks of seeds 1 to 5, mean and standard deviation, by torch in float64
UNTRAINED: list[tuple[tuple[int, int, int, int], list[float], list[float]]] = [
    ((20, 2, 10, 20), [0.98514, 0.66353], [0.01784, 0.04874]),
    ((20, 2, 20, 30), [0.92915, 0.70085], [0.02956, 0.04752]),
    ((20, 3, 10, 20), [0.95495, 0.57048], [0.05592, 0.03041]),
    ((20, 3, 20, 30), [0.94441, 0.63372], [0.02565, 0.02529]),
    ((30, 2, 10, 20), [0.98525, 0.57489], [0.01638, 0.0198]),
    ((30, 2, 20, 30), [0.93221, 0.65961], [0.02717, 0.02032]),
    ((30, 3, 10, 20), [0.98965, 0.50961], [0.00868, 0.01746]),
    ((30, 3, 20, 30), [0.93844, 0.56243], [0.02666, 0.01593]),
    ((50, 2, 10, 20), [0.98618, 0.55007], [0.01328, 0.01497]),
    ((50, 2, 20, 30), [0.91473, 0.5904], [0.02469, 0.01821]),
    ((50, 3, 10, 20), [0.98892, 0.45708], [0.01181, 0.0203]),
    ((50, 3, 20, 30), [0.93842, 0.51771], [0.02984, 0.03148]),
]


def ncorr(cell: tuple[int, int, int, int]) -> Array:
    """NCorr (seed, layer of latents) of the untrained networks of seeds 1 to 5, one after the other."""
    sizes: dict[str, Any] = dict(zip(("num_classes", "num_children", "n0", "n1"), cell, strict=True))
    found = []
    for seed in range(1, 6):
        run = official((seed,), width=1024, **sizes)
        (watched,) = (o for o in run.model.observables if o.name == "NCorr")
        found.append(watched.function(initial_params(run, "float64"))[0])
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("row", range(len(UNTRAINED)), ids=lambda row: "{} {} {} {}".format(*UNTRAINED[row][0]))
def test_untrained(row: int) -> None:
    """Before the first step, every seed's network gives the original's correlations: half the last digit, and 1e-6 of torch's sines."""
    cell, mean, sd = UNTRAINED[row]
    found = ncorr(cell)
    np.testing.assert_allclose(found.mean(axis=0), mean, rtol=0, atol=6e-6)
    np.testing.assert_allclose(found.std(axis=0, ddof=1), sd, rtol=0, atol=6e-6)
