# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # How patterns of attention arise
#
# Trained heads look at one token that matters (Elhage et al. 2021), at all tokens alike (Clark et al. 2019, arXiv 1906.04341,
# Section 3.3), or at the place that tells most of this one (Nichani et al. 2024, arXiv 2402.14735), and two layers learn to
# predict from counts in the context (Edelman et al. 2024, arXiv 2402.11004). Which of these comes, and when, can be read off
# the loss: each is the gradient flow of a few numbers.

# %%
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import softmax

import odesim
from odesim.plot import STYLE

FINE = {"rtol": 1e-9, "atol": 1e-12}

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## A head with all its weights
#
# The query is always the same: token $l$ has a logit $Z_l$ and a row $W_l$ that it adds to the output. Here are its slopes, by
# hand, for any set of contexts (counts of each token) with a label each.


# %%
def head(X, label, p, end):
    """Z and W at the times `end` of the flow from 0. X (S, V): counts; label, p (S,)."""
    V, K = X.shape[1], label.max() + 1
    answer = np.eye(K)[label]

    def slope(t, w):
        Z, W = w[:V], w[V:].reshape(V, K)
        alpha = X * np.exp(Z - Z.max())
        alpha /= alpha.sum(axis=1, keepdims=True)
        miss = p[:, None] * (answer - softmax(alpha @ W, axis=1))
        pull = miss @ W.T  # what attention to each token would gain
        to_Z = alpha * (pull - (alpha * pull).sum(axis=1, keepdims=True))
        return np.concatenate([to_Z.sum(axis=0), (alpha.T @ miss).ravel()])

    with np.errstate(under="ignore"):  # scipy asks for the number next to t = 0
        run = solve_ivp(
            slope,
            (0, end[-1]),
            np.zeros(V * (1 + K)),
            t_eval=end,
            rtol=1e-9,
            atol=1e-12,
        )
    return run.y[:V].T, run.y[V:].T.reshape(-1, V, K)


# %% [markdown]
# ## One token tells
#
# A context is one of $K$ keys and $n$ of $N$ noise tokens, the label is the key's. By symmetry two numbers are left,
# $z = Z_\text{key} - Z_\text{noise}$ and $u = W_{kk} - W_{k,\text{other}}$, and of noise nothing is learned. With
# $\alpha = 1/(1 + n e^{-z})$ the attention to the key,
# $$\dot u = \frac{\alpha}{e^{\alpha u} + K - 1},\qquad \dot z = \Big(\frac1K + \frac1N\Big)\frac{(K-1)\,\alpha(1-\alpha)\,u}{e^{\alpha u} + K - 1}.$$

# %%
K, N, n = 3, 2, 4
times = np.array([5.0, 20.0, 100.0])
noise = np.array([np.bincount(x, minlength=N) for x in product(range(N), repeat=n)])
X = np.concatenate(
    [np.column_stack([np.tile(np.eye(K)[k], (16, 1)), noise]) for k in range(K)]
)
label = np.repeat(np.arange(K), 16)
Z, W = head(X, label, np.full(48, 1 / 48), times)
two = odesim.integrate(
    "patterns.skip_gram", save=np.append(0, times), span=(0, 100), **FINE
)
np.testing.assert_allclose(Z[:, 0] - Z[:, K], two.y["z"][1:], rtol=1e-6)
np.testing.assert_allclose(W[:, 0, 0] - W[:, 0, 1], two.y["u"][1:], rtol=1e-6)
assert np.abs(W[:, K:]).max() < 1e-9
print("attention to the key:", two.observables["alpha"].round(3))

# %% [markdown]
# First $z$ stands: without an output there is nothing to attend for. Then attention comes at once. The time until half of it is on
# the key grows as $n$, to $n K \sqrt{\pi / (2c)}$ with $c = (1/K + 1/N)(K - 1)$; for induction heads it is $N^{3/2}$.

