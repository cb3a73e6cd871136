# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Masked sampling: how fast, and to which law
#
# A masked language model generates by redrawing $k$ masked tokens given the others, again and again (Li et al. 2024, arXiv
# 2407.21046). `gibbs.master` follows the law of the whole sequence. The target is a law of $n$ signs,
# $p(x) \propto \exp(J\sum_{i<j} x_i x_j)$.

# %%
from itertools import combinations, product
from math import comb

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq
from scipy.stats import entropy

import odesim
from odesim.plot import STYLE

FINE = {"rtol": 1e-10, "atol": 1e-13}

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## The sampler by hand
#
# Masked tokens are drawn from $p$ given the others: together, as the paper's sampler does, or each by itself, as a decoder
# does that fills all masks at once.


# %%
def signs(n, J):
    x = np.array(list(product((-1, 1), repeat=n)))
    weight = np.exp(J * (x.sum(axis=1) ** 2 - n) / 2)
    return x, weight / weight.sum()


def sampler(x, p, k, *, together=True):
    n, P = x.shape[1], np.zeros((len(p), len(p)))
    for masked in combinations(range(n), k):
        kept = np.delete(x, masked, axis=1)
        alike = (kept[:, None] == kept[None]).all(axis=2)  # the same but for masks
        within = alike * p / (alike @ p)[:, None]
        if not together:
            means = within @ x[:, masked]  # of each masked sign by itself
            chance = (1 + means[:, None] * x[None][:, :, masked]) / 2
            within = alike * chance.prod(axis=2)
        P += within / comb(n, k)
    return P


def gap(P):
    return 1 - np.sort(np.linalg.eigvals(P).real)[-2]


# %% [markdown]
# ## The gap is the rate
#
# From all tokens $-1$, the distance to the target falls, at late times at the rate of the gap between the two largest
# eigenvalues. Masking more tokens at once is faster, also per token.

# %%
x, p = signs(6, 0.3)
P = {k: sampler(x, p, k) for k in range(1, 7)}
gaps = np.array([gap(P[k]) for k in P])
figure, axes = plt.subplots(figsize=(3.7, 2.4), layout="constrained")
for k in (1, 2, 4):
    run = odesim.integrate(
        "gibbs.master",
        params={"k": k},
        span=(0, 800),
        save=801,
        backend="numpy",
        **FINE,
    )
    np.testing.assert_allclose(run.attrs["params"]["Q"], P[k] - np.eye(64), atol=1e-13)
    TV = run.observables["TV"]
    axes.semilogy(run.t, TV, label=f"k = {k}: gap {gaps[k - 1]:.4f}")
    late = int(6 / gaps[k - 1])
    slope = np.log(TV[late] / TV[late + 50]) / 50
    np.testing.assert_allclose(slope, gaps[k - 1], rtol=1e-3)
axes.set(xlabel="redraws", ylabel="total variation to p", ylim=(1e-4, 1), xlim=(0, 800))
axes.legend()
plt.show()
print("gap of k = 1 to 6 masked tokens:", gaps.round(4))
assert np.all(np.diff(gaps / np.arange(1, 7)) > 0)
np.testing.assert_allclose(
    [gap(sampler(*signs(6, 0.0), k)) for k in (1, 3)], [1 / 6, 1 / 2]
)  # independent tokens: k/n

# %% [markdown]
# ## Strong correlations: stuck in a mode
#
# `gibbs.lumped` follows the number of ones alone, for many tokens. All pairs interact with $J = b/n$. For $b < 1$ the gap is
# about $(1 - b)/n$. For $b > 1$ the law has two modes, and a sampler that starts in one finds the other only after a time
# $e^{n\Delta F}$, with the barrier $\Delta F$ of mean-field theory.

# %%
figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.3), layout="constrained")
slow = {}
for b in (0.5, 1.0, 1.5):
    slow[b] = []
    for n in (16, 32, 64, 128):
        run = odesim.integrate(
            "gibbs.lumped",
            sizes={"n": n},
            params={"b": b},
            span=(0, 1e-3),
            save=2,
            backend="numpy",
        )
        m = np.arange(n)  # by hand: from m ones to m + 1, and back
        odds = np.exp(2 * b / n * (2 * m + 1 - n))
        up, down = (n - m) / n * odds / (1 + odds), (m + 1) / n / (1 + odds)
        Q = np.diag(up, 1) + np.diag(down, -1)
        Q -= np.diag(Q.sum(axis=1))
        np.testing.assert_allclose(run.attrs["params"]["Q"], Q, atol=1e-12)
        sym = np.diag(np.diag(Q)) + np.diag(np.sqrt(up * down), 1)
        slow[b].append(-np.linalg.eigvalsh(sym.T)[-2])
    axes[0].loglog((16, 32, 64, 128), np.array(slow[b]), "o-", label=f"b = {b:g}")
