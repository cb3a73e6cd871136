"""The elementary functions against mpmath, at the edges of float64, and as vector code."""

import platform
import re
from functools import cache
from math import inf, nan, ulp

import llvmlite.binding as llvm
import mpmath as mp
import numba
import numpy as np
import pytest

from odesim.runtime import elementary, intrinsics

MODES: dict[str, bool | set[str]] = {"strict": False, "contract": {"contract"}}
BOUNDS = {"exp": 1, "log": 1, "expm1": 2, "log1p": 2, "tanh": 2, "erf": 2, "pow": 2}  # ulp, as the module promises
EXACT = {name: getattr(mp, "power" if name == "pow" else name) for name in BOUNDS}
HAS_FMA = llvm.get_host_cpu_features().get("fma", False) or platform.machine() in ("aarch64", "arm64")


@cache
def kernel(name, mode):
    """Compiled loop out = f(x), or f(x, y) for pow, over (n,)."""
    f = getattr(intrinsics if name == "floor" else elementary, name)
    compiled = numba.njit(error_model="numpy", fastmath=MODES[mode])
    if name == "pow":

        @compiled
        def loop(x, y, out):
            for i in range(x.size):
                out[i] = f(x[i], y[i])
    else:

        @compiled
        def loop(x, y, out):
            for i in range(x.size):
                out[i] = f(x[i])

    return loop


