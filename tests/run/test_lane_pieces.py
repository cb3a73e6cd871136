"""Laws of a loop over lanes cut into pieces: what it computes is what one loop computes."""

from typing import Any

import numpy as np
import pytest

from odesim.base.arrays import Array
from odesim.run.lane_pieces import in_pieces, pieces_of

WIDTH, PLACES, BETWEEN = 3, 4, 12


def program(rng: np.random.Generator) -> list[str]:
    """Straight lines: loads, stores, sums, truths, right-hand sides, names that are set again; then stores of all names."""
    names, truths, lines = ["t"], ["v"], [f"t = S[{3 * WIDTH} + l]", "v = t > 0.0"]
    for k in range(30):
        a, b = rng.choice(names, 2)
        new = str(rng.choice([f"x{k}", a]))
        lines.append(
            str(
                rng.choice(
                    [
                        f"x{k} = S[{rng.integers(1, PLACES) * WIDTH} + l]",
                        f"{new} = {a} - 2.0 * {b}",
                        f"{a} += {b}",
                        f"{new} = {a} if {rng.choice(truths)} else {b}",
                        f"{new}, = right({a})",
                        f"v{k} = {a} < {b}",
                        f"S[{rng.integers(1, PLACES) * WIDTH} + l] = {a}",
                    ]
                )
            )
        )
        set_now = lines[-1].replace(",", " ").split()[0]
        if set_now.startswith("S["):
            continue
        (truths if set_now.startswith("v") else names).append(set_now)
    lines.append("count += 1 if v else 0")
    return lines + [f"out[{i}, l] = {name}" for i, name in enumerate(dict.fromkeys(names))]


def results(loops: list[list[str]]) -> tuple[Array, int]:
    """What loops over lanes write, and what they count."""
    memory = np.random.default_rng(0).normal(size=WIDTH * (PLACES + BETWEEN + 40))
    there: dict[str, Any] = {"S": memory, "out": np.zeros((40, WIDTH)), "count": 0, "right": lambda x: (0.5 * x + 1.0,)}
    for lines in loops:
        exec("\n".join([f"for l in range({WIDTH}):", *(f"    {line}" for line in lines)]), there)
    return there["out"], there["count"]


@pytest.mark.parametrize("seed", range(40))
def test_pieces_are_one_loop(seed: int) -> None:
    """Pieces of any straight lines write what one loop writes, whatever the first ones leave in memory."""
    lines = program(np.random.default_rng(seed))
    pieces = in_pieces(lines, {f"v{k}" for k in range(30)} | {"v"}, range(PLACES, PLACES + BETWEEN + 40), WIDTH)
    assert len(pieces) == 1 + sum("right(" in line for line in lines) == len(pieces_of(lines))
    (values, count), (one, of_one) = results(pieces), results([lines])
    assert np.array_equal(values, one) and count == of_one


def test_memory_is_for_what_is_read_later() -> None:
    """A number that no later piece reads before it sets it is not stored, and what a line only loads is loaded again."""
    lines = ["a = S[3 + l]", "z = a + 1.0", "k, = right(z)", "z = a + k", "q, = right(z)", "S[l] = z + q"]
    rows = range(5, 9)
    assert in_pieces(lines, (), rows, 3) == [
        [*lines[:3], "S[21 + l] = k"],
        ["a = S[3 + l]", "k = S[21 + l]", *lines[3:5], "S[15 + l] = q", "S[18 + l] = z"],
        ["q = S[15 + l]", "z = S[18 + l]", *lines[5:]],
    ]
