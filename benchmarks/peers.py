"""Other libraries' solvers of many members, each the way its documentation shows for many runs, and everything compiled that can be.

heyoka: one batch integrator of 8 lanes, used again for the next 8 members. CyRK and numbalsoda (compiled_peers.py): called member by
member from a compiled loop with a C callback. diffrax: `diffeqsolve` under vmap and jit, adaptive steps for each member. scipy and CVODE
(by scikit-sundae): member by member on a numpy right-hand side, the ones that are not compiled. A library is imported when its solver is
made; one that is missing raises ModuleNotFoundError.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from compiled_peers import cyrk, numba_loop, numbalsoda
from measuring import Solver
from works import STEP, Work, jacobian, right_side, scipy_run

LANES = 8


@dataclass(frozen=True)
class Peer:
    """A library's way to solve a Work, how many members it is given at most, and at least where time decides: a vmapped loop needs many."""

    most: int
    make: Callable[[Work], Solver]
    least: int = 16


def make_solvers(work: Work, peers: Mapping[str, Peer], asked: list[str]) -> list[Solver]:
    """Solvers of the installed peers among `asked`, with members spread evenly over the work; others are named on stderr."""
    found = []
    for name in asked:
        stride = work.stride(peers[name].most)
        try:
            found.append(replace(peers[name].make(work.every(stride)), stride=stride))
        except ModuleNotFoundError as e:
            print(f"{name} left out: {e}", file=sys.stderr)
    return found


FOUND: list[float] = []
"""The times of the events of heyoka's last run; a callback in Python is what its users write."""


@cache
def heyoka_integrator(system: str, d: int, count: int, tolerance: float, events: bool = False) -> Any:
    """The compiled Taylor integrator of LANES members with `count` parameters. events: the times at which y is half of par are kept."""
    import heyoka as hy

    y = hy.make_vars(*(f"y{i}" for i in range(d)))
    if system == "joma":
        equations = [(y[i], (hy.par[i] - y[i]) * hy.exp(y[i] ** 2 / 2)) for i in range(d)]
    else:
        equations = list(zip(y, right_side(system, hy.exp, list)(hy.time, y, [hy.par[i] for i in range(count)]), strict=True))
    watched = [hy.nt_event_batch(y[i] - hy.par[i] / 2, lambda at, t, sign, lane: FOUND.append(t)) for i in range(d if events else 0)]
    return hy.taylor_adaptive_batch(equations, np.zeros((d, LANES)), pars=np.zeros((count, LANES)), tol=tolerance, nt_events=watched)


def heyoka(work: Work) -> Solver:
    """A Solver with heyoka's Taylor integrator, LANES members at a time."""
    import heyoka as hy

    count, d = len(work.start) // LANES * LANES, work.start.shape[1]
    integrator = heyoka_integrator(work.system, d, work.params.shape[1], work.tolerance, work.events)
    grid = np.repeat(work.times, LANES).reshape(-1, LANES)

    def run() -> tuple[np.ndarray, int]:
        values, failed = np.empty((count, len(work.times), d)), 0
        FOUND.clear()
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

    counts = {"counts": lambda found: {"events": len(FOUND) / count}} if work.events else {}
    return Solver("heyoka, batch of 8", count, run, **counts)


@cache
def diffrax_solve(system: str, method: str, end: float, times: tuple[float, ...], step: float | None) -> Any:
    """The jitted (values (N, T, D), whether each came to its end) of (start, params, rtol, atol)."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import diffrax as dfx
    import jax.numpy as jnp

    term = dfx.ODETerm(right_side(system, jnp.exp, jnp.stack))
    save = dfx.SaveAt(ts=jnp.asarray(times)) if len(times) > 1 else dfx.SaveAt(t1=True)

    def one(y0: Any, p: Any, rtol: Any, atol: Any) -> tuple[Any, Any]:
        control: Any = dfx.ConstantStepSize() if step else dfx.PIDController(rtol=rtol, atol=atol)
        more = {"saveat": save, "stepsize_controller": control, "max_steps": 4096, "throw": False}
        found = dfx.diffeqsolve(term, getattr(dfx, method)(), 0.0, end, step, y0, p, **more)
        return found.ys, found.result == dfx.RESULTS.successful

    return jax.jit(jax.vmap(one, in_axes=(0, 0, None, None)))


def diffrax(work: Work, method: str, step: float | None = None) -> Solver:
    """diffrax's method; members that are vmapped take their own steps, and wait for the slowest."""
    import jax.numpy as jnp

    solve = diffrax_solve(work.system, method, work.end, tuple(work.times), step)
    count, given = len(work.start), [jnp.asarray(a) for a in (work.start, work.params, work.tolerance, work.absolute)]

    def read(found: Any) -> tuple[np.ndarray, int]:
        return np.asarray(found[0]), count - int(np.sum(found[1]))

    return Solver(f"diffrax {method}", count, lambda: [part.block_until_ready() for part in solve(*given)], read)


