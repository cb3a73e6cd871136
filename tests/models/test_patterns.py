"""Patterns of attention: the whole head beside loops, and Bayes' rule by counting."""

from itertools import product

import numpy as np
import pytest

import odesim
from odesim.models.patterns.claims import HEAD, keys_in_noise, tokens_of_topics
from odesim.symbolic.parts import key_indices
from odesim.targets.numpy_text import evaluate
from tests.support.truth.patterns import slopes

CONTEXTS = {
    "keys": (keys_in_noise(3, 2, 2), [([key, *noise], key) for key in range(3) for noise in product((3, 4), repeat=2)]),
    "topics": (tokens_of_topics(2, (0.0, 0.0)), [(list(x), k) for k in range(2) for x in product((0, 1), repeat=2)]),
}


@pytest.mark.parametrize("case", CONTEXTS)
def test_the_whole_head(case: str) -> None:
    """Its flow is the one by loops over contexts and tokens, at weights of no symmetry; to rounding."""
    given, contexts = CONTEXTS[case]
    (S, V), K, rng = np.shape(given["X"]), np.shape(given["y"])[1], np.random.default_rng(0)
    states = {"Z": rng.normal(size=V), "W": rng.normal(size=(V, K))}
    want = dict(zip("ZW", slopes(contexts, states["Z"], states["W"]), strict=True))
    for key, slope in HEAD.equations.items():
        values = {name: np.asarray(a, float) for name, a in {**given, **states}.items()}
        got = evaluate(slope, key_indices(key), HEAD.axes, {"S": S, "V": V, "K": K}, values)
        np.testing.assert_allclose(got, want[str(key.base)], rtol=1e-12, atol=1e-14)


def test_counting_ends_at_the_posterior() -> None:
    """At rest the loss is the entropy of the topic given five tokens, sequence by sequence, and 1e-3 further it rises."""
    rho, T, entropy = 0.4, 5, 0.0
    for x in product((0, 1), repeat=T):
        joint = [0.5 * np.prod([(1 + rho) / 2 if token == topic else (1 - rho) / 2 for token in x]) for topic in (0, 1)]
        entropy -= sum(p * np.log(p / sum(joint)) for p in joint)
    u = T * np.log((1 + rho) / (1 - rho))
    for off in (0.0, -1e-3, 1e-3):
        run = odesim.integrate(
            "patterns.aggregate", sizes={"T": T}, params={"rho": rho}, initial={"u": u + off}, span=(0, 1e-3), save=2, backend="numpy"
        )
        above = float(run.observables["loss"][0]) - entropy
        assert abs(above) < 1e-15 if off == 0 else 1e-10 < above < 1e-6
        assert np.sign(round(float(np.diff(run.y["u"])[0]), 12)) == -np.sign(off)
