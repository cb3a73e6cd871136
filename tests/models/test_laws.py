"""Laws over all models: one run of each with its defaults, held against everything its file says of it."""

import pickle
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sympy import true

import odesim
from odesim.base.errors import ParamError
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.symbolic import System
from odesim.symbolic.definition import unused_params
from tests.support.contract import CONTRACT
from tests.support.matrix import slow_but
from tests.support.models import CHEAPEST_FIRST, COMPILED, FLOWS, GROWING, MAPS, NOISY

MODELS = CHEAPEST_FIRST
JOMA = [name for name in MODELS if name.startswith(("joma.linear", "joma.nonlinear", "joma.self"))]
JOMA = [name for name in JOMA if name not in ("joma.linear_attention", "joma.linear_bterm")]  # those of one state and one array
TOLERANCE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12, "backend": "numpy"}  # laws are of the equations: no kernel is compiled


def tolerance(name: str, **given: float) -> dict[str, Any]:
    """Those of a run on arrays, TOLERANCE if none are given; a Map has none. A path is compiled, and has its own step."""
    if name in NOISY:
        return {}
    return {"backend": "numpy"} if name in MAPS else TOLERANCE | given


@cache
def default_run(name: str) -> Any:
    """One run of a model as it comes, 41 times kept."""
    return odesim.integrate(name, save=41, **tolerance(name))


def seen_at(run: Any, k: int) -> dict[str, Any]:
    """The states at the k-th kept time."""
    return {name: rows[k] for name, rows in run.y.items()}


def shape_text(system: System, observable: str) -> str:
    e = system.observables[observable]
    return "()" if not hasattr(e, "free_symbols") else str(tuple(system.axes[i] for i in system.observable_indices(observable)))


def test_the_contract_names_every_model():
    """A name in the contract is a model. A new model joins when scripts may rely on its names."""
    assert set(CONTRACT) <= set(MODELS)


WITHOUT_CLOSED_FORM = (
    *("classics.committee", "gibbs.training_flow", "hierarchy.covariance", "hierarchy.multilayer", "hopfield.classical"),
    *("hopfield.dense", "hopfield.update", "in_context.markov", "in_context.markov_bias", "in_context.single_location"),
    *("in_context.two_layers", "induction.full", "induction.stages", "joma.joint_exp", "joma.joint_linear"),
    *(
        "joma.joint_softmax",
        "joma.reduced_exp",
        "noise.area",
        "noise.double_well",
        "noise.geometric",
        "noise.ornstein_uhlenbeck",
        "noise.sgd_least_squares",
        "noise.two_layer",
        "particles.circle",
        "particles.density",
        "particles.noisy_circle",
        "particles.sphere",
        "particles.sphere_density",
        "particles.unnormalised",
        "topics.full",
    ),
    *(f"edge.{name}" for name in ("four_layers", "product", "sam", "self_stabilisation", "threshold_neuron", "valley", "central_flow")),
    *(f"margin.{name}" for name in ("key_query", "prompt", "weights")),
    *("modular.energy", "optimisers.muon", "optimisers.newton_schulz"),
    *(f"self_supervised.{name}" for name in ("byol", "modes_ema", "no_stop", "simsiam")),
    *("galore.adam_map", "gibbs.mask_predict", "ngrams.linear", "topics.reduced"),
)
WITH_CLOSED_FORM = [name for name in MODELS if name not in WITHOUT_CLOSED_FORM]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_named_by_its_file_and_uses_its_parameters(name):
    system = load_model(name)
    assert system.name == name and unused_params(system) == ()


@pytest.mark.parametrize("name", sorted(CONTRACT))
def test_names_and_shapes(name):
    system = load_model(name)
    states, params, observables = CONTRACT[name]
    kind = (system.discrete, not system.closed_forms, system.growth is not None)
    assert kind == (name in MAPS, name in WITHOUT_CLOSED_FORM, name in GROWING)
    assert {k: str(v) for k, v in system.shapes.items()} == states
    assert {p.name: str(p.shape) for p in system.params} == params
    assert {o: shape_text(system, o) for o in observables} == observables


