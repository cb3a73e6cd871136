"""The task induction: its sequences, what is watched by loops, its seeds, and that a head forms."""

from functools import partial
from math import log
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.errors import ParamError
from odesim.reference.data.drawn import Drawn
from odesim.reference.data.repeats import draw_repeats
from odesim.reference.tasks import load_task
from odesim.reference.tasks.induction import head_scores

TASK = load_task("induction")
DEFAULTS = {setting.name: setting.default for setting in TASK.settings}
SMALL: dict[str, Any] = {"N": 4, "V": 6, "batch": 5, "width": 4}


def test_sequences_ask_for_what_followed() -> None:
    """Tokens differ, the query is one of them, the answer follows it; every pair of query and place within 4 standard errors of alike."""
    tokens, answers, places = draw_repeats(np.random.default_rng(1), 6000, N=4, V=5).values()
    for row, answer, place in zip(tokens, answers, places, strict=True):
        assert len(set(row[:-1])) == 4 and row[place] == answer and row[place - 1] == row[-1]
    counts = np.bincount(tokens[:, -1] * 3 + places - 1, minlength=15)
    assert counts == pytest.approx(400, abs=4 * np.sqrt(400)) and counts.size == 15


def test_a_fixed_sample_stays() -> None:
    for samples in (0, 7):
        stream = Drawn((0, 3), partial(draw_repeats, N=4, V=6), batch=5, samples=samples)
        assert np.array_equal(stream(0)["tokens"], stream(1)["tokens"]) is (samples > 0)
        assert stream(0)["tokens"].shape == (2, samples or 5, 5)


def test_heads_by_loops() -> None:
    """Of random weights: the head of layer 1 that attends most to the place before the answer, of layer 2 from the query to it."""
    rng = np.random.default_rng(2)
    first, second = rng.random((2, 2, 3, 2, 5, 5))
    answer = rng.integers(1, 4, (2, 3))
    for r in range(2):
        previous = [np.mean([first[r, b, h, answer[r, b], answer[r, b] - 1] for b in range(3)]) for h in range(2)]
        answered = [np.mean([second[r, b, h, 4, answer[r, b]] for b in range(3)]) for h in range(2)]
        assert head_scores(first, second, answer)[r] == pytest.approx([max(previous), max(answered)], rel=1e-13)


def test_seeds_at_once_are_each_alone() -> None:
    """Three steps of two seeds have the bits of each alone."""
    asked: dict[str, Any] = {"settings": SMALL, "steps": 3}
    together = odesim.train("induction", seeds=(7, 1), **asked)
    for place, seed in enumerate((7, 1)):
        alone = odesim.train("induction", seeds=seed, **asked)
        for name, value in together.final.items():
            np.testing.assert_array_equal(value[place], alone.final[name][0], err_msg=name)


@pytest.mark.slow
def test_a_head_forms_after_a_plateau() -> None:
    """N = 16, V = 32: half of the time the loss is between ln V and ln N, at the end both layers attend and the loss is far below."""
    settings = {"N": 16, "V": 32, "lr": 0.001}
    run = odesim.train("induction", settings=settings, steps=2400, save=25, dtype="float32", observe=("loss_test", "heads"))
    loss, heads = run.observables["loss_test"][0], run.observables["heads"][0]
    assert np.all(loss[1:12] > log(16)) and np.all(loss[1:12] < log(32) + 0.02) and loss[-1] < 0.5 * log(16)
    assert np.all(heads[10] < 0.3) and np.all(heads[-1] > 0.4)


def test_too_small_a_vocabulary_is_refused() -> None:
    with pytest.raises(ParamError, match="N = 8 different tokens need a vocabulary of as many, not V = 5"):
        TASK.make(DEFAULTS | {"V": 5}, seeds=(0,))
