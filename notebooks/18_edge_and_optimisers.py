# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # At the edge, and what optimisers make of slow directions
#
# Gradient descent with a learning rate $\eta$ is stable where the sharpness, the largest curvature of the loss, is below
# $2/\eta$. Trainings go there by themselves, and stay (Cohen et al. 2021, arXiv 2103.00065). First a small network that does;
# then maps of two or three numbers in which one can say on paper why, and where they end; then other optimisers on losses that
# have directions of different curvature: which learn one after the other, and which learn all at one rate.

# %%
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm
from sympy import Interval, Sum, oo, tanh

import odesim
from odesim.plot import STYLE
from odesim.symbolic import (
    IndexedBase,
    Param,
    Source,
    System,
    descent,
    gradient_flow,
    index,
    over,
    sizes,
)

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## Ten neurons
#
# Ten tanh units learn $\sin 3x$ on twelve points. The network is written as a loss; `gradient_flow` has its slopes, `descent`
# makes steps of the flow, and `odesim.spectrum` has the exact Hessian along them. For $\eta = 0.05$ the edge is at 40, far
# away; larger rates are held at theirs.

# %%
i, n = index("i n")
N, P = sizes("N P")
w, b, v = (IndexedBase(name, shape=(N,)) for name in "wbv")
x, y = IndexedBase("x", shape=(P,)), IndexedBase("y", shape=(P,))
output = over(Sum, v[i] * tanh(w[i] * x[n] + b[i]), (i, N))
loss = over(Sum, (output - y[n]) ** 2, (n, P)) / (2 * P)
network = System(
    name="ten_neurons",
    source=Source("cohen2021gradient", "a network of one hidden layer"),
    axes={i: N, n: P},
    equations=gradient_flow(loss, {w[i]: 1, b[i]: 1, v[i]: 1}),
    params=[Param(a, 0.0, Interval(-oo, oo), "data") for a in (x, y)],
    initial={w[i]: 1, b[i]: 0, v[i]: 1},
    sizes={N: 10, P: 12},
)
rng = np.random.default_rng(0)
scales = {"w": 1, "b": 0.5, "v": 0.1**0.5}
start = {name: scale * rng.normal(size=10) for name, scale in scales.items()}
points = np.linspace(-1, 1, 12)
figure, axes = plt.subplots(figsize=(4.2, 2.4), layout="constrained")
for k, eta in enumerate((0.05, 0.6, 0.8)):
    sharpness = odesim.spectrum(
        replace(descent(network, step=eta), observables={"loss": loss}),
        params={"x": points, "y": np.sin(3 * points)},
        initial=start,
        steps=8000,
        save=101,
        most=1,
    )["sharpness"].isel(top=0)
    axes.plot(sharpness.time, sharpness, color=f"C{k}", lw=0.8, label=f"η = {eta}")
    if eta > 0.05:
        axes.axhline(2 / eta, color=f"C{k}", lw=0.7, ls=":")
    print(f"eta = {eta}: sharpness {float(sharpness[-1]):.3f}, edge {2 / eta:g}")
axes.set(xlabel="step", ylabel="sharpness, and the edge (dotted)")
axes.legend(ncols=3)
plt.show()
assert abs(sharpness[-50:] / 2.5 - 1).max() < 0.01

# %% [markdown]
# ## What turns it back
#
# Let $x$ be the place along the sharpest direction and $y = \eta S - 2$. Above the edge each step flips $x$ and makes it larger,
# and $x^2$ lowers the sharpness $S$; the gradient raises it again (Damian, Nichani, Lee 2023, arXiv 2209.15594). For small steps
# this would be a closed cycle on which $H = y^2 + \epsilon (u - \ln u - 1)$ stays, $u = b x^2 / (2\epsilon)$. The steps
# themselves go outward: near the middle $H$ grows by $1 + 2\epsilon$ each.

# %%
ea = 1e-3
run = odesim.integrate(
    "edge.self_stabilisation",
    params={"ea": ea},
    initial={"x": 0.03, "y": 0.0},
    steps=700,
    save=701,
)
x, y, u = run.y["x"], run.y["y"], run.observables["u"]
assert (x[1:] * x[:-1] < 0).all()  # every step crosses the valley

