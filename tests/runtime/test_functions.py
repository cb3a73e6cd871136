"""The functions of docs/functions.md against mpmath: the errors that the page states, the edges, and the bits in both modes."""

import re
from collections.abc import Callable
from functools import cache
from math import comb, inf, nan, sqrt, ulp
from pathlib import Path
from typing import Any

import mpmath as mp
import numba
import numpy as np
import pytest

from odesim.targets.numba_module import OWN, RUNTIME

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
ROW = re.compile(r"^\| `(\w+\([^`]*\))` \| (\S+) to (\S+) \| (\S+) \|", re.MULTILINE)
ALSO = {"LambertW(x)": "lambertw", "LambertW(x, -1)": "lambertw_lower"}
"""{as sympy writes it: the function in generated code}"""
STATED = {
    ALSO.get(call, call.removesuffix("(x)")): (float(low), float(high), float(bound))
    for call, low, high, bound in ROW.findall(PAGE.read_text())
}
"""{function: the lowest and the highest argument, the largest error}"""
HOME = {name: module for module, names in OWN.items() for name in names}
OTHERS: dict[str, Callable[..., Any]] = {
    "lambertw": lambda x: mp.lambertw(x).real,
    "lambertw_lower": lambda x: mp.lambertw(x, -1).real,
    "sinc_slope": lambda x: (mp.cos(x) - mp.sin(x) / x) / x if x else mp.mpf(0),
}


COMPILED = [name for name in STATED if name in HOME or name == "sqrt"]


def exact(name: str, x: Any) -> Any:
    """The function by mpmath."""
    return mp.mpf((OTHERS[name] if name in OTHERS else getattr(mp, name))(x))


def function(name: str) -> Any:
    """The function that generated code calls."""
    if name not in HOME:
        return {"sqrt": sqrt}[name]
    return getattr(__import__(f"{RUNTIME}.{HOME[name]}", fromlist=[name]), name)


@cache
def kernel(name: str, contract: bool = False) -> Any:
    """The compiled loop out = f(x)."""
    f = function(name)

    @numba.njit(error_model="numpy", fastmath={"contract"} if contract else False)
    def loop(x, out):
        for i in range(x.size):
            out[i] = f(x[i])

    return loop


