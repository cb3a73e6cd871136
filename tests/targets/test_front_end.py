"""Restricted Python by our front end: the bits that numba, which compiles the same text, computes; no system needs numba."""

import ctypes
import itertools
import re

import numpy as np
import pytest

from odesim.base.errors import CodegenError
from odesim.targets import native
from odesim.targets.cache import load_module
from odesim.targets.compiled import compile_system
from odesim.targets.front_end import write_module
from tests.support.systems import SYSTEMS, numbers

HEAD = """
import math
from math import inf, nan, sqrt

import numpy as np

from odesim.runtime.elementary import exp
from odesim.runtime.functions import njit
from odesim.runtime.intrinsics import bits, call, doubles, floats, from_bits, ints
from odesim.runtime.views import block, float32, float64, part_of, row_block

WIDE, PLACES = False, (3, 1.5)
strict = njit(fastmath=False)


@strict
def several(k, x):
    if k < 0:
        return k, x, 0
    for j in range(3):
        if j == k:
            return j, -x, 1.0
    return 7, x, k


@strict
def part(x, k):
    return exp(x[k]) if k == 2 else x[k] / (1 + k) if WIDE else -x[k] * 0.5


@strict
def applied(f, x, k):
    return f(x, k % 3)


@njit("void(int64)", fastmath=False)
def run(table):
    at = ints(table)
    n, x, y, f, a, b, out, put = at[0], doubles(at[1]), doubles(at[2]), floats(at[3]), ints(at[4]), ints(at[5]), doubles(at[6]), ints(at[7])
    o, p = 0, 0
    for i in range(n):
        u, v, r, s = x[i], y[i], a[i], b[i]
"""
EXPRESSIONS = {
    "floats": ("max(u, v)", "min(u, v)", "max(u, 0)", "abs(u)", "-u", "u + v", "u - v", "u * v", "u / v", "sqrt(abs(u))", "u / 3", "r / s",
               "2.0 ** 0.5 * u", "float(r) + True", "u if u < v else r", "0 if u != u else v", "np.float64(f[i]) + u", "f[i] * f[i]",
               "f[i] + 1", "f[i] * u", "math.cos(1.25) * u", "from_bits(bits(u) ^ (1 << 63 - 1))", "PLACES[1] * u + PLACES[0]"),
    "whole": ("r // s", "r % s", "r // 8", "r % 8", "r // 7", "r % -7", "r % 0", "-r", "~r", "r * s + 3", "r & s | 5", "r ^ s", "r >> 3",
              "r << 2", "r ** 3", "abs(r)", "max(r, s, 4)", "min(r, s)", "int(u) if abs(u) < 1e9 else 0", "(u < v) + (r > s)", "bits(u)",
              "(u != u) | (v != v)", "not r", "u < v <= 1.0", "u == v or (v > 0.0 and not r > s)", "np.int64(r > s) - 2",
              "1 if u else 0", "u > r", "math.isnan(u)"),
}  # fmt: skip
STATEMENTS = """
        total, count, last = 0, 0, (1.5, 2)
        for j in range(i % 5, -3, -2):
            if j == 2:
                continue
            total += u if j % 2 else r
            last = total, j
            if count > 2 and total == total:
                break
            count += 1
        while count < 4:
            count += 1
            for k in range(count):
                if k > 2:
                    break
                total = total * 0.5 - k
        else_, w = 0, 1
        if v > 0.0:
            w = 0.25
            if r > 0:
                else_ += 3
        elif v < 0.0:
            else_ = w - 2
        k, z, q = several(r % 5 - 1, v)
        out[o], out[o + 1], out[o + 2], out[o + 3] = total, last[0] + last[1], w, z * q
        out[o + 4] -= (x[i] if count > 3 else f[i]) + applied(part, x, i)
        o += 5
        put[p], put[p + 1] = count + else_ * 2, k
        put[p] *= 3
        p += 2
        m = float64(at[8], (3, 4))
        row, whole, single = m[1], part_of(float64(at[8], 12), 2, (2, 3)), float32(at[9], 12)
        m[2, i % 4] = row[i % 4] + whole[1, 2] * row_block(m, i % 3, 1, 4)[2] + m.size
        block(float64(at[8], 12), 3, 5)[...] = u
        single[i % 12] = u
"""