figure, axes = plt.subplots(figsize=(3.8, 2.5), layout="constrained")
grid_u, grid_y = np.meshgrid(np.linspace(0.02, 4, 200), np.linspace(-0.04, 0.04, 200))
level = grid_y**2 + ea * (grid_u - np.log(grid_u) - 1)
axes.contour(
    grid_u,
    grid_y,
    level,
    levels=ea * np.arange(0.1, 1.3, 0.15),
    colors="0.8",
    linewidths=0.5,
)
axes.plot(u, y, lw=0.8)
axes.axhline(0, color="k", lw=0.5, ls=":")
axes.set(xlabel="u, the square of x over its mean", ylabel="y, above the edge")
plt.show()

near = odesim.integrate(
    "edge.self_stabilisation",
    params={"ea": 0.01},
    initial={"x": 0.02**0.5 * (1 + 1e-6), "y": 0.0},
    steps=200,
    save=201,
)
size = (abs(near.y["x"]) / 0.02**0.5 - 1) ** 2 * 0.02 + near.y["y"] ** 2
print(
    f"H after 200 steps, over H: {size[-1] / size[0]:.3f}, by formula {1.02**200:.3f}"
)
assert abs(size[-1] / size[0] / 1.02**200 - 1) < 0.01

# %% [markdown]
# ## Where it ends does not depend on where it began
#
# On a loss $\ell(xy)$ with $\ell = s^2/2 - c s^4/4 + \ldots$ the minima are the line $x = 0$, and the sharpness there is $y^2$.
# Whoever comes from above $2/\eta$ leaves the edge on one and the same orbit, with $y^2 = 2/\eta - \eta/(2c)$; whoever starts
# below keeps nearly all that it had, as under gradient flow.

# %%
eta = 0.1
figure, (left, right) = plt.subplots(1, 2, figsize=(6.0, 2.4), layout="constrained")
ends = {}
for y0 in (4.4, 5.0, 6.0):
    run = odesim.integrate(
        "edge.product", initial={"x": 0.1, "y": y0}, steps=4000, save=4001
    )
    left.plot(run.observables["sharpness"][:200], label=f"from y = {y0:g}")
    ends[y0] = float(run.final_observables["sharpness"])
left.axhline(2 / eta, color="k", lw=0.7, ls=":")
left.set(xlabel="step", ylabel="sharpness")
left.legend()
print({y0: round(end, 5) for y0, end in ends.items()})
assert abs(ends[5.0] - ends[6.0]) < 1e-6 and abs(ends[4.4] - (4.4**2 - 0.1**2)) < 0.15

rates = np.array([0.2, 0.1, 0.05, 0.03])
for shape, c in ((0, 1 / 2), (1, 1 / 3)):
    gaps = []
    for rate in rates:
        run = odesim.integrate(
            "edge.product",
            params={"eta": rate, "shape": shape},
            initial={"x": 0.1, "y": (2 / rate + 2) ** 0.5},
            steps=round(60 / rate**2),
            save=2,
        )
        gaps.append(float(run.final_observables["gap"]))
    right.loglog(rates, gaps, "o", ms=3, label=["√(1 + s²)", "ln cosh s"][shape])
    right.loglog(rates, rates / (2 * c), "k:", lw=0.7)
    np.testing.assert_allclose(gaps, rates / (2 * c), rtol=rates.max() ** 2)
right.set(xlabel="learning rate", ylabel="2/η − sharpness, in the end")
right.set_xticks([0.03, 0.1, 0.2], ["0.03", "0.1", "0.2"])
right.set_yticks([0.03, 0.1, 0.3], ["0.03", "0.1", "0.3"])
right.minorticks_off()
right.legend()
plt.show()

# %% [markdown]
# ## A flow along the edge
#
# In a valley whose steepness changes along it gradient descent does not follow the gradient flow, which goes over the edge. In
# the mean it is a flow of its own, the *central flow*, in which the swings across the valley have a size that just keeps the
# sharpness at $2/\eta$ (Cohen et al. 2024, arXiv 2410.24206).

