"""What is watched of a transformer, where a closed form says what must come out."""

import dataclasses
from itertools import product

import numpy as np
import pytest

from odesim.lab.networks.transformer import embedding_cosines
from odesim.lab.training.task import Observable
from tests.support.transformer_cases import SMALL, B, D, R, T, V, batch_for, make, start


def observe(model, params, name):
    (function,) = [o.function for o in model.observables if o.name == name]
    return function(params)


def uniform(model):
    """Parameters whose attention logits are all 0."""
    return {name: (0 * x if "query" in name else x) for name, x in start(model).items()}


ENTROPIES = [
    ("default", {}, np.log(np.arange(1, T + 1)).mean(), "query t sees t + 1 keys"),
    ("bidirectional", {}, np.log(T), "every query sees all"),
    ("bidirectional", {"log_weight": np.log(np.full((R, B, T), 3.0))}, np.log(3 * T), "every key stands for three"),
    ("bidirectional", {"log_weight": np.tile([-np.inf] * 2 + [0.0] * (T - 2), (R, B, 1))}, np.log(T - 2), "two keys are not attended"),
]


@pytest.mark.parametrize(("case", "entries", "value", "why"), ENTROPIES, ids=lambda x: x if isinstance(x, str) else "")
def test_uniform_attention(case, entries, value, why):
    """With equal logits the entropy is the mean of the logarithms of how many tokens a query sees, in every layer."""
    model = make(case)
    model = dataclasses.replace(model, watch=batch_for(model) | entries)
    np.testing.assert_allclose(observe(model, uniform(model), "attention_entropy"), np.full((R, 2), value), rtol=1e-12)  # rounding


def test_uniform_attention_of_35_tokens():
    """ln(35!) / 35 = 2.632, the level at which attention starts in Figs 6 and 8 of tian2023joma; half its last digit."""
    model = make("default")
    params, batch = uniform(model), batch_for(model)
    wide = {name: np.repeat(x, -(-35 // T), axis=2)[:, :, :35] if x.ndim == 3 else x for name, x in batch.items()}
    model = dataclasses.replace(model, watch=wide)
    np.testing.assert_allclose(observe(model, params, "attention_entropy"), 2.632, atol=5e-4)


def test_each_head_has_its_entropy():
    """That of -sum a ln a of its own weights, by loops; their mean is the entropy of the layer; rounding."""
    model = make("default")
    batch = batch_for(model)
    model = dataclasses.replace(model, watch=batch)
    params = start(model)
    heads = observe(model, params, "attention_entropy_heads")
    for layer, a in enumerate(model.forward(params, batch).attention):  # (R, B, H, T, T)
        for r in range(R):
            for h in range(a.shape[2]):
                rows = [-sum(x * np.log(x) for x in a[r, b, h, t] if x > 0) for b in range(B) for t in range(T)]
                assert heads[r, layer, h] == pytest.approx(np.mean(rows), rel=1e-12)
    np.testing.assert_allclose(heads.mean(axis=2), observe(model, params, "attention_entropy"), rtol=1e-14)


def test_weights_of_samples_count_in_the_entropy():
    """A sample of weight 0 does not count, one of weight 2 counts twice."""
    model = make("default")
    batch, counts = batch_for(model), np.array([2, 0, 1])
    repeated = dataclasses.replace(model, watch={name: np.repeat(x, counts, 1) for name, x in batch.items()})
    weighted = dataclasses.replace(model, watch=batch | {"weight": np.tile(counts, (R, 1))})
    params = start(model)
    ours, plain = (observe(m, params, "attention_entropy") for m in (weighted, repeated))
    np.testing.assert_allclose(ours, plain, rtol=1e-12)  # rounding


def test_embedding_cosines():
    """Rows (1, 0), (3, 4), (0, -2): cosines 3/5, 0, -4/5, so the mean is 7/15 and the largest 4/5; a row of zeros has 0."""
    mean, largest = embedding_cosines({"embedding": np.array([[[1.0, 0], [3, 4], [0, -2]], [[1.0, 0], [2, 0], [0, 0]]])})
    np.testing.assert_allclose(mean, [7 / 15, 1 / 3], rtol=1e-14)  # rounding
    np.testing.assert_allclose(largest, [4 / 5, 1], rtol=1e-14)


def test_stable_ranks():
    """A matrix of one row repeated has stable rank 1, the identity its size; there is one for every matrix."""
    model = make("default")
    params = start(model)
    names = [name for name, value in params.items() if value.ndim == 3]
    params["layer0.query"][:] = np.eye(D)
    params["embedding"][:] = np.arange(1, D + 1)
    ranks = observe(model, params, "stable_rank")
    assert ranks.shape == (R, len(names))
    np.testing.assert_allclose(ranks[:, names.index("layer0.query")], D, rtol=1e-12)  # rounding
    np.testing.assert_allclose(ranks[:, names.index("embedding")], 1, rtol=1e-12)


def test_norms_of_layers_and_heads():
    """Of the matrices of queries, keys and values, and of the columns that each head has of them; rounding."""
    model = make("default")
    params, d = start(model), D // SMALL["heads"]
    layers, heads = observe(model, params, "attention_norm"), observe(model, params, "attention_norm_heads")
    for r, i, (n, name) in product(range(R), range(2), enumerate(("query", "key", "value"))):
        W = params[f"layer{i}.{name}"][r]
        assert layers[r, i, n] == pytest.approx(np.linalg.norm(W), rel=1e-13)
        np.testing.assert_allclose(heads[r, i, n], [np.linalg.norm(W[:, d * h : d * h + d]) for h in range(2)], rtol=1e-13)
    # these columns are a head's: without its values a head adds nothing
    batch = batch_for(model)
    params["layer0.value"][:, :, d:] = params["layer0.value_bias"][:, d:] = 0
    mixed = model.forward(params, batch).tapes[0].mixed
    assert np.abs(mixed[..., d:]).max() == 0 and np.abs(mixed[..., :d]).max() > 0


def test_which_observables_there_are():
    """Attention is watched where there is a batch; a task's own observables come last; all have their dims after the seeds."""
    model = make("default")
    own = Observable("own", lambda p: p["embedding"][:, 0, 0])
    full = dataclasses.replace(model, watch=batch_for(model), extra=(own,))
    names = ["attention_entropy", "attention_entropy_heads", "embedding_cosine", "embedding_cosine_max", "stable_rank"]
    names += ["attention_norm", "attention_norm_heads", "own"]
    assert [o.name for o in full.observables] == names and [o.name for o in model.observables] == names[2:-1]
    for o in full.observables:
        value = o.function(start(model, dtype="float32"))
        assert value.shape[0] == R and value.ndim == 1 + len(o.dims) and value.dtype == "float32", o.name
    assert [o.costly for o in make("default", vocabulary=V).observables] == [False, False, True, True, True]
    assert [o.costly for o in make("default", vocabulary=5000).observables] == [True] * 5
