"""The JoMA block: its loss as the definition reads, its gradients as differences of it, in both coordinates, seed by seed."""

from math import exp, log, log1p

import numpy as np
import pytest

from odesim.base.errors import ParamError
from odesim.lab.networks.joma import JomaBlock, equal_cosines
from tests.support.joma_cases import ATTENTIONS, MC, MQ, PHIS, SIGNALS, D, K, N, batch_of, block_of, descend, start_of

PHI = {"identity": lambda u: u, "relu": lambda u: max(u, 0.0), "softplus": lambda u: log1p(exp(u)), "square": lambda u: u**2}


def written_out(block, params, batch):
    """The loss of the one seed, one number at a time, from f = U_C b + u_q and h = phi(W^T f)."""
    W, Z, U, A, T = params["W"][0], params["Z"][0], block.embeddings, block.top, block.temperature
    total = 0.0
    for n in range(N):
        m = int(batch["query"][0, n])
        x, z = batch["x"][0, n], Z[:, m]
        weight = {"linear": lambda l, z=z: z[l] / T, "exp": lambda l, z=z: exp(z[l] / T), "softmax": lambda l, z=z: exp(z[l] / T)}
        b = [x[l] * weight[block.attention](l) for l in range(MC)]
        if block.attention == "softmax":
            b = [value / sum(b) for value in b]
        f = [sum(U[i, l] * b[l] for l in range(MC)) + U[i, MC + m] for i in range(D)]
        h = [PHI[block.phi](sum(W[i, k] * f[i] for i in range(D))) for k in range(K)]
        scores = [sum(A[c, k] * h[k] for k in range(K)) for c in range(len(A))]
        if block.signal == "fixed":
            loss = -sum(batch["signal"][0, n, k] * h[k] for k in range(K))
        elif block.signal == "ce":
            loss = log(sum(exp(s) for s in scores)) - scores[batch["label"][0, n]]
        else:
            loss = sum((s - y) ** 2 for s, y in zip(scores, batch["target"][0, n], strict=True)) / 2
        total += batch["pi"][0, n] * loss
    return total


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_loss_is_the_definition(attention, phi, signal):
    """The loss is that of the definition, written out in W, with embeddings that are not orthonormal."""
    block, batch = block_of(attention, phi, signal, oblique=True), batch_of(1)
    params = start_of(block)
    found = block.loss_and_gradients(params, batch)[0]
    assert found == pytest.approx(written_out(block, params, batch), rel=1e-12)  # rounding


