# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Plateaus and cliffs: an induction head, a memory, and two classics
#
# Four small systems whose loss rests and then falls: an induction head and an associative memory (Bietti et al. 2023, arXiv
# 2306.00802), a two-layer student with a teacher (Goldt et al. 2019, arXiv 1906.08632), and a deep linear network (Saxe,
# McClelland, Ganguli 2014, arXiv 1312.6120).

# %%
from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import erf, lambertw, softmax

import odesim
from odesim.plot import STYLE

FINE = {"rtol": 1e-9, "atol": 1e-12}

plt.style.use(STYLE)  # of the pictures of odesim

# %% [markdown]
# ## An induction head in three numbers
#
# A sequence has $N$ distinct tokens of $V$. One of them is shown again; what followed it is to be told. Layer 1 must find the
# previous token ($a$), layer 2 the token that is asked for ($b$), the output must copy ($c$). By symmetry the matrices are
# multiples of three directions. The loss of the whole model, over all sequences, tells whether the reduction is right.


# %%
def whole_loss(a, b, c, N, V):
    shift = np.roll(np.eye(N), -1, axis=1)
    first = softmax(a * shift, axis=1)
    losses = []
    for x in permutations(range(V), N):
        tokens = np.eye(V)[list(x)]
        seen = softmax(b * tokens @ (first @ tokens).T, axis=1)  # query, place
        output = softmax(c * seen @ tokens, axis=1)
        losses.append(-np.log((output * np.roll(tokens, -1, axis=0)).sum(axis=1)))
    return np.mean(losses)


for a, b, c in ((0.7, 0.9, 1.3), (2.0, 3.0, 4.0)):
    reduced = odesim.integrate(
        "induction.stages",
        params={"N": 4, "V": 6},
        initial={"a": a, "b": b, "c": c},
        span=(0, 1e-6),
        **FINE,
    )
    want = whole_loss(a, b, c, 4, 6)
    np.testing.assert_allclose(reduced.observables["loss"][0], want, rtol=1e-12)

# %% [markdown]
# First only $c$ grows: any token of the sequence is a better guess than any of the vocabulary. The loss creeps from $\ln V$
# towards $\ln N$. Then $a$ and $b$, which need each other, are large enough, and it falls at once.

# %%
run = odesim.integrate("induction.stages", save=1001, **FINE)  # N = 32, V = 64
figure, axes = plt.subplots(figsize=(3.7, 2.3), layout="constrained")
axes.plot(run.t, run.observables["loss"], label="loss")
for name, level in (("ln V", np.log(64)), ("ln N", np.log(32))):
    axes.axhline(level, color="grey", ls="--", lw=0.8)
    axes.text(0, level - 0.05, name, va="top")
for name, label in (("s1", "previous token"), ("s2", "answer")):
    axes.plot(run.t, run.observables[name], label=f"attention to the {label}")
axes.set(xlabel="t", ylabel="loss, attention", ylim=(0, 4.6))
axes.legend(loc="center left")
plt.show()
np.testing.assert_allclose(run.observables["loss"][0], np.log(64), rtol=1e-3)
assert np.log(32) < run.observables["loss"][run.t == 700] < np.log(64)
assert run.observables["loss"][-1] < 0.1

# %% [markdown]
# When does it fall? On the plateau $c$ grows in line with $t$, and $a$ and $b$ as $e^{t^2/4N^3}$: after a time of order
# $N^{3/2}$, or $N^{5/2}$ where the matrices are trained, whose directions have a length of about $\sqrt N$.

# %%
sizes = 2 ** np.arange(3, 12)
figure, axes = plt.subplots(figsize=(3.3, 2.3), layout="constrained")
for variant, power in (("", 1.5), (":MATRIX", 2.5)):
    times = []
    for N in sizes:
        fall = odesim.integrate(
            f"induction.stages{variant}",
            params={"N": N, "V": 2 * N},
            span=(0, 8 * N**power),
            save=2,
            events=["fall: loss - log(N)/2"],
            **FINE,
        )
        times.append(fall.events["fall"][0]["t"])
    exponents = np.diff(np.log2(times))
    print(f"exponents of N: {exponents.round(3)}")
    assert np.all(np.diff(exponents) > 0)
    np.testing.assert_allclose(exponents[-1], power, atol=0.003)
    label = "matrices trained" if variant else "a, b, c trained"
    axes.loglog(sizes, times, "o-", label=f"{label}: $N^{{{power}}}$")
axes.set(xlabel="tokens N", ylabel="t where the loss is ln N / 2")
axes.legend()
plt.show()

# %% [markdown]
# ## A memory learns frequent tokens first
#
# One matrix learns a label for each token. The margin obeys $\dot m = Mp/(e^m + M - 1)$ and is known in closed form:
# $m = A - W_0\!\left(e^A/(M-1)\right)$ with $A = (1 + Mpt)/(M-1)$ and Lambert's $W_0$. It depends on $p t$ alone.

# %%
memory = odesim.integrate("memory.softmax_regression", save=301, **FINE)
p, M = memory.attrs["params"]["p"], 7
A = (1 + M * memory.t[:, None] * p) / (M - 1)
law = A - lambertw(np.exp(A) / (M - 1)).real
np.testing.assert_allclose(memory.y["m"], law, atol=1e-7)
figure, (left, right) = plt.subplots(1, 2, figsize=(6.3, 2.3), layout="constrained")
left.plot(memory.t, memory.y["m"])
left.set(xlabel="t", ylabel="margin", title="ten tokens, p from 0.34 to 0.03")
right.semilogx(memory.t[1:, None] * p, memory.y["m"][1:], ".", ms=2)
right.set(xlabel="p t", title="on one curve")
plt.show()

