"""Tables of cases, and models by the size of what is written out for them."""

from collections.abc import Container, Iterable, Sequence
from itertools import cycle
from typing import Any

import pytest


def slow_but(cases: Iterable[Any], kept: Container[Any], *, several: bool = False) -> list[Any]:
    """The cases of a law; those that are not among the kept are slow. several: a case is a tuple of arguments."""
    return [case if case in kept else pytest.param(*case if several else (case,), marks=pytest.mark.slow) for case in cases]


def in_turn(rows: Iterable[Any], columns: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Every row with one column, the next for the next: a law of two arguments whose cases are dear."""
    return list(zip(rows, cycle(columns), strict=False))


LONG = (
    "induction.full",
    "joma.linear_multinode",
    "reversal.bilinear",
    "reversal.full",
    "scan_snap.full",
    "scan_snap.full_decorrelated",
    *("topics.full", "topics.stage1", "topics.tied"),
)
"""Models of more states by default than are written out for lanes, which is 64."""

DENSE = (
    "classics.deep_linear",
    "classics.committee",
    "gibbs.master",
    "gibbs.training_flow",
    "hopfield.modern",
    "hopfield.two_layer",
    "particles.circle",
    "particles.rescaled",
    "particles.sphere",
    "particles.unnormalised",
    "galore.parametric_gradient",
    "galore.projected",
    "hierarchy.covariance",
    "hierarchy.multilayer",
    "joma.joint_exp",
    "joma.joint_linear",
    "joma.joint_softmax",
    "joma.reduced_exp",
    "scan_snap.reduced",
    "topics.reduced",
    "in_context.nearest",
    "in_context.separate",
    "margin.key_query",
    "margin.prompt",
    "margin.weights",
    "modular.energy",
    "parity.product",
    "particles.density",
    "partitions.embeddings",
    "scaling.word2vec",
    "scaling.word2vec_untied",
    "scan_snap.symmetric",
)
"""Models of at most 64 states by default that a stiff lane does not hold: over 1500 operations, or over 1300 of the Jacobian."""