def evaluate(name: str, x: Any, contract: bool = False) -> Any:
    """f(x): (n,)."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    out = np.empty_like(x)
    kernel(name, contract)(x, out)
    return out


def near_zeros_of_sines() -> Any:
    """Numbers that are closest to a multiple of pi/2 among those of their size, by the continued fraction of 2^q 2/pi."""
    found = []
    with mp.workdps(60):
        for q in range(-52, -2):
            before, at, y = 1, 0, mp.mpf(2) ** q * 2 / mp.pi
            while at < 2**53:
                found += [at * 2.0**q]
                whole = int(mp.floor(y))
                before, at, y = at, before + whole * at, 1 / (y - whole)
    return np.array(found)


def around(*places: float) -> Any:
    """Numbers on both sides of each place, 1e-16 to 1e-1 of it away."""
    steps = 10.0 ** np.linspace(-16, -1, 60)
    return np.concatenate([p * (1 + s * steps) for p in places for s in (-1, 1)])


HARD = {
    "sin": near_zeros_of_sines,
    "cos": near_zeros_of_sines,
    "tan": near_zeros_of_sines,
    "sinc": near_zeros_of_sines,
    "acosh": lambda: around(1.0, 2.0**30),
    "asin": lambda: around(0.5, 1.0),
    "acos": lambda: around(0.5, 1.0),
    "atan": lambda: around(1.0),
    "asinh": lambda: around(2.0**-27, 2.0**30),
    "atanh": lambda: around(1.0, -1.0),
    "sinh": lambda: around(2.0**-27, 20.0, 710.0),
    "cosh": lambda: around(20.0, 710.0),
    "erfc": lambda: around(0.5, -0.5, 26.0),
    "lambertw": lambda: around(-0.3678794411714423, -0.3, 3.0),
    "lambertw_lower": lambda: around(-0.3678794411714423, -0.32),
}
"""Where a function is difficult, or its formula changes."""


WORST = {
    "asinh": (0.3532008298625521, 0.3462983552148081),
    "atanh": (0.1697663013693467, 0.12103216354171784),
    "lambertw": (-0.3031125583682254, -0.30202722726014836),
    "lambertw_lower": (-0.3157431044585684, -0.3041857406124698),
}
"""Arguments with the largest errors that were found among 10^5 others."""


def points(name: str) -> Any:
    """Some thousand arguments in the stated range: of every size, subnormal ones too, even ones, and hard ones."""
    low, high, _ = STATED[name]
    rng = np.random.default_rng(7)
    size = 10.0 ** np.concatenate([rng.uniform(-323, 308, 250), rng.uniform(-20, 4, 600)])
    even = rng.uniform(max(low, -30.0), min(high, 30.0), 600)
    whole = [np.linspace(low, high, 200)] if high - low < 1e6 else []
    hard = [x for x in [HARD[name]()] for x in (x, -x)] if name in HARD else []
    x = np.concatenate([size, -size, even, [low, high], WORST.get(name, ()), *whole, *hard])
    return np.unique(x[(x >= low) & (x <= high)])


def error(value: float, exact: Any) -> float:
    """The distance of a float from an exact number, in spacings of float64 there."""
    if np.isinf(value):
        return 0.0 if np.isinf(float(exact)) and value == float(exact) else inf
    return float(abs(mp.mpf(value) - exact) / mp.mpf(ulp(float(exact)))) if np.isfinite(value) else inf


@pytest.mark.first(5)
@pytest.mark.parametrize("name", COMPILED)
def test_the_page_states_the_error(name):
    """No error is above the stated bound, and the bound is not twice too large: the page is neither too bold nor too shy."""
    x = points(name)
    values = evaluate(name, x)
    with mp.workdps(50):
        errors = [error(v, exact(name, mp.mpf(a))) for a, v in zip(x, values, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= STATED[name][2], (x[worst], values[worst], errors[worst])
    assert name in SHY or errors[worst] >= 0.4 * STATED[name][2], errors[worst]


SHY = ("tanh", "erf")
"""Functions whose bound is that of tests/runtime/test_elementary.py, which looks at other points."""


@pytest.mark.first(1)
@pytest.mark.parametrize("name", COMPILED)
def test_one_value_has_the_bits_of_a_loop(name):
    """Alone, in a vector, and in a caller that may contract: the same bits."""
    x = points(name)[::7]
    values = evaluate(name, x)
    assert evaluate(name, x, contract=True).tobytes() == values.tobytes()
    assert np.concatenate([evaluate(name, x[k : k + 1]) for k in range(0, x.size, 5)]).tobytes() == values[::5].tobytes()


EDGES = {
    "sin": [(0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324), (inf, nan), (2.0**50, nan), (-(2.0**50), nan)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (inf, nan), (-inf, nan), (2.0**50, nan)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (inf, nan), (2.0**50, nan)],
    "sinc": [(0.0, 1.0), (-0.0, 1.0), (5e-324, 1.0), (inf, nan)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324), (np.nextafter(1, 2), nan), (-inf, nan), (inf, nan)],
    "acos": [(1.0, 0.0), (np.nextafter(1, 2), nan), (-inf, nan), (inf, nan)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324), (inf, np.pi / 2), (-inf, -np.pi / 2)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324), (inf, inf), (-inf, -inf), (711.0, inf), (-1e308, -inf)],
    "cosh": [(0.0, 1.0), (inf, inf), (-inf, inf), (711.0, inf), (-1e308, inf)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (5e-324, 5e-324), (inf, inf), (-inf, -inf)],
    "acosh": [(1.0, 0.0), (inf, inf), (np.nextafter(1, 0), nan), (0.0, nan), (-2.0, nan), (-inf, nan)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, inf), (-1.0, -inf), (np.nextafter(1, 2), nan), (-inf, nan), (5e-324, 5e-324)],
    "lambertw": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, nan), (-0.37, nan), (-1.0, nan), (5e-324, 5e-324)],
    "lambertw_lower": [(0.0, -inf), (-0.0, -inf), (inf, nan), (-inf, nan), (-0.37, nan), (1.0, nan)],
    "erfc": [(0.0, 1.0), (inf, 0.0), (-inf, 2.0), (28.0, 0.0), (1e308, 0.0), (-1e308, 2.0)],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    """Infinities, signed zeros, poles and what lies outside; NaN stays NaN."""
    x, expected = (np.array(part) for part in zip(*EDGES[name], (nan, nan), strict=True))
    value = evaluate(name, x)
    np.testing.assert_array_equal(value, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(value[known]), np.signbit(expected[known]))


def test_atan2():
    """To 2 ulp of mpmath in all quadrants, and for zeros, infinities and NaN what C gives."""
    atan2 = function("atan2")

    @numba.njit(error_model="numpy", fastmath=False)
    def loop(y, x, out):
        for i in range(x.size):
            out[i] = atan2(y[i], x[i])

    rng = np.random.default_rng(3)
    near, wide = rng.uniform(-1, 1, (2, 800)), 10.0 ** rng.uniform(-150, 150, (2, 400)) * rng.choice([-1, 1], (2, 400))
    y, x = np.hstack([near, wide, [near[0], near[0] * (1 + 1e-12)]])
    out = np.empty_like(x)
    loop(y, x, out)
    with mp.workdps(40):
        assert max(error(v, mp.atan2(mp.mpf(a), mp.mpf(b))) for a, b, v in zip(y, x, out, strict=True)) <= 2
    special = np.array([0.0, -0.0, 1.0, -1.0, inf, -inf, nan, 5e-324, -5e-324, 1e308])
    y, x = (part.ravel() for part in np.meshgrid(special, special))
    out = np.empty_like(x)
    loop(y, x, out)
    np.testing.assert_allclose(out, np.arctan2(y, x), rtol=2**-51)  # 2 ulp
    known = ~np.isnan(out)
    np.testing.assert_array_equal(np.signbit(out[known]), np.signbit(np.arctan2(y, x)[known]))


def test_binomial_counts():
    """Whole numbers are exact below 2^53, rounded k times beyond; the largest results do not overflow on the way."""
    binomial = function("binomial")
    table = numba.njit(lambda n, k: binomial(n, k), error_model="numpy")
    for n in (0, 1, 2, 7, 30, 53, 60, 200, 1029):
        for k in range(-1, n + 2):
            exact = comb(n, k) if k >= 0 else 0
            slack = 0 if n * exact < 2**53 else 4 * sqrt(n) * 2**-53  # roundings of both signs
            assert abs(int(table(float(n), float(k))) - exact) <= slack * exact, (n, k)
    assert table(1030.0, 515.0) == inf


def test_slope_of_sinc():
    """To a few roundings of 1, on both sides of where its formula changes."""
    slope = function("sinc_slope")
    one = numba.njit(lambda x: slope(x), error_model="numpy")
    for x in np.concatenate([points("sinc")[::20], around(sqrt(5.0))[::4], np.linspace(0.1, 3.0, 40)]):
        with mp.workdps(60):
            assert abs(one(x) - float(exact("sinc_slope", mp.mpf(x)))) < 4e-16, x
