"""Sensitivities of every shipped model to every parameter and initial value, beside the difference of two runs."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from sympy import Interval, Reals, oo

import odesim
from odesim.inputs.bind import Numbers, bind
from odesim.inputs.registry import load_model
from odesim.symbolic import Param, System
from odesim.symbolic.assumptions import facts, holds
from odesim.targets.compiled import compile_system
from odesim.transforms.sensitivity import names_that_matter
from tests.support.matrix import slow_but
from tests.support.models import CHEAPEST_FIRST, FLOWS
from tests.support.moves import check_moves, moves

SMALL = {"M": 4, "K": 2, "S": 7, "D": 3, "C": 2, "L": 4}
SEQUENCES = {"gibbs.master": {"S": 4}, "gibbs.parallel": {"S": 4}, "gibbs.training_flow": {"S": 4, "A": 3, "N": 4, "R": 2}}
SEQUENCES |= {
    "induction.full": {"N": 2, "V": 3, "S": 6},
    "particles.density": {"N": 5, "X": 4},
    "particles.sphere_density": {"N": 5, "X": 4},
    "in_context.separate": {"H": 2},
}


@cache
def free_model(name: str) -> System:
    """A model whose parameters may leave their domains and constraints: the probabilities of one class no longer sum to 1."""
    system = load_model(name)
    params = tuple(p if p.integer else replace(p, domain=widest(p)) for p in system.params)
    return replace(system, params=params, constraints=(), events=())


def widest(p: Param) -> Any:
    """The largest domain that the symbol of a parameter allows."""
    domains = (Reals, Interval(0, oo), Interval.open(0, oo))
    return next((d for d in domains if all(holds(d, *fact) for fact in facts(p.symbol))), p.domain)


@cache
def small(name: str) -> Numbers:
    system = load_model(name)
    return bind(system, sizes={size: n for size, n in (SMALL | SEQUENCES.get(name, {})).items() if size in system.size_names})


STILL: dict[str, tuple[str, ...]] = {
    "joma.nonlinear_log": ("v0",),
    "joma.reduced_exp": ("z0",),
    "particles.sphere": ("causal", "x0"),
    "classics.deep_linear": ("a0",),
    "classics.committee": ("sigma",),
    "particles.unnormalised": ("causal", "x0"),
    "particles.rescaled": ("z0",),
    "galore.projected": ("P0", "period", "Omega"),
    "in_context.merged": ("s0",),
    "in_context.separate": ("a0",),
    "in_context.single_location": ("L", "eps2", "node", "weight"),
    "induction.stages": ("eps",),
    "ngrams.linear": ("w0",),
    "induction.full": ("eps",),
    "topics.reduced": ("eps",),
    "memory.softmax_regression": ("p",),
    "parity.product": ("eps",),
    "partitions.embeddings": ("eps",),
    "gibbs.master": ("p", "f"),
    "gibbs.parallel": ("p", "f", "s"),
    "gibbs.lumped": ("p",),
    "gibbs.training_flow": ("theta_star", "p"),
}
STILL |= {f"margin.{name}": ("size", "lack") for name in ("key_query", "prompt", "weights")} | {"margin.next_token": ("y",)}
STILL |= {f"optimisers.{name}": ("b", "w0") for name in ("adam", "sign", "momentum")}
STILL |= {"modular.energy": ("u0", "v0"), "modular.phases": ("lam",), "modular.powers": ("rest0",)}
STILL |= {f"self_supervised.{name}": ("W0", "W_p0") for name in ("byol", "no_stop", "simsiam")}
STILL |= {
    "scaling.word2vec": ("P", "W0"),
    "scaling.word2vec_untied": ("P", "W0", "C0"),
    "scaling.single_index": ("d",),
    "scaling.multi_index": ("m0",),
}
STILL |= {"scaling.diagonal": ("alpha",), "scaling.sgd": ("b",)}
TABLES = ("eps", "P", "B", "P_shown")
STILL |= dict.fromkeys(("topics.full", "topics.stage1", "topics.tied"), TABLES)
"""Parameters that the test below does not move: they set the start alone, are tables, 0, or probabilities."""


@cache
def names_of(name: str) -> list[str]:
    system = load_model(name)
    still = STILL.get(name, ())
    known = names_that_matter(system)
    return [p.name for p in system.params if not p.integer and p.name in known and p.name not in still] + list(system.states)


DEAR = (
    "classics.committee", "galore.projected", "hierarchy.covariance", "hierarchy.gated", "hierarchy.multilayer", "induction.full",
    "induction.stages", "joma.joint_exp", "joma.joint_linear", "joma.joint_softmax", "joma.reduced_exp", "particles.sphere",
    "scan_snap.full", "scan_snap.full_decorrelated", "scan_snap.reduced", "scan_snap.reduced_symmetric", "scan_snap.symmetric",
    "topics.full", "topics.reduced", "topics.stage1", "topics.tied",
)  # fmt: skip
"""Models whose derivatives take seconds to derive and lower."""
ALONE = ("topics.stage1", "topics.tied", "scaling.single_index")
"""Models with one name that matters."""
CASES = [
    pytest.param(model, part, marks=pytest.mark.slow if model in DEAR else ())
    for model in CHEAPEST_FIRST
    if model in FLOWS
    for part in ((0,) if model in ALONE else (0, 1))
]
"""Each model with one name in two, then with the others: by number, for a name is known once a model is loaded."""


@pytest.mark.first(6)
@pytest.mark.parametrize(("model", "part"), CASES)
def test_sensitivities_are_the_difference_of_two_runs(model, part):
    """From a state where nothing vanishes, each entry by a random part of itself: 0 stays, for 0 ln 0 has no derivative."""
    names = names_of(model)[part::2]
    assert names
    for name in names:
        numbers, rng = small(model), np.random.default_rng(7)
        start: dict[str, Any] = {state: value + rng.uniform(0.05, 0.2, value.shape) for state, value in numbers.initial.items()}
        value = np.asarray({**numbers.params, **start}[name])
        way = rng.normal(size=value.shape) * value
        found = moves(free_model(model), name, way, numbers.params, start, sizes=numbers.sizes, span=(0.0, 0.5))
        check_moves(found)
        assert any(np.abs(want).max() > 1e-6 for _, want in found.values()), name  # ten times what check_moves forgives


@pytest.mark.parametrize("model", slow_but(["scan_snap.reduced_symmetric", "scan_snap.theorem4", "scan_snap.full"], ["scan_snap.theorem4"]))
def test_learning_rates_are_a_clock(model):
    """Right-hand sides are linear in (eta_Y, eta_Z) together, so that twice the rates is half the time: sum of eta dy/deta = t dy/dt.

    No difference of runs stands in between: 100 times the tolerance.
    """
    rates = {"eta_Y": 0.8, "eta_Z": 1.7}
    options: dict[str, Any] = {"sizes": small(model).sizes, "span": (0.0, 5.0), "rtol": 1e-9, "atol": 1e-11, "backend": "numpy"}
    run = odesim.integrate(model, params=rates, sensitivities=tuple(rates), **options)
    slopes = compile_system(load_model(model), backend="numpy").arrays(small(model).sizes, {**run.attrs["params"], **run.final, "t": 5.0})
    for state in load_model(model).states:
        got = sum(rates[p] * run.sensitivities[p][state][-1] for p in rates)
        np.testing.assert_allclose(got, 5.0 * slopes[f"d_{state}"], atol=1e-7)
