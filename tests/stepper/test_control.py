"""The rules of the step control by themselves, and that there is one text of them."""

import ast
import inspect
import itertools
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odesim
from odesim.stepper import control

ROOT = Path(odesim.__file__).parent
FUNCTIONS = {name: f for name, f in vars(control).items() if inspect.isfunction(f) and name != "weight"}  # which takes an array
OWN = "stepper/control.py"
# numbers that only the rules know: what a last step may be longer, the smallest step, when a blow-up is near, the least old error
NUMBERS = {1.01, 2.2e-15, control.SOON, abs(control.LOG2_LEAST_OLD)}
WHERE = ("stepper", "run", "targets")
SOURCES = {str(path.relative_to(ROOT)): path.read_text() for room in WHERE for path in sorted((ROOT / room).rglob("*.py"))}


def numbers_of(text: str) -> set[float]:
    """The numbers in a text, in its strings too, but for what describes."""
    tree = ast.parse(text)
    described = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in described]
    found = {float(c.value) for c in constants if isinstance(c.value, int | float)}
    strings = " ".join(c.value for c in constants if isinstance(c.value, str))
    return found | {float(word) for word in re.findall(r"(?<![\w.])\d+\.?\d*(?:e-?\d+)?", strings)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_rule_is_defined_once(name: str) -> None:
    """No other module of what integrates has a function of this name, in its text or in the text that it writes."""
    defined = [where for where, text in SOURCES.items() if re.search(rf"\bdef {name}\(", text)]
    assert defined == [OWN]


def test_numbers_of_the_rules_stand_there_only() -> None:
    """A rule that is written out elsewhere would have its numbers."""
    others = {where: numbers_of(text) & NUMBERS for where, text in SOURCES.items() if where != OWN}
    assert numbers_of(SOURCES[OWN]) >= NUMBERS and not {where: found for where, found in others.items() if found}


ROWS: dict[str, list[tuple[Any, ...]]] = {
    "trial_step": [(s, k, 10.0) for s, k in itertools.product((0.0, 1e-7, 0.3, 1e9), (0.0, 1e-6, 2.0, 1e12))],
    "uneven": [(i,) for i in (0, 1, 2, 1000, 10**6)],
    "stages_for": [(x,) for x in (0.0, 1.0, 300.5, 1e9, 1e16, float("nan"))],
    "chebyshev": [(s,) for s in (2.0, 3.0, 40.0)],
    "steepest": [(1.0, 2.0), (2.0, 1.0), (1.0, 1e301), (1.0, float("nan"))],
    "first_step": [
        (0.1, s, m, t0, 10.0, x) for s, m, t0, x in itertools.product((0.0, 1.0, 1e301), (0.05, 1.0), (0.0, -1e15), (float("inf"), 0.01))
    ],
    "step_end": [(t, h, 1.0) for t, h in itertools.product((0.0, 0.5, 0.99), (0.1, 0.5, 0.4999, 1e-20))],
    "too_small": [(t, h, t + h, 0.0) for t, h in itertools.product((0.0, 1.0, -3.0), (1e-16, 1e-15, 1e-3))],
    "runs_away": [(v, f, 1.0) for v, f in itertools.product((-1.0, 0.0, 1.0), (-1e12, -1.0, 0.0, 1.0, 1e12))],
    "pi_goal": [(s, o, f, 0.14, 0.08) for s, o, f in itertools.product((-3.0, 0.5), (-13.0, -1.0), (True, False))],
    "gustafsson": [(x, r, f) for x, r, f in itertools.product((0.5, 2.0), (0.1, 1.0), (True, False))],
    "next_step": [
        (0.1, e, f, a, 0.2, 6.0) for e, f, a in itertools.product((0.5, 2.0, float("inf"), float("nan")), (0.01, 1.5, 20.0), (True, False))
    ],
    "at_most": [(h, x) for h, x in itertools.product((0.01, 0.3, float("nan")), (float("inf"), 0.05))],
    "longest_step": [(0.3,), (1.01,)],
    "moment": [(k, 0.0, 1.0, 0.3, 4) for k in range(5)],
    "square": [(x,) for x in (-1.5, float("inf"))],
    "larger": list(itertools.product((1.0, -2.0, float("nan")), repeat=2)),
    "above_zero": [(x,) for x in (1.5, 0.0, -1.0, float("nan"))],
    "slant": [(i,) for i in range(5)],
    # two invariants, y0 + y1 = 1 and y1 - 2 y2 = value
    "move_back": [
        (np.array([2.0, 2.0, 1.0, 0.0, 1.0, 1.0, 1.0, 2.0, value, 1.0, 2.0, 1.0, -2.0]), np.array([0.3, 0.6, 0.1]))
        for value in (0.5, 0.0, float("nan"))
    ],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_rules_decide_as_python_does(name: str) -> None:
    """The bits of each rule compiled, as the loops have it, are those of Python's floats, as the Rosenbrock run has it.

    The library's powers are the same functions there; all else is sums, products and choices.
    """
    compiled = numba.njit(error_model="numpy")(FUNCTIONS[name])
    for row in ROWS[name]:
        arguments, others = deepcopy(row), deepcopy(row)  # move_back moves what it is given
        assert repr((compiled(*arguments), arguments)) == repr((FUNCTIONS[name](*others), others))


@pytest.mark.parametrize("periodic", [False, True])
def test_the_direction_has_all_frequencies_of_a_grid(periodic: bool) -> None:
    """The third product with a Laplacian of N x N cells grows as from equal parts of all modes, within a tenth: moments of the spectrum."""
    for N in range(6, 121):
        s = np.sin(np.arange(N) * np.pi / N if periodic else np.arange(1, N + 1) * np.pi / (2 * N + 2)) ** 2
        spectrum = s[:, None] + s
        v = np.array([control.slant(i) for i in range(N * N)]).reshape(N, N)
        for _ in range(3):
            before, u = v, np.pad(v, 1, mode="wrap" if periodic else "constant")
            v = v - (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) / 4
        assert np.linalg.norm(v) / np.linalg.norm(before) == pytest.approx(np.sqrt(np.sum(spectrum**6) / np.sum(spectrum**4)), rel=0.1)


ERRORS = st.one_of(st.floats(1e-14, 1e6), st.sampled_from([0.0, 1.0, float("nan"), float("inf")]))


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(ERRORS, st.floats(0.0, 1e3), st.booleans(), st.sampled_from([(0.2, 10.0), (0.2, 6.0)]), st.floats(1e-3, 10.0))
def test_a_step_is_held(error: float, factor: float, again: bool, factors: tuple[float, float], longest: float) -> None:
    """Whatever a rule says: a rejected step is followed by a shorter one, the first accepted one after it does not grow, and none is above
    the largest there is."""
    shrink, grow = factors
    most = 0.9 if not error <= 1 else 1.0 if again else grow
    following = control.at_most(control.next_step(0.7, error, factor, again, shrink, grow), longest)
    assert min(0.7 * shrink, longest) <= following <= min(0.7 * most, longest)
