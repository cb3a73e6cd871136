"""What is stated of tokens on the circle with noise: the strength of attention at which order sets in, and how."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gamma, iv

import odesim
from odesim.lab.claims import Claim, Measurement
from odesim.symbolic import Source

TOKENS, MEMBERS, KAPPA = 64, 64, 0.5
TIMES = (20.0, 25.0, 30.0, 35.0, 40.0)
"""Far apart beside the time in which the order forgets, below 4."""


def threshold(beta: float) -> float:
    """K at which the uniform density loses its stability."""
    return float(KAPPA * beta / iv(1, beta))


def order_of_density(beta: float, K: float) -> float:
    """E cos of the density that is exp((K/kappa) times its own potential), over its integral, from one that is nearly a point."""
    angle = np.linspace(0, 2 * np.pi, 256, endpoint=False)
    pull = np.exp(beta * np.cos(angle[:, None] - angle)) / beta
    density = np.exp(4 * np.cos(angle))
    for _ in range(500):
        density /= density.sum()
        density = np.exp(K / KAPPA * (pull @ density))
    return float(np.cos(angle) @ density / density.sum())


def order(beta: float, K: float, start: dict[str, Any]) -> Any:
    """Order (MEMBERS, TIMES) of 64 tokens."""
    run = odesim.ensemble(
        "particles.noisy_circle", params={"beta": beta, "kappa": KAPPA, "K": K}, sizes={"n": TOKENS}, members=MEMBERS, step=0.1,
        span=(0, TIMES[-1]), save=TIMES, observe="r", **start,
    )  # fmt: skip
    return run.r.values


def sets_in() -> Iterable[Measurement]:
    """Below the threshold r is that of 64 free tokens, raised by 1/sqrt(1 - K/K#); above, that of the density."""
    uniform, still = {"vary": {"theta": f"uniform(0,{2 * np.pi})"}}, {"initial": {"theta": 0.0}}
    for share in (0.0, 0.5):
        squares = order(1.0, share * threshold(1.0), uniform) ** 2 * TOKENS
        doubt = 4 * float(squares.std()) / squares.size**0.5
        yield Measurement(f"64 times the mean of r^2, beta = 1, {share:g} K#", squares.mean(), 1 / (1 - share), doubt)
    for beta in (1.0, 2.0):
        K = 1.5 * threshold(beta)
        r = order(beta, K, still)
        doubt = 4 * float(r.std()) / r.size**0.5
        yield Measurement(f"mean of r, beta = {beta:g}, 1.5 K#", r.mean(), order_of_density(beta, K), doubt)


def modes_at(beta: float, share: float, start: Any, end: float) -> Any:
    """Modes (40,) of the density at t = end, with K = share K#. start: modes (40,), or a number whose powers they are."""
    modes = start ** np.arange(40) if np.ndim(start) == 0 else start
    given: dict[str, Any] = {"params": {"beta": beta, "kappa": KAPPA, "K": share * threshold(beta)}, "initial": {"a": modes}}
    return odesim.integrate("particles.density", **given, sizes={"N": 40}, span=(0, end), save=2, rtol=1e-9, atol=1e-17).final["a"]


def growth() -> Iterable[Measurement]:
    """The rates of the first modes of a density that is nearly uniform, from t = 0 to 1."""
    for beta, share in ((1.0, 0.9), (1.0, 1.1), (4.0, 1.1)):
        small = np.array([1.0, *[1e-7] * 3, *[0.0] * 36])
        end = modes_at(beta, share, small, 1.0)
        for k in (1, 2, 3):
            rate = float(k**2 * (share * threshold(beta) * iv(k, beta) / beta - KAPPA))
            yield Measurement(f"rate of mode {k}, beta = {beta:g}, {share:g} K#", np.log(end[k] / 1e-7), rate, 1e-5)


def transition() -> Iterable[Measurement]:
    """Stationary modes from an ordered and from a nearly uniform density; near K# those of the equation of two modes."""
    for beta, share in ((1.0, 1.1), (1.0, 1.5), (2.0, 1.1), (4.0, 0.98), (4.0, 1.02)):
        K, first = share * threshold(beta), float(modes_at(beta, share, 0.8, 400.0)[1])
        yield Measurement(f"a_1 from order, beta = {beta:g}, {share:g} K#", first, order_of_density(beta, K), 1e-6)
    ratio = float(iv(2, 1.0) / iv(1, 1.0))
    for share in (1.002, 1.001):
        small = (2 * (1 - ratio) * (share - 1) / (1 - 2 * ratio)) ** 0.5
        first = float(modes_at(1.0, share, small, 4000.0)[1])
        yield Measurement(f"a_1 over its law near K#, beta = 1, {share:g} K#", first / small, 1.0, 2 * (share - 1))
    for share, order in ((0.98, 0.0), (1.02, float(modes_at(4.0, 1.02, 0.8, 400.0)[1]))):
        first = float(modes_at(4.0, share, 0.05, 2000.0)[1])
        yield Measurement(f"a_1 from a_1 = 0.05, beta = 4, {share:g} K#", first, order, 1e-6)


def harmonic(l: int, d: int, beta: float) -> float:
    """E exp(beta u) P_l(u) / beta over the sphere in d dimensions, u a cosine, by Bessel functions."""
    return float(gamma(d / 2) * (2 / beta) ** (d / 2 - 1) * iv(d / 2 - 1 + l, beta) / beta)


def on_sphere(d: int, beta: float, share: float, start: Any, end: float) -> Any:
    """Modes (24,) on the sphere in d dimensions at t = end, with K = share K#. start: as of modes_at."""
    modes = start ** np.arange(24) if np.ndim(start) == 0 else start
    given: dict[str, Any] = {"beta": beta, "kappa": KAPPA, "d": float(d), "K": share * KAPPA / harmonic(1, d, beta)}
    options: dict[str, Any] = {"sizes": {"N": 24}, "span": (0, end), "save": 2, "rtol": 1e-9, "atol": 1e-17}
    return odesim.integrate("particles.sphere_density", params=given, initial={"a": modes}, **options).final["a"]


def sphere_growth() -> Iterable[Measurement]:
    """The rates of the first modes of a density that is nearly uniform, from t = 0 to 1, in 3 and 4 dimensions."""
    for d, beta, share in ((3, 1.0, 0.9), (3, 2.5, 1.1), (4, 1.0, 1.1)):
        end = on_sphere(d, beta, share, np.array([1.0, *[1e-7] * 3, *[0.0] * 20]), 1.0)
        for l in (1, 2, 3):
            rate = l * (l + d - 2) * KAPPA * (share * harmonic(l, d, beta) / harmonic(1, d, beta) - 1)
            yield Measurement(f"rate of mode {l}, d = {d}, beta = {beta:g}, {share:g} K#", np.log(end[l] / 1e-7), rate, 1e-5)


def sphere_transition() -> Iterable[Measurement]:
    """From order, 0.2 % below K#, by temperatures 0.3 below and above that where I_(d/2+1) is I_(d/2)/d."""
    for d, recorded in ((3, 1.8161545), (4, 1.5752571)):
        star = brentq(lambda beta, d=d: iv(d / 2 + 1, beta) / iv(d / 2, beta) - 1 / d, 0.5, 5, xtol=1e-12)
        yield Measurement(f"beta at which order begins to jump, d = {d}", star, recorded, 5.1e-8)
        below, above = (float(on_sphere(d, star + side, 0.998, 0.8, 4000.0)[1]) for side in (-0.3, 0.3))
        yield Measurement(f"a_1 in the end below it, d = {d}", below, 0.0, 1e-3)
        yield Measurement(f"a_1 in the end above it, d = {d}", above, 0.1, 0.0, ">=")


NOISY = (
    Claim(
        "particles.threshold",
        Source("mun2026phase", "abstract", "d = 2"),
        "64 tokens on the circle, 64 runs, at 0, 0.5 and 1.5 of K#",
        "for beta < 2.447 noisy tokens are spread evenly up to K# = kappa beta / I_1(beta), and ordered above",
        sets_in,
        "four standard errors of 64 runs, each seen at five times",
        models=("particles.noisy_circle",),
        slow=True,
        depends=("particles.modes",),
    ),
    Claim(
        "particles.modes",
        Source("mun2026phase", "abstract", "d = 2"),
        "40 modes of the density, from a start that is nearly uniform",
        "around the uniform density mode k grows at the rate k^2 (K I_k(beta) / beta - kappa): order sets in with mode 1, at K#",
        growth,
        "products of modes of 1e-7, and rtol",
        models=("particles.density",),
    ),
    Claim(
        "particles.transition",
        Source("mun2026phase", "abstract", "d = 2"),
        "40 modes of the density at .98 to 1.5 of K#, from order and from none",
        "for beta < 2.447 order sets in as a_1^2 = 2 (1 - r) (K/K# - 1) / (1 - 2 r), r = I_2 / I_1; above by a jump, and what is "
        "ordered stays so below K#",
        transition,
        "the law near K#: the next order; else what is left in the end",
        models=("particles.density",),
        slow=True,
        depends=("particles.threshold",),
    ),
    Claim(
        "particles.sphere_modes",
        Source("mun2026phase", "abstract", "d = 3 and 4"),
        "24 modes of the density about an axis, from a start that is nearly uniform",
        "around the uniform density on the sphere mode l grows at the rate l (l + d - 2) (K lam_l - kappa), lam_l the mean of "
        "exp(beta u) P_l(u) / beta: order sets in at K# = kappa / lam_1",
        sphere_growth,
        "products of modes of 1e-7, and rtol",
        models=("particles.sphere_density",),
    ),
    Claim(
        "particles.sphere_transition",
        Source("mun2026phase", "abstract", "d = 3 and 4"),
        "24 modes of the density about an axis, at .998 of K#, from order",
        "on the sphere order sets in continuously where I_(d/2+1)(beta) < I_(d/2)(beta) / d, by a jump above",
        sphere_transition,
        "the recorded digits; what is left in the end, and a jump of a tenth",
        models=("particles.sphere_density",),
        slow=True,
        depends=("particles.sphere_modes",),
    ),
)
