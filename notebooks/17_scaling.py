# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Scaling laws, words, and saddles
#
# Four models in which one can say on paper what is learned when: SGD on power laws (Paquette et al. 2024, arXiv 2405.15074),
# word embeddings of a text (Karkada et al. 2025, arXiv 2502.09863), one direction in many dimensions (Ben Arous et al. 2021,
# arXiv 2003.10409), and a diagonal network that goes from saddle to saddle (Pesme and Flammarion 2023, arXiv 2304.00488).

# %%
import re
from collections import Counter
from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np

import odesim
from odesim.plot import STYLE

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## Two exponents
#
# Inputs have variances $j^{-2a}$, the target has squared coefficients $j^{-2b}$. Without the noise of SGD the risk falls as
# $t^{-r}$, $r = (2a + 2b - 1)/(2a)$; what the noise adds falls as $t^{-(2 - 1/(2a))}$. The slower one is seen late.

# %%
times = np.logspace(0, 4, 41)
figure, axes = plt.subplots(figsize=(3.6, 2.4), layout="constrained")
for a, b in ((1.0, 0.6), (0.8, 1.2)):
    run = odesim.integrate(
        "scaling.sgd",
        params={"a": a, "b": b, "g": 0.3, "s2": 0},
        sizes={"n": 2000},
        span=(0, 1e4),
        save=np.append(0, times),
        method="rodas5p",
    )
    R = run.observables["R"][1:]
    exponents = {"target": (2 * a + 2 * b - 1) / (2 * a), "noise": 2 - 1 / (2 * a)}
    found = -np.log10(R[-1] / R[-11])
    print(f"a = {a}, b = {b}: {found:.3f}, theory {exponents}")
    assert abs(found - min(exponents.values())) < 0.04
    axes.loglog(times, R, label=f"a = {a}, b = {b}")
axes.set(xlabel="steps", ylabel="risk")
axes.legend()
plt.show()

# %% [markdown]
# SGD itself, sample by sample, has these moments exactly as a map, `scaling.sgd_steps`. For one sample a step the flow is its
# limit to second order in the learning rate.

# %%
gaps = []
for g in (0.1, 0.05, 0.025):
    given = {"params": {"g": g}, "sizes": {"n": 100}, "save": 2}
    steps = odesim.integrate("scaling.sgd_steps", steps=round(1 / g), **given)
    flow = odesim.integrate("scaling.sgd", span=(0, round(1 / g)), rtol=1e-9, **given)
    gaps.append(steps.final_observables["R"] - flow.final_observables["R"])
orders = np.log2(np.array(gaps[:-1]) / gaps[1:])
print("orders", orders.round(2))
np.testing.assert_allclose(orders, 2, atol=0.2)

# %% [markdown]
# ## What word embeddings learn of Python's help
#
# The text of `help()` comes with Python. We count how often two of its 150 commonest words stand within eight words of each
# other, `P`. To second order word2vec then learns the eigenvectors of $M = 2 (P - pp)/(P + pp)$ with positive eigenvalues, the
# largest first.

# %%
text = " ".join(topics[name] for name in sorted(topics)).lower()
words = re.findall(r"[a-z_]+", text)
small = """the and that for are this with not from can may when will has have its any but into must
than been was also such only all more use used using see other then each these one does same
which"""
common = [w for w, _ in Counter(words).most_common(400) if w not in set(small.split())]
vocabulary = [w for w in common if len(w) > 2][:150]
place = {w: n for n, w in enumerate(vocabulary)}
ids = np.array([place.get(w, -1) for w in words])
counts = np.zeros((150, 150))
for gap in range(1, 9):
    first, second = ids[:-gap], ids[gap:]
    both = (first >= 0) & (second >= 0)
    np.add.at(counts, (first[both], second[both]), 1)
counts += counts.T
P = counts / counts.sum()

alone = np.outer(P.sum(axis=1), P.sum(axis=1))
M = 2 * (P - alone) / (P + alone)
m, U = np.linalg.eigh(M)
m, U = m[::-1], U[:, ::-1]
for k in range(5):
    order = np.argsort(U[:, k])
    ends = [
        ", ".join(vocabulary[n] for n in side) for side in (order[:-8:-1], order[:7])
    ]
    print(f"{m[k]:5.1f}  {ends[0]}\n       {ends[1]}")

