# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Associative memory: attention retrieves, or averages
#
# A continuous associative memory stores patterns, the columns of $X$. One update of a state is
# $\xi \leftarrow X\,\mathrm{softmax}(\beta X^\top\xi)$ (Ramsauer et al. 2021, arXiv 2008.02217, eq. 3).

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import lambertw, softmax

import odesim
from odesim.plot import STYLE

FINE = {"save": 2, "rtol": 1e-9, "atol": 1e-12}

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## One update is attention
#
# Keys are the patterns, queries the states, $\beta = 1/\sqrt{d_k}$, and $V = K W_V$. Each query is a member of an ensemble.

# %%
rng = np.random.default_rng(0)
queries, keys = rng.normal(size=(6, 16)), rng.normal(size=(10, 16))
W_V = rng.normal(size=(16, 4))
update = odesim.ensemble(
    "hopfield.update",
    params={"X": keys.T, "beta": 1 / np.sqrt(16)},
    initial={"xi": queries},
    steps=6,
    save=7,
    observe=("p", "energy"),
)
attention = softmax(queries @ keys.T / np.sqrt(16), axis=1)
once = update["xi"].values[:, 1]
np.testing.assert_allclose(once @ W_V, attention @ (keys @ W_V), atol=1e-12)
figure, (left, right) = plt.subplots(1, 2, figsize=(6, 2.3), layout="constrained")
image = left.imshow(update["p"].values[:, 0])
left.set(xlabel="key", ylabel="query", title="softmax of the memory = attention")
figure.colorbar(image, ax=left)
right.plot(update["energy"].values.T, ".-")
right.set(xlabel="updates", ylabel="energy", title="further updates: the energy falls")
plt.show()
np.testing.assert_allclose(update["p"].values[:, 0], attention, atol=1e-14)
assert np.diff(update["energy"].values).max() < 1e-12

# %% [markdown]
# ## Two patterns: a pitchfork
#
# Between two patterns of equal length, at distance $2\delta$, the flow is $\dot u = \tanh(\beta\delta^2 u) - u$ along the line
# that joins them; they are at $u = \pm1$. Below $\beta\delta^2 = 1$ the memory averages, above it retrieves.

# %%
betas = np.linspace(0.3, 3, 55)
ends = {}
for start in (0.05, -0.05):
    run = odesim.ensemble(
        "hopfield.two_patterns",
        params={"beta": betas},
        initial={"u": start},
        span=(0, 2000),
        **FINE,
    )
    ends[start] = run["u"].values[:, -1]
root = [brentq(lambda u, b=b: np.tanh(b * u) - u, 1e-3, 1) for b in betas[betas > 1.01]]
np.testing.assert_allclose(ends[0.05][betas > 1.01], root, atol=1e-7)
np.testing.assert_allclose(ends[0.05][betas < 0.99], 0, atol=1e-7)
np.testing.assert_allclose(ends[-0.05], -ends[0.05], atol=1e-12)
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
axes.plot(betas, ends[0.05], "o", ms=3, label="from u = 0.05")
axes.plot(betas, ends[-0.05], "o", ms=3, label="from u = −0.05")
axes.plot(betas[betas > 1.01], root, "k", lw=0.8, label=r"$u = \tanh(\beta\delta^2 u)$")
axes.set(xlabel=r"$\beta\delta^2$", ylabel="u at the end")
axes.legend(loc="center right")
plt.show()

# %% [markdown]
# ## Many patterns: one, or the average, or both
#
# For $N$ orthogonal patterns the overlaps $z$ obey $\dot z = \mathrm{softmax}(c z) - z$ with $c = \beta |x|^2$: a Potts model.
# The average is stable for $c < N$. A state near one pattern, of overlap $a$, rests where
# $c = \ln\frac{(N-1)a}{1-a} \big/ \left(a - \frac{1-a}{N-1}\right)$; the least such $c$ is $c_s$. Between $c_s$ and $N$ the memory
# keeps what it had: hysteresis.

# %%
N, c = 8, np.linspace(3, 9, 61)


def rest(a):
    return np.log((N - 1) * a / (1 - a)) / (a - (1 - a) / (N - 1))


fold = minimize_scalar(rest, bounds=(0.2, 0.999), method="bounded")
one = np.eye(N)[0]
branches = {}
for name, start in (
    ("from one pattern", one),
    ("from the average", 1 / N + 1e-4 * (one - 1 / N)),
):
    run = odesim.ensemble(
        "hopfield.potts",
        params={"c": c},
        initial={"z": start},
        span=(0, 500),
        **FINE,
    )
    branches[name] = run["z"].values[:, -1, 0]
