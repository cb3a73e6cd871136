"""What the reversal-curse paper states of a one-layer transformer on three-token facts, and what holds."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sympy import Symbol, log

import odesim
from odesim.lab.claims import Claim, Mark, Measurement, Statement, deviation
from odesim.models.reversal._step_claims import NOISE, SIGHT, STEPS, embedded
from odesim.symbolic import Source

PAPER = "zhu2024reversal"
FINE: dict[str, Any] = {"backend": "numpy", "rtol": 1e-10, "atol": 1e-13}
M, N = 802.0, 340.0


def row(times: list[float], *, eta_Y: float = 0.5, size: float = M, r: float = 1.0) -> Any:
    """One row at these times, in units of t1 = N ln M / eta_Y."""
    t1 = N * np.log(size) / eta_Y
    save = np.concatenate([[0.0], t1 * np.array(times)])
    return odesim.integrate("reversal.row", params={"M": size, "N": N, "eta_Y": eta_Y, "r": r}, span=(0, save[-1]), save=save, **FINE)


LEARNED = {  # p of a target at t/t1 = 1, 2, 5, 10, and the largest constant c of the bound there and at 100 and 1e6
    100.0: ((0.3717, 0.7764, 0.9409, 0.9745), (0.7121, 0.7912, 0.8693, 0.8978, 0.9335, 0.9653)),
    802.0: ((0.3635, 0.8355, 0.9594, 0.9825), (0.7505, 0.8402, 0.9019, 0.9220, 0.9461, 0.9691)),
    1e3: ((0.3632, 0.8403, 0.9607, 0.9831), (0.7539, 0.8442, 0.9044, 0.9238, 0.9471, 0.9694)),
    1e4: ((0.3621, 0.8785, 0.9709, 0.9874), (0.7844, 0.8764, 0.9243, 0.9388, 0.9558, 0.9725)),
}
AT = [1.0, 2.0, 5.0, 10.0, 100.0, 1e6]


def largest_c(run: Any, size: float) -> np.ndarray:
    """The largest c with 1 - p <= (M - 1) / (2 x^c), x = M eta_Y t / N, at the saved times after the first."""
    x = size * 0.5 * run.t[1:] / N
    p = run.observables["p_target"][1:]
    return np.log((size - 1) / (2 * (1 - p))) / np.log(x)


def learned() -> Iterable[Measurement]:
    """p of the targets, and c_max, for four vocabularies."""
    for size, (p, c) in LEARNED.items():
        run = row(AT, size=size)
        yield deviation(f"p at t/t1 = 1, 2, 5, 10, M = {size:g}", run.observables["p_target"][1:5], p, 5.1e-5)
        yield deviation(f"largest c there and at 100 and 1e6, M = {size:g}", largest_c(run, size), c, 5.1e-5)


def every_constant(c: float) -> Iterable[Measurement]:
    """The least of p - bound from t1 to 100 t1."""
    run = row(np.geomspace(1, 100, 60).tolist())
    bound = 1 - (M - 1) / (2 * (M * 0.5 * run.t[1:] / N) ** c)
    yield Measurement(f"least p - bound, c = {c:g}", (run.observables["p_target"][1:] - bound).min(), 0.0, 1e-9, ">=")


def bound(c: float, times: list[float], size: float = M) -> np.ndarray:
    """The bound on p at these times, in units of t1, where M eta_Y t / N is the time times M ln M."""
    return 1 - (size - 1) / (2 * (size * np.log(size) * np.array(times)) ** c)


def says_something(c: float) -> Iterable[Measurement]:
    """The least of the bound from t1 to 5 t1; a bound on p below 0 says nothing."""
    yield Measurement(f"least bound on p from t1 to 5 t1, c = {c:g}", bound(c, [1.0, 2.0, 5.0]).min(), 0.0, 1e-9, ">=")


EMPTY = {100.0: 0.636, 802.0: 0.698, 1e3: 0.703, 1e4: 0.745}
"""The largest c, by M, for which the bound is not above 0 at t1."""


def least_constant() -> Iterable[Measurement]:
    """Where the bound crosses 0 at t1; p above the bound on both sides of that; bounds with c = .5 and .7."""
    from scipy.optimize import brentq

    for size, want in EMPTY.items():
        c = float(brentq(lambda c, size=size: float(bound(c, [1.0], size)[0]), 0.1, 1.0))
        yield Measurement(f"c with a bound of 0 at t1, M = {size:g}", c, want, 5.1e-4)
        yield Measurement(
            f"the same by ln((M-1)/2) / ln(M ln M), M = {size:g}", c, np.log((size - 1) / 2) / np.log(size * np.log(size)), 1e-9
        )
        largest = float(largest_c(row([1.0], size=size), size)[0])
        yield Measurement(f"largest c that holds at t1 less that, M = {size:g}", largest - c, 0.0, 0.0, ">=")
    times = [1.0, 2.0, 5.0]
    yield deviation("bound at t1, 2 t1, 5 t1, M = 802, c = .5", bound(0.5, times), (-4.47, -2.87, -1.45), 5.1e-3)
    yield deviation("bound at t1, 2 t1, 5 t1, M = 802, c = .7", bound(0.7, times), (0.0182, 0.3956, 0.6818), 5.1e-5)
    above = row(times).observables["p_target"][1:] - bound(0.7, times)
    yield Measurement("least p - bound there, c = .7", above.min(), 0.0, 1e-9, ">=")


def rate() -> Iterable[Measurement]:
    """(1 - p) eta_Y t / N * M / (M - 1)."""
    run = row([1.0, 2.0, 5.0, 10.0, 100.0])
    got = (1 - run.observables["p_target"][1:]) * 0.5 * run.t[1:] / N * M / (M - 1)
    yield deviation("(1 - p) eta_Y t/N M/(M-1) at t/t1 = 1, 2, 5, 10, 100", got, (4.262, 2.202, 1.359, 1.170, 1.019), 5.1e-4)


def reversed_pairs() -> Iterable[Measurement]:
    """Rows that no sequence has as its source, beside those of one sequence, whose odds grow as in reversal.row."""
    from scipy.optimize import brentq

    run = odesim.integrate("reversal.full", span=(0, 1e4), **FINE)
    (size, tokens), sources = run.y["Y"].shape[1:], run.attrs["params"]["x1"]
    rows = sorted(set(range(size)) - set(map(int, sources)))
    p = np.exp(run.y["Y"][-1, rows]) / np.exp(run.y["Y"][-1, rows]).sum(axis=1, keepdims=True)
    yield deviation("M p - 1 of reversed pairs", tokens * p, 1.0, 1e-14)
    alone = [k for k, row in enumerate(sources) if list(sources).count(row) == 1]
    total = 1 + tokens * run.attrs["params"]["eta_Y"] * 1e4 / len(sources)
    v = brentq(lambda v: np.exp(v) + (tokens - 1) * v - total, 0, np.log(total), xtol=1e-14)
    odds = np.exp(run.y["Y"][-1][sources[alone].astype(int)])
    found = odds[np.arange(len(alone)), run.attrs["params"]["x3"][alone].astype(int)] / odds.sum(axis=1)
    yield deviation("p of pairs whose source has no other target", found, 1 / (1 + (tokens - 1) * np.exp(-v)), 1e-9)


def composed(times: tuple[float, ...]) -> Iterable[Measurement]:
    """p(B | A) p(C | B) and p(C | A ~>) of 14 chains among 42 tokens by all rows of the decoder, beside one row alone."""
    n = 14
    facts = {"x1": np.arange(2 * n), "x3": np.arange(n, 3 * n)}  # A_i -> B_i, B_i -> C_i
    save = np.concatenate([[0.0], 2 * n * np.log(3 * n) / 0.5 * np.array(times)])
    sizes, span = {"R": 3 * n, "M": 3 * n, "N": 2 * n}, (0, save[-1])
    full = odesim.integrate("reversal.full", params={**facts, "eta_Y": 0.5}, sizes=sizes, span=span, save=save, **FINE)
    alone = odesim.integrate("reversal.row", params={"M": 3.0 * n, "N": 2.0 * n, "eta_Y": 0.5}, span=span, save=save, **FINE)
    p = np.exp(full.y["Y"]) / np.exp(full.y["Y"]).sum(axis=-1, keepdims=True)
    A = np.arange(n)
    yield deviation(
        "p(B | A) p(C | B) of chains", p[:, A, n + A] * p[:, n + A, 2 * n + A], alone.observables["p_target"][:, None] ** 2, 1e-8
    )
    yield deviation("p(C | A ~>) of chains", p[:, A, 2 * n + A], alone.observables["p_other"][:, None], 1e-8)


def chains(times: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 40.0)) -> Iterable[Measurement]:
    """A -> B and B -> C are trained, A ~> C is asked, M = 802, N = 540."""
    t1 = 540 * np.log(M) / 0.5
    save = np.concatenate([[0.0], t1 * np.array(times)])
    run = odesim.integrate("reversal.row", params={"M": M, "N": 540.0, "eta_Y": 0.5}, span=(0, save[-1]), save=save, **FINE)
    p, other = run.observables["p_target"][1:], run.observables["p_other"][1:]
    yield deviation("p(B | A) = p(C | B)", p, (0.3635, 0.8355, 0.9594, 0.9825, 0.9961), 5.1e-5)
    yield deviation("M p(C | A ~>)", M * other, (0.637, 0.165, 0.0407, 0.0175, 0.0039), 5.1e-4)
    yield from composed(times)
    yield Measurement("largest M p(C | A ~>)", (M * other).max(), 1.0, 1e-12, "<=")


def two_targets() -> Iterable[Measurement]:
    """v and p of a row with two targets at eta_Y t / N = 1, 5, 10, 20, 100."""
    taus = np.array([0.0, 1, 5, 10, 20, 100])
    run = odesim.integrate("reversal.row", params={"M": M, "N": 1.0, "eta_Y": 1.0, "r": 2.0}, span=(0, 100), save=taus, **FINE)
    yield deviation("v", run.y["v"][1:], (0.998216, 4.731372, 7.074340, 8.443265, 10.488647), 1e-6)
    yield deviation("p", run.observables["p_target"][1:], (0.0033689, 0.1104790, 0.3735189, 0.4603465, 0.4944912), 1e-7)


NLL = {
    0.1: (6.58725, 6.48741, 6.18810, 5.69014, 4.70042, 1.98531, 0.34382, 0.02488, 0.01118, 0.00347),
    0.5: (6.18810, 5.69014, 4.21147, 1.98531, 0.34382, 0.06213, 0.02488, 0.00419, 0.00205, 0.00067),
    0.9: (5.78962, 4.89738, 2.37844, 0.44974, 0.10397, 0.02831, 0.01257, 0.00228, 0.00113, 0.00037),
}
EPOCHS = np.array([0.0, 1, 2, 5, 10, 20, 50, 100, 500, 1000, 3000])


def losses() -> Iterable[Measurement]:
    """-ln p of a training sequence against epochs."""
    for eta, want in NLL.items():
        run = odesim.integrate("reversal.row", params={"eta_Y": eta}, span=(0, 3000 * N), save=EPOCHS * N, **FINE)
        yield deviation(f"loss at 1 ... 3000 epochs, eta_Y = {eta:g}", run.observables["loss"][1:], want, 5.1e-6)


def held_out() -> Iterable[Measurement]:
    """The least eps with held(t) / held(0) >= (L(t) / L(0))^eps until the training loss L has fallen by a factor of 100 or more."""
    needed = {}
    for d in (20, 400):
        found = []
        for seed in range(4):
            run = embedded(d, seed, save="log:100")
            loss, held = (np.log(run.observables[name] / run.observables[name][0]) for name in ("loss", "loss_held"))
            moved = loss < -0.01
            found.append(float(np.abs(held[moved] / loss[moved]).max()))
            yield Measurement(f"L / L(0) at the end, d = {d}, draw {seed}", np.exp(loss[-1]), 0.01, 0.0, "<=")
        needed[d] = float(np.mean(found))
    yield Measurement("mean of the largest |eps|, d = 20 / d = 400, at least sqrt(20)", needed[20] / needed[400], np.sqrt(20), 0.0, ">=")


CLAIMS = (
    *STEPS,
    *NOISE,
    *SIGHT,
    Claim(
        "reversal.learned",
        Source(PAPER, "Theorem 3, training pairs", "the numbers by an independent script"),
        "reversal.row, M = 100, 802, 1000, 10000, from t1 to 1e6 t1",
        "p >= 1 - (M - 1) / (2 (M eta_Y t / N)^c) for some constant c > 0, from t1 = N ln M / eta_Y on",
        learned,
        "half a unit of the last printed digit",
        marks=(Mark("t", Symbol("N") * log(Symbol("M")) / Symbol("eta_Y")),),
    ),
    Claim(
        "reversal.constant",
        Source(PAPER, "Theorem 3", "the range of its constant"),
        "reversal.row, M = 802, from t1 to 100 t1",
        "the bound holds with a constant c",
        lambda: every_constant(0.7),
        "rounding of p",
        when="c <= 0.7505, its largest value at t1; for c below 0.698 the bound is empty there",
        otherwise=lambda: every_constant(0.8),
        depends=("reversal.learned",),
    ),
    Claim(
        "reversal.empty_bound",
        Source(PAPER, "Theorem 3", "constants for which it says nothing; the numbers by an independent script"),
        "the bound from t1 to 5 t1, M = 802, c = .5; reversal.row, M = 100, 802, 1000, 10000, at t1",
        "with a constant c > 0 p is bounded from below from t1 on",
        lambda: says_something(0.7),
        "rounding; a bound below 0 is none",
        when="c > ln((M - 1)/2) / ln(M ln M), .698 for M = 802",
        otherwise=lambda: says_something(0.5),
        corrected=Statement(
            "c lies between ln((M - 1)/2) / ln(M ln M), .636, .698, .703, .745 for these M, and the largest one that holds at t1",
            least_constant,
            "half a unit of the last recorded digit; 1e-9 of a root",
        ),
        depends=("reversal.learned",),
    ),
    Claim(
        "reversal.rate",
        Source(PAPER, "Theorem 3", "the decay of 1 - p"),
        "reversal.row, M = 802, to 100 t1",
        "1 - p decays as a power of t: it tends to N / (eta_Y t)",
        rate,
        "three printed digits",
        depends=("reversal.attention",),
    ),
    Claim(
        "reversal.test_pairs",
        Source(PAPER, "Theorem 3, test pairs"),
        "reversal.full at its defaults, to t = 10000",
        "the reversed pair has p <= 1/M: with equality, for all time, while the pair itself is learned",
        reversed_pairs,
        "rounding of the softmax of zeros; 10 times the tolerance of the run",
    ),
    Claim(
        "reversal.chain_of_thought",
        Source(PAPER, "Theorem 4", "the numbers by an independent script"),
        "reversal.row, M = 802, N = 540, eta_Y = .5",
        "A -> B and B -> C are learned, A ~> C stays below 1/M: only two steps in a row give C",
        chains,
        "printed digits of the table",
        depends=("reversal.test_pairs",),
    ),
    Claim(
        "reversal.two_targets",
        Source(PAPER, "Theorem 4", "training triples; the numbers by an independent script"),
        "reversal.row, r = 2, M = 802",
        "a row that is trained on two targets gives each p -> 1/2, since the relation is not seen",
        two_targets,
        "printed digits of the table",
        marks=(Mark("p_target", 1 / Symbol("r")),),
    ),
    Claim(
        "reversal.loss",
        Source(PAPER, "Section 4", "the losses by an independent script"),
        "reversal.row, M = 802, N = 340, eta_Y = .1, .5, .9",
        "the loss against epochs",
        losses,
        "half a unit of the last printed digit",
    ),
    Claim(
        "reversal.embeddings",
        Source(PAPER, "Section 3", "in the limit of large d"),
        "reversal.bilinear, four draws of the embeddings at d = 20 and 400, one of ten directions held out",
        "held(t) / held(0) >= (L(t) / L(0))^eps, with an eps that tends to 0 as d grows, here at least as 1/sqrt(d)",
        held_out,
        "none; L has to fall by 100 for ln L to be well above its constant",
        slow=True,
    ),
)
