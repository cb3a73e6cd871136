"""What is learned forwards is not known backwards: loss of training and of reversed pairs, logits, and chains that do not compose.

Stands beside Figs 1 to 4 of zhu2024reversal, whose runs are of a GPT-2; here is the one-layer theory with M = 802 tokens. a, the loss of
trained pairs (theory, SGD with one sequence a step, each epoch in a new order, and what the bound of Theorem 3 with c = .7 allows, where
it is not empty) and of reversed ones, which stays ln M; b, logits
Y[x1, x3] of 20 pairs (M = 40, 10 of them trained both ways) at five times ln M epochs of 1/eta_Y: nothing stands where a pair is
reversed; c, 1 - p of trained pairs for three vocabularies, one curve late, and for M = 802 the bound of Theorem 3 from t1 on,
(M - 1) / (2 x^c) with x = M eta_Y t / N: it says nothing for c = .5, holds for c = .7, and touches at t1 with the largest c that holds;
d, chains A -> B -> C (N = 540): A -> B and B -> C as trained, C asked after A directly, and in two steps; e, logits of 20 chains (M = 60)
at that time, A ~> C trained for 14: they share a row with B, and get half of it each; of the others C stands nowhere in the rows of A.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import wrightomega

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, DASHES, DIVERGING, FAINT, INK, SMALL, few_log_ticks, few_ticks, letter_panels, picture

QUESTION = "when does it fail?"
M, N, ETA, EPOCHS = 802, 340, 0.5, 100
VOCABULARIES, STEPS = (100.0, 802.0, 1e4), np.geomspace(0.01, 100, 81)
START = int(np.abs(STEPS - 1).argmin())  # t = t1
CHAINS, WHOLE = 20, 14  # chains, and those of which A ~> C is trained
FACTS = 2 * CHAINS + WHOLE
CONSTANTS = (0.5, 0.7)  # of the bound, beside the largest that holds from t1 on
FINE = {"rtol": 1e-10, "atol": 1e-13}


def row(times: np.ndarray, *, size: float = M, sequences: float = N) -> dict[str, np.ndarray]:
    """The observables of one row at these times."""
    params = {"M": size, "N": sequences, "eta_Y": ETA}
    return dict(odesim.integrate("reversal.row", params=params, span=(0, times[-1]), save=times, **FINE).observables)


def bound(size: float, c: float) -> np.ndarray:
    """The bound (step,) on 1 - p from t1 = N ln M / eta_Y on, nan before."""
    return np.where(STEPS > 1 - 1e-9, (size - 1) / 2 / (size * np.log(size) * STEPS) ** c, np.nan)


def largest_constant(size: float, wrong: np.ndarray) -> np.ndarray:
    """The largest c (step,) with which 1 - p is at the bound."""
    return np.log((size - 1) / 2 / wrong) / np.log(size * np.log(size) * STEPS)


def allowed(epochs: np.ndarray, c: float) -> np.ndarray:
    """The largest loss (epoch,) that the bound with this constant allows from t1 on, nan before and where the bound is empty."""
    x = M * ETA * epochs
    p = 1 - (M - 1) / (2 * np.maximum(x, 1) ** c)
    return np.where((ETA * epochs >= np.log(M)) & (p > 0), -np.log(np.where(p > 0, p, 1)), np.nan)


SHOWN = (("direct", "A ⇝ C asked"), ("two_steps", "A → B → C in two steps"), ("steps_alone", "A → B, B → C"))


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


def chains() -> dict[str, dict[str, Any]]:
    """Sizes and parameters of chains: A_i is token i, B_i the one CHAINS later, C_i 2 CHAINS later; A -> B, B -> C, some A ~> C."""
    i, whole = np.arange(CHAINS), np.arange(WHOLE)
    sources, targets = np.r_[i, CHAINS + i, whole], np.r_[CHAINS + i, 2 * CHAINS + i, 2 * CHAINS + whole]
    return {"sizes": {"R": 2 * CHAINS, "M": 3 * CHAINS}, "params": {"x1": sources, "x3": targets, "eta_Y": ETA}}


def margin(size: float, r: float, turns: float) -> float:
    """The logit of each of r targets above the others by so many epochs, exp(v) r + (M - r) v = M eta_Y t/N + r by Wright's omega."""
    A = (size * ETA * turns + r) / (size - r)
    return float(A - wrightomega(A + np.log(r / (size - r))))


