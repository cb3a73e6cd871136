"""What is stated of attention as a maximiser of margins, and what holds: directions against quadratic programmes, up to t = 10^12."""

from collections.abc import Iterable
from functools import cache, partial
from typing import Any

import numpy as np

import odesim
from odesim.lab.claims import Claim, Measurement, deviation
from odesim.models.margin._svm import cosine, differences, nuclear_norm, nuclear_separator, separator
from odesim.symbolic import Source

PROMPT, NEXT, WEIGHTS, KEY_QUERY = (f"margin.{name}" for name in ("prompt", "next_token", "weights", "key_query"))
FINE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-12, "backend": "numpy"}
TIMES = np.array([1e2, 1e4, 1e6, 1e8, 1e10, 1e12])


def run(model: str, times: Any = TIMES, **given: Any) -> Any:
    """A run of a model, kept at t = 0 and these times."""
    clock = np.log1p([0.0, *times])
    return odesim.integrate(model, span=(0, clock[-1]), save=clock, **given, **FINE)


def prompt_direction() -> Iterable[Measurement]:
    """Four sequences of five tokens: cosine with the separator, norm and loss beside those of two other integrators."""
    X = np.random.default_rng(3).normal(size=(4, 5, 20))
    found, best = run(PROMPT), separator((X[:, :1] - X[:, 1:]).reshape(-1, 20))
    cosines, norms = np.array([cosine(p, best) for p in found.y["p"][1:]]), found.observables["norm"][1:]
    known = [0, 1, 2, 3, 5]
    yield deviation("cosine at t = 1e2 to 1e12", cosines[known], (0.9775951, 0.9888407, 0.9928320, 0.9948807, 0.9969548), 1e-7)
    yield deviation("|p| there", norms[known], (2.4095557, 4.3115586, 6.2162488, 8.1275446, 11.9569981), 1e-5)
    yield Measurement("loss at t = 1e12", found.observables["loss"][-1], np.log1p(np.exp(-1)), 1e-10)
    yield Measurement("least growth of the cosine", np.diff(cosines).min(), 0.0, 0.0, ">=")


def prompt_norm() -> Iterable[Measurement]:
    """The slope of |p| in ln t between t = 1e10 and 1e12, beside the norm of the separator, .41685."""
    X = np.random.default_rng(3).normal(size=(4, 5, 20))
    norms = run(PROMPT, (1e10, 1e12)).observables["norm"]
    slope = float(np.diff(norms)[-1] / np.log(100))
    yield Measurement("slope", slope, 0.4159283, 1e-6)
    yield Measurement(
        "slope over the norm of the separator", slope / float(np.linalg.norm(separator((X[:, :1] - X[:, 1:]).reshape(-1, 20)))), 1, 4e-3
    )


def hard_and_soft() -> Iterable[Measurement]:
    """Three words, of which the first is never a label and the third half as often as the second."""
    found = run(NEXT, (10, 1e3, 1e6), params={"y": [0, 2 / 3, 1 / 3]})
    w = found.y["w"][1:]
    recorded = [(-1.31527590, 1.03042088, 0.28485502), (-4.37192317, 2.53278657, 1.83913660), (-8.97928566, 4.83621667, 4.14306899)]
    yield deviation("w at t = 10, 1e3, 1e6", w, recorded, 2e-8)
    yield Measurement("w_2 - w_3 at t = 1e6", w[2, 1] - w[2, 2], np.log(2), 1e-6)
    yield Measurement("growth of (w_2 + w_3)/2 - w_1 over ln t, 1e3 to 1e6", np.diff(1.5 * -w[1:, 0])[0] / np.log(1e3), 1.0, 1e-3)
    yield deviation("loss at t = 10, 1e3", found.observables["loss"][1:3], (0.6997543652, 0.6371827850), 1e-9)
    for labels, words in ((2, 1), (2, 3), (1, 4)):
        y = np.r_[np.zeros(words), np.ones(labels) / labels]
        w = run(NEXT, (1e3,), params={"y": y}, sizes={"K": len(y)}).final["w"]
        gap = w[-1] - w[0]
        right = (labels + words) * 1e3 / labels + labels
        yield Measurement(f"L u + J e^u over its law, J = {labels}, L = {words}", (words * gap + labels * np.exp(gap)) / right, 1.0, 1e-7)


