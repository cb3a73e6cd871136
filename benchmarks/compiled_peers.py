"""CyRK, numbalsoda and a plain loop: solvers of many members, called from a loop and with a right-hand side that numba compiles."""

import math
from functools import cache
from typing import Any

import numba as nb
import numpy as np
from measuring import Solver
from works import STEP, Work


@cache
def derivative(system: str, d: int) -> Any:
    """The right-hand side compiled by numba: f(dy, y, p) of anything that has elements."""
    exp = math.exp

    def joma(dy, y, mu):  # type: ignore[no-untyped-def]
        for i in range(d):
            dy[i] = (mu[i] - y[i]) * exp(y[i] * y[i] / 2)

    def lorenz(dy, y, rho):  # type: ignore[no-untyped-def]
        dy[0] = 10.0 * (y[1] - y[0])
        dy[1] = y[0] * (rho[0] - y[2]) - y[1]
        dy[2] = y[0] * y[1] - 8 / 3 * y[2]

    def robertson(dy, y, k):  # type: ignore[no-untyped-def]
        first, second, third = k[0] * y[0], k[1] * y[1] * y[1], k[2] * y[1] * y[2]
        dy[0] = third - first
        dy[1] = first - second - third
        dy[2] = second

    return nb.njit(inline="always")({"joma": joma, "lorenz": lorenz, "robertson": robertson}[system])


@cache
def cyrk_parts(system: str, d: int, method: str) -> tuple[Any, Any]:
    """The C callback and the compiled loop over members."""
    from CyRK import cyjit, nbsolve2_ivp

    inner = derivative(system, d)

    @cyjit
    def callback(dy, t, y, p):  # type: ignore[no-untyped-def]
        inner(dy, y, p)

    @nb.njit
    def loop(address, params, start, end, times, rtol, atol, values):  # type: ignore[no-untyped-def]
        failed = 0
        for i in range(len(values)):
            found = nbsolve2_ivp(address, (0.0, end), start[i], method, times, False, params[i], rtol, atol)
            if found.success:
                y = found.y
                for k in range(values.shape[1]):
                    values[i, k] = y[:, y.shape[1] - values.shape[1] + k]
            else:
                failed, values[i] = failed + 1, np.nan
            found.free()
        return failed

    return callback, loop


def cyrk(work: Work, method: str) -> Solver:
    """A Solver with CyRK's C++ integrator."""
    (count, d), shape = work.start.shape, (len(work.start), len(work.times), work.start.shape[1])
    callback, loop = cyrk_parts(work.system, d, method)
    kept = work.times if work.grid else np.empty(0)

    def run() -> tuple[np.ndarray, int]:
        values = np.empty(shape)
        return values, loop(callback.address, work.params, work.start, work.end, kept, work.tolerance, work.absolute, values)

    return Solver(f"CyRK {method}", count, run)


@cache
def numbalsoda_parts(system: str, d: int, method: str) -> tuple[Any, Any]:
    """The C callback and the compiled loop over members."""
    import numbalsoda as ns

    inner, solve = derivative(system, d), getattr(ns, method)

    @nb.cfunc(ns.lsoda_sig)
    def callback(t, y, dy, p):  # type: ignore[no-untyped-def]
        inner(dy, y, p)

    @nb.njit
    def loop(address, params, start, times, rtol, atol, values):  # type: ignore[no-untyped-def]
        failed = 0
        for i in range(len(values)):
            found, success = solve(address, start[i], times, params[i], rtol, atol, 100_000)
            values[i] = found[len(times) - values.shape[1] :]
            if not success:
                failed, values[i] = failed + 1, np.nan
        return failed

    return callback, loop


def numbalsoda(work: Work, method: str) -> Solver:
    """A Solver with numbalsoda's lsoda or dop853."""
    shape = (len(work.start), len(work.times), work.start.shape[1])
    callback, loop = numbalsoda_parts(work.system, shape[2], method)
    times = work.times if work.times[0] == 0 else np.append(0.0, work.times)

    def run() -> tuple[np.ndarray, int]:
        values = np.empty(shape)
        return values, loop(callback.address, work.params, work.start, times, work.tolerance, work.absolute, values)

    return Solver(f"numbalsoda {method.upper()}", shape[0], run)


@cache
def numba_rk4(system: str, d: int) -> Any:
    """The compiled loop that a user writes: classical Runge-Kutta, member by member."""
    inner = derivative(system, d)

    @nb.njit(fastmath={"contract"}, error_model="numpy")
    def loop(params, start, h, steps, values):  # type: ignore[no-untyped-def]
        k1, k2, k3, k4, y, w = np.empty((6, d))
        for i in range(len(start)):
            y[:] = start[i]
            for _ in range(steps):
                inner(k1, y, params[i])
                for j in range(d):
                    w[j] = y[j] + h / 2 * k1[j]
                inner(k2, w, params[i])
                for j in range(d):
                    w[j] = y[j] + h / 2 * k2[j]
                inner(k3, w, params[i])
                for j in range(d):
                    w[j] = y[j] + h * k3[j]
                inner(k4, w, params[i])
                for j in range(d):
                    y[j] += h / 6 * (k1[j] + 2 * (k2[j] + k3[j]) + k4[j])
            values[i, 0] = y

    return loop


def numba_loop(work: Work) -> Solver:
    """A Solver with numba_rk4 in steps of STEP."""
    loop = numba_rk4(work.system, work.start.shape[1])

    def run() -> tuple[np.ndarray, int]:
        values = np.empty((len(work.start), 1, work.start.shape[1]))
        loop(work.params, work.start, STEP, round(work.end / STEP), values)
        return values, 0

    return Solver("numba loop, rk4", len(work.start), run)
