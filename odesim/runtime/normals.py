"""Standard normal numbers by counter: Philox4x32-10 and the method of Box and Muller, without branches or tables.

The same arithmetic in a lane, a scalar and (later) a thread of a GPU: the bits of a number depend on what it is for and on nothing else.
Key = the seed. Counter, 128 bits = what the number is for:
    word 0   node, low 32 bits                                   node: half the number of a step, or of its parent in the tree of halves
    word 1   node, high 20 bits | level << 20 | kind << 26       level: of the tree. kind: 0 the increment, 1 the integral of the path
    word 2   member, low 32 bits
    word 3   channel | member, high 12 bits << 20
For one key Philox is a permutation of its counters: two draws of a run never share a block, by proof. The seed stands alone in the key,
because a channel added to it would make seed 1, channel 1 of seed 2, channel 0. One block is two numbers, for two steps of one channel, so
that no channel waits for a partner. A ziggurat was slower in lanes: its tables are gathers there, its rejections diverge.

A step of length d carries two independent numbers: dB = sqrt(d) xi0 and, for its integral, (d/2)(dB - sqrt(d/3) xi1), the first two
Legendre coefficients of white noise. Its halves' four numbers are a rotation of these two and two new ones, so step and halves have the
same B and the same integral of B: schemes of any order and steps of any halving see one path, and level 0 is the ensemble's own.
"""

from math import sqrt

from odesim.runtime.circular import COS, HALF_PI, SIN
from odesim.runtime.elementary import LN2, LOG, MANTISSA, ONE, SQRT_HALF, TWO_52, inlined
from odesim.runtime.intrinsics import bits, fma, from_bits, polynomial, select

M0, M1, W0, W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85  # Salmon, Moraes, Dror, Shaw 2011
LOW = 0xFFFFFFFF
INCREMENT, INTEGRAL = 0, 1
HALF, ROOT3 = sqrt(0.5), sqrt(3.0)


@inlined
def one_round(a: int, b: int, c: int, d: int, key0: int, key1: int) -> tuple[int, int, int, int]:
    """One round. Words are int64 with anything above 32 bits: a product reads the low half (one instruction), and nothing masks."""
    p, q = M0 * (a & LOW), M1 * (c & LOW)
    return (q >> 32) ^ b ^ key0, q, (p >> 32) ^ d ^ key1, p


@inlined
def philox(a: int, b: int, c: int, d: int, key0: int, key1: int) -> tuple[int, int, int, int]:
    """Four words of 32 bits, anything above them, for a counter of four and a key of two."""
    a, b, c, d = one_round(a, b, c, d, key0, key1)
    a, b, c, d = one_round(a, b, c, d, key0 + W0, key1 + W1)
    a, b, c, d = one_round(a, b, c, d, key0 + 2 * W0, key1 + 2 * W1)
    a, b, c, d = one_round(a, b, c, d, key0 + 3 * W0, key1 + 3 * W1)
    a, b, c, d = one_round(a, b, c, d, key0 + 4 * W0, key1 + 4 * W1)
    a, b, c, d = one_round(a, b, c, d, key0 + 5 * W0, key1 + 5 * W1)
    a, b, c, d = one_round(a, b, c, d, key0 + 6 * W0, key1 + 6 * W1)
    a, b, c, d = one_round(a, b, c, d, key0 + 7 * W0, key1 + 7 * W1)
    a, b, c, d = one_round(a, b, c, d, key0 + 8 * W0, key1 + 8 * W1)
    return one_round(a, b, c, d, key0 + 9 * W0, key1 + 9 * W1)


@inlined
def mantissa(high: int, low: int) -> int:
    """52 bits of two words."""
    return ((high & LOW) << 20) | ((low & LOW) >> 12)


@inlined
def uniform(m: int) -> float:
    """A number in (0, 1), never an end: (m + 1/2)/2^52, exactly, for m of 52 bits."""
    return from_bits(m | ONE) - (1.0 - 2.0**-53)