def data(fast: bool) -> xr.Dataset:
    """Losses (epoch), logits (row, column), 1 - p (M, step), losses of chains (late). fast: the same."""
    epochs = np.arange(EPOCHS + 1)
    run = row(N * epochs.astype(float))
    t1 = np.log(M) / ETA
    pairs = {"R": 40, "M": 40, "N": 30}
    logits = odesim.integrate("reversal.full", sizes=pairs, params={"eta_Y": ETA}, span=(0, 5 * 30 * np.log(40) / ETA), save=2, **FINE)
    of_chains = odesim.integrate("reversal.full", **chains(), span=(0, 5 * FACTS * np.log(3 * CHAINS) / ETA), save=2, **FINE)
    late = t1 * np.linspace(0, 10, 201)
    chain = row(540 * late, sequences=540.0)
    wrong = np.array([1 - row(np.r_[0, k * np.log(k) / ETA * STEPS], size=k, sequences=k)["p_target"][1:] for k in VOCABULARIES])
    largest = np.array([largest_constant(k, values) for k, values in zip(VOCABULARIES, wrong, strict=True)])
    constants = (*CONSTANTS, float(largest[1, START]))
    return xr.Dataset(
        {
            "trained": ("epoch", -np.log(run["p_target"])),
            "sgd": ("epoch", sgd()),
            "allowed": ("epoch", allowed(epochs.astype(float), CONSTANTS[1])),
            "logits": (("row", "column"), logits.final["Y"]),
            "chains": (("source", "token"), of_chains.final["Y"]),
            "wrong": (("M", "step"), wrong),
            "largest_c": (("M", "step"), largest),
            "bound": (("c", "step"), [bound(M, c) for c in constants]),
            "direct": ("late", -np.log(chain["p_other"])),
            "two_steps": ("late", -2 * np.log(chain["p_target"])),
            "steps_alone": ("late", -np.log(chain["p_target"])),
        },
        coords={"epoch": epochs, "M": list(VOCABULARIES), "step": STEPS, "late": late, "c": list(constants)},
        attrs={"tokens": M, "sequences": N, "eta_Y": ETA},
    )


