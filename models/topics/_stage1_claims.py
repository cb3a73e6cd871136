"""What is stated of the first stage of topics, values under uniform attention: rates, the optima it may end at, and where it does."""

from collections.abc import Iterable
from itertools import permutations
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.topics._population import Population
from odesim.symbolic import Source

PAPER = "li2023topic"
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
