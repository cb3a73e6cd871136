"""What is stated of the 16 numbers of symmetric starts: they are the whole model, and when attention and copying come."""

from collections.abc import Iterable
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.topics._population import Population
from odesim.symbolic import Source

PAPER = "li2023topic"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13}


def matrices(y: dict[str, Any], T: int, v: int) -> dict[str, np.ndarray]:
    """The weights of topics.full that 16 numbers stand for."""
    n = T * v
    topics = np.pad(np.kron(np.eye(T), np.full((v, v), 1 / v)), ((1, 0), (1, 0)))
    word, mask = np.r_[0, np.ones(n)] / np.sqrt(n), np.eye(n + 1)[0]
    P_t, P_w, U = topics - np.outer(word, word), np.diag(np.r_[0, np.ones(n)]) - topics, np.stack([mask, word], axis=1)
    return {
        "W_V": y["a_w"] * P_w + y["a_t"] * P_t + np.outer(word, y["r_w"] * word + y["r_m"] * mask),
        "W_K": y["k_w"] * P_w + y["k_t"] * P_t + U @ y["K2"] @ U.T,
        "W_Q": y["q_w"] * P_w + y["q_t"] * P_t + U @ y["Q2"] @ U.T,
    }


def sixteen() -> Iterable[Measurement]:
    """topics.full and topics.reduced from a random symmetric start, T = 4, v = 3, to t = 150."""
    rng = np.random.default_rng(3)
    start: dict[str, Any] = {name: 0.3 * rng.normal() for name in ("a_w", "a_t", "r_w", "r_m", "k_w", "q_w", "k_t", "q_t")}
    start |= {name: 0.3 * rng.normal(size=(2, 2)) for name in ("K2", "Q2")}
    given: dict[str, Any] = {"span": (0, 150), "save": 4, **FINE}
    few = odesim.integrate("topics.reduced", initial=start, **given)
    full = odesim.integrate("topics.full", initial=matrices(start, 4, 3), **given)
    for k, t in enumerate(few.t):
        made = matrices({name: rows[k] for name, rows in few.y.items()}, 4, 3)
        for name, W in made.items():
            yield deviation(f"{name} at t = {t:g}", full.y[name][k], W, 1e-8)
    yield deviation("loss", full.observables["loss"], few.observables["loss"], 1e-10)


def slopes() -> Iterable[Measurement]:
    """How fast k_t and k_w grow at uniform attention beside formulas, for values learned and half learned, in three populations."""
    for p in (Population(4, 3, 2, 0.3), Population(10, 10, 2, 0.1), Population(6, 2, 3, 0.2)):
        mass, g = p.m0**2 + (1 - p.m0) ** 2 / p.n, 1 / (p.tau * p.v) - 1 / p.n
        rest = {"r_w": (1 - p.m0) / (p.n * mass), "r_m": p.m0 / (p.n**0.5 * mass), "K2": 0.0, "Q2": 0.0}
        here, away = p.tau * p.v * p.p1, (p.n - p.tau * p.v) * p.p2  # of a word's topics, and of others
        spread = here * g**2 + away / p.n**2 - (here * g - away / p.n) ** 2
        for a_t, a_w in ((1 / p.kappa, 0.0), (1 / p.kappa, 0.5), (0.4, 0.3)):
            start = {"a_w": a_w, "a_t": a_t, **dict.fromkeys(("k_w", "q_w", "k_t", "q_t"), 1e-4), **rest}
            params = {"T": p.T, "v": p.v, "tau": p.tau, "p_c": p.p_c}
            run = odesim.integrate("topics.reduced", params=params, initial=start, span=(0, 1e-3), save=2, rtol=1e-10, atol=1e-18)
            topic = 2 * p.p_c * a_t * (p.p1 * (p.tau - 1) / (p.tau * p.v) + (1 - p.kappa * a_t) * spread) / (p.T - 1)
            word = 2 * p.p_c * a_w * p.p1 * (1 - 1 / p.v) / (p.T * (p.v - 1))
            for name, want in (("k_t", topic), ("k_w", word)):
                rate = float(np.log(run.y[name][1] / run.y[name][0]) / 1e-3)
                yield Measurement(f"T = {p.T}, a_t = {a_t:.2f}, a_w = {a_w:g}: rate of {name}", rate / topic, want / topic, 1e-4)