def draw(ds: xr.Dataset) -> Figure:
    """Five panels; it computes only ln M and the late limit 1 - p = (M - 1)/M / (eta_Y t / N)."""
    with picture("The reversal curse in one layer", 110.0, width=180.0) as figure:
        cells = figure.add_gridspec(2, 3)
        loss, logits, wrong, chain = (figure.add_subplot(cells[place]) for place in ((0, 0), (0, 1), (0, 2), (1, 0)))
        block = figure.add_subplot(cells[1, 1:])
        loss.plot(ds.epoch, ds.trained, color=CATEGORIES[0], label="trained: theory")
        loss.plot(ds.epoch[::3], ds.sgd[::3], ".", ms=2.5, color=INK, label="trained: SGD")
        loss.plot(ds.epoch, ds.allowed, color=INK, lw=0.7, ls=DASHES[2], label="bound, c = 0.7")
        loss.axhline(np.log(ds.tokens), color=CATEGORIES[1], ls=DASHES[1], label="reversed: ln M")
        loss.set(xlabel="epoch", ylabel="loss", ylim=(0, 7.5))
        loss.legend(loc="center right")
        most = float(np.abs(ds.logits).max())
        shown = logits.imshow(ds.logits, cmap=DIVERGING, vmin=-most, vmax=most, interpolation="nearest")
        logits.set(xlabel="token $x_3$", ylabel="source $x_1$")
        figure.colorbar(shown, ax=logits, label="logit Y")
        highest = float(np.abs(ds.chains).max())
        shown = block.imshow(ds.chains, aspect="auto", cmap=DIVERGING, vmin=-highest, vmax=highest, interpolation="nearest")
        block.set(xlabel="token: A, B, C", ylabel="source: A, B")
        figure.colorbar(shown, ax=block, label="logit Y", pad=0.02)
        for j, size in enumerate(ds.M.values):
            wrong.plot(ds.step, ds.wrong.sel(M=size), color=CATEGORIES[j], ls=DASHES[j], label=f"M = {size:g}")
        for j, c in enumerate(ds.c.values):
            wrong.plot(ds.step, ds.bound.sel(c=c), color=INK, lw=0.7, ls=DASHES[j + 1])
            end = float(ds.bound.sel(c=c)[-1])
            wrong.annotate(f"c = {c:.3g}", (ds.step[-1], end), (2, 0), textcoords="offset points", fontsize=SMALL, va="center")
        wrong.plot(ds.step[40:], 1 / (ds.step[40:] * np.log(1e4)), color=FAINT, lw=0.6, ls=(0, (1, 1.5)), label="late law")
        wrong.set(xscale="log", yscale="log", xlabel=r"$t / t_1$, $t_1 = N\,\ln M / η_Y$", ylabel="1 − p of a trained pair", ylim=(5e-4, 9))
        wrong.legend(loc="lower left")
        for j, (name, label) in enumerate(SHOWN):
            chain.plot(ds.late, ds[name], color=CATEGORIES[j], ls=DASHES[j], label=label)
        chain.axhline(np.log(ds.tokens), color=FAINT, lw=0.6, ls=(0, (1, 1.5)))
        chain.set(xlabel="epoch", ylabel="loss", ylim=(0, 17))
        chain.legend(loc="upper right")
        few_ticks(loss, chain)
        few_log_ticks(wrong)
        letter_panels(loss, logits, wrong, chain, block)
    return figure


def chain_features(Y: np.ndarray) -> list[Feature]:
    """Blocks of the logits of chains: of rows with one target u, of rows with two v, in the closed form."""
    size, turns = 3 * CHAINS, 5 * np.log(3 * CHAINS) / ETA
    u, v = margin(size, 1, turns), margin(size, 2, turns)
    A, B, B_of, C_of = Y[:CHAINS], Y[CHAINS:], slice(CHAINS, 2 * CHAINS), slice(2 * CHAINS, None)
    to_B, to_C, from_B = (np.diagonal(block) for block in (A[:, B_of], A[:, C_of], B[:, C_of]))
    return [
        Feature(f"{name}: largest distance from the closed form", float(np.abs(found - want).max()), 0.0, 1e-7)
        for name, found, want in (
            ("B | A, A ~> C held out", to_B[WHOLE:], (1 - 1 / size) * u),
            ("C | B", from_B, (1 - 1 / size) * u),
            ("C | A, held out", A[WHOLE:, C_of], -u / size),
            ("C | A, trained, as B | A", np.r_[to_C[:WHOLE], to_B[:WHOLE]], (1 - 2 / size) * v),
        )
    ]


