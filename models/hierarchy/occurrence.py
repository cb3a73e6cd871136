"""How often two leaves of a latent tree are present together, by the height of their last common ancestor: one step up the tree at a time.

P(l | m) is the probability that leaf l is present where leaf m is. t is the height of their ancestor: each step up multiplies the
correlation c of two leaves below it by rho^2. Below the root P = 1 - (1 - rho^(2t)) / (2 (1 - rho^(L-1) rho0)), by default from 1 to .44;
at the root itself, t = L, its classes decide, and P is far less. 1 - t/L is the first order for rho = rho0 near 1.

Assumed: all edges below the root's children symmetric with correlation rho, leaves with values -1 and 1, 1 for present. c_root is the mean
product of two of the root's children: 2 rho0 - 1 where each class switches one child on, all classes equally likely.
"""

from typing import Any

from sympy import Interval, Naturals, Piecewise, Symbol

from odesim.symbolic import ClosedForm, Map, Param, Source, time

c, L, rho = Symbol("c", real=True), Symbol("L", positive=True), Symbol("rho", positive=True)
rho0, c_root = Symbol("rho0", real=True), Symbol("c_root", real=True)


def one_hot(sizes: dict[str, int], params: dict[str, Any]) -> float:
    """c_root where each class switches on one child of the root."""
    return 2 * float(params["rho0"]) - 1


def power(t: float, y0: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """c at height t: rho^(2t) c(0)."""
    return {"c": params["rho"] ** (2 * t) * y0["c"]}


absent = rho ** (L - 1) * rho0  # minus the mean of a leaf
below = 1 - (1 - c) / (2 * (1 - absent))
root = (1 - 2 * absent + rho ** (2 * L - 2) * c_root) / (2 * (1 - absent))

SYSTEM = Map(
    name="hierarchy.occurrence",
    source=Source("tian2023joma", "Theorem 5", "before its approximation; the root by its classes"),
    axes={},
    updates={c: rho**2 * c},
    params=(
        Param(L, 4, Naturals, "depth of the tree"),
        Param(rho, 0.9, Interval.Lopen(0, 1), "correlation of a node with its parent"),
        Param(rho0, 0.8, Interval.Ropen(-1, 1), "mean polarity 2 P[y = 0] - 1 of the root's children"),
        Param(c_root, one_hot, Interval(-1, 1), "mean product of two children of the root"),
    ),
    initial={c: 1},
    steps=4,
    time="height of the common ancestor",
    observables={"P": Piecewise((below, time < L), (root, True)), "first_order": 1 - time / L},
    display={"below": below, "root": root},
    closed_forms=(ClosedForm("power", "below the root", power),),
)
