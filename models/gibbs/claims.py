"""What is stated of masked sampling and of training for it, by the numbering of the talk; and what holds."""

from collections.abc import Iterable
from itertools import combinations
from math import comb

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.gibbs._decoding_claims import DECODING
from odesim.models.gibbs._kernels import blocks, exact, gap, log_binomial, sequences
from odesim.models.gibbs._spectra_claims import DIGITS, FINE, PAPER, SPECTRA, signs
from odesim.symbolic import Source

# What is stated of learning from masked tokens: the information of a masked sample, and what the gap of the sampler says of it.


def statistics(n: int) -> np.ndarray:
    """F (n(n+1)/2, 2^n): all signs and all products of two."""
    s = 2.0 * sequences(2**n) - 1
    return np.array([s[:, chosen].prod(axis=1) for order in (1, 2) for chosen in combinations(range(n), order)])


def information(p: np.ndarray, F: np.ndarray, k: int) -> np.ndarray:
    """I_k (A, A): E over masks of the mean conditional covariance of F; for k = n its covariance."""
    total, sets = np.zeros((len(F), len(F))), list(blocks(round(np.log2(len(p))), 2, k))
    for rows in sets:
        weight = p[rows].sum(axis=1, keepdims=True)
        within = p[rows] / weight
        apart = F[:, rows] - (F[:, rows] * within).sum(axis=2, keepdims=True)
        total += np.einsum("agr,bgr,gr->ab", apart, apart, p[rows]) / len(sets)
    return total


def relative(p: np.ndarray, F: np.ndarray, k: int) -> np.ndarray:
    """The eigenvalues of I_n^-1 I_k, from the smallest."""
    return np.sort(np.linalg.eigvals(np.linalg.solve(information(p, F, round(np.log2(len(p)))), information(p, F, k))).real)


def form() -> Iterable[Measurement]:
    """u I_k u of random directions beside the Dirichlet form of u . F, and both bounds; five signs."""
    rng = np.random.default_rng(0)
    for J, h in ((0.2, 0.0), (0.6, 0.05), (-0.3, 0.2)):
        p, F = signs(5, J, h), statistics(5)
        full = information(p, F, 5)
        for k in range(1, 6):
            I, P = information(p, F, k), exact(p, 2, k)
            f = rng.standard_normal((20, len(F))) @ F
            u = f @ np.linalg.pinv(F)
            yield deviation(f"J = {J}, k = {k}: form", np.einsum("ua,ab,ub->u", u, I, u), ((f * p) * (f - f @ P.T)).sum(axis=1), 1e-11)
            yield Measurement(f"J = {J}, k = {k}: I_k >= gap I", np.linalg.eigvalsh(I - gap(P, p) * full)[0], 0.0, 1e-12, ">=")
            yield Measurement(f"J = {J}, k = {k}: I_k <= I", np.linalg.eigvalsh(full - I)[0], 0.0, 1e-12, ">=")


GAPS = (0.063264, 0.152784, 0.288973, 0.520102, 1.0)
LEAST = (0.063377, 0.152846, 0.288973, 0.520102, 1.0)


def equality(J: float, h: float, first: int) -> Iterable[Measurement]:
    """The least eigenvalue of I^-1 I_k beside gap_k, five signs with all fields and pairs, k from first on."""
    p, F = signs(5, J, h), statistics(5)
    for k in range(first, 6):
        yield Measurement(f"k = {k}", relative(p, F, k)[0] / gap(exact(p, 2, k), p), 1.0, 1e-9)


def one_sided() -> Iterable[Measurement]:
    """Numbers of five signs: gaps and least relative information at J = .2; at J = .6, h = .05 a small gap and no loss of efficiency."""
    p, F = signs(5, 0.2), statistics(5)
    for k, (want, least) in enumerate(zip(GAPS, LEAST, strict=True), 1):
        yield Measurement(f"J = .2: gap_{k}", gap(exact(p, 2, k), p), want, 5e-7)
        yield Measurement(f"J = .2: least information, k = {k}", relative(p, F, k)[0], least, 5e-7)
        yield Measurement(f"J = .2: it is at least gap_{k}", relative(p, F, k)[0] - gap(exact(p, 2, k), p), 0.0, 1e-12, ">=")
    p = signs(5, 0.6, 0.05)
    yield Measurement("J = .6: gap_1", gap(exact(p, 2, 1), p), 0.001403, 5e-7)
    yield Measurement("J = .6: least information", relative(p, F, 1)[0], 0.001936, 5e-7)
    traces = [np.trace(np.linalg.inv(information(p, F, k))) for k in (1, 5)]
    yield Measurement("J = .6: tr I_1^-1 / tr I^-1", traces[0] / traces[1], 2.6, 0.05)
    yield Measurement("J = .6: 1 / gap_1", 1 / gap(exact(p, 2, 1), p), 713, 0.5)


