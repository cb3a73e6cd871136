# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Tokens as particles: clusters, and how long they live
#
# Layers of self-attention move tokens $x_i$ over a sphere; depth is time (Geshkovski, Letrouit, Polyanskiy,
# Rigollet, arXiv 2312.10794): $\dot x_i$ is the tangent part of $\sum_j \mathrm{softmax}_j(\beta\langle x_i, x_j\rangle)\,x_j$.
# That is `particles.sphere` with $Q = K = V = I$.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.special import ive

import odesim
from odesim.plot import STYLE

FINE = {"rtol": 1e-9, "atol": 1e-12}

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## A film of 48 tokens
#
# For $\beta = 8$ tokens gather in a few clusters at once. These are not the end: clusters merge, ever more slowly.

# %%
rng = np.random.default_rng(0)
times = np.geomspace(1, 401, 46) - 1
tokens = odesim.integrate(
    "particles.sphere",
    params={"beta": 8, "x0": rng.normal(size=(48, 3))},
    span=(0, 400),
    save=times,
    backend="numpy",
    **FINE,
)
film = odesim.plot.animate(tokens, "tokens.gif", var="x", fps=10)
frames = film.read_bytes().count(
    b"\x21\xf9\x04"
)  # the block that begins each frame of a GIF
print(f"{film}: {frames} frames")
assert frames == len(times)

# %%
figure = plt.figure(figsize=(6.8, 2), layout="constrained")
round_, up = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
ball = np.sin(up) * np.cos(round_), np.sin(up) * np.sin(round_), np.cos(up)
for k, at in enumerate((0, 9, 23, 45)):
    axes = figure.add_subplot(1, 4, k + 1, projection="3d")
    axes.plot_wireframe(*ball, color="lightgrey", lw=0.3)
    axes.scatter(*tokens.y["x"][at].T, s=12, depthshade=False)
    axes.set_box_aspect((1, 1, 1), zoom=1.6)
    axes.set_title(f"t = {times[at]:.3g}")
    axes.set_axis_off()
plt.show()
lengths = np.linalg.norm(tokens.y["x"], axis=2)
np.testing.assert_allclose(lengths, 1, atol=1e-5)
products = tokens.observables["product"]
energy = np.exp(8 * (products - 1)).mean(axis=(1, 2))
assert np.diff(energy).min() > -1e-8  # the paper: the interaction energy rises

# %% [markdown]
# ## Tokens with equal products
#
# From orthogonal tokens all products stay equal, and one equation, `particles.gamma`, is enough:
# $\dot\gamma = 2(1-\gamma)((n-1)\gamma + 1) \,/\, (e^{\beta(1-\gamma)} + n - 1)$. Its times of passage are integrals, which scipy
# computes. For $\beta = 0$ the solution is $(e^{2t} - 1)/(e^{2t} + n - 1)$.

# %%
n = 32
both = {"span": (0, 6), "save": 31, **FINE}
for beta in (0, 4):
    many = odesim.integrate(
        "particles.sphere",
        params={"beta": beta, "x0": np.eye(n)},
        backend="numpy",
        **both,
    )
    one = odesim.integrate("particles.gamma", params={"beta": beta, "n": n}, **both)
    np.testing.assert_allclose(
        many.observables["product"][:, 1:, 0].T - one.y["gamma"], 0, atol=1e-6
    )
    if beta == 0:
        law = (np.exp(2 * one.t) - 1) / (np.exp(2 * one.t) + n - 1)
        np.testing.assert_allclose(one.y["gamma"], law, atol=1e-7)


# %%
def speed(g, beta):
    return 2 * (1 - g) * ((n - 1) * g + 1) / (np.exp(beta * (1 - g)) + n - 1)


figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
for beta in (0, 2, 4, 6, 7):
    run = odesim.integrate(
        "particles.gamma",
        params={"beta": beta, "n": n},
        span=(0, 40),
        save=401,
        events=["half: gamma - 0.5"],
        **FINE,
    )
    axes.plot(run.t, run.y["gamma"], label=rf"$\beta$ = {beta}")
    passage = quad(lambda g, beta=beta: 1 / speed(g, beta), 0, 0.5, epsabs=1e-12)[0]
    np.testing.assert_allclose(run.events["half"][0]["t"], passage, rtol=1e-6)
axes.set(xlabel="t", ylabel=r"product $\gamma$")
axes.legend()
plt.show()

# %% [markdown]
# ## Two clusters: a life of $e^\beta$
#
# Two clusters of equally many tokens, at right angles: their product $r$ obeys $\dot r = 2(1 - r^2)/(1 + e^{\beta(1-r)})$.
# They live for about $e^\beta/2\beta$, however many tokens they have.

# %%
betas = np.arange(1.0, 15.0)
run = odesim.ensemble(
    "particles.two_clusters",
    params={"beta": betas, "m1": 20, "m2": 20},
    span=(0, 1e6),
    events=["merged: r - 0.9"],
    **FINE,
)
lives = run["merged_t"].values[:, 0]
want = [
    quad(lambda r, b=b: (1 + np.exp(b * (1 - r))) / 2 / (1 - r**2), 0, 0.9)[0]
    for b in betas
]
np.testing.assert_allclose(lives, want, rtol=1e-6)
large = betas >= 10
leading = np.exp(betas) / (2 * betas)
np.testing.assert_allclose(lives[large], leading[large], rtol=0.03)
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
axes.semilogy(betas, lives, "o", label="until r = 0.9")
axes.semilogy(betas, leading, "k", lw=0.8, label=r"$e^\beta/2\beta$")
axes.set(xlabel=r"$\beta$", ylabel="life of two clusters")
axes.legend()
plt.show()

# %% [markdown]
# ## How many clusters at first
#
# On a circle an even crowd is a rest that does not last: a wave of $k$ crests grows at the rate
# $k^2 I_k(\beta)/(\beta I_0(\beta))$, with Bessel functions. The fastest wave tells, to one or so, how many clusters
# come first.

# %%
beta, even, modes = 9, 2 * np.pi * np.arange(128) / 128, np.arange(1, 9)
rates = []
for k in modes:
    wave = np.sin(k * even)
    run = odesim.integrate(
        "particles.circle",
        params={"beta": beta},
        initial={"theta": even + 1e-6 * wave},
        span=(0, 0.5),
        backend="numpy",
        **FINE,
    )
    grown = (run.final["theta"] - even) @ wave / (1e-6 * wave @ wave)
    rates.append(np.log(grown) / 0.5)
bessel = modes**2 * ive(modes, beta) / (beta * ive(0, beta))
np.testing.assert_allclose(rates, bessel, atol=1e-5)
crowd = odesim.integrate(
    "particles.circle",
    params={"beta": beta},
    initial={"theta": even + 1e-3 * rng.normal(size=128)},
    span=(0, 200),
    save=np.r_[np.linspace(0, 20, 101), np.geomspace(20.5, 200, 60)],
    backend="numpy",
)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(6.8, 2.4), layout="constrained")
left.bar(modes, bessel, color="C0", alpha=0.5, label="Bessel functions")
left.plot(modes, rates, "k.", label="particles.circle")
left.set(xlabel="crests k", ylabel="rate of growth", ylim=(0, 0.95))
left.legend()
right.plot(crowd.t, np.mod(crowd.y["theta"] + 1, 2 * np.pi), "C0.", ms=0.8)
right.set(xlabel="t", ylabel="angle, turned by 1", xlim=(1, 200), xscale="log")
plt.show()
places = np.sort(np.mod(crowd.y["theta"][100], 2 * np.pi))  # at t = 20
clusters = (np.diff(places, append=places[0] + 2 * np.pi) > 0.1).sum()
print(f"{clusters} clusters at t = 20")
assert abs(clusters - modes[bessel.argmax()]) <= 1
