"""The task topics: its documents, the limit and the corrections of finite documents, the paper's experiment, its refusals."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import odesim
from odesim.lab.tasks import load_task
from odesim.lab.tasks.topics import Laws, parts

# Moments of masked documents that are read again and again, over all masks: the values that training on them ends at.


def moments(words: np.ndarray, lengths: np.ndarray, n: int, p_m: float, p_c: float, p_r: float) -> tuple[np.ndarray, np.ndarray]:
    """E e_x A^T and E A A^T (n + 1, n + 1) for x a masked word of documents (D, longest) and A the mean of what is shown there.

    Of a word w that may be masked, kappa e_w + r is shown in the mean; of x itself, p_c e_x + q. Each place counts alike.
    """
    d, D, N = n + 1, len(words), lengths[:, None].astype(float)
    here = np.arange(words.shape[1]) < lengths[:, None]
    counts = np.bincount((np.arange(D)[:, None] * d + words)[here], minlength=D * d).reshape(D, d).astype(float)
    any_word, mask = np.r_[0, np.full(n, 1 / n)], np.eye(d)[0]
    kappa, q = 1 - (1 - p_c) * p_m, p_r * any_word + (1 - p_c - p_r) * mask
    r = p_m * q

    def second(c: np.ndarray, keep: float, rest: np.ndarray) -> np.ndarray:
        """sum_w c_w (keep e_w + rest)(keep e_w + rest)^T."""
        return np.asarray(keep**2 * np.diag(c) + keep * (np.outer(c, rest) + np.outer(rest, c)) + c.sum() * np.outer(rest, rest))

    weight, mean = 1 / (N * lengths.sum()), kappa * counts + N * r  # of a place over N; what a document shows, N times
    shares = counts / N
    all_places, one = (counts * weight).sum(axis=0), (shares * weight).sum(axis=0)
    change = (p_c - kappa) * shares + q - r  # of what is shown when the place itself is masked, in the mean over places
    cross = (counts * weight).T @ mean + (p_c - kappa) * np.diag(all_places) + np.outer(all_places, q - r)
    squares = (mean * weight).T @ mean + (mean * weight).T @ change + (change * weight).T @ mean + second(one, p_c - kappa, q - r)
    drawn = np.diag(((mean + change) * weight).sum(axis=0)) - second(all_places, kappa, r) + second(one, kappa, r) - second(one, p_c, q)
    return cross, squares + drawn


def end_of_training(words: np.ndarray, lengths: np.ndarray, n: int, p_m: float, p_c: float, p_r: float) -> np.ndarray:
    """W_V (n + 1, n + 1) of least loss under uniform attention."""
    cross, squares = moments(words, lengths, n, p_m, p_c, p_r)
    return np.asarray(np.linalg.solve(squares, cross.T).T)


TASK = load_task("topics")
DEFAULTS = {setting.name: setting.default for setting in TASK.settings}


def made(seeds=(0,), **values):
    """The experiment of these settings."""
    return TASK.make(DEFAULTS | values, seeds=seeds)


def test_documents_are_what_they_are_said_to_be():
    """Topics and words of sets are uniform, masks have their three kinds: within 4 standard errors of 2000 documents of 40 words."""
    laws, rng = Laws(5, 3, 2, 0.2, 0.3, 0.1), np.random.default_rng(1)
    words = laws.words(rng, 2000, 40)
    shown, masked = laws.mask(rng, words)
    topics = (words - 1) // 3
    assert all(len(set(row)) == 2 for row in topics) and words.min() == 1 and words.max() == 15
    sets = np.bincount(np.unique(np.sort(topics, axis=1)[:, [0, -1]], axis=0, return_inverse=True)[1], minlength=10)
    assert sets == pytest.approx(200, abs=4 * np.sqrt(2000 * 0.1 * 0.9))
    n = masked.sum()
    assert masked.mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / masked.size)) and np.array_equal(shown[~masked], words[~masked])
    for found, want in (((shown == 0)[masked], 0.6), ((shown == words)[masked], 0.3 + 0.1 / 15)):
        assert found.mean() == pytest.approx(want, abs=4 * np.sqrt(want * (1 - want) / n))


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_proportions_of_dirichlet(alpha):
    """Two words of a document have the same topic with probability (alpha + 1) / (T alpha + 1); 4 standard errors of 8000 documents."""
    words = Laws(10, 3, 1, 0.2, 0.3, 0.1, "dirichlet", alpha).words(np.random.default_rng(2), 8000, 2)
    same = np.ptp((words - 1) // 3, axis=1) == 0
    want = (alpha + 1) / (10 * alpha + 1)
    assert same.mean() == pytest.approx(want, abs=4 * np.sqrt(want * (1 - want) / 8000))


@pytest.mark.parametrize(
    ("values", "fixed"), [({}, False), ({"documents": 30}, False), ({"documents": 30, "masks": "once"}, True)], ids=["new", "read", "once"]
)
def test_what_is_drawn_once(values, fixed):
    """A batch does not depend on earlier ones. 30 documents with masks drawn once have 30 contexts, in any number of batches."""
    stream = made(**values).stream
    assert all(np.array_equal(a, b) for a, b in zip(stream(7).values(), stream(7).values(), strict=True))
    seen = {row.tobytes() for i in range(8) for row in stream(i)["keys"][0]}
    assert (len(seen) <= 30) is fixed


@pytest.mark.slow
def test_infinite_documents_descend_as_topics_full():
    """The discrete map of topics.full, from the seed's start: rounding over 40 steps."""
    found = odesim.compare(
        "topics.full", task="topics", settings={"contexts": "infinite", "init_KQ": 0.3, "T": 3, "v": 2}, map="discrete", steps=40
    )
    assert all(row["sup"] < 1e-13 for row in found.table())


