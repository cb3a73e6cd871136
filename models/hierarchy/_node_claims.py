"""What trained layers of nodes find of the latents of JoMA's Table 1, from small weights."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement
from odesim.symbolic import Source

PAPER = "tian2023joma"
Latents = tuple[int, int]
Pair = tuple[float, float]
NARROW: dict[tuple[int, int, Latents, float, float], tuple[Pair, Pair]] = {
    (20, 2, (10, 20), 0.1, 800.0): ((0.835, 0.762), (0.902, 0.603)),
    (20, 2, (10, 20), 0.3, 400.0): ((0.838, 0.765), (0.923, 0.671)),
    (50, 3, (20, 30), 0.1, 800.0): ((0.603, 0.541), (0.666, 0.450)),
}
"""Classes, members, latents, deviation of the start, time: NCorr of both layers of width 100 at the start and at that time, of one seed."""
OURS = 8  # seeds


def ncorr(classes: int, children: int, latents: Latents, scale: float, t: float) -> np.ndarray:
    """NCorr (R, 2, 2) of seeds, at the start and at time t, of both layers."""
    eta = 0.2
    settings: dict[str, Any] = {
        "num_classes": classes,
        "num_children": children,
        "n0": latents[0],
        "n1": latents[1],
        "K1": 100,
        "K2": 100,
    }
    settings |= {"phi": "relu", "init_scale": scale, "eta": eta}
    run = odesim.train("hierarchy_layers", settings=settings, seeds=range(OURS), steps=round(t / eta), save=2, observe=("NCorr",))
    return run.observables["NCorr"]


def nodes() -> Iterable[Measurement]:
    """Correlations of latents with their best nodes, relu: starts and changes, means over seeds of ours beside recorded ones."""
    for (classes, children, latents, scale, t), want in NARROW.items():
        seen, end = ncorr(classes, children, latents, scale, t), np.array(want)
        for s in (0, 1):
            where = f"{classes}, {children}, {latents[0]} + {latents[1]}, start {scale:g}, s = {s}"
            for name, found, recorded in (
                ("at the start", seen[:, 0, s], end[0, s]),
                (f"gained to t = {t:g}", seen[:, 1, s] - seen[:, 0, s], end[1, s] - end[0, s]),
            ):
                wide = 4 * found.std(ddof=1) * np.sqrt(1 / OURS + 1) + 1e-3
                yield Measurement(f"NCorr {name}, {where}", float(found.mean()), float(recorded), float(wide))
        gained = (seen[:, 1] - seen[:, 0]).mean(axis=0)
        yield Measurement(f"gained by s = 0, {classes} classes, start {scale:g}", float(gained[0]), 0.01, 0.0, ">=")
        yield Measurement(f"gained by s = 1, {classes} classes, start {scale:g}", float(gained[1]), -0.05, 0.0, "<=")


NODES = (
    Claim(
        "hierarchy.nodes",
        Source(PAPER, "Section 5 and Table 1", "layers of nodes on the hierarchies of the table; the numbers by an independent program"),
        "the task hierarchy_layers, relu, width 100, eight hierarchies each, to t = 400 and 800",
        printed=Statement(
            "from small weights the first layer finds its latents better and the second loses its own",
            nodes,
            "four standard errors of the difference of a mean of eight seeds and of one seed; a digit",
        ),
        models=("hierarchy.multilayer",),
        slow=True,
    ),
)
