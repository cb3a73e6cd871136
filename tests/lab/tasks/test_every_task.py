"""Laws of all tasks: the seeds of a training do not see each other, and one that was stopped goes on with its bits."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks import TASKS

TEXT = "the cat sat on the mat and the dog sat on the log while the cat saw the dog . " * 12
CORPUS: dict[str, Any] = {"text": TEXT, "vocabulary": 10, "length": 5, "num_next": 4, "num_query": 3, "validation": 0.3, "batch": 7}
SMALL: dict[str, Any] = {"width": 8, "mlp": 7}
MARKOV: dict[str, Any] = {"k": 3, "length": 6, "batch": 5, "width": 4}
MASKED: dict[str, Any] = {"objective": "masked", "layers": 1, "p_m": 0.4, "p_c": 0.2, "p_r": 0.3}
DAG: dict[str, Any] = {"layers": 2, "num_classes": 5, "n0": 7, "n1": 6, "vocabulary": 12, "length": 11, "batch": 16}
COMMITTEE: dict[str, Any] = {"eta_v": 0.5, "sigma": 0.1, "batch": 2}

# a task, settings that make it small or choose another stream, start or network, and a model; first one of each kind of stream
CASES: tuple[tuple[str, dict[str, Any], str | None], ...] = (
    ("committee", COMMITTEE | {"N": 7}, None),
    ("markov", MARKOV, None),
    ("scan_snap", {"batch": 8}, None),
    ("hierarchy_dag", SMALL | DAG, None),
    ("topics", {"T": 3, "v": 2}, None),
    ("markov", MARKOV | {"samples": 5}, None),
    ("committee", COMMITTEE | {"N": 9000}, None),  # more than is drawn at once
    ("corpus", CORPUS, "yz"),
    ("corpus", CORPUS | {"contexts": "drawn"}, "yz"),
    ("corpus", CORPUS | SMALL, "transformer"),
    ("corpus", CORPUS | SMALL | MASKED, "transformer"),
    ("scan_snap", {"batch": 8, "rng": "official", "init": "torch"}, None),
    ("scan_snap", {"batch": 8, "decoder": "decorrelated"}, None),
    *(("joma_gaussian", {"attention": attention}, None) for attention in ("linear", "exp", "softmax")),
    ("joma_regression", {"M": 3, "batch": 4}, None),
    ("hierarchy_layers", {"K1": 4, "K2": 3, "num_classes": 5, "n0": 4, "n1": 5, "vocabulary": 9}, None),
    ("hops", SMALL | {"length": 8, "batch": 6}, None),
    ("flip_flop", SMALL | {"instructions": 5, "batch": 6}, None),
    ("composition", SMALL | {"entries": 3, "batch": 6}, None),
    ("counting", SMALL | {"length": 6, "batch": 6}, None),
    ("pcfg", SMALL | {"depth": 2, "heads": 1}, None),
    ("dyck", SMALL | {"length": 6, "test_length": 9, "batch": 5}, None),
    ("induction", {"N": 4, "V": 6, "batch": 5, "width": 4}, None),
    ("selection", {"trained": "weights", "d": 6}, None),
    ("selection", {"trained": "key_query", "d": 6, "init_scale": 0.1}, None),
    ("simsiam", {"beta": 0.4}, None),
    ("simsiam", {"predictor": "set"}, None),
    ("in_context", {"batch": 4}, None),
    ("in_context", {"batch": 4, "weights": "merged"}, None),
    ("modular", {"p": 7, "share": 0.5}, None),
    ("reversal", {}, None),
    ("reversal", {"data": "chains"}, None),
    ("single_location", {"d": 6}, None),
    ("binary_chain", {}, None),
    ("next_token", {}, None),
    ("power_law", {"n": 7}, None),
    ("quadratic", {}, None),
    ("quadratic", {"optimizer": "adam"}, None),
    ("tokens", {"n": 5}, None),
    ("valley", {}, None),
)
IDS = [" ".join([name, *(f"{key}={value}" for key, value in given.items() if key != "text")]) for name, given, _ in CASES]


def test_every_task_is_here() -> None:
    assert {name for name, _, _ in CASES} == set(TASKS)


@pytest.mark.first(5)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_seeds_together_are_seeds_alone(case: tuple[str, dict[str, Any], str | None], dtype: str) -> None:
    """Four steps of three seeds have, rows and ends, the bits of each alone, in the dtype."""
    name, settings, model = case

    def run(seeds: tuple[int, ...]) -> Any:
        return odesim.train(name, settings=settings, model=model, seeds=seeds, steps=4, dtype=dtype)

    together = run((7, 1, 4))
    for row, seed in enumerate((7, 1, 4)):
        alone = run((seed,))
        for kind in ("observables", "final"):
            for observable, values in getattr(alone, kind).items():
                assert values.dtype == np.dtype(dtype)
                np.testing.assert_array_equal(getattr(together, kind)[observable][row], values[0], err_msg=f"{observable}, {kind}")


@pytest.mark.first(2)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_run_goes_on_with_its_bits(case: tuple[str, dict[str, Any], str | None], tmp_path: Any) -> None:
    """Stopped after 5 of 9 iterations and resumed: the rows of one that was never stopped."""
    name, settings, model = case
    given: dict[str, Any] = {"settings": settings, "model": model, "seeds": (0, 3)}
    odesim.train(name, steps=5, out=tmp_path / "run.zarr", **given)
    resumed = odesim.train(name, steps=9, out=tmp_path / "run.zarr", resume=True, **given)
    for observable, rows in odesim.train(name, steps=9, **given).observables.items():
        np.testing.assert_array_equal(resumed.observables[observable], rows, err_msg=observable)
