# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Decoding in few steps: what is missed
#
# A masked language model can fill all masks at once, or a few at a time. How far is what it writes from the law $p$ that it
# was trained on, if each of its predictions $p(x_j \mid \text{shown})$ is exact? Here $p$ is a law of signs, small enough to
# follow the law of the whole sequence: `gibbs.unmask` shows block after block and revises nothing, `gibbs.mask_predict` masks
# tokens again, fewer and fewer (Ghazvininejad et al. 2019, arXiv 1904.09324).

# %%
from itertools import combinations, product

import matplotlib.pyplot as plt
import numpy as np

import odesim
from odesim.plot import STYLE

plt.style.use(STYLE)  # of the pictures of odesim


def signs(n, J):
    x = np.array(list(product((-1, 1), repeat=n)))
    weight = np.exp(J * (x.sum(axis=1) ** 2 - n) / 2)
    return x, weight / weight.sum()


# %% [markdown]
# ## Block after block
#
# Tokens of one block are drawn each by itself. What they have in common, given what is shown, is lost: in the mean over all
# blocks
#
# $$\mathrm{E\,KL}(p \mid \text{law}) = \sum_i \sum_{l = m_i}^{m_{i+1} - 1} \big[\eta(m_i) - \eta(l)\big],\qquad \eta(m) = \bar H(m+1) - \bar H(m),$$
#
# with $m_i$ tokens shown before block $i$ and $\bar H(m)$ the mean entropy of $m$ tokens. That is the left Riemann sum of
# $\eta$, which falls, less its sum.

# %%
n, J = 8, 0.3
x, p = signs(n, J)


def entropy(tokens):
    """Of these tokens, by counting sequences that agree on them."""
    _, group = np.unique(x[:, tokens], axis=0, return_inverse=True)
    law = np.bincount(group.ravel(), p)
    return -(law * np.log(law)).sum()


# all tokens are alike: any m of them will do
H = np.array([0.0, *(entropy(list(range(m))) for m in range(1, n + 1))])
eta = np.diff(H)
assert np.all(np.diff(eta) < 0)
figure, axes = plt.subplots(figsize=(3.7, 2.4), layout="constrained")
axes.step(range(n), eta, where="post", label="entropy of one token more")
for T, look in ((2, "--"), (4, ":")):
    first = np.arange(n) // (n // T) * (n // T)
    axes.step(
        range(n), eta[first], look, where="post", label=f"T = {T}: as it is drawn"
    )
    run = odesim.integrate(
        "gibbs.unmask", params={"J": J}, sizes={"S": 2**n, "n": n, "T": T}, steps=T
    )
    np.testing.assert_allclose(
        run.observables["KL_missed"][-1], (eta[first] - eta).sum(), atol=1e-12
    )
axes.set(xlabel="tokens shown", ylabel="η", ylim=(0, 0.75))
axes.legend()
plt.show()

# %% [markdown]
# ## With revision
#
# In two steps both decoders are one. Later they part: revision masks tokens again, and can mend what was drawn wrongly, but even
# with a step for each token it does not reach $p$. Without revision $n$ steps do.

# %%
TV = {}
for T in (1, 2, 4, 8):
    kept = odesim.integrate(
        "gibbs.unmask", params={"J": J}, sizes={"S": 2**n, "n": n, "T": T}, steps=T
    ).final["pi"]
    ones = (x > 0).sum(axis=1)
    mixture = (np.bincount(ones, kept) / np.bincount(ones))[
        ones
    ]  # of all orders of blocks
    revised = odesim.integrate(
        "gibbs.mask_predict", params={"J": J}, sizes={"S": 2**n, "T": T}, steps=T
    ).final["pi"]
    TV[T] = [abs(law - p).sum() / 2 for law in (mixture, revised)]
print(
    "T: without, with revision", {T: np.round(row, 4).tolist() for T, row in TV.items()}
)
np.testing.assert_allclose(
    [TV[T][0] for T in (1, 2)], [TV[T][1] for T in (1, 2)], atol=1e-12
)
assert TV[8][0] < 1e-12 and TV[8][1] > 0.01