SPREAD: tuple[str, ...] = ("joma.nonlinear_log", "hierarchy.multilayer", "hierarchy.covariance", "topics.full", "topics.tied")
SPREAD += ("hopfield.modern", "hopfield.potts", "hopfield.graded", "particles.sphere", "particles.circle", "classics.deep_linear")
SPREAD += ("classics.deep_linear_modes", "gibbs.master", "gibbs.parallel", "gibbs.lumped")
SPREAD += ("topics.reduced", "hopfield.two_layer", "particles.unnormalised", "particles.rescaled", "classics.committee", "induction.stages")
SPREAD += ("galore.projected", "induction.full")
"""Models with a start that is no number."""


@pytest.mark.parametrize("name", [name for name in FLOWS if name in CONTRACT and name not in SPREAD])
def test_starts(name):
    """Every flow starts at 0, those that rest at mu at .05, and logits of which 0 is a fixed point at 1."""
    start = 0.05 if name.startswith("joma.nonlinear") or name in ("hierarchy.grouped", "hierarchy.gated", "hopfield.two_patterns") else 0.0
    other = {"joma.joint_linear": {"Z": 1.0}, "joma.cluster": {"v": 0.1}, "joma.linear_attention": {"z": 1.0}}.get(name, {})
    assert all(np.all(value == other.get(state, start)) for state, value in bind(load_model(name)).initial.items())


@pytest.mark.parametrize("name", MODELS)
def test_texts(name):
    """Every parameter says what it is; the source stands in the bibliography; nothing that is said twice differs."""
    system = load_model(name)
    bib = (Path(odesim.__file__).parents[1] / "models" / "references.bib").read_text(encoding="utf-8")
    assert system.source.key in re.findall(r"^@\w+\{([^,]+),$", bib, re.MULTILINE)
    assert all(len(p.doc) > 8 for p in system.params) and system.source.where and system.time
    assert not re.search("rate times|times the learning rate|steps of SGD", system.time)  # steps times learning rate, SGD steps
    for group in (system.invariants, system.events, system.constraints, system.closed_forms):
        names = [x.name for x in group]  # type: ignore[attr-defined]
        assert len(set(names)) == len(names)


@pytest.mark.first(9)
@pytest.mark.parametrize("name", MODELS)
def test_pickles(name):
    system = load_model(name)
    copy = pickle.loads(pickle.dumps(system))
    assert copy.equations == system.equations and copy.observables.keys() == system.observables.keys()


@pytest.mark.first(5)
@pytest.mark.parametrize("name", MODELS)
def test_default_run(name):
    """It ends where it should, everything is finite, something moves, and every law of the file holds along it."""
    run = default_run(name)
    assert run.status == "ok" and run.t[-1] == load_model(name).span[1]
    for rows in (*run.y.values(), *run.observables.values()):
        assert np.isfinite(rows).all()
    assert all(np.ptp(rows, axis=0).max() > 1e-3 for rows in run.y.values())
    assert {k: v for k, v in run.invariants.items() if not v < 1e-7} == {}  # 100 times rtol, on quantities of order 1 to 100


@pytest.mark.first(1)
@pytest.mark.parametrize("name", slow_but(MODELS, COMPILED))
def test_the_compiled_run_is_that_of_arrays(name):
    """The run users get, and its laws. 1e-6: two runs of error 1e-9 each, whose steps differ by rounding, on flows that pull apart."""
    plain = default_run(name)
    run: Any = odesim.integrate(name, save=41, **tolerance(name) | {"backend": "numba"})
    assert run.status == "ok" and {k: v for k, v in run.invariants.items() if not v < 1e-7} == {}
    for found, expected in ((run.y, plain.y), (run.observables, plain.observables)):
        for key, rows in expected.items():
            np.testing.assert_allclose(found[key], rows, rtol=1e-6, atol=1e-8, err_msg=key)