@inlined
def log_of_uniform(u: float) -> float:
    """The logarithm of u in [2^-53, 1), within 2 ulp: there are no zeros, infinities and subnormals to care for."""
    i = bits(u) + (ONE - SQRT_HALF)
    k = from_bits((i >> 52) | TWO_52) - (2.0**52 + 1023.0)
    f = from_bits((i & MANTISSA) + SQRT_HALF) - 1.0
    s = f / (2.0 + f)
    z = s * s
    return fma(k, LN2, s * fma(z, polynomial(z, LOG), 2.0))


@inlined
def sine_and_cosine(m: int) -> tuple[float, float]:
    """Those of a uniform angle from 52 bits: two choose the quarter, fifty the place in it."""
    r = (from_bits(((m << 2) & MANTISSA) | ONE) - (1.5 - 2.0**-51)) * HALF_PI
    z = r * r
    s = fma(z * r, polynomial(z, SIN), r)
    c = fma(z, fma(z, polynomial(z, COS), -0.5), 1.0)
    odd = (m & (1 << 50)) != 0
    flip = (m & (1 << 51)) << 12
    return from_bits(bits(select(odd, c, s)) ^ flip), from_bits(bits(select(odd, -s, c)) ^ flip)


@inlined
def random_bits(key0: int, key1: int, member: int, channel: int, kind: int, level: int, node: int) -> tuple[float, float]:
    """A block as two float64 whose low 52 bits are random, as lanes keep them."""
    a, b, c, d = philox(node, (node >> 32) | (level << 20) | (kind << 26), member, channel | ((member >> 32) << 20), key0, key1)
    return from_bits(mantissa(a, b)), from_bits(mantissa(c, d))


@inlined
def pair_of_bits(x: float, y: float) -> tuple[float, float]:
    """Two independent standard normal numbers of random_bits, at most 8.57 in size."""
    radius = sqrt(-2.0 * log_of_uniform(uniform(bits(x))))
    sine, cosine = sine_and_cosine(bits(y))
    return radius * cosine, radius * sine


@inlined
def normal_pair(key0: int, key1: int, member: int, channel: int, kind: int, level: int, node: int) -> tuple[float, float]:
    """The two normal numbers of a block."""
    x, y = random_bits(key0, key1, member, channel, kind, level, node)
    return pair_of_bits(x, y)


@inlined
def whole(x: float) -> int:
    """x, a whole number from 0 to 2^52, as an int64: a conversion that AVX2 has for no vector."""
    return bits(x + 2.0**52) & MANTISSA


@inlined
def normal_of_step(key0: int, key1: int, member: int, channel: int, kind: int, step: int) -> float:
    """The number of a step: one of the pair of its block."""
    x, y = normal_pair(key0, key1, member, channel, kind, 0, step >> 1)
    return select((step & 1) != 0, y, x)


@inlined
def normals_of_path(key0: int, key1: int, member: int, channel: int, step: int, halvings: int, draws: int) -> tuple[float, float]:
    """xi0, xi1 of a step that is one of 2^halvings parts of a step of the path; xi1 = 0 where one of draws = 1 is enough."""
    # one place that draws: this is scalar code, and compiles three times as fast as with three
    x, z, root = 0.0, 0.0, step >> halvings
    for level in range(0 if draws == 1 and halvings == 0 else -1, halvings + 1):
        node = root if level < 1 else step >> (halvings - level)
        kind = INTEGRAL if level < 0 else INCREMENT
        a, b = normal_pair(key0, key1, member, channel, kind, 0 if level < 0 else level, node >> 1)
        odd = (node & 1) != 0
        if level < 0:
            z = b if odd else a
        elif level == 0:
            x = b if odd else a
        else:
            side = 0.5 if odd else -0.5
            x, z = HALF * (x + side * (ROOT3 * z - b)), HALF * (0.5 * (z + ROOT3 * b) - 2.0 * side * a)
    return x, z