# %%
times = np.linspace(0, 3000, 301)
steps = odesim.integrate("edge.valley", steps=3150, save=3151)
flow = odesim.integrate(
    "edge.central_flow", params={"stiff": 100.0}, span=(0, 3000), save=times
)


def mean(a):
    """Means over 301 steps, from step 150 to step 3000."""
    return np.convolve(a, np.full(301, 1 / 301), "valid")


gradient = 2 - 0.45 * np.exp(-1e-3 * times), 1 - 0.7 * np.exp(-1e-3 * times)
figure, (floor, swings) = plt.subplots(1, 2, figsize=(6.2, 2.5), layout="constrained")
floor.plot(steps.y["y1"], steps.y["y2"], color="0.8", lw=0.5, label="steps")
floor.plot(mean(steps.y["y1"]), mean(steps.y["y2"]), label="their mean")
floor.plot(flow.y["y1"], flow.y["y2"], "--", label="central flow")
floor.plot(*gradient, ":", label="gradient flow")
floor.set(xlabel="$y_1$", ylabel="$y_2$")
floor.legend()
swings.plot(np.arange(150, 3001), 1000 * mean(steps.y["x"] ** 2))
swings.plot(times[1:], 1000 * flow.observables["sigma2"][1:], "--")
swings.set(xlabel="step", ylabel="1000 × mean square of x", ylim=(0, 3))
plt.show()

late = times >= 500
off = mean(steps.y["y1"])[times[late].astype(int) - 150] - flow.y["y1"][late]
print("mean of the steps from the central flow, worst:", abs(off).max().round(4))
assert abs(off).max() < 0.02 and flow.y["y1"][-1] < gradient[0][-1] - 0.4
assert abs(flow.observables["sharpness"][late] - 20).max() < 1e-3

# %% [markdown]
# ## A threshold, for a large learning rate only
#
# A ReLU neuron whose bias starts at 0 should learn a threshold. In the mean over its $d$ inputs it does so only for
# $\eta > 8\pi/d^2$, where the sharpness at the start is above $2/\eta$ (Ahn et al. 2022, arXiv 2212.07469). The bias falls past
# the one at which the edge is passed, $d^2 \eta\, g(b)^2 = 4$: $A$ is still large there, and has to shrink as it grew.

# %%
shares = np.concatenate([np.linspace(0.3, 0.95, 6), np.linspace(1.05, 3, 14)])
bias, edge = [], []
for eta in shares * 8 * np.pi / 400:
    run = odesim.integrate(
        "edge.threshold_neuron", params={"eta": eta}, steps=3000, save=2
    )
    bias.append(float(run.final["b"]))
    edge.append(
        brentq(
            lambda b, eta=eta: 400 * eta * (norm.pdf(b) + b * norm.cdf(b)) ** 2 - 4,
            -3,
            3,
        )
    )
bias, edge, above = np.array(bias), np.array(edge), shares > 1
figure, axes = plt.subplots(figsize=(3.8, 2.3), layout="constrained")
axes.plot(shares, bias, "o-", ms=2, label="bias in the end")
axes.plot(shares[above], edge[above], "k:", lw=0.8, label="bias at the edge")
axes.set(xlabel="learning rate × d² / (8π)", ylabel="bias")
axes.legend()
plt.show()
print("bias over that at the edge:", (bias / edge)[above][:4].round(2))
assert (abs(bias[~above]) < 2e-3).all() and (bias[above] < edge[above]).all()

# %% [markdown]
# ## Looking uphill first
#
# Sharpness-aware descent (SAM) takes the gradient at a point $\rho$ further up. On a parabola of curvature $\lambda$ it never
# arrives: it ends in a cycle of two about the minimum, $|w| = \eta\lambda\rho/(2 - \eta\lambda)$, from every start.