SETTING: dict[str, Any] = {"T": 10, "v": 10, "tau": 2, "p_m": 0.15, "p_c": 0.1, "p_r": 0.1}
STILL = dict.fromkeys(("a_w", "a_t", "r_w", "r_m", "k_w", "q_w", "K2", "Q2"), 0.0)
ATTENTION = {1e-2: 83201.9, 1e-3: 124505.3, 1e-4: 165808.6}
COPYING = {3e-2: 77.5, 1e-2: 72.8, 3e-3: 70.5, 1e-3: 69.4}


def attention() -> Iterable[Measurement]:
    """When k_t q_t is 1, T = v = 10, k and q at eps, the values at 0 at the start; its dependence on eps; the losses of the stages."""
    g2, times = 5.5748e-5, []
    for eps, want in ATTENTION.items():
        given: dict[str, Any] = {"params": SETTING | {"eps": eps}, "initial": STILL, "events": ["seen: k_t * q_t - 1"]}
        run = odesim.integrate("topics.reduced", span=(0, 1.2 * want), save=2, **given, **FINE)
        times.append(float(run.events["seen"][0]["t"]))
        yield Measurement(f"time of k_t q_t = 1, eps = {eps:g}, over its digits", times[-1] / want, 1.0, 2e-6)
    yield Measurement("delay for a tenth of eps, times g2 over ln 10", (times[2] - times[1]) * g2 / np.log(10), 1.0, 1e-4)


def scaled() -> Iterable[Measurement]:
    """Slopes of topics.full with d_a = 101 at weights d_a^(1/4) W beside those with d_a = 1 at W; when attention comes, T = v = 10."""
    rng, d_a, g2, eps = np.random.default_rng(5), 101.0, 5.5748e-5, 1e-3
    W = {name: 0.3 * rng.normal(size=(13, 13)) for name in ("W_V", "W_K", "W_Q")}
    slopes = []
    for scale in (1.0, d_a):
        start = {name: w if name == "W_V" else w * scale**0.25 for name, w in W.items()}
        # an Euler step of length 1 is the right-hand side
        run = odesim.integrate("topics.full", params={"d_a": scale}, initial=start, span=(0, 1), save=2, method="euler", step=1.0)
        slopes.append({name: run.final[name] - start[name] for name in W})
    yield deviation("slope of W_V", slopes[1]["W_V"], slopes[0]["W_V"], 1e-13)
    for name in ("W_K", "W_Q"):
        yield deviation(f"d_a^(1/4) times the slope of {name}", slopes[1][name] * d_a**0.25, slopes[0][name], 1e-13)
    given: dict[str, Any] = {"initial": STILL, "params": SETTING | {"eps": eps, "d_a": d_a}, "span": (0, 1.6e6), "save": 2}
    run = odesim.integrate("topics.reduced", events=["seen: k_t * q_t - sqrt(d_a)"], **given, **FINE)
    want = d_a**0.5 * (np.log(1 / eps) + np.log(d_a) / 4) / g2
    yield Measurement("that time by the formula", want, 1.4533e6, 50.0)
    yield Measurement("time of the logit 1, over the formula", float(run.events["seen"][0]["t"]) / want, 1.0, 5e-3)


