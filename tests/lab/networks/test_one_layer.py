"""The one-layer model: its forward pass against sequences written out, its gradients against differences, its seeds apart."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from odesim.base.arrays import Array
from odesim.base.errors import ParamError
from odesim.lab.networks.one_layer import YZ, distinct_attention, entropies
from tests.support.descent import loss_differences

K, S, M, R, B, T = 4, 7, 13, 3, 5, 9
PSI, WEIGHTS, TARGETS = np.array([0, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.4]), np.array([2, 12, 5, 7])
OPTIONS = ("normalize", "residual", "attn_include_query")
# every combination of options, for finite contexts and where it makes sense for infinite ones
CASES = [(*flags, samples) for *flags, samples in product((True, False), repeat=4) if samples or not flags[2]]


def table() -> Array:
    """P (K, S): no class has every token, two have as many as others do not."""
    P = np.random.default_rng(1).uniform(0.2, 1, (K, S))
    P[[0, 1, 2, 3, 3], [3, 5, 0, 1, 2]] = 0
    return P / P.sum(axis=1, keepdims=True)


def made(whole: bool = True, **options: Any) -> YZ:
    return YZ(table(), PSI, WEIGHTS, float(M), targets=TARGETS if whole else None, **options)


def numbers(model: YZ, samples: bool) -> tuple[dict[str, Array], dict[str, Array], Array]:
    """Parameters of R seeds, a batch, and its sequences (R, B, T) of tokens; no token of P = 0 occurs in its class."""
    rng = np.random.default_rng(2)
    params = {name: rng.normal(size=(R, *shape)) for name, shape in zip("YZ", model.shapes, strict=True)}
    classes = rng.integers(0, K, (R, B))
    sequences = np.array([[rng.choice(S, size=T, p=model.P[n]) for n in row] for row in classes])
    counts = [
        [np.bincount(s, minlength=S)[model.counted_tokens[n]] for s, n in zip(*row, strict=True)]
        for row in zip(sequences, classes, strict=True)
    ]
    return params, {"classes": classes, "counts": np.array(counts)} if samples else {}, sequences


def written_out(model: YZ, Y: Array, Z: Array, n: int, tokens: Array) -> float:
    """The loss of one sequence, position by position, as a transformer with one-hot embeddings computes it."""
    query = S + model.psi[n]
    keys = np.append(tokens, query) if model.attn_include_query else tokens
    weights = np.exp([Z[model.psi[n], l] for l in keys])
    x = sum(w * np.eye(len(Y))[l] for w, l in zip(weights / weights.sum(), keys, strict=True))
    if model.residual:
        x = x + np.eye(len(Y))[query]
    logits = (x / np.linalg.norm(x) if model.normalize else x) @ Y
    assert model.targets is not None
    return float(np.log(np.sum(np.exp(logits))) - logits[model.targets[n]])


@pytest.mark.parametrize("flags", list(product((True, False), repeat=3)), ids=str)
def test_counts_say_all(flags: tuple[bool, ...]) -> None:
    """The loss of counts is the loss of the sequences, token by token; 1e-13: rounding."""
    model = made(**dict(zip(OPTIONS, flags, strict=True)))
    params, batch, sequences = numbers(model, samples=True)
    found, _ = model.loss_and_gradients(params, batch)
    for r in range(R):
        each = [
            written_out(model, params["Y"][r], params["Z"][r], n, tokens)
            for n, tokens in zip(batch["classes"][r], sequences[r], strict=True)
        ]
        assert found[r] == pytest.approx(np.mean(each), rel=1e-13)


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "collapsed"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients(case: tuple[bool, ...], whole: bool) -> None:
    """Central differences of step 1e-5 give the gradient to 1e-8; of the last of K + 1 columns, that of each it stands for."""
    *flags, samples = case
    model = made(whole, **dict(zip(OPTIONS, flags, strict=True)))
    params, batch, _ = numbers(model, samples)
    _, gradients = model.loss_and_gradients(params, batch)
    for name, gradient in gradients.items():
        differences = loss_differences(model, params, batch, name)
        if name == "Y" and not whole:
            differences[..., -1] /= M - K
        np.testing.assert_allclose(gradient, differences, rtol=0, atol=1e-8 * np.abs(differences).max())


@pytest.mark.parametrize("samples", [True, False], ids=["samples", "population"])
def test_decorrelated(samples: bool) -> None:
    """Lemma 3, line by line: sum_b F (F^T F)^-1 onehot(n_b) e_b^T, F of the population; Z's gradient stays; 1e-12: rounding."""
    plain, other = made(), made(decoder="decorrelated")
    params, batch, sequences = numbers(plain, samples)
    _, ours = other.loss_and_gradients(params, batch)
    _, vanilla = plain.loss_and_gradients(params, batch)
    np.testing.assert_array_equal(ours["Z"], vanilla["Z"])
    for r in range(R):
        Y, Z = params["Y"][r], params["Z"][r]
        columns = [plain.P[n] * np.exp(Z[PSI[n]]) for n in range(K)]
        F = np.stack([c / np.linalg.norm(c) for c in columns], axis=1)
        G = F @ np.linalg.inv(F.T @ F)
        expected = np.zeros_like(Y)
        for b in range(B if samples else K):
            n, weight = (batch["classes"][r, b], 1 / B) if samples else (b, WEIGHTS[b])
            v = np.bincount(sequences[r, b], minlength=S) * np.exp(Z[PSI[n]]) if samples else columns[n]
            logits = v / np.linalg.norm(v) @ Y
            error = np.eye(M)[TARGETS[n]] - np.exp(logits) / np.exp(logits).sum()
            expected -= weight * np.outer(G[:, n], error)
        np.testing.assert_allclose(ours["Y"][r], expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_the_population_is_the_limit_of_contexts() -> None:
    """Counts in proportion to P give what no batch gives, each class once; 1e-14: rounding."""
    model = YZ(table(), PSI, np.full(K, 1 / K), float(M))
    params, _, _ = numbers(model, samples=False)
    proportional = np.take_along_axis(model.P, model.counted_tokens, axis=1) * 1e6
    batch = {"classes": np.tile(np.arange(K), (R, 1)), "counts": np.tile(proportional, (R, 1, 1))}
    one, two = model.loss_and_gradients(params, batch), model.loss_and_gradients(params, {})
    np.testing.assert_allclose(one[0], two[0], rtol=1e-14)
    for name in "YZ":
        np.testing.assert_allclose(one[1][name], two[1][name], rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("decoder", ["vanilla", "decorrelated"])
@pytest.mark.parametrize("samples", [True, False], ids=["samples", "population"])
def test_seeds_apart(dtype: str, decoder: str, samples: bool) -> None:
    """R seeds at once are each alone, bit for bit, and everything stays in its dtype."""
    model = made(decoder=decoder)
    params, batch, _ = numbers(model, samples)
    params = {name: a.astype(dtype) for name, a in params.items()}
    loss, gradients = model.loss_and_gradients(params, batch)
    assert loss.dtype == dtype and {g.dtype.name for g in gradients.values()} == {dtype}
    for r in range(R):
        one = {name: a[r : r + 1] for name, a in params.items()}
        alone, its = model.loss_and_gradients(one, {k: v[r : r + 1] for k, v in batch.items()})
        assert alone[0] == loss[r]
        for name in "YZ":
            np.testing.assert_array_equal(its[name][0], gradients[name][r])
        for watch in model.observables:
            found = watch.function(params)
            assert found.dtype == dtype and found.shape[0] == R and found.ndim == 1 + len(watch.dims)
            np.testing.assert_array_equal(watch.function(one)[0], found[r])


@pytest.mark.parametrize("dtype, gap", [("float64", 800.0), ("float32", 100.0)])
def test_far_logits(dtype: str, gap: float) -> None:
    """Where exp() overflows, losses are the gap itself, gradients finite: a token with z far above but no count, a wrong column."""
    model = made()
    params, batch, _ = numbers(model, samples=True)
    batch["counts"][:, :, 0] = 0
    params = {"Y": np.zeros_like(params["Y"], dtype), "Z": np.zeros_like(params["Z"], dtype)}
    params["Z"][:, :, model.counted_tokens[:, 0]] = gap
    zero, _ = model.loss_and_gradients({**params, "Z": 0 * params["Z"]}, batch)
    np.testing.assert_allclose(zero, np.log(M), rtol=1e-6)
    params["Y"][:, :, 0] = gap  # token 0 is no class's target
    loss, gradients = model.loss_and_gradients({**params, "Z": 0 * params["Z"]}, batch)
    assert np.all(loss >= gap)  # f sums to 1 at least
    for g in (*gradients.values(), *model.loss_and_gradients(params, batch)[1].values()):
        assert np.all(np.isfinite(g))


def test_entropies() -> None:
    """By the definition, row by row: of everything, of distinct tokens alone, and of no token at all."""
    P = np.array([[0.5, 0.2, 0.3, 0.0], [0.0, 0.4, 0.6, 0.0], [0.1, 0.0, 0.7, 0.2]])
    c = P * np.array([[1.0, 0.5, 2.0, 3.0]])
    for found, rows in ((entropies(c), c), (entropies(distinct_attention(c, P)), c * [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])):
        for h, row in zip(found, rows, strict=True):
            shares = row[row > 0] / row.sum() if row.sum() else np.ones(1)
            assert h == pytest.approx(-np.sum(shares * np.log(shares)), abs=1e-15)
    P[0, 0], P[1, 3], P[2, 3] = 0.0, 0.5, 0.0
    P[0, 3] = 0
    assert entropies(distinct_attention(P, P)).tolist() == [0.0, 0.0, 0.0]  # one distinct token or none


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a row": ({"P": table() * [[1], [1], [1.1], [1]]}, "row 2 of P must sum to 1, and is off by 0.1"),
    "p": ({"p": WEIGHTS * 2}, "p must sum to 1"),
    "negative": ({"P": np.where(np.arange(S) == 0, -1.0, table())}, "P must hold probabilities, not -1"),
    "not a number": ({"p": np.full(K, np.nan)}, "p must hold probabilities, not nan"),
    "flat": ({"P": table()[0]}, "P must be a table"),
    "psi": ({"psi": np.array([0, 0, 2, 2])}, "psi must use every query 0, 1, ..., its largest, not 0, 2"),
    "psi, short": ({"psi": PSI[:3]}, "psi must hold one number for each row of P (4)"),
    "M": ({"M": 3.0}, "M must be at least the number of classes, 4, not 3"),
    "targets": ({"targets": np.array([0, 1, 2, 13])}, "targets must be columns of Y, 0 to 12, not 0 to 13"),
    "decoder": ({"decoder": "decorelated"}, "did you mean 'decorrelated'"),
    "init": ({"init": "torsh"}, "did you mean 'torch'"),
    "torch": ({"init": "torch"}, "needs a column of Y for every token"),
    "dependent": ({"P": table()[[0, 1, 1, 3]], "decoder": "decorrelated"}, "linearly independent"),
    "support": ({"support": np.tile(np.arange(3), (K, 1))}, "support must hold every token"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong(case: str) -> None:
    """One sentence says what is wrong with the classes."""
    given, sentence = WRONG[case]
    with pytest.raises(ParamError) as caught:
        YZ(**{"P": table(), "psi": PSI, "p": WEIGHTS, "M": float(M), **given}).counted_tokens  # noqa: B018
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_no_query_in_an_infinite_context() -> None:
    """The query's share of an infinite context is 0: the population refuses the option."""
    model = made(attn_include_query=True)
    with pytest.raises(ParamError, match="needs finite contexts"):
        model.loss_and_gradients(numbers(model, True)[0], {})
