"""Laws of the transformer: its gradient, its masks, its weights, and what may change nothing."""

import re

import numpy as np
import pytest

from odesim.base.errors import ParamError
from odesim.lab.networks.transformer import Transformer, params_of_layer
from odesim.lab.training.randomness import generators
from tests.support.slopes import check_gradients
from tests.support.transformer_cases import CASES, EXTRAS, SMALL, B, D, R, T, V, batch_for, make, start


def same(ours, theirs, what=""):
    """Equal but for rounding: sums of a few dozen numbers near 1, in another order."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13, err_msg=what)


ALONE_AND_TOGETHER = [(case, extras) for case in CASES for extras in EXTRAS if case == "default" or extras in ("plain", "both")]


@pytest.mark.first(5)
@pytest.mark.parametrize(("case", "extras"), ALONE_AND_TOGETHER)
def test_gradient(case, extras):
    """Every parameter's gradient has the slopes of the loss, under every option and batch entry."""
    model = make(case)
    params, batch = start(model), batch_for(model, EXTRAS[extras])
    loss, g = model.loss_and_gradients(params, batch)
    assert list(g) == list(params) == list(model.groups) and (loss > 0).all()
    assert all(g[name].shape == params[name].shape for name in params)
    np.testing.assert_array_equal(loss, model.loss_of(params, batch))
    check_gradients(lambda p: model.loss_of(p, batch), params, g)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_seeds_together_are_seeds_alone(case, dtype):
    """Three seeds at once have the bits of each alone, in start, loss and gradients; no dtype changes on the way."""
    model, seeds = make(case), (4, 0, 9)
    params, batch = start(model, seeds, dtype), batch_for(model, EXTRAS["both"], R=3)
    loss, g = model.loss_and_gradients(params, batch)
    assert {loss.dtype, *(x.dtype for x in params.values()), *(x.dtype for x in g.values())} == {np.dtype(dtype)}
    for r, seed in enumerate(seeds):
        own = start(model, (seed,), dtype)
        loss_alone, g_alone = model.loss_and_gradients(own, {name: x[r : r + 1] for name, x in batch.items()})
        assert loss_alone[0] == loss[r]
        for name in params:
            np.testing.assert_array_equal(own[name][0], params[name][r], err_msg=name)
            np.testing.assert_array_equal(g_alone[name][0], g[name][r], err_msg=name)


