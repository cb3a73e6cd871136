"""One run of a Rosenbrock or a stabilised method: what its driver's arrays hold beside those of an explicit one."""

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
from odesim.stepper.memory import RunState, numbers_of
from odesim.stepper.one_implicit import STABILISED, implicit_driver, stabilised_driver
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


class WideState(RunState):
    """The state of a run whose rows are float64, whatever the type of the system: its driver calls functions of the system by address."""

    dtype: ClassVar = "float64"

    def join(self, driver: dict[str, int]) -> None:
        """Makes the driver call its own functions for what a system does in its own type."""
        problem, at = self.problem, self.at
        rhs, single = problem.rhs, problem.rhs.dtype == "float32"
        self._raw, self._one, self._zero = np.empty((3, len(problem.y0)), rhs.dtype), np.ones(1), np.zeros(1, np.int64)
        addresses = {
            "COMBINE": driver["combined"], "EVENTS_AT": driver["watched"], "TABLE": self.address,
            "SYSTEM_STAGE": rhs.stage, "SYSTEM_COMBINE": rhs.combine if rhs.scales else 0, "SYSTEM_EVENTS": rhs.events,
            "SYSTEM_TABLE": rhs.table, "SINGLE": int(single), "RAW": self._raw.ctypes.data, "ONE": self._one.ctypes.data,
            "ZERO": self._zero.ctypes.data, "IMPLICIT": 1,
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


class StiffState(WideState):
    """The state of a run of a Rosenbrock method."""

    rows: ClassVar = 10
    driver = staticmethod(implicit_driver)

    def _fill_method(self) -> None:
        tables, numbers = method_tables(self.method)
        for slot, table in tables.items():
            self.at[slot] = table.ctypes.data
        self.put({"PART": 1 / max(len(self.problem.y0), 1), **numbers})

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


class StabilisedState(WideState):
    """The state of a run of a stabilised method."""

    rows: ClassVar = 10
    driver = staticmethod(stabilised_driver)

    def _fill_method(self) -> None:
        self.at["P"], small = self.method.P.ctypes.data, float(np.finfo(self.problem.rhs.dtype).eps)
        # rounding grows as the square of the stages; MOST_STAGES as in rkc.f
        more = {"MOST_STAGES": max((self["rtol"] / (10 * small)) ** 0.5, 2.0), "SMALL": small**0.5}
        self.put({**{name: value for name, value in numbers_of(self.method).items() if name in STABILISED}, **more})


class WideRun(ExplicitRun):
    """A run whose rows are float64."""

    first_slice: ClassVar = 1  # a step may take a second

    @property
    def y(self) -> Array:
        """The state (n,), in the problem's dtype."""
        return self.state.y

    def raw(self) -> Raw:
        raw = super().raw()
        return replace(raw, y=raw.y.astype(self.problem.rhs.dtype))


class StabilisedRun(WideRun):
    """A run of a stabilised method. options: as of odesim.integrate."""

    kind: ClassVar = "stabilised"

    def _new_state(self, problem: Problem, method: Any, save: Array, options: RunOptions, functions: dict[str, int]) -> RunState:
        state = StabilisedState(problem, method, save, options)
        state.join(functions)
        return state


class RosenbrockRun(WideRun):
    """A run of a Rosenbrock method that can be advanced piece by piece. options: as of odesim.integrate."""

    goes_on = True
    kind: ClassVar = "implicit"
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
        state.join(functions)
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