# %%
many = 2 ** np.arange(3, 9)
half = []
figure, axes = plt.subplots(figsize=(4.0, 2.5), layout="constrained")
for n in many:
    run = odesim.integrate(
        "patterns.skip_gram",
        params={"K": 10, "N": 50, "n": n},
        span=(0, 4000),
        save=np.append(0, np.geomspace(10, 4000, 300)),
        **FINE,
    )
    half.append(run.events["found"][0]["t"])
    axes.plot(run.t[1:], run.observables["alpha"][1:], label=f"n = {n}")
axes.set(xscale="log", xlabel="t", ylabel="attention to the key", ylim=(0, 1))
axes.legend()
plt.show()
slopes = np.diff(np.log(half)) / np.log(2)
print("exponents", slopes.round(3))
assert np.all(np.diff(slopes) > 0) and 0.97 < slopes[-1] < 1
c = (1 / 10 + 1 / 50) * 9
assert abs(half[-1] / (256 * 10 * np.sqrt(np.pi / (2 * c))) - 1) < 0.025

# %% [markdown]
# ## All tokens tell
#
# Each of $T$ tokens shows the topic with chance $(1 + \rho)/2$, else the other one. Looking at one more than at another gains
# nothing: attention is even for ever, and the output learns to weigh counts as Bayes' rule does,
# $u \to T \ln\frac{1+\rho}{1-\rho}$. If one token tells more than the other, it is preferred from the start.

# %%
T = 8
log_choose = np.cumsum(np.log(np.append(1, np.arange(T, 0, -1) / np.arange(1, T + 1))))


def counts(rho):
    """Contexts of T tokens of two topics, topic k shown with chance (1 + rho[k])/2."""
    c = np.arange(T + 1)
    shown = [
        np.exp(log_choose) * ((1 + r) / 2) ** c * ((1 - r) / 2) ** (T - c) for r in rho
    ]
    X = np.column_stack([c, T - c]).astype(float)
    label = np.repeat([0, 1], T + 1)
    return np.concatenate([X, X]), label, np.concatenate([shown[0], shown[1][::-1]]) / 2


even, W = head(*counts((0.2, 0.2)), np.array([1.0, 100.0, 3000.0]))
uneven, _ = head(*counts((0.2, 0.4)), np.array([1.0, 10.0, 100.0]))
print("gap of the logits, even:", np.ptp(even, axis=1).round(4))
print("gap of the logits, uneven:", np.ptp(uneven, axis=1).round(4))
assert np.ptp(even, axis=1).max() < 1e-9 and np.ptp(uneven, axis=1).min() > 1e-4
run = odesim.integrate(
    "patterns.aggregate",
    sizes={"T": T},
    params={"rho": 0.2},
    span=(0, 3000),
    save=2,
    **FINE,
)
u = (W[-1, 0, 0] - W[-1, 0, 1] - W[-1, 1, 0] + W[-1, 1, 1]) / 2
np.testing.assert_allclose(u, run.final["u"], rtol=1e-6)
np.testing.assert_allclose(run.final["u"], T * np.log(1.2 / 0.8), rtol=1e-4)

# %% [markdown]
# ## From nothing to unigrams to bigrams
#
# A Markov chain whose transition matrix is new in each context. Two layers of linear attention, the first looking back by $v_l$ at
# lag $l$: the prediction is first nothing, then the law of the tokens in the context (unigram), then that after the last one
# (bigram). Levels of the loss follow from means over chains; here those of 200,000 drawn chains of two states.

# %%
rng = np.random.default_rng(0)
leave = rng.random((200_000, 2))
P = np.stack([1 - leave, leave], axis=2)
P[:, 1] = P[:, 1, ::-1]
pi = leave[:, ::-1] / leave.sum(axis=1, keepdims=True)
np.testing.assert_allclose(np.einsum("ns,nsr->nr", pi, P), pi)
after = (pi[:, :, None] * P**2).sum(axis=(1, 2))
nothing, unigram = after.mean() / 2, (after - (pi**2).sum(axis=1)).mean() / 2

