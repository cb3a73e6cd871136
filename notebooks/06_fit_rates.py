# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Fit the rates of a theory to a training run
#
# A training run shows losses and attention. Which learning rates does the theory need to reproduce them? Sensitivities give
# the derivatives of the theory with respect to its rates, and `scipy.optimize.least_squares` does the rest.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import odesim
from odesim.plot import STYLE

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## The data: a transformer, trained by plain SGD
#
# Its contexts are infinitely long, from a table `P`, so that nothing is noise. Pretend that we do not know its two rates.

# %%
P = np.zeros((2, 9))
P[:, :3] = 1  # common tokens
P[0, 3:6] = P[1, 6:] = [0.2, 0.6, 1.0]  # tokens of one class
P /= P.sum(axis=1, keepdims=True)


def trained(rates, steps):
    """t (T,), and ln loss and ln attention to the token learned first (2, T) of a training by these rates of decoder and attention."""
    settings = {
        "P": P.tolist(),
        "M": 20,
        "momentum": 0.0,
        "eta_Y": rates[0],
        "eta_Z": rates[1],
    }
    run = odesim.train("scan_snap", settings=settings, steps=steps + 1, save=26)
    observed = run.observables
    return run.t.astype(float), np.log([observed["loss"][0], observed["c"][0, :, 0, 5]])


# %% [markdown]
# ## The theory, with its derivatives
#
# `sensitivities=("eta_Y", "eta_Z")` integrates the derivatives of every state and observable along with the flow. Nothing is
# a difference of two runs.


# %%
def theory(rates, t):
    """ln loss and ln attention (2, T), and their derivatives (2, T, 2) with respect to ln eta_Y and ln eta_Z."""
    names = ("eta_Y", "eta_Z")
    params = {"P": P, "M": 20.0, **dict(zip(names, rates, strict=True))}
    run = odesim.integrate(
        "scan_snap.full",
        params=params,
        span=(0, t[-1]),
        save=t,
        sensitivities=names,
        rtol=1e-8,
        atol=1e-11,
    )
    value = np.stack([run.observables["loss"], run.observables["c"][:, 0, 5]])
    slopes = [
        rate
        * np.stack(
            [run.sensitivities[name]["loss"], run.sensitivities[name]["c"][:, 0, 5]]
        )
        / value
        for name, rate in zip(names, rates, strict=True)
    ]
    return np.log(value), np.stack(slopes, axis=-1)


# %% [markdown]
# A check of the derivatives: a central difference.

# %%
t, step = np.linspace(0, 50, 26), 1e-3
slopes = theory((1.0, 1.0), t)[1]
difference = (
    theory((np.exp(step), 1.0), t)[0] - theory((np.exp(-step), 1.0), t)[0]
) / (2 * step)
print(f"largest difference: {np.abs(slopes[..., 0] - difference).max():.1e}")
np.testing.assert_allclose(slopes[..., 0], difference, atol=1e-5)

# %% [markdown]
# ## The fit


# %%
def fitted(rates, steps):
    """The rates (2,) with which the theory fits a training best, the data, the times and the number of runs."""
    t, data = trained(rates, steps)
    fit = least_squares(
        lambda x: (theory(np.exp(x), t)[0] - data).ravel(),
        x0=np.log(rates) + np.array([0.5, -0.5]),
        jac=lambda x: theory(np.exp(x), t)[1].reshape(-1, 2),
    )
    return np.exp(fit.x), data, t, fit.nfev


off = []
for scale in (1.0, 0.5, 0.25):
    rates = np.array([1.0, 2.0]) * scale
    found, data, t, runs = fitted(rates, round(100 / scale))
    off.append(np.abs(found / rates - 1))
    print(
        f"trained with {rates}, fitted {found.round(4)} after {runs} runs of the theory"
    )

# %%
best = theory(found, t)[0]
figure, axes = plt.subplots(1, 2, figsize=(6, 2.3), layout="constrained")
for axis, points, line, name in zip(
    axes, data, best, ("ln loss", "ln attention to token 5"), strict=True
):
    axis.plot(t, points, "o", ms=3, label="training")
    axis.plot(t, line, label="theory with the fitted rates")
    axis.set(xlabel="iteration", ylabel=name)
axes[0].legend()
plt.show()

# %% [markdown]
# The fit finds both rates. What is left is the size of a step: the theory is a flow, the training takes steps. With half the
# rate the error is half as large.

# %%
off = np.array(off)
print("relative errors:", off.round(4).tolist())
assert off[-1].max() < 0.1
assert np.all(off[1:] < 0.65 * off[:-1])