def expected(ds: xr.Dataset) -> Iterator[Feature]:
    """Losses at the start and the knee, the logits of both kinds of rows, p to four digits, chains."""
    knee = np.log(M) / ETA
    yield Feature("loss at the start", float(ds.trained[0]), float(np.log(M)), 1e-12)
    yield Feature("loss at epoch ln M / eta_Y", float(np.interp(knee, ds.epoch, ds.trained)), 1.012, 0.01, SCRIPT)  # of interpolation
    # SGD takes rows in finite steps: p differs by .017 at the knee
    yield Feature("loss at the knee, SGD less theory", float(np.interp(knee, ds.epoch, ds.sgd - ds.trained)), -0.047, 0.01)
    yield Feature("reversed pairs: largest logit", float(np.abs(ds.logits.values[30:]).max()), 0.0, 0.0)
    yield Feature("trained rows without their logit", float((ds.logits.values[:30].max(axis=1) < 1).sum()), 0.0, 0.0)
    u, rows = margin(M, 1, 5 * np.log(M) / ETA), ds.logits.values
    yield Feature("u at 5 t1, M = 802", u, 9.85, 0.0051, SCRIPT)
    yield Feature("logit of a target there, (M - 1) u / M", (M - 1) / M * u, 9.84, 0.0051, SCRIPT)
    yield Feature("logit of another token, - u / M", -u / M, -0.0123, 5.1e-5, SCRIPT)
    u = margin(40, 1, 5 * np.log(40) / ETA)
    target = np.eye(40)[:, (np.arange(40) + 20) % 40]
    want = u * (target[:30] - 1 / 40)
    yield Feature("logits of trained rows less u (1 - 1/M) and - u/M, largest", float(np.abs(rows[:30] - want).max()), 0.0, 1e-7)
    yield from chain_features(ds.chains.values)
    for size, p in ((100.0, 0.3717), (802.0, 0.3635), (1e4, 0.3621)):
        at = 1 - float(ds.wrong.sel(M=size, step=1.0, method="nearest"))
        yield Feature(f"p at t1, M = {size:g}", at, p, 5.1e-5, SCRIPT)
    for size, start, later in ((100.0, 0.7121, 0.8978), (802.0, 0.7505, 0.9220), (1e4, 0.7844, 0.9388)):
        for times, c in ((1, start), (10, later)):
            here = float(ds.largest_c.sel(M=size).sel(step=times, method="nearest"))
            yield Feature(f"largest c at {times} t1, M = {size:g}", here, c, 5.1e-5, SCRIPT)
    # of the printed statement, p >= 1 - bound
    for c, value, digit in ((0.5, -4.47, 0.005), (0.7, 0.0182, 5.1e-5)):
        yield Feature(f"bound on p at t1, M = 802, c = {c:g}", 1 - float(ds.bound.sel(c=c)[START]), value, digit, SCRIPT)
    over = (ds.wrong.sel(M=802.0) / ds.bound).isel(step=slice(START, None))
    yield Feature("largest (1 - p) / bound, of all c", float(over.max()), 1.0, 1e-12)  # at t1, of the largest c
    yield Feature("where it is, in t1", float(over.step[int(over.max("c").argmax("step"))]), 1.0, 1e-9)
    # p >= .0182 at t1, .3956 at 2 t1, .6818 at 5 t1, read between epochs
    for times, p, digit in ((2, 0.3956, 2e-3), (5, 0.6818, 5e-4)):
        at = float(np.interp(times * np.log(M) / ETA, ds.epoch, ds.allowed))
        yield Feature(f"exp(- loss that the bound allows) at {times} t1, c = .7", float(np.exp(-at)), p, digit, SCRIPT)
    above = (ds.allowed - ds.trained).where(ds.allowed.notnull(), drop=True)
    yield Feature("epochs at which the loss is above what the bound allows", float((above < 0).sum()), 0.0, 0.0)
    late = float(ds.wrong.sel(M=1e4)[-1]) * float(ds.step[-1]) * np.log(1e4)
    yield Feature("1 - p at 100 t1, times eta_Y t / N, M = 1e4", late, 1.0, 0.02)
    t1 = np.log(M) / ETA
    for times, direct, steps in ((2, 8.48, 0.36), (5, 9.90, 0.083), (10, 10.74, 0.035)):  # the numbers are those of SGD
        here = ds.sel(late=times * t1, method="nearest")
        yield Feature(f"A ~> C at {times} t1", float(here.direct), direct, 0.02, SCRIPT)
        yield Feature(f"two steps at {times} t1", float(here.two_steps), steps, 0.005, SCRIPT)
