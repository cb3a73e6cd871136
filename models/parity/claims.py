"""What is stated of learning a parity at once and step by step, and what holds: tables of softmaxes, and products of linear factors."""

from collections.abc import Iterable
from functools import cache
from itertools import chain, permutations, product
from math import factorial, prod
from typing import Any

import numpy as np
from sympy import Add, Interval, Symbol, oo, symbols

import odesim
from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import Param, Source, System, gradient_flow

PAPER, TABLE, PRODUCT = "wies2023subtask", "memory.softmax_regression", "parity.product"
SURE = 0.99
FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy", "save": 2}


def time_until_sure(rows: int) -> float:
    """When a softmax table of two answers, its rows equally frequent, gives each right answer the probability SURE, from zero."""
    margin = float(np.log(SURE / (1 - SURE)))
    given: dict[str, Any] = {"sizes": {"N": rows}, "params": {"p": 1 / rows, "M": 2}}
    run = odesim.integrate(TABLE, span=(0, 60 * rows), events=[f"sure: m[0] - {margin!r}"], **given, **FINE)
    return float(run.events["sure"][0]["t"])


def steps() -> Iterable[Measurement]:
    """Parities of 2 to 7 bits: with steps each answer is a table of the four pairs of the parity so far and a bit; without, of all bits."""
    margin = float(np.log(SURE / (1 - SURE)))
    with_steps = time_until_sure(4)
    yield Measurement("time with steps, whatever k", with_steps, 2 * (np.exp(margin) + margin - 1), 1e-6)
    for k in (2, 3, 5, 7):
        yield Measurement(f"time without, over the time with steps, k = {k}", time_until_sure(2**k) / with_steps, 2.0 ** (k - 2), 1e-7)


@cache
def factors(k: int) -> System:
    """The relevant weights of k factors, k each, all eps at the start. The correlation is their whole permanent."""
    weights, eps = [symbols(f"w{j}_0:{k}", real=True) for j in range(k)], Symbol("eps", positive=True)
    correlation = Add(*(prod(row[i] for row, i in zip(weights, order, strict=True)) for order in permutations(range(k))))
    states = dict.fromkeys(chain(*weights), 1)
    return System(
        name=f"parity.factors_{k}",
        source=Source(PAPER, "Section 5"),
        axes={},
        equations=gradient_flow(-correlation, states),
        params=(Param(eps, 0.1, Interval.open(0, oo), "each weight at the start"),),
        initial=dict.fromkeys(states, eps),
        observables={"correlation": correlation},
    )


def last_stretch(k: int) -> float:
    """How long k > 2 factors still take to infinity when their correlation is 1: each weight is then (k!)^(-1/k)."""
    return float(factorial(k) ** (1 - 2 / k) / ((k - 2) * factorial(k - 1)))


def first_success(k: int, eps: float) -> float:
    """When the correlation of k factors with a parity of k bits is 1; of three factors with two irrelevant inputs beside."""
    events = () if k == 3 else ["success: correlation - 1"]
    end = np.log(1 / eps) if k == 2 else eps ** (2 - k) / ((k - 2) * factorial(k - 1)) - last_stretch(k) / 2
    run = odesim.integrate(PRODUCT if k == 3 else factors(k), params={"eps": eps}, span=(0, end), events=events, **FINE)
    return float(run.events["learned" if k == 3 else "success"][0]["t"])


def powers() -> Iterable[Measurement]:
    """Two, three and four factors from eps: the time of a first success beside the formula, with what is left of it then."""
    for k, eps in product((3, 4), (0.1, 0.03, 0.01)):
        want = eps ** (2 - k) / ((k - 2) * factorial(k - 1))
        found = first_success(k, eps) + last_stretch(k)
        yield Measurement(f"k = {k}, eps = {eps:g}: time to 1 and on to infinity, over eps^(2-k)/((k-2)(k-1)!)", found / want, 1.0, 1e-6)
    for eps in (0.1, 0.01, 0.001):
        found = first_success(2, eps) + np.log(2) / 2
        yield Measurement(f"k = 2, eps = {eps:g}: time to 1 and ln(2)/2 more", found, np.log(1 / eps), 1e-7)


CLAIMS = (
    Claim(
        "parity.steps",
        Source(PAPER, "Section 5", "tables in place of networks, two answers each"),
        "memory.softmax_regression with two classes, 4 to 128 rows",
        "with its steps as labels a parity is learned in a time that does not grow with k; without, in 2^(k-2) times that time",
        steps,
        "1000 tolerances of a run",
    ),
    Claim(
        "parity.first_success",
        Source(PAPER, "Section 5", "products of k linear factors, from weights eps"),
        "parity.product, and two and four factors, eps = .1 to .001",
        "k > 2 factors run away at eps^(2-k) / ((k-2) (k-1)!) with weights from eps; with steps, k = 2, ln(1/eps) is enough",
        powers,
        "1000 tolerances of a run",
    ),
)
