"""The stored comparisons: theory and training of each System that can be trained, with the numbers that must come out.

Recorded numbers are of programs other than odesim, or closed forms; each tolerance says what it is made of.
"""

from math import prod
from typing import Any

import numpy as np

from odesim.base.arrays import Array
from odesim.base.errors import ParamError, no_such
from odesim.lab.compare.comparison import Comparison
from odesim.lab.compare.field_recipes import FIELD
from odesim.lab.compare.pairs import why_not_described
from odesim.lab.compare.readings import DIGITS, ROUNDING, Measure, Reading, Recipe, at, both, distances, exact, metric
from odesim.lab.networks.measures import softmax

OF_SEEDS = "four standard errors of the difference of two means over 20 seeds, and half a digit"
OF_BATCHES = "steps of .001, to first order, and four standard errors of 16 seeds, by the mean and deviation of 16 others:"
CHORD = "half a digit, and p between whole epochs along a line, less than p (1 - p)^3 / 32 from the flow"
PART = "half a digit, and one fact of an epoch of 340: .5 p (1 - p)^2 / 340"
TABLE_EPOCHS = (1, 2, 5, 10, 20, 50, 100)
OF_STEPS = (6.18792, 5.68965, 4.20841, 1.95910, 0.31792, 0.05962, 0.02432)
OF_FLOW = (6.18810, 5.69014, 4.21147, 1.98531, 0.34382, 0.06213, 0.02488)
FEW, FACTS = 6, 340  # facts of an epoch: of the recipe with few pairs, and of the published sizes
T1 = float(np.log(802) / 0.5)  # in epochs, of eta_Y = 0.5
CHAINS, WHOLE = 4, 2  # of the recipe of chains: A_i is token i, B_i token 4 + i, C_i token 8 + i; A_i ~> C_i is trained for i < 2
CHAIN_FACTS = 2 * CHAINS + WHOLE
CHAIN_TABLE = ((1, 0.3635, 0.637, 5.1e-4), (2, 0.8355, 0.165, 5.1e-4), (5, 0.9594, 0.0407, 5.1e-5), (10, 0.9825, 0.0175, 5.1e-5))
"""Time over t1, p(B | A), 802 p(C | A ~>) and half its digit, in the flow, by an independent script."""
A_TO_B, B_TO_C, A_TO_C = (0, CHAINS), (CHAINS, 2 * CHAINS), (0, 2 * CHAINS)

SYN_SMALL = ((2, 2.364, 0.007), (4, 0.7314, 0.012), (6, 0.1599, 0.0034), (8, 0.0444, 0.0025), (10, 0.0136, 0.0011))
"""Iteration, mean and standard deviation of the loss of 20 seeds, by a numpy program without classes or counts."""


def of_theorem(moving: bool, iteration: float) -> Measure:
    """|zhat - z| / |z| of JoMA's theorem for softmax attention, both centred, in the mean over seeds.

    zhat = (sum_k v_k^2 - int b d|V|^2) / (2 T) with b the mean attention: moving, or as it is at the start. T = 1/2, equal rates.
    """

    def measure(comparison: Comparison) -> float:
        last = int(np.abs(comparison.t - iteration).argmin()) + 1
        V, z, b = (comparison.training[name][:, :last] for name in ("V", "Z", "attention"))
        squares, b = (V**2).sum(axis=-1), b.mean(axis=2)  # (R, T, Mc)
        whole = squares.sum(axis=-1)  # (R, T)
        mean = (b[:, 1:] + b[:, :-1]) / 2 if moving else b[:, :1]
        taken = (mean * np.diff(whole, axis=1)[..., None]).sum(axis=1)
        theorem, moved = centred(squares[:, -1] - squares[:, 0] - taken), centred(z[:, -1, :, 0] - z[:, 0, :, 0])
        return float(np.mean(np.linalg.norm(theorem - moved, axis=1) / np.linalg.norm(moved, axis=1)))

    return measure


def of_chains(side: str, epoch: float, source: int, target: int, first: int = WHOLE, last: int = CHAINS) -> Measure:
    """The mean p of the facts source + i -> target + i, first <= i < last, after so many epochs, between two as a line."""
    i = np.arange(first, last)

    def measure(comparison: Comparison) -> float:
        p = softmax(getattr(comparison, side)["Y"][:, :, source + i])  # (R, T, n, M)
        p = p[..., np.arange(len(i)), target + i].mean(axis=(0, 2))
        return float(np.interp(CHAIN_FACTS * epoch, comparison.t, p))

    return measure


