"""Every target of masked sampling: its table by hand, sequence after sequence, and the chain rests there."""

from itertools import combinations, product
from math import comb, exp, prod
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import odesim
from odesim.base.errors import ParamError
from odesim.inputs.bind import bind
from odesim.inputs.registry import load_model
from odesim.models.gibbs._decoding import missed
from odesim.targets.numpy_text import evaluate
from tests.support.chains import mask_predict, unmask

n, FIELDS = 3, np.array([0.1, -0.4, 0.25])
COUPLINGS = np.array([[9.0, 0.5, -0.3], [0.5, -7.0, 0.8], [-0.3, 0.8, 2.0]])  # the diagonal does not matter
BITS = list(product((0, 1), repeat=n))


def of_pairs(x: tuple[int, ...]) -> float:
    """The weight of a sequence of signs that have couplings and fields."""
    s = [2 * bit - 1 for bit in x]
    pairs = sum(COUPLINGS[i, j] * s[i] * s[j] for i, j in combinations(range(n), 2))
    return exp(pairs + sum(h * sign for h, sign in zip(FIELDS, s, strict=True)))


def of_mixture(x: tuple[int, ...], delta: float = 0.35) -> float:
    """The probability of a sequence, half each of tokens that are 1 with probability 1/2 + delta and 1/2 - delta."""
    return sum(prod(one if bit else 1 - one for bit in x) for one in (0.5 + delta, 0.5 - delta)) / 2


CASES: dict[str, tuple[dict[str, Any], dict[str, int], list[float] | None]] = {  # parameters, sizes, weights of the states
    "gibbs.master:ISING": ({"J": COUPLINGS, "h": FIELDS}, {"n": n, "S": 2**n}, [of_pairs(x) for x in BITS]),
    "gibbs.master:MIXTURE": ({"delta": 0.35}, {"S": 2**n}, [of_mixture(x) for x in BITS]),
    "gibbs.master:TWO_POINTS": ({"e": 0.2}, {"S": 2**n}, [0.425, *[0.025] * 6, 0.425]),
    "gibbs.master:DIRICHLET": ({"seed": 4}, {"S": 2**n}, None),  # random: it is a law, and rests
    "gibbs.lumped:MIXTURE": ({"delta": 0.35}, {"n": 5}, [comb(5, m) * of_mixture((1,) * m + (0,) * (5 - m)) for m in range(6)]),
}


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_target(name: str, k: int) -> None:
    """p is the table by hand, sums to 1, and the right-hand side of p is 0; to rounding."""
    params, sizes, weights = CASES[name]
    system = load_model(name)
    numbers = bind(system, params={**params, "k": k}, sizes=sizes)
    p = numbers.params["p"]
    assert p.sum() == pytest.approx(1, abs=1e-14) and (p > 0).all() and np.ptp(p) > 0.01
    if weights is not None:
        np.testing.assert_allclose(p, np.array(weights) / sum(weights), rtol=1e-13)
    ((entry, slope),) = system.equations.items()

    def rises(pi: np.ndarray) -> np.ndarray:
        return np.asarray(evaluate(slope, entry.indices, system.axes, numbers.sizes, {**numbers.params, "pi": pi}))

    assert np.abs(rises(p)).max() < 1e-15
    assert np.abs(rises(np.full(p.shape, 1 / p.size))).max() > 1e-3  # elsewhere it moves


def test_run_beside_the_exponential():
    """From its first sequence the chain is at exp(Q t): 1e-9, ten times the relative tolerance; its mass stays 1 to rounding."""
    given: dict[str, Any] = {
        "params": {"J": COUPLINGS, "h": FIELDS},
        "sizes": {"n": n, "S": 2**n},
        "save": [0, 0.5, 3, 20],
        "span": (0, 20),
    }
    run = odesim.integrate("gibbs.master:ISING", **given, rtol=1e-10, atol=1e-13, backend="numpy")
    want = [run.y["pi"][0] @ expm(run.attrs["params"]["Q"] * t) for t in run.t]
    np.testing.assert_allclose(run.y["pi"], want, rtol=0, atol=1e-9)
    np.testing.assert_allclose(run.y["pi"].sum(axis=1), 1, rtol=0, atol=1e-12)
    assert np.abs(run.y["pi"][-1] - run.y["pi"][1]).max() > 0.1


