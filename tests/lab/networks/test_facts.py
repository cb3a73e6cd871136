"""The decoder of facts: its loss as the definition reads, its gradients as differences of it, and that of the one-layer model."""

import numpy as np
import pytest

from odesim.lab.networks.one_layer import YZ
from odesim.lab.tasks.reversal import Decoder, chain_facts, fact_stream, pair_facts

TRAINED, HELD_OUT = pair_facts(3, 2)
MODEL = Decoder(TRAINED, HELD_OUT, (6, 9))
rng = np.random.default_rng(7)
Y = rng.standard_normal((2, 6, 9))
BATCH = {"source": np.array([[0, 3, 0], [5, 1, 2]]), "target": np.array([[3, 0, 8], [2, 2, 2]])}  # a row twice


def test_loss_is_the_definition():
    """The mean of ln sum exp less the own logit, one number at a time; rounding."""
    found = MODEL.loss_and_gradients({"Y": Y}, BATCH)[0]
    for r in range(2):
        rows = [(Y[r, a], m) for a, m in zip(BATCH["source"][r], BATCH["target"][r], strict=True)]
        assert found[r] == pytest.approx(np.mean([np.log(np.exp(row).sum()) - row[m] for row, m in rows]), rel=1e-14)


def test_gradient_is_differences():
    """Central differences of step 1e-5: their error is 1e-10, rounding 1e-11."""
    gradient = MODEL.loss_and_gradients({"Y": Y}, BATCH)[1]["Y"]
    for a in range(6):
        for m in range(9):
            high, low = Y.copy(), Y.copy()
            high[:, a, m] += 1e-5
            low[:, a, m] -= 1e-5
            slope = (MODEL.loss_and_gradients({"Y": high}, BATCH)[0] - MODEL.loss_and_gradients({"Y": low}, BATCH)[0]) / 2e-5
            np.testing.assert_allclose(gradient[:, a, m], slope, atol=1e-9)
    assert np.abs(gradient).max() > 0.1 and np.all(gradient[0, [1, 2, 4, 5]] == 0)


def test_it_is_the_one_layer_model_on_one_token():
    """Each source a class's only token, in infinite contexts: the same gradient of Y, and none of Z, exactly."""
    facts = np.array([[0, 1, 2], [3, 4, 5]])
    M, P = 9, np.eye(3)
    yz = YZ(P, np.zeros(3, int), np.full(3, 1 / 3), float(M))
    logits = rng.standard_normal((1, 3, 4))  # to the three targets, and one column for the six others
    columns = np.concatenate([np.repeat(logits[..., 3:], 3, axis=2), logits[..., :3], np.repeat(logits[..., 3:], 3, axis=2)], axis=2)
    loss, whole = yz.loss_and_gradients({"Y": logits, "Z": rng.standard_normal((1, 1, 3))}, {})
    batch = {"source": facts[:1], "target": facts[1:]}
    here, gradient = Decoder(facts, facts, (3, M)).loss_and_gradients({"Y": columns}, batch)
    assert here == pytest.approx(loss, rel=1e-14) and np.all(whole["Z"] == 0)
    np.testing.assert_allclose(gradient["Y"][..., 3:6], whole["Y"][..., :3], atol=1e-15)


def test_observables_are_loops():
    """Means over trained and held-out facts, one at a time; rounding."""
    seen = {o.name: o.function({"Y": Y}) for o in MODEL.observables}
    for r in range(2):
        p = np.exp(Y[r]) / np.exp(Y[r]).sum(axis=1, keepdims=True)
        own = np.array([p[a, m] for a, m in TRAINED.T])
        assert seen["p_target"][r] == pytest.approx(own.mean(), rel=1e-13) and seen["p_least"][r] == pytest.approx(own.min(), rel=1e-13)
        assert seen["loss_population"][r] == pytest.approx(-np.log(own).mean(), rel=1e-13)
        assert seen["p_held_out"][r] == pytest.approx(np.mean([p[a, m] for a, m in HELD_OUT.T]), rel=1e-13)
        assert seen["v"][r] == pytest.approx(np.mean([Y[r, a, m] - np.delete(Y[r, a], m).mean() for a, m in TRAINED.T]), rel=1e-12)


def test_pairs():
    """A_i -> B_i of all pairs, B_i -> A_i of the first; what is held out is the rest, and no fact is both."""
    assert TRAINED.T.tolist() == [[0, 3], [1, 4], [2, 5], [3, 0], [4, 1]] and HELD_OUT.T.tolist() == [[5, 2]]


def test_chains():
    """A_i -> B_i, B_i -> C_i, and A_i ~> C_i of the first; the two facts of a held-out one meet in B, and their product is taken."""
    trained, held_out, steps = chain_facts(3, 1)
    assert trained.T.tolist() == [[0, 3], [1, 4], [2, 5], [3, 6], [4, 7], [5, 8], [0, 6]] and held_out.T.tolist() == [[1, 7], [2, 8]]
    for (a, c), (first, second) in zip(held_out.T, steps.T, strict=True):
        assert trained[0, first] == a and trained[1, first] == trained[0, second] and trained[1, second] == c
    seen = {o.name: o.function({"Y": Y}) for o in Decoder(trained, held_out, (6, 9), steps).observables}
    p = np.exp(Y) / np.exp(Y).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(seen["p_two_steps"], (p[:, 1, 4] * p[:, 4, 7] + p[:, 2, 5] * p[:, 5, 8]) / 2, rtol=1e-13)
    np.testing.assert_allclose(seen["p"][:, 6], p[:, 0, 6], rtol=1e-13)


@pytest.mark.parametrize("shuffled", [True, False])
def test_the_stream_is_an_epoch_after_the_other(shuffled):
    """In any order of asking the same; each fact once an epoch, in an order of its own, or drawn."""
    stream = fact_stream(TRAINED, (0, 4), shuffled=shuffled)
    rows = [stream(i) for i in range(15)]
    again = fact_stream(TRAINED, (4,), shuffled=shuffled)
    for i in (14, 3, 9, 0):
        np.testing.assert_array_equal(again(i)["source"][0], rows[i]["source"][1])
    epochs = np.reshape([10 * row["source"][:, 0] + row["target"][:, 0] for row in rows], (3, 5, 2))
    everything = sorted(10 * TRAINED[0] + TRAINED[1])
    whole = [sorted(epochs[e, :, r]) == everything for e in range(3) for r in range(2)]
    assert all(whole) if shuffled else not any(whole)
    assert len({tuple(epochs[e, :, r]) for e in range(3) for r in range(2)}) > 4  # two of six draws are the same, by chance
