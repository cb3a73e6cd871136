"""Stiff problems with known solutions.

Equations and values at the end, where nothing else is said: F. Mazzia, C. Magherini, Test Set for Initial Value Problem Solvers,
release 2.4 (2008), University of Bari, archimede.uniba.it/~testset.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sympy import Interval, exp, oo, pi, sin, symbols

from odesim.symbolic import Invariant, Param, Source, System, time


@dataclass(frozen=True)
class Known:
    """A System, and its states at some times: {time: values in the order of its states}.

    tolerances: (rtol, atol) that are tried. error: how many of them the result may be off. long: takes minutes in a single run.
    """

    system: System
    states: Mapping[float, tuple[float, ...]]
    tolerances: tuple[tuple[float, float], ...]
    error: float = 10.0
    long: bool = False


def system(name: str, equations: Mapping[Any, Any], initial: Any, end: float, params: Mapping[Any, float] | None = None) -> System:
    """A System of scalars that start from initial; params {symbol: default}."""
    reals = Interval(-oo, oo)
    given = tuple(Param(s, value, reals, "a number") for s, value in (params or {}).items())
    start = dict(zip(equations, initial, strict=True))
    source = Source("mazzia2008test", name)
    return System(name=name, source=source, axes={}, equations=equations, params=given, initial=start, span=(0.0, end))


def states(n: int) -> Any:
    """y1, ..., yn."""
    return symbols(f"y1:{n + 1}")


def e5() -> System:
    """Pyrolysis, Enright, Hull, Lindberg (1975): y2 = y3 + y4."""
    y1, y2, y3, y4 = states(4)
    A, B, C, M = symbols("A B C M", real=True)
    made, split, met, back = A * y1, B * y1 * y3, M * C * y2 * y3, C * y4
    equations = {y1: -made - split, y2: made - met, y3: made - split - met + back, y4: split - back}
    return system("e5", equations, (1.76e-3, 0.0, 0.0, 0.0), 1e13, {A: 7.89e-10, B: 1.1e7, C: 1.13e3, M: 1e6})


def hires() -> System:
    """Photomorphogenesis, Schaefer (1975): y7 + y8 = 0.0057."""
    y = (0, *states(8))
    met = 280 * y[6] * y[8]
    equations = {
        y[1]: -1.71 * y[1] + 0.43 * y[2] + 8.32 * y[3] + 0.0007,
        y[2]: 1.71 * y[1] - 8.75 * y[2],
        y[3]: -10.03 * y[3] + 0.43 * y[4] + 0.035 * y[5],
        y[4]: 8.32 * y[2] + 1.71 * y[3] - 1.12 * y[4],
        y[5]: -1.745 * y[5] + 0.43 * y[6] + 0.43 * y[7],
        y[6]: -met + 0.69 * y[4] + 1.71 * y[5] - 0.43 * y[6] + 0.69 * y[7],
        y[7]: met - 1.81 * y[7],
        y[8]: -met + 1.81 * y[7],
    }
    return system("hires", equations, (1.0, *6 * (0.0,), 0.0057), 321.8122)


RATES = (
    *(0.35, 26.6, 1.23e4, 8.6e-4, 8.2e-4, 1.5e4, 1.3e-4, 2.4e4, 1.65e4, 9e3, 0.022, 1.2e4, 1.88, 1.63e4, 4.8e6, 3.5e-4, 0.0175, 1e8),
    *(4.44e11, 1.24e3, 2.1, 5.78, 0.0474, 1.78e3, 3.12),
)
# what each reaction takes, and what it gives
REACTIONS = (
    *(((1,), (2, 3)), ((2, 4), (1,)), ((5, 2), (6, 1)), ((7,), (5, 5, 8)), ((7,), (8,)), ((7, 6), (5, 8)), ((9,), (10, 5, 8))),
    *(((9, 6), (11,)), ((11, 2), (1, 10, 12)), ((11, 1), (13,)), ((13,), (11, 1)), ((10, 2), (14, 1)), ((14,), (7, 5)), ((1, 6), (15,))),
    *(((3,), (4,)), ((4,), (16,)), ((4,), (3,)), ((16,), (6, 6)), ((16,), (3,)), ((17, 6), (18, 5)), ((19,), (2,)), ((19,), (1, 3))),
    *(((1, 4), (19,)), ((19, 1), (20,)), ((20,), (1, 19))),
)


def pollution() -> System:
    """Air pollution, Verwer (1994): 25 reactions of 20 species; nitrogen and sulfur are kept."""
    y = (0, *states(20))
    equations: dict[Any, Any] = dict.fromkeys(y[1:], 0)
    for rate, (takes, gives) in zip(RATES, REACTIONS, strict=True):
        r: Any = rate
        for k in takes:
            r = r * y[k]
        for k in takes:
            equations[y[k]] -= r
        for k in gives:
            equations[y[k]] += r
    start = [0.0] * 20
    for k, value in {2: 0.2, 4: 0.04, 7: 0.1, 8: 0.3, 9: 0.01, 17: 0.007}.items():
        start[k - 1] = value
    return system("pollution", equations, start, 60.0)


def robertson() -> System:
    """Three reactions, Robertson (1966): y1 + y2 + y3 = 1."""
    y1, y2, y3 = states(3)
    a, b, c = 0.04 * y1, 1e4 * y2 * y3, 3e7 * y2**2
    return system("robertson", {y1: b - a, y2: a - b - c, y3: c}, (1.0, 0.0, 0.0), 1e11)


def orego() -> System:
    """The Oregonator, Field and Noyes (1974)."""
    y1, y2, y3 = states(3)
    equations = {
        y1: 77.27 * (y2 + y1 * (1 - 8.375e-6 * y1 - y2)),
        y2: (y3 - (1 + y1) * y2) / 77.27,
        y3: 0.161 * (y1 - y3),
    }
    return system("orego", equations, (1.0, 2.0, 3.0), 360.0)


def van_der_pol(mu: float) -> System:
    """x'' = mu (1 - x^2) x' - x in the time t/mu."""
    y1, y2 = states(2)
    return system(f"van_der_pol_{mu:.0e}".replace("+", ""), {y1: y2, y2: mu**2 * ((1 - y1**2) * y2 - y1)}, (2.0, 0.0), 2.0)


