# ruff: noqa: F821
# mypy: disable-error-code="name-defined"
"""What the driver of one system calls for noise: the normal numbers of a step, and the rates that a stage sees. Compiled with it.

`at` is a pointer to the run's table, in which NOISE is the address of another (NOISE in table.py), whose places are in the text too.
"""

from typing import Any

from odesim.runtime.intrinsics import doubles, ints
from odesim.runtime.normals import normals_of_path
from odesim.stepper.operations import helper


@helper
def draw(at: Any, steps: float) -> None:
    """Draws the numbers of all channels for the step after so many."""
    noise = ints(at[NOISE])
    xi, count, step = doubles(noise[XI]), noise[CHANNELS], int(steps)
    for c in range(count):
        numbers = normals_of_path(noise[KEY0], noise[KEY1], noise[MEMBER], c, step, noise[HALVINGS], noise[DRAWS])
        xi[c], xi[count + c] = numbers


@helper
def shake(at: Any, s: int, root: float, used: float) -> None:
    """Sets the rates that stage s of a step of length `used` sees; root: 1/sqrt(used)."""
    noise = ints(at[NOISE])
    arrays = ints(noise[RATES])
    xi, weights, count, c = doubles(noise[XI]), doubles(noise[WEIGHTS]), noise[CHANNELS], 0
    a, b, d, q, r = weights[5 * s], weights[5 * s + 1], weights[5 * s + 2], weights[5 * s + 3], weights[5 * s + 4]
    for k in range(noise[ARRAYS]):
        rates = doubles(arrays[2 * k])
        for i in range(arrays[2 * k + 1]):
            x = xi[c]
            linear = a * x + b * xi[count + c]
            if d != 0.0 or q != 0.0 or r != 0.0:
                linear += d + q * (x * x - 1.0) / 2.0 + r * x * (x * x - 3.0) / 6.0
            rates[i] = root * linear if noise[DRAWS] > 1 else root * x
            c += 1
    if noise[LENGTH] != 0:
        doubles(noise[LENGTH])[0] = used
