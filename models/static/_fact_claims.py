"""A calibrated model makes facts up: the inequality of Kalai and Vempala, term by term, in a world of F facts alike.

Each of F slots, as the birthday of a person, has one true value among M. Training data are n facts, drawn with equal chances. A model is a
distribution g over all F M statements; what is false is hallucinated, of mass g(H). It is calibrated where each set B of statements
of one mass has p(B) = g(B), in the law p of facts: Mis = 1/2 sum over level sets of |p(B) - g(B)|. The model here gives the share 1 - l of
the mass MM of slots that never came to all their values alike, and the rest to the facts that came: g(H) = (1 - l) MM (1 - 1/M), Mis =
l MM. So g(H) + Mis is at least MM (1 - 1/M), with equality at l = 0, and MF, the share of facts that came once, is what one sees of MM.

Mis is of level sets: summed over single statements it would count a set of one mass whose statements are true on average.
"""

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np

from odesim.lab.claims import Claim, Measurement, Statement
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
        yield Measurement(f"l = {name}: largest of MM (1 - 1/M) - g(H) - Mis", float(lacks.max()), 0.0, 1e-12, "<=")
        if name in RECORDED:
            for key, want in zip(("made up", "Mis"), RECORDED[name], strict=True):
                yield Measurement(f"l = {name}: mean {key}", float(found[key].mean()), want, 6e-7)
    yield Measurement(
        "l = 0: largest deviation from equality", float(np.abs(enumerated(models["0"])["made up"] - found["MM"] * 2 / 3).max()), 0, 1e-12
    )
    yield Measurement("mean MM, of (1 - 1/F)^n", float(found["MM"].mean()), (1 - 1 / SLOTS) ** FACTS, 1e-12)
    yield Measurement("mean MF, of (1 - 1/F)^(n-1)", float(found["MF"].mean()), (1 - 1 / SLOTS) ** (FACTS - 1), 1e-12)
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
    printed=Statement(
        "g(H) >= MF - Mis - 3 |Facts| / (d |H|) - sqrt(6 ln(6/d) / n): a calibrated model makes facts up",
        lambda: (*inequality(), *constants(), *says_something(1000)),
        "exact counts; half a unit of the last recorded digit",
        when="there are hundreds of facts; of a hundred the bound is below 0 and says nothing",
        otherwise=lambda: says_something(100),
    ),
)
