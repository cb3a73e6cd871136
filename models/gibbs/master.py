"""Masked sampling of a sequence as a chain in continuous time: at each event k tokens, chosen uniformly, are redrawn given the others.

pi[x] is the probability of sequence x. dpi/dt = pi Q with Q = P_k - 1, one event per unit of time: linear, and pi goes to the target p
at the rate of the gap of P_k. The more tokens are masked, the larger the gap. The default target is that of n = 6 signs, all pairs of
them with coupling J: from all -1, all +1 are .38 as likely as all -1 after 100 redraws, .96 after 400. Other targets: gibbs.master:ISING
(couplings, fields), MIXTURE (of two laws of independent tokens), TWO_POINTS and DIRICHLET (any law, by its seed); or p as a table.

Assumed: the law of the masked tokens given the others is exact, and they are drawn together (gibbs.parallel draws each by itself).
"""

from functools import cache, partial

from sympy import Interval, Naturals0, Symbol, oo

from odesim.models.gibbs._chain import S, chain
from odesim.models.gibbs._laws import dirichlet, equal_pairs, ising, mixture, two_points
from odesim.symbolic import IndexedBase, Param, System, sizes

(n,) = sizes("n")
J, h = Symbol("J", real=True), Symbol("h", real=True)
couplings, fields = IndexedBase("J", shape=(n, n)), IndexedBase("h", shape=(n,))
WHERE = "the k-Gibbs sampler"
PAIRS = (Param(J, 0.3, Interval(-oo, oo), "coupling of every pair of signs"), Param(h, 0.0, Interval(-oo, oo), "field on every sign"))
MATRIX = (
    Param(couplings, 0.3, Interval(-oo, oo), "coupling of each pair of signs; its diagonal does not matter"),
    Param(fields, 0.0, Interval(-oo, oo), "field on each sign"),
)
OWN: dict[str, tuple] = {
    "mixture": (mixture, (Param(Symbol("delta"), 0.3, Interval.Ropen(0, 0.5), "how far tokens are from even in each part"),)),
    "two_points": (two_points, (Param(Symbol("e"), 0.1, Interval.Lopen(0, 1), "probability of the part that is uniform"),)),
    "dirichlet": (dirichlet, (Param(Symbol("seed"), 0, Naturals0, "which law"),)),
}


def variant(name: str) -> System:
    """The chain with another default target."""
    law, own = OWN[name]
    return chain(f"gibbs.master.{name}", WHERE, law, own, states={S: 64})


SYSTEM = chain("gibbs.master", WHERE, equal_pairs, PAIRS, states={S: 64})
VARIANTS = {
    "ISING": cache(partial(chain, "gibbs.master.ising", WHERE, ising, MATRIX, states={n: 6, S: 64})),
    **{name.upper(): cache(partial(variant, name)) for name in OWN},
}
