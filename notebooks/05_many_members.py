# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A million members, and a phase diagram
#
# `odesim.ensemble` integrates many members at once, each with its own numbers and its own steps, in the vector lanes of a
# processor. The result is an xarray Dataset.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import erfinv

import odesim
from odesim.plot import STYLE

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## A million blow-up problems
#
# Each member of `joma.linear` has its own saliency $\Delta$, drawn by the seed and the member's number. The members' bits
# do not depend on `threads`.

# %%
members = odesim.ensemble(
    "joma.linear",
    vary={"Delta": "uniform(0.1,0.9)"},
    members=1_000_000,
    sizes={"M": 1},
    span=(0, 1),
    observe=(),
    threads=2,
)
print(dict(members.sizes), np.unique(members["status"], return_counts=True))
v = members["v"].values[:, -1, 0]
exact = np.sqrt(2) * erfinv(np.sqrt(2 / np.pi) * members["Delta"].values[:, 0])
print(f"largest error {np.abs(v - exact).max():.1e}")
assert np.abs(v - exact).max() < 1e-4

# %%
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
axes.hist(v, bins=100)
axes.set(xlabel="v at t = 1", ylabel="members")
plt.show()

# %% [markdown]
# ## A phase diagram: where the entropy bounces
#
# `grid` takes all combinations. How far does the entropy of attention fall below its end, for two components with rest
# points $\mu_1$ and $\mu_2$?

# %%
top, second = np.meshgrid(
    np.linspace(0.25, 2.5, 46), np.linspace(0.25, 2.5, 46), indexing="ij"
)
mu = np.stack([top.ravel(), second.ravel()], axis=1)
grid = odesim.ensemble(
    "joma.nonlinear",
    params={"mu": mu},
    initial={"v": 0.01},
    span=(0, 12),
    save=601,
    observe=("entropy",),
)
entropy = grid["entropy"].values
depth = (entropy[:, -1] - entropy.min(axis=1)).reshape(top.shape)

# %%
figure, axes = plt.subplots(figsize=(3.1, 2.5), layout="constrained")
image = axes.pcolormesh(top, second, np.maximum(depth, 1e-7), norm="log")
axes.set(
    xlabel=r"$\mu_1$", ylabel=r"$\mu_2$", title="depth of the bounce", aspect="equal"
)
figure.colorbar(image, label="end − least entropy")
plt.show()

# %% [markdown]
# The diagram is symmetric, and equal rest points give no bounce: the components stay equal.

# %%
np.testing.assert_allclose(depth, depth.T, atol=1e-6)
assert np.abs(np.diag(depth)).max() < 1e-9
assert depth[-1, 21] > 0.02

# %% [markdown]
# On disk the same is `out="many.zarr"`: chunks are stored as they finish, `odesim resume` goes on after an interruption and
# ends with the same bits, and `--shard 1/2`, `--shard 2/2` share a run between processes.