axes[0].set(xlabel="tokens n", ylabel="gap")
axes[0].set_xticks((16, 32, 64, 128), (16, 32, 64, 128))
axes[0].minorticks_off()
axes[0].legend()
np.testing.assert_allclose(128 * slow[0.5][-1], 0.5, rtol=0.02)
m = brentq(lambda m: m - np.tanh(1.5 * m), 0.5, 1)  # a mode, and the way out of it
barrier = entropy([(1 - m) / 2, (1 + m) / 2]) - np.log(2) + 0.75 * m**2
np.testing.assert_allclose(np.log(slow[1.5][2] / slow[1.5][3]) / 64, barrier, rtol=0.1)
for b, place in ((0.5, axes[1]), (1.5, axes[2])):
    run = odesim.integrate(
        "gibbs.lumped",
        sizes={"n": 32},
        params={"b": b},
        span=(0, 1e5),
        save="log:150",
    )
    place.pcolormesh(run.t[1:], np.arange(33), run.y["pi"][1:].T, vmax=0.25)
    place.set(xscale="log", xlabel="redraws", ylabel="ones", title=f"b = {b:g}")
plt.show()

# %% [markdown]
# ## All masks at once: another law
#
# `gibbs.parallel` draws each masked token by itself. With one mask nothing changes; with more it ends at a law that is not
# $p$. For two signs of correlation $\rho$ the distance is $|\rho|/2$.

# %%
x, p = signs(4, 0.4)
figure, axes = plt.subplots(figsize=(3.7, 2.4), layout="constrained")
for k in (1, 2, 3, 4):
    run = odesim.integrate(
        "gibbs.parallel",
        params={"J": 0.4, "k": k},
        span=(0, 300),
        save=301,
        backend="numpy",
        **FINE,
    )
    kernel = sampler(x, p, k, together=False)
    values, vectors = np.linalg.eig(kernel.T)
    kept = vectors[:, values.real.argmax()].real
    wrong = abs(kept / kept.sum() - p).sum() / 2
    np.testing.assert_allclose(run.observables["TV"][-1], wrong, atol=1e-5)
    axes.plot(run.t, run.observables["TV"], label=f"k = {k}: ends {wrong:.3f} off")
axes.set(xlabel="redraws", ylabel="total variation to p", xlim=(0, 100))
axes.legend()
plt.show()
rho = 0.6
two = np.array([1 + rho, 1 - rho, 1 - rho, 1 + rho]) / 4
run = odesim.integrate(
    "gibbs.parallel", params={"p": two, "k": 2}, sizes={"S": 4}, span=(0, 60), **FINE
)
np.testing.assert_allclose(run.observables["TV"][-1], rho / 2, atol=1e-9)

# %% [markdown]
# ## Masking more teaches more
#
# `gibbs.training_flow` trains $p_\theta \propto e^{\theta\cdot F}$, with a field for each sign and a coupling for each pair, to
# predict $k$ masked tokens. Near the truth the error falls at the least eigenvalue of the information $I_k$ of a masked
# sample, the mean covariance of $F$ given the tokens that are seen. It never falls with $k$, and $I_k \ge \mathrm{gap}_k I$: what
# mixes fast is learned well.

# %%
x, p = signs(4, 0.2)
F = np.c_[x, [[a * b for a, b in combinations(row, 2)] for row in x]]
full = np.cov(F.T, aweights=p, bias=True)
I, figure = {}, plt.figure(figsize=(3.7, 2.4), layout="constrained")
for k in (1, 2, 3, 4):
    I[k] = F.T @ (p[:, None] * (F - sampler(x, p, k) @ F))
    rates, ways = np.linalg.eigh(I[k])
    run = odesim.integrate(
        "gibbs.training_flow",
        params={"k": k},
        sizes={"N": comb(4, k) * 2 ** (4 - k), "R": 2**k},
        initial={"theta": np.repeat([0, 0.2], [4, 6]) + 1e-3 * ways[:, 0]},
        span=(0, 20),
        save=41,
        backend="numpy",
        **FINE,
    )
    error = run.observables["error"]
    np.testing.assert_allclose(np.log(error[0] / error[-1]) / 20, rates[0], rtol=2e-3)
    assert np.linalg.eigvalsh(I[k] - gap(sampler(x, p, k)) * full)[0] > -1e-12
    assert k == 1 or np.linalg.eigvalsh(I[k] - I[k - 1])[0] > -1e-12
    plt.semilogy(
        run.t, error, "--" if k == 4 else "-", label=f"k = {k}: {rates[0]:.3f}"
    )
np.testing.assert_allclose(I[4], full, atol=1e-12)
plt.gca().set(xlabel="t", ylabel="distance from the truth")
plt.legend(title="masked, and rate")
plt.show()
