"""A dense memory of signs: neuron by neuron, s_i takes the sign that makes sum_n F(x_n . s) larger, F(z) = z^m, or exp(z).

The columns of X (d, N) are the patterns. For m = 2 this is hopfield.classical; the number of patterns that are kept grows as d^(m-1), and
as 2^(d/2) with the exponential, `hopfield.dense:EXPONENTIAL`. At step t those neurons are updated whose number is t modulo B: one at a
time for B = d. Then sum_n F(x_n . s) never falls. A tie counts as +1: powers are whole numbers, with exact sums below 2^53; of exponentials
what is less than 1e-12 of their sum, which is rounding, is a tie.

Assumed: patterns of signs, no thresholds, no noise.
"""

from functools import cache
from typing import Any

from sympy import And, Interval, Mod, Naturals, Ne, Piecewise, Sum, Symbol

from odesim.models.hopfield._patterns import damaged, one_by_one, signs
from odesim.symbolic import IndexedBase, Invariant, Map, Param, Source, System, index, logsumexp, over, sizes, softmax, time

i, j, n = index("i j n")
d, N = sizes("d N")
s, s0, X = IndexedBase("s", shape=(d,)), IndexedBase("s0", shape=(d,)), IndexedBase("X", shape=(d, N))
B, m = Symbol("B", integer=True, positive=True), Symbol("m", integer=True, positive=True)
overlap = over(Sum, X[i, n] * s[i], (i, d))
others = over(Sum, X[j, n] * s[j], (j, d)) - X[i, n] * s[i]


def dense(name: str, where: Source, gain: Any, energy: Any, own: tuple[Param, ...] = (), least: float = 0) -> System:
    """The memory in which neuron i becomes +1 where its gain is at least this, 0 up to rounding; the energy falls."""
    return Map(
        name=name,
        source=where,
        axes={i: d, j: d, n: N},
        updates={s[i]: Piecewise((s[i], Ne(Mod(time, B), Mod(i, B))), (1, gain >= least), (-1, True))},
        params=(
            Param(X, signs, Interval(-1, 1), "stored patterns of signs, a column each"),
            *own,
            Param(B, one_by_one, Naturals, "number of groups of neurons, which are updated in turn"),
            Param(s0, damaged, Interval(-1, 1), "signs at the start"),
        ),
        initial={s[i]: s0[i]},
        sizes={d: 32, N: 20},
        steps=96,
        time="updates",
        observables={"overlap": overlap / d, "energy": energy},
        display={"rest": others, "gain": gain, "energy": energy},
        invariants=(Invariant("energy falls", energy, "nonincreasing", when=And(d <= B, over(Sum, (s[i] ** 2 - 1) ** 2, (i, d)) <= 0)),),
    )


SYSTEM = dense(
    "hopfield.dense",
    Source("krotov2016dense", "eqs. 1 and 2", "F(z) = z^m, a fixed order"),
    over(Sum, (others + X[i, n]) ** m - (others - X[i, n]) ** m, (n, N)),
    -over(Sum, (overlap / d) ** m, (n, N)),
    (Param(m, 3, Naturals, "power of the overlaps; 2: the classical memory"),),
)


def exponential() -> System:
    """F(z) = exp(z): what a neuron gains is 2 sinh(1) times a mean of patterns, weighted by the others' overlaps."""
    gain = over(Sum, X[i, n] * softmax(others, (n, N)), (n, N))
    return dense(
        "hopfield.dense.exponential",
        Source("demircigil2017model", "eq. 5", "a fixed order"),
        gain,
        -logsumexp(overlap, (n, N)),
        least=-1e-12,
    )


VARIANTS = {"EXPONENTIAL": cache(exponential)}
