"""The equations of every model against hand-written numpy, at states where nothing vanishes."""

from typing import Any

import numpy as np
import pytest

from odesim.inputs.bind import Numbers, bind
from odesim.inputs.registry import list_models, load_model
from odesim.models.ngrams.linear import moments
from odesim.symbolic import System
from odesim.symbolic.indices import base_name
from odesim.symbolic.parts import free_in_order, key_indices
from odesim.targets.numpy_text import evaluate
from tests.support.truth import RIGHT_SIDES
from tests.support.truth.scan_snap import full_loss

BLOCK: dict[str, Any] = {  # two queries
    "sizes": {"Mc": 5, "Mq": 2, "K": 3, "C": 4},
    "params": {"pi": [0.1, 0.2, 0.3, 0.25, 0.15, 0.0], "A": np.arange(12.0).reshape(4, 3) % 5 - 2, "T": 0.7, "eta_w": 1.3, "eta_z": 0.6},
}
CLASSES: dict[str, Any] = {
    "sizes": {"K": 3, "S": 7, "Q": 2},
    "params": {"M": 9.5, "p": [0.2, 0.3, 0.5], "eta_Y": 1.3, "eta_Z": 0.7},
}
NINE = np.arange(1, 10) / 45
PAIRS_OF_TOPICS: dict[str, Any] = {"sizes": {"d": 7, "N": 3}, "params": {"T": 3, "p_m": 0.3, "p_c": 0.2, "p_r": 0.3}}
ODD: dict[str, dict[str, Any]] = {  # sizes and parameters that differ from each other, so that a transposed or swapped one shows
    **dict.fromkeys(("scan_snap.full", "scan_snap.full_decorrelated"), CLASSES),
    "scan_snap.symmetric": {
        "sizes": {"D": 4, "C": 3},
        "params": {"mc": [1.0, 2.0, 5.0], "K": 3, "k_m": 3, "M": 50, "eta_Y": 1.3, "eta_Z": 0.7},
    },
    "scan_snap.reduced_symmetric": {
        "sizes": {"D": 4, "C": 3},
        "params": {"mc": [1.0, 2.0, 5.0], "K": 3, "k_m": 3, "M": 50, "eta_Y": 1.3, "eta_Z": 0.7},
        "states": {"S_d": 9.0, "S_c": 3.0, "u": 2.3},
    },
    "scan_snap.reduced": {
        "sizes": {"K": 3, "S": 7, "Q": 2},
        "params": {"M": 9.5, "eta_Y": 1.3, "eta_Z": 0.7},
        "states": {"u": 2.3},
    },
    "scan_snap.theorem4": {"params": {"K": 3, "M": 40, "eta_Y": 1.3, "eta_Z": 0.7, "C0": 0.3}},
    "scan_snap.decoder": {"params": {"K": 3, "M": 40, "eta_Y": 1.3, "eta_Z": 0.7}},
    "joma.linear_attention": {"sizes": {"M": 5, "K": 3}},
    "joma.linear_multinode": {"sizes": {"M": 5, "K": 3}},
    "joma.nonlinear_softmax": {"params": {"T": 3.0}},
    **dict.fromkeys(("joma.joint_linear", "joma.joint_exp", "joma.joint_softmax"), BLOCK),
    "galore.parametric_gradient": {"sizes": {"m": 3, "n": 4, "N": 2}},
    "galore.adam_map": {
        "sizes": {"m": 3, "n": 4, "N": 3, "r": 2},
        "params": {"eta": 0.3, "alpha": 0.7, "b1": 0.6, "b2": 0.8, "eps": 0.1},
        "states": {"V": np.arange(1.0, 9.0).reshape(2, 4)},
    },
    "galore.projected": {"sizes": {"m": 3, "n": 4, "N": 3, "r": 2}},
    "classics.deep_linear": {"params": {"Sigma": np.random.default_rng(3).normal(size=(3, 3))}},
    "classics.deep_linear_modes": {"sizes": {"r": 3}, "params": {"L": 3.0}, "states": {"a": np.array([0.2, 0.7, 1.4])}},
    "particles.sphere": {
        "sizes": {"n": 4, "d": 3, "H": 2},
        "params": dict(zip("QKV", np.random.default_rng(3).normal(size=(3, 2, 3, 3)), strict=True)) | {"beta": 0.7, "causal": 0.4},
    },
    "particles.circle": {"sizes": {"n": 4}, "params": {"beta": 1.3}},
    "particles.noisy_circle": {"sizes": {"n": 4}, "params": {"beta": 1.3, "K": 0.7}},
    "particles.density": {"sizes": {"N": 5, "X": 3}, "params": {"beta": 1.3, "K": 0.7}},
    "particles.sphere_density": {"sizes": {"N": 5, "X": 3}, "params": {"beta": 1.3, "K": 0.7, "d": 4.0}},
    "noise.two_layer": {"params": {"s": 1.3}},
    "noise.sgd_least_squares": {"sizes": {"D": 4}, "params": {"second": 0.7}},
    "edge.product": {"params": {"shape": 1.0}},
    "edge.directions": {"sizes": {"d": 3, "n": 4}, "params": {"s": [19.0, 20.3, 21.0], "stiff": 0.7}},
    "ngrams.linear": {
        "sizes": {"L": 4},
        "params": {"k": 3, **moments(np.random.default_rng(5).dirichlet(np.ones(3), size=(4, 3)), np.full(4, 0.25), 4)},
    },
    "causal.parent_row": {"sizes": {"J": 4}, "params": {"G": [0.3, -0.5, 0.9, 0.1]}},
    "patterns.skip_gram": {"params": {"K": 4, "N": 3, "n": 2}},
    "patterns.aggregate": {"sizes": {"T": 3}, "params": {"rho": 0.3}},
    "margin.prompt": {"sizes": {"N": 2, "T": 3, "M": 4}, "params": {"best": 0.7, "lack": [[0.0, 1.0, 0.4], [0.3, 0.0, 2.0]]}},
    **{
        f"margin.{name}": {"sizes": {"N": 2, "T": 3, "d": 4}, "params": {"best": 0.7, "lack": [[0.0, 1.0, 0.4], [0.3, 0.0, 2.0]]}}
        for name in ("weights", "key_query")
    },
    **{
        f"optimisers.{name}": {
            "sizes": {"n": 3},
            "params": {"H": [[2.0, 0.5, 0.3], [0.5, 1.0, -0.4], [0.3, -0.4, 1.7]], "b": [0.3, -0.7, 0.2]},
        }
        for name in ("sign", "adam", "adam_steps", "momentum", "heavy_ball")
    },
    "optimisers.muon": {"sizes": {"m": 3, "n": 4}, "params": {"beta": 0.8, "lr": 0.3}},
    "modular.phases": {"sizes": {"N": 2, "K": 3}, "params": {"p": 9.0, "lam": 0.7}},
    "modular.energy": {"sizes": {"M": 5}, "params": {"seen": np.arange(25.0).reshape(5, 5) % 4 / 2}},
    "modular.powers": {"sizes": {"K": 4}},
    "margin.next_token": {"sizes": {"K": 4}, "params": {"m": [1.0, 2.0, 0.5, 3.0]}},
    **{f"self_supervised.{name}": {"sizes": {"n": 3}} for name in ("modes", "direct_pred")},
    "self_supervised.modes_ema": {"sizes": {"n": 3}, "params": {"alpha": 1.7, "beta": 0.3}},
    **{f"self_supervised.{name}": {"params": {"alpha": 1.7, "eta": 0.3}} for name in ("simsiam", "byol", "no_stop")},
    **{f"scaling.{name}": {"sizes": {"n": 4}, "params": {"a": 0.7, "B": 3.0, "s2": 0.3}} for name in ("sgd", "sgd_steps")},
    **{
        f"scaling.{name}": {
            "sizes": {"V": 4, "d": 3},
            "params": {"flat": 0.3, "P": np.array([[10, 6, 1, 1], [6, 12, 2, 1], [1, 2, 20, 8], [1, 1, 8, 20]]) / 100},
        }
        for name in ("word2vec", "word2vec_untied")
    },
    "scaling.multi_index": {"params": {"k": 4, "a": [1.0, 0.3, 0.0, 0.7]}},
    **{
        f"scaling.{name}": {"params": {"G": [[1.0, 0.6, 0.3], [0.6, 1.2, 0.2], [0.3, 0.2, 0.9]], "alpha": 0.2}}
        for name in ("diagonal", "mirror")
    },
    "particles.gamma": {"params": {"beta": 1.3, "n": 5.0}},
    "particles.two_clusters": {"params": {"beta": 1.3, "m1": 5.0, "m2": 3.0}},
    "gibbs.master": {"sizes": {"S": 9}, "params": {"q": 3, "k": 1, "p": NINE}},
    "gibbs.parallel": {"sizes": {"S": 8}, "params": {"J": 0.4, "h": 0.3}},
    "gibbs.mask_predict": {"sizes": {"S": 9, "T": 3}, "params": {"q": 3, "p": NINE, "k": [1, 2, 1]}},
    "gibbs.unmask": {"sizes": {"S": 9, "n": 2, "T": 3}, "params": {"q": 3, "p": NINE, "step": [2, 1]}},
    "gibbs.lumped": {"sizes": {"n": 4}, "params": {"k": 3, "log_w": [0.3, 1.1, -0.4, 0.6, 0.2]}},
    "gibbs.training_flow": {
        "sizes": {"S": 8, "A": 4, "N": 6, "R": 4},
        "params": {"k": 2, "p": [0.05, 0.1, 0.15, 0.2, 0.2, 0.15, 0.1, 0.05], "F": np.random.default_rng(3).normal(size=(4, 8))},
    },
    "hopfield.modern": {"sizes": {"d": 4, "N": 3}, "params": {"beta": 0.7, "tau": 1.3}},
    "hopfield.potts": {"sizes": {"N": 3}, "params": {"c": 1.7}},
    "hopfield.two_patterns": {"params": {"beta": 0.7, "delta": 1.3}},
    "hopfield.graded": {"sizes": {"d": 3}, "params": {"W": [[0.3, 1.1, -0.4], [1.1, -0.7, 0.6], [-0.4, 0.6, 0.2]], "g": 1.3}},
    "hopfield.two_layer": {"sizes": {"d": 4, "N": 3}, "params": {"beta": 0.7, "tau_v": 1.3, "tau_h": 0.4}},
    "hopfield.classical": {"sizes": {"d": 5, "N": 3}, "params": {"B": 1}, "states": {"s": np.array([1.0, -1, -1, 1, -1])}},
    "hopfield.dense": {"sizes": {"d": 5, "N": 3}, "params": {"B": 2}, "states": {"s": np.array([1.0, -1, -1, 1, -1])}},
    "particles.unnormalised": {
        "sizes": {"n": 4, "d": 3, "H": 2},
        "params": dict(zip("QKV", np.random.default_rng(3).normal(size=(3, 2, 3, 3)), strict=True)) | {"beta": 0.7, "causal": 0.4},
    },
    "particles.rescaled": {
        "sizes": {"n": 4, "d": 3},
        "params": dict(zip("QKV", np.random.default_rng(3).normal(size=(3, 3, 3)), strict=True)),
    },
    "classics.committee": {
        "sizes": {"K": 3, "M": 2},
        "params": {"T": [[1.0, 0.2], [0.2, 0.8]], "A": [1.1, 0.7], "eta": 1.3, "eta_2": 0.6, "sigma": 0.3},
        "states": {
            "Q": np.array([[0.9, 0.1, 0.2], [0.1, 0.7, -0.1], [0.2, -0.1, 0.5]]),
            "R": np.array([[0.3, 0.1], [-0.2, 0.3], [0.1, 0.2]]),
        },
    },
    **{key: {"sizes": {"H": 2, "D": 3}, "params": {"N": 7.0}} for key in ("in_context.merged", "in_context.separate")},
    "in_context.two_layers": {"params": {"D": 3.0, "N": 7.0}},
    "in_context.nearest": {"sizes": {"S": 4, "N": 3}},
    "in_context.single_location": {"params": {"d": 60.0, "lam": 0.15, "gamma2": 0.7}},
    **{key: {"params": {"p": 0.35, "q": 0.6}} for key in ("in_context.markov", "in_context.markov_bias")},
    "induction.full": {"sizes": {"N": 3, "V": 4, "S": 24}},
    "induction.stages": {"params": {"N": 5, "V": 8}},
    "memory.softmax_regression": {"sizes": {"N": 3}, "params": {"M": 4}},
    "partitions.embeddings": {
        "sizes": {"N": 4, "R": 3},
        "params": {"c": [1, 0, 1, 1], "f": [[0.3, 0.7], [-0.4, 1.2]], "seen": np.random.default_rng(3).uniform(size=(4, 4))},
    },
    "skills.mixture": {"sizes": {"K": 4}, "params": {"eta": 0.7}},
    "hopfield.update": {"sizes": {"d": 4, "N": 3}, "params": {"beta": 0.7}},
    "hierarchy.covariance": {"sizes": {"K0": 4, "K1": 3, "K2": 2, "C": 5}},
    "joma.reduced_exp": {
        "sizes": {"Mc": 5, "K": 3, "C": 4},
        "params": {n: v for n, v in BLOCK["params"].items() if n != "q"} | {"z0": 0.2},
    },
    "joma.cluster": {"sizes": {"M": 4, "C": 3}, "params": {"a": [1.0, -0.6, 0.3]}},
    "hierarchy.multilayer": {"sizes": {"N": 3, "K0": 4, "K1": 3, "K2": 2, "C": 5}, "params": {"pi": [0.2, 0.5, 0.3]}},
    "topics.full": {**PAIRS_OF_TOPICS, "params": {**PAIRS_OF_TOPICS["params"], "d_a": 2.3}},
    "topics.stage1": PAIRS_OF_TOPICS,
    "topics.reduced": {
        "params": {"T": 3, "v": 2, "p_c": 0.2, "d_a": 2.3},
        "states": {name: 0.3 + 0.1 * n for n, name in enumerate(("a_w", "a_t", "r_w", "r_m", "k_w", "q_w", "k_t", "q_t"))}
        | {"K2": np.array([[0.3, -0.2], [0.1, 0.4]]), "Q2": np.array([[0.2, 0.5], [-0.3, 0.1]])},
    },
    "topics.tied": {**PAIRS_OF_TOPICS, "sizes": {"d": 7, "N": 3, "K": 4}},
    "reversal.row": {"params": {"M": 12, "N": 7, "eta_Y": 1.3, "r": 3}},
    "reversal.full": {"sizes": {"R": 4, "M": 5, "N": 6}, "params": {"x1": [0, 2, 2, 1, 1, 1], "x3": [1, 0, 4, 3, 3, 2], "eta_Y": 1.3}},
    "reversal.bilinear": {"sizes": {"M": 5, "d": 3, "N": 4, "H": 2}, "params": {"eta": 1.3}},
    "hierarchy.gated": {"sizes": {"L": 5}, "params": {"N": 3, "rho": 0.9, "rho0": 0.8, "kappa": 2.0}},
    "hierarchy.occurrence": {"params": {"L": 6, "rho": 0.7}},
    "hierarchy.grouped": {"sizes": {"L": 4}, "params": {"N": 3, "rho": 0.9, "rho0": 0.8, "kappa": 2.0}},
}


