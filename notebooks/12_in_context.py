# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # What attention learns in context
#
# Linear attention is shown pairs $(x_n, w \cdot x_n)$ of a task $w$ that is new in each prompt, and must answer for one more
# input. How it learns to do so depends on how keys and queries are parametrised (Zhang, Singh, Latham, Saxe 2025, arXiv
# 2501.16265). Then a layer that must find the one token that matters (Marion et al. 2025, arXiv 2410.01537), and one that
# learns a Markov chain or does not (Makkuva et al. 2024, arXiv 2406.03072).

# %%
import matplotlib.pyplot as plt
import numpy as np

import odesim
from odesim.plot import STYLE

FINE = {"rtol": 1e-9, "atol": 1e-13}

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## The loss, exactly
#
# With inputs of variances $\lambda_d$ and prompts of $N$ pairs the prediction is $\beta^\top W x_q$, $\beta = \frac1N \sum_n y_n
# x_n$. Its mean squared error is least at $W = 1/\Gamma$, $\Gamma_d = (1 + 1/N)\lambda_d + \mathrm{tr}/N$. With only the
# components of a set $S$ learned it is $\mathrm{tr} - \sum_S \lambda_d^2/\Gamma_d$.

# %%
lam, N = np.array([0.4, 0.3, 0.2, 0.1]), 31
Gamma = (1 + 1 / N) * lam + lam.sum() / N
levels = lam.sum() - np.append(0, np.cumsum(lam**2 / Gamma))

rng = np.random.default_rng(0)
x = rng.normal(size=(100_000, N, 4)) * np.sqrt(lam)
w = rng.normal(size=(100_000, 4))
beta = np.einsum("pnd,pne,pe->pd", x, x, w) / N
errors = ((w - beta / Gamma) ** 2) @ lam  # the query's mean on paper
assert abs(errors.mean() - levels[-1]) < 4 * errors.std() / 100_000**0.5
print(
    "levels:", levels.round(4), "and the last one by sampling:", errors.mean().round(4)
)

# %% [markdown]
# ## One drop, or one a component
#
# Five heads from small random weights. With key and query merged, $W = \sum_h v_h U_h$, the flow rests at $W = 0$ and at the
# minimum alone. With a key and a query of rank one, $W = \sum_h v_h k_h q_h^\top$, there is a saddle for each set of components.

# %%
times = np.geomspace(1, 4e4, 400)
rng = np.random.default_rng(1)
starts = {
    "merged": {"v": (5,), "U": (5, 4, 4)},
    "separate": {"v": (5,), "k": (5, 4), "q": (5, 4)},
}
figure, axes = plt.subplots(figsize=(4.0, 2.5), layout="constrained")
for level in levels:
    axes.axhline(level, color="grey", lw=0.5)
for kind, shapes in starts.items():
    run = odesim.integrate(
        f"in_context.{kind}",
        sizes={"H": 5},
        initial={name: 5e-3 * rng.normal(size=shape) for name, shape in shapes.items()},
        span=(0, times[-1]),
        save=np.append(0, times),
        **FINE,
    )
    loss = run.observables["loss"][1:]
    axes.semilogx(times, loss, label=kind)
    stays = np.array([(np.abs(loss - level) < 2e-3).mean() for level in levels[1:-1]])
    print(kind, "share of ln t at the three plateaus between:", stays.round(3))
    assert np.all(stays > 0.01) if kind == "separate" else np.all(stays < 0.01)
axes.set(xlabel="t", ylabel="mean squared error")
axes.legend()
plt.show()

# %% [markdown]
# How long does the first plateau last? Merged weights grow exponentially at first: $\ln(1/\epsilon)$. Separate ones grow by a
# product of three, $a' = 2\lambda^2 a^2$: the time is $1/(2\lambda^2 a_0)$.

# %%
for a0 in (1e-2, 1e-3):
    run = odesim.integrate(
        "in_context.separate", params={"a0": a0}, span=(0, 110 / a0), save=2, **FINE
    )
    waits = np.array([event["t"] for event in run.events["learned"]])
    print(f"a0 = {a0:g}: half learned at", waits.round(1))
    np.testing.assert_allclose(waits * 2 * lam**2 * a0, 1, atol=2 * a0)

# %% [markdown]
# ## Beside a training
#
# `odesim.compare` trains the heads by SGD on drawn prompts, and integrates the flow from the same weights.

# %%
comparison = odesim.compare(
    "in_context.separate", task="in_context", seeds=(0,), steps=1500, save=151
)
figure, axes = plt.subplots(figsize=(4.0, 2.3), layout="constrained")
axes.plot(comparison.t, comparison.training["loss"][0], label="SGD, batches of 128")
axes.plot(comparison.t, comparison.theory["loss"][0], "--", label="flow")
axes.set(xlabel="t", ylabel="mean squared error")
axes.legend()
plt.show()
off = np.abs(comparison.training["loss"] - comparison.theory["loss"]).mean()
print("mean distance of the losses:", off.round(4))
assert off < 0.03

# %% [markdown]
# ## One token in ten tells the label
#
# $\kappa$ says how well attention looks for the token that matters, $\nu$ how well it is read. Near 0 is a saddle; the side of
# its stable line decides between $(1, 1)$ and $(-1, -1)$, which are the same predictor.

# %%
angle = 2 * np.pi * (np.arange(20) + 0.5) / 20
runs = odesim.ensemble(
    "in_context.single_location",
    initial={"kappa": 0.3 * np.cos(angle), "nu": 0.3 * np.sin(angle)},
    span=(0, 80),
    save=np.append(0, np.geomspace(0.01, 80, 80)),
)
figure, axes = plt.subplots(figsize=(2.8, 2.6), layout="constrained")
axes.plot(runs.kappa.T, runs.nu.T, lw=0.8)
axes.set(xlabel=r"$\kappa$", ylabel=r"$\nu$", aspect="equal")
plt.show()
ends = runs.isel(time=-1)
assert int((ends.nu > 0.99).sum()) == int((ends.nu < -0.99).sum()) == 10
assert np.all(ends.kappa * np.sign(ends.nu) > 0.97)

# %% [markdown]
# ## A Markov chain, learned or not
#
# An embedding $e$ and one weight $w$ of attention, on chains that go from 0 to 1 with probability $p$ and back with $q$. From
# the same small start the bigram is learned for $p + q < 1$; for $p + q > 1$ the layer stays at the unigram.

# %%
figure, axes = plt.subplots(figsize=(3.6, 2.3), layout="constrained")
for (p, q), want in (((0.2, 0.3), "bigram"), ((0.5, 0.8), "unigram")):
    run = odesim.integrate(
        "in_context.markov", params={"p": p, "q": q}, save=201, **FINE
    )
    pi1 = p / (p + q)
    h = {x: -x * np.log(x) - (1 - x) * np.log(1 - x) for x in (p, q, pi1)}
    ends = {"unigram": h[pi1], "bigram": (1 - pi1) * h[p] + pi1 * h[q]}
    loss = run.observables["loss"]
    np.testing.assert_allclose(loss[-1], ends[want], atol=1e-9)
    label = f"p = {p}, q = {q}: {want}"
    axes.plot(run.t, loss - ends["bigram"], label=label)
axes.set(xlabel="t", ylabel="loss over the bigram's", xlim=(0, 60))
axes.legend()
plt.show()