def stages() -> Iterable[Measurement]:
    """The losses on the two plateaus, T = v = 10, eps = 1e-3."""
    run = odesim.integrate("topics.reduced", params=SETTING | {"eps": 1e-3}, span=(0, 6e5), save=[0, 1e4, 6e5], **FINE)
    yield Measurement("loss on the first plateau", run.observables["loss"][1], 0.95, 5e-5)
    yield Measurement("loss on the second plateau", run.observables["loss"][2], 0.9459, 5e-5)


def copying() -> Iterable[Measurement]:
    """eps times the first time of a_w = 1/2, T = 4, v = 3, all numbers at eps; and the loss before and after."""
    for eps, want in COPYING.items():
        given: dict[str, Any] = {"params": {"eps": eps}, "span": (0, 1.1 * want / eps), "events": ["copied: a_w - 0.5"]}
        run = odesim.integrate("topics.reduced", save=2, **given, **FINE)
        yield Measurement(f"eps times the time, eps = {eps:g}", eps * float(run.events["copied"][0]["t"]), want, 0.05)
    run = odesim.integrate("topics.reduced", params={"eps": 1e-2}, span=(0, 15000), save=[0, 3600, 15000], **FINE)
    yield Measurement("loss at half of that time, eps = .01", run.observables["loss"][1], 0.79068, 2e-5)
    yield Measurement("loss at twice the time, eps = .01", run.observables["loss"][2], 0.61915, 2e-4)


REDUCED = (
    Claim(
        "topics.sixteen_numbers",
        Source(PAPER, "Sections 3 and 4", "the reduction is ours"),
        "topics.reduced and topics.full from a random symmetric start, T = 4, v = 3, to t = 150",
        "on symmetric starts 16 numbers are the whole model",
        sixteen,
        "100 times the runs' relative tolerance",
        slow=True,
    ),
    Claim(
        "topics.slopes",
        Source(PAPER, "Section 4", "at uniform attention; the slopes are ours"),
        "topics.reduced for a time of 1e-3, T = 4, 10 and 6, values learned and half learned",
        "attention to the topic grows by what the topic's words and wrong values tell, that to the word itself by a_w",
        slopes,
        "what the values move in a time of 1e-3",
        depends=("topics.sixteen_numbers",),
    ),
    Claim(
        "topics.second_stage",
        Source(PAPER, "Section 4", "the time is ours"),
        "topics.reduced, T = v = 10, tau = 2, from eps = 1e-2 to 1e-4",
        "attention to the topic comes at ln(1/eps) / g2 and a constant",
        attention,
        "half a unit of the last digit",
        depends=("topics.slopes",),
    ),
    Claim(
        "topics.scaled_logits",
        Source(PAPER, "Section 4", "logits over sqrt(d_a), which the paper leaves out; the scaling is ours"),
        "topics.full at a random state, d_a = 101 and 1; topics.reduced, T = v = 10, tau = 2, d_a = 101, eps = 1e-3",
        "W_K and W_Q over d_a^(1/4) move as with d_a = 1, sqrt(d_a) times slower: attention comes after "
        "sqrt(d_a) (ln(1/eps) + ln(d_a)/4) / g2",
        scaled,
        "rounding; of the time .5 %, the transient and saturation",
        depends=("topics.second_stage",),
    ),
    Claim(
        "topics.plateaus",
        Source(PAPER, "Section 4", "the numbers by an independent script"),
        "topics.reduced, T = v = 10, tau = 2, eps = 1e-3, to t = 6e5",
        "the loss falls in stages: 1, .9500, .9459",
        stages,
        "half a unit of the last digit",
        depends=("topics.sixteen_numbers",),
    ),
    Claim(
        "topics.third_stage",
        Source(PAPER, "Section 4", "not in the paper; the numbers by an independent script"),
        "topics.reduced, T = 4, v = 3, from eps = 3e-2 to 1e-3",
        "the word that is shown is copied after a time of order 1/eps",
        copying,
        "half a unit of the last digit; of the loss, how far it still is from the least, .61915",
        depends=("topics.sixteen_numbers",),
    ),
)