# what the constraints of a model leave of a start
LEFT = {("modular.powers", "U"): abs, ("modular.powers", "V"): abs, ("scaling.multi_index", "m"): lambda m: m / np.linalg.norm(m)}
LEFT |= {(f"self_supervised.{name}", "s"): abs for name in ("modes", "modes_ema")}
LEFT |= {(f"particles.{name}", "a"): lambda a: modes_of_density(a) for name in ("density", "sphere_density")}


def modes_of_density(a):
    """Modes (N,) whose density is positive on the circle and the sphere: sum N_l |a_l| <= 1/2, N_l at most 2 l + 1, beside a_0 = 1."""
    a = a / (2 * (2 * np.arange(len(a)) + 1) * np.abs(a).sum())
    a[0] = 1
    return a


@pytest.mark.first(7)
@pytest.mark.parametrize("name", MODELS)
def test_laws_hold_from_any_start_they_are_for(name):
    """From random starts every invariant holds or is not applicable. 1e-6: 1000 times rtol, from states of order 1 that may grow."""
    system, rng = load_model(name), np.random.default_rng(1)
    start = bind(system).initial
    for scale in (0.1, 0.5):
        drawn = {s: scale * rng.normal(size=v.shape) for s, v in start.items()}
        drawn |= {s: LEFT[name, s](v) for s, v in drawn.items() if (name, s) in LEFT}
        run = odesim.integrate(name, initial=drawn, span=(0, 2), save=21, **tolerance(name))
        assert {k: v for k, v in run.invariants.items() if v is not None and not v < 1e-6} == {}


NOT_FROM: list[tuple[str, dict[str, Any], str]] = [
    ("joma.linear", {"v": -1.0}, "entropy falls"),
    ("joma.linear", {"v": np.linspace(0.9, 0, 10)}, "entropy falls"),
    ("joma.linear_softmax", {"v": -1.0}, "entropy falls"),
    ("joma.linear_multinode", {"V": 0.1}, "erf grows with t"),
    ("joma.linear_multinode", {"V": np.eye(40, 20)}, "entropy falls"),
    ("scan_snap.theorem4", {"u": -1.0}, "B grows"),
    ("scan_snap.decoder", {"u": -1.0}, "attention moves on"),
    ("scan_snap.reduced_symmetric", {"u": -1.0}, "distinct tokens gain"),
    ("scan_snap.reduced_symmetric", {"u": -1.0}, "common tokens lose"),
    ("scan_snap.reduced_symmetric", {"S_d": 100.0}, "Theorem 3, upper bound"),
    ("scan_snap.reduced_symmetric", {"B": 3.0}, "Theorem 3, lower bound"),
]


@pytest.mark.first(2)
@pytest.mark.parametrize(("name", "initial", "law"), NOT_FROM, ids=lambda x: x if isinstance(x, str) else ",".join(x))
def test_a_law_is_not_applicable_where_it_does_not_hold(name, initial, law):
    """Its condition says so, and is needed: without it the run breaks the law, by ten times what test_default_run allows."""
    system = load_model(name)
    always = replace(system, invariants=tuple(replace(v, when=true) for v in system.invariants))
    run, bare = (odesim.integrate(s, initial=initial, save=41, **TOLERANCE) for s in (system, always))
    broken = bare.invariants[law]
    assert run.invariants[law] is None and broken is not None and broken > 1e-6


LEAST = {("hierarchy.gated", "L"): 4, ("scan_snap.reduced", "S"): 4, ("scan_snap.full_decorrelated", "S"): 4}
LEAST |= {(f"galore.{name}", size): 2 for name in ("adam_map", "projected") for size in "mn"} | {
    ("particles.density", "N"): 2,
    ("particles.sphere_density", "N"): 2,
    ("margin.next_token", "K"): 2,
    ("in_context.single_location", "Q"): 20,
}
"""Sizes below which classes are alike, where a model needs them to differ, an observable has no element, or an integral is not exact."""