def odd_case(name: str) -> tuple[System, Numbers, dict[str, Any]]:
    """A System, numbers for it, and a state around (0.3, with spread 0.5)."""
    system, case = load_model(name), ODD.get(name, {})
    numbers = bind(system, sizes=case.get("sizes"), params=case.get("params"))
    rng = np.random.default_rng(1)
    states = {k: 0.3 + 0.5 * rng.standard_normal(np.shape(v)) for k, v in numbers.initial.items()}
    return system, numbers, states | case.get("states", {})


def value(system: System, expr: Any, numbers: Numbers, states: dict[str, Any], indices: Any = None) -> np.ndarray:
    """expr at a state, an axis for each free index."""
    order = free_in_order(expr, system.axes) if indices is None else indices
    return evaluate(expr, order, system.axes, numbers.sizes, {**numbers.params, **states})


def test_every_model_has_a_right_side_by_hand():
    assert sorted(RIGHT_SIDES) == list_models()


@pytest.mark.first(24)
@pytest.mark.parametrize("name", RIGHT_SIDES)
def test_right_side(name):
    """Rounding only: 1e-13 of the largest component."""
    system, numbers, states = odd_case(name)
    want = RIGHT_SIDES[name](0.0, states, numbers.params)
    for key, rhs in system.equations.items():
        got = value(system, rhs, numbers, states, key_indices(key))
        state = base_name(key)
        assert np.any(want[state] != 0) or rhs == 0
        np.testing.assert_allclose(got, want[state], rtol=1e-12, atol=1e-13 * np.abs(want[state]).max(), err_msg=state)


