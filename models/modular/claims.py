"""What is stated of modular addition, and what holds: the lottery of frequencies, aligned phases, decay, the energy of one unit."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sympy import Symbol

import odesim
from odesim.lab.claims import Claim, Mark, Measurement, deviation
from odesim.models.modular.phases import balanced, blow_up
from odesim.models.modular.powers import logarithmic_mean
from odesim.symbolic import Source

PHASES, ENERGY, POWERS = (f"modular.{name}" for name in ("phases", "energy", "powers"))
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-14}
P, FAR = 23, 1e3  # alpha at which a run ends; what is left of the time is p / (sqrt(2) alpha), to a part of 1e-6


def neuron(alpha: Any, beta: Any, D: Any, lam: float = 0.0, far: float = FAR, span: float = 1e4) -> Any:
    """A run of one neuron from alpha, beta and gaps D (K,), all phases in psi, until the first alpha is `far`."""
    sizes = {"N": 1, "K": len(np.atleast_1d(D))}
    initial = {name: np.broadcast_to(a, (1, sizes["K"])) for name, a in (("alpha", alpha), ("beta", beta), ("phi", 0.0), ("psi", D))}
    events = [f"far: alpha[n, k] - {far}; terminal"]
    return odesim.integrate(
        PHASES, sizes=sizes, initial=initial, params={"p": P, "lam": lam}, span=(0, span), save=2, events=events, **FINE
    )


def time(alpha: float, beta: float, D: float, lam: float = 0.0) -> float:
    """t* by a run until alpha = 1000, and the rest of the time there."""
    run = neuron(alpha, beta, [D], lam)
    return float(run.t_end) + P / (np.sqrt(2) * float(run.final["alpha"][0, 0]))


# t* p^-2 at p = 23, beta = .02, by another integrator: sizes in balance, alpha = sqrt(2) beta, and alpha = beta
BALANCED = {0.3: 1.0939887558, 1.0: 1.1705349233, 2.0: 1.5263516056, 3.0: 3.9819485507}
EQUAL = {0.3: 1.3634101966, 0.55: 1.3840783410, 1.0: 1.4564776839}


def times() -> Iterable[Measurement]:
    """Seven times of blow-up: runs, formulas, and numbers of another integrator."""
    for D, want in BALANCED.items():
        yield Measurement(f"t*/p^2 by a run, alpha = sqrt(2) beta, D = {D:g}", time(0.02 * np.sqrt(2), 0.02, D) / P**2, want, 1e-8)
        yield Measurement(f"t*/p^2 by 2F1, D = {D:g}", float(balanced(0.02, D, P)) / P**2, want, 2e-10)
    for D, want in EQUAL.items():
        yield Measurement(f"t*/p^2 by a run, alpha = beta, D = {D:g}", time(0.02, 0.02, D) / P**2, want, 1e-8)
        yield Measurement(f"t*/p^2 by an integral, D = {D:g}", blow_up(0.02, 0.02, D, P) / P**2, want, 1e-10)


def random_neurons(equal: bool) -> Iterable[tuple[Any, Any, Any, int]]:
    """(alpha, beta, D, winner) of 40 neurons with 11 frequencies: sizes of normal weights, or all .02."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        D = rng.uniform(-np.pi, np.pi, 11)
        alpha, beta = (0.02 * np.ones((2, 11))) if equal else 0.02 * np.sqrt(2 / P) * rng.rayleigh(size=(2, 11)) * 4
        run = neuron(alpha, beta, D, far=5.0, span=1e6)
        yield alpha, beta, D, int(np.argmax(run.final["alpha"][0]))


def lottery() -> Iterable[Measurement]:
    """40 neurons from normal weights: the first to blow up, beside the least t* of the formula; and the times themselves."""
    right = [winner == np.argmin([blow_up(a, b, D, P) for a, b, D in zip(*row, strict=True)]) for *row, winner in random_neurons(False)]
    yield Measurement("neurons of 40 won by the least t*", sum(right), 40.0)
    yield from times()


def smallest_gap(equal: bool) -> Iterable[Measurement]:
    """40 neurons: those that the frequency with the smallest |D| wins."""
    right = [winner == np.argmin(np.abs(D)) for _, _, D, winner in random_neurons(equal)]
    yield Measurement("neurons of 40 won by the smallest gap", sum(right), 40.0)


