"""The linear systems of a stiff run, as functions that its driver calls by address: of Python around LAPACK, or compiled elimination."""

import ctypes
from contextlib import suppress
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np

from odesim.base.arrays import Arena, Array
from odesim.base.callbacks import VALUES, Callbacks
from odesim.base.device import gemm_address
from odesim.base.memo import IdentityKey, Memo
from odesim.ir.fronts import Entries
from odesim.ir.linear_systems import Jacobian, Krylov, Solver, UnsolvableError
from odesim.stepper import front_solver
from odesim.stepper.problem import ByProducts, CompiledSlopes, Derivatives
from odesim.stepper.table import FRONTAL, constants, new_table, places

BLAS_FRONT = 100
"""Unknowns of a front from which BLAS multiplies."""
_I, _F = ctypes.c_int64, ctypes.c_double
TYPES: dict[str, Any] = {
    "LINEAR": VALUES, "ALONG": ctypes.CFUNCTYPE(None, _I, _I, _I, _I),
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


class ArraySystems(Callbacks):
    """Linear systems (1 - g J) x = b as C functions that Python answers, by LAPACK and the structure of J.

    A Jacobian in the driver's memory is a number, that of its Linearization. After an exception every further answer is that there is
    none; check() raises it. least (n,): the size from which components count.
    """

    size = 1
    uses_blas = True
    answers: ClassVar[tuple[str, ...]] = ("LINEAR", "ALONG", "ELIMINATE", "DRIFT", "SOLVE")

    def __init__(self, n: int, derivatives: Derivatives, least: Array) -> None:
        super().__init__()
        self.n, self.derivatives, self.least = n, derivatives, least
        self._points: dict[int, Linearization] = {}
        self._solver: Solver | None = None
        self.functions = {name: self.address(getattr(self, f"_{name.lower()}"), TYPES[name]) for name in self.answers}

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
        self.size, self.by_python, self.compiled = entries.count + 2 + n, 0, compiled
        fixed, arena = _FIXED(IdentityKey(entries), lambda: without_numbers(entries))
        table = fixed.copy()
        self.table, self._memory = table.view(FRONTAL), arena.memory(table)
        whole, reals = (
            np.ndarray(size, kind, self._memory, arena.starts[places(FRONTAL)[name]])
            for name, size, kind in (("WHOLE", WHOLE, np.int64), ("REALS", entries.unknowns + 2, np.float64))
        )
        whole[:] = 0, 0, 0, 0, ord("N"), 0
        reals[:2], reals[2 : n + 2], reals[n + 2 :] = (-1.0, 1.0), least, np.min(least, initial=1.0)
        numbers = {"PIVOTED": self.functions["ELIMINATE"], "SOLVE_PIVOTED": self.functions["SOLVE"]}
        if compiled.slopes is not None:
            numbers |= {"SLOPES": compiled.slopes.events, "SLOPES_TABLE": compiled.slopes.table}
        if compiled.time is not None:
            numbers |= {"TIME": compiled.time.events, "TIME_TABLE": compiled.time.table}
        for name, value in numbers.items():
            table[places(FRONTAL)[name]] = value
        self.uses_blas = bool(table[places(FRONTAL)["GEMM"]])
        addresses = solver_functions()
        self.functions = {name.upper(): address for name, address in addresses.items()}
        self.functions |= {"SYSTEMS": self.table.ctypes.data, "DRIFT": addresses["drift"] if compiled.time is not None else 0}

    def _eliminate(self, _: int, J: int, g: float, truth: int) -> None:
        self.by_python += 1
        self._make_solver(self.entries.at(_numbers(J, self.entries.count + 1)), g, truth)


_FIXED: Memo[tuple[Array, Arena]] = Memo(16)
WHOLE = 6
"""Whole numbers that BLAS reads."""


def without_numbers(entries: Entries) -> tuple[Array, Arena]:
    """What the numbers of a run do not change of the table of its elimination, and the places of its memory. It has entries' addresses.

    As whole numbers: a copy of a type with 38 names takes 90 times as long.
    """
    fronts, unknowns, layout = entries.fronts, entries.unknowns, entries.layout
    most = int(np.max(fronts.sizes, initial=1))
    sizes = {
        "VALUES": len(layout["FACTOR"]), "FACTORS": fronts.numbers, "FRONT": most**2, "LEFT": int(fronts.first_left[-1]), "X": unknowns,
        "SIZES": 2 * unknowns, "LOCAL": most, "PIVOTS": len(fronts.rows), "WHOLE": WHOLE, "REALS": unknowns + 2,
    }  # fmt: skip
    fixed = new_table(
        FRONTAL, STATES=entries.n, UNKNOWNS=unknowns, COUNT=entries.count, FRONTS=len(fronts.widths), ENTRIES=sizes["VALUES"],
        TANGENTS=len(entries.tangent), GEMM=gemm_address("float64") if most > BLAS_FRONT else 0,
        **{name: a.ctypes.data for name, a in layout.items()},
    )  # fmt: skip
    return fixed.view(np.int64), Arena({places(FRONTAL)[name]: 8 * size for name, size in sizes.items()})


@cache
def solver_functions() -> dict[str, int]:
    """The addresses of the functions of odesim.stepper.front_solver, compiled once or loaded from the cache."""
    from odesim.targets.cache import sources_text
    from odesim.targets.native import load_native

    signatures = front_solver.SIGNATURES
    lines = [f"{name} = njit('{signature}', fastmath={{'contract'}})({name})" for name, signature in signatures.items()]
    text = sources_text(("odesim.stepper.front_solver",))
    return load_native("\n".join([text, constants(FRONTAL), *lines, ""]), "fronts", list(signatures), once=True)
