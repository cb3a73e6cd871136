"""Sums over products of two arrays: with repeated indices, with whole numbers, and as matrix products, all are what einsum says."""

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from sympy import S, Sum

import odesim
from odesim.ir.passes import lower
from odesim.symbolic import IndexedBase, Param, System, index, over, sizes
from odesim.targets.cache import load_module
from odesim.targets.compiled import compile_system
from odesim.targets.front_end import write_module
from odesim.targets.numba_module import module_text
from odesim.targets.numpy_text import ArrayFunction
from odesim.targets.unroll import write_out
from tests.support.systems import REAL, SOURCE

i, j, k = index("i j k")
(N,) = sizes("N")
INDICES = {"i": i, "j": j, "k": k}
n = 3
X = IndexedBase("X", shape=(N, N))
LEFT = ("ik", "ki", "kik", "iik", "kki", "ikk", "kk", "iki")
RIGHT = ("jk", "kj", "kjk", "jjk", "k")


def element(name: str, letters: str) -> Any:
    return IndexedBase(name, shape=(N,) * len(letters))[tuple(INDICES[letter] for letter in letters)]


def system(left: str, right: str, whole: bool = False) -> System:
    """X'[i, j] = sum_k A[left] B[right] X[j, i] - X[i, j]; whole: A holds whole numbers."""
    a, b = element("A", left), element("B", right)
    params = (Param(a.base, 1, S.Integers if whole else REAL, "left"), Param(b.base, 1.0, REAL, "right"))
    rhs = over(Sum, a * b, (k, N)) * X[j, i] - X[i, j]
    return System("test.product", SOURCE, {i: N, j: N}, {X[i, j]: rhs}, params, {X[i, j]: 1.0 + i - 0.5 * j}, sizes={N: n}, span=(0.0, 0.5))


def numbers(left: str, right: str, whole: bool) -> tuple[dict[str, Any], np.ndarray]:
    rng = np.random.default_rng(len(left) + 7 * len(right))
    a = rng.integers(-3, 4, (n,) * len(left)) if whole else rng.normal(size=(n,) * len(left))
    return {"A": a, "B": rng.normal(size=(n,) * len(right))}, rng.normal(size=(n, n))


def expected(left: str, right: str, params: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """The right-hand side by einsum; a factor without i or j is the same for all of them."""
    letters = "".join(letter for letter in "ij" if letter in left + right)
    total = np.einsum(f"{left},{right}->{letters}", params["A"].astype(float), params["B"])
    total = np.broadcast_to(total[:, None] if letters == "i" else total, (n, n))
    return total * x.T - x


@pytest.mark.parametrize("whole", [False, True], ids=["real", "whole"])
def test_every_pattern(whole):
    """Whole arrays, and the text written out for lanes, have the sum that einsum has, to rounding."""
    for left, right in product(LEFT, RIGHT):
        made = system(left, right, whole)
        params, x = numbers(left, right, whole)
        want = expected(left, right, params, x)
        found = ArrayFunction(lower(made))({"N": n}, {**params, "X": x, "t": 0.0})["d_X"]
        np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-13, err_msg=f"{left} {right}")
        formulas = write_out(made, lower(made), {"N": n}, {"A": params["A"]} if whole else {})
        names = {f"y{e}": value for e, value in enumerate(x.ravel())} | {"t": 0.0}
        for name, first in formulas.values.items():
            names |= {f"p{first + e}": value for e, value in enumerate(np.ravel(params[name]))}
        exec("\n".join(formulas.lines), names)
        written = np.reshape([eval(text, names) for text in formulas.outputs], (n, n))
        np.testing.assert_allclose(written, want, rtol=1e-13, atol=1e-13, err_msg=f"{left} {right}")


