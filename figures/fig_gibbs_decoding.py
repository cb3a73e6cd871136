"""Decoding in T steps: what is missed with and without revision, all tokens at once, and how often a word is said twice.

Stands beside the part of li2024promises and of ghazvininejad2019mask on decoding in few steps, which have no such pictures of exact laws:
a and b, total variation to p of eight signs with coupling J after T steps, for a decoder that revises, one that shows block after block,
chosen uniformly (to T = 2 they are one), and one that redraws all tokens each time, whose own law (dotted) is not p; c, KL(p | law) in
blocks: the mean over blocks is the left Riemann error of the entropy of one token more (dots), that of the mixture of all blocks is less;
d, a word that stands at one of eight places: how often it is said once, or twice and more, beside 400,000 draws.
"""

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from odesim.models.gibbs._decoding import missed
from odesim.models.gibbs._decoding_claims import MISSED, REVISED, STUTTER, decode, little, said
from odesim.models.gibbs._kernels import sequences
from odesim.models.gibbs._spectra_claims import signs
from odesim.plot.figures import SCRIPT, THEORY, Feature
from odesim.plot.style import CATEGORIES, DASHES, FAINT, INK, MARKERS, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"
DECODERS = {"with revision": "gibbs.mask_predict", "block after block": "gibbs.unmask", "all at once": "gibbs.mask_predict:SYNCHRONOUS"}
STEPS, COUPLINGS, PLACES, DRAWS = (1, 2, 4, 8), (0.1, 0.3), 8, 400_000