DOCUMENTS = {name: {"d": 5, "N": 6} for name in ("topics.full", "topics.stage1", "topics.tied")}
DOCUMENTS |= {"gibbs.unmask": {"n": 4, "S": 16}, "gibbs.mask_predict": {"S": 4}, "galore.adam_map": {"r": 3}}
DOCUMENTS |= {"gibbs.training_flow": {"S": 16, "N": 32, "R": 2}, "gibbs.parallel": {"S": 4}}
DOCUMENTS |= {"induction.full": {"N": 3, "V": 6, "S": 120}}
"""Four topics of a word each, in pairs: sizes that fit the numbers of topics. Groups of sequences that differ in one of four tokens. All
sequences of a length."""


@pytest.mark.first(11)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [1, 4])
def test_defaults_follow_the_sizes(name, n):
    """Every size by itself, smaller than by default: the parameters fit, the constraints hold, the run ends."""
    system = load_model(name)
    for size in system.size_names:
        n_here = max(({"L": n + 1, "Q": 1} | DOCUMENTS.get(name, {})).get(size, n), LEAST.get((name, size), 1))
        run = odesim.integrate(name, sizes={size: n_here}, save=3, **tolerance(name, rtol=1e-5, atol=1e-8))
        assert run.status == "ok" and run.attrs["sizes"][size] == n_here
        assert all(np.isfinite(rows).all() for rows in (*run.y.values(), *run.observables.values()))


STARTS: dict[str, dict[str, Any]] = {
    "scan_snap.reduced": {"u": 0.7},
    "scan_snap.reduced_symmetric": {"u": 0.7},
    "scan_snap.theorem4": {"z": -0.2, "B": 0.1, "u": 0.7},
    "scan_snap.decoder": {"u": 0.7, "Gamma": -0.2},
    "joma.linear": {"v": -0.3},
    "joma.linear_softmax": {"v": -0.3},
    "joma.linear_attention": {"V": 0.3, "z": -0.7},
    "joma.linear_bterm": {"v": -0.3},
    "joma.self_consistent": {"v": -0.3},
    "joma.nonlinear_log": {"L": -0.2},
    "joma.nonlinear": {"v": -0.3},
    "joma.nonlinear_softmax": {"v": -0.3},
    "hierarchy.grouped": {"v": -0.3},
    "hierarchy.gated": {"v1": -0.3},
    "galore.parametric_gradient": {"W": 0.7},
    "galore.projected": {"W": 0.7},
    "topics.stage1": {"W_V": 0.7},
    "in_context.separate": {"v": 0.3, "k": 0.3 * np.eye(4), "q": 0.3 * np.eye(4)},
    "reversal.row": {"v": 0.7},
    "gibbs.master": {"pi": 0.7},
    "gibbs.parallel": {"pi": 0.7},
    "gibbs.lumped": {"pi": 0.7},
    "hopfield.modern": {"xi": 0.7},
    "classics.deep_linear_modes": {"a": 0.3},
    "particles.gamma": {"gamma": 0.3},
    "particles.two_clusters": {"r": -0.3},
    "hopfield.potts": {"z": 0.7},
    "hopfield.two_patterns": {"u": -0.7},
    "hopfield.graded": {"u": 0.7},
    "hopfield.two_layer": {"v": 0.7, "h": -0.3},
    "particles.rescaled": {"E": 0.7},
    "memory.softmax_regression": {"m": -0.3},
    "causal.parent_row": {"A": 0.3},
    "patterns.skip_gram": {"z": -0.3, "u": 0.2},
    "patterns.aggregate": {"u": 0.7},
    "in_context.nearest": {"xi": 0.7},
    "partitions.embeddings": {"V": np.linspace(-0.6, 0.9, 12).reshape(6, 2)},
}
"""Another start, for the closed forms that hold for every start."""
WHERE_IT_HOLDS: dict[str, dict[str, Any]] = {  # classes of five tokens each, none of two classes
    "scan_snap.full": {"P": np.kron(np.eye(3), np.arange(1, 6) / 15), "p": [0.2, 0.3, 0.5], "psi": [0, 1, 0]},
    "scan_snap.full_decorrelated": {"eta_Z": 0.0},
    "scan_snap.symmetric": {"p": np.arange(1, 11) / 55, "pc": 0.0, "K": 3.0},
    "joma.linear_bterm": {"b": 0.1},
    "in_context.merged": {"lam": 0.25},
    "joma.cluster": {"sigma": 0.01},
    "reversal.bilinear": {"E": np.eye(10, 20)[:, ::-1]},
    "margin.next_token": {"y": [0, 0.5, 0.5]},
    "self_supervised.direct_pred": {"eps": 0.0},
    **{f"optimisers.{name}": {"H": np.zeros((2, 2)), "b": [0.3, -0.7]} for name in ("adam", "adam_steps")},
    "skills.mixture": {"eta": 0.0},
    "scaling.multi_index": {"k": 2},
    "scaling.diagonal": {"G": [[1.0, 0, 0], [0, 0.7, 0], [0, 0, 2]]},
    "scaling.mirror": {"G": [[1.0, 0, 0], [0, 0.7, 0], [0, 0, 2]]},
}
"""Parameters, for a closed form that does not hold for all."""


