"""Renaming changes nothing: random Systems with other letters and orders of axes give the numbers of plain loops, on every backend."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from sympy import Sum

import odesim
from odesim.symbolic import IndexedBase, System, grad, gradient_flow, index, over
from tests.support.matrix import slow_but
from tests.support.written import (
    ARRAYS,
    BOUNDARY,
    SIZES,
    SYMBOLS,
    Draw,
    Index,
    Loops,
    Node,
    Writer,
    turned_numbers,
    written_system,
)

Equations = dict[str, tuple[list[Index], Node]]
STATES = "AxuBG"


def drawn(seed: int, depth: int) -> tuple[Draw, Equations]:
    """Right-hand sides of some states."""
    draw, equations = Draw(seed, depth), Equations()
    for name in STATES:
        if name == "A" or draw.rng.random() < 0.5:
            indices = [draw.index(axis) for axis in ARRAYS[name]]
            node = draw.node(indices, depth)
            equations[name] = indices, ("sum", ("sum", node, draw.turned(node)), draw.node(indices, depth))
    return draw, equations


def by_loops(draw: Draw, equations: Equations, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """{state: its right-hand side}."""
    loops = Loops(values, draw.layers)
    return {
        name: np.array([loops(node, dict(zip(indices, at, strict=True))) for at in np.ndindex(values[name].shape)]).reshape(
            values[name].shape
        )
        for name, (indices, node) in equations.items()
    }


def written(draw: Draw, equations: Equations, turns: Mapping[str, tuple[int, ...]]) -> System:
    """The System with letters drawn anew and axes in these orders."""
    writer, axes, sides = Writer(draw.rng, draw.layers, turns), dict[Any, Any](), dict[Any, Any]()
    for name, (indices, node) in equations.items():
        letters = dict[Index, Any]()
        for i in indices:
            others = {s.name for s, size in axes.items() if size != SYMBOLS[i.axis]}
            letters[i] = writer.letter(i, {s.name for s in letters.values()} | others)
            axes[letters[i]] = SYMBOLS[i.axis]
        sides[writer.base(name)[writer.turned(name, [letters[i] for i in indices])]] = writer(node, letters)
    return written_system(writer, sides, axes)


def rates(system: System, values: Mapping[str, Any], **how: Any) -> dict[str, np.ndarray]:
    """The right-hand side, from a step of length 1."""
    initial = {name: values[name] for name in system.states}
    params = {p.name: values[p.name] for p in system.params}
    run = odesim.integrate(system, method="euler", step=1.0, span=(0, 1), save=2, initial=initial, params=params, sizes=SIZES, **how)
    return {name: run.y[name][-1] - initial[name] for name in initial}


def check(seed: int, depth: int, **how: Any) -> None:
    draw, equations = drawn(seed, depth)
    values = draw.numbers()
    want = by_loops(draw, equations, values)
    for turned in (False, True):
        turns = draw.turns(turned)
        found = rates(written(draw, equations, turns), turned_numbers(values, turns), **how)
        for name, rows in turned_numbers(want, turns).items():
            np.testing.assert_allclose(found[name], rows.real, rtol=1e-11, atol=1e-12 * (1 + np.abs(rows).max()))  # rounding of sums


FOUND = (32, 39, 70, 86)
"""Seeds that found a partial sum at swapped indices in the place of another, or a limit that meant an index inside its sum."""


@pytest.mark.parametrize("seed", slow_but([*FOUND, *range(30)], [*FOUND[:2], 1]))
def test_renaming_changes_nothing(seed: int) -> None:
    """On whole arrays."""
    check(seed, 3, backend="numpy")


@pytest.mark.parametrize(
    ("seed", "strict"), slow_but([(s, strict) for s in (12, 4, 7, 39) for strict in (False, True)], [(12, True)], several=True)
)
def test_renaming_changes_nothing_in_compiled_code(seed: int, strict: bool) -> None:
    """As it is compiled, in strict mode too."""
    check(seed, 2, strict=strict)


# -- gradients


def letters_of(draw: Draw, name: str, axes: dict[Any, Any]) -> list[Any]:
    """An index for each axis of an array, none of which has another extent elsewhere."""
    found = list[Any]()
    for axis in ARRAYS[name]:
        names = draw.rng.permutation(["i", "j", "k", "i_1", "j_1", "p", "p_1", "a", "b", "j_b1"])
        fit = (i for i in (index(str(n))[0] for n in names) if i not in found and axes.get(i, SYMBOLS[axis]) == SYMBOLS[axis])
        found.append(next(fit))
        axes[found[-1]] = SYMBOLS[axis]
    return found


def moved(way: str, g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The gradient g at x in a metric, whose sets are rows."""
    along = (x * g).sum(-1, keepdims=True)
    if way == "sphere":
        return g - along * x / (x * x).sum(-1, keepdims=True)  # type: ignore[no-any-return]
    return x * (g - along / x.sum(-1, keepdims=True)) if way == "simplex" else g