# %%
rho = 0.05
products = np.linspace(0.1, 1.8, 18)
found = []
for product in products:
    for w in (0.3, -1.0):
        run = odesim.integrate(
            "edge.sam",
            params={"eta": product / 4, "lam": 4.0, "rho": rho},
            initial={"w": w},
            steps=400,
            save=[0, 399, 400],
        )
        found.append(run.y["w"][1:])
found = np.array(found).reshape(18, 2, 2)
cycle = products * rho / (2 - products)
figure, axes = plt.subplots(figsize=(3.8, 2.3), layout="constrained")
axes.plot(products, found.reshape(18, 4), "C0.", ms=3)
axes.plot(products, cycle, "k:", products, -cycle, "k:", lw=0.8)
axes.set(xlabel="η λ", ylabel="w, the last two steps")
plt.show()
np.testing.assert_allclose(
    np.sort(found), np.stack([-cycle, cycle], 1)[:, None] + 0 * found, atol=1e-9
)

# %% [markdown]
# ## One after the other, or all at once
#
# Now $w^\top H w / 2$ with curvatures 1 and 10, from $(1, 1)$. Gradient flow is done with the steep direction ten times as
# early. Signs, and Adam, which is nearly signs, move both at the rate 1. With momentum a weight has a mass, and the steep
# direction swings while the other creeps; its $t$ is steps times $\sqrt\eta$, that of the others steps times $\eta$.

# %%
ten = {"H": np.diag([1.0, 10.0]), "w0": 1.0}
save = np.linspace(0, 6, 601)
often = {"span": (0, 6), "save": save, "backend": "numpy"}
runs = {
    "gradient": np.exp(-np.outer(save, [1, 10])),
    "signs": odesim.integrate(
        "optimisers.sign", params={**ten, "eps": 1e-3}, method="rodas5p", **often
    ).y["w"],
    "Adam": odesim.integrate("optimisers.adam", params=ten, **often).y["w"],
    "momentum": odesim.integrate(
        "optimisers.momentum", params={**ten, "gamma": 2.0}, **often
    ).y["w"],
}
figure, (plane, away) = plt.subplots(1, 2, figsize=(6.2, 2.6), layout="constrained")
for k, (name, w) in enumerate(runs.items()):
    plane.plot(*w.T, color=f"C{k}", label=name)
    away.plot(save, w[:, 0], color=f"C{k}")
    away.plot(save, w[:, 1], color=f"C{k}", ls="--", lw=0.7)
    done = [save[np.flatnonzero(abs(w[:, i]) > 0.1)[-1]] for i in (0, 1)]
    print(f"{name:9} less than a tenth is left from {done[0]:.2f} and {done[1]:.2f} on")
plane.set(xlabel="$w_1$, curvature 1", ylabel="$w_2$, curvature 10")
plane.legend()
away.set(xlabel="t", ylabel="$w_1$, and $w_2$ (dashed)", xlim=(0, 6))
plt.show()
assert abs(runs["signs"][50] - 0.5).max() < 2e-3
assert abs(np.diff(runs["Adam"][:200], axis=1)).max() < 2e-3

# %% [markdown]
# Signs depend on the axes. Where the slopes of two weights are coupled the path is straight until one slope is 0, and slides
# along that line.

# %%
slide = odesim.integrate(
    "optimisers.sign",
    params={"H": [[2, 1.5], [1.5, 2]], "w0": [1, 0.2], "eps": 1e-4},
    span=(0, 1),
    save=[0, 19 / 35, 0.9, 1],
    method="rodas5p",
)
print(slide.y["w"].round(3))
by_hand = [[1, 0.2], [16 / 35, -12 / 35], [0.1, -0.075], [0, 0]]
np.testing.assert_allclose(slide.y["w"], by_hand, atol=1e-3)

# %% [markdown]
# ## The edge of momentum
#
# Forty directions at once, by steps of a heavy ball: how much is left of each after a step, in the mean. Slow directions gain
# most: where the multipliers are complex all have the same rate, $\sqrt\mu$, and the edge moves from $\eta h = 2$ to $2 + 2\mu$.