@pytest.mark.slow
def test_compiled():
    """numba's own types: repeated indices and whole numbers in one right-hand side."""
    a, b, c = element("A", "kik"), element("B", "jk"), element("C", "ik")
    params = (Param(a.base, 1.0, REAL, "real"), Param(b.base, 1, S.Integers, "whole"), Param(c.base, 1, S.Integers, "whole"))
    rhs = over(Sum, a * b, (k, N)) + over(Sum, c * X[k, j], (k, N)) - X[i, j]
    made = System("test.both", SOURCE, {i: N, j: N}, {X[i, j]: rhs}, params, {X[i, j]: 1.0 + i - 0.5 * j}, sizes={N: n}, span=(0.0, 0.5))
    rng = np.random.default_rng(5)
    values = {"A": rng.normal(size=(n, n, n)), "B": rng.integers(-2, 3, (n, n)), "C": rng.integers(-2, 3, (n, n))}
    run: dict[str, Any] = {"params": values, "save": 2, "method": "rk4", "step": 0.25}
    want = odesim.integrate(made, backend="numpy", **run).y["X"]
    np.testing.assert_allclose(odesim.integrate(made, **run).y["X"], want, rtol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True], ids=["real", "whole"])
def test_lanes(whole):
    """Stiff steps and lanes agree with numpy; a strict member is the strict run, bit for bit."""
    left, right = ("ik", "kj") if whole else ("kik", "jk")
    made, (params, _) = system(left, right, whole), numbers(left, right, whole)
    run: dict[str, Any] = {"params": params, "save": 2, "rtol": 1e-9, "atol": 1e-11}
    want = odesim.integrate(made, backend="numpy", method="dop853", **run).y["X"][-1]
    start = np.stack([1.0 + np.subtract.outer(np.arange(n), 0.5 * np.arange(n))] * 2)
    for method in ("tsit5", "rodas5p"):
        strict = odesim.integrate(made, method=method, strict=True, **run).y["X"][-1]
        np.testing.assert_allclose(strict, want, rtol=1e-7)  # a hundred tolerances
        members = odesim.ensemble(made, method=method, strict=True, initial={"X": start}, **{**run, "save": None})
        np.testing.assert_array_equal(members.X.values[1, -1], strict)


def test_large_whole_numbers():
    """A product of whole numbers beyond int64 is the product of real ones."""
    a = IndexedBase("A", shape=(N, N))
    rhs = over(Sum, a[i, k] * a[j, k], (k, N)) - X[i, j]
    made = System("test.squares", SOURCE, {i: N, j: N}, {X[i, j]: rhs}, (Param(a, 1, S.Integers, "whole"),), {X[i, j]: 0.0}, sizes={N: n})
    values = np.full((n, n), 2**40)
    found = ArrayFunction(lower(made))({"N": n}, {"A": values, "X": np.zeros((n, n)), "t": 0.0})["d_X"]
    np.testing.assert_array_equal(found, np.full((n, n), 3.0 * 2.0**80))
    formulas = write_out(made, lower(made), {"N": n}, {"A": values})
    names: dict[str, Any] = {f"y{e}": 0.0 for e in range(n * n)} | {"t": 0.0}
    exec("\n".join(formulas.lines), names)
    assert [eval(text, names) for text in formulas.outputs] == [3.0 * 2.0**80] * n**2


PATTERNS = (
    *("sik,skj->sij", "il,slj->sij", "siw,slw->il", "ki,k->i", "sik,sk->si", "ik,kj,jl->il", "sik,kl,slj->ij", "ik,jk->ij", "ki,kj->ji"),
    *("abk,ck->abc", "kab,kc->abc", "akb,ck->cab", "ab,cb,db->acd", "ijk,ijk->i", "isk,k->is", "kij,k->ij", "sk,sk->s", "abkl,klc->abc"),
    *("ablk,klc->cab", "sabk,skc->sabc", "ik,jk,k->ij", "ij,ij,jk->ik", "hik,hjk,hjc->ic", "a,b->ab", "ak,b,k->ab"),
)
"""Contractions as einsum writes them: many products, products of three, sums over several indices, vectors, turned matrices."""
LENGTHS = dict(zip("sihabcdjklw", (3, 11, 2, 5, 4, 6, 7, 12, 13, 10, 9), strict=True))


