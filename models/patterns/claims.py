"""What is stated of how patterns of attention arise, and what holds, by two numbers and by all weights of a head."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sympy import Interval, Sum, oo

import odesim
from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import IndexedBase, Param, Source, System, gradient_flow, index, logsumexp, over, sizes, softmax

# One head whose query is always the same, with all its weights: what the models of patterns have by symmetry, in claims beside them.

s, l, k, j = index("s l k j")
S, V, K = sizes("S V K")
Z, W = IndexedBase("Z", shape=(V,)), IndexedBase("W", shape=(V, K))
X, y, p = IndexedBase("X", shape=(S, V)), IndexedBase("y", shape=(S, K)), IndexedBase("p", shape=(S,))


def output(s: Any, k: Any) -> Any:
    """The logit of label k in context s."""
    return over(Sum, softmax(Z[l], (l, V), weight=X[s, l]) * W[l, k], (l, V))


loss = over(Sum, p[s] * (logsumexp(output(s, j), (j, K)) - over(Sum, y[s, k] * output(s, k), (k, K))), (s, S))

HEAD = System(
    name="patterns.head",
    source=Source("elhage2021mathematical", "one layer of attention", "one head, one query, all contexts"),
    axes={s: S, l: V, k: K, j: K},
    equations=gradient_flow(loss, {Z[l]: 1, W[l, k]: 1}),
    params=(
        Param(X, 1.0, Interval(0, oo), "how often each token is in a context"),
        Param(y, 0.5, Interval(0, 1), "probability of each label in a context"),
        Param(p, 1.0, Interval(0, 1), "probability of a context"),
    ),
    initial={Z[l]: 0, W[l, k]: 0},
    sizes={S: 1, V: 2, K: 2},
    span=(0.0, 100.0),
    time="steps times learning rate",
    observables={"loss": loss},
)


def keys_in_noise(K: int, N: int, n: int) -> dict[str, Any]:
    """X, y, p of all contexts of a key and n of N noise tokens; sequences with the same counts are counted one by one."""
    noise = np.indices((N,) * n).reshape(n, -1).T
    counts = (noise[:, :, None] == np.arange(N)).sum(axis=1)
    rows = [np.r_[np.eye(K)[key], row] for key in range(K) for row in counts]
    return {"X": rows, "y": np.repeat(np.eye(K), len(counts), axis=0), "p": np.full(len(rows), 1 / len(rows))}


def tokens_of_topics(T: int, rho: tuple[float, float]) -> dict[str, Any]:
    """X, y, p of T tokens of two topics: of topic k each shows k with chance (1 + rho[k])/2, else the other."""
    from scipy.stats import binom

    c = np.arange(T + 1)
    X = np.array([c, T - c], dtype=float).T
    shown = binom.pmf(c, T, (1 + rho[0]) / 2), binom.pmf(T - c, T, (1 + rho[1]) / 2)
    return {"X": np.tile(X, (2, 1)), "y": np.repeat(np.eye(2), T + 1, axis=0), "p": np.concatenate(shown) / 2}


SKIP, AGGREGATE = "patterns.skip_gram", "patterns.aggregate"
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12, "backend": "numpy"}
DIGITS = "half a unit of the last recorded digit"


def whole(given: dict[str, Any], initial: dict[str, Any] | None = None, times: tuple[float, ...] = (0, 5, 20, 100)) -> Any:
    """The flow of all weights of a head on these contexts."""
    (S, V), K = np.shape(given["X"]), np.shape(given["y"])[1]
    run: dict[str, Any] = {"sizes": {"S": S, "V": V, "K": K}, "save": times, "span": (0, times[-1]), "initial": initial}
    return odesim.integrate(HEAD, params=given, **run, **FINE | {"rtol": 1e-9})


RECORDED = {5: (0.074713, 0.336048), 20: (1.543867, 1.719721), 100: (4.026170, 4.620081)}


def reduction() -> Iterable[Measurement]:
    """Three keys, four of two noise tokens: all 5 + 15 weights beside z and u, and recorded digits."""
    run = whole(keys_in_noise(3, 2, 4))
    Z, W = run.y["Z"], run.y["W"]
    two = odesim.integrate(SKIP, save=[0, 5, 20, 100], **FINE)
    own, other = W[:, [0, 1, 2], [0, 1, 2]], W[:, [0, 1, 2], [1, 2, 0]]
    yield Measurement("Z[key] - Z[noise], from z", np.abs(Z[:, :3, None] - Z[:, None, 3:] - two.y["z"][:, None, None]).max(), 0.0, 1e-8)
    yield Measurement("W[k, k] - W[k, other], from u", np.abs(own - other - two.y["u"][:, None]).max(), 0.0, 1e-8)
    yield Measurement("W of noise", np.abs(W[:, 3:]).max(), 0.0, 1e-12)
    for row, (t, (z, u)) in enumerate(RECORDED.items(), 1):
        yield Measurement(f"z at t = {t}", two.y["z"][row], z, 6e-7)
        yield Measurement(f"u at t = {t}", two.y["u"][row], u, 6e-7)
    yield Measurement("loss at t = 20", two.observables["loss"][2], 0.582835, 6e-7)


def to_one() -> Iterable[Measurement]:
    """To t = 1e6: attention, e^z / n over c u^2 / 2, and u over ln t; u where half of the attention is on the key."""
    run = odesim.integrate(SKIP, save=[0, 1e4, 1e6], span=(0, 1e6), events=["at half: z - 1.3862943611198906"], **FINE)
    z, u, alpha = run.y["z"], run.y["u"], run.observables["alpha"]
    yield Measurement("attention to the key at t = 1e6", alpha[2], 0.98, 0.0, ">=")
    c = (1 / 3 + 1 / 2) * 2
    yield Measurement("e^z / n + z at t = 1e6, over 1 / n + c u^2 / 2", (np.exp(z[2]) / 4 + z[2]) / (0.25 + c * u[2] ** 2 / 2), 1.0, 1e-8)
    # u alpha ~ ln(2 t / 3): what alpha lacks of 1 is of order 1/ln(t)^2
    yield Measurement("u gained from 1e4 to 1e6 over ln 100", np.diff(u[1:])[0] / np.log(100), 1.0, 0.02)
    yield Measurement("z gained meanwhile", np.diff(z[1:])[0], 1.0, 0.0, "<=")
    at_half = odesim.integrate(SKIP, save=2, span=(0, run.events["at half"][0]["t"]), **FINE)
    yield Measurement("u at alpha = 1/2", at_half.final["u"], np.sqrt(2 * (1 + np.log(4) - 1 / 4) / c), 1e-7)


HALF_TIMES = {8: 130.942, 16: 234.221, 32: 433.235, 64: 824.694, 128: 1601.69, 256: 3150.23}


def half_times() -> Iterable[Measurement]:
    """K = 10, N = 50: when half of the attention is on the key, the last exponent, and the limit n K sqrt(pi / (2 c))."""
    found = {}
    for n, want in HALF_TIMES.items():
        run = odesim.integrate(SKIP, params={"K": 10, "N": 50, "n": n}, span=(0, 1.5 * want), save=2, **FINE)
        found[n] = float(run.events["found"][0]["t"])
        yield Measurement(f"n = {n}, over its digits", found[n] / want, 1.0, 4e-6)
    for n, want in ((8, 0.84), (16, 0.89), (32, 0.93), (64, 0.96), (128, 0.98)):
        yield Measurement(f"exponent from n = {n}", np.log2(found[2 * n] / found[n]), want, 6e-3)
    # while e^z/n is small u' = exp(c u^2 / 2) / (n K); the rest is of order ln(n) / n
    limit = 10 * np.sqrt(np.pi / (2 * (1 / 10 + 1 / 50) * 9))
    yield Measurement("time at n = 256 over n K sqrt(pi / (2 c))", found[256] / (256 * limit), 1.0, 0.025)


def stays_even(rho: tuple[float, float]) -> Iterable[Measurement]:
    """Eight tokens of two topics, all weights, to t = 1000: the gap of both logits from 0, and from an uneven start."""
    times = (0.0, 100.0, 1000.0)
    run = whole(tokens_of_topics(8, rho), times=times)
    yield Measurement("largest gap of the logits", np.abs(np.diff(run.y["Z"], axis=1)).max(), 0.0, 1e-10)
    run = whole(tokens_of_topics(8, rho), {"Z": [0.5, -0.5]}, times)
    yield Measurement("gap in the end, from 1 at the start", np.diff(-run.y["Z"][-1])[0], 0.0, 0.01)
    yield Measurement("u in the end, of Bayes' rule", float(run.y["W"][-1] @ [1, -1] @ [0.5, -0.5]) / (8 * np.log(1.5)), 1.0, 2e-3)


COUNTED = {10: 0.885710, 100: 4.285874, 1000: 6.480787}


def bayes() -> Iterable[Measurement]:
    """patterns.aggregate, sixteen tokens, rho = .2: recorded digits, and where it rests."""
    run = odesim.integrate(AGGREGATE, save=[0, 10, 100, 1000, 4000], span=(0, 4000), **FINE)
    for row, (t, want) in enumerate(COUNTED.items(), 1):
        yield Measurement(f"u at t = {t}", run.y["u"][row], want, 6e-7)
    yield Measurement("u in the end, of T ln((1 + rho)/(1 - rho))", float(run.y["u"][-1]) / (16 * np.log(1.5)), 1.0, 1e-7)
    yield Measurement("loss in the end", run.observables["loss"][-1], 0.444203, 6e-7)


CLAIMS = (
    Claim(
        "patterns.reduction",
        Source("elhage2021mathematical", "skip-trigrams", "one head, one query"),
        "patterns.skip_gram beside all weights of a head on its 48 contexts, to t = 100",
        "a key in noise is learned by two numbers, of noise nothing",
        reduction,
        "10 rtol; " + DIGITS,
    ),
    Claim(
        "patterns.one_token_tells",
        Source("elhage2021mathematical", "skip-trigrams", "attention late"),
        "patterns.skip_gram to t = 1e6",
        "attention goes to 1 where one token tells the label, and is frozen there: u grows as ln t, z as ln ln t",
        to_one,
        "the next order, 1/ln(t)^2; 100 rtol",
        depends=("patterns.reduction",),
    ),
    Claim(
        "patterns.half_times",
        Source("elhage2021mathematical", "skip-trigrams", "time against noise"),
        "patterns.skip_gram, K = 10, N = 50, n = 8 to 256",
        "one token among n others is found at a time of order n",
        half_times,
        DIGITS + "; ln(n)/n",
        depends=("patterns.one_token_tells",),
    ),
    Claim(
        "patterns.all_tell",
        Source("clark2019bert", "Section 3.3", "heads of broad attention, bags of vectors"),
        "all weights of a head, eight tokens of two topics, to t = 1000; rho = .2, or .2 and .4",
        "attention never moves, and comes back to even, where all tokens tell of the label",
        lambda: (*stays_even((0.2, 0.2)), *bayes()),
        "rounding; what an approach by 1/t leaves at t = 1000; " + DIGITS,
        when="all tokens tell equally much; else the one that tells more is preferred from the start",
        otherwise=lambda: stays_even((0.2, 0.4)),
        models=(AGGREGATE,),
    ),
)