@cache
def instance(seed: int, n: int, d: int) -> tuple[dict[str, Any], Any, Any, Any]:
    """(tokens and queries, D, separator by the Frobenius norm, by the nuclear norm) of n sequences of three tokens in d dimensions."""
    rng = np.random.default_rng(seed)
    X, z = rng.normal(size=(n, 3, d)), rng.normal(size=(n, d))
    D = differences(X, z)
    return {"X": X, "z": z}, D, separator(D.reshape(len(D), -1)).reshape(d, d), nuclear_separator(D)


def frobenius() -> Iterable[Measurement]:
    """Three sequences in four dimensions: W beside the separator, at t = 1e2 to 1e12."""
    params, D, best, _ = instance(11, 3, 4)
    W = run(WEIGHTS, params=params).y["W"][1:]
    cosines = np.array([cosine(w, best) for w in W])
    yield deviation("cosine at t = 1e2, 1e4, 1e8, 1e12", cosines[[0, 1, 3, 5]], (0.78829, 0.98996, 0.99845, 0.99940), 6e-6)
    yield deviation("|W| there", [np.linalg.norm(w) for w in W[[0, 1, 3, 5]]], (2.4636, 12.2254, 31.9834, 51.7439), 6e-5)
    margin = np.einsum("kab,ab->k", D, W[-1]).min()
    yield Measurement("norm at margin 1, t = 1e12", np.linalg.norm(W[-1]) / margin, 2.17393, 6e-6)
    yield Measurement("over the least one, 2.14756", np.linalg.norm(W[-1]) / margin / np.linalg.norm(best), 1.0, 0.015)


def products(seed: int, n: int, d: int, scale: float, start: int | None) -> tuple[Any, Any]:
    """K Q^T and W (2, d, d) at t = 1e12 of an instance: from normal weights by this seed, or from multiples of the identity."""
    params = instance(seed, n, d)[0]
    sizes = {"N": n, "T": 3, "d": d}
    given: dict[str, Any] = {"params": {**params, "size": scale}, "sizes": sizes}
    if start is not None:
        rng = np.random.default_rng(start)
        given |= {"initial": {name: scale * rng.normal(size=(d, d)) for name in ("K", "Q")}}
    return run(KEY_QUERY, (1e12,), **given).final_observables["product"], run(WEIGHTS, (1e12,), params=params, sizes=sizes).final["W"]


def nuclear(seed: int, n: int, d: int, scale: float, start: int | None) -> Iterable[Measurement]:
    """How near K Q^T is to the separator of least nuclear norm at t = 1e12, and its nuclear norm at margin 1 beside that of W."""
    _, D, _, best = instance(seed, n, d)
    KQ, W = products(seed, n, d, scale, start)
    at_one, other = (nuclear_norm(A) / np.einsum("kab,ab->k", D, A).min() for A in (KQ, W))
    yield Measurement("cosine with the least nuclear norm", cosine(KQ, best), 0.99, 1e-3, ">=")
    yield Measurement("nuclear norm at margin 1, over that of W", at_one / other, 1.0, 0.0, "<=")


def lower_from_one() -> Iterable[Measurement]:
    """From the identity, three sequences in four dimensions: the nuclear norm at margin 1 at t = 1e2 to 1e12, and that of W."""
    params, D, _, best = instance(11, 3, 4)
    found = run(KEY_QUERY, params=params).observables["product"][1:]
    norms = np.array([nuclear_norm(A) / np.einsum("kab,ab->k", D, A).min() for A in found])
    yield Measurement("nuclear norm at margin 1, t = 1e12", norms[-1], 2.9214, 6e-5)
    yield Measurement("least fall of it", -np.diff(norms).max(), 0.0, 0.0, ">=")
    yield Measurement("the least one", nuclear_norm(best), 2.78114, 6e-5)
    yield Measurement("cosine with the least one", cosine(found[-1], best), 0.9264, 6e-5)


