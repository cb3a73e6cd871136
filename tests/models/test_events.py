"""The events of every model, by hand: where the function of the paper passes zero along a run, and nowhere else."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import odesim
from odesim.inputs.registry import load_model
from odesim.plot.choice import Choice
from odesim.plot.solution import choose_quantities
from tests.support.matrix import slow_but
from tests.support.truth.scan_snap import decoded

Function = Callable[[Mapping[str, Any], Mapping[str, Any], float], Any]


def grown(part: float) -> Function:
    """v less a part of its resting value, over heights H: kappa P_H."""

    def function(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
        L = len(y["v"]) + 1
        P = np.array([1 - (1 - q["rho"] ** (2 * H)) / 2 / (1 - q["rho"] ** (L - 1) * q["rho0"]) for H in range(1, L)])
        return y["v"] / (q["kappa"] * P) - part

    return function


def copied(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """The mean attention to the place after the earlier occurrence of the query, over sequences and queries, less a half."""
    first = np.exp(y["P"]) / np.exp(y["P"]).sum(axis=1, keepdims=True)
    found = []
    for row in q["X"].astype(int):
        for place, answer in enumerate(q["after"].astype(int)):
            odds = np.exp(first @ y["W_2"][row[place], row])
            found.append(odds[answer] / odds.sum())
    return np.mean(found) - 0.5


def to_the_answer(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """The attention of the second layer, whose logit is b times what the first one tells apart, less a half."""
    others = (q["N"] - 1) * np.exp(-y["a"])
    told = (1 - np.exp(-y["a"])) / (1 + others)
    return 1 / (1 + (q["N"] - 1) * np.exp(-y["b"] * told)) - 0.5


def loss_of_pairs(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """The geometric mean of the probability of targets, less a half."""
    odds = np.exp(y["Y"])[q["x1"].astype(int)]
    return np.exp(np.mean(np.log(odds[np.arange(len(odds)), q["x3"].astype(int)] / odds.sum(axis=1)))) - 0.5


def predicted(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """The probability of each class's next token, less a half."""
    return np.diagonal(decoded(dict(y), {**q, "psi": q["psi"].astype(int)})[1]) - 0.5