def evaluate(name, x, y=None, mode="strict"):
    """f(x) or f(x, y): (n,)."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    out = np.empty_like(x)
    kernel(name, mode)(x, x if y is None else np.ascontiguousarray(y, dtype=np.float64), out)
    return out


def signed(low, high, n=400):
    """+-10^u with n values of u in [low, high]: (2n,)."""
    size = 10.0 ** np.linspace(low, high, n)
    return np.concatenate([-size, size])


def points(name):
    """x (n,) and y (n,) over the range where the function is finite, denser where its formula changes."""
    rng = np.random.default_rng(7)
    spread = rng.uniform
    subnormal = rng.integers(1, 2**52, 100).astype(np.int64).view(np.float64)
    near_one = 1 + signed(-15.9, -0.31)
    switches = np.log(2) / 2 * (np.array([[-3], [-1], [1], [3]]) + spread(-0.1, 0.1, (4, 100)))
    grids = {
        "exp": [signed(-323, 2.85), switches, spread(-746, -707, 800), spread(709, 709.79, 100), spread(-707, 709, 1000)],
        "expm1": [signed(-323, 2.85), switches, spread(-2, 2, 1000), spread(709, 709.79, 100), spread(-45, 709, 1000)],
        "tanh": [signed(-323, 2), switches / 2, spread(-1, 1, 2000), spread(15, 23, 200)],
        "erf": [signed(-323, 2), 1 + signed(-16, -1, 50), spread(-1, 1, 1000), spread(1, 6.5, 1000)],
        "log": [10.0 ** spread(-323, 308.2, 1000), subnormal, near_one, spread(0.6, 1.5, 2000)],
        "log1p": [
            10.0 ** spread(-323, 308.2, 500),
            subnormal,
            -subnormal,
            near_one - 1,
            spread(-0.32, 0.45, 2000),
            -1 + 10.0 ** spread(-16, 0, 300),
        ],
    }
    if name != "pow":
        x = np.concatenate([np.ravel(part) for part in grids[name]])
        return x, np.zeros_like(x)
    wide = 10.0 ** spread(-323, 308.2, 300)
    base = np.concatenate([wide, np.exp(spread(-1, 1, 1000)), near_one])
    pairs = [(base, spread(-745.5, 709.9, base.size) / np.log(base))]  # results of every size
    pairs += [(wide, np.full(wide.size, q)) for q in (0.5, -0.5, 1 / 3, -1.5, 2 / 3, 0.1)]
    pairs += [(-(10.0 ** spread(-30, 30, 300)), rng.integers(-10, 11, 300).astype(float)), (subnormal, spread(-1, 1, subnormal.size))]
    x, y = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return x, y


def ulps(value, exact):
    """Distance of a float from an exact number, in spacings of float64 there; inf counts as 2^1024."""
    limit = mp.mpf(2) ** 1024
    if abs(exact) >= limit:
        exact = mp.sign(exact) * limit
    value = mp.mpf(value) if np.isfinite(value) else mp.mpf(np.sign(value)) * limit
    near = min(abs(float(exact)), np.finfo(float).max)
    return float(abs(value - exact) / mp.mpf(ulp(near)))


@pytest.mark.first(2)
@pytest.mark.parametrize("name", BOUNDS)
def test_error(name):
    """The error stays within the promised ulps on the whole range, subnormals included."""
    x, y = points(name)
    values = evaluate(name, x, y)
    with mp.workdps(40):
        arguments = [(mp.mpf(a), mp.mpf(b)) if name == "pow" else (mp.mpf(a),) for a, b in zip(x, y, strict=True)]
        errors = [ulps(v, EXACT[name](*a)) for v, a in zip(values, arguments, strict=True)]
    worst = int(np.argmax(errors))
    assert errors[worst] <= BOUNDS[name], (x[worst], y[worst], values[worst])


@pytest.mark.first(2)
@pytest.mark.parametrize("name", BOUNDS)
def test_modes_agree(name):
    """A caller that may contract gets the bits of a strict one."""
    x, y = points(name)
    assert evaluate(name, x, y, "contract").tobytes() == evaluate(name, x, y, "strict").tobytes()


@pytest.mark.parametrize("name", BOUNDS)
def test_alone_as_in_a_vector(name):
    """One value at a time gives the bits of the vector loop: a batch equals a loop."""
    x, y = (part[::50] for part in points(name))
    alone = [evaluate(name, x[k : k + 1], y[k : k + 1])[0] for k in range(x.size)]
    assert np.array(alone).tobytes() == evaluate(name, x, y).tobytes()


EDGES = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, 0.0), (710.0, inf), (1e308, inf), (-746.0, 0.0), (-1e308, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1.0), (710.0, inf), (-1e308, -1.0), (5e-324, 5e-324), (-5e-324, -5e-324)],
    "log": [(1.0, 0.0), (0.0, -inf), (-0.0, -inf), (-1.0, nan), (-5e-324, nan), (inf, inf), (-inf, nan)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -inf), (np.nextafter(-1, -2), nan), (inf, inf), (-inf, nan), (-5e-324, -5e-324)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (1e308, 1.0), (-5e-324, -5e-324)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (1e308, 1.0), (-5e-324, -5e-324)],
    "floor": [(0.5, 0.0), (-0.5, -1.0), (-0.0, -0.0), (inf, inf), (-inf, -inf), (1e300, 1e300), (-(2.0**63) * 3, -(2.0**63) * 3)],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    """Infinities, signed zeros and poles as in C; NaN, of either sign, stays NaN."""
    x, expected = (np.array(part) for part in zip(*EDGES[name], (nan, nan), (-nan, nan), strict=True))
    value = evaluate(name, x)
    np.testing.assert_array_equal(value, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(value[known]), np.signbit(expected[known]))


def test_edges_of_pow():
    """Every pair of special numbers gives what C's pow gives, sign of zero included."""
    sizes = [0.0, 5e-324, 0.5, 1.0, 1.5, 2.0, 3.0, 1e308, 2.0**53 - 1, 2.0**53, inf]
    special = np.array([*sizes, *(-s for s in sizes), nan])
    x, y = (part.ravel() for part in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    value = evaluate("pow", x, y)
    np.testing.assert_allclose(value, expected, rtol=4e-16)  # 2 ulp: numpy's own error is below 1
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(value[known]), np.signbit(expected[known]))


@pytest.mark.skipif(not HAS_FMA, reason="no fused multiply-add in this processor: fma is a call, and LLVM leaves the loop scalar")
@pytest.mark.parametrize("name", BOUNDS)
def test_loop_is_vector_code(name):
    """LLVM turns a loop over the function into vector instructions and calls nothing."""
    loop = kernel(name, "strict")
    evaluate(name, np.ones(1))
    (text,) = loop.inspect_llvm().values()
    assert re.search(r"@llvm\.fma\.v\d+f64", text)
    assert not re.search(r"call[^@]*double @(?!llvm\.)", text)
