"""Reads the text of a step for a method: its tables, its interpolant, the numbers of the control, and what the step is printed for."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from odesim.base.parsing import parse
from odesim.stepper import control
from odesim.stepper.codes import Code
from odesim.stepper.rosenbrock_methods import Rosenbrock
from odesim.stepper.statements import Reader, Text
from odesim.stepper.tableau import Method
from odesim.stepper.taylor import Taylor

CHECKED = 0.8
"""The point of a Rosenbrock step at which the interpolant is checked: near the largest error of either method on a stiff component."""
EXPLICIT = {"IMPLICIT": False, "NOISY": False, "STABILISED": False, "SERIES": False}
"""What an explicit step knows, whatever the method."""


def step_text(kind: str, by_state: bool = False) -> Text:
    """The text of a step of this kind, with what every step has. by_state: each state has its own absolute tolerance."""
    from odesim.targets.cache import source_of

    return Text(source_of(f"odesim.stepper.{kind}") + source_of("odesim.stepper.step"), by_state)


@dataclass(frozen=True)
class Switches:
    """What a step is printed for: the constants of step.py that switch."""

    adaptive: bool = True
    chooses: bool = True
    saves: bool = False
    events: bool = False
    laws: bool = False
    together: bool = False
    noisy: bool = False

    @property
    def known(self) -> dict[str, bool]:
        """Each by its name in the text."""
        return {name.upper(): value for name, value in vars(self).items()}


def explicit_reader(method: Method, switches: Switches, *, by_state: bool = False) -> Reader:
    """The text of an explicit step for a method, with its tables known and its loops over stages unrolled.

    by_state: each state has its own absolute tolerance.
    """
    m = method
    known = {
        "LAST": m.last, "ALL": m.stages, "A": m.A.tolist(), "C": m.c.tolist(), "E": m.E.tolist(), **m.numbers,
        **EXPLICIT, **switches.known, **numbers_of_control(), "SERIES": isinstance(m, Taylor),
    }  # fmt: skip
    return Reader(step_text("explicit", by_state), known, lambda theta: horner(m.P.tolist(), theta))


def implicit_reader(method: Rosenbrock, n: int | None, switches: Switches, *, loops: bool = False, by_state: bool = False) -> Reader:
    """The text of a Rosenbrock step of n components, with the tables of the method known and its loop over stages unrolled.

    n None: it stays a name. loops: the order of sums is that of lanes with loops.
    """
    m = method
    known = {
        "LAST": m.stages - 1, "A": m.A.tolist(), "C": m.alpha.tolist(), "D": m.d.tolist(), "G": (m.gamma * m.C).tolist(), **m.numbers,
        "CHECKED": CHECKED, "CHECK": m.dense(CHECKED).tolist(), "CHECK_SLOPE": (m.gamma * m.dense_slope(CHECKED)).tolist(),
        **({} if n is None else {"PART": 1 / max(n, 1)}), "IMPLICIT": True, "STABILISED": False, "LOOPS": loops,
    }  # fmt: skip
    return Reader(step_text("implicit", by_state), {**known, **switches.known, **numbers_of_control()}, lambda theta: bent(m, theta))


def numbers_of_control() -> dict[str, float]:
    """The numbers that every reader knows: those of the rules of step control, and of the ends of a run."""
    words = ("SAFETY", "LEAST", "LEAST_SQUARE", "LOG2_LEAST_OLD", "SHORTEST", "MOST_TRIES", "CLOSE", "WIDER", "KEPT")
    rules = {word: getattr(control, word) for word in words}
    return rules | {code.name: float(code) for code in Code}


def bent(method: Rosenbrock, theta: str) -> list[tuple[int, ast.expr]]:
    """The weights (j, dense[j]) of the interpolant of a Rosenbrock method, by the operations of Rosenbrock.dense."""
    terms: list[tuple[int, ast.expr]] = []
    for j, weight in enumerate(method.weights):
        text = "0.0"
        for x in reversed(method.H[:, j].tolist()):
            text = f"({text} * {theta} + {x!r})"
        terms.append((j, parse(f"{theta} * ({float(weight)!r} + (1.0 - {theta}) * {text})", "eval").body))
    return terms


def horner(P: Sequence[Sequence[float]], theta: str) -> list[tuple[int, ast.expr]]:
    """The weights (j, sum_p P[j][p] theta^(p + 1)) of an interpolant by Horner's scheme, those that are not always zero."""
    terms: list[tuple[int, ast.expr]] = []
    for j, polynomial in enumerate(P):
        text = "0.0"
        for x in reversed(polynomial):
            text = f"(({text} + {float(x)!r}) * {theta})"
        if any(polynomial):
            terms.append((j, parse(text, "eval").body))
    return terms