def scipy(work: Work, method: str) -> Solver:
    """A Solver with scipy's solve_ivp."""

    def run() -> tuple[np.ndarray, int]:
        found = [scipy_run(work, i, method, work.tolerance, work.absolute) for i in range(len(work.start))]
        values = np.full((len(found), len(work.times), work.start.shape[1]), np.nan)
        for mine, f in zip(values, found, strict=True):
            mine[: len(f.t)] = f.y.T
        return values, sum(not f.success for f in found)

    return Solver(f"scipy {method}", len(work.start), run)


def cvode(work: Work) -> Solver:
    """A Solver with CVODE of SUNDIALS: BDF with the dense Jacobian."""
    from sksundae.cvode import CVODE

    right, slopes = right_side(work.system, np.exp, np.array), jacobian(work.system)
    times = np.concatenate([[0.0], work.times, [1.001 * work.end]])  # of two times it would keep its own steps between them

    def one(p: np.ndarray, start: np.ndarray) -> Any:
        def callback(t: float, y: np.ndarray, dy: np.ndarray) -> None:
            dy[:] = right(t, y, p)

        def matrix(t: float, y: np.ndarray, dy: np.ndarray, J: np.ndarray) -> None:
            J[:] = slopes(t, y, p)

        options = {"rtol": work.tolerance, "atol": work.absolute, "max_num_steps": 100_000, "jacfn": matrix}
        with np.errstate(over="ignore", invalid="ignore"):
            return CVODE(callback, method="BDF", **options).solve(times, start)

    def run() -> tuple[np.ndarray, int]:
        found = [one(p, start) for p, start in zip(work.params, work.start, strict=True)]
        values = np.full((len(found), len(work.times), work.start.shape[1]), np.nan)
        for mine, f in zip(values, found, strict=True):
            reached = min(len(f.t) - 1, len(mine))
            mine[:reached] = f.y[1 : reached + 1]
        return values, sum(not f.success for f in found)

    return Solver("CVODE BDF", len(work.start), run)


EXPLICIT = {
    "heyoka": Peer(100_000, heyoka),
    "CyRK Tsit5": Peer(10_000, partial(cyrk, method="Tsit5")),
    "CyRK DOP853": Peer(10_000, partial(cyrk, method="DOP853")),
    "numbalsoda DOP853": Peer(10_000, partial(numbalsoda, method="dop853")),
    "numbalsoda LSODA": Peer(10_000, partial(numbalsoda, method="lsoda")),
    "diffrax": Peer(20_000, partial(diffrax, method="Tsit5"), 5_000),  # more wait longer for the slowest one
    "scipy RK45": Peer(20, partial(scipy, method="RK45")),
    "scipy LSODA": Peer(20, partial(scipy, method="LSODA")),
}
FIXED = {"numba loop": Peer(2_000, numba_loop), "diffrax": Peer(20_000, partial(diffrax, method="Tsit5", step=STEP))}
STIFF = {
    "numbalsoda LSODA": Peer(10_000, partial(numbalsoda, method="lsoda")),
    "diffrax Kvaerno5": Peer(1_000, partial(diffrax, method="Kvaerno5"), 250),
    "diffrax Kvaerno3": Peer(1_000, partial(diffrax, method="Kvaerno3"), 250),
    "CVODE": Peer(100, cvode),
    "scipy LSODA": Peer(100, partial(scipy, method="LSODA")),
    "scipy BDF": Peer(20, partial(scipy, method="BDF")),
    "scipy Radau": Peer(20, partial(scipy, method="Radau")),
}
