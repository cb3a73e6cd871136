"""What one cannot have: a calibrated model that makes no facts up, a component that says what its network does, a table in few bits.

Each of F slots, as the birthday of a person, has one true value among M. Training data are n facts, drawn with equal chances. A model is a
distribution g over all F M statements; what is false is hallucinated, of mass g(H). It is calibrated where each set B of statements
of one mass has p(B) = g(B), in the law p of facts: Mis = 1/2 sum over level sets of |p(B) - g(B)|. The model here gives the share 1 - l of
the mass MM of slots that never came to all their values alike, and the rest to the facts that came: g(H) = (1 - l) MM (1 - 1/M), Mis =
l MM. So g(H) + Mis is at least MM (1 - 1/M), with equality at l = 0, and MF, the share of facts that came once, is what one sees of MM.

Mis is of level sets: summed over single statements it would count a set of one mass whose statements are true on average.

Scores are x W_Q W_K^T x': with W_Q -> W_Q A and W_K -> W_K A^-T, A any invertible matrix, they are what they were, while norm and spectrum
of each matrix become what one likes. And of N random weights of one input some subset sums to any number in [-1/2, 1/2] to eps
once N is about ln(1/eps): a random network, its weights deleted or left as they are, becomes each function.

g(f(x)) of two tables of n entries: one layer of H heads, width d and p bits a number carries H (d + 1) p bits of the table of g to the
last token, before this knows which entry it needs. With b bits each of 2^b messages is read as one table; the error is the mean over all
tables of the share of entries that differ from the nearest of these, and the least error is that of the best 2^b tables.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations, islice, pairwise, product
from math import comb

import numpy as np
from scipy.stats import binom

from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import Source

SLOTS, VALUES, FACTS = 4, 3, 5


def by_missing_mass(l: float) -> Callable[[np.ndarray], np.ndarray]:
    """The model (F, M) from counts (F,) of facts, the true values first."""

    def model(counts: np.ndarray) -> np.ndarray:
        never = counts == 0
        to_never = (1 - l) * never.mean()
        g = np.zeros((len(counts), VALUES))
        g[~never, 0] = (1 - to_never) / (~never).sum()
        g[never] = to_never / max(never.sum() * VALUES, 1)
        return g

    return model


def by_counts(counts: np.ndarray) -> np.ndarray:
    """The model whose mass for slots that never came is the share of facts that came once, its other mass as their counts."""
    never = counts == 0
    to_never = float((counts == 1).sum() / counts.sum()) if never.any() else 0.0
    g = np.zeros((len(counts), VALUES))
    g[:, 0] = counts / counts.sum() * (1 - to_never)
    g[never] = to_never / max(never.sum() * VALUES, 1)
    return g


def miscalibration(p: np.ndarray, g: np.ndarray) -> float:
    """Half the sum over level sets of g of |p(B) - g(B)|."""
    _, level = np.unique(g.ravel().round(12), return_inverse=True)
    return float(np.abs(np.bincount(level.ravel(), (p - g).ravel())).sum() / 2)


def enumerated(model: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    """For each of the F^n draws: made up g(H), Mis, missing mass MM, share of facts that came once MF."""
    p = np.zeros((SLOTS, VALUES))
    p[:, 0] = 1 / SLOTS  # by symmetry the true values are the first
    rows = []
    for drawn in product(range(SLOTS), repeat=FACTS):
        counts = np.bincount(drawn, minlength=SLOTS)
        g = model(counts)
        rows.append((g[:, 1:].sum(), miscalibration(p, g), (counts == 0).mean(), (counts == 1).sum() / FACTS))
    return dict(zip(("made up", "Mis", "MM", "MF"), np.array(rows).T, strict=True))


RECORDED = {"0": (0.158203, 0.0), "1/2": (0.079102, 0.118652), "counts": (0.117188, 0.229688)}
"""Mean g(H) and Mis, by an independent script."""


def inequality() -> Iterable[Measurement]:
    """All 1024 draws of five facts of four: three models; and a thousand facts by formula."""
    models = {"0": by_missing_mass(0.0), "1/2": by_missing_mass(0.5), "1": by_missing_mass(1.0), "counts": by_counts}
    for name, model in models.items():
        found = enumerated(model)
        lacks = found["MM"] * (1 - 1 / VALUES) - found["made up"] - found["Mis"]
        # nobody knows the values of slots that never came: in the mean over worlds any model makes up so much of its mass for them
        yield Measurement(f"l = {name}: largest of MM (1 - 1/M) - g(H) - Mis", lacks.max(), 0.0, 1e-12, "<=")
        if name in RECORDED:
            for key, want in zip(("made up", "Mis"), RECORDED[name], strict=True):
                yield Measurement(f"l = {name}: mean {key}", found[key].mean(), want, 6e-7)
    yield Measurement(
        "l = 0: largest deviation from equality", np.abs(enumerated(models["0"])["made up"] - found["MM"] * 2 / 3).max(), 0, 1e-12
    )
    yield Measurement("mean MM, of (1 - 1/F)^n", found["MM"].mean(), (1 - 1 / SLOTS) ** FACTS, 1e-12)
    yield Measurement("mean MF, of (1 - 1/F)^(n-1)", found["MF"].mean(), (1 - 1 / SLOTS) ** (FACTS - 1), 1e-12)
    F, n, M, d = 1000, 1000, 10_000, 0.01
    for l, made_up, bound in ((0.0, 0.367659, 0.142148), (0.5, 0.183829, -0.041699), (1.0, 0.0, -0.225547)):
        MM, MF = (1 - 1 / F) ** n, (1 - 1 / F) ** (n - 1)
        found_here = (1 - l) * MM * (1 - 1 / M)
        rest = 3 / (d * (M - 1)) + (6 * np.log(6 / d) / n) ** 0.5
        yield Measurement(f"F = n = 1000, l = {l:g}: g(H)", found_here, made_up, 6e-7)
        yield Measurement(f"F = n = 1000, l = {l:g}: the bound", MF - l * MM - rest, bound, 6e-7)
        yield Measurement(f"F = n = 1000, l = {l:g}: g(H) is above it", found_here, bound, 0.0, ">=")


def constants() -> Iterable[Measurement]:
    """The numbers of a slide for d = .01, 300 and 7 / sqrt(n), and the share of facts seen once that n = 1000 asks for."""
    d, n, M = 0.01, 1000, 10_000
    root = (6 * np.log(6 / d)) ** 0.5
    yield Measurement("d = .01: 3 / d", 3 / d, 300.0, 1e-12)
    yield Measurement("d = .01: sqrt(6 ln(6 / d)), of the slide's 7", root, 6.195, 6e-4)
    yield Measurement("d = .01: it is below 7", root, 7.0, 0.0, "<=")
    yield Measurement("n = 1000: MF above which the slide's 7 / sqrt(n) says something", 7 / n**0.5, 0.22, 5e-3)
    yield Measurement("n = 1000: MF above which the bound is above 0", root / n**0.5 + 3 / (d * (M - 1)), 0.226, 6e-4)
    yield Measurement("F = n = 1000: MF is above that", (1 - 1 / n) ** (n - 1), 0.226, 0.0, ">=")


def says_something(n: int) -> Iterable[Measurement]:
    """Whether the bound is above 0 for a calibrated model, F = n facts."""
    MF = (1 - 1 / n) ** (n - 1)
    yield Measurement(f"n = {n}: the bound", MF - 3 / (0.01 * 9999) - (6 * np.log(600) / n) ** 0.5, 0.0, 0.0, ">=")


FACT_CLAIM = Claim(
    "static.hallucination",
    Source("kalai2024calibrated", "Corollary 1", "level sets of the model; facts alike"),
    "all 1024 draws of five facts of four; a thousand facts by formula",
    "g(H) >= MF - Mis - 3 |Facts| / (d |H|) - sqrt(6 ln(6/d) / n): a calibrated model makes facts up",
    lambda: (*inequality(), *constants(), *says_something(1000)),
    "exact counts; half a unit of the last recorded digit",
    when="there are hundreds of facts; of a hundred the bound is below 0 and says nothing",
    otherwise=lambda: says_something(100),
)


def head(x: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray, W_V: np.ndarray) -> np.ndarray:
    """The outputs (T, m) of causal attention on tokens x (T, m)."""
    scores = (x @ W_Q) @ (x @ W_K).T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True)) * np.tri(len(x))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True) @ x @ W_V)


def turned() -> Iterable[Measurement]:
    """A head of width 8 on 12 tokens: W_Q times 100, with one small singular value, or the unit matrix."""
    rng = np.random.default_rng(0)
    x, W_Q, W_K, W_V = (rng.standard_normal(shape) for shape in ((12, 8), (8, 8), (8, 8), (8, 8)))
    W_Q, W_K = W_Q / 8, W_K / 8
    before = head(x, W_Q, W_K, W_V)
    for name, A in {
        "norm times 100": 100 * np.eye(8),
        "one singular value": np.linalg.inv(W_Q) @ np.diag([1e-3, *np.ones(7)]),
        "the unit matrix": np.linalg.inv(W_Q),
    }.items():
        Q, K = W_Q @ A, W_K @ np.linalg.inv(A).T
        change = np.abs(np.linalg.svd(Q)[1] - np.linalg.svd(W_Q)[1]).max() / np.linalg.svd(W_Q)[1].max()
        yield Measurement(f"{name}: change of a singular value of W_Q, of its largest", change, 0.2, 0.0, ">=")
        # rounding, times the condition of A, at most 1e4
        yield Measurement(f"{name}: largest change of outputs", np.abs(head(x, Q, K, W_V) - before).max(), 0.0, 1e-10)


def reached(rng: np.random.Generator, N: int, eps: float, draws: int) -> float:
    """The share of draws of N uniform numbers whose subset sums come within eps of each of 101 targets in [-1/2, 1/2]."""
    targets, subsets, good = np.linspace(-0.5, 0.5, 101), np.array(list(product((0, 1), repeat=N))).T, 0
    for _ in range(draws):
        sums = np.sort(rng.uniform(-1, 1, N) @ subsets)
        after = np.clip(np.searchsorted(sums, targets), 1, len(sums) - 1)
        good += bool((np.minimum(np.abs(sums[after] - targets), np.abs(sums[after - 1] - targets)) <= eps).all())
    return good / draws


SHARES = {0.1: {5: 0.350, 7: 0.799, 9: 0.949}, 0.03: {7: 0.210, 9: 0.769, 11: 0.942}, 0.01: {9: 0.216, 11: 0.803, 13: 0.955}}
"""{eps: {N: share of 20,000 draws}}, by an independent script."""
DRAWS = 4000


def pruned() -> Iterable[Measurement]:
    """Shares for three accuracies, beside those of 20,000 draws of another script; two weights more for each third of the accuracy."""
    rng = np.random.default_rng(1)
    for eps, shares in SHARES.items():
        for N, want in shares.items():
            # four deviations of the difference of two shares, and the third digit
            off = 4 * (want * (1 - want) * (1 / DRAWS + 1 / 20_000)) ** 0.5 + 5e-4
            yield Measurement(f"eps = {eps:g}, N = {N}: share that reaches all targets", reached(rng, N, eps, DRAWS), want, off)
    for eps, N in ((0.1, 9), (0.03, 11), (0.01, 13)):
        yield Measurement(f"eps = {eps:g}, N = {N}: nearly all networks become all functions", reached(rng, N, eps, DRAWS), 0.85, 0.0, ">=")


COMPONENTS = Claim(
    "static.one_component",
    Source("wen2023uninterpretable", "one component alone", "one matrix; the weights that pruning leaves"),
    "a head of attention before and after; 4000 draws of up to 13 weights",
    "equal functions have matrices of any norm and spectrum, and one random network is pruned to any function",
    lambda: chain(turned(), pruned()),
    "rounding; four deviations of shares of 4000 and 20,000 draws",
)


EXACT = {(2, 0): 1 / 2, (2, 1): 1 / 4, (3, 0): 2 / 3, (3, 3): 19 / 81, (3, 4): 11 / 81}
"""The least error: no bit leaves a guess; five tables of three entries cover all within one entry, so that 27 - 2^b have one wrong of 3."""


def tables(n: int) -> np.ndarray:
    """All tables (n^n, n) of n entries."""
    return np.array(list(product(range(n), repeat=n)))


def least_error(n: int, bits: int) -> float:
    """The least share of wrong entries when a table of n entries is told in so many bits, by trying all sets of 2^bits tables.

    What a table is compared with is a matter of names: the first one of a set may be 0.
    """
    every = tables(n)
    apart = (every[:, None] != every).sum(axis=2).astype(np.uint8)
    least = np.inf
    for others in chunks(combinations(range(1, len(every)), 2**bits - 1), 20_000):
        nearest = np.minimum(apart[:, :1], apart[:, others].min(axis=2, initial=n))
        least = min(least, float(nearest.sum(axis=0).min()))
    return least / (n * len(every))


def chunks(sets: Iterator[tuple[int, ...]], size: int) -> Iterator[np.ndarray]:
    """So many sets (size, k) at a time."""
    while part := list(islice(sets, size)):
        yield np.array(part, int).reshape(len(part), -1)


def bound(n: int, bits: float) -> float:
    """The stated least error of a table of n entries told in so many bits."""
    return max(0.0, 1 - bits / (n * float(np.log2(n)))) / 3


def told_in_few_bits() -> Iterable[Measurement]:
    """Tables of two entries and of three: the least error, by trying all sets, beside the bound and known coverings."""
    for n, most in ((2, 1), (3, 3)):
        for bits in range(most + 1):
            least = least_error(n, bits)
            yield Measurement(f"n = {n}, b = {bits}: least error", least, bound(n, bits), 0.0, ">=")
            if (n, bits) in EXACT:
                yield Measurement(f"n = {n}, b = {bits}: least error, by a covering", least, EXACT[n, bits], 1e-12)
    # four bits: tables that are none of the 16 have a wrong entry
    yield Measurement("n = 3, b = 4: least error", EXACT[3, 4], bound(3, 4), 0.0, ">=")
    yield Measurement("n = 2, b = 2: least error", least_error(2, 2), 0.0, 1e-12)


def of_a_layer() -> Iterable[Measurement]:
    """One head of width 8 and 16 bits, 144 in all: the least n of which the bound is above 0; 29 log 29 = 140.9, 30 log 30 = 147.2."""
    first = next(n for n in range(2, 1000) if bound(n, 1 * (8 + 1) * 16) > 0)
    yield Measurement("H = 1, d = 8, p = 16: least n that it cannot compose", first, 30)


COMPOSITION = Claim(
    "static.composition",
    Source("peng2024limitations", "Theorem 1", "wording recalled; the least errors by enumeration"),
    "all tables of two entries and of three, all sets of up to eight messages",
    "one layer with H (d + 1) p < n log n errs on g(f(x)), with a chance of at least 1/3 - H (d + 1) p / (3 n log n)",
    lambda: (*told_in_few_bits(), *of_a_layer()),
    "exact counts; rounding",
)


# How many samples attention needs to find one place among T, and how a network learns labels that mean nothing.
#
# Samples: T independent signs, the label is one of them, flipped with chance h. Attention that is still even has the gradient of each
# place's correlation with the label, and finds the place of the largest; ties at random. A place agrees with the label in Bin(m, 1/2) of m
# samples, the right one in Bin(m, 1 - h), so that P(right) = sum_k b_k ((c_k + e_k)^T - c_k^T) / (T e_k), where b, e are the
# probabilities of k and c of less than k among the others. The largest of T is right where exp(m KL(1 - h || 1/2)) is about T.
#
# Memory: labels y at points x on a line a.x are fitted by one relu between each point and the next: a triangular system.

PLACES = (16, 64, 256, 1024, 4096, 16384)
NEEDED = {0.0: (4, 6, 8, 10, 12, 14), 0.1: (5, 8, 12, 15, 19, 22), 0.25: (12, 21, 31, 41, 51, 61)}
"""Samples for a chance of a half at PLACES, by an independent script."""


def chance(T: int, m: int, h: float) -> float:
    """The chance that m samples find the place among T."""
    k = np.arange(m + 1)
    b, e, c = binom.pmf(k, m, 1 - h), binom.pmf(k, m, 0.5), binom.cdf(k - 1, m, 0.5)
    return float((b * ((c + e) ** T - c**T) / (T * e)).sum())


def samples(T: int, h: float) -> int:
    """The least number of samples with a chance of a half."""
    return next(m for m in range(1, 1000) if chance(T, m, h) >= 0.5)


def by_drawing(rng: np.random.Generator, T: int, m: int, h: float, repeats: int) -> np.ndarray:
    """The share (repeats,) of the right place among those of the largest correlation with the label."""
    x = rng.choice((-1.0, 1.0), size=(repeats, m, T))
    y = x[:, :, 0] * np.where(rng.random((repeats, m)) < h, -1, 1)
    correlation = np.einsum("nmt,nm->nt", x, y)
    best = correlation == correlation.max(axis=1, keepdims=True)
    return np.asarray(best[:, 0] / best.sum(axis=1))


def logarithmic() -> Iterable[Measurement]:
    """Three levels of noise, T = 16 to 16384: samples, their slope in ln T, and one chance by drawing."""
    for h, wanted in NEEDED.items():
        found = [samples(T, h) for T in PLACES]
        for T, m, want in zip(PLACES, found, wanted, strict=True):
            yield Measurement(f"h = {h:g}, T = {T}: samples", m, want)
        information = np.log(2) + sum(p * np.log(p) for p in (h, 1 - h) if p > 0)
        slope = (found[-1] - found[-3]) / np.log(PLACES[-1] / PLACES[-3])
        # whole numbers, one sample more or less at either end; and the chance of a large deviation has a factor of order m^(-1/2)
        off = float(information / np.log(16) + 0.5 / np.log(PLACES[-2]))
        yield Measurement(f"h = {h:g}: slope in ln T times KL(1 - h || 1/2)", slope * information, 1.0, off)
    right = by_drawing(np.random.default_rng(0), 64, 11, 0.1, 4000)
    yield Measurement("T = 64, m = 11, h = .1: chance by drawing", right.mean(), chance(64, 11, 0.1), 4 * right.std() / 4000**0.5)


def rivals(rng: np.random.Generator, T: int, s: int, m: int, repeats: int) -> np.ndarray:
    """How many other sets of s of T signs have a parity that agrees with the right one on m samples (repeats,)."""
    sets = list(combinations(range(T), s))
    found = []
    for _ in range(repeats):
        x = rng.choice((-1, 1), size=(m, T))
        parities = np.array([x[:, places].prod(axis=1) for places in sets])
        found.append((parities == parities[0]).all(axis=1).sum() - 1)
    return np.array(found, float)


def of_parities() -> Iterable[Measurement]:
    """Ten signs, parities of two and of three: rivals of m samples by drawing; samples for one rival among 64 signs."""
    rng, repeats = np.random.default_rng(0), 2000
    for s, m in ((2, 3), (2, 6), (3, 4), (3, 7)):
        found = rivals(rng, 10, s, m, repeats)
        # parities of different sets are independent signs: each agrees with the right one by 2^-m
        want = (comb(10, s) - 1) / 2**m
        yield Measurement(f"s = {s}, m = {m}: mean number of rivals", found.mean(), want, 4 * float(found.std()) / repeats**0.5)
    yield Measurement("T = 64, s = 3: samples for one rival", np.log2(comb(64, 3) - 1), 15.346, 6e-4)
    slope = np.log2((comb(16384, 3) - 1) / (comb(4096, 3) - 1)) / np.log(4)
    yield Measurement("s = 3: samples for each ln T, of s / ln 2", slope * np.log(2) / 3, 1.0, 1e-3)


def triangular(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(relu features (n, n) of n random points in d dimensions, their output weights (n,) by substitution, random labels (n,)).

    The network has the d weights a, n thresholds and n output weights: 2n + d numbers.
    """
    rng = np.random.default_rng(seed)
    z = np.sort(rng.standard_normal((n, d)) @ rng.standard_normal(d))
    below = np.append(z[0] - 1, [(low + high) / 2 for low, high in pairwise(z)])  # thresholds: one below each point
    features, labels, weights = np.maximum(z[:, None] - below, 0), rng.standard_normal(n), np.zeros(n)
    for i in range(n):
        weights[i] = (labels[i] - features[i, :i] @ weights[:i]) / features[i, i]
    return features, weights, labels


