"""Muon's polynomial on singular values: five steps of it bring them near 1, and more do not bring them nearer.

p(s) = a s + b s^3 + c s^5 with (3.4445, -4.7750, 2.0315), chosen for its slope at 0. Its fixed points .868 and 1.264 are both unstable:
values that are in [.682, 1.134] roam there. The cubic (1.5, -.5, 0) does converge to 1, more slowly from small values.
"""

from sympy import Interval, Reals, oo, symbols

from odesim.symbolic import IndexedBase, Map, Param, Source, index, sizes

(k,) = index("k")
(K,) = sizes("K")
s = IndexedBase("s", shape=(K,))
a, b, c = symbols("a b c", real=True)

SYSTEM = Map(
    name="optimisers.newton_schulz",
    source=Source("jordan2024muon", "muon.py", "on singular values"),
    axes={k: K},
    updates={s[k]: a * s[k] + b * s[k] ** 3 + c * s[k] ** 5},
    params=(
        Param(a, 3.4445, Reals, "coefficient of s"),
        Param(b, -4.7750, Reals, "coefficient of s^3"),
        Param(c, 2.0315, Interval(-oo, oo), "coefficient of s^5"),
    ),
    initial={s[k]: 0.5 ** (2 * k)},
    sizes={K: 5},
    steps=5,
    time="steps of the iteration",
)
