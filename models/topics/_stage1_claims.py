"""What is stated of the first stage of topics, values under uniform attention, and of a transformer on real text."""

from collections.abc import Iterable
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.topics._population import Population
from odesim.symbolic import Source

# What is stated of the 16 numbers of symmetric starts: they are the whole model, and when attention and copying come.

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


PLAIN: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}
SCRIPT = "half a unit of the last recorded digit"
SMALL = Population(T=4, v=3, tau=2, p_c=0.1)
DEFAULT = Population(T=4, v=3, tau=2, p_c=0.3)


def blocks() -> Iterable[Measurement]:
    """Entries of the values after the first stage."""
    W = odesim.integrate("topics.stage1", params={"p_c": 0.1}, span=(0, 1500), save=2, **PLAIN).final["W_V"]
    topic = np.arange(12) // 3
    same = topic[:, None] == topic
    for name, entries, value in (("mask", W[1:, 0], 0.12668919), ("same topic", W[1:, 1:][same], 0.36643851)):
        yield deviation(name, entries, value, 6e-9)
    yield deviation("other topics", W[1:, 1:][~same], -0.01891794, 6e-9)
    yield deviation("row of the mask", W[0], 0.0, 1e-12)


OTHERS: tuple[tuple[dict[str, Any], dict[str, int], float, float], ...] = (
    ({"T": 10, "p_c": 0.1}, {"d": 101, "N": 45}, 0.006651, 0.04429),
    ({}, {"d": 13, "N": 6}, 0.0445, 0.1542),
)


def two_rates() -> Iterable[Measurement]:
    """Values and loss along a run beside the sum of two exponentials."""
    run = odesim.integrate("topics.stage1", params={"p_c": 0.1}, span=(0, 100), save=5, **PLAIN)
    shown = run.attrs["params"]["P_shown"]
    rates = 2 * np.linalg.eigvalsh(shown.T @ shown / len(shown))[-4:]
    yield deviation("slow rates, of three contrasts", rates[:3], 0.04156806, 6e-9)
    yield Measurement("fast rate, of the mean document", rates[3], 0.15786667, 6e-9)
    for params, sizes, slow, fast in OTHERS:
        one = odesim.integrate("topics.stage1", params=params, sizes=sizes, span=(0, 1e-9), save=2, **PLAIN).attrs["params"]["P_shown"]
        rates = 2 * np.linalg.eigvalsh(one.T @ one / len(one))
        topics, p_c = params.get("T", 4), params.get("p_c", 0.3)
        yield deviation(f"slow rates, T = {topics}, p_c = {p_c:g}", rates[-topics:-1], slow, 6e-7 if topics == 10 else 6e-5)
        yield Measurement(f"fast rate, T = {topics}, p_c = {p_c:g}", rates[-1], fast, 6e-6 if topics == 10 else 6e-5)
    for t, W, loss in zip(run.t, run.y["W_V"], run.observables["loss"], strict=True):
        want, want_loss = SMALL.stage1(float(t))
        yield deviation(f"W_V at t = {t:g}", W, want, 1e-8)
        yield Measurement(f"loss at t = {t:g}", loss, want_loss, 1e-8)


def logistic() -> Iterable[Measurement]:
    """The mean value of the contrasts under E^T E, from E = .1 I."""
    run = odesim.integrate("topics.tied", save=7, **PLAIN)
    for t, E in zip(run.t, run.y["E"], strict=True):
        value = np.trace(DEFAULT.Pi_t @ E.T @ E) / 3
        grown = np.exp(-8 * DEFAULT.sigma2 * DEFAULT.kappa * t)
        want = 1 / (DEFAULT.kappa + (1 / 0.01 - DEFAULT.kappa) * grown)
        yield Measurement(f"value at t = {t:g}", value, want, 1e-8)


def many_optima() -> Iterable[Measurement]:
    """Values W_s, which stay where they are, their loss, and how much longer they are than the end of the flow from zero."""
    end = odesim.integrate("topics.stage1", params={"p_c": 0.1}, span=(0, 1500), save=2, **PLAIN)
    for s in (0.0, 0.4, 1.0):
        start = SMALL.state(s, 1.0, 1.0)["W_V"]
        run = odesim.integrate("topics.stage1", params={"p_c": 0.1}, initial={"W_V": start}, span=(0, 100), save=2, **PLAIN)
        yield deviation(f"s = {s:g}: how far they move to t = 100", run.final["W_V"], start, 1e-12)
        yield Measurement(f"s = {s:g}: loss", run.observables["loss"][0], 1 - 1 / 6, 1e-12)
        yield Measurement(f"s = {s:g}: norm over that of the end", np.linalg.norm(start) / end.observables["norm_W_V"][1], 1.0, 0.0, ">=")
    P, shown = (end.attrs["params"][name] for name in ("P", "P_shown"))
    ridge = np.linalg.solve(shown.T @ shown / 6 + 1e-8 * np.eye(13), shown.T @ P / 6).T
    # 1e-8 over the least eigenvalue, .0208, of entries below .4
    yield deviation("the end less ridge regression of weight 1e-8", end.final["W_V"], ridge, 2e-7)


