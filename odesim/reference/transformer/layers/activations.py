"""Activation functions with their derivatives."""

import math
from collections.abc import Callable

from odesim.base.arrays import Array, array_namespace
from odesim.lab.networks import device
from odesim.lab.networks.layers import slabs

Activation = Callable[[Array], tuple[Array, Array]]  # x -> (y, slope), all of one shape; x is not changed

# 1 - Phi(x) = exp(-x^2 / 2) * A(x) / B(x) for x >= 0: algorithm 5666 of Hart et al., Computer Approximations (1968),
# as given by West, Better approximations to cumulative normal functions, Wilmott Magazine (2005); highest power first
HART_A = (
    0.0352624965998911,
    0.700383064443688,
    6.37396220353165,
    33.912866078383,
    112.079291497871,
    221.213596169931,
    220.206867912376,
)
HART_B = (
    0.0883883476483184,
    1.75566716318264,
    16.064177579207,
    86.7807322029461,
    296.564248779674,
    637.333633378831,
    793.826512519948,
    440.413735824752,
)
# 1 - Phi(x) = phi(x) (b1 t + ... + b5 t^5), t = 1 / (1 + 0.2316419 x): Abramowitz and Stegun 26.2.17, within 7.5e-8,
# which is a rounding of float32; b5 first
STEGUN = (1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530)
STEGUN_P = 0.2316419


def _horner(x: Array, coefficients: tuple[float, ...], out: Array) -> Array:
    """The polynomial with these coefficients, highest power first, at x; written to out."""
    xp = array_namespace(x)
    xp.multiply(x, coefficients[0], out=out)
    for c in coefficients[1:-1]:
        out += c
        out *= x
    out += coefficients[-1]
    return out


def _tail(a: Array, bell: Array) -> Array:
    """1 - Phi(a) for a >= 0, in the shape of a. bell: exp(-a^2 / 2)."""
    xp = array_namespace(a)
    out, other = xp.empty_like(a), xp.empty_like(a)
    if a.dtype.itemsize > 4:
        _horner(a, HART_A, out)
        out /= _horner(a, HART_B, other)
    else:
        t = xp.multiply(a, STEGUN_P, out=other)
        t += 1.0
        xp.divide(1.0, t, out=t)
        _horner(t, STEGUN, out)
        out *= t
        out *= 1.0 / math.sqrt(2.0 * math.pi)
    out *= bell
    return out


def gelu(x: Array) -> tuple[Array, Array]:
    """GELU x Phi(x) and its derivative Phi(x) + x phi(x), without the tanh approximation (Hendrycks, Gimpel 2016)."""
    if device.is_fused(x):
        return device.gelu(x)
    xp = array_namespace(x)
    y, slope = xp.empty(x.shape, x.dtype), xp.empty(x.shape, x.dtype)
    flat, flat_y, flat_slope = x.reshape(-1), y.reshape(-1), slope.reshape(-1)
    for part in slabs(flat, flat.size):
        piece = flat[part]
        a = xp.abs(piece)
        # bell is 0 from there on, and an infinite a would make the tail 0 * nan
        xp.minimum(a, 40.0, out=a)
        bell = a * a
        bell *= -0.5
        xp.exp(bell, out=bell)
        tail = _tail(a, bell)
        bell *= 1.0 / math.sqrt(2.0 * math.pi)
        bell *= a
        bell -= tail  # a phi(a) - (1 - Phi(a))
        xp.multiply(a, tail, out=a)
        xp.subtract(xp.maximum(piece, 0.0), a, out=flat_y[part])
        flat_slope[part] = xp.where(piece > 0.0, 1.0 + bell, -bell)
    return y, slope


def silu(x: Array) -> tuple[Array, Array]:
    """SiLU x s and its derivative s (1 + x (1 - s)), with s = 1 / (1 + exp(-x))."""
    xp = array_namespace(x)
    s = xp.exp(-xp.abs(x))  # never overflows
    s = xp.where(x >= 0.0, 1.0, s) / (1.0 + s)
    y = x * s
    return y, s + y * (1.0 - s)


def relu(x: Array) -> tuple[Array, Array]:
    """ReLU max(x, 0) and its derivative x > 0, as booleans."""
    return array_namespace(x).maximum(x, 0.0), x > 0.0


ACTIVATIONS: dict[str, Activation] = {"gelu": gelu, "relu": relu, "silu": silu}
