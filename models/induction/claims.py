"""What is stated of the training of an induction head, and what holds."""

from collections.abc import Iterable
from itertools import permutations
from math import perm
from typing import Any

import numpy as np
from sympy import Integer, Symbol, log

import odesim
from odesim.lab.claims import Claim, Mark, Measurement
from odesim.models.induction.stages import stages
from odesim.symbolic import Source

PAPER = "bietti2023birth"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
Weights = tuple[np.ndarray, ...]  # P (N, N), W_2 (V, V), W_3 (V, V)


def softmax(x: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def whole_loss(weights: Weights, sequences: np.ndarray) -> float:
    """The mean over all sequences and all queries of the cross-entropy of the two layers, forward only."""
    P, W2, W3 = weights
    N, total = sequences.shape[1], 0.0
    first = softmax(P)
    for x in sequences:
        carried = first @ np.eye(len(W2))[x]  # h_j, what layer 1 leaves at place j
        for s in range(N):
            seen = softmax(carried @ W2[x[s]])
            logits = W3 @ (np.eye(len(W2))[x].T @ seen)
            total -= float(np.log(softmax(logits)[x[(s + 1) % N]]))
    return total / (len(sequences) * N)


def directions(N: int, V: int) -> Weights:
    """The centred shift by one, and the centred identities: what P, W_2 and W_3 are multiples of."""
    shift = np.roll(np.eye(N), -1, axis=1)
    return shift - 1 / N, np.eye(V) - 1 / V, np.eye(V) - 1 / V


def reduction() -> Iterable[Measurement]:
    """All 360 sequences of four of six tokens: loss and slopes of the whole model, by differences, along and off the three directions."""
    sequences = np.array(list(permutations(range(6), 4)))
    ways, rng = directions(4, 6), np.random.default_rng(0)
    at = dict(zip("abc", (0.7, 0.9, 1.3), strict=True))
    weights = tuple(size * way for size, way in zip(at.values(), ways, strict=True))
    run = odesim.integrate("induction.stages:MATRIX", params={"N": 4, "V": 6}, initial=at, span=(0, 1e-5), save=[0, 1e-5], **FINE)
    yield Measurement("loss", run.observables["loss"][0], whole_loss(weights, sequences), 1e-12)
    end = odesim.integrate("induction.stages:MATRIX", params={"N": 4, "V": 6, "eps": 0.1}, span=(0, 300), save=2, **FINE)
    for name, digits in (("a", 3.840183), ("b", 3.884294), ("c", 5.409269)):
        yield Measurement(f"{name} at t = 300, from .1", end.final[name], digits, 6e-7)
    yield Measurement("loss at t = 300", end.observables["loss"][-1], 0.036498, 6e-7)
    for k, name in enumerate("abc"):
        norm = float((ways[k] ** 2).sum())
        off = rng.standard_normal(ways[k].shape)
        off -= (off * ways[k]).sum() / norm * ways[k]
        for way, want, what in ((ways[k], -norm * np.diff(run.y[name])[0] / 1e-5, "along"), (off, 0.0, "off")):
            ends = [whole_loss((*weights[:k], weights[k] + h * way, *weights[k + 1 :]), sequences) for h in (1e-4, -1e-4)]
            yield Measurement(f"slope {what} the direction of {name}", (ends[0] - ends[1]) / 2e-4, want, 1e-5)


def whole_flow(N: int, V: int, off: float = 0.0) -> Iterable[Measurement]:
    """induction.full from .1 times the three directions, and off times random matrices, beside induction.stages:MATRIX at t = 300."""
    ways, rng = dict(zip(("P", "W_2", "W_3"), directions(N, V), strict=True)), np.random.default_rng(0)
    start = {name: 0.1 * way + off * rng.standard_normal(way.shape) for name, way in ways.items()}
    given: dict[str, Any] = {"span": (0, 300), "save": 2, **FINE, "rtol": 1e-8, "atol": 1e-10}
    whole = odesim.integrate("induction.full", sizes={"N": N, "V": V, "S": perm(V, N)}, initial=start, **given)
    reduced = odesim.integrate("induction.stages:MATRIX", params={"N": N, "V": V, "eps": 0.1}, **given)
    for (name, way), letter in zip(ways.items(), "abc", strict=True):
        gap = float(np.abs(whole.final[name] - reduced.final[letter] * way).max())
        yield Measurement(f"largest entry of {name} - {letter} times its direction", gap, 0.0, 1e-6)
    yield Measurement("loss", whole.observables["loss"][-1], reduced.observables["loss"][-1], 1e-6)


SCALAR = {8: 109.546, 16: 287.551, 32: 782.480, 64: 2167.79, 128: 6065.83}
MATRIX = {8: 1324.46, 16: 7251.46, 32: 40268.8, 64: 225357.0, 128: 1266624.0}


def half_times(variant: str, table: dict[int, float]) -> Iterable[Measurement]:
    """When half of the attention is on the answer, V = 2N, from .01; and the exponents of N."""
    found = {}
    for N, want in table.items():
        given: dict[str, Any] = {"params": {"N": N, "V": 2 * N}, "span": (0, 1.05 * want), "save": 2}
        run = odesim.integrate(f"induction.stages{variant}", **given, **FINE)
        found[N] = float(run.events["copied"][0]["t"])
        yield Measurement(f"N = {N}, over its digits", found[N] / want, 1.0, 5e-6)
    last = np.log2(found[128] / found[64])
    yield Measurement("last exponent", last, 1.484 if variant == "" else 2.491, 6e-4)


def cliff() -> Iterable[Measurement]:
    """N = 32, V = 64: when the loss is 1.02 and .1 times ln N, and the plateau it leaves."""
    events = ["leaves: loss - 3.5350509", "ends: loss - 0.34657359"]
    run = odesim.integrate("induction.stages", events=events, save=[0, 600, 700, 1000], **FINE)
    yield Measurement("time of 1.02 ln N", run.events["leaves"][-1]["t"], 780.0, 0.3)
    width = run.events["ends"][0]["t"] - run.events["leaves"][-1]["t"]
    yield Measurement("from there to .1 ln N, of the time before", width / run.events["leaves"][-1]["t"], 0.01, 0.0, "<=")
    yield Measurement("loss at t = 700 over ln V", run.observables["loss"][2] / np.log(64), 1.0, 0.0, "<=")
    yield Measurement("loss at t = 700 over ln N", run.observables["loss"][2] / np.log(32), 1.0, 0.0, ">=")


def saddle() -> Iterable[Measurement]:
    """a and b from 1e-5 at three values of c, V = 2N: how fast each grows, over kappa / N, and with the matrices over their norms."""
    for N, c in ((8, 0.5), (32, 2.0), (32, 6.0)):
        V, kappa = 2 * N, c * (N - 1) / N**2
        for variant, norms in (("", (1, 1)), (":MATRIX", (N - 1, V - 1))):
            start = {"a": 1e-5, "b": 1e-5, "c": c}
            given: dict[str, Any] = {"params": {"N": N, "V": V}, "initial": start, "span": (0, 0.01), "save": 2}
            run = odesim.integrate(f"induction.stages{variant}", **given, **FINE | {"atol": 1e-18})
            for name, norm in zip("ab", norms, strict=True):
                rate = float(np.log(run.y[name][1] / 1e-5) / 0.01)
                yield Measurement(f"N = {N}, c = {c:g}: {name}{variant or ' itself'}", rate * N * norm / kappa, 1.0, 1e-3)


FIXED = {32: 2248.9157, 64: 8788.8368, 128: 34766.350}


def fixed_output() -> Iterable[Measurement]:
    """When half of the attention is on the answer if c = 2 does not move, V = 2N, a and b from .01; and its exponent in N."""
    system, found = stages("induction.fixed_output", (1, 1, Integer(10) ** 30)), {}
    for N, want in FIXED.items():
        start = {"a": 0.01, "b": 0.01, "c": 2.0}
        run = odesim.integrate(system, params={"N": N, "V": 2 * N}, initial=start, span=(0, 1.05 * want), save=2, **FINE)
        found[N] = float(run.events["copied"][0]["t"])
        yield Measurement(f"N = {N}, over its digits", found[N] / want, 1.0, 1e-7)
    yield Measurement("exponent from 64 to 128", np.log2(found[128] / found[64]), 2.0, 0.02)


DIGITS = "half a unit of the last recorded digit"
CLAIMS = (
    Claim(
        "induction.reduction",
        Source(PAPER, "Section 4", "two layers of attention, one occurrence"),
        "induction.stages:MATRIX beside all 360 sequences of four of six tokens",
        "from P, W_2, W_3 of three directions the flow stays on them",
        reduction,
        "steps of 1e-4 and 1e-5",
        slow=True,
    ),
    Claim(
        "induction.whole_flow",
        Source(PAPER, "Section 4", "two layers of attention, one occurrence"),
        "induction.full with all 360 sequences of four of six tokens, to t = 300; from random matrices, three of five",
        "the flow of the three matrices is that of three numbers",
        lambda: whole_flow(4, 6),
        "100 times rtol",
        when="they start as multiples of the centred shift and of the centred identities",
        otherwise=lambda: whole_flow(3, 5, 0.1),
        models=("induction.full", "induction.stages"),
        slow=True,
    ),
    Claim(
        "induction.half_times",
        Source(PAPER, "Section 4", "a, b, c trained"),
        "induction.stages, N = 8 to 128, V = 2N, from .01",
        "an induction head forms at a time of order N^(3/2)",
        lambda: half_times("", SCALAR),
        DIGITS,
        depends=("induction.reduction",),
    ),
    Claim(
        "induction.half_times_of_matrices",
        Source(PAPER, "Section 4", "matrices trained"),
        "induction.stages:MATRIX, N = 8 to 128, V = 2N, from .01",
        "with the matrices themselves, at a time of order N^(5/2)",
        lambda: half_times(":MATRIX", MATRIX),
        DIGITS,
        depends=("induction.whole_flow",),
    ),
    Claim(
        "induction.fixed_output",
        Source(PAPER, "Section 4", "the output layer does not move"),
        "induction.stages with c = 2 for all times, N = 32 to 128, V = 2N, from .01",
        "with a fixed output, at a time of order N^2",
        fixed_output,
        DIGITS + "; the next order, 1/N",
    ),
    Claim(
        "induction.saddle",
        Source(PAPER, "Section 4", "before the head forms"),
        "induction.stages and :MATRIX from a = b = 1e-5, N = 8 and 32, V = 2N, c = .5 to 6, to t = .01",
        "a and b are at a saddle: each grows by the other, at the rate kappa / N with kappa = c (N-1) / N^2",
        saddle,
        "what c moves in a time of .01",
        depends=("induction.reduction",),
    ),
    Claim(
        "induction.cliff",
        Source(PAPER, "Section 4", "loss against time"),
        "induction.stages, N = 32, V = 64",
        "the loss rests between ln V and ln N, then falls at once",
        cliff,
        "times to .3; a hundredth of the time before",
        marks=(Mark("loss", log(Symbol("V"))), Mark("loss", log(Symbol("N")))),
    ),
)
