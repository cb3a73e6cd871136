"""What is stated of latent trees: exact co-occurrence, and layers of attention that read one another."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.symbolic import Source

PAPER = "tian2023joma"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
SAMPLED = (0.77202, 0.58711, 0.43779, 0.18263)
"""P[l | m] of 2e6 sequences of a tree with ten classes, N = 2, L = 4, rho = .9, one child of the root switched on: heights 1 to 4."""


def by_enumeration(L: int, rho: float, on: float, height: int, other: float | None = None) -> float:
    """P[l | m] by the table of an ancestor's two values and both paths down. on: P of a child of the root; other: of two at once."""
    step = np.array([[1 + rho, 1 - rho], [1 - rho, 1 + rho]]) / 2
    if other is not None:  # two children of the root, with probabilities of 00, 01, 10, 11
        table = np.array([[1 - 2 * on + other, on - other], [on - other, other]])
        both = np.linalg.matrix_power(step, L - 1).T @ table @ np.linalg.matrix_power(step, L - 1)
    else:
        ancestor = np.array([1 - on, on]) @ np.linalg.matrix_power(step, L - 1 - height)
        both = np.einsum("a,ab,ac->bc", ancestor, *[np.linalg.matrix_power(step, height)] * 2)
    return float(both[1, 1] / both[1].sum())


def heights() -> Iterable[Measurement]:
    """hierarchy.occurrence beside an enumeration and beside sampled sequences, at each height."""
    run = odesim.integrate("hierarchy.occurrence", save=[0, 1, 2, 3, 4], backend="numpy")
    for H, sampled in enumerate(SAMPLED, 1):
        found = float(run.observables["P"][H])
        exact = by_enumeration(4, 0.9, 0.1, H, 0.0 if H == 4 else None)
        yield Measurement(f"height {H}, by enumeration", found, exact, 1e-14)
        yield Measurement(f"height {H}, of 2e6 sequences", found, sampled, 1e-3)


def polarity(rho0: float) -> Iterable[Measurement]:
    """The formula below the root with this rho0, where a child of the root is 0 with probability .9."""
    for H, sampled in enumerate(SAMPLED[:3], 1):
        formula = 1 - (1 - 0.9 ** (2 * H)) / (2 * (1 - 0.9**3 * rho0))
        yield Measurement(f"formula at height {H}, of 2e6 sequences", formula, sampled, 1e-3)


def mean_root() -> Iterable[Measurement]:
    """The formula of all heights below the root, taken at the root."""
    shallow = 1 - (1 - 0.9**8) / (2 * (1 - 0.9**3 * 0.8))
    yield Measurement("formula at H = L = 4, of 2e6 sequences", shallow, SAMPLED[3], 1e-3)


def gated_numbers() -> Iterable[Measurement]:
    """Correlations of three layers at the start and at t = 400, and the weights there."""
    run = odesim.integrate("hierarchy.gated", span=(0, 400), save=[0, 400], **FINE)
    for s, (first, last) in enumerate(((0.9647, 0.9667), (0.9329, 0.9481), (0.8950, 0.9324)), 1):
        yield Measurement(f"r{s} at the start", run.observables[f"r{s}"][0], first, 6e-5)
        yield Measurement(f"r{s} at t = 400", run.observables[f"r{s}"][1], last, 6e-5)
    for name, row in (("v1", (2.2116, 1.5, 0.8578)), ("v2", (1.8454, 0.9805)), ("v3", (1.3483,))):
        for k, want in enumerate(row):
            yield Measurement(f"{name} of height {k + int(name[1])}", run.final[name][k], want, 6e-5)


def dip() -> Iterable[Measurement]:
    """The correlation of the first layer of a tree of depth 6: at the start, at t = 10 and at t = 60."""
    run = odesim.integrate("hierarchy.gated", sizes={"L": 6}, span=(0, 60), save=[0, 10, 60], **FINE)
    for k, want in enumerate((0.9384, 0.908, 0.9624)):
        yield Measurement(f"r1 at t = {run.t[k]:g}", run.observables["r1"][k], want, 6e-5 if k != 1 else 6e-4)


def leaf_by_leaf() -> Iterable[Measurement]:
    """Weights of the 15 leaves of a tree of depth 5 that stand beside the query, each by itself, and of their groups, to t = 50."""
    grouped = odesim.integrate("hierarchy.grouped", span=(0, 50), save=6, **FINE)
    count = 2 ** np.arange(4)
    mu = np.repeat(3 * grouped.observables["P"][0], count)
    leaves = odesim.integrate("joma.nonlinear_softmax", params={"mu": mu, "T": 2}, span=(0, 50), save=6, **FINE)
    yield deviation("v of a leaf less v of its group", leaves.y["v"], np.repeat(grouped.y["v"], count, axis=1), 1e-8)
    yield deviation("entropy of both", leaves.observables["entropy"], grouped.observables["entropy"], 1e-8)
    # attention sums to 1: so do the rates of -log of the gaps of all leaves
    gaps = np.log((mu - leaves.y["v"][0]) / (mu - leaves.y["v"])).sum(axis=1)
    yield deviation("time, and the sum of log(gap at the start / gap) over leaves", gaps, leaves.t, 1e-5)


