# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # JoMA: the invariant, the winner, the bounce
#
# An MLP layer and the attention below it are trained together. JoMA (Tian et al. 2023, arXiv 2310.00535) integrates the
# attention out: its logits are $v^2/2$, up to a constant, and the weights $v$ follow an ODE of their own.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import erf, erfinv

import odesim
from odesim.plot import STYLE

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## Linear activation: one winner, in finite time
#
# $\dot v_l = \Delta_l\, e^{v_l^2/2}$. Each component has its own invariant, $\mathrm{erf}(v_l/\sqrt2) - \sqrt{2/\pi}\,\Delta_l t$.

# %%
Delta = np.array([0.3, 0.6, 0.8, 1.0])
t_star = np.sqrt(np.pi / 2)
run = odesim.integrate(
    "joma.linear",
    params={"Delta": Delta},
    span=(0, 0.999 * t_star),
    save=400,
    rtol=1e-10,
    atol=1e-12,
)
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
axes.plot(run.t, run.y["v"], label=[rf"$\Delta$ = {d:g}" for d in Delta])
axes.axvline(t_star, color="grey", ls="--", lw=0.8)
axes.set(
    xlabel="t",
    ylabel="v",
    title=r"the most salient component runs away at $t^* = \sqrt{\pi/2}$",
)
axes.legend()
plt.show()

# %%
invariant = erf(run.y["v"] / np.sqrt(2)) - np.sqrt(2 / np.pi) * Delta * run.t[:, None]
print(
    f"largest change of the invariant: {np.abs(invariant).max():.1e}; reported by the run: {run.invariants['erf grows with t']:.1e}"
)
assert np.abs(invariant).max() < 1e-7

# %% [markdown]
# The paper prints $\mathrm{erf}(v/2)/\Delta$ as conserved. It is not; `odesim verify` checks both forms.

# %%
checked = odesim.verify("joma.conserved_ratio")
print(checked)
assert [str(finding.verdict) for finding in checked.results[0].findings.values()] == [
    "fails",
    "holds",
]

# %% [markdown]
# ## Through the blow-up
#
# With `clock="rescaled"` the run counts a time $s$ of its own, $ds = e^{\max v^2/2}\,dt$. In it the run goes on to the blow-up
# itself, and measures when that is.

# %%
rescaled = odesim.integrate(
    "joma.linear",
    params={"Delta": Delta},
    clock="rescaled",
    span=(0, 5),
    rtol=1e-9,
    atol=1e-12,
)
print(
    f"status {rescaled.status} at t = {rescaled.t_end:.9f}; sqrt(pi/2) = {t_star:.9f}"
)
assert rescaled.status == "blow_up"
assert abs(rescaled.t_end - t_star) < 1e-6

# %% [markdown]
# The losers stop where the winner's invariant leaves them: $v_l = \sqrt2\,\mathrm{erfinv}(\Delta_l/\Delta_{\max})$.

# %%
losers = np.sqrt(2) * erfinv(Delta[:-1] / Delta[-1])
np.testing.assert_allclose(rescaled.y["v"][-1, :-1], losers, atol=1e-5)

# %% [markdown]
# ## Saturating activation: the bounce
#
# With a fixed point $\mu$ the salient components come first and the others catch up: the entropy of attention falls below
# its end and comes back. The larger $\mu$, the deeper.

# %%
figure, axes = plt.subplots(figsize=(4.2, 2.3), layout="constrained")
depths = []
for top in (1.0, 1.5, 2.0, 2.5):
    mu = np.array([top, top / 2])
    bounce = odesim.integrate(
        "joma.nonlinear",
        params={"mu": mu},
        initial={"v": 0.01},
        span=(0, 10),
        save=2001,
        rtol=1e-9,
        atol=1e-12,
    )
    entropy = bounce.observables["entropy"]
    depths.append(entropy[-1] - entropy.min())
    axes.plot(bounce.t, entropy, label=rf"$\mu$ = ({top:g}, {top / 2:g})")
axes.set(xlabel="t", ylabel="entropy of attention")
axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
print([f"{depth:.2g}" for depth in depths])
assert np.all(np.diff(depths) > 0)
np.testing.assert_allclose(depths[1:], [3.3e-3, 2.75e-2, 6.6e-2], rtol=0.02)
plt.show()
