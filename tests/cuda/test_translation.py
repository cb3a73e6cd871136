"""Functions as C++: the bits that numba's have."""

import ctypes
import re
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import njit

from odesim.base.device import architecture, load_module
from odesim.base.errors import CodegenError
from odesim.runtime import circular, elementary, special
from odesim.runtime import stages as runtime
from odesim.stepper import powers as arithmetic
from odesim.targets import cuda_system
from odesim.targets.cuda_text import Translation, cuda_source, module_scope
from odesim.targets.cuda_words import INT, REAL, SINGLE
from odesim.targets.nvrtc import options_for
from tests.support.cuda_host import build

ONE: dict[str, Any] = {
    "exp": elementary.exp,
    "expm1": elementary.expm1,
    "log": elementary.log,
    "log1p": elementary.log1p,
    "tanh": elementary.tanh,
    "erf": elementary.erf,
}
ONE |= {name: getattr(circular, name) for name in ("sin", "cos", "tan", "sinc")}
ONE |= {name: getattr(circular, name) for name in ("asin", "acos", "atan")}
ONE |= {name: getattr(elementary, name) for name in ("asinh", "acosh", "atanh", "sinh", "cosh")}
ONE |= {"erfc": special.erfc, "sinc_slope": circular.sinc_slope}
ONE |= {"lambertw": special.lambertw, "lambertw_lower": special.lambertw_lower, "log2": arithmetic.log2, "exp2": arithmetic.exp2}
TWO = {"pow": elementary.pow, "maximum": runtime.maximum, "minimum": runtime.minimum}
ORDERS = {"binomial": special.binomial}
TWO |= {**ORDERS, "atan2": circular.atan2}
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 5e-324, 2.0**-1022, 1e308, -745.2, 709.8, 1e-17)


def numbers() -> np.ndarray:
    """Of all sizes and both signs, and special ones."""
    rng = np.random.default_rng(0)
    sized = rng.normal(size=2000) * 2.0 ** rng.uniform(-60, 60, 2000)
    return np.concatenate([SPECIAL, sized, rng.normal(size=2000), rng.uniform(-745, 709, 500)])


def over(python: Any, arguments: int) -> Any:
    """numba's loop over a function, which cannot be called from Python itself."""
    if arguments == 1:

        @njit(error_model="numpy", fastmath=False)
        def loop(x, y, z):
            for i in range(len(x)):
                z[i] = python(x[i])
    else:

        @njit(error_model="numpy", fastmath=False)
        def loop(x, y, z):
            for i in range(len(x)):
                z[i] = python(x[i], y[i])

    return loop


@cache
def text_of_all() -> str:
    """A text with a kernel for each function, which fills z with its values at x and y."""
    translation, kernels = Translation(), []
    for name, python in {**ONE, **TWO}.items():
        arguments = ("x[i]", "y[i]")[: 1 if name in ONE else 2]
        value = f"{translation.imported(python, (REAL,) * len(arguments)).name}({', '.join(arguments)})"
        head = f'extern "C" __global__ void fill_{name}(double* x, double* y, double* z, long long n)'
        kernels.append(f"{head} {{ for (long long i = 0; i < n; ++i) z[i] = {value}; }}")
    return cuda_source("functions", translation.text(), "\n".join(kernels))


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_functions_have_numba_s_bits(name: str, cuda: Callable[..., ModuleType]) -> None:
    """One text, two compilers, the same operations: the same bits, for NaN too that it is one."""
    cp, python = cuda(), {**ONE, **TWO}[name]
    x = numbers()
    if name == "log2":  # of normal numbers
        x = abs(x[np.isfinite(x) & (abs(x) > 1e-300)])
    y = np.random.default_rng(1).permutation(x)
    if name in ORDERS:  # the first argument is a whole number
        x, y = np.arange(len(x)) % 7.0, np.arange(len(x)) % 9.0 - 1.0 if name == "binomial" else y
    there = [cp.asarray(a) for a in (x, y, np.empty_like(x))]
    code = cuda_system.compile_cubin(text_of_all(), "fill", options_for(architecture(), strict=True)).code
    load_module(code).get_function(f"fill_{name}")((1,), (1,), (*there, np.int64(len(x))))
    z = there[-1].get()
    expected = np.empty_like(x)
    over(python, 1 if name in ONE else 2)(x, y, expected)
    np.testing.assert_array_equal(np.isnan(z), np.isnan(expected))
    same = ~np.isnan(expected)
    np.testing.assert_array_equal(z[same].view(np.int64), expected[same].view(np.int64))