def unmoved() -> Iterable[Measurement]:
    """From normal numbers: values on what is neither a contrast of topics nor the mean document, at t = 300."""
    start = np.random.default_rng(0).standard_normal((13, 13))
    run = odesim.integrate("topics.stage1", initial={"W_V": start}, span=(0, 300), save=2, **PLAIN)
    mu = np.r_[DEFAULT.m0, np.full(12, (1 - DEFAULT.m0) / 12)]
    seen = DEFAULT.Pi_t + np.outer(mu, mu) / (mu @ mu)
    yield deviation("what is not seen", run.final["W_V"] @ (np.eye(13) - seen), start @ (np.eye(13) - seen), 1e-9)
    yield deviation("what is seen", run.final["W_V"] @ seen, DEFAULT.stage1(np.inf)[0], 2e-5)  # exp(-.0445 300) of a few units


def mixtures() -> Iterable[Measurement]:
    """Documents of all orders of four proportions of topics, beside the two exponentials with E |theta|^2 in the place of 1/tau."""
    theta = np.array(list(permutations((0.5, 0.3, 0.15, 0.05))))
    P = np.pad(np.repeat(theta, 3, axis=1) / 3, ((0, 0), (1, 0)))
    run = odesim.integrate("topics.stage1", params={"P": P}, sizes={"d": 13, "N": 24}, span=(0, 100), save=5, **PLAIN)
    for t, W, loss in zip(run.t, run.y["W_V"], run.observables["loss"], strict=True):
        want, want_loss = DEFAULT.stage1(float(t), float((theta[0] ** 2).sum()))
        yield deviation(f"W_V at t = {t:g}", W, want, 1e-8)
        yield Measurement(f"loss at t = {t:g}", loss, want_loss, 1e-8)


STAGE1 = (
    Claim(
        "topics.blocks",
        Source(PAPER, "Theorem 1", "from zero, without weight decay; the numbers by an independent script"),
        "topics.stage1, T = 4, v = 3, tau = 2, p_c = .1, to t = 1500",
        "values end as blocks: one number for words of a topic, one for all others",
        blocks,
        SCRIPT,
    ),
    Claim(
        "topics.two_rates",
        Source(PAPER, "Theorem 1", "along the run; the solution is ours"),
        "topics.stage1, p_c = .1, to t = 100",
        "values relax at 2 kappa^2 sigma2 along contrasts of topics and at 2 |mu|^2 along the mean document",
        two_rates,
        "100 times the relative tolerance 1e-10 of the run",
    ),
    Claim(
        "topics.logistic",
        Source(PAPER, "Theorem 1", "with values E^T E; the law is ours"),
        "topics.tied from E = .1 I, to t = 60",
        "values of tied embeddings obey a logistic law of rate 8 sigma2 kappa",
        logistic,
        "100 times the relative tolerance 1e-10 of the run",
    ),
    Claim(
        "topics.many_optima",
        Source(PAPER, "Theorem 1", "without weight decay; what is least is ours"),
        "topics.stage1 from optima with s = 0, .4 and 1, to t = 100, and from zero, p_c = .1",
        "values s I + (1 - s) blocks, less what random words take, are optima for every s; from zero the shortest one is reached",
        many_optima,
        "rounding; of ridge regression its weight over the least eigenvalue",
    ),
    Claim(
        "topics.unmoved",
        Source(PAPER, "Theorem 1", "from other starts"),
        "topics.stage1 from normal numbers, to t = 300",
        "values on what is neither a contrast of topics nor the mean document stay as they start",
        unmoved,
        "10 times the relative tolerance 1e-10 of the run; what is left of the start",
    ),
    Claim(
        "topics.mixtures",
        Source(PAPER, "Theorem 1", "topics that are not equally frequent in a document"),
        "topics.stage1, documents of .5, .3, .15 and .05 of four topics in all orders, to t = 100",
        "for proportions theta of topics the slow rate has sigma2 = (E |theta|^2 - 1/T) / (v (T - 1))",
        mixtures,
        "100 times the relative tolerance 1e-10 of the run",
    ),
)


# What is stated of a transformer on a real text with masked tokens: values first, and what embeddings and attention know of topics.

TEXT: dict[str, Any] = {"objective": "masked", "vocabulary": 800, "length": 48, "batch": 16, "heads": 4, "start": "normal"}
"""Two layers of width 64 on Python's help; matrices start as N(0, .02^2)."""
SEEDS = (0, 1)


