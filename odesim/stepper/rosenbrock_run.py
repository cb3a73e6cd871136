"""One run of a Rosenbrock method: what its driver's arrays hold beside those of an explicit one."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import few_blas_threads
from odesim.base.errors import SolveError
from odesim.base.options import RunOptions
from odesim.ir.invariants import LinearInvariant, exact_sums
from odesim.stepper import control
from odesim.stepper.drive import ExplicitRun
from odesim.stepper.memory import RunState
from odesim.stepper.one_implicit import implicit_driver
from odesim.stepper.problem import Derivatives, Problem, Raw, StiffRun
from odesim.stepper.rosenbrock import Rosenbrock
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.statements import CHECKED
from odesim.stepper.stiff_systems import ArraySystems, FrontSystems, ProductSystems


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
def method_tables(m: Rosenbrock) -> tuple[dict[str, Array], dict[str, float]]:
    """The tables and the numbers of a method, by their names in the text of the step."""
    checks, power = np.stack([m.dense(CHECKED), m.gamma * m.dense_slope(CHECKED)]), 1 / m.error_order
    tables = {"A": m.A, "C": m.alpha, "P": m.P, "DRIFTS": m.d, "TO_SOLVE": m.gamma * m.C, "CHECKS": checks}
    numbers = {
        "GAMMA": m.gamma, "MOST_LESS": control.LEAST_OLD ** (-1 / m.error_order), "START_POWER": power, "ERROR_POWER": -0.5 / m.error_order,
        "SHRINK": control.STIFF_SHRINK, "GROW": control.STIFF_GROW,
    }  # fmt: skip
    return {slot: np.ascontiguousarray(table) for slot, table in tables.items()}, numbers


class StiffState(RunState):
    """The state of a run of a Rosenbrock method: all rows are float64."""

    rows: ClassVar = 10
    dtype: ClassVar = "float64"
    driver = staticmethod(implicit_driver)

    def _fill_method(self) -> None:
        tables, numbers = method_tables(self.method)
        for slot, table in tables.items():
            self.at[slot] = table.ctypes.data
        self.put({"PART": 1 / max(len(self.problem.y0), 1), **numbers})

    def attach(self, systems: Any, derivatives: Derivatives, driver: dict[str, int]) -> None:
        """Makes the driver call these linear systems, and its own functions for what a system does in its own type."""
        problem, at, n = self.problem, self.at, len(self.problem.y0)
        rhs, single = problem.rhs, problem.rhs.dtype == "float32"
        self._systems, self._numbers = systems, conserved(derivatives.invariants(), problem.began.astype(np.float64))
        self._jacobians, self._raw = np.zeros((2, systems.size)), np.empty((3, n), rhs.dtype)
        self._one, self._zero, self._truth = np.ones(1), np.zeros(1, np.int64), np.zeros(1, np.int64)
        addresses = {
            "COMBINE": driver["combined"], "EVENTS_AT": driver["watched"], "TABLE": self.address,
            "SYSTEM_STAGE": rhs.stage, "SYSTEM_COMBINE": rhs.combine, "SYSTEM_EVENTS": rhs.events,
            "SYSTEM_TABLE": rhs.table, "SINGLE": int(single), "RAW": self._raw.ctypes.data, "ONE": self._one.ctypes.data,
            "ZERO": self._zero.ctypes.data, "TRUTH": self._truth.ctypes.data, "JACOBIANS": self._jacobians.ctypes.data,
            "JACOBIAN_SIZE": systems.size, "INVARIANTS": self._numbers.ctypes.data if self._numbers[0] else 0,
            "IMPLICIT": 1, **systems.functions,
        }  # fmt: skip
        if problem.laws is not None:
            addresses["SYSTEM_LAWS"], addresses["SYSTEM_LAW_TABLE"] = problem.laws.values.events, problem.laws.values.table
            addresses["LAWS_AT"], addresses["LAW_TABLE"] = driver["judged"], self.address
        for slot, value in addresses.items():
            at[slot] = value

    @property
    def y(self) -> Array:
        """The state (n,), in the problem's dtype."""
        return super().y.astype(self.problem.rhs.dtype)


class RosenbrockRun(ExplicitRun):
    """A run of a Rosenbrock method that can be advanced piece by piece. options: as of odesim.integrate."""

    goes_on = True
    kind: ClassVar = "implicit"
    first_slice: ClassVar = 1  # a step may take a second
    systems: ArraySystems

    def _new_state(self, problem: Problem, method: Any, save: Array, options: RunOptions, functions: dict[str, int]) -> RunState:
        if problem.linear is None:
            raise SolveError(
                f"{method.name} needs the Jacobian of the right-hand side, which {problem.ref or 'this problem'} does not have"
            )
        compiled, products = problem.slopes(), problem.products()
        derivatives = products or problem.linear()
        state = StiffState(problem, method, save, options)
        if compiled is None:
            derivatives.prepare()
        n, least = len(problem.y0), np.broadcast_to(state.atol, len(problem.y0))
        if compiled is not None:
            self.systems = FrontSystems(n, derivatives, least, compiled)
        elif products is not None:
            self.systems = ProductSystems(n, products, least, state["rtol"])
        else:
            self.systems = ArraySystems(n, derivatives, least)
        state.attach(self.systems, derivatives, functions)
        return state

    def _blas(self) -> AbstractContextManager[Any]:
        return few_blas_threads(len(self.problem.y0)) if self.systems.uses_blas else super()._blas()

    def _check(self) -> None:
        super()._check()
        self.systems.check()

    @property
    def y(self) -> Array:
        """The state (n,), in the problem's dtype."""
        return self.state.y

    def raw(self) -> Raw:
        raw = super().raw()
        return replace(raw, y=raw.y.astype(self.problem.rhs.dtype))


MOST_ROUNDS = 12
"""Invariants that share states, one after another: beyond it they take the time of the step."""


def conserved(invariants: Sequence[LinearInvariant], start: Array) -> Array:
    """Linear invariants with numbers as weights and their values at the start (n,) of a run, as control.move_back reads them.

    How many there are, and of each, in the order in which they are restored: its number of places, its value, the places, the weights.
    """
    groups = _apart(invariants)[-MOST_ROUNDS:]
    numbers = [float(sum(map(len, groups)))]
    for invariant in (i for group in groups for i in group):
        numbers += [len(invariant.places), float(exact_sums(invariant, start[None])[0]), *invariant.places, *invariant.weights]  # type: ignore[list-item]
    return np.array(numbers)


def _apart(invariants: Sequence[LinearInvariant]) -> list[list[LinearInvariant]]:
    """Groups of invariants that share no state, ordered after the groups they share states with."""
    groups: list[list[LinearInvariant]] = []
    used: list[set[int]] = []
    for invariant in invariants:
        places = set(invariant.places)
        after = max((k + 1 for k, states in enumerate(used) if states & places), default=0)
        if after == len(groups):
            groups.append([])
            used.append(set())
        groups[after].append(invariant)
        used[after] |= places
    return groups