# %% [markdown]
# ## All tokens, again and again
#
# Redrawing every token given all others, as they were, is a chain too, but not one for $p$. Its law at rest was found for
# neurons (Little 1974, Peretto 1984): $\prod_j 2\cosh\big(J \sum_{i \ne j} x_i\big)$.

# %%
own = np.prod(np.cosh(0.1 * (x.sum(axis=1, keepdims=True) - x)), axis=1)
run = odesim.integrate(
    "gibbs.mask_predict:SYNCHRONOUS",
    params={"J": 0.1},
    sizes={"S": 2**n, "T": 40},
    steps=40,
)
np.testing.assert_allclose(run.final["pi"], own / own.sum(), atol=1e-12)
print(f"its distance to p: {run.observables['TV'][-1]:.4f}")
assert abs(run.observables["TV"][-1] - 0.140126) < 1e-6

# %% [markdown]
# ## Walking walking
#
# A word stands at one of $n$ places. A decoder that draws $k$ places at once gives it to each with probability $1/(n - m)$ if it
# is not among the $m$ shown: so it is said once, not at all, or twice. In one step, for many places, twice or more with
# probability $1 - 2/e$.

# %%
ones = (x > 0).sum(axis=1)
word = np.where(ones == 1, (1 - 1e-9) / n, 0) + 1e-9 / 2**n  # no context is impossible
rng = np.random.default_rng(0)
for T in (1, 2, 4, 8):
    run = odesim.integrate(
        "gibbs.unmask", params={"p": word}, sizes={"S": 2**n, "n": n, "T": T}, steps=T
    )
    twice = run.final["pi"][ones > 1].sum()
    said = np.zeros(100_000, dtype=int)
    for m in range(0, n, n // T):
        said += rng.binomial(n // T, np.where(said == 0, 1 / (n - m), 0))
    print(
        f"T = {T}: twice or more {twice:.4f}, in 100,000 draws {np.mean(said > 1):.4f}"
    )
    assert abs(np.mean(said > 1) - twice) < 4 * np.sqrt(0.25 / 100_000)
assert (
    abs((1 - (1 - 1e-6) ** 10**6 - (1 - 1e-6) ** (10**6 - 1)) - (1 - 2 / np.e)) < 1e-6
)

# %% [markdown]
# ## Which masks
#
# Masks that hold tokens which depend on each other mix faster than uniform ones: three pairs of signs, coupled by 1.2 inside and
# by 0.1 between, both members of a pair masked, or any two tokens. The mean of the slowest function falls at the gap.

# %%
x, _ = signs(6, 0.0)
same = np.kron(np.eye(3), np.ones((2, 2))).astype(bool)
J = np.where(same, 1.2, 0.1) - 1.2 * np.eye(6)
p = np.exp(np.einsum("si,ij,sj->s", x, J, x) / 2)
p /= p.sum()


def redraw(masks):
    """Tokens of a mask, chosen uniformly, are drawn together."""
    P = np.zeros((64, 64))
    for masked in masks:
        kept = np.delete(x, masked, axis=1)
        alike = (kept[:, None] == kept[None]).all(axis=2)
        P += alike * p / (alike @ p)[:, None] / len(masks)
    return P


rates = {}
for name, masks in {
    "any two": list(combinations(range(6), 2)),
    "pairs": [(0, 1), (2, 3), (4, 5)],
}.items():
    P = redraw(masks)
    root = np.sqrt(p)
    slow = np.linalg.eigh(root[:, None] * P / root)[1][:, -2] / root
    start = np.eye(64)[np.abs(slow).argmax()]
    given = {"p": p, "Q": P - np.eye(64), "f": slow}
    run = odesim.integrate(
        "gibbs.master",
        params=given,
        initial={"pi": start},
        span=(0, 20),
        save=2,
        rtol=1e-10,
        atol=1e-13,
    )
    mean = run.observables["mean"]
    rates[name] = np.log(mean[0] / mean[1]) / 20
print({name: round(float(rate), 4) for name, rate in rates.items()})
np.testing.assert_allclose(list(rates.values()), [0.044345, 0.124718], atol=1e-6)
