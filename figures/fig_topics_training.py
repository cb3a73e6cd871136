"""Topics by SGD on finite documents, beside the flow of infinite ones; what documents leak, and what Adam does to norms.

Stands beside the training curves of li2023topic. a and b, T = 4, v = 3, documents of 400 words: norms, and attention between words, by SGD
(points) and by topics.full from the same start (lines). c, how much values copy the shown word under uniform attention: p_c / (1 - m0) in
finite documents of any length, 0 in infinite ones. d and e, the same of T = v = 10, 2000 documents of 100 to 150 words, masked anew
whenever they are read, rate 20, entries of deviation .01: two stages. f, Adam there: the norm of W_K grows at once, fivefold in 50 steps;
attention follows within 100.
"""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import odesim
from odesim.plot.figures import SCRIPT, Feature
from odesim.plot.style import CATEGORIES, FAINT, SMALL, few_ticks, letter_panels, picture

QUESTION = "what is learned first?"
END, P_C, M0, P_R = 6000.0, 0.3, 0.15 * 0.6, 0.1
LEAK_LR, NOISE = 4.0, {20: 0.024, 120: 0.011}  # deviation of a_w at rest, by a program of ours outside odesim
FEW: dict[str, Any] = {"p_c": 0.1, "shortest": 400, "longest": 400}
MANY: dict[str, Any] = {"T": 10, "v": 10, "p_c": 0.1, "init_V": 0.01, "init_KQ": 0.01, "documents": 2000}
LENGTHS = (20, 120)
ADAM = ((50, 1, 1.08, 0.10), (100, 1, 2.15, 0.71), (100, 2, 0.872, 0.078), (300, 1, 5.13, 1.2), (300, 2, 0.516, 0.07))
"""Step, pair of WORDS, mean attention of six seeds and four deviations, by an independent program: 2000 documents in a random order."""
NORMS, WORDS = ("norm_W_V", "norm_W_K"), ("the word itself", "its topic", "other topics")


