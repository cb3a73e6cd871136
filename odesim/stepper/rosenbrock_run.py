"""One run of a Rosenbrock method: what its driver's arrays hold beside those of an explicit one."""

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from odesim.base.arrays import Array
from odesim.base.device import few_blas_threads, gemm_address
from odesim.base.errors import SolveError
from odesim.base.options import RunOptions
from odesim.ir.invariants import LinearInvariant, exact_sums
from odesim.ir.linear_systems import Jacobian, Krylov, Solver, UnsolvableError
from odesim.stepper import control, front_solver
from odesim.stepper.memory import RunState
from odesim.stepper.one_system import implicit_driver
from odesim.stepper.problem import ByProducts, CompiledSlopes, Derivatives, Problem, StiffRun
from odesim.stepper.readers import CHECKED
from odesim.stepper.rosenbrock_methods import ROSENBROCK
from odesim.stepper.table import FRONTAL, constants, new_table
from odesim.stepper.tableau import Rosenbrock
from odesim.stepper.wide_run import WideRun, WideState

# The linear systems of a stiff run, as functions that its driver calls by address: of Python around LAPACK, or compiled elimination.

BLAS_FRONT = 100
"""Unknowns of a front from which BLAS multiplies."""
_I, _F = ctypes.c_int64, ctypes.c_double
TYPES: dict[str, Any] = {
    "LINEAR": ctypes.CFUNCTYPE(None, _I, _F, _I, _I), "ALONG": ctypes.CFUNCTYPE(None, _I, _I, _I, _I),
    "ELIMINATE": ctypes.CFUNCTYPE(None, _I, _I, _F, _I), "DRIFT": ctypes.CFUNCTYPE(None, _I, _I, _F, _I),
    "SOLVE": ctypes.CFUNCTYPE(None, _I, _I, _F, _I, _I),
}  # fmt: skip


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
    none; check() raises it. least (n,): the size from which components count.
    """

    size = 1
    uses_blas = True
    answers: ClassVar[tuple[str, ...]] = ("LINEAR", "ALONG", "ELIMINATE", "DRIFT", "SOLVE")

    def __init__(self, n: int, derivatives: Derivatives, least: Array) -> None:
        self.n, self.derivatives, self.least = n, derivatives, least
        self._points: dict[int, Linearization] = {}
        self._solver: Solver | None = None
        self._failure: BaseException | None = None
        self._alive: list[Any] = []
        self.functions = {name: self._function(getattr(self, f"_{name.lower()}"), TYPES[name]) for name in self.answers}

    def check(self) -> None:
        """Raises the exception of a function, once."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error

    def _function(self, f: Callable[..., None], kind: Any) -> int:
        def called(*arguments: Any) -> None:
            if self._failure is None:
                try:
                    with np.errstate(all="ignore"):
                        f(*arguments)
                except BaseException as error:  # ctypes can only drop it
                    self._failure = error

        function = kind(called)
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


class ProductSystems(ArraySystems):
    """Linear systems by products with J (Krylov); by its matrix from the first that these do not solve, where it has one."""

    def __init__(self, n: int, derivatives: ByProducts, least: Array, rtol: float) -> None:
        super().__init__(n, derivatives, least)
        self.derivatives: ByProducts = derivatives
        self.rtol, self.by_matrix = rtol, False

    def _eliminate(self, _: int, J: int, g: float, truth: int) -> None:
        point = self._points[J]
        if self.by_matrix:
            self._make_solver(self.derivatives.matrix(point.t, point.y), g, truth)
        else:
            self._solver = Krylov(point.jacobian, 1 / g, self.least + self.rtol * np.abs(point.y))
            _I.from_address(truth).value = 1

    def _solve(self, _: int, J: int, g: float, b: int, x: int) -> None:
        fair = bool(np.isfinite(self._row(b)).all())
        super()._solve(_, J, g, b, x)
        self.by_matrix |= fair and self.derivatives.has_matrix and bool(np.isnan(self._row(x)).any())


class FrontSystems(ArraySystems):
    """Linear systems by compiled elimination (front_solver.py), with SuperLU behind it where its pivots do not suffice."""

    answers: ClassVar = ("ELIMINATE", "SOLVE")

    def __init__(self, n: int, derivatives: Derivatives, least: Array, compiled: CompiledSlopes) -> None:
        super().__init__(n, derivatives, least)
        entries = self.entries = compiled.entries
        self.size, self.by_python, fronts = entries.count + 2 + n, 0, entries.fronts
        most, unknowns, count = int(np.max(fronts.sizes, initial=1)), entries.unknowns, len(fronts.widths)
        sizes = {
            "VALUES": len(entries.layout["FACTOR"]), "FACTORS": fronts.numbers, "FRONT": most**2, "LEFT": count + fronts.left_over,
            "X": unknowns, "SIZES": 2 * unknowns, "LOCAL": most, "PIVOTS": len(fronts.rows),
        }  # fmt: skip
        self._arrays = {name: np.empty(size) for name, size in sizes.items()}
        reals = [-1.0, 1.0, *least, *np.full(entries.unknowns - n, np.min(least, initial=1.0))]
        self._arrays |= {"WHOLE": np.array([0, 0, 0, 0, ord("N"), 0]), "REALS": np.array(reals), **entries.layout}
        numbers = {name: a.ctypes.data for name, a in self._arrays.items()}
        numbers["LEFT"] += 8 * count
        numbers |= {"STATES": n, "UNKNOWNS": unknowns, "COUNT": entries.count, "FRONTS": count, "ENTRIES": sizes["VALUES"]}
        numbers["TANGENTS"] = len(entries.tangent)
        if compiled.slopes is not None:
            numbers |= {"SLOPES": compiled.slopes.events, "SLOPES_TABLE": compiled.slopes.table}
        if compiled.time is not None:
            numbers |= {"TIME": compiled.time.events, "TIME_TABLE": compiled.time.table}
        self.uses_blas = most > BLAS_FRONT
        numbers["GEMM"] = gemm_address("float64") if self.uses_blas else 0
        numbers |= {"PIVOTED": self.functions["ELIMINATE"], "SOLVE_PIVOTED": self.functions["SOLVE"]}
        self.table, self.compiled = new_table(FRONTAL, **numbers), compiled
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
    lines = [f"{name} = njit('{signature}', fastmath={{'contract'}})({name})" for name, signature in signatures.items()]
    text = sources_text(("odesim.stepper.front_solver",))
    return load_native("\n".join([text, constants(FRONTAL), *lines, ""]), "fronts", list(signatures), once=True)


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
