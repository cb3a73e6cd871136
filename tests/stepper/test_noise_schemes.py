"""sriw1, whose stages have drift and noise at one place, is the method that Roessler writes with the two apart."""

from typing import Any

import numpy as np
from sympy import Matrix, Rational, ones, zeros

from odesim.stepper.noise_methods import SCHEMES


def matrix(**rows: str) -> Matrix:
    """(4, 4), of rows r1 to r4 that are not zero, as fractions."""
    out = zeros(4, 4)
    for name, row in rows.items():
        for j, text in enumerate(row.split()):
            out[int(name[1]), j] = Rational(text)
    return out


# as published in Roessler 2010 and in Julia's StochasticDiffEq
A0, B0 = matrix(r1="3/4"), matrix(r1="3/2")
A1, B1 = matrix(r1="1/4", r2="1", r3="0 0 1/4"), matrix(r1="1/2", r2="-1", r3="-5 3 1/2")
ALPHA = matrix(r0="1/3 2/3")[0, :]
BETA = [matrix(r0=row)[0, :] for row in ("-1 4/3 2/3", "-1 4/3 -1/3", "2 -4/3 -2/3", "-2 5/3 -2/3 1")]
E = ones(4, 1)


def squared(column: Any) -> Any:
    """The squares of its entries."""
    return column.multiply_elementwise(column)


def test_the_published_table_has_strong_order_one_and_a_half() -> None:
    """The 25 conditions of Roessler 2010 for diagonal noise, exactly."""
    b1, _, b3, _ = BETA
    # {a column: what the weights alpha, or beta 1 to 4, must make of it}
    assert [(ALPHA * c)[0] for c in (E, A0 * E, B0 * E, squared(B0 * E))] == [1, Rational(1, 2), 1, Rational(3, 2)]
    for column, wanted in (
        (E, (1, 0, 0, 0)),
        (B1 * E, (0, 1, 0, 0)),
        (A1 * E, (1, 0, -1, 0)),
        (squared(B1 * E), (1, 0, -1, 2)),
        (B1 * (B1 * E), (0, 0, 0, 1)),
    ):
        assert tuple((b * column)[0] for b in BETA) == wanted
    assert ((b1 / 2 + b3 / 3) * A1 * (B0 * E))[0] == 0


def f(t: float, x: Any) -> Any:
    return np.sin(x) + t * x


def g(t: float, x: Any) -> Any:
    return np.cos(x) + 0.3 * t * x**2


def test_a_step_is_that_of_the_published_table() -> None:
    """Two states, a channel each, from the two normal numbers of a step: rounding."""
    rng, t, h, x = np.random.default_rng(1), 0.7, 0.3, np.array([0.4, -1.1])
    xi0, xi1 = rng.normal(size=(2, 2))
    I1, I10 = np.sqrt(h) * xi0, h**1.5 * (xi0 - xi1 / np.sqrt(3)) / 2
    I11, I111 = (I1**2 - h) / 2, (I1**3 - 3 * h * I1) / 6
    a0, a1, b0, b1, alpha = (np.array(m, dtype=float) for m in (A0, A1, B0, B1, ALPHA))
    H0, H1 = [x] * 4, [x] * 4
    for i in range(4):
        fs, gs = (
            [f(t + h * a0[j].sum(), H0[j]) for j in range(i)],
            [g(t + h * a1[j].sum(), H1[j]) for j in range(i)],
        )
        H0[i] = x + sum(h * a0[i, j] * fs[j] + b0[i, j] * gs[j] * I10 / h for j in range(i))
        H1[i] = x + sum(h * a1[i, j] * fs[j] + b1[i, j] * gs[j] * np.sqrt(h) for j in range(i))
    weights = [
        sum(float(b[i]) * integral for b, integral in zip(BETA, (I1, I11 / np.sqrt(h), I10 / h, I111 / h), strict=True)) for i in range(4)
    ]
    want = x + sum(h * alpha[0, i] * f(t + h * a0[i].sum(), H0[i]) + weights[i] * g(t + h * a1[i].sum(), H1[i]) for i in range(4))

    scheme, k = SCHEMES["sriw1"], list[Any]()
    for A, c, row in zip(scheme.A, scheme.c, (*scheme.noise, None), strict=True):
        place = x + h * sum(A[j] * k[j] for j in range(len(k)))
        if row is None:
            np.testing.assert_allclose(place, want, rtol=1e-13)
        else:
            a, b, d, q, r = row
            rate = (a * xi0 + b * xi1 + d + q * (xi0**2 - 1) / 2 + r * (xi0**3 - 3 * xi0) / 6) / np.sqrt(h)
            k.append(f(t + c * h, place) + g(t + c * h, place) * rate)