def drawn(T: int) -> tuple[float, float]:
    """How often the word is said once, and twice or more, in sequences drawn token by token, blocks in a fixed order."""
    rng, count = np.random.default_rng(T), np.zeros(DRAWS, dtype=int)
    for m in range(0, PLACES, PLACES // T):
        chance = np.where(count == 0, 1 / (PLACES - m), 0.0)
        count += rng.binomial(PLACES // T, chance)
    return float((count == 1).mean()), float((count > 1).mean())


def mixture(pi: np.ndarray) -> np.ndarray:
    """The law of blocks chosen uniformly, from that of any blocks: the mean over sequences with as many ones, as p has no order."""
    count = sequences(len(pi)).sum(axis=1)
    many = np.bincount(count)
    return np.asarray((np.bincount(count, pi) / many)[count])


def data(fast: bool) -> xr.Dataset:
    """TV (decoder, J, T), KL in blocks (law, J, T), formula (J, T), TV at rest (J,), said and drawn (T, times). fast: the same."""
    runs = {(name, J, T): decode(model, T, J=J) for name, model in DECODERS.items() for J in COUPLINGS for T in STEPS}
    p, one = {J: signs(8, J) for J in COUPLINGS}, {key: run.final["pi"] for key, run in runs.items()}
    mixed = {key: mixture(pi) for key, pi in one.items()}
    TV = [[[np.abs(mixed[name, J, T] - p[J]).sum() / 2 for T in STEPS] for J in COUPLINGS] for name in DECODERS]
    KL = [[[p[J] @ np.log(p[J] / law["block after block", J, T]) for T in STEPS] for J in COUPLINGS] for law in (one, mixed)]
    return xr.Dataset(
        {
            "TV": (("decoder", "J", "T"), TV),
            "KL": (("law", "J", "T"), KL),
            "formula": (("J", "T"), [[missed(signs(8, J), 2, (8 // T,) * T) for T in STEPS] for J in COUPLINGS]),
            "at_rest": ("J", [np.abs(little(8, J) - signs(8, J)).sum() / 2 for J in COUPLINGS]),
            "said": (("T", "times"), [said(PLACES, T) for T in STEPS]),
            "drawn": (("T", "times"), [drawn(T) for T in STEPS]),
        },
        coords={"decoder": list(DECODERS), "J": list(COUPLINGS), "T": list(STEPS), "times": ["once", "twice or more"]}
        | {"law": ["mean", "mixture"]},
        attrs={"places": PLACES, "draws": DRAWS},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels, no computing."""
    with picture("Decoding in few steps", 104.0, width=130.0) as figure:
        panels = (weak, strong), (missing, words) = figure.subplots(2, 2)
        for axes, J in ((weak, 0.1), (strong, 0.3)):
            for j, name in enumerate(ds.decoder.values):
                axes.plot(
                    ds["T"], ds.TV.sel(decoder=name, J=J), color=CATEGORIES[j], ls=DASHES[j], marker=MARKERS[j], ms=3, label=str(name)
                )
            axes.axhline(float(ds.at_rest.sel(J=J)), color=FAINT, lw=0.6, ls=(0, (1, 1.5)), label="all at once, at rest")
            axes.set(ylabel="total variation to p", title=f"J = {J:g}", ylim=(-0.02, 0.4 if J == 0.1 else 1.0))
            axes.legend(loc="upper right")
        for n, J in enumerate(ds.J.values):
            for j, name in enumerate(ds.law.values):
                label = f"{name}, J = {J:g}"
                missing.plot(ds["T"], ds.KL.sel(law=name, J=J), color=CATEGORIES[1 + 2 * n], ls=DASHES[j], label=label)
        for J in ds.J.values:
            missing.plot(ds["T"], ds.formula.sel(J=J), ".", color=INK, ms=4, label="formula" if J == 0.1 else None)
        missing.set(ylabel="KL(p | law)", title="block after block", ylim=(-0.1, 4.6))
        missing.legend(loc="upper right")
        for j, name in enumerate(ds.times.values):
            words.plot(ds["T"], ds.said.sel(times=name), color=CATEGORIES[j], ls=DASHES[j], label=str(name))
            words.plot(ds["T"], ds.drawn.sel(times=name), ".", color=INK, ms=4, label="400,000 draws" if j else None)
        words.set(ylabel="probability", ylim=(-0.03, 1.03), title="a word that stands once")
        words.legend(loc="center right", bbox_to_anchor=(1.0, 0.42))
        for axes in np.ravel(panels):
            axes.set(xscale="log", xlabel="steps T")
            axes.set_xticks(ds["T"].values, [str(T) for T in ds["T"].values])
            axes.minorticks_off()
        few_ticks(weak, strong, missing, words)
        letter_panels(*np.ravel(panels))
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Recorded digits, the formula, the order of the decoders, draws within four standard errors."""
    for J in COUPLINGS:
        for T, tv, kl in zip(STEPS, REVISED[J], MISSED[J], strict=True):
            at = {"J": J, "T": T}
            yield Feature(f"TV with revision, J = {J}, T = {T}", float(ds.TV.sel(decoder="with revision", **at)), tv, 6e-7, SCRIPT)
            blocks = float(ds.KL.sel(law="mean", **at))
            yield Feature(f"KL in blocks, J = {J}, T = {T}", blocks, kl, 6e-7, SCRIPT)
            yield Feature(f"KL in blocks less its formula, J = {J}, T = {T}", blocks - float(ds.formula.sel(**at)), 0.0, 1e-12, THEORY)
        late = float(ds.TV.sel(decoder="all at once", J=J, T=8))
        if J == 0.1:
            yield Feature("all at once, J = 0.1: TV after 8 steps less that at rest", late - float(ds.at_rest.sel(J=J)), 0.0, 1e-4, THEORY)
    apart = ds.TV.sel(decoder="with revision") - ds.TV.sel(decoder="block after block")
    yield Feature("T = 1, 2: TV with revision less that in blocks", float(np.abs(apart.sel(T=[1, 2])).max()), 0.0, 1e-12, THEORY)
    yield Feature("couplings at which blocks are closer at T = n", float((apart.sel(T=8) > 0.01).sum()), 2.0, 0.0, THEORY)
    yield Feature(
        "largest KL of the mixture over the mean", float((ds.KL.sel(law="mixture") - ds.KL.sel(law="mean")).max()), 0.0, 1e-12, THEORY
    )
    for T, row in STUTTER.items():
        for name, want in zip(ds.times.values, row, strict=True):
            yield Feature(f"said {name}, T = {T}", float(ds.said.sel(T=T, times=name)), want, 6e-7, SCRIPT)
            error = 4 * np.sqrt(want * (1 - want) / DRAWS)
            yield Feature(f"drawn {name}, T = {T}", float(ds.drawn.sel(T=T, times=name)), want, float(error), THEORY)
