"""The stored comparisons of what the field derives today: in context, scaling, margins, the edge, optimizers, noise, no labels."""

import numpy as np

from odesim.lab.compare.comparison import Comparison
from odesim.lab.compare.readings import DIGITS, ROUNDING, Measure, Reading, Recipe, at, both, distances

BY_DOP853 = f"{DIGITS}, of the amplitudes and gaps by scipy's DOP853"
SEEDS = "four standard errors of"
HEAD_RNG = np.random.default_rng(3)
HEADS = [0.1 * HEAD_RNG.standard_normal(shape) for shape in ((5,), (5, 4), (5, 4))]
PROMPTS = (
    (50, 0.602046, 0.60170, 0.03), (100, 0.377436, 0.37801, 0.002), (150, 0.377200, 0.37796, 0.002), (200, 0.376522, 0.37704, 0.002),
    (250, 0.334488, 0.32965, 0.03), (300, 0.209779, 0.21039, 0.002), (350, 0.209554, 0.21011, 0.002), (400, 0.209143, 0.20977, 0.002),
)  # fmt: skip
"""Time, mean squared error of the flow and of SGD with other batches, by an independent script, and how far other batches may be off it."""

LOCATED = ((0.27269, 0.35025), (0.39899, 0.53568), (0.55315, 0.72853), (0.69537, 0.87366))
"""kappa and nu of the flow at t = 1, 2, 3, 4, by two other integrators."""
QUERY_AT = {100: (2.40956, 2.41956), 1000: (3.36352, 3.36649), 10_000: (4.31156, 4.31318)}
"""t: the norm of a query in the flow and by gradient descent of rate 1, by independent scripts."""
MODES_AT = {
    2: ((0.69146396, 0.65169885, 0.83798939), (0.90206394, 0.60366159, 0.99195511)),
    10: ((0.87750364, 0.87221300, 0.87491965), (0.99355379, 0.85511460, 0.91825624)),
}
"""t: p and s of three modes of SimSiam, by two other integrators."""
HARD_AND_SOFT = ((-4.37192317, 3e-4, ", and a part of the rate"), (2.53278657, 0.016, ""), (1.83913660, 0.016, ""))
"""Logits at t = 1000 by another script: of a label that never comes, off by the noise of its few slopes, and of two that do."""
ON_THE_EDGE = {
    500: ((1.5740052, 0.5272423, 0.00175683), (1.5601, 0.5211, 0.00196)),
    1000: ((1.5337150, 0.6315498, 0.00175948), (1.5426, 0.6345, 0.00201)),
    2000: ((1.4973160, 0.7127776, 0.00173810), (1.5009, 0.7144, 0.00183)),
    5000: ((1.4827476, 0.7428037, 0.00172557), (1.4846, 0.7439, 0.00156)),
}
"""step: y1, y2 and the mean of x^2 of the central flow, and means of gradient descent over some 300 steps, by another program."""
SOFT = "two units of the last digit: the edge is soft"
WINDOW = "half a digit, and one step of 301 more or less of a cycle, up to {} away"
SWING = np.array([[1.0, -0.5], [0.3, 0.4]])
"""w at the start, and b, of momentum on curvatures 1 and 10."""
ORTHOGONAL = {20: (0.280789549, 0.432552647, 0.312643739), 40: (0.580064529, 0.819769538, 0.570698655)}
"""step: singular values of W by Muon, as three numbers that go through its polynomial: another program."""


def singular(side: str, step: int, k: int) -> Measure:
    """The singular value k of W, the largest first, as the target has them."""

    def measure(comparison: Comparison) -> float:
        W = getattr(comparison, side)["W"][0, int(np.abs(comparison.t - step).argmin())]
        left, _, right = np.linalg.svd(np.array(TARGET))
        return float((left.T @ W @ right.T)[k, k])

    return measure


def late(side: str, name: str, first: float) -> Measure:
    """The mean over seeds and times from `first` on."""
    return lambda comparison: float(np.mean(getattr(comparison, side)[name][:, comparison.t >= first]))


def difference(name: str, t: float, *place: int) -> Measure:
    """A component of the training at a time, less that of the flow."""
    return lambda comparison: at("training", name, t, *place)(comparison) - at("theory", name, t, *place)(comparison)


NOISY = "blocks of .01, to first order, .8 of them, and four standard errors of 16 seeds, .01, by 16 others"
TARGET = [[3.0, 0.5, 0.0], [0.2, 1.5, 0.3], [0.0, 0.1, 0.6]]