KINDS, SEEDS = ("true", "half random", "random", "inputs permuted"), 12


def training(kind: str, seed: int, *, n: int = 256, d: int = 32, classes: int = 10, width: int = 128, most: int = 300) -> tuple[int, float]:
    """(Adam's first step with all n labels right, accuracy on 2000 new points then) of a network of one layer of relu.

    Labels are the largest of `classes` random linear functions; all or half of those of the training are drawn instead, or the coordinates
    of its inputs are permuted. Full batches, learning rate 3e-3. True labels are worth .56 on new points; from smaller starts more, as .59
    with output weights of a tenth, and .55 from larger ones.
    """
    rng = np.random.default_rng(seed)
    teacher, x, new = rng.standard_normal((d, classes)), rng.standard_normal((n, d)), rng.standard_normal((2000, d))
    y, right = (x @ teacher).argmax(axis=1), (new @ teacher).argmax(axis=1)
    if kind in ("random", "half random"):
        y = np.where(rng.random(n) < (1 if kind == "random" else 0.5), rng.integers(classes, size=n), y)
    if kind == "inputs permuted":
        x = x[:, rng.permutation(d)]
    p = [rng.standard_normal((d, width)) * (2 / d) ** 0.5, np.zeros(width), rng.standard_normal((width, classes)) / width**0.5]
    p.append(np.zeros(classes))
    first, second, target = [0 * a for a in p], [0 * a for a in p], np.eye(classes)[y]

    def outputs(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hidden = np.maximum(x @ p[0] + p[1], 0)
        return hidden, hidden @ p[2] + p[3]

    for step in range(most):
        hidden, out = outputs(x)
        if (out.argmax(axis=1) == y).all():
            return step, float((outputs(new)[1].argmax(axis=1) == right).mean())
        odds = np.exp(out - out.max(axis=1, keepdims=True))
        off = (odds / odds.sum(axis=1, keepdims=True) - target) / n
        back = (off @ p[2].T) * (hidden > 0)
        for i, g in enumerate((x.T @ back, back.sum(axis=0), hidden.T @ off, off.sum(axis=0))):
            first[i], second[i] = 0.9 * first[i] + 0.1 * g, 0.999 * second[i] + 0.001 * g**2
            p[i] = p[i] - 3e-3 * first[i] / (1 - 0.9 ** (step + 1)) / (np.sqrt(second[i] / (1 - 0.999 ** (step + 1))) + 1e-8)
    return most, float("nan")


def memorised() -> Iterator[Measurement]:
    """The construction at n = 40, d = 5; 5514 weights and 256 points, twelve seeds: all labels are fitted, and what that is worth.

    Random labels and permuted inputs are worth a guess among ten, and each step towards true labels more than four standard errors.
    """
    for seed in range(3):
        features, weights, labels = triangular(40, 5, seed)
        # substitution loses digits with the condition of the triangle, some 1e4
        yield Measurement(f"seed {seed}: largest error of 2n + d weights", np.abs(features @ weights - labels).max(), 0.0, 1e-9)
    runs = {kind: np.array([training(kind, seed) for seed in range(SEEDS)]).T for kind in KINDS}
    mean = {kind: run.mean(axis=1) for kind, run in runs.items()}
    error = {kind: run.std(axis=1, ddof=1) / SEEDS**0.5 for kind, run in runs.items()}
    for kind, (steps, _) in runs.items():
        yield Measurement(f"{kind}: last of the seeds with all labels right, step", steps.max(), 100.0, 0.0, "<=")
    ratio = mean["random"][0] / mean["true"][0]
    spread = 4 * ratio * float(np.hypot(*(error[kind][0] / mean[kind][0] for kind in ("random", "true"))))
    # 74 to 76 steps over 50 to 56 of three seeds of another program
    yield Measurement("steps for random labels, of those for true ones", ratio, 1.415, spread)
    for kind in ("random", "inputs permuted"):
        yield Measurement(f"{kind}: accuracy on new points, of a guess", mean[kind][1], 0.1, 4 * float(error[kind][1]))
    for more, less in pairwise(("true", "half random", "random")):
        off = 4 * float(np.hypot(error[more][1], error[less][1]))
        yield Measurement(f"accuracy on new points, {more} over {less}", mean[more][1] - mean[less][1], off, 0.0, ">=")


LEARNING = (
    Claim(
        "static.sample_size",
        Source("edelman2022inductive", "sparse functions of few places", "one place, the gradient of even attention"),
        "exact chances, T = 16 to 16384 places, three levels of noise",
        "attention finds one place among T from samples of order ln T",
        logarithmic,
        "whole numbers; four standard errors",
    ),
    Claim(
        "static.parity_samples",
        Source("edelman2022inductive", "sparse functions of few places", "parities of s places"),
        "drawn samples of ten signs, parities of two and of three",
        "a parity of s places among T is fixed by order s ln T samples: with m of them (C(T, s) - 1) / 2^m others agree",
        of_parities,
        "four standard errors; half a digit; 1/T",
    ),
    Claim(
        "static.random_labels",
        Source("zhang2017understanding", "Theorem 1 and Section 2", "random labels, a small network"),
        "a construction with 2n + d weights; Adam on 256 points, twelve seeds",
        "2n + d weights fit any labels of n points, and training fits random labels to the last one",
        memorised,
        "rounding; four standard errors of means of twelve seeds",
    ),
)