DEPTHS = {  # by depth: P of the nearest and of the farthest height, when they are nine tenths there
    2: ((0.50, 0.50), (2.3, 2.3)),
    3: ((0.66, 0.35), (4.8, 11.2)),
    4: ((0.74, 0.29), (8.85, 28.85)),
    6: ((0.82, 0.24), (30.1, 112.0)),
    8: ((0.86, 0.24), (108.6, 380.8)),
}


def deep_and_shallow() -> Iterable[Measurement]:
    """Trees of depth 2 to 8, rho = rho0 = .95: the nearest tokens and the farthest."""
    delays = []
    for L, (ends, times) in DEPTHS.items():
        run = odesim.integrate("hierarchy.grouped", sizes={"L": L}, span=(0, 450), **(FINE | {"rtol": 1e-8}))
        reached = {event["index"][0]: event["t"] for event in run.events["nine tenths"]}
        yield deviation(f"P of H = 1 and {L - 1}, L = {L}", run.observables["P"][0][[0, -1]], ends, 6e-3)
        yield deviation(f"time of H = 1 and {L - 1}, L = {L}", (reached[0], reached[L - 2]), times, 0.1)
        delays.append(reached[L - 2] / reached[0])
    yield Measurement("delay of the farthest, L = 8", delays[-1], 3.5, 0.05)
    yield Measurement("least growth of the delay from L = 2 to 6", np.diff(delays[:4]).min(), 0.0, 1e-6, ">=")


TREES = (
    Claim(
        "hierarchy.heights",
        Source(PAPER, "Theorem 5", "exact, with the root by its classes"),
        "hierarchy.occurrence, ten classes, N = 2, L = 4, rho = .9",
        "P[l | m] = 1 - (1 - rho^2H) / (2 (1 - rho^(L-1) rho0)) at every height, the root too",
        mean_root,
        "a standard error of 2e6 sequences is 7e-4",
        fails=True,
        corrected=Statement(
            "so below the root, with rho0 = 2 P[y = 0] - 1; at the root by its classes",
            heights,
            "rounding; three standard errors of 2e6 sequences are 1e-3 and more",
        ),
    ),
    Claim(
        "hierarchy.polarity",
        Source(PAPER, "Theorem 5", "its rho0, as recalled"),
        "the formula alone, N = 2, L = 4, rho = .9, beside sampled sequences",
        "rho0 is P[y = 0] of a child of the root",
        lambda: polarity(0.9),
        "three standard errors of 2e6 sequences",
        fails=True,
        corrected=Statement("rho0 is its mean polarity, 2 P[y = 0] - 1", lambda: polarity(0.8), "three standard errors of 2e6 sequences"),
        models=("hierarchy.occurrence",),
    ),
    Claim(
        "hierarchy.leaves",
        Source(PAPER, "Theorems 4 and 5 together", "tokens of one height are alike"),
        "hierarchy.grouped, N = 2, L = 5, beside joma.nonlinear_softmax for each leaf, to t = 50",
        "attention depends on the height of the common ancestor alone: L - 1 numbers are the whole tree",
        leaf_by_leaf,
        "100 times the relative tolerance 1e-10 of both runs",
    ),
    Claim(
        "hierarchy.depth",
        Source(PAPER, "Section 5", "deep and shallow trees, as on the slides of a talk; the times by an independent script"),
        "hierarchy.grouped, L = 2 ... 8, rho = rho0 = .95, kappa = 3",
        "with more latent layers near tokens are more often together, far ones less often, and these are learned later",
        deep_and_shallow,
        "digits of the table; times read off a grid of 0.1",
    ),
    Claim(
        "hierarchy.gates",
        Source(PAPER, "Section 5", "layers of a mean field"),
        "hierarchy.gated, N = 2, L = 4, rho = rho0 = .95, kappa = 3",
        "each layer tells its latents apart less well than the one below",
        gated_numbers,
        "half a unit of the last digit",
    ),
    Claim(
        "hierarchy.dip",
        Source(PAPER, "Section 5", "sparse attention, then spread"),
        "hierarchy.gated, L = 6",
        "the correlation of a layer with its latents falls while attention is sparse, then recovers",
        dip,
        "half a unit of the last digit",
    ),
)