def test_seeds_together_at_a_real_size():
    """The same at a size where the products are blocked and the elementwise work comes in slabs."""
    model = Transformer(vocabulary=211, width=36, layers=1, mlp=131, heads=3, at="all", positions=17)
    params, batch = model.initial(generators(range(3), 0), "float32"), batch_for(model, R=3, B=37, T=17)
    loss, g = model.loss_and_gradients(params, batch)
    for r in range(3):
        one = slice(r, r + 1)
        loss_alone, g_alone = model.loss_and_gradients({n: x[one].copy() for n, x in params.items()}, {n: x[one] for n, x in batch.items()})
        assert loss_alone[0] == loss[r]
        for name in g:
            np.testing.assert_array_equal(g_alone[name][0], g[name][r], err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_float32_is_near_float64(case):
    """float32's gradients are float64's to a few hundred roundings of the largest entry."""
    model = make(case)
    params, batch = start(model), batch_for(model)
    exact = model.loss_and_gradients(params, batch)[1]
    g = model.loss_and_gradients({name: x.astype("float32") for name, x in params.items()}, batch)[1]
    largest = max(np.abs(x).max() for x in exact.values())
    for name, x in exact.items():
        np.testing.assert_allclose(g[name], x, atol=300 * 6e-8 * largest, err_msg=name)


def test_the_hierarchy_block_by_hand():
    """y = LN1(a + x), x' = LN2(W2 relu(W1 y + b1) + b2 + y), a linear head at the last position: a loop over samples."""
    model = make("hierarchy")
    params, batch = start(model), batch_for(model)
    run = model.forward(params, batch)

    def normed(x, gain, shift):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gain + shift

    for r, b in np.ndindex(R, B):
        p = {name: value[r] for name, value in params.items()}
        x = p["embedding"][batch["tokens"][r, b]]
        for i in range(model.layers):
            w = params_of_layer(p, f"layer{i}.")
            logits = (x @ w["query"]) @ (x @ w["key"]).T / np.sqrt(D)
            weights = np.tril(np.exp(logits))
            a = weights / weights.sum(1, keepdims=True) @ (x @ w["value"])
            y = normed(a + x, w["norm1_gain"], w["norm1_shift"])
            hidden = np.maximum(y @ w["up"] + w["up_bias"], 0)
            x = normed(hidden @ w["down"] + w["down_bias"] + y, w["norm2_gain"], w["norm2_shift"])
            same(run.attention[i][r, b, 0], weights / weights.sum(1, keepdims=True))
            same(run.hidden[i][r, b], hidden)
        same(run.outputs[r, b, 0], x[-1] @ p["head"] + p["head_bias"])


def test_shapes_of_a_pass():
    """A pass gives back every layer: attention (R, B, H, T, T), hidden (R, B, T, mlp)."""
    model = make("default")
    run = model.forward(start(model), batch_for(model))
    assert run.outputs.shape == (R, B, 1, V)
    assert [a.shape for a in run.attention] == 2 * [(R, B, 2, T, T)]
    assert [h.shape for h in run.hidden] == 2 * [(R, B, T, 9)]


@pytest.mark.parametrize("case", ["default", "hierarchy", "masked", "bidirectional"])
def test_what_is_not_attended_has_no_influence(case):
    """Other tokens of weight 0 change no bit of the loss and no gradient but their own (none)."""
    model = make(case)
    unseen = np.arange(T) < np.array([[1, 2, 3], [2, 1, 4]])[..., None]
    params, batch = start(model), batch_for(model) | {"log_weight": np.where(unseen, -np.inf, 0.0)}
    if model.at == "given":  # outputs there count for what they are; here none is read
        batch["positions"] = np.where(np.take_along_axis(unseen, np.maximum(batch["positions"], 0), 2), -1, batch["positions"])
    other = batch | {"tokens": np.where(unseen, (batch["tokens"] + 1) % V, batch["tokens"])}
    (loss, g), (loss_other, g_other) = model.loss_and_gradients(params, batch), model.loss_and_gradients(params, other)
    np.testing.assert_array_equal(loss, loss_other)
    for name in g:
        np.testing.assert_allclose(g[name], g_other[name], rtol=1e-12, atol=1e-16, err_msg=name)  # sums of a table's rows in another order
    assert (model.loss_of(params, {n: x for n, x in other.items() if n != "log_weight"}) != loss).all()


@pytest.mark.parametrize("causal", [True, False])
def test_padded_is_shorter(causal):
    """Right padding gives the loss and the gradient of the sequence without it."""
    model = make("masked", causal=causal, positions=0)
    params, batch = start(model), batch_for(model)
    longer = batch | {"tokens": np.pad(batch["tokens"], ((0, 0), (0, 0), (0, 3)), constant_values=2)}
    longer["log_weight"] = np.broadcast_to(np.where(np.arange(T + 3) >= T, -np.inf, 0.0), (R, B, T + 3))
    (loss, g), (loss_padded, g_padded) = (model.loss_and_gradients(params, x) for x in (batch, longer))
    same(loss, loss_padded)
    for name in g:
        same(g[name], g_padded[name], name)


@pytest.mark.parametrize("causal", [True, False])
def test_causal(causal):
    """Under a causal mask another token at a later place changes no bit of the outputs before it; without the mask it does."""
    model = make("next token", causal=causal)
    params, batch = start(model), batch_for(model)
    other = batch["tokens"].copy()
    other[..., 3] = (other[..., 3] + 1) % V
    y, y_other = (model.forward(params, {"tokens": t}).outputs for t in (batch["tokens"], other))
    assert (y[:, :, :3] == y_other[:, :, :3]).all() == causal
    assert (y[:, :, 3:] != y_other[:, :, 3:]).any(-1).all()


def compare_batches(model, params, one, other):
    (loss, g), (loss_other, g_other) = model.loss_and_gradients(params, one), model.loss_and_gradients(params, other)
    same(loss, loss_other)
    for name in g:
        same(g[name], g_other[name], name)


@pytest.mark.parametrize("case", ["default", "hierarchy"])
def test_leading_pads_merged(case):
    """Leading identical tokens as one key of log weight ln n: the plain batch's loss and gradients under a causal mask."""
    model, pads = make(case), np.array([[1, 4, 2], [3, 1, 5]])
    params, batch = start(model), batch_for(model)
    merged = batch | {"tokens": np.concatenate([np.zeros((R, B, 1), int), batch["tokens"]], 2), "log_weight": np.zeros((R, B, T + 1))}
    merged["log_weight"][..., 0] = np.log(pads)
    for r, b in np.ndindex(R, B):
        row = {name: x[r : r + 1, b : b + 1] for name, x in batch.items()}
        row["tokens"] = np.concatenate([np.zeros((1, 1, pads[r, b]), int), row["tokens"]], 2)
        own = {name: x[r : r + 1] for name, x in params.items()}
        compare_batches(model, own, row, {name: x[r : r + 1, b : b + 1] for name, x in merged.items()})


def test_repeated_tokens_merged():
    """Without positions and mask any identical tokens merge, the last one too."""
    model = make("bidirectional")
    plain = np.array([[[5, 1, 1, 3, 1, 5, 2]]])
    merged = {"tokens": np.array([[[1, 5, 3, 2]]]), "log_weight": np.log([[[3.0, 2, 1, 1]]])}
    targets = {"targets": np.array([[4]])}
    compare_batches(model, start(model, (3,)), {"tokens": plain} | targets, merged | targets)


@pytest.mark.parametrize("case", ["default", "next token", "masked"])
def test_weights_are_repetitions(case):
    """A sample of weight n counts like n copies of it, one of weight 0 not at all."""
    model, counts = make(case), np.array([2, 0, 3])
    params, batch = start(model), batch_for(model)
    repeated = {name: np.repeat(x, counts, axis=1) for name, x in batch.items()}
    compare_batches(model, params, repeated, batch | {"weight": np.tile(counts / 5, (R, 1))})


def test_heads_in_another_order():
    """The heads' blocks of queries, keys, values and of the projection's rows may change places."""
    model = make("default", heads=3)
    params, batch = start(model), batch_for(model)
    order = np.arange(D).reshape(3, -1)[[2, 0, 1]].reshape(-1)
    other = dict(params)
    for name in params:
        own = name.split(".")[-1].removesuffix("_bias")
        if own in ("query", "key", "value"):
            other[name] = params[name][..., order]
        elif name.endswith("projection"):
            other[name] = params[name][:, order]
    same(model.loss_of(params, batch), model.loss_of(other, batch))
    y, y_other = model.forward(params, batch), model.forward(other, batch)
    same(y.attention[0][:, :, [2, 0, 1]], y_other.attention[0])


@pytest.mark.parametrize("at", ["last", "all"])
def test_positions_name_the_same_rows(at):
    """at "given" with the last position, or all of them, is at "last", or "all"."""
    model, given = make("default", at=at), make("default", at="given")
    params, batch = start(model), batch_for(model)
    where = np.array([T - 1]) if at == "last" else np.arange(T)
    named = batch | {"positions": np.tile(where, (R, B, 1)), "targets": batch["targets"].reshape(R, B, -1)}
    compare_batches(given, params, named, named | {"targets": np.where(named["targets"] < 0, -100, named["targets"])})
    same(model.loss_of(params, batch), given.loss_of(params, named))


@pytest.mark.parametrize("start_", ["torch", "normal"])
def test_initial_values(start_):
    """torch's defaults: U(-1, 1) / sqrt(inputs) and N(0, 1) tables; or N(0, std^2) everywhere with biases 0; gains 1, shifts 0."""
    model = Transformer(vocabulary=80, width=60, layers=1, mlp=90, start=start_, std=0.1, positions=70)
    params = model.initial(generators((5,), 0))
    inputs = {"layer0.down": 90, "layer0.down_bias": 90}
    for name, value in params.items():
        if name.endswith(("gain", "shift")):
            assert (value == name.endswith("gain")).all()
        elif start_ == "normal" and name.endswith("_bias"):
            assert (value == 0).all()
        elif start_ == "normal" or name in ("embedding", "position"):
            std = 0.1 if start_ == "normal" else 1.0
            assert abs(value.std() / std - 1) < 5 / np.sqrt(2 * value.size), name  # 5 standard errors
        else:
            scaled = value * np.sqrt(inputs.get(name, 60))
            assert np.abs(scaled).max() <= 1 and np.abs(scaled).max() > 1 - 20 / value.size, name  # missed with e^-20
            assert abs(scaled.mean()) < 5 / np.sqrt(3 * value.size), name  # 5 standard errors


WRONG = [
    ({"heads": 4}, "heads must divide the width: 4 heads do not divide width 6"),
    ({"activation": "gelo"}, "no activation 'gelo'; choose from gelu, relu; did you mean 'gelu'?"),
    ({"norm": "Post"}, "no norm 'Post'; choose from none, post, pre; did you mean 'post'?"),
    ({"at": "first"}, "no at 'first'; choose from all, given, last"),
    ({"start": "zero"}, "no start 'zero'; choose from normal, torch"),
    ({"biases": ("mpl",)}, "no place of a bias 'mpl'; choose from attention, head, mlp, projection; did you mean 'mlp'?"),
    ({"layers": -1}, "layers is at least 0, not -1"),
    ({"heads": 0}, "heads is at least 1, not 0"),
    ({"outputs": 0}, "outputs is at least 1, not 0"),
    ({"std": 0.0}, "std must be above 0, not 0.0"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG, ids=str)
def test_wrong_options(options, sentence):
    """A configuration that cannot be built is refused with one sentence."""
    with pytest.raises(ParamError, match=f"^{re.escape(sentence)}$"):
        Transformer(**(SMALL | options))


TOKENS = np.zeros((1, 2, 3), int)
GOOD = {"tokens": TOKENS, "targets": np.zeros((1, 2), int)}
BAD = [
    ({}, {"tokens": np.zeros((1, 2, 9), int)}, "a sequence of 9 tokens is longer than the 8 learned positions"),
    ({}, {"tokens": TOKENS + 7}, "tokens lie in 0 to 6, not 7"),
    ({}, {"tokens": TOKENS - 1}, "tokens lie in 0 to 6, not -1"),
    ({}, {"tokens": TOKENS[0]}, "tokens have the axes (seed, sample, position), none of them empty, not the shape (2, 3)"),
    ({}, {"targets": np.full((1, 2), 7)}, "targets lie in 0 to 6, not 7"),
    ({}, {"targets": TOKENS}, "targets of this batch have the shape (1, 2), not (1, 2, 3)"),
    ({}, {"weight": np.ones(2)}, "weight of this batch has the shape (1, 2), not (2,)"),
    ({}, {"log_weight": np.zeros((1, 3))}, "log_weight of this batch has the shape (1, 2, 3), not (1, 3)"),
    ({"at": "given"}, {}, "a batch needs 'positions'; this one has tokens, targets"),
    ({"at": "given"}, {"positions": TOKENS + 3, "targets": TOKENS}, "positions lie in 0 to 2, not 3"),
]


@pytest.mark.parametrize(("options", "entries", "sentence"), BAD, ids=lambda x: x if isinstance(x, str) else "")
def test_wrong_batches(options, entries, sentence):
    """A batch that does not fit is refused with one sentence, not read beyond its rows."""
    model = make("post", **options)
    with pytest.raises(ParamError, match=f"^{re.escape(sentence)}$"):
        model.loss_and_gradients(start(model, (0,)), GOOD | entries)
