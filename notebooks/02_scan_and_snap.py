# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Scan & Snap: from a table of counts to frozen attention
#
# A one-layer transformer learns which context tokens tell the next token (Tian, Wang, Chen, Du 2023, arXiv 2305.16380).
# `scan_snap.full` is its gradient flow for infinite contexts. Its input is a table `P[n, l]`: how often token `l` stands
# before next token `n`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import odesim
from odesim.plot import STYLE

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## A table: common tokens and tokens of one class
#
# Two classes. Ten tokens are common to both; ten more belong to each class, of rising frequency.

# %%
common, own = np.ones(10), np.arange(1, 11) / 10
P = np.zeros((2, 30))
P[0] = np.concatenate([common, own, 0 * own])
P[1] = np.concatenate([common, 0 * own, own])
P /= P.sum(axis=1, keepdims=True)
flow = odesim.integrate(
    "scan_snap.full", params={"P": P, "M": 34.0}, span=(0, 1000), save="log:300"
)

# %%
c = flow.observables["c"][:, 0]  # attention of class 0 over the 30 tokens
figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.1), layout="constrained")
image = axes[0].pcolormesh(
    np.arange(31) - 0.5,
    np.append(flow.t, 2 * flow.t[-1] - flow.t[-2]),
    c[:, :],
    shading="flat",
)
axes[0].set(
    yscale="symlog",
    xlabel="token",
    ylabel="t (SGD steps)",
    title="attention of class 0",
    xlim=(-0.5, 19.5),
)
figure.colorbar(image, ax=axes[0], label="attention")
axes[1].semilogx(flow.t[1:], flow.observables["entropy"][1:, 0])
axes[1].set(xlabel="t (SGD steps)", title="entropy of attention")
axes[2].loglog(flow.t[1:], flow.observables["loss"][1:])
axes[2].set(xlabel="t (SGD steps)", title="loss")
plt.show()

# %% [markdown]
# **Scan**: common tokens lose attention, the most frequent distinct token wins. **Snap**: the change of attention slows
# down by orders of magnitude once the decoder has learned.

# %%
assert c[-1, :10].sum() < 0.8 * c[0, :10].sum()
assert c[-1].argmax() == 19
early, late = (
    abs(c[flow.t.searchsorted(b)] - c[flow.t.searchsorted(a)]).max() / (b - a)
    for a, b in ((2, 12), (500, 900))
)
print(f"attention moves {early / late:.0f} times more slowly late than early")
assert early > 20 * late

# %% [markdown]
# The loss starts at $\ln M$, for every class: the decoder knows nothing.

# %%
assert abs(flow.observables["loss"][0] - np.log(34)) < 1e-12

# %% [markdown]
# ## Against a transformer that is trained
#
# `odesim.train("scan_snap")` trains the transformer itself, on sampled contexts with momentum 0.9, backward pass by hand.
# `odesim.compare` puts the theory beside it, with the parameters that the task's settings mean.

# %%
comparison = odesim.compare(
    "scan_snap.full", task="scan_snap", seeds=range(8), map="discrete"
)
print(comparison)
assert comparison.passed({"loss": {"relative_l2": 0.05}})

# %% [markdown]
# ## Against the published log
#
# The authors' repository has the log of one training of this kind (`figure_4.log` in
# [luckmatters](https://github.com/facebookresearch/luckmatters), `ssl/real-dataset/scan_snap`): the loss at every second iteration.

# %%
logged = np.arange(0, 26, 2)
published = np.fromstring(
    "3.52636 2.36791 0.733475 0.160805 0.0444288 0.0129525 0.00438626 0.00180978 6.40703e-4 4.1019e-4 2.05434e-4 1.48043e-4 1.29445e-4",
    sep=" ",
)
training = odesim.train("scan_snap", seeds=range(8), steps=100)
loss = training.observables["loss"]
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
axes.semilogy(training.t, loss.T, color="C0", alpha=0.3, lw=0.8)
axes.semilogy(logged, published, "ko", ms=3, label="published")
axes.plot([], [], color="C0", label="8 seeds")
axes.set(xlabel="iteration", ylabel="loss")
axes.legend()
plt.show()

# %%
ours = np.log(loss[:, np.searchsorted(training.t, logged)])
spread = (
    np.abs(np.log(published) - ours.mean(axis=0))[1:] / ours.std(axis=0, ddof=1)[1:]
)
print(
    f"the published loss is at most {spread.max():.1f} standard deviations from the mean of the seeds"
)
assert abs(published[0] - np.log(34)) < 1e-5
assert np.sqrt(np.mean(spread**2)) < 2
