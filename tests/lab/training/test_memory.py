"""What a training is said to take in memory, before it is made, is what numpy then takes."""

import tracemalloc
from typing import Any

import pytest

import odesim
from odesim.base.errors import ParamError
from odesim.lab.tasks import TASKS, load_task
from odesim.lab.training.task import check_settings
from tests.support.matrix import slow_but

# task, settings, seeds, model: each with one thing that is large
CASES: tuple[tuple[str, dict[str, Any], int, str | None], ...] = (
    ("scan_snap", {}, 40, None),
    ("scan_snap", {"num_last": 40}, 2, None),
    ("scan_snap", {"batch": 2000}, 2, None),
    ("joma_gaussian", {}, 100, None),
    ("joma_gaussian", {"num_classes": 200}, 2, None),
    ("joma_gaussian", {"num_distinct": 2000}, 2, None),
    ("joma_gaussian", {"coordinates": "w", "d": 1000, "num_common": 500}, 2, None),
    ("hierarchy_dag", {}, 1, None),
    ("hierarchy_dag", {"vocabulary": 2000, "width": 32}, 2, None),
    ("corpus", {}, 8, "yz"),
    ("corpus", {"length": 16, "batch": 32}, 1, "transformer"),
    ("corpus", {"objective": "masked", "vocabulary": 800, "batch": 32}, 2, "transformer"),
    ("committee", {"N": 1000, "K": 40, "M": 30}, 8, None),
    ("committee", {"N": 20000}, 4, None),
    ("committee", {"N": 100, "batch": 4000}, 2, None),
    ("markov", {"length": 40}, 2, None),
    ("markov", {"k": 30, "length": 10}, 2, None),
    ("markov", {"samples": 1000, "length": 20}, 2, None),
    ("hierarchy_layers", {}, 2, None),
    ("hierarchy_layers", {"K1": 500, "num_classes": 40, "n1": 40}, 2, None),
    ("joma_regression", {}, 8, None),
    ("joma_regression", {"M": 1000}, 2, None),
    ("reversal", {}, 2, None),
    ("reversal", {"pairs": 20, "vocabulary": 20000}, 2, None),
    ("reversal", {"data": "chains"}, 2, None),
    ("dyck", {"test_length": 200}, 2, None),
    ("induction", {"N": 30, "V": 60}, 2, None),
    ("dyck", {"batch": 500}, 2, None),
    ("topics", {"T": 12, "v": 12}, 2, None),
    ("topics", {"T": 8, "v": 5, "tau": 4, "contexts": "infinite"}, 2, None),
    ("topics", {"documents": 20000}, 2, None),
    ("topics", {"batch": 4000}, 2, None),
    ("in_context", {}, 2, None),
    ("induction", {"samples": 2000}, 2, None),
    ("in_context", {"weights": "merged", "D": 30, "H": 20}, 2, None),
    ("hops", {}, 2, None),
    ("hops", {"batch": 500}, 2, None),
    ("pcfg", {}, 2, None),
    ("flip_flop", {}, 2, None),
    ("flip_flop", {"batch": 500}, 2, None),
    ("composition", {}, 2, None),
    ("composition", {"batch": 2000}, 2, None),
    ("counting", {}, 2, None),
    ("counting", {"batch": 2000}, 2, None),
    ("pcfg", {"depth": 1, "batch": 3000}, 2, None),
    ("modular", {"p": 31, "N": 200}, 2, None),
    ("power_law", {}, 20, None),
    ("power_law", {"n": 100_000}, 2, None),
    ("power_law", {"batch": 5000}, 2, None),
    ("simsiam", {"n1": 60, "n2": 50}, 8, None),
    ("simsiam", {"batch": 5000}, 2, None),
    ("selection", {"N": 200, "T": 20}, 2, None),
    ("selection", {"trained": "key_query", "d": 200}, 2, None),
    ("next_token", {"K": 200}, 4, None),
    ("single_location", {}, 4, None),
    ("single_location", {"d": 5000, "L": 4}, 2, None),
    ("binary_chain", {"batch": 50_000}, 2, None),
    ("binary_chain", {}, 4, None),
    ("quadratic", {"n": 600}, 2, None),
    ("quadratic", {"b": [[1.0] * 500] * 400, "optimizer": "muon"}, 4, None),
    ("valley", {}, 2000, None),
    ("tokens", {"n": 400}, 4, None),
    ("tokens", {"n": 20, "d": 5000, "kappa": 0.1, "attention": "unnormalised"}, 4, None),
)


