"""Sharpness-aware descent on a parabola: it steps at a point rho further up, and so comes to a cycle about the minimum, not to it.

w <- w - eta lam (w + rho sign w). Near 0 each step crosses the minimum: |w| = eta lam rho / (2 - eta lam), from every start if eta lam < 2.
With an ascent of rho times the slope, kind = 1, it is w <- (1 - eta lam (1 + rho lam)) w: no cycle, and stable only for eta below
2 / (lam (1 + rho lam)).

Assumed: one direction, of sharpness lam; full gradients.
"""

from sympy import FiniteSet, Interval, Piecewise, oo, symbols

from odesim.symbolic import Map, Param, Source

w = symbols("w", real=True)
eta, lam, rho = symbols("eta lam rho", positive=True)
kind = symbols("kind", real=True)
side = Piecewise((1, w >= 0), (-1, True))
ascent = Piecewise((rho * side, kind < 0.5), (rho * lam * w, True))

SYSTEM = Map(
    name="edge.sam",
    source=Source("dai2023crucial", "the quadratic loss", "one direction"),
    axes={},
    updates={w: w - eta * lam * (w + ascent)},
    params=(
        Param(eta, 0.1, Interval.open(0, oo), "learning rate"),
        Param(lam, 4.0, Interval.open(0, oo), "sharpness"),
        Param(rho, 0.05, Interval.open(0, oo), "length of the ascent before a step"),
        Param(kind, 0.0, FiniteSet(0, 1), "0: an ascent of length rho, 1: of rho times the slope"),
    ),
    initial={w: 0.3},
    steps=100,
    observables={"loss": lam * w**2 / 2},
)