def masking_more() -> Iterable[Measurement]:
    """I_k and gap_k in order of k for three couplings, traces at J = .2."""
    for J, h in ((0.2, 0.0), (0.6, 0.05), (-0.3, 0.2)):
        p, F = signs(5, J, h), statistics(5)
        I, gaps = [information(p, F, k) for k in range(1, 6)], [gap(exact(p, 2, k), p) for k in range(1, 6)]
        for k in range(4):
            yield Measurement(f"J = {J}: I_{k + 2} >= I_{k + 1}", np.linalg.eigvalsh(I[k + 1] - I[k])[0], 0.0, 1e-12, ">=")
            yield Measurement(f"J = {J}: gap_{k + 2} >= gap_{k + 1}", gaps[k + 1], gaps[k], 1e-13, ">=")
    for k, want in enumerate((67.805, 36.143, 26.435, 22.514, 21.210), 1):
        found = np.trace(np.linalg.inv(information(signs(5, 0.2), statistics(5), k)))
        yield Measurement(f"J = .2: tr I_{k}^-1", found, want, 5e-4)


def per_token() -> Iterable[Measurement]:
    """400 random laws of three to five signs: the least of gap_(k+1) / (k + 1) - gap_k / k."""
    rng, least = np.random.default_rng(0), np.inf
    for trial in range(400):
        n = 3 + trial % 3
        p = rng.dirichlet(np.full(2**n, rng.choice([0.2, 1.0, 5.0]))) + 1e-12
        p /= p.sum()
        least = min(least, np.diff([gap(exact(p, 2, k), p) / k for k in range(1, n + 1)]).min())
    yield Measurement("least increase", least, 0.0, 1e-12, ">=")


def entropy_ratio() -> Iterable[Measurement]:
    """Four signs, J = .4, k = 1: KL(q | p) over the mean conditional KL for q near p along the slowest function."""
    p = signs(4, 0.4)
    root = np.sqrt(p)
    slow = np.linalg.eigh(root[:, None] * exact(p, 2, 1) / root)[1][:, -2] / root
    rate = gap(exact(p, 2, 1), p)
    yield Measurement("1 / gap_1", 1 / rate, 26.2024, 6e-5)
    for delta, tolerance in ((1e-2, 1e-2), (1e-3, 1e-4)):
        q = p * (1 + delta * slow)
        mean = 0.0
        for rows in (sets := list(blocks(4, 2, 1))):
            of_q, of_p = (law[rows] / law[rows].sum(axis=1, keepdims=True) for law in (q, p))
            mean += float((q[rows] * np.log(of_q / of_p)).sum()) / len(sets)
        ratio = float((q * np.log1p(delta * slow)).sum()) / mean
        yield Measurement(f"ratio at delta = {delta:g}", ratio * rate, 1.0, tolerance)


ESTIMATES = (0.44576, 0.19218, 0.10470, 0.10470)


def estimates() -> Iterable[Measurement]:
    """Four signs, J = .4 estimated from 2000 samples with a mask each, 1500 times: 2000 times the variance over 1 / I_k, and 1 / I_k."""
    p, total = signs(4, 0.4), 2 * np.arange(5) - 4
    f, rng = (total**2 - 4) / 2, np.random.default_rng(0)
    for k, want in enumerate(ESTIMATES, 1):
        ones = rng.choice(np.bitwise_count(np.arange(16)), size=(1500, 2000), p=p)
        drawn = rng.hypergeometric(ones, 4 - ones, k)  # ones that are masked
        kept, m = np.arange(5 - k)[:, None], np.arange(k + 1)
        counts = np.array([((ones - drawn) == r).sum(axis=1) for r in range(5 - k)]).T
        mean, J = f[ones].mean(axis=1), np.full(1500, 0.4)
        for _ in range(20):  # Newton's steps on the concave likelihood
            weight = np.exp(log_binomial(k, m) + J[:, None, None] * f[kept + m])
            weight /= weight.sum(axis=2, keepdims=True)
            first = (weight * f[kept + m]).sum(axis=2)
            second = (weight * f[kept + m] ** 2).sum(axis=2) - first**2
            J += (mean - (counts * first).sum(axis=1) / 2000) / ((counts * second).sum(axis=1) / 2000)
        inverse = 1 / information(p, ((2.0 * sequences(16) - 1).sum(axis=1) ** 2 - 4)[None] / 2, k)[0, 0]
        yield Measurement(f"1 / I_{k}", inverse, want, 5e-6)
        yield Measurement(f"variance over 1 / I_{k}", 2000 * J.var() / inverse, 1.0, 0.15)


