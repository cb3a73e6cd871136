# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Topics: values first, attention later
#
# One attention layer is trained to fill in masked words of documents with topics (Li, Li, Risteski 2023, arXiv 2303.04245).
# Here a document has $\tau = 2$ of $T = 4$ topics, a topic has $v = 3$ words, and each set of topics is as frequent as the
# others. `topics.full` is the gradient flow of the loss for infinitely long documents.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import odesim
from odesim.plot import STYLE

T, v, tau, n = 4, 3, 2, 12
p_m, p_c, p_r = 0.15, 0.3, 0.1

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## Stage 1: values, while attention is uniform
#
# With $W_K = W_Q = 0$ each word sees the mean of its document, and the flow of $W_V$ is linear. That is `topics.stage1`.
# Its tables are `P`, the words of each document, and `P_shown`, what is shown of them: 15 % of the words are masked.

# %%
first = odesim.integrate(
    "topics.stage1", span=(0, 300), save=301, rtol=1e-9, atol=1e-12
)
P, shown = first.attrs["params"]["P"], first.attrs["params"]["P_shown"]
figure, (left, right) = plt.subplots(1, 2, figsize=(6.3, 2.3), layout="constrained")
image = left.imshow(shown, aspect="auto")
left.set(xlabel="token (0 is the mask)", ylabel="document", title="what is shown")
figure.colorbar(image, ax=left, label="probability")
image = right.imshow(first.final["W_V"], cmap="RdBu_r", vmin=-0.4, vmax=0.4)
right.set(
    xlabel="token seen", ylabel="word written", title="values at the end of stage 1"
)
figure.colorbar(image, ax=right, label="$W_V$")
plt.show()

# %% [markdown]
# The values are blocks: one number for words of the same topic, one for all others. They differ by $1/(\kappa v)$ with
# $\kappa = 1 - (1 - p_c)\,p_m$. The rates of a linear flow are eigenvalues, here twice those of the second moment of
# `P_shown`; the end is the least-squares solution. numpy finds both without the run.

# %%
kappa = 1 - (1 - p_c) * p_m
moment, target = shown.T @ shown / len(P), P.T @ shown / len(P)
end = target @ np.linalg.pinv(moment)
rates = 2 * np.linalg.eigvalsh(moment)[-T:]
print(f"rates {rates.round(4)}: three contrasts between topics, and the mean document")
np.testing.assert_allclose(end[1, 2] - end[1, 5], 1 / (kappa * v), rtol=1e-10)
sigma2 = (T - tau) / (tau * T * v * (T - 1))
np.testing.assert_allclose(rates[:3], 2 * kappa**2 * sigma2, rtol=1e-10)
np.testing.assert_allclose(first.final["W_V"], end, atol=5e-6)
loss = 1 - 1 / (tau * v) + (T - 1) * sigma2 * np.exp(-2 * rates[0] * first.t)
loss += np.exp(-2 * rates[-1] * first.t) / n
np.testing.assert_allclose(first.observables["loss"], loss, atol=1e-8)

# %% [markdown]
# ## Tied embeddings: a sigmoid
#
# Where one matrix $E$ reads and writes words, $W_V = E^\top E$ needs a start that is not 0. The value of a contrast between
# topics then obeys a logistic law of rate $8\kappa\sigma^2$; with values of their own it rises at once.

# %%
tied = odesim.integrate(
    "topics.tied", params={"eps": 0.03}, save=101, rtol=1e-9, atol=1e-12
)
contrast = np.r_[0, np.repeat([1, -1, 0, 0], v)] / np.sqrt(2 * v)
learned = np.square(tied.y["E"] @ contrast).sum(axis=1)
law = 1 / (kappa + (1 / 0.03**2 - kappa) * np.exp(-8 * sigma2 * kappa * tied.t))
np.testing.assert_allclose(learned, law, atol=1e-7)
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
own = np.einsum("i,tij,j->t", contrast, first.y["W_V"], contrast)
axes.plot(first.t, own, label="values of their own")
axes.plot(tied.t, learned, label=r"$E^\top E$")
axes.plot(tied.t[::10], law[::10], "ko", ms=3, label="logistic law")
axes.axhline(1 / kappa, color="grey", ls="--", lw=0.8)
axes.set(xlabel="t", ylabel="value of a contrast", xlim=(0, 60))
axes.legend(loc="lower right")
plt.show()

