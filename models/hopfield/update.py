"""One update of a continuous associative memory, xi <- X softmax(beta X^T xi): an attention head that reads N stored patterns.

The columns of X (d, N) are the patterns, xi (d,) is the state: the query of attention with keys and values X. Many updates go to a
fixed point: one pattern, an average of a few that are close to each other, or the average of all, which one depends on beta and the start.
The energy |xi|^2/2 - log(sum_n exp(beta x_n xi)) / beta never rises, and after one update the state lies within the patterns' hull.

Assumed: patterns that do not change, all of them read at once. The flow tau dxi/dt = X p - xi makes this update in an Euler step of
length tau.
"""

from sympy import Interval, Sum, Symbol, oo

from odesim.models.hopfield._patterns import gaussian
from odesim.symbolic import IndexedBase, Invariant, Map, Param, Source, entropy, index, logsumexp, over, sizes, softmax

i, j, n = index("i j n")
d, N = sizes("d N")
xi, X, beta = IndexedBase("xi", shape=(d,)), IndexedBase("X", shape=(d, N)), Symbol("beta", positive=True)

logits = beta * over(Sum, X[i, n] * xi[i], (i, d))
p = softmax(logits, (n, N))
energy = over(Sum, xi[i] ** 2, (i, d)) / 2 - logsumexp(logits, (n, N)) / beta

SYSTEM = Map(
    name="hopfield.update",
    source=Source("ramsauer2021hopfield", "eq. 3", "patterns are columns"),
    axes={i: d, n: N},
    updates={xi[i]: over(Sum, X[i, n] * p, (n, N))},
    params=(
        Param(X, gaussian, Interval(-oo, oo), "stored patterns, a column each"),
        Param(beta, 0.3, Interval.open(0, oo), "inverse temperature"),
    ),
    initial={xi[i]: X[i, 0] / 2},
    sizes={d: 16, N: 10},
    steps=20,
    observables={"energy": energy, "p": p, "entropy": entropy(p, (n, N))},
    invariants=(Invariant("energy falls", energy, "nonincreasing"),),
    display={"p": p},
)