TEXT = """
from math import inf

def helper(n, x):
    return n * x, n // 2

def halve(x):
    return 0.5 * x

def twice(g, x):
    return g(g(x))

def f(x, n, p):
    new, k = twice(halve, x), 0
    while n > 1:
        new, n = helper(n, x + new)
        k += 1
    for i in range(1, 4, 2):
        p[i] = -x if i % 2 and not x > inf else 1.0
    p[0], p[2] = p[2], p[0]
    for j in range(3, -1, -2):
        new += j
        j = j + 8
    new += 100 * i + j
    return new if 0.0 < new < 1e9 and k != 3 else float(k)
"""


def test_shim_statements() -> None:
    """Loops up and down and what is left of their variable, choices, tuples that swap, a function as an argument, a word that C++ keeps
    for itself: as Python runs them."""
    translation = Translation()
    made = translation.function(module_scope(TEXT), "f", (REAL, INT, f"{REAL}*"))
    head = 'extern "C" __global__ void fill(double* x, double* p, long long n)'
    library = build(cuda_source("statements", translation.text(), f"{head} {{ x[0] = {made.name}(x[0], n, p); }}"), strict=True)
    scope: dict = {}
    exec(TEXT, scope)
    for x, n in ((1.5, 40), (-2.0, 9), (3.0, 8)):
        expected = [1.0, 2.0, 3.0, 4.0]
        p, cell = np.array(expected), np.array([x])
        library.launch_fill(1, 1, 1, *(ctypes.c_void_p(a.ctypes.data) for a in (cell, p)), ctypes.c_longlong(n))
        assert cell[0] == scope["f"](x, n, expected)
        assert p.tolist() == expected


SINGLES = ("sqrt(x) * y", "abs(x) * y", "x / sqrt(y)", "x * n", "n / x + y", "(x if n > 2 else 0.1) * y", "1.0 / x * y", "-x * y - x")


@pytest.mark.slow
def test_shim_rounds_where_numba_does() -> None:
    """float32 beside whole numbers and float64: which operations are done in which width."""
    x, y = np.random.default_rng(2).uniform(0.5, 2, (2, 1000)).astype(np.float32)
    for formula in SINGLES:
        text = f"from math import sqrt\n\ndef f(x, y, n):\n    z = {formula}\n    return z * x\n"
        translation, scope = Translation(), dict[str, Any]()
        made = translation.function(module_scope(text), "f", (SINGLE, SINGLE, INT))
        head = 'extern "C" __global__ void fill(float* x, float* y, double* z, long long n)'
        library = build(
            cuda_source("width", translation.text(), f"{head} {{ for (int i = 0; i < n; ++i) z[i] = {made.name}(x[i], y[i], 3); }}"), True
        )
        z = np.empty(1000)
        library.launch_fill(1, 1, 1, *(ctypes.c_void_p(a.ctypes.data) for a in (x, y, z)), ctypes.c_longlong(1000))
        exec(text, scope)
        compiled = njit(error_model="numpy", fastmath=False)(scope["f"])
        assert [float(compiled(a, b, 3)) for a, b in zip(x, y, strict=True)] == z.tolist(), formula


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return g(x)", "no C++ form of the function g"),
        ("return [x]", "no C++ form of: [x]"),
        ("return y", "no C++ form of the name y"),
        ("with x: pass", "no C++ form of: with x:"),
    ],
)
def test_cuda_says_what_it_cannot_translate(body: str, sentence: str) -> None:
    """What has no form is named."""
    with pytest.raises(CodegenError, match=re.escape(sentence)):
        Translation().function(module_scope(f"def f(x):\n    {body}\n"), "f", (REAL,))