def text() -> str:
    lines = []
    for kind, array, place in (("floats", "out", "o"), ("whole", "put", "p")):
        for expression in EXPRESSIONS[kind]:
            lines += [f"        {array}[{place}] = {expression}", f"        {place} += 1"]
    return HEAD + "\n".join(lines) + STATEMENTS


BY_NUMBA = pytest.mark.filterwarnings("ignore:numba compiles")


def results(monkeypatch: pytest.MonkeyPatch, by_numba: bool, once: bool = False) -> list[np.ndarray]:
    """What the functions compute from all pairs of difficult numbers."""
    special = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 5e-324, 1e308, -3.0, *np.random.default_rng(3).normal(0, 30, 10)]
    x, y = (np.array(values) for values in zip(*itertools.product(special, special), strict=True))
    whole = [0, 1, -1, 2, -2, 7, -7, 8, -8, 2**62 + 3, -(2**63), 2**63 - 1, 12345, -54321]
    a, b = (np.resize(np.array(values), len(x)) for values in zip(*itertools.product(whole, whole), strict=True))
    with np.errstate(over="ignore"):
        f = x.astype(np.float32)
    out, put = np.zeros(50 * len(x)), np.zeros(50 * len(x), np.int64)
    matrix, single = np.arange(12.0), np.zeros(12, np.float32)
    arrays = [x, y, f, a, b, out, put, matrix, single]
    table = np.array([len(x), *(array.ctypes.data for array in arrays)])
    with monkeypatch.context() as m:
        if by_numba:
            refuse(m)
        address = native.load_native(text() + f"# {by_numba} {once}\n", "law", ["run"], once=once)["run"]
    ctypes.CFUNCTYPE(None, ctypes.c_int64)(address)(table.ctypes.data)
    return [out, put, matrix, single]


def refuse(m: pytest.MonkeyPatch) -> None:
    """Nothing is in the cache, and the front end compiles nothing: numba has to."""

    def build(*_: object) -> bytes:
        raise CodegenError("numba shall compile this")

    m.setattr(native, "_read", lambda name: None)
    m.setattr(native, "_build", build)


def refuse_numba(m: pytest.MonkeyPatch) -> None:
    """Nothing is in the cache, and numba compiles nothing: the front end has to."""
    build = native._build
    m.setattr(native, "_read", lambda name: None)
    m.setattr(native, "_build", lambda *a: raised(build, *a))


