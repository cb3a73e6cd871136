"""What is stated of how a first layer of attention finds parents, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement
from odesim.models.static.claims import BETA, PARENTS, gradient, loss, weighted_sequences
from odesim.symbolic import Source

ROW, PAPER = "causal.parent_row", "nichani2024causal"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
TIMES = {5: (28.928123, 2.883047), 20: (106.953059, 0.751644)}


def row(G: Any, times: Any) -> Any:
    """A run of a row with these G."""
    return odesim.integrate(ROW, sizes={"J": len(G)}, params={"G": G}, span=(0, times[-1]), save=times, **FINE)


def rivals() -> Iterable[Measurement]:
    """n = 5 and 20 equal rivals, D = .231: when attention is 1/2, z at t = 50; the time from 320 rivals on."""
    for n, (time, gap) in TIMES.items():
        run = row(0.231 * np.eye(n + 1)[0], [0.0, 50.0, 200.0])
        found = float(run.events["found"][0]["t"])
        yield Measurement(f"n = {n}: attention is 1/2 at", found, time, 6e-7)
        yield Measurement(f"n = {n}: that of the formula", found, (n + 2 * np.log(n) - 1 / n) * n / ((n + 1) * 0.231), 1e-6)
        yield Measurement(f"n = {n}: A_parent - A_other at t = 50", run.y["A"][1, 0] - run.y["A"][1, 1], gap, 6e-7)
    for n in (320, 1280):
        run = row(0.231 * np.eye(n + 1)[0], [0.0, 1.1 * (n + 2 * np.log(n)) / 0.231])
        # the rest is 2 ln(n) / n
        yield Measurement(f"n = {n}: time over n / D", float(run.events["found"][0]["t"]) * 0.231 / n, 1.0, 2 * np.log(n) / n)


def parents(most: float) -> Iterable[Measurement]:
    """Eight places over two states: G by enumeration, each row from even attention, and the whole loss along the flow beside its rows."""
    sequences, p = weighted_sequences(most)
    slope = gradient(sequences, p)
    scale = 1 / slope.max()
    flows, weights = {}, np.zeros((4, *slope.shape))
    for i, parent in enumerate(PARENTS):
        if i == 0:
            continue
        G = scale * (i + 1) * slope[i, : i + 1]  # -dL/dA = S (G - S.G), S = 1 / (i + 1): G up to a constant
        order = [parent, *(j for j in range(i + 1) if j != parent)] if parent >= 0 else list(range(i + 1))
        run = row(G[order], [0.0, 5.0, 50.0, 3000.0])
        weights[:, i, order] = run.y["A"]
        flows[i] = (G[order], run.observables["attention"])
        if parent >= 0:
            yield Measurement(f"place {i}: attention to its parent at t = 3000", flows[i][1][-1, 0], 1.0, 0.05)
        if i == 6 and run.events["found"]:
            yield Measurement("place 6: attention to its parent is 1/2 at", run.events["found"][0]["t"], 4.638418, 6e-7)
    for row_of, name in ((1, "t = 5"), (2, "t = 50")):
        gained = sum(float((S[row_of] - S[0]) @ G) for G, S in flows.values()) / scale
        whole = loss(weights[0], sequences, p) - loss(weights[row_of], sequences, p)
        yield Measurement(f"loss gained to {name}, over the sum of the rows", whole / gained, 1.0, BETA)


DIGITS = "half a unit of the last recorded digit"
CLAIMS = (
    Claim(
        "causal.rivals",
        Source(PAPER, "the first layer", "a parent among equal rivals"),
        "causal.parent_row, 5 to 1280 rivals, D = .231",
        "a parent among n rivals is found at n/D",
        rivals,
        DIGITS + "; 100 rtol; the next order, 2 ln(n)/n",
    ),
    Claim(
        "causal.parents",
        Source(PAPER, "the first layer", "a tree of seven places and a query, beta = .01"),
        "causal.parent_row for the rows of eight places over two states, G by enumeration, to t = 3000",
        "attention of each place goes to its parent, row by row",
        lambda: parents(1.0),
        "what is left as 1/t at t = 3000; beta; " + DIGITS,
        when="the mean of the transition matrix is uniform; of states that last, a place finds itself",
        otherwise=lambda: parents(0.3),
    ),
)
