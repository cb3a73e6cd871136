"""Tokens on the circle with unnormalised attention and noise: order below a strength of the noise, none above.

dtheta_i = -(K/n) sum_j exp(beta cos(theta_i - theta_j)) sin(theta_i - theta_j) dt + sqrt(2 kappa) dB_i. For many tokens the even density
is uniform up to K = kappa beta / I_1(beta), where order sets in: continuously for beta < 2.447, by a jump above. Order r is the length of
the mean of exp(i theta).

Assumed: Q = K = V = I, no mask.
"""

from sympy import Interval, Sum, cos, exp, oo, sin, sqrt, symbols

from odesim.symbolic import IndexedBase, Lines, Param, Points, Source, System, index, over, sizes

i, j = index("i j")
(n,) = sizes("n")
theta, B = IndexedBase("theta", shape=(n,)), IndexedBase("B", shape=(n,))
beta, K, kappa = symbols("beta K kappa", nonnegative=True)
x, y = cos(theta[i]), sin(theta[i])
u, v = cos(theta[j]), sin(theta[j])
# cosine and sine of theta_i - theta_j by those of the angles: two of each token, and not of each pair
pull = over(Sum, exp(beta * (x * u + y * v)) * (y * u - x * v), (j, n)) / n

SYSTEM = System(
    name="particles.noisy_circle",
    source=Source("mun2026phase", "eq. USA", "the circle, d = 2, in angles"),
    axes={i: n, j: n},
    equations={theta[i]: -K * pull},
    noise={theta[i]: {B[i]: sqrt(2 * kappa)}},
    step=0.05,
    params=(
        Param(beta, 1.0, Interval(0, oo), "inverse temperature of attention"),
        Param(K, 1.0, Interval(0, oo), "strength of attention"),
        Param(kappa, 0.3, Interval(0, oo), "strength of the noise"),
    ),
    initial={theta[i]: 3 * cos(3 * i)},
    sizes={n: 64},
    span=(0.0, 40.0),
    time="depth",
    observables={"r": sqrt(over(Sum, u, (j, n)) ** 2 + over(Sum, v, (j, n)) ** 2) / n},
    views=(Lines("r"), Points("theta")),
    display={"pull": pull},
)