LEAST_OF_FOUR = (0.21139, 0.41080, 0.57470, 0.57470)


def training_rate() -> Iterable[Measurement]:
    """gibbs.training_flow, four signs with all fields and pairs, J = .2, k = 1..4: from close to the truth, in the slowest direction."""
    p, F = signs(4, 0.2), statistics(4)
    truth = np.repeat([0.0, 0.2], [4, 6])
    for k in range(1, 5):
        rates, directions = np.linalg.eigh(information(p, F, k))
        fit = {"N": comb(4, k) * 2 ** (4 - k), "R": 2**k}
        start = {"theta": truth + 1e-4 * directions[:, 0]}
        run = odesim.integrate("gibbs.training_flow", params={"k": k}, initial=start, sizes=fit, span=(0, 2 / rates[0]), save=2, **FINE)
        error = run.observables["error"]
        yield Measurement(f"k = {k}: rate over the least eigenvalue", np.log(error[0] / error[1]) / 2, 1.0, 1e-3)
        yield Measurement(f"k = {k}: least eigenvalue", rates[0], LEAST_OF_FOUR[k - 1], 6e-6)


INFORMATION = (
    Claim(
        "gibbs.dictionary",
        Source(PAPER, "Theorem 1", "talk: mixing and sample efficiency"),
        "I_k and gap_k of five signs, exactly",
        "training on masked tokens is as efficient as the sampler is fast: the least eigenvalue of I^-1 I_k is gap_k",
        lambda: equality(0.2, 0.0, 3),
        "rounding",
        when="the slowest function is in the span of the statistics: all fields and pairs, k >= n - 2",
        otherwise=lambda: equality(0.6, 0.05, 1),
        corrected=Statement("gap_k I <= I_k <= I: a fast sampler is enough, but not needed", one_sided, DIGITS),
        models=("gibbs.training_flow", "gibbs.master"),
    ),
    Claim(
        "gibbs.score",
        Source(PAPER, "Theorem 1", "talk: information and Dirichlet form"),
        "I_k of five signs in 20 random directions, three couplings",
        "u I_k u is the Dirichlet form of the score u . F, so gap_k I <= I_k <= I",
        form,
        "rounding",
        models=("gibbs.training_flow", "gibbs.master"),
    ),
    Claim(
        "gibbs.masking_more",
        Source(PAPER, "Theorem 2", "talk: masking more is better"),
        "I_k and gap_k of five signs, three couplings, all k",
        "I_k and gap_k grow with k",
        masking_more,
        "rounding; " + DIGITS,
        models=("gibbs.training_flow", "gibbs.master"),
    ),
    Claim(
        "gibbs.per_token",
        Source(PAPER, "Theorem 2", "talk: masking more is better"),
        "P_k of 400 random laws of three to five signs",
        "gap_k / k grows with k: tokens that are masked together pay for themselves",
        per_token,
        "rounding",
        models=("gibbs.master",),
    ),
    Claim(
        "gibbs.entropy_ratio",
        Source(PAPER, "Theorem 1", "talk: approximate tensorization"),
        "four signs, J = .4, k = 1, a law near the target",
        "KL(q | p) over the mean KL of masked tokens tends to 1 / gap_k for q near p",
        entropy_ratio,
        "delta; " + DIGITS,
        models=("gibbs.master",),
    ),
    Claim(
        "gibbs.estimates",
        Source(PAPER, "Theorem 1", "talk: sample efficiency"),
        "1500 estimates of J = .4 from 2000 masked samples of four signs",
        "the variance of an estimate from N masked samples is I_k^-1 / N",
        estimates,
        "four standard errors of a variance",
        models=("gibbs.training_flow",),
        depends=("gibbs.dictionary",),
    ),
    Claim(
        "gibbs.training_rate",
        Source(PAPER, "Theorem 1", "talk: training on masked tokens"),
        "gibbs.training_flow, four signs, k = 1..4",
        "gradient flow approaches the truth at the least eigenvalue of I_k",
        training_rate,
        "10 times the distance; " + DIGITS,
        depends=("gibbs.dictionary",),
    ),
)


CLAIMS = (*INFORMATION, *SPECTRA, *DECODING)
