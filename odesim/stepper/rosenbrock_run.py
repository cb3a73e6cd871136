"""One run of a Rosenbrock method: what its driver's arrays hold beside those of an explicit one."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import Any, ClassVar

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import few_blas_threads
from odesim.base.errors import SolveError
from odesim.base.options import RunOptions
from odesim.ir.invariants import LinearInvariant, exact_sum
from odesim.stepper.problem import Derivatives, Problem, StiffRun
from odesim.stepper.readers import CHECKED
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.stiff_systems import ArraySystems, FrontSystems, ProductSystems
from odesim.stepper.tableau import Rosenbrock
from odesim.stepper.wide_run import WideRun, WideState


def make_run(problem: Problem, name: str, save: Array | None, *, strict: bool, **options: Any) -> StiffRun:
    """A run of a stiff method, not yet started: one of the two.

    strict: with the same bits on every machine, and of a member. Raises SolveError.
    """
    if not strict:
        return RosenbrockRun(problem, ROSENBROCK[name], save, **options)
    if problem.lanes is None:
        raise SolveError(f"{name} has a strict mode only for a right-hand side that numba compiles")
    return problem.lanes(problem, name, save, **options)


@cache
def method_tables(m: Rosenbrock) -> dict[str, tuple[int, Array]]:
    """The addresses of the tables of a method, and these, by their names in the table of a run."""
    checks = np.stack([m.dense(CHECKED), m.gamma * m.dense_slope(CHECKED)])
    tables = {"A": m.A, "C": m.alpha, "P": m.P, "DRIFTS": m.d, "TO_SOLVE": m.gamma * m.C, "CHECKS": checks}
    contiguous = {slot: np.ascontiguousarray(table) for slot, table in tables.items()}
    return {slot: (table.ctypes.data, table) for slot, table in contiguous.items()}


class StiffState(WideState):
    """The state of a run of a Rosenbrock method."""

    kind: ClassVar = "implicit"

    def _fill_method(self) -> None:
        for slot, (address, _) in method_tables(self.method).items():
            self.at[slot] = address
        self.put({"PART": 1 / max(len(self.problem.y0), 1), **self.method.numbers})

    def attach(self, systems: Any, derivatives: Derivatives) -> None:
        """Makes the driver call these linear systems."""
        self._systems, self._numbers = systems, conserved(derivatives.invariants(), self.problem.began.astype(np.float64))
        self._jacobians, self._truth = np.zeros((2, systems.size)), np.zeros(1, np.int64)
        addresses = {
            "TRUTH": self._truth.ctypes.data, "JACOBIANS": self._jacobians.ctypes.data, "JACOBIAN_SIZE": systems.size,
            "INVARIANTS": self._numbers.ctypes.data if self._numbers[0] else 0, **systems.functions,
        }  # fmt: skip
        for slot, value in addresses.items():
            self.at[slot] = value


class RosenbrockRun(WideRun):
    """A run of a Rosenbrock method that can be advanced piece by piece. options: as of odesim.integrate."""

    goes_on = True
    states: ClassVar = StiffState
    systems: ArraySystems

    def _new_state(self, problem: Problem, method: Any, save: Array, options: RunOptions, functions: dict[str, int]) -> StiffState:
        if problem.linear is None:
            raise SolveError(
                f"{method.name} needs the Jacobian of the right-hand side, which {problem.ref or 'this problem'} does not have"
            )
        compiled, products = problem.slopes(), problem.products()
        derivatives = products or problem.linear()
        if compiled is None:
            derivatives.prepare()
        state = super()._new_state(problem, method, save, options, functions)
        assert isinstance(state, StiffState)
        n, least = len(problem.y0), np.full(len(problem.y0), state.atol)
        if compiled is not None:
            self.systems = FrontSystems(n, derivatives, least, compiled)
        elif products is not None:
            self.systems = ProductSystems(n, products, least, state["rtol"])
        else:
            self.systems = ArraySystems(n, derivatives, least)
        state.attach(self.systems, derivatives)
        return state

    def _blas(self) -> AbstractContextManager[Any]:
        return few_blas_threads(len(self.problem.y0)) if self.systems.uses_blas else super()._blas()

    def _check(self) -> None:
        super()._check()
        self.systems.check()


MOST_ROUNDS = 12
"""Invariants that share states, one after another: beyond it they take the time of the step."""


def conserved(invariants: Sequence[LinearInvariant], start: Array) -> Array:
    """Linear invariants with numbers as weights and their values at the start (n,) of a run, as control.move_back reads them.

    How many there are, and of each, in the order in which they are restored: its number of places, its value, the places, the weights.
    """
    kept = [invariants[k] for group in _apart(*(invariant.places for invariant in invariants))[-MOST_ROUNDS:] for k in group]
    numbers = [float(len(kept))]
    for invariant in kept:
        numbers += [len(invariant.places), exact_sum(invariant, start), *invariant.places, *invariant.weights]  # type: ignore[list-item]
    return np.array(numbers)


@lru_cache(maxsize=16)
def _apart(*places_of: tuple[int, ...]) -> list[list[int]]:
    """The numbers of invariants in groups that share no state, ordered after the groups they share states with. places_of: of each."""
    groups: list[list[int]] = []
    used: list[set[int]] = []
    for i, places in enumerate(map(set, places_of)):
        after = max((k + 1 for k, states in enumerate(used) if states & places), default=0)
        if after == len(groups):
            groups.append([])
            used.append(set())
        groups[after].append(i)
        used[after] |= places
    return groups