# %% [markdown]
# From small random vectors in ten dimensions each direction is learned by itself, as a sigmoid that its projection at the start
# and its eigenvalue give. Ten eigenvalues are all that ten dimensions hold.

# %%
W0 = 1e-4 * np.random.default_rng(1).normal(size=(150, 10))
times = np.linspace(0, 0.6, 241)
run = odesim.integrate(
    "scaling.word2vec",
    params={"P": P, "W0": W0},
    sizes={"V": 150, "d": 10},
    span=(0, 0.6),
    save=times,
    rtol=1e-8,
    atol=1e-12,
    backend="numpy",
)
learned = np.linalg.eigvalsh(run.observables["gram"])[:, ::-1]
np.testing.assert_allclose(learned[-1], m[:10], rtol=0.01)
figure, axes = plt.subplots(figsize=(3.6, 2.4), layout="constrained")
axes.plot(times, learned, lw=1)
s0 = (U[:, 0] @ W0) @ (U[:, 0] @ W0)
sigmoid = m[0] / (1 + (m[0] / s0 - 1) * np.exp(-4 * m[0] * times))
axes.plot(times, sigmoid, "k--", lw=0.7, label="theory, the first")
axes.set(xlabel="t", ylabel=r"eigenvalues of $W W^\top$")
axes.legend()
plt.show()
half = np.array([times[np.argmax(learned[:, k] > m[k] / 2)] for k in range(10)])
print("half learned at", half.round(3))
assert np.abs(learned[:, 0] - sigmoid).max() < 0.5 and half[0] == half.min()

# %% [markdown]
# ## Leaving the equator
#
# A unit vector in $d$ dimensions starts with an overlap of $d^{-1/2}$ with what it should find. With information exponent $k$
# it waits a time of order $1$, $\ln d$, or $d^{(k-2)/2}$.

# %%
for k in (2, 3, 4):
    waits = []
    for d in (1e2, 1e4):
        run = odesim.integrate(
            "scaling.single_index", params={"k": k, "d": d}, span=(0, 1300), save=2
        )
        waits.append(run.events["half way"][0]["t"])
    print(f"k = {k}: {waits[0]:.3f}, {waits[1]:.3f}")
    law = (np.log(1e2) / 4) if k == 2 else 1e2 ** ((k - 2) / 2)
    grown = waits[1] - waits[0] if k == 2 else waits[1] / waits[0]
    assert abs(grown / law - 1) < 0.2

# %% [markdown]
# ## From saddle to saddle
#
# With $\beta = (u^2 - v^2)/2$ and a start of size $\alpha$ the loss falls in steps at times that an algorithm gives from the
# data; the smaller $\alpha$, the sharper. In `scaling.mirror` a start of $10^{-60}$ is a number like others.

# %%
G = [[1, 0.6, 0.3], [0.6, 1, 0.2], [0.3, 0.2, 1]]
jumps = np.array([1.098901, 1.565996, 6.314433])
figure, axes = plt.subplots(figsize=(3.6, 2.4), layout="constrained")
for alpha, style in ((1e-5, "-"), (1e-60, ":")):
    run = odesim.integrate(
        "scaling.mirror",
        params={"G": G, "c": [0.91, 0.3, 0.72], "alpha": alpha},
        span=(0, 8),
        save=1601,
        method="rodas5p",
    )
    beta = run.observables["beta"]
    for i in range(3):
        axes.plot(run.t, beta[:, i], style, color=f"C{i}")
    moving = run.t[np.argmax(beta[:, 1] < -0.2)]
    print(f"alpha = {alpha:g}: the last coefficient is half learned at {moving:.3f}")
    assert abs(moving - jumps[2]) < 2.5 / np.log(1 / alpha)
for jump in jumps:
    axes.axvline(jump, color="grey", lw=0.5)
axes.set(xlabel=r"$t / \ln(1/\alpha)$", ylabel=r"$\beta$")
plt.show()

# %% [markdown]
# What the papers state of these models, and whether it holds: `odesim verify scaling`.