@pytest.mark.parametrize("oblique", [False, True], ids=["v", "w"])
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_gradients_are_differences(attention, phi, signal, oblique):
    """Every component of the gradient is the central difference of the loss, of order 4 where phi is smooth."""
    block, batch = block_of(attention, phi, signal, oblique=oblique), batch_of(1)
    params = start_of(block)
    # the kink of relu is nowhere within the small step; orders 4 and 2 leave errors of 1e-12 and 1e-12, rounding 1e-13 and 1e-10
    h, stencil, tolerance = (1e-6, {1: 1 / 2}, 1e-6) if phi == "relu" else (1e-3, {1: 2 / 3, 2: -1 / 12}, 1e-8)
    for name, gradient in block.loss_and_gradients(params, batch)[1].items():
        difference = np.zeros_like(gradient)
        for place in np.ndindex(gradient.shape):
            for far, weight in stencil.items():
                for side in (far, -far):
                    moved = {**params, name: params[name].copy()}
                    moved[name][place] += side * h
                    difference[place] += np.sign(side) * weight / h * block.loss_and_gradients(moved, batch)[0][0]
        scale = np.abs(difference).max()
        assert scale > 1e-3 and np.abs(gradient - difference).max() <= tolerance * scale, name


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_both_coordinates_are_one_flow(attention):
    """With orthonormal embeddings a step of (W, Z), seen in V = U_C^T W and Xi = U_q^T W, is a step of (V, Xi, Z)."""
    U = np.linalg.qr(np.random.default_rng(1).standard_normal((D, MC + MQ)))[0]
    wide, narrow, batch = block_of(attention, "softplus", embeddings=U), block_of(attention, "softplus"), batch_of(2)
    start = start_of(wide, 2)
    V, Xi = wide.nodes(start)
    rates = {"w": 0.3, "z": 0.2}
    one = descend(wide, start, batch, 1, rates)
    other = descend(narrow, {"V": V, "Xi": Xi, "Z": start["Z"]}, batch, 1, rates)
    for found, right in zip((*wide.nodes(one), one["Z"]), other.values(), strict=True):
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-14)  # rounding of sums over 9 numbers below 1
    assert np.abs(other["V"] - V).max() > 1e-2


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("oblique", [False, True], ids=["v", "w"])
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_seeds_at_once_are_each_alone(attention, oblique, dtype):
    """Three seeds at once have, bit for bit, what each has alone, start, loss and gradients; nothing leaves the dtype."""
    block, batch = block_of(attention, "softplus", oblique=oblique), batch_of(3, dtype=dtype)
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    together = block.initial(rngs, dtype)
    loss, gradients = block.loss_and_gradients(together, batch)
    assert {a.dtype.name for a in (loss, *together.values(), *gradients.values())} == {dtype}
    for seed in range(3):
        alone = block.initial([np.random.default_rng(seed)], dtype)
        own_loss, own = block.loss_and_gradients(alone, {name: a[seed : seed + 1] for name, a in batch.items()})
        assert own_loss[0] == loss[seed]
        for name, a in own.items():
            np.testing.assert_array_equal(alone[name][0], together[name][seed])
            np.testing.assert_array_equal(a[0], gradients[name][seed])


@pytest.mark.parametrize("columns, cosine", [(7, 0.0), (7, 0.06), (7, -0.1), (1, 0.5)])
def test_equal_cosines(columns, cosine):
    """The Gram matrix of the embeddings has 1 on its diagonal and the cosine everywhere else."""
    U = equal_cosines(9, columns, cosine)
    gram = (1 - cosine) * np.eye(columns) + cosine
    assert U.shape == (9, columns)
    np.testing.assert_allclose(U.T @ U, gram, rtol=0, atol=1e-15 * columns)  # rounding


def test_softmax_far_apart():
    """Logits hundreds of times the temperature apart leave softmax exact, even where the largest belongs to an absent token."""
    block, batch = block_of("softmax", queries=1), batch_of(1, queries=1)
    Z = np.array([0.0, 0.0, 3000.0, 900.0, 0.0])[None, :, None]
    batch["x"][:] = [1, 1, 0, 0, 2]
    np.testing.assert_allclose(block.attend(Z, batch)[0], np.tile([0.25, 0.25, 0, 0, 0.5], (N, 1)), rtol=1e-15)


REFUSED = {
    "attention": (lambda: block_of("sofmax"), "no attention 'sofmax'; choose from exp, linear, softmax; did you mean 'softmax'?"),
    "phi": (lambda: block_of("exp", "rlu"), "did you mean 'relu'?"),
    "signal": (lambda: block_of("exp", signal="cee"), "did you mean 'ce'?"),
    "temperature": (lambda: block_of("exp", temperature=0.0), "temperature must be above 0, not 0.0"),
    "embeddings": (
        lambda: JomaBlock((3, 1, 2), embeddings=np.eye(5, 3)),
        "embeddings must have 4 columns, one a token, not the shape (5, 3)",
    ),
    "width": (lambda: equal_cosines(3, 4, 0.0), "d must be at least 4, the number of tokens, not 3"),
    "cosine": (lambda: equal_cosines(9, 5, -0.25), "cosine must lie between -0.25 and 1 for 5 embeddings, not -0.25"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    """A block that cannot be is refused in one sentence."""
    make, sentence = REFUSED[case]
    with pytest.raises(ParamError) as caught:
        make()
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
