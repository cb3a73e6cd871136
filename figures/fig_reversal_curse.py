"""What is learned forwards is not known backwards: loss of training and of reversed pairs, logits, and chains that do not compose.

Stands beside Figs 1 to 4 of zhu2024reversal, whose runs are of a GPT-2; here is the one-layer theory with M = 802 tokens. a, the loss of
trained pairs (theory, and SGD with one sequence a step, each epoch in a new order) and of reversed ones, which stays ln M; b, logits
Y[x1, x3] at five times ln M epochs of 1/eta_Y: nothing stands where a pair is reversed; c, 1 - p of trained pairs for three
vocabularies, one curve late; d, chains A -> B -> C (N = 540): C asked after A directly, and in two steps.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, DIVERGING, FAINT, INK, few_log_ticks, few_ticks, letter_panels, new_figure, project_style

M, N, ETA, EPOCHS = 802, 340, 0.5, 100
VOCABULARIES, STEPS = (100.0, 802.0, 1e4), np.geomspace(0.01, 100, 81)
FINE = {"rtol": 1e-10, "atol": 1e-13}


def row(times: np.ndarray, *, size: float = M, sequences: float = N) -> dict[str, np.ndarray]:
    """The observables of one row at these times."""
    params = {"M": size, "N": sequences, "eta_Y": ETA}
    return dict(odesim.integrate("reversal.row", params=params, span=(0, times[-1]), save=times, **FINE).observables)


def sgd() -> np.ndarray:
    """The mean loss of the trained pairs after each epoch of SGD with one sequence a step: rows learn alone, a step a row an epoch."""
    Y, losses = np.zeros(M), [np.log(M)]
    for _ in range(EPOCHS):
        p = np.exp(Y - Y.max())
        p /= p.sum()
        Y -= ETA * p
        Y[0] += ETA
        losses.append(float(np.log(np.exp(Y - Y[0]).sum())))
    return np.array(losses)


def data(fast: bool) -> xr.Dataset:
    """Losses (epoch), logits (row, column), 1 - p (M, step), losses of chains (late). fast: the same."""
    epochs = np.arange(EPOCHS + 1)
    run = row(N * epochs.astype(float))
    t1 = np.log(M) / ETA
    pairs = {"R": 40, "M": 40, "N": 30}
    logits = odesim.integrate("reversal.full", sizes=pairs, params={"eta_Y": ETA}, span=(0, 5 * 30 * np.log(40) / ETA), save=2, **FINE)
    late = t1 * np.linspace(0, 10, 201)
    chain = row(540 * late, sequences=540.0)
    return xr.Dataset(
        {
            "trained": ("epoch", -np.log(run["p_target"])),
            "sgd": ("epoch", sgd()),
            "logits": (("row", "column"), logits.final["Y"]),
            "wrong": (
                ("M", "step"),
                [1 - row(np.r_[0, k * np.log(k) / ETA * STEPS], size=k, sequences=k)["p_target"][1:] for k in VOCABULARIES],
            ),
            "direct": ("late", -np.log(chain["p_other"])),
            "two_steps": ("late", -2 * np.log(chain["p_target"])),
        },
        coords={"epoch": epochs, "M": list(VOCABULARIES), "step": STEPS, "late": late},
        attrs={"tokens": M, "sequences": N, "eta_Y": ETA},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Four panels; it computes only ln M and the late limit 1 - p = (M - 1)/M / (eta_Y t / N)."""
    with project_style():
        figure = new_figure(110.0, width=125.0)
        (loss, logits), (wrong, chain) = figure.subplots(2, 2)
        loss.plot(ds.epoch, ds.trained, color=CATEGORIES[0], label="trained: theory")
        loss.plot(ds.epoch[::3], ds.sgd[::3], ".", ms=2.5, color=INK, label="trained: SGD")
        loss.axhline(np.log(ds.tokens), color=CATEGORIES[1], ls=DASHES[1], label="reversed: ln M")
        loss.set(xlabel="epoch", ylabel="loss", ylim=(0, 8.5))
        loss.legend(loc="upper right", ncol=2)
        most = float(np.abs(ds.logits).max())
        shown = logits.imshow(ds.logits, cmap=DIVERGING, vmin=-most, vmax=most, interpolation="nearest")
        logits.set(xlabel="token $x_3$", ylabel="source $x_1$")
        figure.colorbar(shown, ax=logits, label="logit Y")
        for j, size in enumerate(ds.M.values):
            wrong.plot(ds.step, ds.wrong.sel(M=size), color=CATEGORIES[j], ls=DASHES[j], label=f"M = {size:g}")
        wrong.plot(ds.step[40:], 1 / (ds.step[40:] * np.log(1e4)), color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        wrong.set(xscale="log", yscale="log", xlabel="$t / t_1$, $t_1 = N$ ln M / $η_Y$", ylabel="1 − p of a trained pair", ylim=(5e-4, 2))
        wrong.legend(loc="lower left")
        for j, (name, label) in enumerate((("direct", "A ⇝ C asked"), ("two_steps", "A → B → C in two steps"))):
            chain.plot(ds.late, ds[name], color=CATEGORIES[j], ls=DASHES[j], label=label)
        chain.axhline(np.log(ds.tokens), color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        chain.set(xlabel="epoch", ylabel="loss", ylim=(0, 17))
        chain.legend(loc="upper right")
        few_ticks(loss)
        few_ticks(chain)
        few_log_ticks(wrong)
        letter_panels(loss, logits, wrong, chain)
        figure.suptitle("The reversal curse in one layer")
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """Losses at the start and the knee, the logits of both kinds of rows, p to four digits, chains."""
    knee = np.log(M) / ETA
    features = [
        Feature("loss at the start", float(ds.trained[0]), float(np.log(M)), 1e-12),
        Feature("loss at epoch ln M / eta_Y", float(np.interp(knee, ds.epoch, ds.trained)), 1.012, 0.01, SCRIPT),  # of interpolation
        # SGD takes rows in finite steps: p differs by .017 at the knee
        Feature("loss at the knee, SGD less theory", float(np.interp(knee, ds.epoch, ds.sgd - ds.trained)), -0.047, 0.01),
        Feature("reversed pairs: largest logit", float(np.abs(ds.logits.values[30:]).max()), 0.0, 0.0),
        Feature("trained rows without their logit", float((ds.logits.values[:30].max(axis=1) < 1).sum()), 0.0, 0.0),
    ]
    for size, p in ((100.0, 0.3717), (802.0, 0.3635), (1e4, 0.3621)):
        at = 1 - float(ds.wrong.sel(M=size, step=1.0, method="nearest"))
        features.append(Feature(f"p at t1, M = {size:g}", at, p, 5.1e-5, SCRIPT))
    late = float(ds.wrong.sel(M=1e4)[-1]) * float(ds.step[-1]) * np.log(1e4)
    features.append(Feature("1 - p at 100 t1, times eta_Y t / N, M = 1e4", late, 1.0, 0.02))
    t1 = np.log(M) / ETA
    for times, direct, steps in ((2, 8.48, 0.36), (5, 9.90, 0.083), (10, 10.74, 0.035)):  # the numbers are those of SGD
        here = ds.sel(late=times * t1, method="nearest")
        features.append(Feature(f"A ~> C at {times} t1", float(here.direct), direct, 0.02, SCRIPT))
        features.append(Feature(f"two steps at {times} t1", float(here.two_steps), steps, 0.005, SCRIPT))
    return features
