"""Integrates a problem by a method given by name."""

from typing import Any

from odesim.base.arrays import Array
from odesim.base.errors import SolveError, no_such
from odesim.solve.auto import integrate_auto
from odesim.stepper.drive import integrate_explicit
from odesim.stepper.methods import MAP, METHODS
from odesim.stepper.problem import Problem, Raw
from odesim.stepper.rosenbrock_methods import ROSENBROCK

METHOD_NAMES = ("auto", *METHODS, *ROSENBROCK)


def integrate_problem(problem: Problem, *, method: str = "auto", save: Array | None = None, strict: bool = False, **options: Any) -> Raw:
    """The run of a problem, kept at the times save (T,), increasing within the span (start and end where None).

    method: one of METHOD_NAMES, or that of a Map. options: step, rtol, atol, max_steps and progress, as ExplicitRun has them.
    strict: stiff methods do without LAPACK.
    Raises SolveError for options that make no sense, and what the right-hand side raised.
    """
    if method == MAP.name:
        return integrate_explicit(problem, MAP, save=save, **options)
    if method not in METHOD_NAMES:
        raise SolveError(no_such("method", method, METHOD_NAMES))
    if problem.switches is not None:
        from odesim.solve.switched import integrate_switched

        return integrate_switched(problem, integrate_problem, method=method, save=save, strict=strict, **options)
    if method in ROSENBROCK:
        from odesim.stepper.rosenbrock_run import make_run

        run = make_run(problem, method, save, strict=strict, **options)
        run.advance()
        return run.raw()
    if method == "auto":
        return integrate_auto(problem, save=save, strict=strict, **options)
    return integrate_explicit(problem, METHODS[method], save=save, **options)
