"""What the JoMA paper states of data from a latent tree, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.hierarchy._deep_claims import DEEP, NODES
from odesim.models.hierarchy._layer_claims import LAYERS
from odesim.models.hierarchy._tree_claims import TREES
from odesim.symbolic import Source

PAPER = "tian2023joma"
FINE: dict[str, Any] = {"backend": "numpy", "rtol": 1e-10, "atol": 1e-13}


def occurrence(L: int, rho: float) -> np.ndarray:
    """P_H (L - 1,): how often a token occurs with one whose lowest common ancestor is H levels up."""
    run = odesim.integrate("hierarchy.grouped", sizes={"L": L}, params={"rho": rho, "rho0": rho}, span=(0, 1e-3), backend="numpy")
    return run.observables["P"][0]


def remainder(slope: float) -> Iterable[Measurement]:
    """P_H - (1 - (H/L)(1 + slope (L - 2 H) eps)) at L = 8, rho = rho0 = 1 - eps: the largest falls by 4 where eps is halved."""
    H, L, largest = np.arange(1, 8), 8, {}
    for eps in (4e-3, 2e-3, 1e-3):
        off = occurrence(L, 1 - eps) - (1 - H / L * (1 + slope * (L - 2 * H) * eps))
        largest[eps] = float(np.abs(off).max())
    for eps in (4e-3, 2e-3):
        yield Measurement(f"remainder, eps = {eps:g} / half of it", largest[eps] / largest[eps / 2], 4.0, 4 * L * eps)


def near_before_far() -> Iterable[Measurement]:
    """When each height reaches nine tenths of its end."""
    run = odesim.integrate("hierarchy.grouped", span=(0, 200), **FINE)
    reached = {event["index"][0]: event["t"] for event in run.events["nine tenths"]}
    for H, (t, later) in enumerate(zip((16.2, 29.1, 45.3), (29.1, 45.3, 59.3), strict=True)):
        yield Measurement(f"time at H = {H + 1}", reached[H], t, 0.1)
        yield Measurement(f"time at H = {H + 2}", reached[H + 1], later, 0.1)


def bounce() -> Iterable[Measurement]:
    """The entropy of attention over the leaves."""
    run = odesim.integrate("hierarchy.grouped", span=(0, 200), save=2001, **FINE)
    S = run.observables["entropy"]
    yield Measurement("entropy at the start", S[0], np.log(15), 1e-9)
    yield Measurement("least entropy", S.min(), 2.1723, 5e-5)
    yield Measurement("entropy at t = 200", S[-1], 2.2689, 5e-4)


def layers() -> Iterable[Measurement]:
    """Two layers with logits of their own beside the one in which they are half the squared weights, to t = 5."""
    joint, reduced = (odesim.integrate(f"hierarchy.multilayer{more}", span=(0, 5), **FINE) for more in (":JOINT", ""))
    for s in "12":
        yield deviation(f"Z{s} - V{s}^2/2", joint.final[f"Z{s}"] - joint.final[f"V{s}"] ** 2 / 2, 0.0, 1e-8)
        yield deviation(f"V{s} of both", joint.final[f"V{s}"] - reduced.final[f"V{s}"], 0.0, 1e-8)


def balance() -> Iterable[Measurement]:
    """Squares of the weights that leave and enter the nodes of both layers, to t = 5."""
    for law in ("balance of the first layer", "balance of the second layer"):
        run = odesim.integrate("hierarchy.multilayer", span=(0, 5), **FINE)
        yield Measurement(f"{law}, phi = identity", run.invariants[law] or 0.0, 0.0, 1e-8)


def unbalanced() -> Iterable[Measurement]:
    """The same with phi = softplus."""
    run = odesim.integrate("hierarchy.multilayer:SOFTPLUS", span=(0, 5), save=2, **FINE)
    law = (run.y["U"] ** 2).sum(axis=1) - (run.y["V2"] ** 2).sum(axis=2) - run.y["xi2"] ** 2
    yield deviation("balance of the second layer, phi = softplus", law[1] - law[0], 0.0, 1e-8)


CLAIMS = (
    Claim(
        "hierarchy.layers",
        Source(PAPER, "Theorem 1 and Section 5", "each hidden node is a query"),
        "hierarchy.multilayer and its JOINT, to t = 5",
        "in each layer z - v^2/2 is constant for each node and input",
        layers,
        "100 times rtol 1e-10",
    ),
    Claim(
        "hierarchy.balance",
        Source(PAPER, "Section 5", "a law of deep linear networks that the exp attention keeps; ours"),
        "hierarchy.multilayer and its SOFTPLUS, to t = 5",
        "squared weights that leave a node less those that enter it are constant",
        balance,
        "100 times rtol 1e-10",
        when="the activation is the identity, or homogeneous as relu",
        otherwise=unbalanced,
        slow=True,
    ),
    Claim(
        "hierarchy.occurrence_law",
        Source(PAPER, "Theorem 5"),
        "P_H of hierarchy.grouped, L = 8, rho = rho0 = 1 - eps",
        "P[l | m] = 1 - H/L + O(eps^2)",
        lambda: remainder(0.0),
        "the next order, L eps of it",
        fails=True,
        corrected=Statement("P[l | m] = 1 - (H/L)(1 + (L - 2 H) eps/2) + O(eps^2)", lambda: remainder(0.5), "the next order, L eps of it"),
    ),
    Claim(
        "hierarchy.near_before_far",
        Source(PAPER, "Theorems 4 and 5 together", "the times by an independent script"),
        "hierarchy.grouped, N = 2, L = 5, rho = rho0 = .95, kappa = 3",
        "tokens with a near common ancestor are learned first",
        near_before_far,
        "read off a grid of 0.1",
    ),
    Claim(
        "hierarchy.bounce",
        Source(PAPER, "Theorems 4 and 5 together", "the numbers by an independent script"),
        "hierarchy.grouped, N = 2, L = 5, rho = rho0 = .95, kappa = 3",
        "attention becomes sparse, then spreads again",
        bounce,
        "printed digits of the table",
    ),
    *TREES,
    *LAYERS,
    *NODES,
    *DEEP,
)
