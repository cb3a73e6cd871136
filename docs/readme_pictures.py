"""Draws the six pictures of the README: `python docs/readme_pictures.py` writes them into docs/pictures."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import odesim
from odesim.plot.style import CATEGORIES, SEQUENTIAL, new_figure, ordered_colors, project_style

ROOT = Path(__file__).parents[1]
HEIGHT, DPI = 52.0, 160


def scan_snap() -> Figure:
    """Attention of one class over its tokens against time: scan, then snap."""
    run = odesim.integrate("scan_snap.full", span=(0, 300), save="log:200")
    figure = new_figure(HEIGHT)
    axes = figure.subplots()
    image = axes.pcolormesh(run.t[1:], np.arange(20), run.observables["c"][1:, 0, :20].T, cmap=SEQUENTIAL, shading="nearest")
    axes.axhline(9.5, color="white", lw=0.8, ls=(0, (3, 2)))
    axes.set(xscale="log", xlabel="t (SGD steps)", ylabel="token: common | distinct", yticks=range(0, 20, 5))
    figure.colorbar(image, label="attention").outline.set_visible(False)
    return figure


def joma() -> Figure:
    """The entropy of attention bounces, the deeper the larger mu."""
    figure = new_figure(HEIGHT)
    axes = figure.subplots()
    for top, color in zip((1.0, 1.5, 2.0, 2.5), ordered_colors(4), strict=True):
        run = odesim.integrate("joma.nonlinear", params={"mu": [top, top / 2]}, initial={"v": 0.01}, span=(0, 6), save=400)
        entropy = run.observables["entropy"]
        axes.plot(run.t, entropy, color=color)
        axes.text(6, entropy[-1] + 0.004, rf"$\mu$ = ({top:g}, {top / 2:g})", ha="right", va="bottom")
    axes.set(xlabel="t", ylabel="entropy of attention", xlim=(0, 6))
    return figure


def hierarchy() -> Figure:
    """Weights by height of the common ancestor: near before far."""
    run = odesim.integrate("hierarchy.grouped", span=(0, 100), save=300)
    figure = new_figure(HEIGHT)
    axes = figure.subplots()
    for H, color in enumerate(ordered_colors(4)):
        axes.plot(run.t, run.y["v"][:, H], color=color)
        axes.text(100, run.y["v"][-1, H] + 0.02, f"ancestor {H + 1} above", ha="right", va="bottom")
    axes.set(xlabel="t", ylabel="weight", xlim=(0, 100))
    return figure


def phase() -> Figure:
    """How deep the entropy falls below its end, for 46 x 46 rest points."""
    values = np.linspace(0.25, 2.5, 46)
    mu = np.stack([axis.ravel() for axis in np.meshgrid(values, values, indexing="ij")], axis=1)
    runs = odesim.ensemble("joma.nonlinear", params={"mu": mu}, initial={"v": 0.01}, span=(0, 12), save=601, observe=("entropy",))
    entropy = runs["entropy"].values
    depth = (entropy[:, -1] - entropy.min(axis=1)).reshape(46, 46)
    figure = new_figure(HEIGHT)
    axes = figure.subplots()
    image = axes.pcolormesh(values, values, np.maximum(depth, 1e-6).T, norm="log", cmap=SEQUENTIAL, shading="nearest")
    axes.set(xlabel=r"$\mu_1$", ylabel=r"$\mu_2$", aspect="equal")
    figure.colorbar(image, label="depth of the bounce").outline.set_visible(False)
    return figure


def compare() -> Figure:
    """The loss of eight trained transformers and of the theory."""
    training = odesim.train("scan_snap", seeds=range(8), steps=60, observe=("loss_population",))
    theory = odesim.compare("scan_snap.full", task="scan_snap", seeds=range(8), steps=60, map="discrete").to_xarray()
    figure = new_figure(HEIGHT)
    axes = figure.subplots()
    axes.semilogy(training.t, training.observables["loss_population"].T, color=CATEGORIES[0], alpha=0.4, lw=0.8)
    axes.plot([], [], color=CATEGORIES[0], label="training, 8 seeds")
    axes.semilogy(theory["time"], theory["loss_theory"], color=CATEGORIES[1], ls="--", label="theory")
    axes.set(xlabel="iteration", ylabel="loss", xlim=(0, 60))
    axes.legend()
    return figure


def text() -> Figure:
    """Attention over the words before "the class", at the start and late."""
    folder = ROOT / "examples" / "pydoc"
    words = [line.split(",")[0] for line in (folder / "tokens.csv").read_text().splitlines()[1:]]
    P = np.loadtxt(folder / "P.csv", delimiter=",")
    run = odesim.integrate("scan_snap.full", params={"P": P, "psi": [0, 0, 1], "M": 34}, span=(0, 1000), save=2)
    first, last = run.observables["c"][:, 0]
    shown = np.argsort(last)[::-1][:10]
    figure = new_figure(HEIGHT)
    axes = figure.subplots()
    axes.bar(np.arange(10) - 0.2, first[shown], 0.4, color=CATEGORIES[5], label="t = 0")
    axes.bar(np.arange(10) + 0.2, last[shown], 0.4, color=CATEGORIES[0], label="t = 1000")
    axes.set_xticks(np.arange(10), [words[k] for k in shown], rotation=60, ha="right")
    axes.set(ylabel="attention")
    axes.legend()
    return figure


PICTURES: dict[Callable[[], Figure], str] = {
    scan_snap: "Scan & Snap from a table",
    joma: "JoMA: attention bounces",
    hierarchy: "hierarchy: near before far",
    phase: "phase diagram of 2116 runs",
    compare: "theory beside training",
    text: "attention over real words",
}
"""Each with its title: it stands in the picture, for a page that puts pictures beside or below each other has no place for it."""

if __name__ == "__main__":
    for draw, title in PICTURES.items():
        with project_style():
            figure = draw()
            figure.suptitle(title)
            figure.savefig(ROOT / "docs" / "pictures" / f"{draw.__name__}.png", dpi=DPI, metadata={"Software": "odesim"})