# %% [markdown]
# ## Stage 2: attention
#
# Now all three matrices are trained, from $W_V = 0$ and small $W_K = W_Q = \varepsilon I$.

# %%
eps = 1e-3
small = {"W_K": eps * np.eye(n + 1), "W_Q": eps * np.eye(n + 1)}
times = np.unique(np.r_[0, np.geomspace(1, 6000, 200), 300, 600])
flow = odesim.integrate(
    "topics.full",
    initial=small,
    span=(0, 6000),
    save=times,
    rtol=1e-7,
    atol=1e-10,
    backend="numpy",  # 507 states: numpy is done before a compiler
)
logits = np.einsum("tal,taw->tlw", flow.y["W_K"], flow.y["W_Q"])
ratio = np.exp(logits[:, 1, 2] - logits[:, 4, 2])  # same topic to another, from word 2
figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.3), layout="constrained")
for name in ("W_V", "W_K"):
    axes[0].semilogx(times[1:], flow.observables[f"norm_{name}"][1:], label=f"${name}$")
axes[0].set(xlabel="t", title="norms")
axes[0].legend()
axes[1].semilogx(times[1:], flow.observables["loss"][1:])
axes[1].axhline(1 - 1 / (tau * v), color="grey", ls="--", lw=0.8)
axes[1].set(xlabel="t", title="loss, and $1 - 1/(\\tau v)$")
axes[2].semilogx(times[1:], ratio[1:])
axes[2].set(xlabel="t", title="attention: same topic to another")
plt.show()

# %% [markdown]
# On the plateau attention grows as $e^{g t}$ with $g = 2 p_c p_1 (\tau - 1) / (\kappa\tau v (T - 1))$, where $p_1$ is the law of
# a word as shown. So stage 2 comes at about $\ln(1/\varepsilon)/g$: values wait long for attention.

# %%
p_1 = kappa / (tau * v) + p_m * p_r / n
g = 2 * p_c * p_1 * (tau - 1) / (kappa * tau * v * (T - 1))
grown = np.einsum("i,tij,j->t", contrast, flow.y["W_K"], contrast)
early, late = np.searchsorted(times, (300, 600))
np.testing.assert_allclose(
    flow.observables["loss"][early], 1 - 1 / (tau * v), atol=1e-4
)
np.testing.assert_allclose(np.log(grown[late] / grown[early]) / 300, g, rtol=5e-3)
arrival = np.interp(1, grown**2, times)
print(f"logit 1 at t = {arrival:.0f}; ln(1/eps)/g = {np.log(1 / eps) / g:.0f}")
np.testing.assert_allclose(arrival, np.log(1 / eps) / g, rtol=0.05)

# %% [markdown]
# ## Where it ends
#
# scipy minimises the loss itself, over three numbers for the values and one for the logits, a multiple of the projector
# between topics. The flow comes to rest at that minimum: a word attends nine times as much to its topic as to another.

# %%
B = np.full((n + 1, n + 1), p_r / n) + p_c * np.eye(n + 1)
B[0] = 1 - p_c - p_r  # B[w, x]: w is shown where x is masked
block = np.pad(np.kron(np.eye(T), np.ones((v, v))), ((1, 0), (1, 0)))
word = np.r_[0, np.ones(n)]


def whole_loss(same, other, mask, logit):
    values = same * block + np.outer(word, np.where(word, other, mask))
    weight = shown[:, :, None] * np.exp(logit * (block - np.outer(word, word) / T))
    output = np.einsum("xl,slw->swx", values, weight / weight.sum(1, keepdims=True))
    asked = P[:, None, :] * B
    square = asked.sum(axis=2) * (output**2).sum(axis=2)
    return 1 + (square.sum() - 2 * (asked * output).sum()) / len(P)


best = minimize(lambda u: whole_loss(*u), [0.3, 0, 0.1, 1], options={"gtol": 1e-8})
print(
    f"scipy: loss {best.fun:.6f}, ratio {np.exp(best.x[3]):.4f}; flow: {ratio[-1]:.4f}"
)
np.testing.assert_allclose(flow.observables["loss"][-1], best.fun, atol=1e-8)
np.testing.assert_allclose(ratio[-1], np.exp(best.x[3]), rtol=1e-3)
