"""particles.sphere in two dimensions, in angles: Kuramoto's oscillators with attention for coupling.

dtheta_i/dt = -sum_j A_ij sin(theta_i - theta_j), A_ij = softmax_j(beta cos(theta_i - theta_j)). beta = 0 is Kuramoto's model with equal
frequencies. From many evenly spread tokens the mode k grows at the rate k^2 I_k(beta) / (beta I_0(beta)): about sqrt(2 beta) clusters
form first.

Assumed: Q = K = V = I, no mask.
"""

from sympy import Eq, Interval, Piecewise, Sum, Symbol, cos, exp, oo, sin

from odesim.symbolic import IndexedBase, Invariant, Lines, Param, Points, Source, System, index, over, sizes, softmax

i, j, a = index("i j a")
(n,) = sizes("n")
theta, beta = IndexedBase("theta", shape=(n,)), Symbol("beta", nonnegative=True)
attention = softmax(beta * cos(theta[i] - theta[j]), (j, n))
point = Piecewise((cos(theta[i]), Eq(a, 0)), (sin(theta[i]), True))
energy = over(Sum, exp(beta * (cos(theta[i] - theta[j]) - 1)), (i, n), (j, n)) / n**2

SYSTEM = System(
    name="particles.circle",
    source=Source("geshkovski2023mathematical", "eq. SA", "angles on the circle"),
    axes={i: n, j: n, a: 2},
    equations={theta[i]: -over(Sum, attention * sin(theta[i] - theta[j]), (j, n))},
    params=(Param(beta, 4.0, Interval(0, oo), "inverse temperature"),),
    initial={theta[i]: 5 * cos(3 * i)},
    sizes={n: 16},
    span=(0.0, 20.0),
    time="depth",
    observables={"energy": energy, "x": point},
    views=(Lines("energy"), Points("theta")),
    invariants=(Invariant("energy rises", energy, "nondecreasing"),),
)
