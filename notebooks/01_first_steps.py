# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # First steps, and a model of your own
#
# One integration, what it returns, and a model written in twenty lines.

# %%
import matplotlib.pyplot as plt
import numpy as np

import odesim
from odesim.plot import STYLE

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## Integrate a model of a paper
#
# `joma.nonlinear` is one hidden node with a saturating activation (Tian et al. 2023, arXiv 2310.00535, Theorem 4):
# $\dot v_l = (\mu_l - v_l)\, e^{v_l^2/2}$. The attention logit of token $l$ is $v_l^2/2$.

# %%
mu = np.array([2.0, 1.5, 1.0])
solution = odesim.integrate("joma.nonlinear", params={"mu": mu}, span=(0, 8), save=401)
print(solution.status, solution.y["v"].shape, list(solution.observables))

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(6, 2.3), layout="constrained")
left.plot(solution.t, solution.y["v"], label=[rf"$\mu$ = {m:g}" for m in mu])
left.set(xlabel="t", ylabel="v", title="salient components arrive first")
left.legend()
right.plot(solution.t, solution.observables["entropy"])
right.set(xlabel="t", ylabel="entropy of attention", title="sparse, then spread again")
plt.show()

# %% [markdown]
# The entropy falls below its end and comes back. The end is that of $\mathrm{softmax}(\mu^2/2)$.

# %%
p = np.exp(mu**2 / 2) / np.exp(mu**2 / 2).sum()
end = -np.sum(p * np.log(p))
entropy = solution.observables["entropy"]
assert entropy.min() < end - 0.01
assert abs(entropy[-1] - end) < 1e-3

# %% [markdown]
# ## Ask between the saved times, and about events
#
# `solution.at(t)` evaluates the interpolant of the method. The event `half way` of the model is where $v_l = \mu_l/2$.

# %%
for event in solution.events["half way"]:
    (component,) = event["index"]
    v = solution.at(event["t"])["v"][component]
    print(f"component {component} is half way at t = {event['t']:.4f}")
    assert abs(v - mu[component] / 2) < 1e-5

# %% [markdown]
# ## A model of your own
#
# A model is symbols on arrays of any size. Here each weight of a deep diagonal linear network follows the gradient of
# $\tfrac12 (s - w^2)^2$: $\dot w_m = 2 w_m (s_m - w_m^2)/\tau$. Large modes are learned first, each along a sigmoid.

# %%
from sympy import Interval, oo, symbols

from odesim.symbolic import IndexedBase, Invariant, Param, Source, System, index, sizes

(m,) = index("m")
(M,) = sizes("M")
w, s = IndexedBase("w", shape=(M,)), IndexedBase("s", shape=(M,))
tau = symbols("tau", positive=True)

modes = System(
    name="my.modes",
    source=Source("saxe2014exact", "two layers, aligned and balanced"),
    axes={m: M},
    equations={w[m]: 2 * w[m] * (s[m] - w[m] ** 2) / tau},
    params=(
        Param(s, 1.0, Interval.open(0, oo), "strength of a mode"),
        Param(tau, 1.0, Interval.open(0, oo), "time constant"),
    ),
    initial={w[m]: 0.01},
    invariants=(Invariant("error falls", (s[m] - w[m] ** 2) ** 2, "nonincreasing"),),
)

# %%
strength = np.array([4.0, 2.0, 1.0])
run = odesim.integrate(
    modes, params={"s": strength}, span=(0, 6), save=301, rtol=1e-9, atol=1e-12
)
figure, axes = plt.subplots(figsize=(3, 2.3), layout="constrained")
axes.plot(run.t, run.y["w"] ** 2, label=[f"s = {x:g}" for x in strength])
axes.set(xlabel="t", ylabel="$w^2$")
axes.legend()
plt.show()

# %% [markdown]
# $a = w^2$ solves $\dot a = 4 a (s - a)/\tau$: $a(t) = s / (1 + (s/a_0 - 1) e^{-4 s t/\tau})$.

# %%
exact = strength / (1 + (strength / 1e-4 - 1) * np.exp(-4 * strength * run.t[:, None]))
error = np.abs(run.y["w"] ** 2 - exact).max()
print(
    f"largest error {error:.1e}; the invariant was violated by {run.invariants['error falls']:.1e}"
)
assert error < 1e-7

# %% [markdown]
# Write the same into `my_model.py` with `SYSTEM = System(...)`, and the command line knows it:
# `odesim integrate my_model.py --set s=4,2,1 --plot modes.png`. `odesim new my_model.py` writes such a file to start from.
