"""The task dyck: its sequences beside a stack, what is watched by loops, attention under which brackets cancel, and runs that differ."""

from functools import partial

import numpy as np
import pytest

import odesim
from odesim.lab.tasks.dyck import (
    TASK,
    attention_to_last,
    depths_of,
    draw_brackets,
    draw_sequences,
    imbalance,
    in_window,
    independent_balance,
    last_unmatched,
    of_closing,
    rights,
)
from odesim.lab.training.randomness import Drawn

K, D = 3, 4


def test_sequences_are_of_the_language() -> None:
    """A stack of each sequence by itself: what closes is what opened last, between depths 0 and D; half of the free choices open."""
    types, depths = draw_brackets(np.random.default_rng(1), 300, K, D, 30)
    last, free = last_unmatched(depths), []
    for b in range(300):
        stack: list[int] = []
        for t in range(30):
            if 0 < len(stack) < D:
                free.append(depths[b, t] > 0)
            if depths[b, t] > 0:
                stack.append(t)
                assert depths[b, t] == len(stack) <= D
            else:
                assert depths[b, t] == -len(stack) and types[b, t] == types[b, stack.pop()]
            assert last[b, t] == (stack[-1] if stack else -1)
    assert np.mean(free) == pytest.approx(0.5, abs=2 / np.sqrt(len(free)))


def test_tokens_and_targets() -> None:
    """A target is the bracket of the next token, which has its depth too; a token tells its depth; test sequences are others."""
    stream = Drawn((0, 3), partial(draw_sequences, k=K, D=D, length=12), batch=5)
    batch = stream(2)
    tokens, targets = batch["tokens"], batch["targets"]
    assert tokens.shape == targets.shape == (2, 5, 12) and np.all(tokens[..., 0] == 0) and tokens.max() <= 2 * K * D
    following = tokens[..., 1:] - 1
    np.testing.assert_array_equal(following % K + K * (following >= K * D), targets[..., :-1])
    types, depths = draw_brackets(np.random.default_rng(1), 3, K, D, 12)
    read = depths_of(1 + (depths < 0) * D * K + (np.abs(depths) - 1) * K + types, K, D)
    np.testing.assert_array_equal(read, depths)
    assert not np.array_equal(stream.test(5)["tokens"], tokens)


def test_what_is_watched_by_loops() -> None:
    """accuracy and last of random outputs and weights; where no bracket closes nothing counts."""
    rng = np.random.default_rng(3)
    batch = Drawn((0, 1), partial(draw_sequences, k=K, D=D, length=14), batch=4)(0)
    outputs, a = rng.standard_normal((2, 4, 14, 2 * K)), rng.random((2, 4, 2, 14, 14))
    for r in range(2):
        right, seen, at = [], [], np.zeros(14)
        for b in range(4):
            stack: list[int] = []
            for t in range(14):
                token = int(batch["tokens"][r, b, t])
                if token > K * D:
                    stack.pop()
                elif token:
                    stack.append(t)
                target = int(batch["targets"][r, b, t])
                if target >= K:
                    right.append(int(outputs[r, b, t, K:].argmax()) == target - K)
                    at[t] += right[-1]
                    seen.append(a[r, b, :, t, stack[-1]])
        assert of_closing(rights(outputs, batch["targets"], K), batch, K)[r] == pytest.approx(np.mean(right), rel=1e-14)
        np.testing.assert_array_equal(rights(outputs, batch["targets"], K).sum(axis=1)[r], at)
        assert attention_to_last(a, batch, K, D)[r] == pytest.approx(np.mean(seen, axis=0), rel=1e-13)


