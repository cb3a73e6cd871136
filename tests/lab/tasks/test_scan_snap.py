"""The task scan_snap: its tables and contexts, and what it refuses."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from odesim.base.errors import ParamError
from odesim.lab.tasks.scan_snap import BLOCK, BUCKETS, TASK, TokenCounts, official_weights
from odesim.lab.training.randomness import TorchGenerator, generators
from tests.support.descent import DEFAULTS, descend, scan_snap, start, watched
from tests.support.matrix import slow_but

MEDIUM: dict[str, Any] = {"num_next_per_last": 2, "init": "torch"}

SIZES: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {  # settings: K, Q, S, M by tian2023scan's generator
    "Syn-Small": ({}, (2, 2, 30, 34)),
    "Syn-Medium, 10 queries": ({"num_last": 10, **MEDIUM}, (20, 10, 210, 240)),
    "tokens of a query": ({"num_last": 3, "num_next_per_last": 2, "num_common_per_last": 4}, (6, 3, 82, 91)),
    "nothing in common": ({"num_common": 0, "num_unique_per_next": 3}, (2, 2, 6, 10)),
    "all in common": ({"num_unique_per_next": 0}, (2, 2, 10, 14)),
}


@pytest.mark.parametrize("case", SIZES)
def test_generator(case: str) -> None:
    """Sizes by the formula; each class has its own tokens, its query's and the common ones, the last weighing a tenth to a whole."""
    values, (K, Q, S, M) = SIZES[case]
    run = scan_snap(**values)
    P, psi, settings = run.exact["P"], run.exact["psi"], run.config
    assert P.shape == (K, S) and psi.max() + 1 == Q and run.exact["M"] == M
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-15)
    assert psi.tolist() == [n // settings["num_next_per_last"] for n in range(K)]
    classes = (P > 0).sum(axis=0)
    common, per_last, unique = (settings[f"num_{name}"] for name in ("common", "common_per_last", "unique_per_next"))
    assert classes.tolist() == [K] * common + [settings["num_next_per_last"]] * per_last * Q + [1] * unique * K
    if unique == 10 and common:
        np.testing.assert_allclose(P[-1, -10:] / P[-1, 0], np.arange(1, 11) / 10, rtol=1e-14)
    params = start(run)
    assert params["Y"].shape == (1, S, M) and params["Z"].shape == (1, Q, S)
    bound = M**-0.5
    spread = [float(np.abs(a).max()) for a in params.values()]
    assert spread == [0, 0] if settings["init"] == "zero" else all(0.9 * bound < a <= bound for a in spread)


def test_published_probabilities() -> None:
    """Syn-Small's as they are printed: common tokens 0.064516 each, distinct ones 0.0064516 to 0.064516."""
    (row, _) = scan_snap().exact["P"]
    assert row[0] == pytest.approx(0.064516, abs=5e-7)  # the last digit
    assert row[10] == pytest.approx(0.0064516, abs=5e-8) and row[19] == pytest.approx(row[0], rel=1e-14)


DISTRIBUTIONS = {
    "Syn-Small": scan_snap().exact["P"][0, :20],
    "one token": np.array([1.0]),
    "no token fits": np.full(BUCKETS * 2, 0.5 / BUCKETS),  # every draw is made again
    "thirds": np.full(3, 1 / 3),
    "rare": np.array([0.5 / BUCKETS, 1.5 / BUCKETS, 1 - 2 / BUCKETS]),
    "none of one": np.array([0.25, 0.0, 0.75]),
}


@pytest.mark.parametrize("case", DISTRIBUTIONS)
def test_draws(case: str) -> None:
    """Counts of two million tokens have P's distribution, by chi-square, neither worse nor better than one run in ten thousand."""
    P = DISTRIBUTIONS[case]
    counts = TokenCounts(P).counts(np.random.default_rng(3), 20, 100_000)
    assert np.all(counts.sum(axis=1) == 100_000) and np.all(counts[:, P == 0] == 0)
    total = counts.sum(axis=0)
    if len(P) > 1000:  # alike: a few large bins
        total, P = total.reshape(64, -1).sum(axis=1), P.reshape(64, -1).sum(axis=1)
    if len(P) > 1:
        assert 1e-4 < chisquare(total[P > 0], P[P > 0] * total.sum()).pvalue < 1 - 1e-4


def test_contexts_are_independent() -> None:
    """Classes are uniform and counts of a context multinomial: mean and covariance within 5 standard errors."""
    run = scan_snap(num_last=3, batch=1000, length=51)
    batches = [run.stream(i) for i in range(10)]
    classes = np.concatenate([b["classes"][0] for b in batches])
    counts = np.concatenate([b["counts"][0] for b in batches])
    assert 1e-4 < chisquare(np.bincount(classes)).pvalue < 1 - 1e-4
    for n in range(3):
        own = counts[classes == n] - 50 * (p := run.exact["P"][n][run.exact["P"][n] > 0])
        expected = 50 * (np.diag(p) - np.outer(p, p))
        variances = np.diag(expected)
        assert np.all(np.abs(own.mean(axis=0)) < 5 * np.sqrt(variances / len(own)))
        error = np.sqrt((np.outer(variances, variances) + expected**2) / len(own))  # of a covariance of nearly normal numbers
        assert np.all(np.abs(own.T @ own / len(own) - expected) < 5.5 * error)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_batch_is_the_seeds_and_the_iterations(dtype: str) -> None:
    """Whatever was drawn before, and by whatever other seeds: the same bits."""
    run = scan_snap(seeds=(5, 1, 8), dtype=dtype, num_last=3)
    order = (BLOCK + 3, 2, BLOCK - 1, BLOCK, 3 * BLOCK, 0, BLOCK + 3)
    for i in order:
        batch = run.stream(i)
        assert batch["classes"].shape == (3, 128) and batch["counts"].shape == (3, 128, 20)
        assert batch["counts"].dtype == dtype and np.all(batch["counts"].sum(axis=-1) == 127)
        alone = scan_snap(seeds=(1,), dtype=dtype, num_last=3).stream(i)
        for name in batch:
            np.testing.assert_array_equal(alone[name][0], batch[name][1])
            assert not np.array_equal(batch[name][0], batch[name][1])
    assert not np.array_equal(run.stream(0)["counts"], run.stream(1)["counts"])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_official_batch_is_the_seed_s_and_the_iteration_s(dtype: str) -> None:
    """As those of numpy's generator; the start takes its numbers from torch's generator, whether it is used or not."""
    given: dict[str, Any] = {"rng": "official", "num_last": 3, "length": 9, "batch": 6, "dtype": dtype}
    run = scan_snap(seeds=(5, 1), **given)
    alone = [scan_snap(seeds=(1,), init="torch", **given).stream(i) for i in range(5)]
    for i in (3, 0, 1, 1, 4, 2):
        batch = run.stream(i)
        assert batch["counts"].dtype == dtype and batch["counts"].shape == (2, 6, 20) and np.all(batch["counts"].sum(axis=-1) == 8)
        for name in batch:
            np.testing.assert_array_equal(alone[i][name][0], batch[name][1])
            assert not np.array_equal(batch[name][0], batch[name][1])


def test_official_contexts_have_the_table_s_distribution() -> None:
    """Classes are uniform and tokens have P, by chi-square; the probabilities of torch's float32 are P to its rounding."""
    run = scan_snap(rng="official", num_last=2, num_common_per_last=4, batch=4000, length=51)
    batch, P = run.stream(0), run.exact["P"]
    assert 1e-4 < chisquare(np.bincount(batch["classes"][0])).pvalue < 1 - 1e-4
    for n, row in enumerate(P):
        counts = batch["counts"][0][batch["classes"][0] == n].sum(axis=0)
        assert 1e-4 < chisquare(counts, row[row > 0] * counts.sum()).pvalue < 1 - 1e-4
    np.testing.assert_allclose(official_weights(14, 10), P[0][P[0] > 0], rtol=2e-7)


@pytest.mark.parametrize("flag", ["normalize", "residual"])
def test_official_start(flag: str) -> None:
    """One layer of M inputs and outputs for Y, transposed, then one for Z, of which each query has a row."""
    options: dict[str, Any] = {flag: True}
    run = scan_snap(seeds=(4, 2), rng="official", init="torch", num_last=3, **options)
    first, M, rows = start(run), int(run.exact["M"]), 40 + 3 * (flag == "residual")
    torch = TorchGenerator(2 + 2)
    decoder, attention = (torch.uniform(-(M**-0.5), M**-0.5, (M, M)) for _ in range(2))
    np.testing.assert_array_equal(first["Y"][1], decoder[:, :rows].T)
    np.testing.assert_array_equal(first["Z"][1], attention[40:43, :rows])


FIRST = [(3, "adam", "float32")]
ROWS = [(last, optimizer, dtype) for last, optimizer in ((3, "sgd"), (3, "adam"), (10, "sgd")) for dtype in ("float64", "float32")]


@pytest.mark.parametrize(("last", "optimizer", "dtype"), slow_but(ROWS, FIRST, several=True))
def test_seeds_train_apart(last: int, optimizer: str, dtype: str) -> None:
    """Seeds trained at once end with the bits of each alone, in their dtype; three of 10 queries are more than are computed at once."""
    values: dict[str, Any] = {"num_last": last, **MEDIUM, "optimizer": optimizer, "dtype": dtype}
    losses, params = descend(scan_snap(seeds=(3, 9, 4), **values), 12, dtype)
    for r, seed in enumerate((3, 9, 4)):
        its, own = descend(scan_snap(seeds=(seed,), **values), 12, dtype)
        np.testing.assert_array_equal(its[:, 0], losses[:, r])
        for name in "YZ":
            assert own[name].dtype == params[name].dtype == dtype
            np.testing.assert_array_equal(own[name][0], params[name][r])


@pytest.mark.parametrize("flag", ["residual", "attn_include_query"])
def test_a_query_of_its_own(flag: str) -> None:
    """An option about the query gives it rows of Y and Z, which train; no System describes that."""
    options: dict[str, Any] = {flag: True}
    run = scan_snap(**options)
    assert run.theory == {} and scan_snap(normalize=False).theory == {}
    losses, params = descend(run, 20)
    assert params["Y"].shape == (1, 32, 34) and np.all(np.abs(params["Y"][:, 30:]).max(axis=-1) > 0.01) and losses[-1] < losses[0] / 2
    assert (np.abs(params["Z"][:, [0, 1], [30, 31]]).min() > 1e-3) == (flag == "attn_include_query")
    assert np.all(watched(run, "c", params)[..., 30:] == 0)


P = [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no tokens": ({"num_common": 0, "num_unique_per_next": 0}, "contexts have no tokens to hold"),
    "M alone": ({"M": np.array(40.0)}, "M has no meaning without P"),
    "names alone": ({"tokens": "a\nb"}, "tokens has no meaning without P"),
    "names": ({"P": P, "tokens": "a\nb"}, "tokens has 2 names, and P has 3 columns"),
    "no seed": ({"seeds": ()}, "needs one seed at least"),
    "seeds": ({"P": P, "seeds": (0, 1)}, "one seed is all there is, not 2"),
    "batch": ({"P": P, "batch": 5}, "batch has no meaning where P is given"),
    "generator": ({"P": P, "rng": "official"}, "rng has no meaning where P is given"),
    "torch": ({"P": P, "init": "torch"}, "init must be zero where P is given"),
    "query": ({"P": P, "attn_include_query": True}, "needs finite contexts"),
    "row": ({"P": [[0.5, 0.5], [0.5, 0.6]]}, "row 1 of P must sum to 1, and is off by 0.1"),
    "negative": ({"P": [[0.5, 0.5], [1.5, -0.5]]}, "P must hold probabilities, not -0.5"),
    "flat": ({"P": [0.5, 0.5]}, "P must be a table"),
    "psi": ({"P": P, "psi": [0, 2]}, "psi must use every query"),
    "psi, broken": ({"P": P, "psi": [0, 0.5]}, "psi must hold whole numbers"),
    "psi, negative": ({"P": P, "psi": [0, -1]}, "psi must use every query"),
    "psi, long": ({"P": P, "psi": [0, 1, 1]}, "psi must hold one number for each row of P (2)"),
    "p": ({"P": P, "p": [0.5, 0.4]}, "p must sum to 1"),
    "M": ({"P": P, "M": 1.5}, "M must be at least the number of classes, 2, not 1.5"),
    "M, two": ({"P": P, "M": [5, 6]}, "M must be one number"),
    "dependent": ({"P": [[0.5, 0.5], [0.5, 0.5]], "decoder": "decorrelated"}, "linearly independent"),
    "model": ({"model": "zy"}, "no model 'zy' in scan_snap; choose from yz"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong(case: str) -> None:
    """One sentence for settings that do not go together."""
    values, sentence = WRONG[case]
    others = {"seeds": (0,), **{name: values[name] for name in ("seeds", "model") if name in values}}
    with pytest.raises(ParamError) as caught:
        TASK.make({**DEFAULTS, **{k: v for k, v in values.items() if k not in others}}, **others)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_given_defaults() -> None:
    """P alone: a query each, equal probabilities, and all tokens different; the batch is the population's, config plain data."""
    run = scan_snap(P=np.array(P))
    assert run.exact["psi"].tolist() == [0, 1] and run.exact["p"].tolist() == [0.5, 0.5] and run.exact["M"] == 7
    assert run.stream(3) == {} and run.config["P"] == P and run.config["M"] is None
    assert set(run.theory) == {"scan_snap.full"} and run.steps == 100
    assert [set(scan_snap(num_common_per_last=n).theory) for n in (0, 1)] == [
        {"scan_snap.full", "scan_snap.symmetric"},
        {"scan_snap.full"},
    ]
    assert [set(scan_snap(decoder="decorrelated", num_common_per_last=n).theory) for n in (0, 1)] == [
        {"scan_snap.full_decorrelated", "scan_snap.reduced_symmetric"},
        {"scan_snap.full_decorrelated"},
    ]


@pytest.mark.parametrize("text", ["is\nof\nin", "token,class\nis,65\nof,38\nin,40\n", "\nis\n\nof \nin"])
def test_tokens_have_names(text: str) -> None:
    """The first cell of each line, with or without a heading, one a column of P; the settings that make a training stay the same."""
    assert np.shape(P)[1] == 3
    run = scan_snap(P=np.array(P), tokens=text)
    assert run.labels == {"l": ("is", "of", "in")} and run.config == scan_snap(P=np.array(P)).config


def test_generators_differ_by_purpose() -> None:
    """Start and contexts of one seed come from different streams."""
    one, two = (generators((0,), purpose)[0].random() for purpose in (0, 1))
    assert one != two
