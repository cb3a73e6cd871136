"""The derivatives of functions with an order n, by functions of the neighbouring orders.

besseli(1.0, a)  ->  0.5 * besseli(0.0, a) + 0.5 * besseli(2.0, a)
"""

from odesim.ir.scalars import CodeBuilder


def order_slope(builder: CodeBuilder, function: str, value: str, n: float, a: str) -> str:
    """The derivative of function(n, a) by a, as odesim.symbolic.functions has it; value: the name of the function's value."""

    def at(order: float) -> str:
        return builder.name(function, repr(order), a)

    def both(less: float, more: float) -> str:
        """The sum less f(n - 1) + more f(n + 1)."""
        return builder.name("+", builder.times(repr(less), at(abs(n - 1.0))), builder.times(repr(more), at(n + 1.0)))

    if function == "polygamma":
        return at(n + 1.0)
    if function == "besseli":
        return both(0.5, 0.5)
    if function == "spherical_jn":
        return both(n / (2 * n + 1), -(n + 1) / (2 * n + 1))
    rest = builder.name("-", "1.0", builder.name("*", value, at(n + 1.0)))
    square = builder.name("-", "1.0", builder.name("*", value, value))
    return builder.name("-", square, builder.times(repr((2 * n + 1) / (2 * n + 2)), rest))