FIELD: dict[str, Recipe] = {
    "in_context_separate": Recipe(
        "linear attention by SGD on drawn prompts of 31 pairs, five heads: it learns one principal component after another",
        "in_context.separate",
        "in_context",
        tuple(
            reading
            for t, flow, trained, noise in PROMPTS
            for reading in both(f"loss at t = {t}", "loss", t, (flow, 5e-7), (trained, noise, f"{SEEDS} four seeds; drops move in time"))
        ),
        {"settings": dict(zip("vkq", HEADS, strict=True)), "seeds": range(4), "steps": 8000, "save": 161, "observables": ("loss", "share")},
    ),
    "single_location": Recipe(
        "attention learns which of ten tokens tells the label, and what to read there, by SGD in 80 dimensions",
        "in_context.single_location",
        "single_location",
        tuple(
            reading
            for t, row in enumerate(LOCATED, 1)
            for name, value in zip(("kappa", "nu"), row, strict=True)
            for reading in both(f"{name} at t = {t}", name, t, (value, 5e-6), (value, 0.01, f"{SEEDS} eight seeds"))
        ),
        {"seeds": range(8), "save": 5},
    ),
    "binary_chain": Recipe(
        "one layer of attention, as three numbers, learns a binary Markov chain from pairs: how far x moves the logit, and the loss",
        "in_context.markov_bias",
        "binary_chain",
        (
            *both("s at t = 100", "s", 100, (2.2335922, 5e-8), (2.2335922, 0.023, f"{SEEDS} 64 seeds")),
            *both(
                "loss at t = 100",
                "loss",
                100,
                (0.544587175, 5e-10),
                (0.544587175, 1.5e-4, "batches of 256 at a rate of .05 keep it 7e-5 above"),
            ),
        ),
        {"seeds": range(64), "save": 5},
    ),
    "modular": Recipe(
        "a layer of squares learns to add mod 23 by gradient descent: 88 frequencies, each by itself",
        "modular.phases",
        "modular",
        (
            *distances(("alpha",), 1e-3, "steps of 1, to first order; logits of .002 from step 600 on"),
            Reading("the largest alpha at step 600, flow", lambda c: float(c.theory["alpha"][0, -1].max()), 0.0343669, 5.1e-8, BY_DOP853),
            Reading("trained", lambda c: float(c.training["alpha"][0, -1].max()), 0.0343, 5.1e-5, DIGITS),
        ),
        {"steps": 600, "save": 4, "observables": ("alpha", "beta", "D")},
    ),
    "power_law": Recipe(
        "linear regression by one-pass SGD on power laws: the mean risk of 300 seeds beside the modes",
        "scaling.sgd",
        "power_law",
        (
            *both("mean risk at step 10", "R", 10, (0.1231488154, 5e-11), (0.1264641, 0.018, f"{SEEDS} 300 seeds, by 1,000 others")),
            *both("mean risk at step 100", "R", 100, (0.0106128618, 5e-11), (0.0107142, 3.7e-4, f"{SEEDS} 300 seeds, by 1,000 others")),
        ),
        {"settings": {"n": 300}, "seeds": range(300), "steps": 100, "save": 11},
    ),
    "selection": Recipe(
        "a query of attention by gradient descent, rate 1, to t = 10^4: what its first steps are off stays, while |p| grows as ln t",
        "margin.prompt",
        "selection",
        tuple(
            Reading(f"|p| at t = {t}, {word}", at(side, "norm", float(np.log1p(t))), value, 5.1e-6, DIGITS)
            for t, row in QUERY_AT.items()
            for side, word, value in zip(("theory", "training"), ("flow", "trained"), row, strict=True)
        ),
        {"settings": {"X": np.random.default_rng(3).normal(size=(4, 5, 20))}, "steps": 10_000, "save": 101},
    ),
    "next_token": Recipe(
        "logits of three words from drawn labels, of which the first is none: a hard part, that falls as ln t, and a soft part",
        "margin.next_token",
        "next_token",
        tuple(
            reading
            for j, (value, noise, why) in enumerate(HARD_AND_SOFT)
            for reading in both(f"w {j + 1} at t = 1000", "w", 7, (value, 5e-9), (value, noise, f"{SEEDS} 16 seeds, by 64 others{why}"), j)
        ),
        {"seeds": range(16), "steps": 20_000, "save": 201},
    ),
    "simsiam": Recipe(
        "SimSiam with linear networks by SGD on sampled views: three modes in the mean of 16 seeds",
        "self_supervised.modes",
        "simsiam",
        tuple(
            reading
            for t, row in MODES_AT.items()
            for name, values, noise in zip("ps", row, (7.5e-3, 1.05e-2), strict=True)
            for j, value in enumerate(values)
            for reading in both(f"{name} {j + 1} at t = {t}", name, t, (value, 5e-9), (value, noise, f"{SEEDS} 16 seeds, by 64 others"), j)
        ),
        {"settings": {"p": np.array([0.05, 0.3, 0.6]), "s": np.array([0.5, 0.3, 0.7])}, "seeds": range(16), "steps": 1000, "save": 11},
    ),
    "markov_best_bias": Recipe(
        "one layer of attention learns a binary Markov chain, its bias at the optimum: where the energy that the flow keeps leads",
        "in_context.markov",
        "binary_chain",
        (
            *both(
                "e at t = 100",
                "e",
                100,
                (1.27892458, 5e-9),
                (1.27892458, 0.01, f"{SEEDS} 64 seeds, and what batches lead along the valley: .004 and .006, by 64 others"),
            ),
            *both(
                "w at t = 100",
                "w",
                100,
                (0.42753372, 5e-9),
                (0.42753372, 8.5e-3, f"{SEEDS} 64 seeds, and what batches lead along the valley: .0032 and .005, by 64 others"),
            ),
            *both("s at t = 100", "s", 100, (2.2335922, 5e-8), (2.2335922, 0.024, f"{SEEDS} 64 seeds, by 64 others")),
        ),
        {"settings": {"bias": "best"}, "seeds": range(64), "save": 5},
    ),
    "central_flow": Recipe(
        "gradient descent at a large step stays at the edge of stability: its means beside the flow along the edge",
        "edge.central_flow",
        "valley",
        (
            *(
                Reading(f"mean of {name} at step {t}, {word}", at(side, name, t), row[k], wide[number], reason.format(cycle))
                for t, rows in ON_THE_EDGE.items()
                for number, (side, word, row, reason) in enumerate(
                    (("theory", "flow", rows[0], SOFT), ("training", "trained", rows[1], WINDOW))
                )
                for k, (name, cycle, *wide) in enumerate(
                    (("y1", 0.15, 2e-7, 5e-4), ("y2", 0.05, 2e-7, 2e-4), ("sigma2", 0.006, 2e-8, 2e-5))
                )
            ),
            *distances(("y1", "y2"), 0.01, "cycles, which 301 steps do not average away: 1 %"),
        ),
        {"steps": 5150, "save": 5151},
    ),
    "adam": Recipe(
        "Adam on a quadratic loss beside its flow: two weights whose slopes differ by ten move alike",
        "optimisers.adam",
        "quadratic",
        (
            *both("w 1 at t = .5", "w", 0.5, (0.532700154, 5e-10), (0.532562059, 5.1e-10, DIGITS), 0),
            *both("w 2 at t = .5", "w", 0.5, (0.532258999, 5e-10), (0.532120388, 5.1e-10, DIGITS), 1),
            *both("w 1 at t = 1", "w", 1.0, (0.205772663, 5e-10), (0.205530567, 5.1e-10, DIGITS), 0),
            *both("w 2 at t = 1", "w", 1.0, (0.205142217, 5e-10), (0.204899419, 5.1e-10, DIGITS), 1),
            *distances(("w",), 1e-3, "steps of .002, to first order: half of a step"),
        ),
        {
            "settings": {"optimizer": "adam", "H": np.diag([1.0, 10.0]), "W": np.ones(2), "eta": 0.002, "eps": 1e-3}
            | {"b1": float(np.exp(-0.02)), "b2": float(np.exp(-0.002))},
            "steps": 500,
            "save": 3,
        },
    ),
    "sign_descent": Recipe(
        "steps of the sign of the gradient beside its flow: straight on until a slope is 0, then along where it stays 0",
        "optimisers.sign",
        "quadratic",
        tuple(
            Reading(f"w {k + 1} at t = {t:g}, {word}", at(side, "w", t, k), value, 2e-3, "slopes of .002, two steps of .001")
            for t, row in ((0.5, (0.5, -0.3)), (0.9, (0.1, -0.075)))
            for k, value in enumerate(row)
            for side, word in (("theory", "flow"), ("training", "trained"))
        ),
        {
            "settings": {"optimizer": "sign", "H": np.array([[2.0, 1.5], [1.5, 2.0]]), "W": np.array([1.0, 0.2]), "eta": 0.001},
            "steps": 950,
            "save": 20,
        },
    ),
    "momentum": Recipe(
        "descent with momentum beside a mass with friction, in time steps times the root of the rate",
        "optimisers.momentum",
        "quadratic",
        (
            *both("w 1 after 50 steps", "w", 50 * 0.001**0.5, (0.755213184, 5e-10), (0.75069963, 5.1e-9, DIGITS), 0),
            *both("w 2 after 50 steps", "w", 50 * 0.001**0.5, (0.080278906, 5e-10), (0.07156463, 5.1e-9, DIGITS), 1),
            *both("w 1 after 200 steps", "w", 200 * 0.001**0.5, (0.384173976, 5e-10), (0.38428702, 5.1e-9, DIGITS), 0),
            *distances(("w",), 0.032, "steps of the root of .001, to first order"),
        ),
        {
            "settings": {"optimizer": "sgd", "momentum": 0.9, "H": np.diag([1.0, 10.0]), "W": SWING[0], "b": SWING[1], "eta": 0.001},
            "steps": 200,
            "save": 201,
        },
    ),
    "muon": Recipe(
        "Muon on |W - A|^2/2 beside its Map: singular values of 3.1, 1.5 and .6 rise at nearly one rate",
        "optimisers.muon",
        "quadratic",
        (
            *distances(("W", "loss"), 1e-12, ROUNDING),
            *(
                Reading(f"singular value {k + 1} at step {t}, {word}", singular(side, t, k), value, 5.1e-10, DIGITS)
                for t, row in ORTHOGONAL.items()
                for k, value in enumerate(row)
                for side, word in (("theory", "Map"), ("training", "trained"))
            ),
        ),
        {
            "settings": {"optimizer": "muon", "momentum": 0.5, "H": np.eye(3), "b": np.array(TARGET), "W": np.zeros((3, 3)), "eta": 0.02},
            "steps": 40,
            "save": 41,
        },
    ),
    "sgd_diffusion": Recipe(
        "one-pass SGD, a sample a step, beside a diffusion with the covariance of its gradients: the mean risk of 1,000 paths of each",
        "noise.sgd_least_squares",
        "power_law",
        tuple(
            Reading(f"mean risk at t = {t}, {word}", at(side, "risk", t), value, wide, f"{SEEDS} 1,000 paths, by 1,000 others")
            for t, flow, steps, wide in ((1, 0.48895049, 0.48481055, 0.031), (2, 0.23009800, 0.22920343, 0.0117))
            for side, word, value in (("theory", "diffusion", flow), ("training", "SGD", steps))
        ),
        {
            "settings": {"lam": np.array([2.0, 1.0, 0.3]), "target": np.array([-1.0, 1.0, -2.0]), "s2": 0.25, "eta": 0.05},
            "seeds": range(1000),
            "steps": 40,
            "save": 3,
        },
    ),
    "tokens": Recipe(
        "16 tokens in three dimensions go through 1000 blocks of attention, beside the flow of particles on a sphere",
        "particles.sphere",
        "tokens",
        (
            *distances(("x",), 5e-3, "blocks of .01, to first order"),
            *(
                Reading(
                    f"x of the last token, {k + 1}, at t = 10, less that of the flow",
                    difference("x", 10, 15, k),
                    0.0,
                    0.01,
                    "blocks of .01",
                )
                for k in range(3)
            ),
        ),
        {"settings": {"d": 3, "n": 16, "h": 0.01}, "steps": 1000, "save": 11, "observables": ("x",)},
    ),
    "noisy_tokens": Recipe(
        "200 tokens in three dimensions with noise, blocks of unnormalised attention, beside the density of infinitely many",
        "particles.sphere_density",
        "tokens",
        (
            Reading("mean cosine at t = 10, density at rest", at("theory", "r", 10), 0.8062860, 3e-6, "what is left at t = 10"),
            Reading("mean cosine from t = 5 on, tokens", late("training", "r", 5), 0.8062860, 0.018, NOISY),
            *distances(("r",), 0.03, f"{NOISY}, of r from .65 on"),
        ),
        {
            "settings": {"n": 200, "d": 3, "h": 0.01, "kappa": 0.5, "K": 1.5 * 1.3591409142, "attention": "unnormalised", "modes": 16},
            "seeds": range(16),
            "steps": 1000,
            "save": 21,
            "observables": ("a", "r"),
        },
    ),
}