# %% [markdown]
# ## A student and a teacher
#
# Both have two hidden nodes; $e_g$ is the error on new data. The student first finds what both nodes of the teacher have in
# common, and rests on a plateau; then each node takes one of the teacher's. `classics.committee` follows the overlaps $Q$ and
# $R$ for infinite dimension. Beside it: online learning by hand, in 500 dimensions.


# %%
def online(Q, R, N, seeds, end, eta=1.5):
    rng = np.random.default_rng(0)
    W = np.zeros((seeds, 2, N))  # the teacher's nodes are the first two axes
    W[:, :, :2], W[:, :, 2:4] = R, np.linalg.cholesky(Q - R @ R.T)
    W, s, errors = W * np.sqrt(N), np.array([-1, -1, 1, 1]), []
    teacher = np.tile(np.eye(2, N) * np.sqrt(N), (seeds, 1, 1))
    for step in range(end * N + 1):
        if step % N == 0:
            both = np.concatenate([W, teacher], axis=1)
            C = both @ both.transpose(0, 2, 1) / N
            size = np.sqrt(1 + np.diagonal(C, axis1=1, axis2=2))
            ratio = C / size[:, :, None] / size[:, None, :]
            errors.append(np.arcsin(ratio) @ s @ s / np.pi)
        x = rng.standard_normal((seeds, N))
        field = np.einsum("skn,sn->sk", W, x) / np.sqrt(N)
        miss = erf(field / np.sqrt(2)).sum(1) - erf(x[:, :2] / np.sqrt(2)).sum(1)
        pull = np.sqrt(2 / np.pi) * np.exp(-(field**2) / 2) * miss[:, None]
        W -= eta / np.sqrt(N) * pull[:, :, None] * x[:, None, :]
    return np.array(errors)


given = {"params": {"eta_2": 0.0}, **FINE}  # the first layer alone
Q, R = np.diag([0.25, 0.16]), np.diag([0.1, 0.05])
student = odesim.integrate(
    "classics.committee", initial={"Q": Q, "R": R}, span=(0, 60), save=61, **given
)
errors = online(Q, R, 500, seeds=4, end=60)
figure, (left, right) = plt.subplots(1, 2, figsize=(6.3, 2.3), layout="constrained")
left.semilogy(errors, color="C0", lw=0.8, alpha=0.5)
left.plot([], [], color="C0", label="4 seeds, 500 dimensions")
left.plot(student.t, student.observables["e_g"], "k--", label="classics.committee")
left.set(xlabel="samples / dimension", ylabel="$e_g$")
left.legend()
for i, m in np.ndindex(2, 2):
    right.plot(student.t, student.y["R"][:, i, m], label=f"student {i}, teacher {m}")
right.set(xlabel="samples / dimension", ylabel="overlap R")
right.legend()
plt.show()
theory = student.observables["e_g"]
np.testing.assert_allclose(errors[0], theory[0], rtol=1e-9)
np.testing.assert_allclose(errors[:11].mean(axis=1), theory[:11], rtol=0.05)

# %% [markdown]
# An independent script gives these numbers for a smaller $R$; the integrator of Goldt et al. agrees to the order of its step.
# The plateau is longer by as much for each factor of ten in $R$.

# %%
R = np.diag([1e-3, 5e-4])
recorded = {1: 0.208878051, 10: 0.0348479242, 50: 0.0345521567, 150: 1.68998421e-05}
run = odesim.integrate(
    "classics.committee",
    initial={"Q": Q, "R": R},
    span=(0, 150),
    save=[0, *recorded],
    **given,
)
np.testing.assert_allclose(
    run.observables["e_g"][1:], list(recorded.values()), rtol=1e-6
)
escape = []
for small in (1e-3, 1e-4, 1e-5):
    run = odesim.integrate(
        "classics.committee",
        initial={"Q": np.eye(2) / 5, "R": small * np.eye(2)},
        span=(0, 300),
        events=["escape: e_g - 0.02"],
        **given,
    )
    escape.append(run.events["escape"][-1]["t"])
print(f"the plateau ends at {np.round(escape, 1)}")
np.testing.assert_allclose(escape[2] - escape[1], escape[1] - escape[0], rtol=0.02)

# %% [markdown]
# ## A deep linear network learns mode by mode
#
# The singular values $s$ of the data are learned one by one, each along a sigmoid. For two layers half of it is there at
# $\ln(s/a_0 - 1)/2s$; three layers wait longer and then are faster.

# %%
strengths, a0 = np.array([3.0, 1.5, 0.75]), 1e-3
figure, axes = plt.subplots(figsize=(3.7, 2.3), layout="constrained")
for layers, line in ((2, "-"), (3, "--")):
    modes = odesim.integrate(
        "classics.deep_linear_modes",
        params={"s": strengths, "L": layers},
        span=(0, 14),
        save=281,
        events=["half: a[i] - s[i]/2"],
        **FINE,
    )
    axes.set_prop_cycle(None)
    axes.plot(modes.t, modes.y["a"], line, label=[f"s = {s:g}" for s in strengths])
    if layers == 2:
        axes.legend(loc=(0.7, 0.56))
        grown = np.exp(2 * strengths * modes.t[:, None])
        law = strengths * grown / (grown - 1 + strengths / a0)
        np.testing.assert_allclose(modes.y["a"], law, atol=1e-7)
        halves = [event["t"] for event in modes.events["half"]]
        np.testing.assert_allclose(
            halves, np.log(strengths / a0 - 1) / (2 * strengths), rtol=1e-7
        )
axes.set(xlabel="t", ylabel="mode a", title="two layers; dashed: three")
plt.show()