@pytest.mark.first(14)
@pytest.mark.parametrize(("name", "initial"), [*((name, None) for name in WITH_CLOSED_FORM), *STARTS.items()], ids=str)
def test_closed_forms(name, initial):
    """A run follows them. 1e-6: 1000 times rtol, for the flows that pull neighbours apart (linear near t*, softmax)."""
    params = WHERE_IT_HOLDS.get(name)
    run = odesim.integrate(name, initial=initial, params=params, save=11, **tolerance(name)) if initial or params else default_run(name)
    y0 = seen_at(run, 0)
    for form in load_model(name).closed_forms:
        for k, t in enumerate(run.t):
            if form.kind == "explicit":
                for state, want in form.function(float(t), y0, run.attrs["params"]).items():
                    np.testing.assert_allclose(run.y[state][k], want, rtol=1e-6, atol=1e-8)
            else:
                off = form.function(float(t), seen_at(run, k), y0, run.attrs["params"])
                assert np.abs(off).max() < 1e-6


@pytest.mark.first(14)
@pytest.mark.parametrize("name", WITH_CLOSED_FORM)
def test_closed_forms_can_fail(name):
    """At a state that the run does not pass, a thousandth off, an implicit form is not 0: the test above tests something."""
    run = default_run(name)
    for form in load_model(name).closed_forms:
        if form.kind == "implicit":
            k = len(run.t) // 8
            moved = {s: rows[k] + 1e-3 * np.arange(1, rows[k].size + 1).reshape(rows[k].shape) for s, rows in run.y.items()}
            assert np.abs(form.function(float(run.t[k]), moved, seen_at(run, 0), run.attrs["params"])).max() > 3e-5


@pytest.mark.first(2)
@pytest.mark.parametrize("name", JOMA)
def test_permuting_components_permutes_the_result(name):
    """Tokens have no order. 1e-7: two runs, whose steps differ by rounding only, each with error 1e-9 or so."""
    system, plain = load_model(name), default_run(name)
    (state,), array = system.states, system.params[0].name
    order = np.random.default_rng(0).permutation(plain.y[state].shape[1])
    run = odesim.integrate(name, params={array: plain.attrs["params"][array][order]}, save=plain.t, **TOLERANCE)
    np.testing.assert_allclose(run.y[state], plain.y[state][:, order], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(run.observables["entropy"], plain.observables["entropy"], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("scan_snap")])
