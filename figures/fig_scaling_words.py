"""What word embeddings learn first: the topics of a tree of words, the widest ones before those within them, each as a sigmoid.

Stands beside the modes of karkada2025closed. Eight invented words, no text, are the leaves of a tree of three binary choices, and stand
together more often the nearer they are. a, eigenvalues of W W^T from a random start of size 1e-5 (lines), and sigmoids of the theory from
the random projections (dashed); b, the loss, with flat weights and with weights by frequency, in time over the mean weight; c, the
eigenvectors of M; d to f, W W^T between the steps.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.models.scaling.word2vec import modes
from odesim.plot.figures import THEORY, Feature
from odesim.plot.style import CATEGORIES, INK, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
MODEL, WORDS, SIZE, END = "scaling.word2vec", 8, 1e-5, 14.0
TOGETHER = (40.0, 12.0, 3.0, 0.7)  # counts with the word itself, the word beside it, the same half, the other half
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-14}


def pairs() -> np.ndarray:
    """P (8, 8): by the height of the common ancestor; the second half of the words is rarer, so that no two eigenvalues are equal."""
    place = np.arange(WORDS)
    height = np.array([[int(i ^ j).bit_length() for j in place] for i in place])
    P = np.array(TOGETHER)[height]
    P[4:, 4:] *= 0.6
    P[2:4, 2:4] *= 1.5
    P[6:, 6:] *= 1.5
    return P / P.sum()


def start() -> np.ndarray:
    """W (8, 8): small and random, as many dimensions as words."""
    return SIZE * np.random.default_rng(2).normal(size=(WORDS, WORDS))


def sigmoid(t: Any, m: float, s0: float) -> Any:
    """s(t) of an eigenvalue m > 0, as the logistic function it is."""
    return m / (1 + (m / s0 - 1) * np.exp(-4 * m * t))


def data(fast: bool) -> xr.Dataset:
    """s (time, mode), theory (time, mode), m, U (word, mode), losses (weights, time), W W^T (moment, word, other). fast: the same."""
    P, times = pairs(), np.linspace(0, END, 321)
    m, U = modes(P)
    given: dict[str, Any] = {"sizes": {"V": WORDS, "d": WORDS}, "span": (0, END), "save": times, **FINE}
    flat = odesim.integrate(MODEL, params={"P": P, "W0": start()}, **given)
    given |= {"span": (0, END * WORDS**2), "save": times * WORDS**2}  # the weights by frequency have the sum 1
    own = odesim.integrate(MODEL, params={"P": P, "W0": start(), "flat": 0.0}, **given)
    W = flat.y["W"]
    grown = np.linalg.eigvalsh(W @ W.swapaxes(1, 2))[:, ::-1]
    count = int((m > 0).sum())
    # the projection that is left for mode k: of the start, without what lies along the modes before it
    first = [float(np.linalg.qr((U[:, : k + 1].T @ start()).T)[1][k, k] ** 2) for k in range(count)]
    half = [float(times[np.argmax(grown[:, k] > m[k] / 2)]) for k in range(count)]
    moments = [int(np.searchsorted(times, (a + b) / 2)) for a, b in ((half[0], half[1]), (half[2], half[3]), (half[-1], END))]
    return xr.Dataset(
        {
            "s": (("time", "mode"), grown[:, :count]),
            "theory": (("time", "mode"), np.transpose([sigmoid(times, m[k], first[k]) for k in range(count)])),
            "m": ("all", m),
            "U": (("word", "all"), U),
            "loss": (("weights", "time"), [r.observables["loss"] / r.observables["loss"][0] for r in (flat, own)]),
            "product": (("moment", "word", "other"), (W @ W.swapaxes(1, 2))[moments]),
            "moments": ("moment", times[moments]),
            "half": ("mode", half),
        },
        coords={"time": times, "weights": ["flat", "frequencies"]},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Six panels in two rows."""
    with picture("Embeddings of eight words of an invented tree learn it from the top", 104.0, width=160.0) as figure:
        grid = figure.subplots(2, 3)
        (sigmoids, losses, vectors), maps = grid
        for k in range(ds.sizes["mode"]):
            color = CATEGORIES[k % (len(CATEGORIES) - 1)]  # the last one is black, as the theory
            sigmoids.plot(ds.time, ds.s[:, k], color=color)
            sigmoids.plot(ds.time, ds.theory[:, k], color=INK, ls="--", lw=0.6)
        sigmoids.plot([], [], color=INK, ls="--", lw=0.6, label="theory")
        sigmoids.set(xlabel="t", ylabel="eigenvalues of W Wᵀ", title="one after another", xlim=(0, END))
        sigmoids.legend(loc="center right")
        image = vectors.imshow(ds.U[:, : ds.sizes["mode"]], cmap="RdBu_r", vmin=-0.75, vmax=0.75, aspect="auto")
        vectors.set(
            xlabel="mode", ylabel="word", title="eigenvectors of M", xticks=range(0, ds.sizes["mode"], 2), yticks=range(0, WORDS, 2)
        )
        figure.colorbar(image, ax=vectors, label="entry")
        for k, (name, label) in enumerate((("flat", "flat weights"), ("frequencies", "weights by frequency"))):
            losses.plot(ds.time, ds.loss.sel(weights=name), color=CATEGORIES[k], label=label)
        losses.set(xlabel="t × mean weight", ylabel="loss over the first", title="loss in steps", xlim=(0, END), ylim=(0, 1.05))
        losses.legend(loc="upper right")
        bound = float(np.abs(ds["product"]).max())
        for k, axes in enumerate(maps):
            image = axes.imshow(ds["product"][k], cmap="RdBu_r", vmin=-bound, vmax=bound)
            axes.set(
                xlabel="word", ylabel="word", title=f"t = {float(ds.moments[k]):.2g}", xticks=range(0, WORDS, 2), yticks=range(0, WORDS, 2)
            )
        figure.colorbar(image, ax=maps[-1], label="W Wᵀ")
        few_ticks(sigmoids, losses)
        letter_panels(*grid.ravel())
    return figure


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """The signs of the first modes, ends, order, and half times of the theory within a tenth of the time between modes."""
    for k in range(ds.sizes["mode"]):
        yield Feature(f"mode {k} in the end", float(ds.s[-1, k]), float(ds.m[k]), 1e-3, THEORY)
    yield Feature("half times rise with the mode", float((np.diff(ds.half) > 0).all()), 1.0, 0.0, THEORY)
    for k in range(3):
        want = float(ds.time[int(np.argmax((ds.theory[:, k] > ds.m[k] / 2).values))])
        yield Feature(f"half time of mode {k} over that of its sigmoid", float(ds.half[k]) / want, 1.0, 0.1, THEORY)
    top = np.sign(ds.U.values[:, 0])
    yield Feature("words of one half have one sign in mode 0", float(abs(top[:4].sum()) + abs(top[4:].sum())), 8.0, 0.0, THEORY)