def first_to_grow(values: dict[str, Any], steps: int, save: int) -> Iterable[Measurement]:
    """When the values of each head of the first layer have grown by 5 %, over when its queries or keys have, or the end."""
    given: dict[str, Any] = {"model": "transformer", "settings": TEXT | values, "seeds": SEEDS, "dtype": "float32"}
    run = odesim.train("corpus", steps=steps, save=save, observe=("attention_norm_heads",), **given)
    norms = run.observables["attention_norm_heads"][:, :, 0]  # (seed, time, part, head)
    there = norms >= 1.05 * norms[:, :1]
    when = np.where(there.any(axis=1), run.t[there.argmax(axis=1)], run.t[-1])
    for (seed, head), ratio in np.ndenumerate(when[:, 2] / when[:, :2].min(axis=1)):
        yield Measurement(f"seed {seed}, head {head}: time of 5 % of values over that of queries or keys", ratio, 2 / 3, 0.0, "<=")


def by_sgd() -> Iterable[Measurement]:
    """SGD at rate .1."""
    return first_to_grow({"optimizer": "sgd", "lr": 0.1}, 800, 81)


def by_adam() -> Iterable[Measurement]:
    """Adam at rate 1e-3: each entry moves by the rate at first, whatever its gradient."""
    return first_to_grow({}, 120, 61)


@cache
def trained() -> tuple[np.ndarray, np.ndarray]:
    """topic_cosine (seed, labels, pair) and topic_attention (seed, labels, layer), mean over heads, after 2000 steps of Adam."""
    given: dict[str, Any] = {"model": "transformer", "settings": TEXT, "seeds": SEEDS, "dtype": "float32"}
    found = odesim.train("corpus", steps=2000, save=2, **given).final
    return found["topic_cosine"], found["topic_attention"].mean(axis=3)


def known(layers: tuple[int, ...]) -> Iterable[Measurement]:
    """Cosines of embeddings, and attention of these layers, beside words with topics in random orders."""
    cosines, attention = trained()
    yield Measurement("cosine of embeddings, one topic", cosines[:, 0, 0].mean(), 0.12, 0.03)
    yield Measurement("cosine of embeddings, two topics", cosines[:, 0, 1].mean(), -0.015, 0.005)
    yield Measurement("cosine of embeddings, one random topic", cosines[:, 1:, 0].mean(), 0.0, 0.02)
    off = (attention[:, 0] - attention[:, 1:].mean(axis=1)) / attention[:, 1:].std(axis=1)  # (seed, layer)
    for layer in layers:
        name = f"layer {layer + 1}: attention to one topic, above that to random ones, in their deviations"
        yield Measurement(name, off[:, layer].mean(), 2.0, 0.0, ">=")
    yield Measurement("layer 1: attention, one topic over two", attention[:, 0, 0].mean(), 1.16, 0.08)


def every_layer() -> Iterable[Measurement]:
    """Both layers."""
    return known((0, 1))


def first_layer() -> Iterable[Measurement]:
    """The first layer; the second is not above random orders in every seed.

    There it differs by seed and by the windows that are looked at: 1.01 and 1.03 here, where random orders spread by .04. Two other
    programs: .75 and .95, spread .09 and .03; and, in numpy alone, four seeds, .91, 1.01, 1.02 and 1.24 in 640 windows, spread .02, but
    .99, 1.19, .96 and 1.33 in 64 of them, spread .04 to .10.
    """
    yield from known((0,))
    attention = trained()[1][:, :, 1]
    off = (attention[:, 0] - attention[:, 1:].mean(axis=1)) / attention[:, 1:].std(axis=1)
    yield Measurement(
        "layer 2: attention to one topic, above that to random ones, in their deviations, least of the seeds", off.min(), 2.0, 0.0, "<="
    )


TEXT_CLAIMS = (
    Claim(
        "topics.values_first_on_text",
        Source(PAPER, "experiments on Wikipedia", "two stages, on another text; the measure is ours"),
        "the task corpus with masked tokens, two seeds: 800 steps of SGD, 120 of Adam",
        "in each head of the first layer values grow before queries and keys",
        by_sgd,
        "none: in no head of two seeds is the ratio of times above 1/2",
        when="trained by SGD",
        otherwise=by_adam,
        models=("topics.full",),
        slow=True,
        depends=("topics.two_stages",),
    ),
    Claim(
        "topics.on_text",
        Source(
            PAPER, "experiments on Wikipedia", "on another text; topics by nonnegative factors, and random orders as the null, are ours"
        ),
        "the task corpus with masked tokens, two seeds, 2000 steps of Adam",
        "embeddings and the attention of every layer know which words are of one topic",
        every_layer,
        "of cosines and attention, ranges of seeds; two deviations of 20 random orders",
        fails=True,
        corrected=Statement(
            "embeddings and the first layer do, the second not in every seed",
            first_layer,
            "of cosines and attention, ranges of seeds; two deviations of 20 random orders",
        ),
        models=("topics.full",),
        slow=True,
    ),
)