def alignment() -> Iterable[Measurement]:
    """Gaps and sizes of three frequencies when alpha is 10 and 1000."""
    for D in (0.3, 1.0, 2.5):
        for far in (10.0, FAR):
            run = neuron(0.03, 0.02, [D], far=far)
            alpha, beta = (float(run.final[name][0, 0]) for name in ("alpha", "beta"))
            C2 = 0.03**2 * 0.02 * np.sin(D)
            gap = float(run.final["psi"][0, 0] - 2 * run.final["phi"][0, 0])
            yield Measurement(f"gap from D = {D:g} at alpha = {far:g}", gap, C2 / (alpha**2 * beta), 1e-11)
            yield Measurement(f"alpha / beta from D = {D:g} at alpha = {far:g}", alpha / beta, np.sqrt(2), 1e-4 / far**2)


DECAY = {0.3: 1.7532609307, 0.6: 2.8400033657, 0.7: 4.4108079036, 0.73: 7.3396564779}
CRITICAL = 0.7334549811


def decay() -> Iterable[Measurement]:
    """t* of alpha = beta = .02, D = .3 at four weight decays below 1/t*, beside another integrator; and above it."""
    plain = blow_up(0.02, 0.02, 0.3, P) / P**2
    yield Measurement("critical decay times p^2", 1 / plain, CRITICAL, 1e-10)
    for lam, want in DECAY.items():
        yield Measurement(f"t*/p^2 at lam p^2 = {lam:g}", time(0.02, 0.02, 0.3, lam / P**2) / P**2, want, 1e-6)
        yield Measurement(f"-ln(1 - lam t*) / lam at lam p^2 = {lam:g}", -np.log1p(-lam * plain) / lam, want, 1e-8)
    died = neuron(0.02, 0.02, [0.3], 0.74 / P**2, span=40 * P**2)
    yield Measurement("alpha in the end at lam p^2 = .74", died.final["alpha"][0, 0], 0.0, 1e-3)


def powers_of(w: Any) -> Any:
    """Real Fourier powers 2 |w_k|^2/M of weights (M,), k = 1, ..., (M - 1)/2."""
    return 2 * np.abs(np.fft.rfft(w)[1:]) ** 2 / len(w)


def features() -> Iterable[Measurement]:
    """Twenty random starts at M = 7: energy, powers in the end; energy along the first one; what a memorised pair has."""
    for seed in range(20):
        w = np.random.default_rng(seed).normal(size=14)
        u0, v0 = (w / np.sqrt(w @ w)).reshape(2, 7)
        run = odesim.integrate(ENERGY, params={"u0": u0, "v0": v0}, span=(0, 60), save=[0, 0.1, 0.3, 1, 60], **FINE)
        if seed == 0:
            yield deviation(
                "energy at t = 0, .1, .3, 1", run.observables["energy"][:4], (0.4355723295, 0.888165662, 1.635301081, 1.749993084), 1e-8
            )
        yield Measurement(f"energy in the end, start {seed}", run.observables["energy"][-1], 7 / 4, 1e-8)
        U, V = powers_of(run.final["u"]), powers_of(run.final["v"])
        yield deviation(f"powers, start {seed}", np.sort([U, V]), [0, 0, 0.5], 1e-6)
    pair = np.eye(7)[2] / np.sqrt(2)
    run = odesim.integrate(ENERGY, params={"u0": pair, "v0": pair}, span=(0, 1e-6), save=2, **FINE)
    yield Measurement("energy of a memorised pair", run.observables["energy"][0], (1 - 1 / 7) / 2, 1e-12)


def game() -> Iterable[Measurement]:
    """The powers of modular.energy beside modular.powers at M = 7, t = .1, .3 and 1."""
    w = np.random.default_rng(0).normal(size=14)
    u, v = (w / np.sqrt(w @ w)).reshape(2, 7)
    run = odesim.integrate(ENERGY, params={"u0": u, "v0": v}, span=(0, 1), save=[0, 0.1, 0.3, 1], **FINE)
    start = {"U": powers_of(u), "V": powers_of(v), "rest": float(u.sum() ** 2 + v.sum() ** 2) / 7}
    reduced = odesim.integrate(POWERS, initial=start, sizes={"K": 3}, span=(0, 1), save=[0, 0.1, 0.3, 1], **FINE)
    for name, state in (("U", "u"), ("V", "v")):
        yield deviation(f"{name} of the unit", np.array([powers_of(row) for row in run.y[state]]), reduced.y[name], 1e-8)
    yield deviation("energy", run.observables["energy"], reduced.observables["energy"], 1e-8)