@pytest.mark.first(4)
@pytest.mark.parametrize(
    "case", slow_but(range(len(CASES)), range(0, len(CASES), 2)), ids=lambda k: f"{CASES[k][0]} {', '.join(CASES[k][1])} {k}"
)
def test_the_estimate_is_near_the_peak(case):
    """Within a factor of 2.5 either way: enough to refuse in a sentence what would swap, and nothing that fits with room to spare."""
    name, given, seeds, model = CASES[case]
    task = load_task(name)
    said = 8 * sum(task.memory(check_settings(name, task.settings, given), seeds, model).values())
    odesim.train(name, settings=given, seeds=1, model=model, steps=0)  # what is loaded once counts for nobody
    tracemalloc.start()
    odesim.train(name, settings=given, seeds=range(seeds), model=model, steps=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / 2.5 < said < 2.5 * peak


BEYOND = {
    "scan_snap": ("num_last", "num_common", "num_unique_per_next", "length", "batch"),
    "joma_gaussian": ("num_classes", "num_distinct"),
    "hierarchy_dag": ("vocabulary", "width", "mlp", "layers"),
    "committee": ("K", "M", "batch"),
    "corpus": ("vocabulary", "batch"),
    "markov": ("k", "length", "samples", "batch", "width"),
    "reversal": ("pairs", "vocabulary"),
    "dyck": ("k", "depth", "length", "test_length", "batch", "width", "mlp"),
    "hops": ("letters", "length", "batch", "width", "mlp"),
    "in_context": ("D", "N", "H", "batch"),
    "induction": ("V", "samples", "batch", "width"),
    "modular": ("p", "N"),
    "power_law": ("n", "batch"),
    "pcfg": ("layers", "batch", "width", "mlp"),
    "simsiam": ("n1", "n2", "batch"),
    "selection": ("N", "T", "d"),
    "next_token": ("K",),
    "single_location": ("d", "L", "batch"),
    "binary_chain": ("batch",),
    "quadratic": ("n",),
    "valley": (),
    "tokens": ("n", "d", "modes"),
    "flip_flop": ("instructions", "batch", "width", "mlp"),
    "composition": ("entries", "batch", "width", "mlp"),
    "counting": ("length", "batch", "width", "mlp"),
    "topics": ("T", "v", "longest", "documents", "batch"),
    "hierarchy_layers": ("vocabulary", "K1", "K2"),
    "joma_regression": ("M", "batch"),
}
LIGHT = ("quadratic", "valley")
"""Tasks of a few numbers a seed, of which 100000 fit."""


@pytest.mark.parametrize("name", TASKS)
def test_what_cannot_fit_is_refused(name, monkeypatch):
    """Sizes of 10^18 and 100000 seeds are one sentence, and no array is made before it."""
    task = load_task(name)
    monkeypatch.setattr("odesim.base.device.free_bytes", lambda: 10**9)
    monkeypatch.setattr(type(task), "make", lambda *_, **__: pytest.fail("it was made"))
    for setting in BEYOND[name]:
        with pytest.raises(ParamError, match=f"a training of {name} with these settings would take .* GB, most of it for"):
            odesim.train(name, settings={setting: 10**18})
    if name not in LIGHT:
        with pytest.raises(ParamError, match=f"100000 seeds of {name}"):
            odesim.train(name, seeds=range(100_000))


def test_recorded_rows_that_cannot_fit(monkeypatch):
    """Rows kept in memory are asked for before the first; with a folder they are not kept."""
    monkeypatch.setattr("odesim.base.device.free_bytes", lambda: 10**8)
    with pytest.raises(ParamError, match=r"1000000 saved times of .* numbers would take .* GB"):
        odesim.train("scan_snap", steps=10**6, save=10**6, observe=("c",))