def trained_direction() -> Iterable[Measurement]:
    """10^4 steps of rate 1 on the four sequences: norms, cosines with the separator, and the distance of the flow."""
    X = np.random.default_rng(3).normal(size=(4, 5, 20))
    found = odesim.compare(PROMPT, task="selection", settings={"X": X}, steps=10_000, save=101)
    best, rows = separator((X[:, :1] - X[:, 1:]).reshape(-1, 20)), [1, 10, 100]
    p, flow = (side["p"][0, rows] for side in (found.training, found.theory))
    yield deviation("|p| at t = 100, 1000, 10000, trained", np.linalg.norm(p, axis=1), (2.41956, 3.36649, 4.31318), 1e-5)
    yield deviation("cosine with the separator", [cosine(row, best) for row in p], (0.97637, 0.98434, 0.98846), 1e-5)
    yield deviation("|p - flow|", np.linalg.norm(p - flow, axis=1), (0.022, 0.020, 0.020), 5e-4)


def trained_words() -> Iterable[Measurement]:
    """20000 steps of .05 on batches of 64 labels, 16 seeds in the mean, at t = 1000."""
    found = odesim.compare(NEXT, task="next_token", seeds=range(16), steps=20_000, save=3)
    w, flow = (side["w"][:, -1] for side in (found.training, found.theory))
    yield Measurement("hard part, w_1", w[:, 0].mean(), flow[0, 0], 5e-4)
    yield Measurement("soft part, w_2 - w_3", (w[:, 1] - w[:, 2]).mean(), np.log(2), 0.03)
    yield deviation("w of the flow", flow[0], (-4.37192317, 2.53278657, 1.83913660), 1e-6)
    yield Measurement("noise of the soft part over that of the hard part", w[:, 1].std() / w[:, 0].std(), 20.0, 0.0, ">=")


TABLE = "half a unit of the last recorded digit and a bit"
CLAIMS = (
    Claim(
        "margin.hard_and_soft",
        Source("li2024mechanics", "abstract", "hard retrieval and soft composition"),
        "margin.next_token, three words; and words of two kinds",
        "weights are a direction, hard, that grows as ln t, and a finite part, soft",
        hard_and_soft,
        TABLE,
    ),
    Claim(
        "margin.trained_words",
        Source("li2024mechanics", "abstract", "by SGD on drawn labels"),
        "the task next_token, rate .05, batches of 64, 16 seeds, beside margin.next_token",
        "from drawn labels the hard part is learned to digits, the soft part to the noise of a batch",
        trained_words,
        "four standard errors of 16 seeds",
        depends=("margin.hard_and_soft",),
    ),
    Claim(
        "margin.nuclear_norm",
        Source("sheen2024implicit", "abstract"),
        "margin.key_query and margin.weights on normal data, to t = 10^12",
        "with keys and queries apart the flow finds the separator of least nuclear norm",
        partial(nuclear, 5, 2, 3, 0.01, 4),
        "none: bounds, .99 and 1",
        when="the data is easy: two sequences in three dimensions; with three in four K Q^T stays near rank one, cosine .53",
        otherwise=partial(nuclear, 11, 3, 4, 0.01, None),
    ),
    Claim(
        "margin.nuclear_norm_from_one",
        Source("sheen2024implicit", "abstract", "for a start of order one"),
        "margin.key_query from the identity on the harder data, to t = 10^12",
        "from a start of order one the nuclear norm falls towards the least one, slowly",
        lower_from_one,
        TABLE,
        depends=("margin.nuclear_norm",),
    ),
    Claim(
        "margin.direction",
        Source("tarzanagh2023maxmargin", "abstract"),
        "margin.prompt, four sequences of five tokens in 20 dimensions, to t = 10^12",
        "p converges in direction to the max-margin solution of the best tokens",
        prompt_direction,
        TABLE,
    ),
    Claim(
        "margin.trained",
        Source("tarzanagh2023maxmargin", "abstract", "gradient descent"),
        "the task selection, rate 1, 10^4 steps, beside margin.prompt",
        "gradient descent turns to the max-margin solution with the flow: what the first steps are off, .02, stays",
        trained_direction,
        TABLE,
        depends=("margin.direction",),
    ),
    Claim(
        "margin.norm",
        Source("tarzanagh2023maxmargin", "abstract", "the rate, for a bounded score"),
        "margin.prompt, t = 10^10 to 10^12",
        "|p| grows as ln t, by the norm of the max-margin solution",
        prompt_norm,
        "4 in 1000: ln t is 28",
    ),
    Claim(
        "margin.frobenius_norm",
        Source("tarzanagh2023transformers", "abstract"),
        "margin.weights, three sequences of three tokens in four dimensions, to t = 10^12",
        "with one matrix W the flow finds the separator of least Frobenius norm",
        frobenius,
        TABLE,
    ),
)