def winners() -> Iterable[Measurement]:
    """400 random starts at M = 23: how often three rules name the frequency that has everything at t = 20."""
    rng, right = np.random.default_rng(11), np.zeros(3)
    for _ in range(400):
        w = rng.normal(size=(2, 23))
        u, v = w / np.sqrt((w**2).sum())
        U, V = powers_of(u), powers_of(v)
        start = {"U": U, "V": V, "rest": float(u.sum() ** 2 + v.sum() ** 2) / 23}
        run = odesim.integrate(POWERS, initial=start, sizes={"K": 11}, span=(0, 20), save=2, rtol=1e-8, atol=1e-12)
        right += np.argmax([logarithmic_mean(U, V), U * V, U + V], axis=1) == np.argmax(run.final["U"])
    yield Measurement("share won by the largest logarithmic mean", right[0] / 400, 1.0)
    # three standard errors of 400 starts, twice: both shares are counts
    yield Measurement("share won by the largest product", right[1] / 400, 0.9375, 0.05)
    yield Measurement("share won by the largest sum", right[2] / 400, 0.7675, 0.09)


RECORDED = {200: (7.4e-6, 1e-4), 400: (2.5e-5, 2e-4), 600: (8.4e-5, 4e-4)}
"""step -> largest distance of alpha from the flow, its median part, by another program from the same weights."""


def trained() -> Iterable[Measurement]:
    """Gradient descent at rate 1 on cross-entropy, eight neurons of 23 weights, beside the 88 frequencies of the flow."""
    found = odesim.compare(PHASES, task="modular", steps=600, save=4)
    for row, (step, (worst, median)) in enumerate(RECORDED.items(), 1):
        flow, seen = (side["alpha"][0, row] for side in (found.theory, found.training))
        yield Measurement(f"largest distance of alpha, step {step}", np.abs(seen - flow).max(), worst, 0.01 * worst)
        yield Measurement(f"median part of alpha, step {step}", np.median(np.abs(seen - flow) / flow), 0.0, 1.2 * median)


SEEDS = range(11, 15)
"""Of the trainings below, whose bounds are from seeds 1 to 8 and 1 to 6: means and deviations over these."""


def mean_of_seeds(name: str, values: Any, mean: float, deviation: float) -> Measurement:
    """The mean over SEEDS, within three standard errors of the mean over the other seeds."""
    return Measurement(f"{name}, mean of {len(values)} seeds", np.mean(values), mean, 3 * deviation / len(values) ** 0.5)


def slow_neurons() -> Iterable[Measurement]:
    """24 neurons by SGD and by Muon, four seeds, to a ten-thousandth of the loss: which are one frequency to 3/4 of their power."""
    for name, eta, steps, features in (("sgd", 2.0, 4000, (13.75, 2.5)), ("muon", 0.01, 600, (23.6, 0.75))):
        seen = odesim.train("modular", settings={"N": 24, "optimizer": name, "eta": eta}, steps=steps, save=2, seeds=SEEDS).observables
        power = seen["alpha"][:, -1] ** 2
        share = power.max(axis=2) / power.sum(axis=2)
        yield Measurement(f"loss in the end over ln p, {name}, the largest", seen["loss"][:, -1].max() / np.log(P), 1e-4, 0.0, "<=")
        yield mean_of_seeds(f"neurons of 24 that are a feature, {name}", (share > 0.75).sum(axis=1), *features)
        for row, seed in enumerate(SEEDS if name == "sgd" else ()):
            start = zip(*(seen[part][row, 0] for part in ("alpha", "beta", "D")), strict=True)
            times = [min(blow_up(a, b, D, P) for a, b, D in zip(*neuron, strict=True)) for neuron in start]
            # of 24 ranks without a relation: a deviation of 23^(-1/2)
            rank = float(spearmanr(times, share[row])[0])
            yield Measurement(f"sgd: rank correlation of t* and the share of one frequency, seed {seed}", rank, -3 / 23**0.5, 0.0, "<=")


def grokking() -> Iterable[Measurement]:
    """64 neurons on 60 % of the pairs by AdamW, without decay and with 1, four seeds: loss of what is seen, what is right of the rest."""
    settings: dict[str, Any] = {"N": 64, "optimizer": "adamw", "eta": 2e-3, "share": 0.6, "init_scale": 0.5}
    given: dict[str, Any] = {"steps": 4000, "save": 41, "observe": ["loss_held", "right_held"], "seeds": SEEDS}
    for decay in (0.0, 1.0):
        run = odesim.train("modular", settings={**settings, "weight_decay": decay}, **given)
        loss, held, right = (run.observables[name] for name in ("loss", "loss_held", "right_held"))
        known, early = np.argmax(loss < 0.2, axis=1), np.argmax(right > 0.9, axis=1)
        yield Measurement(f"loss of what is seen over ln p, decay {decay:g}, the largest", loss[:, -1].max() / np.log(P), 0.01, 0, "<=")
        if decay:
            yield mean_of_seeds("right of the rest in the end, decay 1", right[:, -1], 0.941, 0.033)
            yield mean_of_seeds("right of the rest as the loss comes to .2, decay 1", right[np.arange(len(SEEDS)), known], 0.637, 0.046)
            yield mean_of_seeds(
                "steps until 9 in 10 are right, over those until .2", run.t[early] / np.maximum(run.t[known], 1), 2.82, 0.74
            )
        else:
            yield mean_of_seeds("right of the rest in the end, no decay", right[:, -1], 0.587, 0.027)
            # who knows nothing has ln p
            yield Measurement("loss of the rest over ln p, no decay, the least", held[:, -1].min() / np.log(P), 1.0, 0.0, ">=")


