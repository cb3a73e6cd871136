"""Models whose equations, and helpers of claims whose numbers, are changed a little under their own names: for what must notice it."""

import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any
from unittest.mock import patch

import numpy as np
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


# Claims of numbers, counts and trainings: what is changed is the rule that they come from.

MORE = 1.05


def more(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with 5 % more of the float, the floats of an array, or each such part of a tuple that it returns."""

    @wraps(function)
    def changed(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        parts = result if isinstance(result, tuple) else (result,)
        parts = tuple(x * MORE if isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f") else x for x in parts)
        return parts if isinstance(result, tuple) else parts[0]

    return changed


def untrained(train: Callable[..., Any]) -> Callable[..., Any]:
    """A training of one step."""
    return lambda task, **options: train(task, **options | {"steps": 1, "save": 2})


STATIC = "odesim.models.static"
RULES: dict[str, tuple[str, Callable[..., Any]]] = {
    "galore.memory": ("odesim.models.galore._side_claims.Llama.adam", lambda f: lambda llama: f(llama) * 2 // 3),
    "galore.memory_rank": ("odesim.models.galore._side_claims.galore", lambda f: lambda m, n, r: f(m, n, r) + m * r),
    "galore.sizes": (
        "odesim.models.galore._side_claims.Llama.embeddings",
        lambda _: property(lambda llama: llama.vocabulary * llama.hidden),
    ),
    "galore.stiffness": ("odesim.models.galore._sample_claims.spread", lambda f: lambda count, draws: f(count + 1, draws)),
    "gibbs.estimates": ("odesim.models.gibbs.claims.information", more),
    "gibbs.mixing_times": ("odesim.models.gibbs._spectra_claims.gap", more),
    "gibbs.per_token": ("odesim.models.gibbs.claims.gap", lambda f: lambda P, p: f(P, p) ** 0.5),
    "static.contrastive_networks": (f"{STATIC}._contrast_claims.STEPS", lambda steps: dict.fromkeys(steps, 1)),
    "static.missing_mass": (f"{STATIC}.claims.counts_of_facts", lambda f: lambda rng, F, n: np.append(f(rng, F - 50, n), [0] * 50)),
    "static.one_component": (f"{STATIC}._limit_claims.head", lambda f: lambda x, Q, *W: f(x, Q, *W) + np.linalg.norm(Q) / 1e6),
    "static.parent": (f"{STATIC}.claims.chi_squared", lambda f: lambda P: f(0.95 * P + 0.05 / P.shape[1])),
    "static.parent_gradient": (f"{STATIC}.claims.gradient", more),
    "static.prompt_gradient": (f"{STATIC}.claims.inputs", lambda f: lambda rng, q, w: f(rng, MORE * q, w)),
    **dict.fromkeys(
        ("topics.loss", "topics.optimum", "topics.same_topic", "topics.slope"), ("odesim.models.topics._population.Population.loss", more)
    ),
    **dict.fromkeys(("hierarchy.nodes", "joma.overlaps"), ("odesim.train", untrained)),
    **dict.fromkeys(("scan_snap.sinks_on_text", "scan_snap.sparse_on_text"), ("odesim.train", untrained)),
    **dict.fromkeys(("topics.on_text", "topics.values_first_on_text"), ("odesim.train", untrained)),
}
"""{claim: (what it uses, how that is changed)} where 5 % more of all that its family's helpers return is not seen, or no number."""


@contextmanager
def other_rule(claim: str) -> Iterator[None]:
    """Within it RULES change what the claim rests on, or else every helper of its family returns 5 % more."""
    family = f"odesim.models.{claim.partition('.')[0]}"
    modules = [module for name, module in sys.modules.items() if name.startswith(f"{family}.")]
    helpers = [(module, name, value) for module in modules for name, value in vars(module).items() if callable(value)]
    helpers = [row for row in helpers if not isinstance(row[2], type) and str(getattr(row[2], "__module__", "")).startswith(family)]

    def forget() -> None:
        for _, _, helper in helpers:
            getattr(helper, "cache_clear", bool)()

    forget()
    try:
        with ExitStack() as patches:
            if claim in RULES:
                path, change = RULES[claim]
                place, _, name = path.rpartition(".")
                owner = pkgutil.resolve_name(place)
                patches.enter_context(patch.object(owner, name, change(getattr(owner, name))))
            else:
                for module, name, value in helpers:
                    patches.enter_context(patch.object(module, name, more(value)))
            yield
    finally:
        forget()
