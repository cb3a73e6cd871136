"""What the models of SGD on power laws share: spectrum, target, risk, parameters."""

from sympy import Interval, Sum, oo, symbols

from odesim.symbolic import IndexedBase, Param, index, over, sizes

i, j = index("i j")
(n,) = sizes("n")
D = IndexedBase("D", shape=(n,))
a, g, B = symbols("a g B", positive=True)
b = symbols("b", real=True)
s2 = symbols("s2", nonnegative=True)


def lam(k: object) -> object:
    """The variance of input k = 0, 1, ...: (k + 1)^(-2 a)."""
    return (1 + k) ** (-2 * a)  # type: ignore[operator]


R = over(Sum, lam(j) * D[j], (j, n)) / 2 + s2 / 2
AXES = {i: n, j: n}
START = {D[i]: (1 + i) ** (-2 * b)}
PARAMS = (
    Param(a, 1.0, Interval.open(0, oo), "the variances of the inputs fall as j^(-2 a)"),
    Param(b, 0.8, Interval(-oo, oo), "the squared coefficients of the target fall as j^(-2 b)"),
    Param(g, 0.1, Interval.open(0, oo), "learning rate"),
    Param(B, 1.0, Interval.open(0, oo), "size of a mini-batch"),
    Param(s2, 0.01, Interval(0, oo), "variance of the noise of labels"),
)