def copied(W: np.ndarray, v: int) -> np.ndarray:
    """a_w (time,) of W_V (time, d, d): the mean of the diagonal less its block's, over words."""
    words = W[:, 1:, 1:]
    n = words.shape[1]
    blocks = np.einsum("taiaj->t", words.reshape(len(W), n // v, v, n // v, v)) / v
    return np.asarray((np.einsum("tii->t", words) - blocks) / (n - n // v))


def between(W_K: np.ndarray, W_Q: np.ndarray, v: int) -> np.ndarray:
    """Mean attention (time, 3) between words, 1 where it is uniform, for the pairs of WORDS."""
    M = np.exp(np.einsum("tak,taq->tqk", W_K[:, :, 1:], W_Q[:, :, 1:]))
    M *= M.shape[-1] / M.sum(axis=-1, keepdims=True)
    topic = np.arange(M.shape[-1]) // v
    own, same = np.eye(len(topic), dtype=bool), topic[:, None] == topic
    return np.stack([M[:, which].mean(axis=1) for which in (own, same & ~own, ~same)], axis=1)


def law_of_copying(words: int, steps: np.ndarray) -> np.ndarray:
    """a_w along training in documents of this many words, of which one is the masked place itself: its rest and its rate are exact."""
    seen = (1 - M0) * (words - 1) + P_C + P_R  # words that are shown, in a document with a masked place
    return np.asarray(P_C * words / seen * (1 - np.exp(-2 * seen / (12 * words**2) * LEAK_LR * steps)))


def data(fast: bool) -> xr.Dataset:
    """Norms and attention of SGD and of the flow (t), of SGD and Adam (step); a_w (length, leak_step). fast: larger steps, and fewer."""
    lr, steps, save = (4.0, 1600, 33) if fast else (2.0, 4000, 81)
    run = odesim.train(
        "topics", settings={**FEW, "lr": lr}, steps=round(END / lr), save=31, observe=(*NORMS, "attention", "W_V", "W_K", "W_Q")
    )
    start = {name: run.observables[name][0, 0] for name in ("W_V", "W_K", "W_Q")}
    t = np.linspace(0, END, 31)
    flow = odesim.integrate("topics.full", params={"p_c": FEW["p_c"]}, initial=start, span=(0, END), save=t, rtol=1e-7, atol=1e-10)
    many = odesim.train("topics", settings={**MANY, "lr": 20.0}, steps=steps, save=save, observe=(*NORMS, "attention"))
    adam = odesim.train("topics", settings={**MANY, "optimizer": "adam", "lr": 0.003}, steps=300, save=13, observe=(*NORMS, "attention"))
    arrays: dict[str, Any] = {}
    for name in (*NORMS, "attention"):
        more = ("pair",) if name == "attention" else ()
        arrays |= {f"sgd_{name}": (("t", *more), run.observables[name][0]), f"many_{name}": (("step", *more), many.observables[name][0])}
        arrays[f"adam_{name}"] = (("adam_step", *more), adam.observables[name][0])
        arrays[f"flow_{name}"] = (("t", *more), between(flow.y["W_K"], flow.y["W_Q"], 3) if more else flow.observables[name])
    arrays["adam_ratio"] = ("adam_step", adam.observables["attention"][0][:, 1] / adam.observables["attention"][0][:, 2])
    given = {"lr": LEAK_LR, "init_KQ": 0.0, "p_c": P_C}
    leaks = [
        odesim.train("topics", settings={**given, "shortest": n, "longest": n}, steps=1500, save=31, observe=("W_V",)) for n in LENGTHS
    ]
    arrays["copied"] = (("length", "leak_step"), [copied(leak.observables["W_V"][0], 3) for leak in leaks])
    coords = {"t": t, "step": np.linspace(0, steps, save), "adam_step": np.linspace(0, 300, 13), "leak_step": np.linspace(0, 1500, 31)}
    return xr.Dataset(arrays, coords={**coords, "length": list(LENGTHS), "pair": list(WORDS)}, attrs={"task": "topics", **MANY})


def draw(ds: xr.Dataset) -> Figure:
    """Six panels, no computing."""
    with picture("Two stages of topics by SGD", 100.0, width=160.0) as figure:
        (norms, attention, leak), (many, seen, adam) = figure.subplots(2, 3)
        for n, name in enumerate(NORMS):
            label = f"$|W_{name[-1]}|$"
            norms.plot(ds.t, ds[f"flow_{name}"], color=CATEGORIES[n], label=label)
            norms.plot(ds.t, ds[f"sgd_{name}"], ".", ms=3, color=CATEGORIES[n])
            many.plot(ds.step, ds[f"many_{name}"], color=CATEGORIES[n], label=label)
            adam.plot(ds.adam_step, ds[f"adam_{name}"], color=CATEGORIES[n], label=label)
        for n, words in enumerate(WORDS):
            look = {"lw": 2.4, "ms": 6} if n == 0 else {"lw": 1.0, "ms": 3}  # the word itself is seen behind its topic
            attention.plot(ds.t, ds.flow_attention[:, n], color=CATEGORIES[n], label=words, lw=look["lw"])
            attention.plot(ds.t, ds.sgd_attention[:, n], ".", ms=look["ms"], mew=0, color=CATEGORIES[n])
            seen.plot(ds.step, ds.many_attention[:, n], color=CATEGORIES[n], label=words)
        adam.plot(ds.adam_step, ds.adam_ratio, color=CATEGORIES[2], label="attention ratio")
        for n, length in enumerate(ds.length):
            leak.plot(ds.leak_step, ds.copied[n], color=CATEGORIES[n], label=f"{int(length)} words")
            leak.plot(ds.leak_step, law_of_copying(int(length), ds.leak_step), color=FAINT, lw=0.8, label="law" if n else None)
        norms.set(xlabel="t = rate × step", ylabel="norm", title="4 topics: flow, SGD dotted")
        attention.set(xlabel="t = rate × step", ylabel="attention, 1 if uniform")
        leak.set(xlabel="step", ylabel="values copy the shown word, $a_w$", ylim=(0, 0.4))
        many.set(xlabel="step", ylabel="norm", title="10 topics: SGD")
        seen.set(xlabel="step", ylabel="attention, 1 if uniform")
        adam.set(xlabel="step", ylabel="norm, or ratio", title="10 topics: Adam")
        for axes in (norms, attention, leak, many, seen, adam):
            few_ticks(axes)
            axes.legend(fontsize=SMALL)
        letter_panels(norms, attention, leak, many, seen, adam)
    return figure


def expected(ds: xr.Dataset) -> list[Feature]:
    """SGD on the flow, the leak of every length, norms of another program, and Adam's norm before attention."""
    late = ds.copied.isel(leak_step=slice(-10, None)).mean("leak_step")
    # in the middle of the second stage, whose time depends on the documents that come
    end = [Feature("10 topics: |W_K| at step 4000", float(ds.many_norm_W_K[-1]), 11.9, 1.5, SCRIPT)] if ds.step[-1] == 4000 else []
    return [
        *end,
        Feature("|W_V| at the end, SGD over the flow", float(ds.sgd_norm_W_V[-1] / ds.flow_norm_W_V[-1]), 1.0, 0.1),
        Feature("ln |W_K|, largest distance of SGD and flow", float(np.abs(np.log(ds.sgd_norm_W_K / ds.flow_norm_W_K)).max()), 0.0, 0.15),
        Feature(
            "attention to the topic at the end, SGD over the flow", float(ds.sgd_attention[-1, 1] / ds.flow_attention[-1, 1]), 1.0, 0.15
        ),
        *(
            # ten saved steps, of which those of long documents are not independent
            Feature(f"a_w in documents of {n} words at rest", float(late.sel(length=n)), law_of_copying(n, np.array(1e9)), NOISE[n], SCRIPT)
            for n in LENGTHS
        ),
        *(
            Feature(
                f"a_w in documents of {n} words along training, mean distance from its law",
                float(np.sqrt(((ds.copied.sel(length=n) - law_of_copying(n, ds.leak_step)) ** 2).mean())),
                0.0,
                2 * NOISE[n],
            )
            for n in LENGTHS
        ),
        Feature("10 topics: |W_V| at step 50", float(ds.many_norm_W_V.sel(step=50)), 3.75, 0.075, SCRIPT),
        Feature("10 topics: |W_V| at step 1600", float(ds.many_norm_W_V.sel(step=1600)), 4.2, 0.1, SCRIPT),
        Feature("10 topics: |W_K| at step 1600", float(ds.many_norm_W_K.sel(step=1600)), 2.07, 0.15, SCRIPT),
        # four deviations of a seed
        Feature("Adam: |W_K| at step 50, 1.01 at the start", float(ds.adam_norm_W_K.sel(adam_step=50)), 5.35, 0.8, SCRIPT),
        *(
            Feature(f"Adam: attention to {WORDS[n]} at step {step}", float(ds.adam_attention.sel(adam_step=step)[n]), want, spread, SCRIPT)
            for step, n, want, spread in ADAM
        ),
    ]