def contractions(patterns: Sequence[str]) -> tuple[System, dict[str, Any]]:
    """One System with a state for each pattern, whose rate is that contraction of parameters; and their numbers."""
    rng = np.random.default_rng(3)
    extent = {letter: sizes(letter.upper() * 2)[0] for letter in LENGTHS}
    loops = {letter: index(letter)[0] for letter in LENGTHS}
    equations: dict[Any, Any] = {}
    params, values = [], {}
    for n, pattern in enumerate(patterns):
        inputs, out = pattern.split("->")
        rate: Any = 1
        for m, letters in enumerate(inputs.split(",")):
            base = IndexedBase(f"A{n}n{m}", shape=tuple(extent[x] for x in letters))
            rate *= base[tuple(loops[x] for x in letters)]
            params.append(Param(base, 1.0, REAL, "a factor"))
            values[f"A{n}n{m}"] = rng.normal(size=[LENGTHS[x] for x in letters])
        summed = [x for x in dict.fromkeys(inputs.replace(",", "")) if x not in out]
        state = IndexedBase(f"y{n}n", shape=tuple(extent[x] for x in out))
        total = over(Sum, rate, *((loops[x], extent[x]) for x in summed)) if summed else rate
        equations[state[tuple(loops[x] for x in out)]] = total
    axes = {loops[x]: extent[x] for x in LENGTHS}
    made = System("test.contractions", SOURCE, axes, equations, tuple(params), {key: 0.0 for key in equations})
    return made, values


CASES = [(PATTERNS[:7], "float64", False), *((PATTERNS, dtype, strict) for dtype in ("float64", "float32") for strict in (False, True))]


@pytest.mark.parametrize(("patterns", "dtype", "strict"), [CASES[0], *(pytest.param(*c, marks=pytest.mark.slow) for c in CASES[1:])])
def test_every_contraction(patterns: Sequence[str], dtype: str, strict: bool) -> None:
    """numba and whole arrays have the sums of einsum, to the rounding of sums in any order."""
    system, values = contractions(patterns)
    lengths = {letter.upper() * 2: n for letter, n in LENGTHS.items()}
    bound = compile_system(system, dtype=dtype, strict=strict).bind(lengths, values)
    y, out = np.zeros((2, bound.layout.size), dtype)
    bound(0.0, y, out)
    arrays = ArrayFunction(lower(system))(lengths, {**values, **bound.layout.split(y), "t": 0.0})
    for n, (pattern, rates) in enumerate(zip(patterns, bound.layout.split(out).values(), strict=True)):
        factors = [values[f"A{n}n{m}"] for m in range(pattern.count(",") + 1)]
        want, most = (np.einsum(pattern, *f, optimize=True) for f in (factors, [np.abs(f) for f in factors]))
        terms = np.prod([LENGTHS[x] for x in set(pattern) & set(LENGTHS)])
        for found, eps in ((rates, np.finfo(dtype).eps), (arrays[f"d_y{n}n"], np.finfo(float).eps)):
            assert np.all(np.abs(found - want) <= terms * eps * most), pattern


def test_products_are_calls_of_blas() -> None:
    """The sums of a flow of matrices are calls of a product; those of several indices add products up."""
    system, _ = contractions(PATTERNS)
    text = compile_system(system).source
    assert text.count("blas_product(gemm_") >= 20 and re.search(r"blas_product\(gemm_, .*, [a-z]+\)\n", text)


@pytest.mark.parametrize("strict", [False, True])
def test_a_product_is_compiled_once(strict: bool) -> None:
    """However its matrices lie, and whether their steps are known or not."""
    system, _ = contractions(["ab,bc->ac", "ab,cb->ac", "ba,bc->ac", "ba,cb->ca"])
    text = module_text(system, lower(system), dtype="float64", strict=strict).source
    written = write_module(load_module(text, "once"), text, ["stage"])
    assert text.count("product(") >= 4 and len(re.findall(r"define .*@.?product\.", written)) == 1