def p_of(side: str, epoch: float, factor: float, *facts: tuple[int, int]) -> Measure:
    """factor times the product of the mean p of facts (source, target) of chains whose A ~> C is held out."""
    return lambda comparison: factor * prod(of_chains(side, epoch, *fact)(comparison) for fact in facts)


def centred(a: Array) -> Array:
    """a (R, n) less its mean over n."""
    return a - a.mean(axis=1, keepdims=True)


def joint(attention: str, *more: Reading, **options: Any) -> Recipe:
    """The recipe of a whole JoMA block beside the discrete map of its System."""
    return Recipe(
        f"MLP and {attention} attention, trained together: descent is the map on the System's own right-hand side",
        f"joma.joint_{attention}",
        "joma_gaussian",
        (*distances(("loss", "V", "Z", "entropy"), 1e-9, ROUNDING), *more),
        {"map": "discrete", "observables": ("loss", "entropy", "V", "Xi", "Z", "attention"), **options},
    )


RECIPES: dict[str, Recipe] = {
    "scan_snap_vanilla": Recipe(
        "Syn-Small with momentum, contexts of 127 tokens, beside the map in infinite contexts: theory is ahead by a few per cent",
        "scan_snap.full",
        "scan_snap",
        (
            *(
                Reading(f"loss of batches at {i}", at("training", "loss_batch", i), mean, 4 * sd * np.sqrt(2 / 20) + 5e-4, OF_SEEDS)
                for i, mean, sd in SYN_SMALL
            ),
            Reading("loss in infinite contexts at 2", at("theory", "loss", 2), 2.2277, 5.1e-5, DIGITS),
            Reading("attention to the winner there, at 100", at("theory", "c", 100, 0, 19), 0.1623, 5.1e-5, DIGITS),
        ),
        {"seeds": range(20), "map": "discrete", "observables": ("loss", "loss_batch", "c")},
    ),
    "scan_snap_decorrelated": Recipe(
        "the paper's reduced flow beside a training with its decorrelated decoder, up to t = 2 K ln M",
        "scan_snap.reduced_symmetric",
        "scan_snap",
        (
            *distances(("z", "zc", "c", "cc"), 0.05, "contexts of 1023 tokens, and eta_Z / eta_Y = .01"),
            # u = 4.5184 at eta_Y t = 14.1054
            *(
                Reading(f"loss of the {side} {where}", at(side, "loss", 141), float(np.log1p(33 * np.exp(-4.5184))), wide, reason)
                for side, where, wide, reason in (
                    ("theory", "at 141", 1e-3, "141 of 141.054"),
                    ("training", "there", 0.02, "steps of .1"),
                )
            ),
        ),
        {
            "settings": {"decoder": "decorrelated", "eta_Y": 0.1, "eta_Z": 0.001, "momentum": 0.0, "length": 1024},
            "seeds": range(2),
            "steps": 141,
            "save": 142,
            "observables": ("loss", "z", "zc", "c", "cc"),
        },
    ),
    "reversal_shuffled": Recipe(
        "facts, each once an epoch: M = 802, eta_Y = .5, losses of steps and of the flow by epoch",
        "reversal.row",
        "reversal",
        tuple(
            Reading(f"loss after {e} epochs, {word}", at(side, "loss", FEW * e), value, 5.1e-6, DIGITS)
            for word, side, row in (("trained", "training", OF_STEPS), ("flow", "theory", OF_FLOW))
            for e, value in zip(TABLE_EPOCHS, row, strict=True)
        ),
        # rows learn alone, so that their number does not matter
        {"settings": {"pairs": 4, "both": 0.5}, "steps": 100 * FEW, "save": 101},
    ),
    "reversal_replacement": Recipe(
        "facts drawn with replacement, 340 of them: rows scatter about the flow, whose mean they have",
        "reversal.row",
        "reversal",
        tuple(
            Reading(
                f"mean p at {k} t1, {word}",
                at(side, "p_target", FACTS * T1 * k),
                value,
                wide,
                "four standard errors over 340 rows, and .01 to .02 of finite steps" if side == "training" else "saved times, a step apart",
            )
            for k, trained, flow, wide in ((1, 0.3723, 0.3635, 0.06), (2, 0.8278, 0.8355, 0.03), (5, 0.9596, 0.9594, 0.003))
            for side, word, value, wide in (("training", "trained", trained, wide), ("theory", "flow", flow, 5e-4))
        ),
        {"settings": {"order": "replacement"}, "steps": round(5 * FACTS * T1), "save": 101, "observables": ("loss", "p_target")},
    ),
    "reversal_chains": Recipe(
        "A -> B and B -> C are learned, A ~> C is not unless asked in two steps; a row with both targets gives each 1/2; M = 802",
        "reversal.full",
        "reversal",
        (
            *(
                Reading(f"{name} at {k} t1, flow", p_of("theory", k * T1, *facts), value, wide + turns * p * (1 - p) ** 3 / 32, CHORD)
                for k, p, other, digit in CHAIN_TABLE
                for name, facts, value, wide, turns in (
                    ("p(B | A), A ~> C held out", (1, A_TO_B), p, 5.1e-5, 1),
                    ("802 p(C | A ~>)", (802, A_TO_C), other, digit, 1),
                    ("p(B | A) p(C | B)", (1, A_TO_B, B_TO_C), p * p, 1.02e-4 * p, 2 * p),
                )
            ),
            *(
                Reading(f"p(B | A) at {k} t1, trained", p_of("training", k * T1, 1, A_TO_B), p, 5.1e-5 + p * (1 - p) ** 2 / 680, PART)
                for k, p in ((1, 0.3800), (2, 0.8455), (5, 0.9607), (20, 0.9920))
            ),
            *(
                exact(f"p(B | A), A ~> C trained, after {e} epochs, flow", of_chains("theory", e, *A_TO_B, 0, WHOLE), value, 5e-8)
                for e, value in ((2, 0.0033689), (10, 0.1104790), (20, 0.3735189), (40, 0.4603465), (200, 0.4944912))
            ),
        ),
        {
            "settings": {"data": "chains", "pairs": CHAINS, "both": WHOLE / CHAINS},  # rows learn alone
            "steps": 268 * CHAIN_FACTS,
            "save": 269,
            "observables": ("loss", "p", "Y"),
        },
    ),
    "joma_joint_linear": joint("linear", settings={"attention": "linear", "init_scale": 0.3, "eta_z": 0.05}, seeds=range(2), steps=200),
    "joma_joint_exp": joint("exp", settings={"attention": "exp", "init_scale": 0.3, "eta_z": 0.05}, seeds=range(2), steps=200),
    "joma_joint_softmax": joint(
        "softmax",
        *(
            Reading(f"|zhat - z| / |z|, b {word}, at {i}", of_theorem(moving, i), value, wide, "starts: those recorded are others")
            for moving, word, row in (
                (False, "of the start", ((200, 0.08, 0.03), (500, 0.16, 0.05), (1000, 0.6, 0.2), (2000, 11.6, 4.3))),
                (True, "of each time", ((200, 0.07, 0.03), (500, 0.08, 0.03), (1000, 0.10, 0.06), (2000, 0.19, 0.08))),
            )
            for i, value, wide in row
        ),
        seeds=range(5),
        steps=2000,
        save=401,
    ),
    "joma_self_consistent": Recipe(
        "one node, exp attention and a squared loss, by SGD: it comes to rest by itself, as the theory says",
        "joma.self_consistent",
        "joma_regression",
        (
            Reading("largest distance of v", metric("v", "sup"), 0.0, 6.4e-3, f"{OF_BATCHES} .002 and .0044"),
            *both("the largest v at t = 1, sqrt(W(16))", "v", 1, (1.432897, 5e-7), (1.432897, 1.5e-3, f"{OF_BATCHES} .0012 and .0002"), 3),
        ),
        {"settings": {"M": 4, "c": np.array([0.5, 1.0, 2.0, 4.0])}, "seeds": range(16)},
    ),
    "hierarchy_layers": Recipe(
        "two layers of nodes on classes of shared latents: descent on weights and logits follows the flow of the weights alone",
        "hierarchy.multilayer",
        "hierarchy_layers",
        tuple(distances(("loss", "V1", "V2", "U"), 3e-3, "steps of .02, which count to first order")),
        {
            "settings": {"K1": 20, "K2": 20, "init_scale": 0.5},
            "seeds": range(2),
            "steps": 300,
            "save": 31,
            "observables": ("loss", "V1", "V2", "U"),
        },
    ),
    **FIELD,
}


def find_recipe(name: str) -> Recipe:
    """The recipe of this name. Raises ParamError with the choices and the nearest spelling."""
    if reason := why_not_described(name):
        raise ParamError(f"no recipe {name!r}: no System describes this task: {reason}")
    if name not in RECIPES:
        raise ParamError(no_such("recipe", name, RECIPES))
    return RECIPES[name]