DECODERS: dict[str, tuple[Any, dict[str, Any], dict[str, int]]] = {
    "gibbs.mask_predict": (mask_predict, {"k": [3, 2, 1]}, {"S": 8, "T": 3}),
    "gibbs.unmask": (unmask, {"step": [1, 0, 2]}, {"S": 8, "n": 3, "T": 3}),
}


@pytest.mark.parametrize("name", DECODERS)
def test_decoding_step_by_step(name: str) -> None:
    """Five updates of a law without symmetry beside loops over sequences: after three of them it stays; from a start without symmetry."""
    update, own, sizes = DECODERS[name]
    p, start = (np.random.default_rng(seed).dirichlet(np.ones(8)) for seed in (0, 1))
    run = odesim.integrate(name, params={"p": p, **own}, sizes=sizes, initial={"pi": start}, steps=5, save=6, backend="numpy")
    params, want = run.attrs["params"], [start]
    for t in range(5):
        want.append(update(t, {"pi": want[-1]}, params)["pi"])
    np.testing.assert_allclose(run.y["pi"], want, rtol=1e-12)
    np.testing.assert_allclose(run.observables["KL_missed"][1:], [p @ np.log(p / pi) for pi in want[1:]], atol=1e-13)
    assert np.abs(want[3] - want[2]).max() > 0.01


def test_decoder_is_whole_by_default() -> None:
    """One token a step misses nothing, TV 0 to rounding; T follows from step and k, a run goes on to T, and a smaller T is refused."""
    run = odesim.integrate("gibbs.unmask", params={"step": [0, 1, 2, 3]}, backend="numpy")
    assert run.attrs["sizes"]["T"] == 4 and run.observables["TV"][-1] < 1e-14
    runs = [odesim.integrate("gibbs.mask_predict", params={"k": [4, 3, 2, 1]}, backend="numpy", steps=steps) for steps in (None, 4)]
    np.testing.assert_array_equal(runs[0].final["pi"], runs[1].final["pi"])
    with pytest.raises(ParamError, match=r"^step\[2\] = 2 is out of range: .*\(T = 2 as given\)$"):
        odesim.integrate("gibbs.unmask", params={"step": [0, 1, 2, 3]}, sizes={"T": 2})


def test_what_is_missed_by_chance() -> None:
    """Three tokens in blocks of one and two: E KL by the formula, beside the correlation of a pair given the third, by hand."""
    p = np.random.default_rng(2).dirichlet(np.ones(8)).reshape(2, 2, 2)
    total = 0.0
    for first in range(3):
        table = np.moveaxis(p, first, 0)
        for plane in table:
            rows, columns = plane.sum(axis=1), plane.sum(axis=0)
            total += (plane * np.log(plane * plane.sum() / np.outer(rows, columns))).sum() / 3
    assert missed(p.ravel(), 2, (1, 2)) == pytest.approx(total, abs=1e-14)


@pytest.mark.parametrize("J", [0.1, 0.3])
def test_revision_comes_closer_with_more_steps(J: float) -> None:
    """TV of mask_predict, five signs, falls in T; and at T = 1, 2 (blocks of equal size) it is that of blocks without revision."""
    sizes = {"S": 16}
    runs = {
        T: odesim.integrate("gibbs.mask_predict", params={"J": J}, sizes=sizes | {"T": T}, steps=T, save=2, backend="numpy")
        for T in (1, 2, 4)
    }
    TV = [float(run.observables["TV"][-1]) for run in runs.values()]
    assert all(np.diff(TV) < 0) and TV[-1] > 1e-3
    blocks = [
        odesim.integrate(
            "gibbs.unmask",
            params={"J": J, "step": [int(j not in first) for j in range(4)]},
            sizes=sizes | {"n": 4, "T": 2},
            steps=2,
            save=2,
            backend="numpy",
        ).final["pi"]
        for first in combinations(range(4), 2)
    ]
    np.testing.assert_allclose(runs[2].final["pi"], np.mean(blocks, axis=0), rtol=1e-12)
