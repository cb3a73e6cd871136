"""Members with noise: 10^5 (or 10^6) paths of an Ornstein-Uhlenbeck process, 1000 steps each, against what one would write by hand.

`python benchmarks/noise.py [members]` prints nanoseconds a member and step of CPU time, the best of five turns, all in one process. The
loops by hand draw from one generator for all members: they have no paths of their own, nothing is saved, and no other seed of a member.
diffrax and JiTCSDE are measured where they are installed.
"""

import sys
import time
from collections.abc import Callable
from contextlib import chdir
from importlib.util import find_spec
from tempfile import gettempdir
from typing import Any

import numba
import numpy as np
from sympy import Symbol

import odesim
from odesim.symbolic import Source, System

STEPS, H = 1000, 0.001
x, B = Symbol("x"), Symbol("B")
OU = System("bench.ou", Source("by_hand", ""), {}, {x: 1.5 * (0.4 - x)}, (), {x: 2.0}, noise={x: {B: 0.7}})


@numba.njit  # type: ignore[untyped-decorator]
def by_hand(generator: Any, members: int, out: Any) -> None:
    """numba's own loop with the fastest generator of numpy."""
    for i in range(members):
        y = 2.0
        for _ in range(STEPS):
            y += 1.5 * (0.4 - y) * H + 0.7 * np.sqrt(H) * generator.standard_normal()
        out[i] = y


@numba.njit  # type: ignore[untyped-decorator]
def as_people_write(members: int, out: Any) -> None:
    """The same with np.random.normal."""
    for i in range(members):
        y = 2.0
        for _ in range(STEPS):
            y += 1.5 * (0.4 - y) * H + 0.7 * np.sqrt(H) * np.random.normal()
        out[i] = y


def by_diffrax(members: int) -> Callable[[], Any]:
    """diffrax's Euler with its unsafe (fastest) Brownian path, all members in one vmap."""
    import diffrax as dx
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def one(key: Any) -> Any:
        path = dx.UnsafeBrownianPath(shape=(), key=key)
        terms = dx.MultiTerm(dx.ODETerm(lambda t, y, a: 1.5 * (0.4 - y)), dx.ControlTerm(lambda t, y, a: 0.7, path))
        return dx.diffeqsolve(terms, dx.Euler(), 0.0, 1.0, H, jnp.array(2.0), max_steps=STEPS + 1, adjoint=dx.ForwardMode()).ys[-1]

    run, keys = jax.jit(jax.vmap(one)), jax.random.split(jax.random.PRNGKey(0), members)
    return lambda: run(keys).block_until_ready()


def by_jitcsde(members: int) -> Callable[[], Any]:
    """JiTCSDE with every step accepted, members one after the other; a step is of order 1.5 there, since noise is additive."""
    from jitcsde import jitcsde, y
    from symengine import sympify

    sde = jitcsde([1.5 * (0.4 - y(0))], [sympify(0.7)], additive=True, verbose=False)
    with chdir(gettempdir()):  # it builds by setuptools, which would read our pyproject.toml
        sde.compile_C()
    sde.set_integration_parameters(rtol=1e9, atol=1e9, first_step=H, min_step=0.999 * H, max_step=H)

    def run() -> None:
        for _ in range(members):
            sde.set_initial_value(np.array([2.0]), 0.0)
            sde.integrate(1.0)

    return run


def cases(members: int) -> dict[str, tuple[int, Callable[[], Any]]]:
    """{what: (members, a call)}; slow ones have fewer members."""
    few, generator = max(members // 20, 1), np.random.Generator(np.random.SFC64(1))
    out = np.empty(few)
    more: dict[str, Any] = {"members": members, "step": H, "seed": 1}
    table: dict[str, tuple[int, Callable[[], Any]]] = {
        f"odesim {method}": (members, lambda method=method: odesim.ensemble(OU, method=method, **more)) for method in ("em", "heun")
    }
    table["numba, SFC64, by hand"] = few, lambda: by_hand(generator, few, out)
    table["numba, np.random.normal"] = few, lambda: as_people_write(few, out)
    if find_spec("diffrax"):
        table["diffrax, Euler"] = few, by_diffrax(few)
    if find_spec("jitcsde"):
        table["JiTCSDE, fixed steps"] = max(few // 20, 1), by_jitcsde(max(few // 20, 1))
    return table


def main() -> None:
    """Prints the table."""
    table = cases(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**5)
    best = dict.fromkeys(table, float("inf"))
    for _ in range(5):  # turn about: what else the machine does meets all of them
        for name, (members, call) in table.items():
            begun = time.process_time()
            call()
            best[name] = min(best[name], (time.process_time() - begun) / members / STEPS * 1e9)
    for name, cost in best.items():
        print(f"| {name} | {cost:.2f} | {cost / best['odesim em']:.2f} |")


if __name__ == "__main__":
    main()
