"""Powers of error norms in arithmetic that gives the same bits on every machine, inlined wherever they are called."""

import numpy as np

from odesim.runtime.functions import njit
from odesim.runtime.intrinsics import bits, fma, from_bits

# fastmath is said: what says nothing takes over that of whoever calls it first
inlined = njit(fastmath=False, forceinline=True)

MAGIC = 6755399441056767.0  # 1.5 2^52 + 1023: adding it rounds to an integer n and leaves n + 1023 in the low bits


@inlined
def log2(x: float) -> float:
    """log2(x) for normal x > 0 to about 1.3e-5: the C library's differs from machine to machine. Minimax on [1, 2)."""
    exponent = np.float64((bits(x) >> 52) - 1023)
    u = from_bits((bits(x) & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000) - 1.5
    low, middle = fma(u, 0.96183967, 0.58495049), fma(u, 0.14142303, -0.3197489)
    return exponent + fma(u * u, fma(u * u, fma(u, 0.04487313, -0.08001169), middle), low)


@inlined
def exp2(x: float) -> float:
    """2^x to about 1e-7, x held within [-1000, 1000]. Minimax on [-1/2, 1/2]."""
    x = x if x < 1000.0 else 1000.0
    x = x if x > -1000.0 else -1000.0
    z = x + MAGIC
    u = x - (z - MAGIC)
    low, middle = fma(u, 0.69314697, 1.00000007), fma(u, 0.05550713, 0.2402212)
    return from_bits(bits(z) << 52) * fma(u * u, fma(u * u, fma(u, 0.00132765, 0.00967554), middle), low)


@inlined
def power(x: float, exponent: float) -> float:
    """x^exponent for normal x > 0 to about 1e-5."""
    return exp2(exponent * log2(x))
