"""The error estimate of a blow-up time holds in 99 of 100 runs, with steps of any kind, on systems whose time is known."""

from typing import Any

import numpy as np
import pytest

import odesim
from odesim.run.clocked import of_steps, of_tolerances
from tests.support.blow_ups import FAMILIES

ADAPTIVE = ("tsit5", "vern7", "dop853", "rodas4", "rodas5p")
FIXED = ("euler", "euler", "rk4", "tsit5", "vern7", "dop853", "rodas4")


def how(rng: np.random.Generator, fixed: bool, methods: tuple[str, ...]) -> dict[str, Any]:
    """A method of these, and tolerances; or a fixed step of s by any method."""
    if fixed:
        return {"method": str(rng.choice(FIXED)), "step": float(10 ** rng.uniform(-1.7, -0.4))}
    rtol = float(10 ** rng.uniform(-12, -3))
    return {"method": str(rng.choice(methods)), "rtol": rtol, "atol": float(rng.choice([1e-3 * rtol, rtol, 1e-9]))}


def missed(name: str, draws: int, fixed: bool, seed: int) -> tuple[int, int]:
    """(runs whose error is above the estimate, runs that blow up and have one); where an estimate is told, so is its size."""
    system, draw = FAMILIES[name]
    rng, place = np.random.default_rng([seed, *name.encode()]), list(FAMILIES).index(name)
    methods = (ADAPTIVE[place % 5], ADAPTIVE[(place + 2) % 5])  # two for each system, a kernel each; each method for three systems
    off, count = 0, 0
    for _ in range(draws):
        params, initial, exact = draw(rng)
        asked: dict[str, Any] = {"params": params, "initial": initial, "span": (0.0, 10 * exact), "max_steps": 20_000}
        run = odesim.integrate(system, clock="rescaled", **asked, **how(rng, fixed, methods))
        if run.status == "blow_up" and np.isfinite(run.attrs["blow_up_error"]):
            count += 1
            off += not abs(run.events["blow_up"][0]["t"] - exact) <= run.attrs["blow_up_error"]
        elif run.status == "blow_up":
            assert "with an error that coarser runs" in run.message
    return off, count


@pytest.mark.first(1)
@pytest.mark.parametrize("fixed", [False, True], ids=["adaptive", "fixed steps"])
def test_the_estimate_holds(fixed: bool) -> None:
    """Some runs of one system or two, all of them."""
    for name in ("power", "tangent")[: 1 + fixed]:
        off, count = missed(name, 8, fixed, 1)
        assert off == 0 and count >= 6


@pytest.mark.slow
@pytest.mark.parametrize("fixed", [False, True], ids=["adaptive", "fixed steps"])
def test_the_estimate_holds_in_99_of_100(fixed: bool) -> None:
    """200 runs of eight systems, at most two above; nearly all have an estimate."""
    found = [missed(name, 25, fixed, 2) for name in FAMILIES]
    off, count = (sum(part) for part in zip(*found, strict=True))
    assert off <= 2 and count >= 185


@pytest.mark.parametrize("order", [1, 4, 8])
def test_richardson_finds_the_error_of_a_power(order: int) -> None:
    """t(h) = t* + C h^order: twice the error, exactly; where the order is not reached, or the signs differ, never less than that."""
    error = 1e-3
    assert of_steps(error * (2**order - 1), error * (4**order - 1), order) == pytest.approx(2 * error, rel=1e-12)
    assert of_steps(error * (2**0.7 - 1), error * (4**0.7 - 1), order) >= 2 * error * (1 - 1e-12)
    assert of_steps(-error, 5 * error, order) >= 2 * error
    assert of_steps(error, np.inf, order) == np.inf


def test_an_error_that_follows_the_tolerance_is_below_its_estimate() -> None:
    """Errors c, 10 c u and 100 c w, u and w up to a factor of two off: never below, though the first two may happen to be the same."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        error = rng.choice([-1, 1]) * 10.0 ** rng.uniform(-12, -3)
        ten, hundred = (error * size * 2.0 ** rng.uniform(-1, 1) for size in (10, 100))
        ten = error * rng.uniform(0.9, 1.1) if rng.random() < 0.3 else ten
        assert of_tolerances(ten - error, hundred - error) >= abs(error)
