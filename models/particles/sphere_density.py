"""Many tokens on a sphere with noise, by the modes of their density: particles.density in d dimensions.

Tokens of unit length have unnormalised attention and noise, d x_i the part tangent to the sphere of (K/n) sum_j exp(beta <x_i, x_j>) x_j dt
+ sqrt(2 kappa) dB_i. For n -> infinity a density that depends on the angle to an axis alone, of cosine u, has the modes a_l = E P_l(u),
P_l the polynomial of Gegenbauer with P_l(1) = 1: Legendre's on the sphere, d = 3. They follow
    a_l' = -kappa l (l + d - 2) a_l + K sum_m w_m a_m sum_c B_mlc a_c,   w_m = N_m E exp(beta u) P_m(u) / beta,
the mean over the even density. N_m is the number of harmonics of degree m, B_mlc the part along P_c of (1 - u^2) P_m' P_l'; the observable
density is over the even one. Without order a_l = 0, l > 0, and a_1 grows there at the rate (d - 1)(K w_1 / N_1 - kappa): from
K = kappa N_1 / w_1 on. For d = 2 it is particles.density.

Order sets in continuously where I_(d/2+1)(beta) < I_(d/2)(beta) / d, by a jump above.
Assumed: Q = K = V = I, no mask; modes beyond the last one are 0.
"""

from typing import Any

import numpy as np
from scipy.special import gammaln, roots_gegenbauer
from sympy import Interval, Sum, oo, symbols

from odesim.symbolic import IndexedBase, Invariant, Param, Source, System, index, over, sizes

l, m, c, x = index("l m c x")
N, X = sizes("N X")
a, w, B = IndexedBase("a", shape=(N,)), IndexedBase("w", shape=(N,)), IndexedBase("B", shape=(N, N, N))
shown = IndexedBase("shown", shape=(N, X))
beta, K, kappa = symbols("beta K kappa", nonnegative=True)
d = symbols("d", positive=True)
pull = over(Sum, w[m] * a[m] * over(Sum, B[m, l, c] * a[c], (c, N)), (m, N))
density = over(Sum, a[l] * shown[l, x], (l, N))


def polynomials(N: int, d: float, u: Any) -> tuple[Any, Any]:
    """P_l(u) and P_l'(u) (N, points) at cosines u (points,)."""
    P, slope = np.ones((N, len(u))), np.zeros((N, len(u)))
    if N > 1:
        P[1], slope[1] = u, 1
    for k in range(1, N - 1):
        P[k + 1] = ((2 * k + d - 2) * u * P[k] - k * P[k - 1]) / (k + d - 2)
        slope[k + 1] = ((2 * k + d - 2) * (P[k] + u * slope[k]) - k * slope[k - 1]) / (k + d - 2)
    return P, slope


def quadrature(d: float, points: int) -> tuple[Any, Any]:
    """Cosines and their weights (points,), for means over the sphere: exact for polynomials of degree below 2 points."""
    # on the circle the weight of u is that of Chebyshev, at which Gegenbauer's family has none of its own in scipy
    if d == 2:
        return np.cos((np.arange(points) + 0.5) * np.pi / points), np.full(points, 1 / points)
    u, mean = roots_gegenbauer(points, (d - 2) / 2)
    return u, mean / mean.sum()


def harmonics(N: int, d: float) -> Any:
    """The number (N,) of harmonics of each degree: 1 over the mean of P_l^2."""
    k = np.arange(1, N)
    number = (2 * k + d - 2) / k * np.exp(gammaln(k + d - 2) - gammaln(k) - gammaln(d - 1))
    return np.concatenate([[1.0], number])


def weights(sizes: dict[str, int], params: dict[str, Any]) -> Any:
    """w (N,): at beta = 0 its limit, 1 for m = 1 alone."""
    N, d, beta = sizes["N"], float(params["d"]), float(params["beta"])
    if beta == 0:
        return (np.arange(N) == 1) * 1.0
    u, mean = quadrature(d, 4 * N + 64)
    w = harmonics(N, d) * (polynomials(N, d, u)[0] @ (mean * np.exp(beta * u))) / beta
    w[0] = 0  # the mean, which pulls nowhere
    return w


def coupling(sizes: dict[str, int], params: dict[str, Any]) -> Any:
    """B (N, N, N) by a quadrature that is exact for these polynomials."""
    N, d = sizes["N"], float(params["d"])
    u, mean = quadrature(d, 2 * N + 2)
    P, slope = polynomials(N, d, u)
    return np.einsum("mx,lx,cx,x->mlc", slope, slope, P, mean * (1 - u**2)) * harmonics(N, d)


def zonal(sizes: dict[str, int], params: dict[str, Any]) -> Any:
    """N_l P_l (N, X) at cosines from -1 to 1."""
    N, d = sizes["N"], float(params["d"])
    return harmonics(N, d)[:, None] * polynomials(N, d, np.linspace(-1, 1, sizes["X"]))[0]


SYSTEM = System(
    name="particles.sphere_density",
    source=Source("mun2026phase", "eq. USA", "n -> infinity: modes of a density about an axis"),
    axes={l: N, m: N, c: N, x: X},
    equations={a[l]: -kappa * l * (l + d - 2) * a[l] + K * pull},
    params=(
        Param(beta, 1.0, Interval(0, oo), "inverse temperature of attention"),
        Param(K, 1.0, Interval(0, oo), "strength of attention"),
        Param(kappa, 0.3, Interval(0, oo), "strength of the noise"),
        Param(d, 3.0, Interval(2, oo), "dimensions of a token"),
        Param(w, weights, Interval(-oo, oo), "w[m]: strength of mode m in the pull of a token"),
        Param(B, coupling, Interval(-oo, oo), "B[m, l, c]: part along P_c of (1 - u^2) P_m' P_l'"),
        Param(shown, zonal, Interval(-oo, oo), "shown[l, x]: mode l of the density at cosine x"),
    ),
    initial={a[l]: 0.5**l},
    sizes={N: 16, X: 33},
    span=(0.0, 20.0),
    time="depth",
    observables={"r": a[1], "density": density},
    display={"pull": pull},
    invariants=(
        Invariant("mass", a[0], "constant"),
        # 1 is the even density; as of particles.density, and of the start too: N_l grows with d, and .5^l is no density of many dimensions
        Invariant("the modes resolve the density", density, "nonnegative", tol=1e-3),
    ),
)
