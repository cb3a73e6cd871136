"""Two layers of a diagonal linear network: strong modes are learned first."""

from sympy import Interval, oo

from odesim.symbolic import IndexedBase, Invariant, Param, Source, System, index, sizes

(m,) = index("m")
(M,) = sizes("M")
w, s = IndexedBase("w", shape=(M,)), IndexedBase("s", shape=(M,))

SYSTEM = System(
    name="my.modes",
    source=Source("saxe2014exact", "two layers, aligned and balanced"),
    axes={m: M},
    equations={w[m]: 2 * w[m] * (s[m] - w[m] ** 2)},
    params=(Param(s, 1.0, Interval.open(0, oo), "strength of a mode"),),
    initial={w[m]: 0.01},
    span=(0.0, 6.0),
    invariants=(Invariant("error falls", (s[m] - w[m] ** 2) ** 2, "nonincreasing"),),
)