def raised(build, *arguments):
    """What is built; where the front end cannot, an exception that does not lead to numba."""
    try:
        return build(*arguments)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}") from error


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have the same bits; NaN of any sign is one."""
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a[a == 0.0]), np.signbit(b[b == 0.0]))


@BY_NUMBA
@pytest.mark.parametrize("once", [False, True])
def test_bits_are_those_of_numba(once, monkeypatch):
    """Operators, functions, conversions, control flow, arrays: on NaN, infinities, zeros of both signs, the least int64."""
    for ours, numbas in zip(results(monkeypatch, False, once), results(monkeypatch, True), strict=True):
        assert np.count_nonzero(ours) > 5 and same_bits(ours, numbas)


@BY_NUMBA
@pytest.mark.parametrize(("case", "dtype"), [pytest.param("rows", "float64", marks=pytest.mark.slow), ("softmax", "float32")])
def test_a_right_hand_side_has_the_bits_of_numba(case, dtype, monkeypatch):
    rates = []
    for by_numba in (False, True):
        native._addresses.cache_clear()
        with monkeypatch.context() as m:
            (refuse if by_numba else refuse_numba)(m)
            system = compile_system(SYSTEMS[case], strict=True, dtype=dtype)
            x = numbers(system.system, big=1500)
            bound = system.bind(x.sizes, x.params)
            y = system.layout(x.sizes).join(x.states, dtype)
            bound(0.3, y, out := np.empty_like(y))
            rates.append(out)
    native._addresses.cache_clear()
    assert np.count_nonzero(rates[0]) > 5 and same_bits(*rates)


@pytest.mark.parametrize("case", SYSTEMS)
def test_the_front_end_compiles_every_system(case, monkeypatch):
    """It has a text for LLVM, which calls nothing but LLVM's and the C library's functions. What LLVM does with it, other laws see."""
    texts: list[str] = []

    def write(name: str, text: str, stem: str, names: tuple[str, ...], once: bool, *_: bool) -> tuple[int, ...]:
        texts.append(write_module(load_module(text, stem), text, names, once))
        return (0,) * len(names)

    monkeypatch.setattr(native, "_addresses", write)
    assert compile_system(SYSTEMS[case]).functions and texts
    declared = set(re.findall(r'^declare .*@"?([\w.]+)"?\(', "\n".join(texts), re.MULTILINE))
    assert {name for name in declared if not name.startswith("llvm.")} <= native._LIBRARY


SHARED = """
from odesim.runtime.functions import njit
from odesim.runtime.intrinsics import doubles

@njit
def long(x, n):
    for k in range(n):
        x[k] = ((x[k] * 2.0 - 1.0) * x[k] + 3.0) / (x[k] * x[k] + 1.0)
        if x[k] > 1.0:
            x[k] -= 0.25 * x[k + 1]

@njit
def short(x):
    return x * 2.0

@njit
def single(x, n):
    for k in range(n):
        x[k] = ((x[k] * 2.0 - 1.0) * x[k] + 3.0) / (x[k] * x[k] + 1.0)
        x[k] += ((x[k] * 3.0 - 1.0) * x[k] + 3.0) / (x[k] * x[k] + 1.0)

@njit("void(int64, int64)")
def run(x, n):
    long(doubles(x), n)
    single(doubles(x), n)
    long(doubles(x), 2 * n)
    doubles(x)[0] = short(short(doubles(x)[0]))
"""


@pytest.mark.parametrize("once", [False, True])
def test_what_several_places_call_stands_once(once):
    """Of a module that is built so: a long function which two places call, and neither a short one nor one of a single place."""
    written = write_module(load_module(SHARED, "shared"), SHARED, ["run"], once)
    assert re.findall(r'define .*@"(\w+)\.\d+"\(.*noinline', written) == ["long"] * once


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("once", [False, True])
def test_loops_that_are_marked_become_vectors(once, marked):
    """Of a module that is built so, no others. All is made into instructions with the same care."""
    text = SHARED.replace("@njit\ndef single", "@njit(loops=True)\ndef single") if marked else SHARED
    whole = str(native._optimised(write_module(load_module(text, "loops"), text, ["run"], once), native._machine(), once, not once))
    assert bool(re.search(r"<\d+ x double>", whole)) == (marked or not once)
    assert "optnone" not in whole


LACKING = {
    "a method": "return x.sum()",
    "a list": "y = [1]",
    "None or a number": "return x if x > 0 else None",
    "above int64": "return 2**63 + x",
    "no range": "for k in (1, 2):\n        x += k\n    return x",
    "no such name": "return undefined",
    "no such attribute": "y = x\n    return y.z",
    "no value yet": "if x > 1:\n        pass\n    else:\n        return y\n    y = x\n    return y",
}


@pytest.mark.parametrize("body", LACKING.values(), ids=LACKING)
def test_what_it_lacks_is_refused(body):
    """In a CodegenError, with which numba takes over."""
    function = f'from odesim.runtime.functions import njit\n\n\n@njit("float64(float64)")\ndef run(x):\n    {body}\n'
    with pytest.raises(CodegenError):
        native._build(function, "lacks", ("run",))