def test_full_is_the_gradient_of_its_loss():
    """dY/dt = - eta_Y dL/dY and dZ/dt = - eta_Z dL/dZ, by central differences (step 1e-5: 1e-9 of truncation and rounding)."""
    system, numbers, states = odd_case("scan_snap.full")
    K, M = numbers.sizes["K"], numbers.params["M"]
    assert value(system, system.observables["loss"], numbers, states) == pytest.approx(full_loss(states, numbers.params), rel=1e-13)
    for key, rhs in system.equations.items():
        state, flow = base_name(key), value(system, rhs, numbers, states, key_indices(key))
        slope = np.empty_like(flow)
        for at in np.ndindex(flow.shape):
            ends = []
            for h in (1e-5, -1e-5):
                moved = {k: np.array(v) for k, v in states.items()}
                moved[state][at] += h
                ends.append(full_loss(moved, numbers.params))
            slope[at] = (ends[0] - ends[1]) / 2e-5
        if state == "Y":
            slope[:, K] /= M - K  # the column stands for so many equal ones, each with its share of the slope
        np.testing.assert_allclose(flow, -numbers.params[f"eta_{state}"] * slope, atol=1e-9)


def test_loss_of_the_symmetric_model():
    system, numbers, states = odd_case("scan_snap.symmetric")
    want = RIGHT_SIDES[system.name](0.0, states, numbers.params)["loss"]
    assert value(system, system.observables["loss"], numbers, states) == pytest.approx(want, rel=1e-13)


