"""Many tokens on the circle with noise, by the modes of their density: particles.noisy_circle without a number of tokens.

For n tokens -> infinity the law of a token has the density (1 + 2 sum_k a_k cos(k x)) / (2 pi), if it is even, as here. Its modes
a_k = E cos(k theta), a_0 = 1, follow
    a_k' = -kappa k^2 a_k + (K k / 2) sum_l w_l a_l (a_|k-l| - a_(k+l)),   w_l = 2 l I_l(beta) / beta,
with those beyond the last one at 0. Without order a_k = 0, k > 0, and a_1 grows there at the rate K I_1(beta) / beta - kappa: from
K = kappa beta / I_1(beta) on. The stationary densities are the solutions of rho ~ exp((K/kappa) sum_l (w_l/l) a_l cos(l x)).

24 modes are enough up to a_1 = .985; closer to 1 the density is narrow, and takes more: with too few it is negative somewhere, and a run
says so. Assumed: Q = K = V = I, no mask.
"""

from typing import Any

import numpy as np
from scipy.special import iv
from sympy import Interval, Naturals0, Sum, cos, oo, pi, symbols

from odesim.symbolic import IndexedBase, Invariant, Param, Source, System, index, over, sizes

k, l, x = index("k l x")
N, X = sizes("N X")
a, w = IndexedBase("a", shape=(N,)), IndexedBase("w", shape=(N,))
near, far, inside = (IndexedBase(name, shape=(N, N)) for name in ("near", "far", "inside"))
angle = IndexedBase("angle", shape=(X,))
beta, K, kappa = symbols("beta K kappa", nonnegative=True)
pull = over(Sum, w[l] * a[l] * (a[near[k, l]] - inside[k, l] * a[far[k, l]]), (l, N))

density = (2 * over(Sum, a[k] * cos(k * angle[x]), (k, N)) - 1) / (2 * pi)


def weights(sizes: dict[str, int], params: dict[str, Any]) -> Any:
    """w (N,): 2 l I_l(beta) / beta, at beta = 0 its limit: 1 for l = 1 alone."""
    l, beta = np.arange(sizes["N"]), float(params["beta"])
    return 2 * l * iv(l, beta) / beta if beta else (l == 1) * 1.0


def difference(sizes: dict[str, int]) -> Any:
    """|k - l| (N, N)."""
    n = np.arange(sizes["N"])
    return np.abs(n[:, None] - n)


def total(sizes: dict[str, int]) -> Any:
    """k + l (N, N), the last mode where there is none."""
    n = np.arange(sizes["N"])
    return np.minimum(n[:, None] + n, sizes["N"] - 1)


def there(sizes: dict[str, int]) -> Any:
    """(N, N): 1 where the mode k + l is kept."""
    n = np.arange(sizes["N"])
    return (n[:, None] + n < sizes["N"]) * 1.0


def around(sizes: dict[str, int]) -> Any:
    """Angles (X,) from -pi to pi."""
    return np.linspace(-np.pi, np.pi, sizes["X"])


SYSTEM = System(
    name="particles.density",
    source=Source("mun2026phase", "eq. USA", "the circle, n -> infinity: Fourier modes of an even density"),
    axes={k: N, l: N, x: X},
    equations={a[k]: -kappa * k**2 * a[k] + K * k / 2 * pull},
    params=(
        Param(beta, 1.0, Interval(0, oo), "inverse temperature of attention"),
        Param(K, 1.0, Interval(0, oo), "strength of attention"),
        Param(kappa, 0.3, Interval(0, oo), "strength of the noise"),
        Param(w, weights, Interval(0, oo), "w[l]: strength of mode l in the pull of a token"),
        Param(near, difference, Naturals0, "near[k, l] = |k - l|", indexes=N, cover=False),
        Param(far, total, Naturals0, "far[k, l] = k + l, or the last mode", indexes=N, cover=False),
        Param(inside, there, Interval(0, 1), "1 where mode k + l is kept"),
        Param(angle, around, Interval(-oo, oo), "angles at which the density is shown"),
    ),
    initial={a[k]: 0.5**k},
    sizes={N: 24, X: 65},
    span=(0.0, 40.0),
    time="depth",
    observables={"r": a[1], "density": density},
    display={"pull": pull},
    invariants=(
        Invariant("mass", a[0], "constant"),
        # .001 of 1/(2 pi), the even density; what a last mode of .003 hides. Where it is passed a_1 is still right to 1e-7
        Invariant("the modes resolve the density", density, "nonnegative", tol=1e-3),
    ),
)
