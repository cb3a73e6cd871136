"""Models whose equations are changed a little, under their own names: for what must notice it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sympy import Expr, KroneckerDelta, Rational, prod

from odesim.inputs import registry
from odesim.symbolic import System

Equations = Mapping[Any, Expr]
SMALL, FASTER = Rational(1, 50), Rational(21, 20)


def pushed(equations: Equations) -> Equations:
    """The first entry of the first state moves by 1/50 more."""
    key = next(iter(equations))
    return {**equations, key: equations[key] + prod(KroneckerDelta(i, 0) for i in getattr(key, "indices", ())) * SMALL}


def one_faster(equations: Equations) -> Equations:
    """The last state moves 1/20 faster."""
    key = list(equations)[-1]
    return {**equations, key: equations[key] * FASTER}


def faster(equations: Equations) -> Equations:
    """All states move 1/20 faster."""
    return {key: rate * FASTER for key, rate in equations.items()}


def damped(equations: Equations) -> Equations:
    """Each state y has - y/50 more in its equation."""
    return {key: rate - key * SMALL for key, rate in equations.items()}


CHANGES: tuple[Callable[[Equations], Equations], ...] = (faster, damped, pushed, one_faster)
"""Those that most claims notice first."""


@contextmanager
def perturbed(change: Callable[[Equations], Equations]) -> Iterator[set[str]]:
    """Within it every model, named or given, has changed equations where it is integrated; yields the names of those that were."""
    load, done, names = registry.load_with_origin, list[System](), set[str]()

    def changed(ref: Any) -> tuple[System, dict[str, Any]]:
        system, origin = load(ref)
        if not any(system is other for other in done):
            names.add(system.name)
            system = replace(system, equations=change(system.equations))
            done.append(system)
        return system, origin

    with ExitStack() as patches:
        # the registry last: a module that is imported here for the first time takes its load_with_origin, and would keep ours
        for place in ("odesim.api.request", "odesim.api.ensemble", "odesim.inputs.registry"):
            patches.enter_context(patch(f"{place}.load_with_origin", changed))
        yield names
