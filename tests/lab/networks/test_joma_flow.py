"""What gradient flow of the JoMA block keeps, by how much gradient descent misses it, and where the closed forms hold."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import erfinv

from odesim.lab.networks.joma import ReducedLogits, equal_cosines, invariant
from odesim.lab.networks.measures import normalised_correlation
from tests.support.joma_cases import ATTENTIONS, MC, PHIS, SIGNALS, batch_of, block_of, descend, start_of

RATES = {"w": 0.2, "z": 0.1}
RATIO = RATES["z"] / RATES["w"]


def flow(block, params, batch, t, rates):
    """Parameters at time t of gradient flow, one seed, by DOP853 at a relative tolerance of 1e-11."""
    sizes = np.cumsum([a.size for a in params.values()])[:-1]

    def split(y):
        return {name: piece.reshape(params[name].shape) for name, piece in zip(params, np.split(y, sizes), strict=True)}

    def slope(_, y):
        gradients = block.loss_and_gradients(split(y), batch)[1]
        return np.concatenate([-rates[block.groups[name]] * gradients[name].ravel() for name in params])

    y = np.concatenate([a.ravel() for a in params.values()])
    done = solve_ivp(slope, (0, t), y, method="DOP853", rtol=1e-11, atol=1e-13)
    assert done.success
    return split(done.y[:, -1])


@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("phi", ["identity", "softplus", "square"])  # the kink of relu spoils the integrator, not the law
@pytest.mark.parametrize("attention", ["linear", "exp"])
def test_flow_keeps_the_invariant(attention, phi, signal, queries):
    """z^2 - r |v|^2 (linear) and z - r |v|^2 / (2 T) (exp) stay, token by token; of several queries only the sums."""
    block, batch = block_of(attention, phi, signal, queries=queries), batch_of(1, queries=queries)
    params = start_of(block)
    after = flow(block, params, batch, 1.5, RATES)

    def kept(p, Z):
        return invariant(attention, p["V"], Z, RATIO, block.temperature)

    drift = np.abs(kept(after, after["Z"]) - kept(params, params["Z"])).max()
    assert drift <= 1e-9  # 100 * rtol, of numbers of order 1
    assert np.abs(after["V"] - params["V"]).max() > 0.01 and np.abs(after["Z"] - params["Z"]).max() > 0.001
    if queries > 1:
        share = np.abs(kept(after, after["Z"][..., :1]) - kept(params, params["Z"][..., :1])).max()
        assert share > 1e-3


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("attention", ["linear", "exp"])
def test_a_step_of_descent_drifts_by_the_formula(attention, phi, signal):
    """A step moves the invariant by -h_z h_w / (2 T) sum_k (dV/dt)^2 (exp), by h_z^2 (dz/dt)^2 - h_z h_w sum_k (dV/dt)^2 (linear)."""
    block, batch = block_of(attention, phi, signal, queries=1), batch_of(2, queries=1)
    params = start_of(block, 2)
    gradients = block.loss_and_gradients(params, batch)[1]
    after = descend(block, params, batch, 1, RATES)
    T, squares = block.temperature, (gradients["V"] ** 2).sum(axis=-1)
    if attention == "exp":
        formula = -RATES["z"] * RATES["w"] / (2 * T) * squares
    else:
        formula = RATES["z"] ** 2 * gradients["Z"][..., 0] ** 2 - RATES["z"] * RATES["w"] * squares
    moved = invariant(attention, after["V"], after["Z"], RATIO, T) - invariant(attention, params["V"], params["Z"], RATIO, T)
    np.testing.assert_allclose(moved, formula, rtol=0, atol=1e-11 * np.abs(formula).max())  # rounding of numbers of order 1


@pytest.mark.parametrize("attention", ["linear", "exp"])
def test_drift_over_fixed_time_is_of_first_order(attention):
    """Half the step, half the drift of the invariant."""
    block, batch = block_of(attention, "softplus", queries=1), batch_of(1, queries=1)
    params, drifts = start_of(block), []
    before = invariant(attention, params["V"], params["Z"], 1.0, block.temperature)
    for steps in (100, 200, 400):
        after = descend(block, params, batch, steps, dict.fromkeys("wz", 2 / steps))
        drifts.append(np.abs(invariant(attention, after["V"], after["Z"], 1.0, block.temperature) - before).max())
    ratios = np.divide(drifts[:-1], drifts[1:])
    assert ratios == pytest.approx(2, abs=0.05)  # of second order in the step of 0.02


@pytest.mark.parametrize("attention", ["linear", "exp"])
def test_reduced_logits_are_the_trained_ones(attention):
    """V alone gives the logits back, with eta_z != eta_w and T != 1, while z of linear attention keeps its sign."""
    block, batch = block_of(attention, "softplus", queries=1), batch_of(1, queries=1)
    params = start_of(block)
    params["Z"] += 1.5 * np.sign(params["Z"])
    reduced = ReducedLogits(attention, RATIO, block.temperature, params["V"], params["Z"][..., 0], np.zeros((1, MC)))
    after = flow(block, params, batch, 2.0, RATES)
    assert (np.sign(after["Z"]) == np.sign(params["Z"])).all()
    np.testing.assert_allclose(reduced.logits(after["V"]), after["Z"][..., 0], rtol=0, atol=1e-9)  # as the invariant above
    assert np.abs(after["Z"] - params["Z"]).max() > 0.01


def test_softmax_moves_by_both_terms():
    """On samples of one kind dz/dt = (v.dv/dt - b sum v.dv/dt) / T exactly; the logits of a query keep their sum on any samples."""
    block, batch = block_of("softmax", "softplus", queries=1), batch_of(2, queries=1)
    params = start_of(block, 2)
    assert np.abs(block.loss_and_gradients(params, batch)[1]["Z"].sum(axis=1)).max() < 1e-15  # rounding
    batch["x"][:] = batch["x"][:, :1]
    gradients = block.loss_and_gradients(params, batch)[1]
    b = block.attend(params["Z"], batch)[:, 0]
    inner = (params["V"] * gradients["V"]).sum(axis=-1)
    claimed = (inner - b * inner.sum(axis=-1, keepdims=True)) / block.temperature
    np.testing.assert_allclose(gradients["Z"][..., 0], claimed, rtol=0, atol=1e-15)  # rounding
    assert np.abs(claimed).max() > 1e-3


def test_one_node_follows_the_inverse_error_function():
    """Exp attention, linear phi, fixed signal, from 0: v(t) = sqrt 2 erfinv(sqrt(2 / pi) Delta t), missed by O(h)."""
    batch = batch_of(1, queries=1)
    batch["signal"] = np.abs(batch["signal"][..., :1])
    Delta = np.einsum("n,nl,n->l", batch["pi"][0], batch["x"][0], batch["signal"][0, :, 0])
    t = 0.7 * np.sqrt(np.pi / 2) / Delta.max()
    truth = np.sqrt(2) * erfinv(np.sqrt(2 / np.pi) * Delta * t)
    block = block_of("exp", signal="fixed", queries=1, temperature=1.0, scale=0.0)
    zero = {"V": np.zeros((1, MC, 1)), "Xi": np.zeros((1, 1, 1)), "Z": np.zeros((1, MC, 1))}
    errors = []
    for steps in (200, 400, 800):
        after = descend(block, zero, batch, steps, dict.fromkeys("wz", t / steps))
        errors.append(np.abs(after["V"][0, :, 0] - truth).max())
    assert errors[-1] < 2e-3 and truth.max() > 1
    assert np.log2(np.divide(errors[:-1], errors[1:])) == pytest.approx(1, abs=0.02)  # next order in h


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_only_linear_attention_is_dead_at_zero(attention):
    """At V = 0, Z = 0 linear attention has no gradient at all; the others have one in V."""
    block = block_of(attention, scale=0.0)
    gradients = block.loss_and_gradients(start_of(block), batch_of(1))[1]
    assert not gradients["Z"].any()
    assert gradients["V"].any() == (attention != "linear")


def test_oblique_embeddings_spoil_the_size_of_the_logits_not_their_direction():
    """The larger the cosine between embeddings, the further z is from |v|^2 / 2; the two stay correlated.

    tian2023joma finds cosines of 0.02 to 0.06 in Pythia and OPT.
    """
    batch = batch_of(1, queries=1)
    errors = []
    for cosine in (0.0, 0.01, 0.03, 0.06):
        U = equal_cosines(MC + 1, MC + 1, cosine)
        block = block_of("exp", queries=1, temperature=1.0, embeddings=U, scale=0.01)
        start = start_of(block)
        after = flow(block, start, batch, 5.0, {"w": 1.0, "z": 1.0})
        V0, V = block.nodes(start)[0], block.nodes(after)[0]
        claimed = ((V**2).sum(axis=-1) - (V0**2).sum(axis=-1)) / 2
        moved = (after["Z"] - start["Z"])[..., 0]
        errors.append(np.linalg.norm(moved - claimed) / np.linalg.norm(moved))
        assert normalised_correlation(moved, claimed)[0] > 0.979
    assert errors[0] < 1e-8 and errors[1] > 1e-3  # integration; none left
    assert (np.diff(errors) > 0).all() and errors[3] > 3 * errors[1]