def test_only_the_ratio_of_the_rates_matters(name):
    """(eta_Y, eta_Z, t) -> (3 eta_Y, 3 eta_Z, t / 3) changes nothing: exact, so 1e-7 is integration."""
    plain = default_run(name)
    eta = {k: 3 * plain.attrs["params"][k] for k in ("eta_Y", "eta_Z")}
    run = odesim.integrate(name, params=eta, span=(0.0, plain.t[-1] / 3), save=plain.t / 3, **TOLERANCE)
    for state, rows in plain.y.items():
        np.testing.assert_allclose(run.y[state], rows, rtol=1e-7, atol=1e-8)


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("scan_snap.full", {"P": [[0.5, 0.4], [0.5, 0.5]]}, "P"),
    ("scan_snap.full", {"P": [[1.5, -0.5], [0.5, 0.5]]}, "P"),
    ("scan_snap.full", {"p": [0.5, 0.4]}, "p"),
    ("scan_snap.full", {"M": 1.5}, "M"),
    ("scan_snap.full", {"psi": [0, 2]}, "psi"),
    ("scan_snap.full", {"eta_Y": -1.0}, "eta_Y"),
    ("scan_snap.full_decorrelated", {"P": [[1.0], [1.0]]}, "S"),
    ("scan_snap.symmetric", {"p": 0.2}, "p"),
    ("scan_snap.symmetric", {"M": 1.5}, "M"),
    ("scan_snap.reduced_symmetric", {"k_m": 3.0}, "k_m"),
    ("scan_snap.reduced_symmetric", {"K": 1.0, "M": 1.0}, "M"),
    ("scan_snap.reduced", {"P": [[0.5, 0.4], [0.5, 0.5]]}, "P"),
    ("scan_snap.reduced", {"P": [[1.0], [1.0]]}, "S"),
    ("scan_snap.theorem4", {"C0": 0.0}, "C0"),
    ("scan_snap.theorem4", {"M": 1.0}, "M"),
    ("scan_snap.decoder", {"M": 2.0, "K": 3.0}, "M"),
    ("joma.nonlinear_softmax", {"T": 0.0}, "T"),
    ("hierarchy.grouped", {"rho": 1.1}, "rho"),
    ("hierarchy.grouped", {"rho0": 1.0}, "rho0"),
    ("hierarchy.grouped", {"N": 1.0}, "N"),
    ("galore.projected", {"period": 0.0}, "period"),
    ("galore.parametric_gradient", {"B": np.triu(np.ones((6, 4, 4)))}, "B"),
    ("reversal.row", {"M": 2.0, "r": 2.0}, "M"),
    ("hopfield.graded", {"W": np.triu(np.ones((12, 12)))}, "W"),
    ("hopfield.modern", {"beta": 0.0}, "beta"),
    ("reversal.full", {"x1": [0, -1]}, "x1"),
]


@pytest.mark.parametrize(("name", "params", "said"), BAD, ids=str)
def test_what_is_outside_is_refused(name, params, said):
    """The message names what is wrong."""
    with pytest.raises(ParamError, match=rf"\b{said}\b"):
        bind(load_model(name), params=params)


def test_full_takes_everything_from_P():
    """Only P given: a query for each class, equal classes, a vocabulary of S + Q + K tokens; psi given: Q = max + 1."""
    P = np.full((3, 5), 0.2)
    numbers = bind(load_model("scan_snap.full"), params={"P": P})
    assert numbers.sizes == {"K": 3, "Q": 3, "S": 5}
    np.testing.assert_array_equal(numbers.params["psi"], [0, 1, 2])
    np.testing.assert_array_equal(numbers.params["p"], 1 / 3)
    assert numbers.params["M"] == 11
    numbers = bind(load_model("scan_snap.full"), params={"P": P, "psi": [0, 0, 1]})
    assert numbers.sizes["Q"] == 2 and numbers.params["M"] == 10
