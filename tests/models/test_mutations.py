"""Right-hand sides that are wrong are noticed: the laws that a model declares fix its rates and which state is which."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from sympy import Rational

import odesim
from odesim.inputs.registry import load_model
from odesim.symbolic import System
from tests.support.contract import CONTRACT
from tests.support.models import FLOWS

FASTER = Rational(101, 100)
HOLDS, FAILS = 1e-6, 1e-5  # 100 times rtol; a hundredth of the speed is 1e-4 and more in what moves, of order 1
SEPARATE = np.kron(np.eye(2), np.arange(1, 6) / 15)  # two classes of five tokens each, none in common
RUNS: Mapping[str, dict[str, Any]] = {  # where closed forms hold; elsewhere the defaults
    "scan_snap.full": {"params": {"P": SEPARATE, "p": [0.3, 0.7]}, "span": (0, 20)},
    "scan_snap.full_decorrelated": {"params": {"eta_Z": 0, "p": [0.3, 0.7]}, "span": (0, 20)},
    "in_context.merged": {"params": {"lam": 0.25}},
    "joma.cluster": {"params": {"sigma": 0.01}},
    "joma.linear_bterm": {"params": {"b": 0.1}},
    "reversal.bilinear": {"params": {"E": np.eye(10, 20)}, "span": (0, 20)},
    "margin.next_token": {"params": {"y": [0, 0.5, 0.5]}},
    "self_supervised.direct_pred": {"params": {"eps": 0}},
    "edge.directions": {"params": {"s": [20.95, 21.0]}},
    "optimisers.adam": {"params": {"H": np.zeros((2, 2)), "b": [0.3, -0.7]}},
    "skills.mixture": {"params": {"eta": 0}},
    "scaling.multi_index": {"params": {"k": 2}},
    **{f"scaling.{name}": {"params": {"G": [[1.0, 0, 0], [0, 0.7, 0], [0, 0, 2]]}} for name in ("diagonal", "mirror")},
    "scan_snap.symmetric": {"params": {"p": np.arange(1, 11) / 55, "pc": 0}, "span": (0, 20)},
}
# The rate of the attention alone, in the systems that have no solution in closed form where it moves.
NO_LAW_FIXES = {
    *(("scan_snap.full", state) for state in "Z"),
    *(("scan_snap.full_decorrelated", state) for state in "Z"),
    *(("scan_snap.symmetric", state) for state in ("z", "u", "v", "zc")),
    *(("scan_snap.reduced_symmetric", state) for state in "B"),
    *(("scan_snap.reduced", state) for state in "ZB"),
}
# Gradient flows of a loss without a solution: laws relate their states, none knows the time. Their right-hand sides are held by hand.
NO_CLOCK = (
    *("joma.joint_linear", "joma.joint_exp", "joma.joint_softmax", "joma.reduced_exp"),
    *("hierarchy.multilayer", "hierarchy.covariance", "topics.full", "topics.reduced"),
    *("particles.sphere", "particles.circle", "particles.density", "particles.sphere_density", "gibbs.training_flow"),
    *("particles.unnormalised", "classics.committee", "induction.stages", "induction.full", "self_supervised.no_stop"),
    *("ngrams.linear", "in_context.markov", "in_context.markov_bias", "in_context.single_location", "in_context.two_layers"),
    *(f"margin.{name}" for name in ("key_query", "prompt", "weights")),
    *("modular.energy", "edge.central_flow"),
)
STATES = [(name, state) for name in CONTRACT if name in FLOWS for state in CONTRACT[name][0]]


def broken(system: System, limit: float, **given: Any) -> list[str]:
    """Laws of the System that are off by more than the limit: invariants and closed forms, along the run of RUNS."""
    options: dict[str, Any] = {"save": 5, "backend": "numpy", "method": "tsit5", "rtol": 1e-8, "atol": 1e-11}
    run = odesim.integrate(system, **(options | RUNS.get(system.name, {}) | given))
    found = [name for name, worst in run.invariants.items() if worst is not None and not worst < limit]
    y0 = {name: rows[0] for name, rows in run.y.items()}
    for form in system.closed_forms:
        gaps = []
        for k, t in enumerate(run.t):
            here = {name: rows[k] for name, rows in run.y.items()}
            if form.kind == "explicit":
                want = form.function(float(t), y0, run.attrs["params"])
                gaps += [np.max(np.abs(here[name] - value) / np.maximum(np.abs(value), 1)) for name, value in want.items()]
            else:
                gaps.append(np.max(np.abs(form.function(float(t), here, y0, run.attrs["params"]))))
        if not np.max(gaps) < limit:
            found.append(form.name)
    return found


def scaled(system: System, factor: Any, *names: str) -> System:
    """The System, the right-hand sides of these states times the factor."""
    return replace(system, equations={key: e * (factor if base(key) in names else 1) for key, e in system.equations.items()})


def base(key: Any) -> str:
    """Name of the state of an equation."""
    return str(getattr(key, "base", key))


@pytest.mark.first(2)
@pytest.mark.parametrize("name", [name for name in FLOWS if name not in NO_CLOCK])
def test_time_is_fixed(name):
    """One hundredth faster, a law fails; as it is, all hold."""
    system = load_model(name)
    states = [str(state) for state in system.states]
    assert broken(system, HOLDS) == []
    assert broken(scaled(system, FASTER, *states), FAILS)


@pytest.mark.parametrize("name", ["joma.joint_linear", "joma.joint_exp"])
@pytest.mark.parametrize("state", ["V", "Z"])
def test_the_theorem_fixes_the_ratio_of_weights_and_logits(name, state):
    """As it is all hold; V or Z a hundredth faster, Theorem 1 fails."""
    system = load_model(name)
    assert broken(system, HOLDS) == []
    assert "Theorem 1" in broken(scaled(system, FASTER, state), FAILS)


@pytest.mark.first(2)
@pytest.mark.parametrize(("name", "state"), [row for row in STATES if row not in NO_LAW_FIXES and row[0].startswith("scan_snap")])
def test_the_rate_of_each_state_is_fixed(name, state):
    """One equation of several a hundredth faster: a law fails."""
    assert broken(scaled(load_model(name), FASTER, state), FAILS)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FLOWS if name.startswith("scan_snap")])
def test_states_are_not_mixed_up(name):
    """Two right-hand sides of one shape in each other's place: a law fails.

    Rows of Y of other classes and of other tokens are alike where classes share nothing: there common ones tell them apart.
    """
    given: dict[str, Any] = {"params": {}} if name == "scan_snap.symmetric" else {}
    system = load_model(name)
    shapes: dict[Any, list[Any]] = {}
    for key in system.equations:
        shapes.setdefault(getattr(key, "indices", ()), []).append(key)
    for first, second in (pair for keys in shapes.values() for pair in pairwise(keys)):
        swapped = {**system.equations, first: system.equations[second], second: system.equations[first]}
        assert broken(replace(system, equations=swapped), FAILS, **given), (first, second)
