"""Laws of generated code and of derivatives, over all models."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from odesim.display.document import latex_document
from odesim.inputs.bind import Numbers, bind
from odesim.inputs.registry import list_models, load_model
from odesim.ir.adjoint import lower_vjp
from odesim.ir.derive import jvp
from odesim.run.problem import make_problem
from odesim.symbolic import System, sensitivities
from odesim.targets.compiled import compile_system
from odesim.targets.numpy_text import ArrayFunction
from odesim.transforms.sensitivity import names_that_matter
from tests.support.matrix import in_turn, slow_but
from tests.support.models import CHEAPEST_FIRST, COMPILED, MAPS

EACH = pytest.mark.parametrize("name", CHEAPEST_FIRST)


def near_start(system: System, seed: int = 0) -> tuple[System, Numbers, np.ndarray]:
    """A System with its default numbers, and a state a little off its initial one: every term counts, no domain is left. No events."""
    system = replace(system, events=())
    numbers = bind(system)
    problem = make_problem(compile_system(system, backend="numpy"), numbers)
    return system, numbers, problem.y0 + np.random.default_rng(seed).uniform(0.05, 0.3, problem.y0.size)


def right_side(system: System, numbers: Numbers) -> Any:
    """f(y (n,)) -> (n,), on whole arrays."""
    rhs = compile_system(system, backend="numpy")
    where = rhs.layout(numbers.sizes)

    def f(y: np.ndarray) -> np.ndarray:
        made = rhs.arrays(numbers.sizes, {**numbers.params, **where.split(y), "t": 0.5})
        return where.join({n: made[f"d_{n}"] for n in where.names})

    return f


FORMS: dict[str, Callable[[System], System]] = {"rhs": lambda s: s, "jvp": jvp, "sensitivities": lambda s: sensitivities(s, simplest(s))}
DEFAULT = {(name, "rhs") for name in COMPILED} | {("reversal.row", "jvp")}
DERIVED = in_turn(list_models()[::3], ("jvp", "sensitivities"))  # test_jvp_and_vjp has all models, on arrays
CASES = slow_but(sorted({*product(list_models(), ["rhs"]), *DERIVED, *DEFAULT}), DEFAULT, several=True)


def simplest(system: System) -> str:
    """The parameter with the fewest axes that one can differentiate by."""
    return min((p for p in system.params if not p.integer and p.name in names_that_matter(system)), key=lambda p: len(p.shape)).name


@pytest.mark.first(2)
@pytest.mark.parametrize(("name", "form"), CASES)
def test_numba_is_the_array_truth(name, form):
    """The compiled right-hand side at a state where nothing vanishes: only rounding differs, and a second call, or one on
    memory of its own, gives the same bits."""
    system, numbers, y = near_start(FORMS[form](load_model(name)))
    want = right_side(system, numbers)(y)
    compiled, got = compile_system(system), np.full((3, y.size), np.nan)
    bounds = [make_problem(compiled, numbers).rhs for _ in range(2)]
    for bound, out in zip([bounds[0], bounds[0], bounds[1]], got, strict=True):
        bound(0.5, y, out)
    np.testing.assert_allclose(got[0], want, rtol=1e-11, atol=1e-13 * np.abs(want).max())
    assert got[0].tobytes() == got[1].tobytes() == got[2].tobytes()


@pytest.mark.first(3)
@pytest.mark.parametrize("name", [name for name in CHEAPEST_FIRST if name not in MAPS] + list(MAPS))
def test_jvp_and_vjp(name):
    """J w against central differences (step 1e-6: 1e-10 from rounding), and <u, J w> = <J^T u, w> to rounding."""
    system, numbers, y = near_start(load_model(name))
    f, rng = right_side(system, numbers), np.random.default_rng(1)
    u, w = rng.normal(size=(2, y.size))
    where = compile_system(system, backend="numpy").layout(numbers.sizes)
    values = {**numbers.params, **where.split(y), "t": 0.5}
    ways = {f"w_{n}": a for n, a in where.split(w).items()}
    tangent = compile_system(jvp(system), backend="numpy").arrays(numbers.sizes, {**values, **ways})
    product = where.join({n: tangent[f"d_w_{n}"] for n in where.names})
    differences = (f(y + 1e-6 * w) - f(y - 1e-6 * w)) / 2e-6
    np.testing.assert_allclose(product, differences, rtol=1e-6, atol=1e-7 * np.abs(differences).max())
    back = ArrayFunction(lower_vjp(system))(numbers.sizes, {**values, **{f"u_{n}": a for n, a in where.split(u).items()}})
    transposed = where.join({n: back[f"d_u_{n}"] for n in where.names})
    assert u @ product == pytest.approx(transposed @ w, rel=1e-10, abs=1e-11 * np.abs(u) @ np.abs(product))


@pytest.mark.first(10)
@EACH
def test_latex_is_balanced(name):
    text = latex_document(load_model(name))
    assert text.count("{") == text.count("}") and text.count(r"\left") - text.count(r"\leftarrow") == text.count(r"\right")
    assert text.count(r"\begin") == text.count(r"\end") and "Max" not in text
