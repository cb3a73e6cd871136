"""Self-attention without its normalisation, on a sphere: dx_i/dt is the tangent part of (1/n) sum_j exp(beta <Q x_i, K x_j>) V x_j.

With Q = K = V = I this is n / (2 beta) times the gradient of the energy, the mean of exp(beta <x_i, x_j>), which rises to exp(beta) at
one cluster. Particles move up to exp(beta) times faster than in particles.sphere, and clusters merge sooner. On a
circle without temperature, beta = 0, it is Kuramoto's model of oscillators with equal frequencies. The observable merged is the share of
pairs of tokens with an inner product above .999.

Assumed: one set of weights, layer normalisation to the sphere, no MLP.
"""

from typing import Any

from sympy import And, KroneckerDelta, Max, Piecewise, Rational, Sum, exp

from odesim.models.particles.sphere import (
    ON_SPHERE,
    PARAMS,
    START,
    H,
    K,
    Q,
    V,
    a,
    b,
    beta,
    causal,
    d,
    e,
    h,
    i,
    j,
    logit,
    n,
    on_the_sphere,
    seen,
    x,
)
from odesim.symbolic import Invariant, Source, System, over

strength = seen(i, j) * exp(logit(i, j)) / n


def pull(component: Any) -> Any:
    """The component of the mean of the values."""
    return over(Sum, strength * over(Sum, V[h, component, e] * x[j, e], (e, d)), (j, n), (h, H))


product = over(Sum, x[i, a] * x[j, a], (a, d))
pairs = over(Sum, Piecewise((1, product > Rational(999, 1000)), (0, True)), (i, n), (j, n)) - n
energy = over(Sum, exp(beta * product), (i, n), (j, n)) / n**2
PLAIN = And(ON_SPHERE, causal <= 0, *(over(Sum, (W[h, a, b] - KroneckerDelta(a, b)) ** 2, (h, H), (a, d), (b, d)) <= 0 for W in (Q, K, V)))
norm = over(Sum, x[i, a] ** 2, (a, d))
SYSTEM = System(
    name="particles.unnormalised",
    source=Source("geshkovski2023mathematical", "eq. USA", "with heads and a mask"),
    axes={i: n, j: n, a: d, b: d, e: d, h: H},
    equations={x[i, a]: on_the_sphere(pull)},
    params=PARAMS,
    initial=START,
    sizes={n: 16, d: 3, H: 1},
    span=(0.0, 8.0),
    time="depth",
    observables={"product": product, "energy": energy, "merged": pairs / Max(n * (n - 1), 1)},
    invariants=(
        Invariant("spheres stay spheres", norm, "constant", when=ON_SPHERE),
        Invariant("energy rises", energy, "nondecreasing", when=PLAIN),
    ),
    display={"pull": pull(a), "energy": energy},
)
