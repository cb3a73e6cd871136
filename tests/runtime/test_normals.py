"""Laws of the normal numbers by counter: published vectors, moments, independence, and the tree of halves."""

import statistics
from typing import Any

import numba
import numpy as np
import pytest

from odesim.base.arrays import Array
from odesim.runtime.normals import LOW, log_of_uniform, normal_of_step, normal_pair, normals_of_path, philox, sine_and_cosine, uniform

VECTORS = (  # Random123, tests/kat_vectors: counter, key, result
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((LOW,) * 4, (LOW,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


def plain_philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Salmon, Moraes, Dror, Shaw 2011, in whole numbers of Python."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k0, q & LOW, (p >> 32) ^ d ^ k1, p & LOW
        k0, k1 = (k0 + 0x9E3779B9) & LOW, (k1 + 0xBB67AE85) & LOW
    return a, b, c, d


@numba.njit
def words(counter: Any, key: Any) -> Any:
    return philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])


@numba.njit
def of_steps(steps: int, member: int, channel: int, halvings: int) -> Array:
    out = np.empty((steps, 2))
    for i in range(steps):
        out[i] = normals_of_path(7, 9, member, channel, i, halvings, 2)
    return out


@numba.njit
def alone(steps: int, kind: int) -> Array:
    return np.array([normal_of_step(7, 9, 3, 1, kind, i) for i in range(steps)])


@numba.njit
def fill(z: Array) -> None:
    for channel in range(z.shape[0]):
        for member in range(z.shape[2]):
            z[channel, 0, member], z[channel, 1, member] = normal_pair(11, 22, member, channel, 0, 0, 5)


@numba.njit
def parts(m: int) -> tuple[float, float, float, float]:
    u = uniform(m)
    return u, log_of_uniform(u), sine_and_cosine(m)[0], sine_and_cosine(m)[1]


@pytest.mark.parametrize(("counter", "key", "result"), VECTORS)
def test_published_vectors(counter: tuple[int, ...], key: tuple[int, ...], result: tuple[int, ...]) -> None:
    """The known answers of Random123."""
    assert tuple(word & LOW for word in words(counter, key)) == plain_philox(counter, key) == result


def test_any_counter() -> None:
    """Words with anything above 32 bits are the words below."""
    rng = np.random.default_rng(1)
    for row in rng.integers(0, 2**32, (50, 6)).tolist():
        counter, key = tuple(row[:4]), tuple(row[4:])
        high = tuple(word | (5 << 40) for word in counter)
        assert tuple(word & LOW for word in words(high, key)) == plain_philox(counter, key)


def test_logarithm_sine_cosine() -> None:
    """Within 2 ulp of the values in 60 digits of mpmath, where they are not near 0."""
    import mpmath

    mpmath.mp.dps = 60
    corners = [0, 1, 2**52 - 1, 2**51, 2**51 - 1, 2**50, 3 * 2**50, 2**50 - 1]
    for m in [*corners, *np.random.default_rng(2).integers(0, 2**52, 500).tolist()]:
        u, log, sine, cosine = parts(m)
        assert u == float((mpmath.mpf(m) + mpmath.mpf(1) / 2) / 2**52) or m + 0.5 > 2**51  # above 1/2 the last bit is rounded
        assert abs(log - mpmath.log(u)) <= 2 * np.spacing(abs(log))
        # two bits choose the quarter, fifty the place in it, from -pi/4 to pi/4
        quarter, place = m >> 50, (m & (2**50 - 1)) * 4
        angle = (mpmath.mpf(place) + 2) / 2**52 * mpmath.pi / 2 - mpmath.pi / 4
        turned = angle + (quarter & 1) * mpmath.pi / 2 + (quarter >> 1) * mpmath.pi
        assert abs(cosine - mpmath.cos(turned)) < 4e-16 and abs(sine - mpmath.sin(turned)) < 4e-16


def test_moments_and_bins() -> None:
    """The law is the normal one: moments to the eighth, 1000 bins, correlations, all within 4 standard errors of 2^21 numbers."""
    z = np.empty((2, 2, 1 << 19))
    fill(z)
    x, law = z.ravel(), statistics.NormalDist()
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170), (8, 105, 2016000)):
        assert abs(np.mean(x**power) - mean) < 4 * np.sqrt(variance / x.size)
    counts = np.histogram(x, bins=[-9, *map(law.inv_cdf, np.arange(1, 1000) / 1000), 9])[0]
    chi = ((counts - x.size / 1000) ** 2).sum() / (x.size / 1000)
    assert abs(chi - 999) < 4 * np.sqrt(2 * 999)
    halves, channels, members = z[0, 0] * z[0, 1], z[0, 0] * z[1, 0], z[0, 0, 1:] * z[0, 0, :-1]
    squares = (z[0, 0] ** 2 - 1) * (z[0, 1] ** 2 - 1)
    for c in (halves, channels, members, squares):
        assert abs(c.sum()) < 4 * c.std() * np.sqrt(c.size)


@pytest.mark.parametrize("halvings", (1, 3, 6))
def test_tree(halvings: int) -> None:
    """2^k parts of a step have its increment and its integral: one path, whatever the step."""
    parts_, steps = 2**halvings, 6
    coarse, fine, d = of_steps(steps, 3, 1, 0), of_steps(steps * parts_, 3, 1, halvings), 1.0 / parts_

    def path(xi: Array, h: float) -> tuple[Array, Array]:
        increment = np.sqrt(h) * xi[:, 0]
        return increment, h / 2 * (increment - np.sqrt(h / 3) * xi[:, 1])

    (whole, whole_integral), (part, part_integral) = path(coarse, 1.0), path(fine, d)
    rows = part.reshape(steps, parts_)
    before = np.cumsum(rows, axis=1) - rows
    np.testing.assert_allclose(rows.sum(axis=1), whole, atol=1e-14)  # rounding
    np.testing.assert_allclose((part_integral.reshape(steps, parts_) + d * before).sum(axis=1), whole_integral, atol=1e-14)


def test_level_0_is_the_path_of_an_ensemble() -> None:
    """A scalar draws what lanes draw, of both kinds."""
    xi = of_steps(9, 3, 1, 0)
    assert np.array_equal(xi[:, 0], alone(9, 0)) and np.array_equal(xi[:, 1], alone(9, 1))


def test_halves_are_white() -> None:
    """The numbers of 2^4 parts of many steps are independent and normal: within 4 standard errors."""
    z = of_steps(1 << 16, 5, 0, 4)
    n = len(z)
    for a, b in ((z[:, 0], z[:, 1]), (z[1:, 0], z[:-1, 0]), (z[1:, 1], z[:-1, 1]), (z[1:, 0], z[:-1, 1]), (z[16:, 0], z[:-16, 0])):
        assert abs(np.mean(a * b)) < 4 / np.sqrt(n)
    assert np.all(np.abs(z.mean(axis=0)) < 4 / np.sqrt(n)) and np.all(np.abs(z.var(axis=0) - 1) < 4 * np.sqrt(2 / n))
