"""One run of a Rosenbrock method: the driver's arrays, and its linear systems by functions of Python where none is compiled."""

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import few_blas_threads, gemm_address
from odesim.base.errors import SolveError
from odesim.base.options import RunOptions
from odesim.ir.linear_systems import Jacobian, Solver, UnsolvableError
from odesim.stepper import control, front_solver
from odesim.stepper.conserved import conserved
from odesim.stepper.drive import ExplicitRun
from odesim.stepper.memory import RunState
from odesim.stepper.one_implicit import implicit_driver
from odesim.stepper.problem import CompiledSlopes, Derivatives, NoLanesError, Problem, Raw, StiffRun
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.statements import CHECKED
from odesim.stepper.table import FRONTAL, constants, new_table

BLAS_FRONT = 100
"""Unknowns of a front from which BLAS multiplies."""
_I, _F = ctypes.c_int64, ctypes.c_double


def make_run(problem: Problem, name: str, save: Array | None, *, strict: bool, **options: Any) -> StiffRun:
    """A run of a stiff method, not yet started: in lanes where the system is small, else a system by itself.

    strict: with the same bits on every machine, unlike LAPACK. Raises SolveError.
    """
    if strict and problem.lanes is None:
        raise SolveError(f"{name} has a strict mode only for a right-hand side that numba compiles")
    if problem.lanes is not None:
        try:
            return problem.lanes(problem, name, save, **options)
        except NoLanesError:
            if strict:
                raise
    return RosenbrockRun(problem, ROSENBROCK[name], save, **options)


class Linearization:
    """The Jacobian J and df/dt at a point (t, y), computed when first asked for: a step that is rejected or the last one needs none."""

    def __init__(self, derivatives: Derivatives, t: float, y: Array) -> None:
        self.derivatives, self.t, self.y = derivatives, t, y

    @cached_property
    def jacobian(self) -> Any:
        return self.derivatives.jacobian(self.t, self.y)

    @cached_property
    def slope(self) -> Array | None:
        """df/dt (n,)."""
        return self.derivatives.time_slope(self.t, self.y)


def _numbers(address: int, count: int) -> Array:
    """The array (count,) at an address."""
    return np.ctypeslib.as_array((_F * count).from_address(address)) if count else np.empty(0)


