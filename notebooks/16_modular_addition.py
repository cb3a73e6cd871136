# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # How a network learns to add on a clock
#
# One hidden layer of squares learns $x + y \bmod p$: neuron $n$ reads $\theta_x + \theta_y$, squares it, and adds $\xi_z$ to the
# logit of $z$. In the end each neuron is one wave, and which one is a lottery (He, Wang, Chen, Yang 2026, arXiv 2602.16849).
# Then one unit alone, which climbs an energy (Tian 2025, arXiv 2509.21519), and what other optimisers make of it.

# %%
import matplotlib.pyplot as plt
import numpy as np

import odesim
from odesim.plot import STYLE

plt.style.use(STYLE)  # of the pictures of odesim
p = 23

# %% [markdown]
# ## Frequencies do not see each other
#
# While logits are small the mean cross-entropy is $\ln p - \frac12 \sum_k \alpha_k^2 \beta_k \cos D_k$, where $\alpha_k$ and
# $\beta_k$ are the amplitudes of the waves of $\theta$ and $\xi$, and $D_k = \psi_k - 2\phi_k$ the gap of their phases. So
# each of the 11 frequencies of each neuron is a flow of its own, `modular.phases`. Here is a training beside it.

# %%
comparison = odesim.compare("modular.phases", task="modular", steps=1000, save=101)
flow, trained = comparison.theory["alpha"][0], comparison.training["alpha"][0]
first = int(trained[-1].max(axis=1).argmax())

figure, axes = plt.subplots(figsize=(4.0, 2.5), layout="constrained")
axes.semilogy(comparison.t, flow[:, first], lw=0.8)
axes.semilogy(comparison.t[::10], trained[::10, first], "k.", ms=2)
axes.set(
    xlabel="step",
    ylabel="amplitude",
    title=f"neuron {first}: flow, and training (dots)",
)
plt.show()
off = np.abs(trained[60] / flow[60] - 1)
print(
    "at step 600, median and worst part:", np.median(off).round(5), off.max().round(4)
)
assert np.median(off) < 5e-4

# %% [markdown]
# ## The lottery, by formula
#
# A frequency runs away at a time $t^*$ which has a closed form: where sizes are in balance, $\alpha = \sqrt2 \beta$, and
# $|D| < \pi/2$ it is $p\, {}_2F_1(\frac12, \frac16; \frac76; \sin^2 D) / (2\beta)$. The least $t^*$ wins. So does the smallest
# gap where all sizes are equal, and only there.

# %%
from scipy.special import hyp2f1

for D in (0.3, 1.0):
    formula = p * hyp2f1(1 / 2, 1 / 6, 7 / 6, np.sin(D) ** 2) / (2 * 0.02)
    start = {"alpha": 0.02 * 2**0.5, "beta": 0.02, "phi": 0.0, "psi": D}
    run = odesim.integrate(
        "modular.phases",
        sizes={"N": 1, "K": 1},
        initial=start,
        span=(0, 1e4),
        events=["far: alpha[n, k] - 100; terminal"],
        rtol=1e-10,
        atol=1e-14,
    )
    rest = p / (2**0.5 * 100)  # from alpha = 100 to infinity
    print(f"D = {D}: t* = {run.t_end + rest:.4f}, by formula {formula:.4f}")
    assert abs(run.t_end + rest - formula) < 1e-4 * formula

# %% [markdown]
# ## Weight decay, exactly
#
# Decay $\lambda$ only bends the clock: $t^*$ becomes $-\ln(1 - \lambda t^*)/\lambda$. A frequency with $\lambda t^* > 1$ dies.

# %%
plain = odesim.integrate(
    "modular.phases",
    sizes={"N": 1, "K": 1},
    initial={"phi": 0.0, "psi": 0.3},
    span=(0, 1e4),
    events=["far: alpha[n, k] - 1000; terminal"],
).t_end
shares = np.linspace(0.1, 0.95, 8)
times = []
for share in shares:
    run = odesim.integrate(
        "modular.phases",
        params={"lam": share / plain},
        sizes={"N": 1, "K": 1},
        initial={"phi": 0.0, "psi": 0.3},
        span=(0, 1e4),
        events=["far: alpha[n, k] - 1000; terminal"],
    )
    times.append(run.t_end)
np.testing.assert_allclose(times, -np.log(1 - shares) / shares * plain, rtol=1e-3)
dead = odesim.integrate(
    "modular.phases",
    params={"lam": 1.05 / plain},
    sizes={"N": 1, "K": 1},
    initial={"phi": 0.0, "psi": 0.3},
    span=(0, 3e4),
    save=2,
)
print(f"alpha in the end, for decay 1.05 / t*: {dead.final['alpha'][0, 0]:.1e}")
assert dead.final["alpha"].max() < 1e-6

# %% [markdown]
# ## One unit climbs an energy
#
# On the sphere the powers $U_k$, $V_k$ of a unit's two sides play a game: $U_k' = 4 U_k (M V_k - 2E)$ and the same for $V_k$,
# $E = M \sum_k U_k V_k$. One frequency takes everything, $E = M/4$: the one with the largest *logarithmic mean* of $U_k$ and
# $V_k$ at the start.

# %%
rng = np.random.default_rng(3)
right = []
for _ in range(30):
    U, V = rng.dirichlet(np.ones(6)).reshape(2, 3)
    run = odesim.integrate(
        "modular.powers",
        initial={"U": U, "V": V, "rest": 0.0},
        sizes={"K": 3},
        span=(0, 60),
        save=2,
    )
    right.append(
        int(np.argmax((U - V) / np.log(U / V))) == int(np.argmax(run.final["U"]))
    )
    assert abs(run.observables["energy"][-1] - 7 / 4) < 1e-3
print("starts that the logarithmic mean names right:", sum(right), "of", len(right))
assert all(right)

# %% [markdown]
# ## Muon leaves no neuron behind
#
# By SGD the loss is gone before slow neurons have decided: they stay mixtures. Muon gives every singular direction of a
# gradient nearly one length, and every neuron becomes a wave.

# %%
figure, axes = plt.subplots(figsize=(4.0, 2.3), layout="constrained")
purest = {}
for name, title, eta, steps in (
    ("sgd", "SGD", 5.0, 1500),
    ("muon", "Muon", 0.01, 600),
):
    run = odesim.train(
        "modular",
        settings={"N": 24, "optimizer": name, "eta": eta},
        steps=steps,
        save=2,
    )
    power = run.observables["alpha"][0, -1] ** 2
    purest[name] = np.sort(power.max(axis=1) / power.sum(axis=1))
    axes.plot(purest[name], "o-", ms=2, label=title)
axes.set(xlabel="neurons, sorted", ylabel="largest frequency's part", ylim=(0, 1))
axes.legend()
plt.show()
assert (purest["muon"] > 0.75).all() and (purest["sgd"] < 0.75).sum() > 5