def slope(draw: Draw, node: Node, values: Mapping[str, Any], name: str) -> np.ndarray:
    """The derivative of a number by each entry of an array: steps of 1e-30 along the imaginary axis, exact to rounding."""
    g = np.empty(values[name].shape)
    for at in np.ndindex(g.shape):
        step = np.zeros(g.shape, complex)
        step[at] = 1e-30j
        g[at] = complex(Loops({**values, name: values[name] + step}, draw.layers)(node, {})).imag / 1e-30
    return g


def check_gradient(seed: int) -> None:
    draw = Draw(seed, 3)
    i, j = draw.index("N"), draw.index(draw.pick("NM"))
    node = ("over", i, None, ("over", j, None, draw.node([i, j], 3)))
    values = draw.numbers()
    slopes = {name: slope(draw, node, values, name) for name in STATES}
    slopes = {name: g for name, g in slopes.items() if g.any()}
    ways = {name: draw.pick(("euclidean", "sphere", "simplex")) for name in slopes}
    for turned in (False, True) if slopes else ():
        turns = draw.turns(turned)
        writer, axes = Writer(draw.rng, draw.layers, turns), dict[Any, Any]()
        loss, numbers = writer(node, {}), turned_numbers(values, turns)
        places = {name: writer.turned(name, letters_of(draw, name, axes)) for name in slopes}
        keys = {name: writer.base(name)[place] for name, place in places.items()}
        metric = {keys[name]: way for name, way in ways.items()}
        sides = dict(gradient_flow(loss, dict.fromkeys(keys.values(), -1), metric=metric, boundary=BOUNDARY))
        want = {name: moved(ways[name], g, numbers[name]) for name, g in turned_numbers(slopes, turns).items()}
        for name, key in keys.items():
            if len(places[name]) > 1:  # the sum over a row
                *row, k = places[name]
                total = IndexedBase(f"row_{name}", shape=key.base.shape[:-1])[tuple(row)]
                sides[total] = over(Sum, key * grad(loss, key, boundary=BOUNDARY), (k, key.base.shape[-1]))
                want[f"row_{name}"] = (numbers[name] * turned_numbers(slopes, turns)[name]).sum(-1)
                numbers[f"row_{name}"] = np.zeros_like(want[f"row_{name}"])
        found = rates(written_system(writer, sides, axes), numbers, backend="numpy")
        for name, rows in want.items():
            np.testing.assert_allclose(found[name], rows, rtol=1e-10, atol=1e-11 * (1 + np.abs(rows).max()))


@pytest.mark.parametrize("seed", slow_but(range(100), [5, 45]))
def test_gradients_by_any_letters(seed: int) -> None:
    """Those of random losses in every metric, and sums over them, by the elements of arrays with any letters and axes in any order."""
    check_gradient(seed)