# %%
h = np.linspace(0.02, 3.98, 44)
figure, axes = plt.subplots(figsize=(3.8, 2.4), layout="constrained")
for k, mu in enumerate((0.0, 0.5, 0.9)):
    run = odesim.integrate(
        "optimisers.heavy_ball",
        params={"H": np.diag(h), "w0": 1.0, "lr": 1.0, "mu": mu},
        sizes={"n": 44},
        steps=160,
        save=161,
        backend="numpy",
    )
    w = abs(run.y["w"])
    rate = (w[120:].max(axis=0) / w[40:81].max(axis=0)) ** (1 / 80)
    half = (1 + mu - h) / 2
    theory = abs(half) + np.sqrt(np.maximum(half**2 - mu, 0))
    theory = np.where(half**2 < mu, np.sqrt(mu), theory)
    axes.plot(h, theory, "k:", lw=0.7)
    axes.plot(h, rate, ".", color=f"C{k}", ms=3, label=f"μ = {mu:g}")
    np.testing.assert_allclose(rate, theory, atol=0.03)
    assert ((w[-1] > 1) == (h > 2 + 2 * mu)).all()
axes.axhline(1, color="k", lw=0.5)
axes.set(xlabel="learning rate × curvature", ylabel="left after a step", ylim=(0, 2))
axes.legend()
plt.show()

# %% [markdown]
# ## Muon: signs of singular values
#
# Muon gives a step all singular directions of the gradient at nearly one length. With the exact polar factor singular values of
# $W$ are $\min(t, s_i)$ on $|W - A|^2/2$: no plateaus, while two layers under gradient flow learn one after the other. Five
# steps of its polynomial do not orthogonalise: they leave lengths between 0.68 and 1.13, and more steps do not help.

# %%
A = np.array([[3, 0.5, 0], [0.2, 1.5, 0.3], [0, 0.1, 0.6]])
s = np.linalg.svd(A)[1]
start = np.geomspace(1e-3, 1, 800)
polynomial = odesim.integrate(
    "optimisers.newton_schulz",
    sizes={"K": 800},
    initial={"s": start},
    steps=10,
    save=[0, 5, 10],
    backend="numpy",
).y["s"]
muon = odesim.integrate(
    "optimisers.muon",
    params={"A": A, "lr": 0.005},
    steps=1000,
    save=101,
    backend="numpy",
)
layers = odesim.integrate(
    "classics.deep_linear_modes",
    params={"s": s, "L": 2.0},
    initial={"a": 0.01},
    sizes={"r": 3},
    span=(0, 5),
    save=101,
    backend="numpy",
)
t = 0.005 * muon.t
values = np.linalg.svd(muon.y["W"])[1]
figure, (first, second) = plt.subplots(1, 2, figsize=(6.2, 2.5), layout="constrained")
first.semilogx(start, polynomial[1], label="5 steps")
first.semilogx(start, polynomial[2], lw=0.6, label="10 steps")
first.set(xlabel="singular value", ylabel="after the steps", ylim=(0, 1.3))
first.legend()
second.plot(t, values)
second.plot(t, np.minimum(t[:, None], s), "k:", lw=0.8)
second.plot(layers.t, layers.y["a"], color="0.7", lw=0.8)
second.set(xlabel="t", ylabel="singular values of W")
second.set_title("Muon; min(t, s) dotted, two layers grey", fontsize=7)
plt.show()
inside = polynomial[1][start >= 0.01]
print("lengths after five steps:", inside.min().round(3), "to", inside.max().round(3))
assert 0.68 < inside.min() < 0.7 and 1.12 < inside.max() < 1.135
on_the_way = values[1:13] / t[1:13, None]
assert on_the_way.min() > 0.67 and on_the_way.max() < 1.14
half = layers.t[np.argmax(layers.y["a"] > s / 2, axis=0)]
print("two layers by gradient flow are half way at", half)
np.testing.assert_allclose(half, np.log(s / 0.01 - 1) / (2 * s), atol=0.06)

# %% [markdown]
# What the papers state of these models, and whether it holds: `odesim verify edge` and `odesim verify optimisers`. A network
# that learns to add, by SGD and by Muon, is in the notebook on modular addition.
