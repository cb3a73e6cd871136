"""Numbers of choices."""

from math import inf

from odesim.runtime.elementary import inlined


@inlined
def binomial(n: float, k: float) -> float:
    """The binomial coefficient of whole numbers, n >= 0: the number of choices of k among n; 0 unless 0 <= k <= n.

    Exact while n binomial(n, k) < 2^53: each product of the first factors is a whole number.
    """
    least = min(k, n - k)
    value = 0.0 if least < 0.0 else 1.0
    j = 0.0
    while j < least and value < inf:
        # the product may overflow where the quotient does not
        value = value * (n - j) / (j + 1.0) if value < 1e290 else value / (j + 1.0) * (n - j)
        j += 1.0
    return value