def ring_modulator() -> System:
    """An electrical circuit with diodes, Horneber (1976)."""
    y = (0, *states(15))
    c, cs, cp, r, rp, lh, ls1, ls2 = 1.6e-8, 2e-12, 1e-8, 25e3, 50.0, 4.45, 2e-3, 5e-4
    rg1, rg2, ri, rc = 36.3, 17.3, 50.0, 600.0
    uin1, uin2 = 0.5 * sin(2000 * pi * time), 2 * sin(20000 * pi * time)
    volts = (y[3] - y[5] - y[7] - uin2, -y[4] + y[6] - y[7] - uin2, y[4] + y[5] + y[7] + uin2, -y[3] - y[6] + y[7] + uin2)
    q1, q2, q3, q4 = (40.67286402e-9 * (exp(17.7493332 * u) - 1) for u in volts)
    equations = {
        y[1]: (y[8] - 0.5 * y[10] + 0.5 * y[11] + y[14] - y[1] / r) / c,
        y[2]: (y[9] - 0.5 * y[12] + 0.5 * y[13] + y[15] - y[2] / r) / c,
        y[3]: (y[10] - q1 + q4) / cs,
        y[4]: (-y[11] + q2 - q3) / cs,
        y[5]: (y[12] + q1 - q3) / cs,
        y[6]: (-y[13] - q2 + q4) / cs,
        y[7]: (-y[7] / rp + q1 + q2 - q3 - q4) / cp,
        y[8]: -y[1] / lh,
        y[9]: -y[2] / lh,
        y[10]: (0.5 * y[1] - y[3] - rg2 * y[10]) / ls2,
        y[11]: (-0.5 * y[1] + y[4] - rg2 * y[11]) / ls2,
        y[12]: (0.5 * y[2] - y[5] - rg2 * y[12]) / ls2,
        y[13]: (-0.5 * y[2] + y[6] - rg2 * y[13]) / ls2,
        y[14]: (-y[1] + uin1 - (ri + rg1) * y[14]) / ls1,
        y[15]: (-y[2] - (rc + rg1) * y[15]) / ls1,
    }
    return system("ring_modulator", equations, 15 * (0.0,), 1e-3)


