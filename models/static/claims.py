"""Statements on transformers and their data that need no training: numbers by enumeration, or by drawing, beside closed forms."""

from collections.abc import Iterable
from itertools import combinations
from math import comb

import numpy as np

from odesim.lab.claims import Claim, Measurement
from odesim.models.static._causal_claims import GRADIENT, PROMPT, SINKS
from odesim.models.static._contrast_claims import CONTRAST
from odesim.models.static._hypercube_claims import HYPERCUBE
from odesim.models.static._learning_claims import LEARNING
from odesim.models.static._limit_claims import COMPONENTS, COMPOSITION, FACT_CLAIM
from odesim.symbolic import Source

CHAINS, LENGTH, STATES = 10_000, 6, 3


def chi_squared(P: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """{(i, j): information (n,) of place i on place j > i} in stationary chains P (n, k, k): sum p(s, s')^2 / (p(s) p(s')) - 1."""
    n, k, _ = P.shape
    pi = np.linalg.solve((np.eye(k) - P + 1).swapaxes(1, 2), np.ones((n, k, 1)))[..., 0]
    found: dict[tuple[int, int], np.ndarray] = {}
    steps = np.tile(np.eye(k), (n, 1, 1))
    for lag in range(1, LENGTH):
        steps = steps @ P
        information = (pi[:, :, None] * steps**2 / pi[:, None]).sum(axis=(1, 2)) - 1
        found |= {(j - lag, j): information for j in range(lag, LENGTH)}
    return found


def parents() -> Iterable[Measurement]:
    """10,000 chains of three states whose rows are uniform on the simplex: the parent of a place is the one before."""
    P = np.random.default_rng(0).standard_exponential((CHAINS, STATES, STATES))
    found = chi_squared(P / P.sum(axis=2, keepdims=True))
    for j in range(2, LENGTH):
        best = np.argmax([found[i, j] for i in range(j)], axis=0)
        yield Measurement(f"chains where place {j} is told most by the one before", (best == j - 1).sum(), CHAINS)
    for lag, mean in ((1, 0.302), (2, 0.071), (3, 0.025)):
        values = found[0, lag]
        yield Measurement(f"mean at a distance of {lag}", values.mean(), mean, 4 * float(values.std()) / CHAINS**0.5 + 5e-4)


def brackets(rng: np.random.Generator, length: int, types: int = 2, most: int = 4) -> list[tuple[int, int, int]]:
    """A Dyck sequence: (sign, type, depth) of each bracket, the depth on its inner side; opening or closing alike where both may be."""
    stack: list[int] = []
    out = []
    for _ in range(length):
        if not stack or (len(stack) < most and rng.random() < 0.5):
            stack.append(int(rng.integers(types)))
            out.append((1, stack[-1], len(stack)))
        else:
            out.append((-1, stack[-1], len(stack)))
            stack.pop()
    return out


def even_share(length: int, most: int) -> float:
    """The mean of 1/t over places t of brackets() with an open bracket: attention to the last open one if all have the same.

    Exact: the depth goes up or down alike, up from 0, down from `most`.
    """
    law, with_one, shares = np.eye(most + 1)[0], 0.0, 0.0
    step = np.eye(most + 1, k=1) / 2 + np.eye(most + 1, k=-1) / 2
    step[0, 1] = step[most, most - 1] = 1
    for t in range(1, length + 1):
        law = law @ step
        with_one += 1 - law[0]
        shares += (1 - law[0]) / t
    return float(shares / with_one)


def read_off(by_place: bool) -> Iterable[Measurement]:
    """Values +e and -e of (type, depth) of opening and closing brackets, four weights: is the type read at the present depth the one open?

    by_place: the weights of places, not of depths.
    """
    rng = np.random.default_rng(1)
    weights = {
        "uniform": np.ones(5),
        "random": rng.uniform(0.1, 1, 5),
        "increasing": np.arange(1.0, 6),
        "decreasing": np.arange(5.0, 0, -1),
    }
    last_open = {"uniform": even_share(28, 4), "increasing": 0.1466, "decreasing": 0.1347}  # within .0005, by an independent script
    for name, of_depth in weights.items():
        right, total, attention = 0, 0, []
        for _ in range(500):
            stack: list[tuple[int, float]] = []
            sums, mass = np.zeros((2, 5)), 0.0
            for sign, kind, depth in brackets(rng, 28):
                w = float(rng.uniform(0.1, 1) if by_place else of_depth[depth])
                sums[kind, depth] += sign * w
                mass += w
                stack = [*stack, (kind, w)] if sign > 0 else stack[:-1]
                if stack:
                    right += int(np.argmax(sums[:, len(stack)]) == stack[-1][0])
                    attention.append(stack[-1][1] / mass)
                    total += 1
        yield Measurement(f"{name} weights: open brackets read off, of all", right / total, 1.0)
        found = float(np.mean(attention))
        yield Measurement(f"{name} weights: mean attention to the last open bracket, below half", found, 0.5, 0.0, "<=")
        if name in last_open and not by_place:
            # means of 500 sequences deviate by .0007, and those of the script by half of it
            yield Measurement(f"{name} weights: mean attention to the last open bracket", found, last_open[name], 3e-3)


def counts_of_facts(rng: np.random.Generator, F: int, n: int) -> np.ndarray:
    """How often each of F facts (F,), all alike, comes in n draws."""
    return np.bincount(rng.integers(F, size=n), minlength=F)


def missing_mass() -> Iterable[Measurement]:
    """1000 draws of 1000 facts alike, 20,000 times: the share of draws whose fact came once, and the mass of facts that never came."""
    F = n = 1000
    rng, repeats = np.random.default_rng(2), 20_000
    counts = [counts_of_facts(rng, F, n) for _ in range(repeats)]
    once, never = np.array([(c == 1).sum() / n for c in counts]), np.array([(c == 0).sum() / F for c in counts])
    yield Measurement("mean share that came once, of (1 - 1/F)^(n-1)", once.mean(), (1 - 1 / F) ** (n - 1), 4 * once.std() / repeats**0.5)
    yield Measurement("mean mass that never came, of (1 - 1/F)^n", never.mean(), (1 - 1 / F) ** n, 4 * never.std() / repeats**0.5)
    # in the limit 2/e - 1/e^2 is n times the variance of the difference
    deviation = ((2 / np.e - np.e**-2) / n) ** 0.5
    yield Measurement("deviation of their difference, over the limit's", (once - never).std() / deviation, 1.0, 0.025)
    largest = float(np.quantile(np.abs(once - never), 0.99))
    yield Measurement("99 % of differences are below", largest, 7 / n**0.5, 0.0, "<=")
    # of a normal law 2.576 deviations; they are whole thousandths, and 200 of 20,000 are above: 4 errors are .002
    yield Measurement("99 % of differences are below, in the limit", largest, 2.5758 * deviation, 0.003)


def parities(d: int, k: int) -> np.ndarray:
    """chi (C(d, k), 2^d): the parity of each set of k of d signs."""
    signs = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    return np.array([signs[:, chosen].prod(axis=1) for chosen in combinations(range(d), k)])


def parity_signal() -> Iterable[Measurement]:
    """50 random units of relu on all 2^10 inputs: mean squared correlation with the parities of k bits, over E phi^2 / C(10, k).

    One more unit is a parity of k bits, for which this is an equality. With the parity of k - 1 bits worked out the next one is a
    parity of two inputs, whatever k is: relu of their sum is 2 on a quarter of the inputs, and has 1/4 of its signal.
    """
    d, rng = 10, np.random.default_rng(3)
    signs = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    units = np.maximum(signs @ rng.standard_normal((d, 50)) + rng.standard_normal(50), 0).T
    for k in (2, 3, 4, 5):
        chi = parities(d, k)
        found = np.concatenate([units, chi[:1]])
        over = ((found @ chi.T / 2**d) ** 2).mean(axis=1) / (found**2).mean(axis=1) * comb(d, k)
        yield Measurement(f"k = {k}: random units, largest over the bound", over[:-1].max(), 1.0, 1e-12, "<=")
        yield Measurement(f"k = {k}: the parity itself, over the bound", over[-1], 1.0, 1e-12)
        unit = np.maximum(signs[:, : k - 1].prod(axis=1) + signs[:, k - 1], 0)  # of the parity so far, and the next bit
        signal = float((unit @ chi[0] / 2**d) ** 2 / (unit**2).mean())
        yield Measurement(f"k = {k}: one step worked out, squared correlation of relu of two inputs over E phi^2", signal, 0.25, 1e-12)


EXACT = "exact counts; means within four standard errors"
CLAIMS = (
    Claim(
        "static.missing_mass",
        Source("kalai2024calibrated", "Section 3", "the Good-Turing estimate, facts alike"),
        "20,000 draws of 1000 of 1000 facts",
        "the share of facts seen once estimates the mass of those never seen, to 7/sqrt(n)",
        missing_mass,
        "four standard errors; the limit to 1/n and the noise of a deviation",
    ),
    Claim(
        "static.parent",
        Source("nichani2024causal", "the information that the gradient holds", "chains with one parent each"),
        "10,000 chains of three states, six places",
        "the chi-squared information on a place is largest at its parent",
        parents,
        EXACT,
    ),
    GRADIENT,
    PROMPT,
    Claim(
        "static.brackets_cancel",
        Source("wen2023uninterpretable", "Theorem 1", "sufficiency, one layer, bounded depth"),
        "500 sequences of 28 brackets, two types, depth 4",
        "brackets that cancel in pairs leave the last open one, whatever the attention",
        lambda: read_off(by_place=False),
        EXACT,
        when="attention depends on the depth alone",
        otherwise=lambda: read_off(by_place=True),
    ),
    Claim(
        "static.parity",
        Source("wies2023subtask", "Section 5", "parities without and with intermediate steps"),
        "all inputs of ten bits, 50 random units of relu",
        "a unit's mean squared correlation with parities of k bits is at most E phi^2 / C(d, k)",
        parity_signal,
        "rounding",
    ),
    HYPERCUBE,
    CONTRAST,
    FACT_CLAIM,
    COMPOSITION,
    COMPONENTS,
    *LEARNING,
    SINKS,
)