a = np.linspace(1 / N + 1e-6, 0.9995, 400)
figure, axes = plt.subplots(figsize=(3.7, 2.4), layout="constrained")
for (name, z), mark in zip(branches.items(), ("o", "s"), strict=True):
    axes.plot(c, z, mark, ms=4, mfc="none", label=name)
axes.plot(rest(a), a, "k", lw=0.8, label="where it rests")
axes.axvspan(fold.fun, N, color="grey", alpha=0.15, lw=0, label="both stable")
axes.set(xlabel="c", ylabel="overlap with the pattern", xlim=(3, 9))
axes.legend()
plt.show()
above = c > fold.fun + 0.02
upper = [brentq(lambda x, k=k: rest(x) - k, fold.x, 1 - 1e-9) for k in c[above]]
np.testing.assert_allclose(branches["from one pattern"][above], upper, atol=1e-6)
np.testing.assert_allclose(branches["from one pattern"][~above], 1 / N, atol=1e-5)
np.testing.assert_allclose(branches["from the average"][c < N - 0.2], 1 / N, atol=1e-6)
assert branches["from the average"][c > N + 0.2].min() > 0.99

# %% [markdown]
# ## Metastable averages
#
# Twelve patterns in three groups of four: equal parts $\alpha$ of their squared lengths are common to a group, $b$ is their own.
# The average of all loses its stability at $\beta(4\alpha + b) = 12$, that of a group at $\beta b = 4$. Between, the memory
# answers with the average of a group.

# %%
alpha, b = 1.0, 0.2
X = np.sqrt(alpha) * np.kron(np.eye(3, 15), np.ones((4, 1))).T
X += np.sqrt(b) * np.eye(15, 12, k=-3)
betas = np.geomspace(1, 60, 60)
tilt = X.mean(axis=1) + 1e-3 * X[:, 0]
run = odesim.ensemble(
    "hopfield.modern",
    params={"X": X, "beta": betas},
    initial={"xi": tilt},
    span=(0, 400),
    observe=("entropy",),
    **FINE,
)
used = np.exp(run["entropy"].values[:, -1])
steps = (12 / (4 * alpha + b), 4 / b)
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
axes.semilogx(betas, used, "o", ms=3)
for step in steps:
    axes.axvline(step, color="grey", ls="--", lw=0.8)
axes.set(xlabel=r"$\beta$", ylabel="patterns in use", yticks=(1, 4, 12))
plt.show()
for low, high, number in ((0, steps[0], 12), (6, steps[1], 4), (30, 99, 1)):
    inside = (betas > 1.01 * low) & (betas < 0.98 * high)
    np.testing.assert_allclose(used[inside], number, rtol=0.05)

# %% [markdown]
# ## Capacity
#
# The memory keeps many more patterns than it has dimensions. Theorem 5 bounds the error of one update by
# $2(N-1)M e^{-\beta(\Delta - 2rM)}$: $M$ is the length of a pattern, $\Delta$ its square less the largest product with another
# one, $r$ the distance of the pattern $x$ from the start or from where updates end.

# %%
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
counts = (100, 1000, 10000)
for d in (8, 16, 24):
    medians, M = [], np.sqrt(d)
    for N in counts:
        X = rng.normal(size=(d, N))
        X *= M / np.linalg.norm(X, axis=0)
        x = X[:, :40].T
        near = x + 0.05 * rng.normal(size=x.shape)
        run = odesim.ensemble(
            "hopfield.update",
            params={"X": X, "beta": 1.0},
            initial={"xi": near},
            steps=30,
            save=[1, 30],
        )
        start, once, last = (
            np.linalg.norm(xi - x, axis=1)
            for xi in (near, run["xi"].values[:, 0], run["xi"].values[:, 1])
        )
        Delta = d - np.sort(x @ X, axis=1)[:, -2]
        bound = np.exp(-(Delta - 2 * np.maximum(start, last) * M)) * 2 * (N - 1) * M
        assert np.all(once <= bound)
        medians.append(np.median(once) / M)
    axes.loglog(counts, medians, "o-", label=f"d = {d}")
axes.set(xlabel="patterns N", ylabel="relative error of one update")
axes.legend()
plt.show()

# %% [markdown]
# Theorem 3 states a capacity of $\sqrt{p}\,C^{(d-1)/4}$ patterns. Its two constants come back from Lambert's $W$.


# %%
def base(K, d, p=0.001, beta=1.0):
    a = 2 / (d - 1) * (1 + np.log(2 * beta * K**2 * p * (d - 1)))
    b = 2 * K**2 * beta / 5
    return (b / lambertw(np.exp(a + np.log(b)))).real


print(
    f"C = {base(3, 20):.4f} for K = 3, d = 20, and {base(1, 75):.4f} for K = 1, d = 75"
)
np.testing.assert_allclose([base(3, 20), base(1, 75)], [3.1546, 1.3718], atol=1e-4)