@pytest.mark.parametrize("width", [1, 2, 4, 14])
def test_the_best_of_a_window_by_loops(width: int) -> None:
    """A stack of the last brackets alone: where it is not empty its top closes, else one of k is guessed; 1 for the whole sequence."""
    batch = Drawn((0, 1), partial(draw_sequences, k=K, D=D, length=14), batch=4)(0)
    found = of_closing(in_window(batch, K, D, width), batch, K)
    for r in range(2):
        chances, at = [], np.zeros(14)
        for b, t in zip(*np.nonzero(batch["targets"][r] >= K), strict=True):
            stack: list[int] = []
            for token in batch["tokens"][r, b, max(t - width + 1, 1) : t + 1]:
                if token <= K * D:
                    stack.append(int(token - 1) % K)
                else:
                    stack[-1:] = []
            chances.append(1.0 if stack else 1 / K)
            at[t] += chances[-1]
            assert not stack or stack[-1] == batch["targets"][r, b, t] - K
        assert found[r] == pytest.approx(np.mean(chances), rel=1e-14) and (width < 14 or found[r] == 1)
        np.testing.assert_allclose(in_window(batch, K, D, width).sum(axis=1)[r], at, rtol=1e-14)


def test_brackets_that_cancel_have_no_imbalance() -> None:
    """Any weights of depths alone, and opposite values of matched brackets (of mean 0, as a norm leaves them): 0; alike values: 2."""
    rng = np.random.default_rng(4)
    V, n = 1 + 2 * K * D, K * D
    of_pair, value = rng.standard_normal((2, 1, V, n)), rng.standard_normal((2, 1, n, 6))
    value -= value.mean(axis=-1, keepdims=True)
    logits = np.concatenate([np.zeros((2, 1, V, 1)), of_pair, of_pair], axis=-1)
    start = np.zeros((2, 1, 1, 6))
    assert imbalance(logits, np.concatenate([start, value, -value], axis=2), K, D) == pytest.approx(0, abs=1e-15)
    assert imbalance(logits, np.concatenate([start, value, value], axis=2), K, D) == pytest.approx(2, rel=1e-14)


@pytest.mark.parametrize(("width", "alike"), [(5, True), (8, True), (5, False)])
def test_brackets_of_independent_directions(width: int, alike: bool) -> None:
    """400 draws of values, each query alike: mean and deviation within 4 standard errors; values of different lengths have more."""
    rng = np.random.default_rng(5)
    V, n = 1 + 2 * K * D, K * D
    value = rng.standard_normal((400, 1, V, width))
    value -= value.mean(axis=-1, keepdims=True)
    value /= np.linalg.norm(value, axis=-1, keepdims=True)
    if not alike:
        value *= rng.uniform(0.2, 1, (400, 1, V, 1))
    found = imbalance(np.zeros((400, 1, V, V)), value, K, D)
    mean, deviation = independent_balance(width, n)
    if alike:
        assert found.mean() == pytest.approx(mean, abs=4 * deviation / 400**0.5)
        assert found.std() == pytest.approx(deviation, rel=4 / 800**0.5)
    else:
        assert found.mean() > mean + 4 * deviation / 400**0.5


@pytest.mark.slow
def test_runs_differ_and_are_right() -> None:
    """Five seeds, on sequences of four times the length: without most attention on the last open bracket, by maps that differ.

    Each is more accurate than the last D brackets allow, by four standard errors of as many guesses. Matched brackets cancel more than
    those of independent directions, by four deviations. Two maps are less alike than each was to itself 100 steps before.
    """
    watched = ("accuracy", "last", "balance", "map")
    run = odesim.train("dyck", seeds=range(5), steps=1000, dtype="float32", save=11, observe=watched)
    seen = {name: rows[:, -1] for name, rows in run.observables.items() if name != "loss"}
    exact = TASK.make({s.name: s.default for s in TASK.settings}, seeds=range(5)).exact
    window, closings = exact["accuracy_window"], exact["closings"]
    assert np.all(seen["accuracy"] > window + 4 * np.sqrt(window * (1 - window) / closings)) and np.all(seen["last"] < 0.5)
    mean, deviation = independent_balance(run.config["width"], run.config["k"] * run.config["depth"])
    assert np.all(run.observables["balance"][:, 0] > mean - 4 * deviation) and np.all(seen["balance"] < mean - 4 * deviation)
    maps = run.observables["map"][:, -2:].reshape(10, -1)  # before and after, of each seed
    like = np.corrcoef(maps)
    assert like[1::2, 1::2][np.triu_indices(5, 1)].max() < like[range(0, 10, 2), range(1, 10, 2)].min()