HE, TIAN = "he2026mechanism", "tian2025provable"
DIGIT = "100 times the tolerance of a run, or two of the last recorded digit"
CLAIMS = (
    Claim(
        "modular.lottery",
        Source(HE, "Abstract", "the times are derived"),
        "modular.phases, p = 23, one neuron; 40 with 11 frequencies",
        "frequencies compete in each neuron, and sizes and phases at the start name the winner: that of the least t*",
        lottery,
        DIGIT,
        depends=("modular.decoupled",),
    ),
    Claim(
        "modular.decoupled",
        Source(HE, "Abstract", "gradient flow in Fourier space"),
        "the task modular, p = 23, eight neurons, 600 steps, beside modular.phases",
        "while logits are small frequencies of a trained network do not see each other",
        trained,
        "half a recorded digit; steps of 1, to first order, and logits of .002",
    ),
    Claim(
        "modular.smallest_gap",
        Source(HE, "Abstract", "phases alone"),
        "modular.phases, p = 23, 40 neurons with 11 frequencies",
        "the frequency with the smallest phase gap wins",
        partial(smallest_gap, True),
        "none: counts",
        when="all sizes are equal; from normal weights size counts too",
        otherwise=partial(smallest_gap, False),
        depends=("modular.lottery",),
    ),
    Claim(
        "modular.aligned",
        Source(HE, "Abstract", "phase alignment, with its rate"),
        "modular.phases, p = 23, three gaps",
        "phases align, psi -> 2 phi: the gap is C2 / (alpha^2 beta), and alpha / beta -> sqrt(2)",
        alignment,
        "a few tolerances of phases of order 1; the next order, C1 / alpha^2",
    ),
    Claim(
        "modular.decay",
        Source(HE, "Abstract", "loss against weight decay, before logits are large"),
        "modular.phases, p = 23, alpha = beta = .02, D = .3",
        "decay leaves the frequencies with lam t* < 1, which blow up at -ln(1 - lam t*) / lam, and removes the others",
        decay,
        DIGIT,
        depends=("modular.lottery",),
    ),
    Claim(
        "modular.grokking",
        Source(HE, "Abstract", "loss against weight decay, after logits are large: no System"),
        "the task modular, p = 23, 64 neurons, 60 % of the pairs, AdamW, four seeds",
        "a network memorises first, and weight decay alone leads it on to the pairs that it has not seen",
        grokking,
        "means: three standard errors, of the deviation over six other seeds; losses: parts of ln p",
        models=(PHASES,),
        slow=True,
    ),
    Claim(
        "modular.features",
        Source(TIAN, "Abstract", "quadratic units, all pairs"),
        "modular.energy, M = 7, twenty starts",
        "a unit climbs its energy, and the maxima are the features: one frequency, E = M/4, above the (1 - 1/M)/2 of a memorised pair",
        features,
        DIGIT,
        marks=(Mark("energy", Symbol("M") / 4),),
    ),
    Claim(
        "modular.game",
        Source(TIAN, "Abstract", "the ascent in Fourier powers: derived"),
        "modular.energy beside modular.powers, M = 7",
        "U_k' = 4 U_k (M V_k - 2E), V_k' = 4 V_k (M U_k - 2E), E = M sum_k U_k V_k",
        game,
        DIGIT,
        depends=("modular.features",),
    ),
    Claim(
        "modular.muon",
        Source(TIAN, "Abstract", "why Muon can be effective"),
        "the task modular, p = 23, 24 neurons, by SGD and by Muon, four seeds",
        "Muon makes a feature of each neuron; by SGD the loss is gone before those with a late t* are there",
        slow_neurons,
        "counts: three standard errors, of the deviation over eight other seeds; ranks: three deviations of ranks without a relation",
        models=(PHASES,),
    ),
    Claim(
        "modular.winner",
        Source(TIAN, "Abstract", "which of the maxima: derived"),
        "modular.powers, M = 23, 400 starts",
        "the winner has the largest logarithmic mean of U_k and V_k; the largest product or sum names it less often",
        winners,
        "none for the mean; three standard errors of 400 starts for the others",
        depends=("modular.game",),
    ),
)