def test_distinct_tokens_of_full():
    """entropy counts all tokens of a class, entropy_distinct those of no other class; a class without any has 0, and 0 ln 0 is 0."""
    P = np.array([[0.5, 0.2, 0.3, 0.0], [0.4, 0.0, 0.0, 0.6], [1.0, 0.0, 0.0, 0.0]])
    system = load_model("scan_snap.full")
    numbers = bind(system, params={"P": P})
    states = dict(numbers.initial)
    assert numbers.sizes == {"K": 3, "Q": 3, "S": 4} and numbers.params["M"] == 10
    got = {o: value(system, system.observables[o], numbers, states) for o in ("entropy", "entropy_distinct")}
    h = [-(np.array(x) * np.log(x)).sum() for x in ([0.5, 0.2, 0.3], [0.4, 0.6], [0.4, 0.6])]
    np.testing.assert_allclose(got["entropy"], [h[0], h[1], 0], rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(got["entropy_distinct"], [h[2], 0, 0], rtol=1e-14, atol=1e-15)


def test_a_rare_rival_is_a_rival():
    """A token that another class has, however rarely, is not distinct: a difference of sums would round the rival away."""
    P = np.array([[0.5, 0.5, 0.0], [1e-25, 1e-25, 1.0]])
    system = load_model("scan_snap.full")
    numbers = bind(system, params={"P": P})
    got = value(system, system.observables["entropy_distinct"], numbers, dict(numbers.initial))
    np.testing.assert_array_equal(got, [0, 0])


@pytest.mark.parametrize("excess", [1.0, 1.0 + 1e-9, 3.0])
def test_reduced_flow_is_not_a_number_outside_its_domain(excess):
    """S_d < 1 / max(p)^2: at and beyond it the right-hand side gives the integrator nothing to go on with."""
    system, numbers, states = odd_case("scan_snap.reduced_symmetric")
    states["S_d"] = excess / numbers.params["p"].max() ** 2
    got = [float(value(system, rhs, numbers, states, ())) for rhs in list(system.equations.values())[:3]]
    assert not np.isfinite(got).any()
