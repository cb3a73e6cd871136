"""Numbers that a model's equations do not mean, at the start too, are refused in a sentence."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.base.errors import ParamError
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "kappa": ("in_context.single_location", {"initial": {"kappa": 2}}, "k is a unit vector: kappa**2 must be at most 1; it is 4"),
    "one": ("scaling.single_index", {"initial": {"m": 1.5}}, "m is an overlap of unit vectors: m**2 must be at most 1; it is 2.25"),
    "many": ("scaling.multi_index", {"params": {"m0": [1, 1, 0, 0]}}, "m is a unit vector: sum of m[j]**2 over j must be 1; it is 2"),
    "variance": ("self_supervised.modes", {"initial": {"s": -0.1}}, "s[j] must be at least 0; it is -0.1 at j = 0"),
    "moving": ("self_supervised.modes_ema", {"initial": {"s": -0.1}}, "s[j] must be at least 0; it is -0.1 at j = 0"),
    "power": ("modular.powers", {"initial": {"U": [0.1, -0.1, 0.1]}}, "U[k] must be at least 0; it is -0.1 at k = 1"),
    "modulus": ("modular.phases", {"params": {"p": 22.5}}, "p is odd: Mod(p, 2) must be 1; it is 0.5"),
    "frequency": ("modular.phases", {"params": {"p": 21}}, "k goes up to (p - 1)/2: p/2 - K must be at least 0.5; it is -0.5"),
    "shape": ("edge.product", {"params": {"shape": 0.3}}, "shape = 0.3 is not a whole number"),
    "Hessian": ("optimisers.sign", {"params": {"H": [[1, 0.5], [0, 1]]}}, "H is symmetric: H[i, j] - H[j, i] must be 0; it is 0.5"),
    "covariance": (
        "scaling.mirror",
        {"params": {"G": [[1, 2], [2, 1]]}},
        "G is a covariance, without an eigenvalue below 0: least must be at least 0; it is -0.333333 (tol",
    ),
    "three": (
        "scaling.diagonal",
        {"params": {"G": [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]}},
        "G is a covariance, without an eigenvalue below 0: ",
    ),
    "small": ("scaling.diagonal", {"params": {"G": [[1e-9, 0], [0, -1e-12]], "c": [1e-9, 0]}}, "G is a covariance, without an eigenvalue"),
    "askew": ("scaling.mirror", {"params": {"G": [[1e-13, 1e-13], [0, 1e-13]], "c": [0, 0]}}, "G is symmetric: skew must be 0; it is 1"),
    "range": ("scaling.diagonal", {"params": {"G": [[1, 1], [1, 1]], "c": [1, 0.5]}}, "c is in the range of G, as of any data: outside"),
    "word": (
        "scaling.word2vec",
        {"params": {"P": [[0.5, 0.25, 0], [0.25, 0, 0], [0, 0, 0]]}},
        "every word occurs: sum of P[i, k] over k must be at least 1e-100",
    ),
}


@pytest.mark.first(len(REFUSED))
@pytest.mark.parametrize("case", REFUSED)
def test_models_refuse_what_their_papers_exclude(case):
    """Parameters, and starts too, outside of what the equations mean."""
    model, given, words = REFUSED[case]
    with pytest.raises(ParamError) as caught:
        bind(load_model(model), **given)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e8])
def test_covariances_of_few_samples_are_of_any_scale(scale):
    """Of 2 samples of 5 inputs G has rank 2, but for rounding, and c is in its range: scaling.diagonal has them, of zero too."""
    X = np.sqrt(scale) * np.random.default_rng(1).normal(size=(2, 5))
    for inputs in (X, 0 * X):
        bind(load_model("scaling.diagonal"), params={"G": inputs.T @ inputs / 2, "c": inputs.T @ [1.0, -0.3] / 2}, sizes={"d": 5})


def test_a_start_that_a_constraint_excludes_names_its_member():
    """The first of those that vary; a start that is not finite breaks nothing."""
    with pytest.raises(ParamError, match=r"m\*\*2 must be at most 1; it is 2.25 \(tolerance 1e-06\) in member 2$"):
        odesim.ensemble("scaling.single_index", initial={"m": np.array([0.2, np.nan, 1.5])})