def predicted_by_symmetry(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """The same of the System in which all classes are alike."""
    ct, cc = q["p"] * np.exp(y["z"]), q["pc"] * np.exp(y["zc"])
    rho = np.sqrt(ct @ ct + q["mc"] @ cc**2)
    common = q["mc"] * cc @ y["u"]
    own, other, never = ct @ y["a"] + common, ct @ y["b"] + common, ct @ y["d"] + q["mc"] * cc @ y["v"]
    odds = np.exp(np.array([own, other, never]) / rho)
    return odds[0] / (odds @ [1, q["K"] - 1, q["M"] - q["K"]]) - 0.5


def push(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """u less where u / (exp(u) + M - 1), what drives the decoder of what is said wrongly, is largest."""
    return y["u"] - minimize_scalar(lambda u: -u / (np.exp(u) + q["M"] - 1), (0, np.log(q["M"])), tol=1e-14).x


def scanned(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """The time less K ln(M) / eta_Y."""
    return t * q["eta_Y"] / q["K"] / np.log(q["M"]) - 1


def half(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """v less half of its resting value mu, in units of it."""
    return y["v"] / q["mu"] - 0.5


def sure(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """A margin of u before M - 1 other tokens."""
    return np.exp(y["u"]) / (np.exp(y["u"]) + q["M"] - 1) - 0.5


def regression(y: Mapping[str, Any], q: Mapping[str, Any]) -> tuple[Any, Any]:
    """W (D, D) of the heads, and Gamma (D,)."""
    keys = y["U"] if "U" in y else np.einsum("ha,hb->hab", y["k"], y["q"])
    return np.einsum("h,hab->ab", y["v"], keys), (1 + 1 / q["N"]) * q["lam"] + q["lam"].sum() / q["N"]


def half_learned(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """The mean squared error less half of what is gained at most, from tr."""
    (W, gamma), lam = regression(y, q), q["lam"]
    return -2 * lam**2 @ np.diag(W) + (gamma * lam) @ W**2 @ lam + lam**2 @ (1 / gamma) / 2


def of_chain(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
    """The cross-entropy over both tokens less the mean of those of the unigram and the bigram."""
    p, back, e, w = (float(x) for x in (q["p"], q["q"], y["e"], y["w"]))
    share, s = p / (p + back), e**2 * (1 + 2 * w * abs(w))
    best = minimize_scalar(lambda f: cross(f, s, p, back), (-s, 0.0), tol=1e-14).x if "b" not in y else float(y["b"]) - e**2 / 2
    coin = [-x * np.log(x) - (1 - x) * np.log(1 - x) for x in (share, p, back)]
    return cross(best, s, p, back) - (coin[0] + (1 - share) * coin[1] + share * coin[2]) / 2


def cross(f: float, s: float, p: float, back: float) -> Any:
    """The mean cross-entropy of the logits f after 0 and f + s after 1."""
    after = ((f, p, back), (f + s, 1 - back, p))
    return sum(weight * (np.logaddexp(0, x) - one * x) for x, one, weight in after) / (p + back)


def half_predicted(name: str) -> Function:
    """The squared error of n-grams less the mean of two levels: nothing, or the unigram, and the unigram, or the least."""

    def function(y: Mapping[str, Any], q: Mapping[str, Any], t: float) -> Any:
        x = np.append((y["w_d"] - y["w_o"]) * y["v"], y["w_o"] * y["v"].sum())
        H = np.block([[q["C"], q["D"][:, None]], [q["D"], q["B"]]])
        levels = [float(q["S"]) / 2, float(q["S"] - q["B"]) / 2, float(q["best"])]
        first = int(name == "bigram")
        return x @ H @ x / 2 - x @ np.append(q["A"], q["B"]) + levels[0] - (levels[first] + levels[first + 1]) / 2

    return function


REDUCED: dict[str, tuple[int, Function]] = {"half way": (1, sure), "gamma peaks": (1, push), "scanning ends": (1, scanned)}
FULL: dict[str, tuple[int, Function]] = {"half way": (1, predicted), "scanning ends": (1, scanned)}
EVENTS: dict[str, dict[str, tuple[int, Function]]] = {
    "classics.committee": {"plateau ends": (1, lambda y, q, t: y["R"].std() / y["R"].mean() - 0.5)},
    "galore.projected": {"refresh": (0, lambda y, q, t: np.sin(np.pi * t / q["period"]))},
    "hierarchy.grouped": {"half way": (0, grown(0.5)), "nine tenths": (0, grown(0.9))},
    **{key: {"half way": (0, of_chain)} for key in ("in_context.markov", "in_context.markov_bias")},
    "in_context.merged": {"half way": (0, half_learned)},
    "in_context.separate": {"learned": (1, lambda y, q, t: np.diag(regression(y, q)[0]) * regression(y, q)[1] - 0.5)},
    "in_context.nearest": {"sharp": (1, lambda y, q, t: q["weight"] @ (1 / np.exp(-y["xi"] * q["behind"]).sum(axis=1)) - 0.9)},
    "in_context.single_location": {
        "located": (1, lambda y, q, t: y["kappa"] ** 2 - 0.25),
        "read": (1, lambda y, q, t: y["nu"] ** 2 - 0.25),
    },
    "induction.full": {"copied": (0, copied)},
    "induction.stages": {"copied": (0, to_the_answer)},
    "joma.linear": {"v reaches 6": (1, lambda y, q, t: np.abs(y["v"]) - 6)},
    "joma.linear_multinode": {"a row reaches 6": (1, lambda y, q, t: np.linalg.norm(y["V"], axis=1) - 6)},
    "joma.nonlinear": {"half way": (0, half)},
    "joma.nonlinear_softmax": {"half way": (0, half)},
    "joma.self_consistent": {"half way": (0, lambda y, q, t: 2 * y["v"] * np.exp(2 * y["v"] ** 2) / q["c"] - 1)},
    "memory.softmax_regression": {"learned": (0, lambda y, q, t: np.exp(y["m"]) / (q["M"] - 1) - 1)},
    "parity.product": {"learned": (1, lambda y, q, t: np.einsum("a,b,c,abc", y["u"], y["v"], y["w"], q["s"]) - 1)},
    "causal.parent_row": {"found": (1, lambda y, q, t: 1 / np.exp(y["A"] - y["A"][0]).sum() - 0.5)},
    "ngrams.linear": {name: (-1, half_predicted(name)) for name in ("unigram", "bigram")},
    "patterns.aggregate": {"half way": (1, lambda y, q, t: y["u"] - (len(q["p"]) - 1) * np.arctanh(q["rho"]))},
    "patterns.skip_gram": {"found": (1, lambda y, q, t: np.exp(y["z"]) - q["n"])},
    "reversal.full": {"mean loss is ln 2": (1, loss_of_pairs)},
    "reversal.row": {
        "half way": (1, lambda y, q, t: q["r"] / (q["r"] + (q["M"] - q["r"]) * np.exp(-y["v"])) - 0.5),
        "knee": (1, lambda y, q, t: t * q["eta_Y"] / q["N"] - np.log(q["M"])),
    },
    "modular.phases": {"right angle": (1, lambda y, q, t: np.cos(y["psi"] - 2 * y["phi"]))},
    "scaling.single_index": {"half way": (0, lambda y, q, t: y["m"] - 0.5)},
    "self_supervised.modes": {"half way": (0, lambda y, q, t: 2 * (1 + q["sigma2"]) * y["p"] - 1)},
    "scan_snap.decoder": REDUCED,
    "scan_snap.full": FULL,
    "scan_snap.full_decorrelated": FULL,
    "scan_snap.reduced": REDUCED,
    "scan_snap.reduced_symmetric": REDUCED,
    "scan_snap.symmetric": {"half way": (1, predicted_by_symmetry), "scanning ends": (1, scanned)},
    "scan_snap.theorem4": {**REDUCED, "snap": (1, lambda y, q, t: np.exp(y["u"]) - (q["M"] - 1) * y["u"])},
}
RUNS: dict[str, dict[str, Any]] = {  # where the default run has no such event, or one at its end
    "galore.projected": {"span": (0, 19.3)},  # the last one is at the default end
    "joma.linear": {"clock": "rescaled", "span": (0, 1.5)},
    "joma.linear_multinode": {"clock": "rescaled", "span": (0, 2.0)},
    "reversal.row": {"span": (0, 20_000.0)},
}


def test_every_event_is_here() -> None:
    """The names of the events of each model, and the models whose files have the word in them."""
    folder = Path(__file__).parents[2] / "models"
    files = {f"{p.parent.name}.{p.stem}": p.read_text() for p in folder.glob("*/*.py") if "claims" not in p.stem}
    named = {name for name, text in files.items() if re.search(r"events|SYSTEM as", text)}
    assert named - {"galore.adam_map", "scaling.word2vec_untied"} == set(EVENTS)  # which take other parts of another model
    for name, events in EVENTS.items():
        assert {event.name for event in load_model(name).events} == set(events)


DEAR = {
    *("galore.projected", "induction.full", "classics.committee", "in_context.separate", "in_context.markov", "ngrams.linear"),
    *("scan_snap.full", "scan_snap.full_decorrelated", "scan_snap.symmetric", "scan_snap.reduced", "joma.linear_multinode"),
}
"""Of many states or steps: half of the time of all."""


@pytest.mark.parametrize("name", slow_but(EVENTS, set(EVENTS) - DEAR))
def test_an_event_is_where_its_function_passes_zero(name: str) -> None:
    """Each component, in the direction of the event, as often along a run as at 400 times of it, and nothing else; at the event it is 0.

    1e-4 of its size: a thousand tolerances of the run.
    """
    asked: Any = {"backend": "numpy", "rtol": 1e-7, "atol": 1e-9, **RUNS.get(name, {})}
    run = odesim.integrate(name, save=400, **asked)
    q = {k: np.asarray(value) for k, value in {**run.attrs["params"], **run.attrs["sizes"]}.items()}
    for event, (direction, function) in EVENTS[name].items():
        rows = np.array([np.ravel(function({n: y[k] for n, y in run.y.items()}, q, t)) for k, t in enumerate(run.t)])
        before, after = np.sign(rows[:-1]), np.sign(rows[1:])
        passed = (before * after < 0) & (direction * after >= 0)
        found = run.events[event]
        shape = np.shape(function(run.at(0.0), q, 0.0))
        components = [np.ravel_multi_index(record["index"], shape) if record["index"] is not None else 0 for record in found]
        counts = np.bincount(np.array(components, int), minlength=rows.shape[1])
        assert passed.any() and counts.tolist() == passed.sum(axis=0).tolist(), event
        for record, component in zip(found, components, strict=True):
            k = int(np.searchsorted(run.t, record["t"])) - 1
            assert passed[k, int(component)], (event, record)
            value = np.ravel(function(run.at(record["t"]), q, record["t"]))[int(component)]
            assert abs(value) < 1e-4 * max(1.0, abs(rows[k + 1, int(component)] - rows[k, int(component)])), (event, record, value)


@pytest.mark.parametrize("name", slow_but(EVENTS, set(EVENTS) - DEAR))
def test_what_an_event_reads_by_component_is_drawn(name: str) -> None:
    """By default: marks stand on its curves. Without such a panel they are lines across others, which do not say whose they are."""
    run = odesim.integrate(name, save=3)
    drawn = {quantity.name for quantity in choose_quantities(run, Choice())[0]}
    for event, places in run.attrs.get("watched", {}).items():
        single = {of for of, place in places.items() if place == "component"}
        assert not single or single & drawn, f"{event} reads {', '.join(sorted(single))}; drawn: {', '.join(sorted(drawn))}"
