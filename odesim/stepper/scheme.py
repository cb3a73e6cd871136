"""A scheme for noise: the tableau of an explicit method, and the noise that each of its stages sees.

A stage of a scheme evaluates F = f + sum_c g_c r_c, the right-hand side of odesim.transforms.noise, with the rates
r_c = (a xi0 + b xi1)/sqrt(h) of its row (a, b) of `noise`, from the two normal numbers of a step and channel (odesim.runtime.normals).
So a stochastic step is an explicit step, whose text, lanes, saves and limits it shares.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from odesim.stepper.tableau import Method, make_method


@dataclass(frozen=True, eq=False)
class Scheme(Method):
    """A Method for noise. calculus: of the drift that it needs. second: its right-hand side has the term of Milstein.

    noise: (a, b) of each stage. kinds: of noise that it is for (odesim.ir.noise).
    """

    calculus: str = "ito"
    second: bool = False
    noise: tuple[tuple[float, float], ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def draws(self) -> int:
        """How many normal numbers a step takes for each channel."""
        return 1 + any(b for _, b in self.noise)


ALL = ("additive", "additive in time", "diagonal", "commuting", "general")


def make_scheme(name: str, A: Sequence[Sequence[float]], noise: Sequence[tuple[float, float]], source: str, **more: Any) -> Scheme:
    """The Scheme with these stages and, as the last row of A, the weights of the new state; for ALL kinds of noise."""
    c = [sum(row) for row in A]
    # between two steps there is no path to speak of: states are saved at steps
    m = make_method(name, order=1, A=A, c=c, P=[(w,) for w in A[-1]], last=len(A) - 1, dense_order=1, source=source)
    return Scheme(**vars(m), noise=tuple(noise), **{"kinds": ALL, **more})