@pytest.mark.slow
def test_symmetric_starts_follow_topics_reduced():
    """16 numbers: within a fiftieth of the largest over 400 steps of rate 1, that of Euler's method."""
    settings = {"contexts": "infinite", "init": "symmetric", "init_V": 0.3, "init_KQ": 0.3}
    found = odesim.compare("topics.reduced", task="topics", settings=settings, steps=400)
    assert len(found.table()) == 10 and all(row["relative_l2"] < 0.02 for row in found.table())


def words_alone(**settings: Any) -> float:
    """a_w, how much values copy the shown word, after 2000 steps of rate 4 under uniform attention; the mean of 2 seeds."""
    run = odesim.train("topics", settings={"lr": 4.0, "init_KQ": 0.0, **settings}, steps=2000, save=2, seeds=range(2), observe=("W_V",))
    return float(parts(run.observables["W_V"], 4)["w"][:, -1].mean())


@pytest.mark.slow
@pytest.mark.parametrize("p_c", [0.1, 0.3])
def test_a_finite_document_leaks_the_shown_word(p_c):
    """a_w goes to p_c / (1 - m0), whatever the length; a batch of 40 leaves .02. Without masked places in the context it stays 0."""
    assert words_alone(p_c=p_c) == pytest.approx(p_c / (1 - 0.15 * (0.9 - p_c)), abs=0.02)
    assert words_alone(p_c=p_c, keys="unmasked") == pytest.approx(0, abs=0.02)


def test_moments_of_read_documents_by_all_masks():
    """Two documents of two and three of three words: every way to show them, with its probability; rounding."""
    n, p_m, p_c, p_r = 3, 0.4, 0.3, 0.2
    words, lengths = np.array([[1, 3, 9], [2, 2, 1]]) % 4, np.array([2, 3])
    cross, squares = np.zeros((4, 4)), np.zeros((4, 4))
    ways = [(False, 0, 1 - p_m), (True, 0, p_m * p_c), *((True, x, p_m * p_r / n) for x in (1, 2, 3)), (True, 4, p_m * (1 - p_c - p_r))]
    for document, length in zip(words, lengths, strict=True):
        for chosen in product(ways, repeat=length):
            shown = [word if what == 0 else what % 4 for word, (_, what, _) in zip(document, chosen, strict=False)]
            A = np.bincount(shown, minlength=4) / length
            for word, (masked, _, _) in zip(document, chosen, strict=False):
                weight = masked * np.prod([p for _, _, p in chosen]) / p_m / lengths.sum()
                cross[word] += weight * A
                squares += weight * np.outer(A, A)
    for found, want in zip(moments(words, lengths, n, p_m, p_c, p_r), (cross, squares), strict=True):
        np.testing.assert_allclose(found, want, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(("documents", "recorded", "spread"), [(2000, 0.0711, 0.0096), (20000, 0.1097, 0.0019)])
def test_documents_that_are_read_again_bias_the_values(documents, recorded, spread):
    """a_w lies below p_c / (1 - m0) = .1136: it is that of least loss on the documents, over all masks.

    The mean over the last 2000 of 4000 steps, whose deviation is .002, is beside it; and it beside the mean of other documents, by four of
    its deviations.
    """
    settings: dict[str, Any] = {"T": 10, "v": 10, "p_c": 0.1, "lr": 20.0, "init_KQ": 0.0, "documents": documents}
    run = odesim.train("topics", settings=settings, steps=4000, save=81, observe=("W_V",))
    found = parts(run.observables["W_V"][:, 40:], 10)["w"].mean()
    words, lengths = made(**settings).stream.fixed[0]
    least = end_of_training(words, lengths, 100, 0.15, 0.1, 0.1)
    want = float(parts(least[None, None], 10)["w"][0, 0])
    assert found == pytest.approx(want, abs=0.006) and want == pytest.approx(recorded, abs=4 * spread)


@pytest.mark.slow
def test_sgd_shows_two_stages():
    """Norms of values and keys at steps 0, 50 and 1600 in another program of the experiment, of other draws: 2 % and 8 %."""
    settings = {"T": 10, "v": 10, "p_c": 0.1, "documents": 2000, "lr": 20, "init_V": 0.01, "init_KQ": 0.01}
    run = odesim.train("topics", settings=settings, steps=1600, save=33, observe=("norm_W_V", "norm_W_K"))
    assert run.observables["norm_W_V"][0, [0, 1, 32]] == pytest.approx([1.01, 3.75, 4.2], rel=0.02)
    assert run.observables["norm_W_K"][0, [0, 1, 32]] == pytest.approx([1.01, 1.05, 2.07], rel=0.08)