class ArraySystems:
    """Linear systems (1 - g J) x = b as C functions that Python answers, by LAPACK and the structure of J.

    A Jacobian in the driver's memory is a number, that of its Linearization. After an exception every further answer is that there is
    none; check() raises it. least: the size from which components count.
    """

    size = 1

    def __init__(self, n: int, derivatives: Derivatives, least: float) -> None:
        self.n, self.derivatives, self.least = n, derivatives, least
        self._points: dict[int, Linearization] = {}
        self._solver: Solver | None = None
        self._failure: BaseException | None = None
        self._alive: list[Any] = []
        self.functions = {
            "LINEAR": self._function(self._linear, _I, _F, _I, _I),
            "ALONG": self._function(self._along, _I, _I, _I, _I),
            "ELIMINATE": self._function(self._eliminate, _I, _I, _F, _I),
            "DRIFT": self._function(self._drift, _I, _I, _F, _I),
            "SOLVE": self._function(self._solve, _I, _I, _F, _I, _I),
        }

    def check(self) -> None:
        """Raises the exception of a function, once."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error

    def _function(self, f: Callable[..., None], *kinds: Any) -> int:
        def called(*arguments: Any) -> None:
            if self._failure is None:
                try:
                    with np.errstate(all="ignore"):
                        f(*arguments)
                except BaseException as error:  # ctypes can only drop it
                    self._failure = error

        function = ctypes.CFUNCTYPE(None, *kinds)(called)
        self._alive.append(function)
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def _row(self, address: int) -> Array:
        return _numbers(address, self.n)

    def _linear(self, _: int, t: float, y: int, J: int) -> None:
        self._points[J] = Linearization(self.derivatives, t, self._row(y).copy())

    def _along(self, _: int, J: int, f: int, target: int) -> None:
        point = self._points[J]
        self._row(target)[:] = point.jacobian @ self._row(f) + (0.0 if point.slope is None else point.slope)

    def _eliminate(self, _: int, J: int, g: float, truth: int) -> None:
        self._make_solver(self._points[J].jacobian, g, truth)

    def _make_solver(self, J: Jacobian, g: float, truth: int) -> None:
        good = _I.from_address(truth)
        good.value = 0
        with suppress(UnsolvableError):
            self._solver = J.solver(1 / g, self.least)
            good.value = 1

    def _drift(self, _: int, J: int, g_later: float, target: int) -> None:
        slope = self._points[J].slope
        if slope is not None:
            self._row(target)[:] += g_later * slope

    def _solve(self, _: int, __: int, g: float, b: int, x: int) -> None:
        assert self._solver is not None
        try:
            self._row(x)[:] = self._solver(self._row(b) / g)
        except UnsolvableError:
            self._row(x)[:] = np.nan


class FrontSystems(ArraySystems):
    """Linear systems by compiled elimination (front_solver.py), with SuperLU behind it where its pivots do not suffice."""

    def __init__(self, n: int, derivatives: Derivatives, least: float, compiled: CompiledSlopes) -> None:
        super().__init__(n, derivatives, least)
        self.entries, entries = compiled.entries, compiled.entries
        self.size, fronts, self.by_python = entries.count + 2 + n, entries.fronts, 0
        rows, columns = (np.concatenate([a, np.arange(n)]) for a in (entries.rows, entries.columns))
        factors, sources = np.concatenate([entries.factors, np.ones(n)]), np.concatenate([entries.sources, np.full(n, entries.count + 1)])
        front, place = fronts.places_of(rows, columns)
        order = np.argsort(front, kind="stable")
        turned = np.empty(len(order), np.int64)
        turned[order] = np.arange(len(order))
        f, w, most = fronts.sizes, fronts.widths, int(np.max(fronts.sizes, initial=1))
        count, unknowns = len(w), entries.unknowns
        arrays = {
            "FACTOR": factors[order], "SOURCE": sources[order], "ROW": rows[order], "COLUMN": columns[order], "PLACE": place[order],
            "FIRST_ENTRY": np.searchsorted(front[order], np.arange(count + 1)), "TANGENT": turned[entries.tangent],
            "FIRST_ROW": fronts.first, "ROWS": fronts.rows, "WIDTHS": w, "PARENTS": fronts.parents, "PLACES": fronts.places,
            "FIRST_FACTOR": np.concatenate([[0], np.cumsum(w * (2 * f - w))]), "PIVOTS": np.empty(len(fronts.rows), np.int64),
            "VALUES": np.empty(len(order)), "FACTORS": np.empty(fronts.numbers), "FRONT": np.empty(most**2),
            "LEFT": np.empty(count + fronts.left_over), "X": np.zeros(unknowns), "SIZES": np.empty(2 * unknowns), "LOCAL": np.empty(most),
            "WHOLE": np.array([0, 0, 0, 0, ord("N"), 0]), "REALS": np.array([-1.0, 1.0, least]),
        }  # fmt: skip
        self._arrays = {name: np.ascontiguousarray(a, a.dtype if a.dtype == np.float64 else np.int64) for name, a in arrays.items()}
        numbers = {name: a.ctypes.data for name, a in self._arrays.items()}
        numbers["LEFT"] += 8 * count
        numbers |= {"STATES": n, "UNKNOWNS": unknowns, "COUNT": entries.count, "FRONTS": count, "ENTRIES": len(order)}
        numbers |= {"TANGENTS": len(entries.tangent), "SLOPES": compiled.slopes.events, "SLOPES_TABLE": compiled.slopes.table}
        if compiled.time is not None:
            numbers |= {"TIME": compiled.time.events, "TIME_TABLE": compiled.time.table}
        if fronts.sizes.max(initial=0) > BLAS_FRONT:
            numbers["GEMM"] = gemm_address("float64")
        numbers |= {"PIVOTED": self.functions["ELIMINATE"], "SOLVE_PIVOTED": self.functions["SOLVE"]}
        self.table = new_table(FRONTAL, **numbers)
        self._kept = compiled
        addresses = solver_functions()
        self.functions = {name.upper(): address for name, address in addresses.items()}
        self.functions |= {"SYSTEMS": self.table.ctypes.data, "DRIFT": addresses["drift"] if compiled.time is not None else 0}

    def _eliminate(self, _: int, J: int, g: float, truth: int) -> None:
        self.by_python += 1
        self._make_solver(self.entries.at(_numbers(J, self.entries.count + 1)), g, truth)


@cache
def solver_functions() -> dict[str, int]:
    """The addresses of the functions of odesim.stepper.front_solver, compiled once or loaded from the cache."""
    from odesim.targets.cache import sources_text
    from odesim.targets.native import load_native

    signatures = front_solver.SIGNATURES
    options = "error_model='numpy', fastmath={'contract'}, no_cpython_wrapper=True, no_cfunc_wrapper=True"
    lines = [f"{name} = njit('{signature}', {options})({name})" for name, signature in signatures.items()]
    text = sources_text(("odesim.runtime.memory", "odesim.stepper.front_solver"))
    return load_native("\n".join([text, constants(FRONTAL), *lines, ""]), "fronts", list(signatures))


class StiffState(RunState):
    """The state of a run of a Rosenbrock method: all rows are float64."""

    rows: ClassVar = 10
    dtype: ClassVar = "float64"
    driver = staticmethod(implicit_driver)

    def _fill_method(self) -> None:
        m, at, p = self.method, self.at, self.method.error_order
        self._tables = tables = {
            "A": m.A, "C": m.alpha, "P": m.P, "DRIFTS": m.d, "TO_SOLVE": m.gamma * m.C,
            "CHECKS": np.stack([m.dense(CHECKED), m.gamma * m.dense_slope(CHECKED)]),
        }  # fmt: skip
        for slot, table in tables.items():
            tables[slot] = np.ascontiguousarray(table)
            at[slot] = tables[slot].ctypes.data
        self["GAMMA"], self["PART"], self["MOST_LESS"] = m.gamma, 1 / max(len(self.problem.y0), 1), control.LEAST_OLD ** (-1 / p)
        self["START_POWER"], self["ERROR_POWER"] = 1 / p, -0.5 / p
        self["SHRINK"], self["GROW"] = control.STIFF_SHRINK, control.STIFF_GROW

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
        derivatives = problem.linear()
        state = StiffState(problem, method, save, options)
        compiled = problem.slopes()
        if compiled is None:
            derivatives.prepare()
        arguments = len(problem.y0), derivatives, state["atol"]
        self.systems = ArraySystems(*arguments) if compiled is None else FrontSystems(*arguments, compiled)
        state.attach(self.systems, derivatives, functions)
        return state

    def _blas(self) -> AbstractContextManager[Any]:
        return few_blas_threads(len(self.problem.y0))

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
