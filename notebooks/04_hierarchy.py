# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Hierarchy: near tokens before far ones
#
# Data come from a latent tree. Two leaves whose lowest common ancestor is near occur together more often. JoMA's Theorems
# 4 and 5 then say that attention finds near tokens first. `hierarchy.grouped` has one weight for each height $H$ of the
# common ancestor.

# %%
import matplotlib.pyplot as plt
import numpy as np

import odesim
from odesim.plot import STYLE

run = odesim.integrate(
    "hierarchy.grouped",
    sizes={"L": 5},
    span=(0, 200),
    save=2001,
    rtol=1e-10,
    atol=1e-13,
)
heights = np.arange(1, 5)

plt.style.use(STYLE)  # of the pictures of odesim

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(6, 2.3), layout="constrained")
left.plot(run.t, run.y["v"], label=[f"H = {H}" for H in heights])
left.set(xlabel="t", ylabel="weight v", title="near before far")
left.legend()
right.plot(run.t, run.observables["entropy"])
right.set(xlabel="t", ylabel="entropy of attention", title="sparse, then spread again")
plt.show()

# %% [markdown]
# ## When each height arrives

# %%
arrival = {event["index"][0] + 1: event["t"] for event in run.events["nine tenths"]}
for H, t in sorted(arrival.items()):
    print(f"height {H}: nine tenths of its end at t = {t:.1f}")
times = [arrival[H] for H in heights]
assert np.all(np.diff(times) > 0)
np.testing.assert_allclose(times, [16.2, 29.1, 45.3, 59.3], atol=0.1)

# %% [markdown]
# ## How often two leaves occur together
#
# Theorem 5 approximates $P_H$ by $1 - H/L$. The next order is not zero:
# $P_H = 1 - \frac HL\left(1 + \frac{(L - 2H)\,\varepsilon}{2}\right) + O(\varepsilon^2)$ where $\rho = \rho_0 = 1 - \varepsilon$.

# %%
L, H = 8, np.arange(1, 8)
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
for eps in (0.1, 0.03, 0.01, 0.003):
    short = odesim.integrate(
        "hierarchy.grouped",
        sizes={"L": L},
        params={"rho": 1 - eps, "rho0": 1 - eps},
        span=(0, 1e-3),
    )
    P = short.observables["P"][0]
    printed, corrected = 1 - H / L, 1 - H / L * (1 + (L - 2 * H) * eps / 2)
    axes.loglog(eps, np.abs(P - printed).max(), "o", color="C0")
    axes.loglog(eps, np.abs(P - corrected).max(), "s", color="C1")
    assert np.abs(P - corrected).max() < 20 * eps**2
axes.set(xlabel=r"$\varepsilon$", ylabel="largest error of $P_H$")
axes.legend(["as printed: order 1", "with the next term: order 2"])
plt.show()

# %% [markdown]
# ## A deeper tree delays the far tokens

# %%
last = []
for depth in (4, 5, 6):
    deep = odesim.integrate(
        "hierarchy.grouped", sizes={"L": depth}, span=(0, 1000), rtol=1e-9, atol=1e-12
    )
    last.append(max(event["t"] for event in deep.events["nine tenths"]))
print([f"{t:.0f}" for t in last])
assert np.all(np.diff(last) > 0)