figure, axes = plt.subplots(figsize=(4.0, 2.5), layout="constrained")
first, second = [], []
starts = (0.1, 0.01, 0.001, 1e-4)
for w0 in starts:
    run = odesim.integrate(
        "ngrams.linear",
        params={"w0": w0},
        span=(0, 400),
        save=np.append(0, np.geomspace(0.5, 400, 300)),
        **FINE,
    )
    axes.plot(run.t[1:], run.observables["loss"][1:], label=f"from {w0:g}")
    first.append(run.events["unigram"][0]["t"])
    second.append(run.events["bigram"][0]["t"])
for level in (nothing, unigram):
    axes.axhline(level, color="grey", lw=0.5)
axes.set(xscale="log", yscale="log", xlabel="t", ylabel="loss")
axes.legend()
plt.show()
assert abs(run.observables["loss"][0] - nothing) < 1e-3
assert np.abs(np.log(run.observables["loss"] / unigram)).min() < 0.01
assert run.final["v"].argmax() == 1  # one step back

# %% [markdown]
# The unigram waits for $\ln(1/w_0)/\sigma$, as at any saddle. The bigram does not: what is left is a slow slope, which all starts
# reach alike.

# %%
slopes = np.diff(first) / np.log(10)
print("first", np.round(first, 2), "second", np.round(second, 1))
np.testing.assert_allclose(slopes[-1], 1 / 0.723204, rtol=2e-3)
assert np.ptp(second) / np.mean(second) < 0.04

# %% [markdown]
# ## Which place is looked at
#
# The first layer by itself, behind a small second one: in the row of a place, the loss is $-\sum_j S_j G_j$, $S$ the attention and
# $G_j$ what place $j$ tells. In a chain that is the information about the next state, $\sum_{s,s'} \pi_s P^l(s, s')^2/\pi_{s'} - 1$
# at lag $l$, which falls with the lag whatever the chain: no place tells more than the parent through which it tells.

# %%
P = rng.dirichlet(np.ones(3), size=(20_000, 3))
pi = np.linalg.solve((np.eye(3) - P + 1).swapaxes(1, 2), np.ones((len(P), 3, 1)))[
    ..., 0
]
lagged, told = np.tile(np.eye(3), (len(P), 1, 1)), []
for _ in range(5):
    lagged = lagged @ P
    told.append((pi[:, :, None] * lagged**2 / pi[:, None]).sum(axis=(1, 2)) - 1)
told = np.array(told)
assert np.all(np.diff(told, axis=0) < 1e-9)
G = told.mean(axis=1)
run = odesim.integrate(
    "causal.parent_row",
    sizes={"J": 5},
    params={"G": G},
    span=(0, 100),
    save=201,
    **FINE,
)
figure, axes = plt.subplots(figsize=(4.0, 2.5), layout="constrained")
for j in range(5):
    axes.plot(run.t, run.observables["attention"][:, j], label=f"{j + 1} back")
axes.set(xlabel="t", ylabel="attention", ylim=(0, 1))
axes.legend()
plt.show()
assert np.all(np.diff(run.observables["attention"][-1]) < 0)
print(f"it is found at t = {run.events['found'][0]['t']:.4f}")

# %% [markdown]
# Rivals that all tell $D$ less make it later, in proportion to their number: half of the attention is on the parent at
# $(n + 2 \ln n - 1/n)\, n / ((n + 1) D)$.

# %%
for n in (5, 20, 80):
    run = odesim.integrate(
        "causal.parent_row",
        sizes={"J": n + 1},
        params={"G": 0.231 * np.eye(n + 1)[0]},
        span=(0, 500),
        save=2,
        **FINE,
    )
    found = run.events["found"][0]["t"]
    print(f"{n} rivals: {found:.2f}")
    np.testing.assert_allclose(
        found, (n + 2 * np.log(n) - 1 / n) * n / ((n + 1) * 0.231), rtol=1e-6
    )
