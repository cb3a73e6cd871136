"""Other libraries' solvers of many members, each the way its documentation shows for many runs, and everything compiled that can be.

heyoka: one batch integrator of 8 lanes, used again for the next 8 members. CyRK: `nbsolve2_ivp` called from a compiled loop with a C
callback. diffrax: `diffeqsolve` under vmap and jit, adaptive steps for each member. scipy: RK45 member by member on a numpy right side,
the one that is not compiled. A library is imported when its solver is made; one that is missing raises ImportError.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

LANES = 8
CYRK_MEMBERS, DIFFRAX_MEMBERS, SCIPY_MEMBERS = 10_000, 20_000, 20  # diffrax: more wait longer for the slowest one


@dataclass(frozen=True)
class Work:
    """Members to integrate over [0, end]. params (N, P) and start (N, D) are each member's own; times (T,) are kept."""

    name: str
    system: str  # joma or lorenz
    tolerance: float
    end: float
    params: np.ndarray
    start: np.ndarray
    times: np.ndarray

    @property
    def grid(self) -> bool:
        """Whether more than the end is kept."""
        return len(self.times) > 1

    def stride(self, most: int) -> int:
        """How far apart members are of which about `most` spread evenly over all."""
        return max(1, len(self.start) // most)

    def every(self, stride: int) -> "Work":
        """Each stride-th member only: a range of the parameters is covered by few members as by all."""
        return replace(self, params=np.ascontiguousarray(self.params[::stride]), start=np.ascontiguousarray(self.start[::stride]))


@dataclass(frozen=True)
class Solver:
    """run() integrates `members` of a Work, each stride-th from the first, and is what is timed; read() of what it returns: values
    (members, T, D), and how many members did not come to their end."""

    name: str
    members: int
    stride: int
    run: Callable[[], Any]
    read: Callable[[Any], tuple[np.ndarray, int]] = lambda found: found


def right_side(system: str, exp: Callable[[Any], Any], stack: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """f(t, y, p) of arrays (D,), for a library's exp and its way to make an array of a list."""

    def joma(t: Any, v: Any, mu: Any) -> Any:
        return (mu - v) * exp(v * v / 2)

    def lorenz(t: Any, y: Any, rho: Any) -> Any:
        return stack([10.0 * (y[1] - y[0]), y[0] * (rho[0] - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    return {"joma": joma, "lorenz": lorenz}[system]


def heyoka(work: Work) -> Solver:
    """heyoka's Taylor integrator, LANES members at a time."""
    import heyoka as hy

    count, d = len(work.start) // LANES * LANES, work.start.shape[1]
    y = hy.make_vars(*(f"y{i}" for i in range(d)))
    if work.system == "joma":
        equations = [(y[i], (hy.par[i] - y[i]) * hy.exp(y[i] ** 2 / 2)) for i in range(d)]
    else:
        equations = list(zip(y, right_side("lorenz", hy.exp, list)(hy.time, y, [hy.par[0]]), strict=True))
    blank = np.zeros((work.params.shape[1], LANES))
    integrator = hy.taylor_adaptive_batch(equations, np.zeros((d, LANES)), pars=blank, tol=work.tolerance)
    grid = np.repeat(work.times, LANES).reshape(-1, LANES)

    def run() -> tuple[np.ndarray, int]:
        values, failed = np.empty((count, len(work.times), d)), 0
        for a in range(0, count, LANES):
            members = slice(a, a + LANES)
            integrator.state[:], integrator.pars[:] = work.start[members].T, work.params[members].T
            integrator.set_time(0.0)
            if work.grid:
                values[members] = integrator.propagate_grid(grid)[1].transpose(2, 0, 1)
            else:
                integrator.propagate_until(work.end)
                values[members, 0] = integrator.state.T
            failed += sum(outcome[0] != hy.taylor_outcome.time_limit for outcome in integrator.propagate_res)
        return values, failed

    return Solver("heyoka, batch of 8", count, 1, run)


def cyrk(work: Work, method: str) -> Solver:
    """CyRK's C++ solver, called member by member from a compiled loop."""
    import numba as nb
    from CyRK import cyjit, nbsolve2_ivp

    stride, exp = work.stride(CYRK_MEMBERS), math.exp
    work = work.every(stride)
    count, d = work.start.shape

    def joma(dy, t, y, mu):  # type: ignore[no-untyped-def]
        for i in range(d):
            dy[i] = (mu[i] - y[i]) * exp(y[i] * y[i] / 2)

    def lorenz(dy, t, y, rho):  # type: ignore[no-untyped-def]
        dy[0] = 10.0 * (y[1] - y[0])
        dy[1] = y[0] * (rho[0] - y[2]) - y[1]
        dy[2] = y[0] * y[1] - 8 / 3 * y[2]

    callback = cyjit({"joma": joma, "lorenz": lorenz}[work.system])

    @nb.njit
    def loop(address, params, start, end, times, tolerance, values):  # type: ignore[no-untyped-def]
        failed = 0
        for i in range(len(values)):
            found = nbsolve2_ivp(address, (0.0, end), start[i], method, times, False, params[i], tolerance, tolerance)
            if found.success:
                y = found.y
                for k in range(values.shape[1]):
                    values[i, k] = y[:, y.shape[1] - values.shape[1] + k]
            else:
                failed, values[i] = failed + 1, np.nan
            found.free()
        return failed

    def run() -> tuple[np.ndarray, int]:
        values = np.empty((count, len(work.times), d))
        kept = work.times if work.grid else np.empty(0)
        return values, loop(callback.address, work.params, work.start, work.end, kept, work.tolerance, values)

    return Solver(f"CyRK {method}", count, stride, run)


def diffrax(work: Work) -> Solver:
    """diffrax's Tsit5; members that are vmapped take their own steps, and wait for the slowest."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import diffrax as dfx
    import jax.numpy as jnp

    stride = work.stride(DIFFRAX_MEMBERS)
    work = work.every(stride)
    count = len(work.start)
    term = dfx.ODETerm(right_side(work.system, jnp.exp, jnp.stack))
    control = dfx.PIDController(rtol=work.tolerance, atol=work.tolerance)
    save = dfx.SaveAt(ts=jnp.asarray(work.times)) if work.grid else dfx.SaveAt(t1=True)

    def one(y0: Any, p: Any) -> tuple[Any, Any]:
        found = dfx.diffeqsolve(
            term, dfx.Tsit5(), 0.0, work.end, None, y0, p, saveat=save, stepsize_controller=control, max_steps=4096, throw=False
        )
        return found.ys, found.result == dfx.RESULTS.successful

    solve = jax.jit(jax.vmap(one))
    start, params = jnp.asarray(work.start), jnp.asarray(work.params)

    def read(found: Any) -> tuple[np.ndarray, int]:
        return np.asarray(found[0]), count - int(np.sum(found[1]))

    return Solver("diffrax Tsit5", count, stride, lambda: jax.block_until_ready(solve(start, params)), read)


def scipy_run(work: Work, i: int, method: str, tolerance: float) -> Any:
    """scipy's solution of member i at the times kept."""
    from scipy.integrate import solve_ivp

    right, p = right_side(work.system, np.exp, np.array), work.params[i]
    options: dict[str, Any] = {"method": method, "t_eval": work.times, "rtol": tolerance, "atol": tolerance}
    with np.errstate(over="ignore", invalid="ignore"):  # a trial step that is too long is rejected
        return solve_ivp(lambda t, y: right(t, y, p), (0.0, work.end), work.start[i], **options)


def scipy(work: Work) -> Solver:
    """scipy's RK45, of a few members."""
    stride = work.stride(SCIPY_MEMBERS)
    work = work.every(stride)
    count = len(work.start)

    def run() -> tuple[np.ndarray, int]:
        found = [scipy_run(work, i, "RK45", work.tolerance) for i in range(count)]
        return np.array([f.y.T for f in found]), sum(not f.success for f in found)

    return Solver("scipy RK45", count, stride, run)


PEERS: dict[str, Callable[[Work], Solver]] = {
    "heyoka": heyoka,
    "CyRK Tsit5": lambda work: cyrk(work, "Tsit5"),
    "CyRK DOP853": lambda work: cyrk(work, "DOP853"),
    "diffrax": diffrax,
    "scipy": scipy,
}


def peer_versions() -> dict[str, str]:
    """Versions of the libraries that are there."""
    found = {}
    for name in ("heyoka", "CyRK", "diffrax", "jax", "scipy", "numba", "numpy"):
        try:
            found[name] = version(name)
        except ImportError:
            continue
    return found
