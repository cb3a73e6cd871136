# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A real text: what learns first, and what is only the null
#
# Theories of attention assume documents of topics, infinite contexts, gradient flow. Here a small transformer learns a real
# text, Python's help, with hidden tokens (Li et al. 2023, arXiv 2303.04245, for topics) and with next tokens (Tian et al. 2023,
# arXiv 2305.16380, for sparse attention). Three questions: do values learn before attention, do words of a topic come together,
# and is the first token a sink?

# %%
import matplotlib.pyplot as plt
import numpy as np

import odesim
from odesim.lab.networks.text import WordTopics
from odesim.lab.tasks.corpus import encode, pydoc_topics
from odesim.plot import STYLE

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## Topics of a text
#
# The text has no labels. Its chunks of 200 tokens are rows of counts $X = \ln(1 + \text{count})$, and $X \approx W H$ with
# nonnegative factors (Lee and Seung 2001): a row of $H$ says which words go together. A word belongs to the factor that
# explains more than half of it.

# %%
corpus = encode(pydoc_topics(), 800)
topics = WordTopics(corpus.words, corpus.ids)
for topic in range(8):
    words = [corpus.words[i] for i in np.flatnonzero(topics.of == topic)]
    print(len(words), " ".join(words[:8]))
print(
    f"{(topics.of >= 0).sum()} of {len(topics.candidates)} words that could have a topic"
)
assert (topics.of >= 0).sum() > len(topics.candidates) / 3

# %% [markdown]
# ## Values first?
#
# In `topics.full`, from small weights, values are learned while attention is still uniform: the gradient of $W_K$ holds $W_Q$,
# which is small, and the other way round. That is an argument on gradients. SGD follows it. Adam divides each entry of the
# gradient by its own size: at first every weight moves by the rate, however small its gradient is.

# %%
masked = {"objective": "masked", "vocabulary": 300, "length": 24, "batch": 16}
masked |= {"width": 32, "mlp": 64, "layers": 1, "start": "normal"}
given = {"model": "transformer", "dtype": "float32", "observe": ("attention_norm",)}
runs = {
    "SGD": odesim.train(
        "corpus",
        settings={**masked, "optimizer": "sgd", "lr": 0.3},
        steps=500,
        save=51,
        **given,
    ),
    "Adam": odesim.train("corpus", settings=masked, steps=200, save=51, **given),
}
figure, axes = plt.subplots(1, 2, figsize=(5.2, 2.3), layout="constrained")
lead = {}
for ax, (name, run) in zip(axes, runs.items(), strict=True):
    norms = run.observables["attention_norm"][0, :, 0]  # (time, queries keys values)
    grown = 100 * (norms / norms[0] - 1)
    for part, look, row in zip(
        ("queries", "keys", "values"), ("--", ":", "-"), grown.T, strict=True
    ):
        ax.plot(run.t, row, look, label=part)
    ax.set(xlabel="step", title=name)
    lead[name] = float(grown[-1, 2] / grown[-1, :2].max())
axes[0].set_ylabel("growth of the norm in %")
axes[0].legend()
plt.show()
print("growth of values over that of queries or keys, at the end:")
print({name: round(x, 2) for name, x in lead.items()})
assert lead["SGD"] > 1.5 and lead["Adam"] < 0.8

# %% [markdown]
# So *two stages* of norms is a statement on SGD. The claim `topics.values_first_on_text` has it by heads.
#
# ## Do words of a topic come together?
#
# Stored runs of some minutes say so, those of the figure `topics_text`: by Adam embeddings of words of one topic come together,
# and attention of the first layer looks a sixth more at words of the same topic; the second layer does not. What chance gives
# is known: the same words, with topics in random orders.

# %%
from odesim.plot.figures import load_figure

stored = load_figure("topics_text").data(fast=True)
cosines = stored["cosine_Adam"].mean("seed")
attention = stored["attention"].sel(optimizer="Adam")
null = attention.isel(labels=slice(1, None))
above = (attention.isel(labels=0) - null.mean("labels")) / null.std("labels")
figure, axes = plt.subplots(1, 2, figsize=(5.2, 2.3), layout="constrained")
for pair, look in (("same", "-"), ("different", "--")):
    axes[0].plot(cosines.late_Adam, cosines.sel(pair=pair), look, label=f"{pair} topic")
axes[0].set(xlabel="step", ylabel="cosine of embeddings")
axes[0].legend()
for layer, color in enumerate(("C0", "C1")):
    random, ours = null[:, :, layer].values.ravel(), attention[:, 0, layer]
    name = f"layer {layer + 1}"
    axes[1].hist(random, color=color, alpha=0.4, label=f"{name}, random topics")
    axes[1].plot(ours, [1 + layer] * 2, "o", color=color, label=name)
axes[1].set_ylim(0, 20)
axes[1].set(xlabel="attention, one topic over two")
axes[1].legend()
plt.show()
print("deviations above random topics, by seed and layer:", above.values.round(1))
assert (
    float(cosines.sel(pair="same")[-1])
    > 0.1
    > 0
    > float(cosines.sel(pair="different")[-1])
)
assert (above[:, 0] > 2).all() and (abs(above[:, 1]) < 2).all()

# %% [markdown]
# ## Is the first token a sink?
#
# Large models give much attention to the first tokens (Xiao et al. 2023, arXiv 2309.17453), and most of it to few (Zhang et
# al. 2023, arXiv 2306.14048). But so does attention that looks at nothing: of $T$ queries, query $t$ sees $t$ keys, and gives
# each $1/t$. The first key gets $H_T / T$, the fifth of the keys with most of it about half of all.

# %%
T = 35
even = np.cumsum(1 / np.arange(T, 0, -1))[::-1] / T
print(f"even attention: first {even[0]:.4f}, most fifth {even[: T // 5].sum():.4f}")
assert abs(even[0] - 0.118479) < 1e-6 and abs(even[: T // 5].sum() - 0.510785) < 1e-6
run = odesim.train(
    "corpus",
    model="transformer",
    settings={
        "vocabulary": 300,
        "length": T,
        "batch": 16,
        "width": 32,
        "mlp": 64,
        "layers": 1,
        "optimizer": "sgd",
        "lr": 5.0,
        "clip": 0.25,
    },
    steps=300,
    save=2,
    dtype="float32",
)
for name in ("attention_first", "attention_heavy", "attention_sparse"):
    print(name, run.final[name][0, 0].round(3))
assert (run.final["attention_first"] < even[0]).all()

# %% [markdown]
# No sink at this size: training takes attention away from the first token, as its heads look at near places. Three
# layers, with norms after attention and MLP, are in the claims `scan_snap.sinks_on_text` and `scan_snap.sparse_on_text`; Adam is in
# the figure `scan_snap_sinks`.
