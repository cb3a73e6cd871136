"""Statements of papers on the model that is explored: their list, and the numbers that they name on its curves."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import sympy as sp

from odesim.base.errors import counted
from odesim.lab.claims import Claim, all_claims
from odesim.run.solution import Solution
from odesim.symbolic.system import System
from odesim.targets.numpy_text import evaluate


@dataclass(frozen=True)
class Named:
    """A number that a statement names: a level of the state or observable `of`, or with `t` a time. words: whose it is."""

    of: str
    value: float
    words: str


def claims_about(model: str) -> tuple[Claim, ...]:
    """The claims that runs of this model check."""
    return tuple(claim for claim in all_claims() if model in claim.models)


def claims_text(model: str, about: Sequence[Claim]) -> str:
    """A list of these statements with their verdicts."""
    lines = []
    for claim in about:
        for kind, statement in claim.statements.items():
            when = f" {statement.when}" if statement.verdict == "holds only when" else ""
            name = f"{claim.name}, {kind}" + ", marked" * bool(statement.marks)
            lines.append(f"<li><b>{escape(str(statement.verdict))}{escape(when)}</b>: {escape(statement.text)} ({escape(name)})</li>")
    head = f"<summary>{counted(len(lines), 'statement')} of papers, checked by runs of this model (odesim verify {escape(model)})</summary>"
    return f"<details>{head}<ul>{''.join(lines)}</ul></details>" if lines else "<!-- none -->"


def numbers_named(about: Sequence[Claim], system: System, run: Solution) -> list[Named]:
    """The numbers that statements name on the curves of a run with its parameters; those that are no real number there are left out."""
    numbers = {**run.attrs["params"], **run.attrs["sizes"]}
    named = []
    for claim in about:
        for kind, statement in claim.statements.items():
            for mark in statement.marks:
                expr = sp.sympify(mark.value)
                there = {symbol.name for symbol in expr.free_symbols} <= numbers.keys()
                if there and mark.of in ("t", *system.states, *system.observables):
                    value = float(evaluate(expr, (), {}, {}, {name: np.float64(numbers[name]) for name in map(str, expr.free_symbols)}))
                    if np.isfinite(value) and (mark.of != "t" or run.t[0] <= value <= run.t[-1]):
                        named.append(Named(mark.of, value, f"{claim.name}, {kind}: {statement.verdict}"))
    return named