def drag() -> System:
    """Two masses with friction between them, whose momentum is 0: both velocities go to 0 as exp(-k t (1/m1 + 1/m2))."""
    v1, v2, m1, m2, k = symbols("v1 v2 m1 m2 k", real=True)
    made = system("drag", {v1: -k * (v1 - v2) / m1, v2: k * (v1 - v2) / m2}, (1.0, -2.0), 4.0, {m1: 0.5, m2: 0.25, k: 1.0})
    return replace(made, invariants=(Invariant("momentum", m1 * v1 + m2 * v2, "constant"),))


# by scipy's Radau and BDF at 1e-12 with y2 = y3 + y4 put in, which agree to 1e-10 (test_stiff_set); the published values at 1e13
# differ from each other in the third digit, and y2 from y3 + y4 there
E5 = {
    1e1: (1.759925949768e-03, 1.38462815194e-11, 7.63700385301e-13, 1.30825811341e-11),
    1e3: (1.618076999907e-03, 1.38223703050e-10, 8.25157350068e-12, 1.29972129549e-10),
    1e5: (7.48132082243e-06, 2.37347815612e-12, 2.21235866896e-12, 1.61119487162e-13),
    1e7: (4.71503336304e-10, 1.81888958608e-14, 1.81888123768e-14, 8.34840202963e-20),
    1e9: (3.13171483294e-14, 1.48409579529e-16, 1.48409579484e-16, 4.52437282798e-26),
    1e11: (3.7693082197e-49, 1.01925825681e-20, 1.01925825681e-20, 3.7399012195e-65),
    1e13: (0.0, 8.8612335213e-23, 8.8612335213e-23, 0.0),
}
POLLUTION = (
    *(0.5646255480022769e-1, 0.1342484130422339, 0.4139734331099427e-8, 0.5523140207484359e-2, 0.2018977262302196e-6),
    *(0.1464541863493966e-6, 0.7784249118997964e-1, 0.3245075353396018, 0.7494013383880406e-2, 0.1622293157301561e-7),
    *(0.1135863833257075e-7, 0.2230505975721359e-2, 0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2),
    *(0.4352846369330103e-17, 0.6899219696263405e-2, 0.1007803037365946e-3, 0.1772146513969984e-5, 0.5682943292316392e-4),
)
HIRES = (
    *(0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2),
    *(0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2),
)
RING_MODULATOR = (
    *(-0.2339057358486745e-1, -0.7367485485540825e-2, 0.2582956709291169, -0.4064465721283450, -0.4039455665149794),
    *(0.2607966765422943, 0.1106761861269975, 0.2939904342435596e-6, -0.2840029933642329e-7, 0.7267198267264553e-3),
    *(0.7929487196960840e-3, -0.7255283495698965e-3, -0.7941401968526521e-3, 0.7088495416976114e-4, 0.2390059075236570e-4),
)

SET = {
    known.system.name: known
    for known in (
        Known(e5(), E5, ((1e-6, 1e-24), (1e-6, 1e-30), (1e-8, 1e-24), (1e-8, 1e-30))),
        Known(hires(), {321.8122: HIRES}, ((1e-6, 1e-10), (1e-8, 1e-12))),
        Known(pollution(), {60.0: POLLUTION}, ((1e-6, 1e-14), (1e-8, 1e-18))),
        Known(robertson(), {1e11: (0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050)}, ((1e-6, 1e-20), (1e-8, 1e-24))),
        Known(orego(), {360.0: (0.1000814870318523e1, 0.1228178521549917e4, 0.1320554942846706e3)}, ((1e-6, 1e-9), (1e-8, 1e-11))),
        Known(van_der_pol(1e3), {2.0: (0.1706167732170469e1, -0.8928097010248125)}, ((1e-6, 1e-9), (1e-8, 1e-11))),
        Known(van_der_pol(1e6), {2.0: (1.705546217529, -0.893476362553)}, ((1e-6, 1e-9), (1e-8, 1e-10))),  # scipy's Radau at 1e-9
        # its voltages ring with hardly any damping: errors of the way are there at the end
        Known(ring_modulator(), {1e-3: RING_MODULATOR}, ((1e-6, 1e-9),), error=60.0, long=True),
    )
}
