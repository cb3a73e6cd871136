"""What is stated of steps in depth: published programs of attention without and on the sphere, their order, and what exp(tV) is."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.symbolic import Source

FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-13, "backend": "numpy"}


def attention(z: np.ndarray, t: float) -> np.ndarray:
    """A (n, n) of the rescaled tokens z (n, 2) at time t, V = I."""
    logits = np.exp(2 * t) * z @ z.T
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def published_step(z: np.ndarray, t: float, h: float) -> np.ndarray:
    """Four stages of each token, attention held: the stage of a token moves all tokens."""
    A, end = attention(z, t), z.copy()
    for token in range(len(z)):
        k = [np.zeros(2)]
        for part in (0, 0.5, 0.5, 1):
            moved = z + part * h * k[-1]
            k.append((A @ moved - moved)[token])
        end[token] += h / 6 * (k[1] + 2 * k[2] + 2 * k[3] + k[4])
    return end


def own_step(z: np.ndarray, t: float, h: float, frozen: bool = False) -> np.ndarray:
    """Four stages of all tokens together, attention at each of them, or frozen at the first."""
    A, k = attention(z, t), [np.zeros_like(z)]
    for part in (0, 0.5, 0.5, 1):
        moved = z + part * h * k[-1]
        k.append((A if frozen else attention(moved, t + part * h)) @ moved - moved)
    return np.asarray(z + h / 6 * (k[1] + 2 * k[2] + 2 * k[3] + k[4]))


def errors_of(step: Callable[..., np.ndarray], counts: tuple[int, ...]) -> list[float]:
    """The largest error at t = 1 of so many steps each, ten tokens beside particles.rescaled."""
    start, errors = np.random.default_rng(0).uniform(-1, 1, (10, 2)), []
    want = odesim.integrate("particles.rescaled", params={"z0": start}, span=(0, 1), save=2, **FINE).final["z"]
    for count in counts:
        z = start
        for n in range(count):
            z = step(z, n / count, 1 / count)
        errors.append(float(np.abs(z - want).max()))
    return errors


def order_of(step: Callable[..., np.ndarray], order: float) -> Iterable[Measurement]:
    """The order of a step by its errors with 20 and 40 steps."""
    errors = errors_of(step, (20, 40))
    yield Measurement("order, of errors with 20 and 40 steps", np.log2(errors[0] / errors[1]), order, 0.2)


HELD = partial(own_step, frozen=True)
DIGITS: dict[
    str, tuple[Callable[..., np.ndarray], tuple[float, ...]]
] = {  # errors of 10, 20, 40 and 80 steps beside steps of order 8, by another program
    "published step": (published_step, (0.0533, 0.0268, 0.0134, 0.0067)),
    "each token by its own stages, attention held": (HELD, (0.0386, 0.0199, 0.0101, 0.0051)),
}


def euler() -> Iterable[Measurement]:
    """The published step beside Euler's, and its order; the order of stages that move each token by its own."""
    z = np.random.default_rng(0).uniform(-1, 1, (10, 2))
    yield deviation("published step less Euler's", published_step(z, 0.3, 0.1), z + 0.1 * (attention(z, 0.3) @ z - z), 1e-14)
    yield from order_of(published_step, 1.0)
    for m in order_of(own_step, 4.0):
        yield replace(m, name="each token by its own stages, attention at each: " + m.name)
    for m in order_of(HELD, 1.0):
        yield replace(m, name="each token by its own stages, attention held: " + m.name)
    for name, (step, digits) in DIGITS.items():
        for count, found, want in zip((10, 20, 40, 80), errors_of(step, (10, 20, 40, 80)), digits, strict=True):
            yield Measurement(f"{name}: error with {count} steps", found, want, 6e-5)


def projected(x: np.ndarray, h: float, steps: int, *, project: bool) -> np.ndarray:
    """Euler steps of tokens x (n, d) on the sphere at beta = 1, each scaled back to length 1, or not."""
    for _ in range(steps):
        A = np.exp(x @ x.T)
        pull = A / A.sum(axis=1, keepdims=True) @ x
        x = x + h * (pull - (pull * x).sum(axis=1, keepdims=True) * x)
        if project:
            x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return x


ERRORS = ((0.0583, 0.0293, 0.0147), (0.0503, 0.0258, 0.0131), (0.0174, 0.0090, 0.0045))  # beside steps of order 4, by another program


def sphere_steps(project: bool) -> Iterable[Measurement]:
    """64 tokens in three dimensions, beta = 1, to t = 3: their length, and errors of steps of .1, .05, .025 beside particles.sphere."""
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((64, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        flow = odesim.integrate("particles.sphere", params={"beta": 1, "x0": x}, span=(0, 3), save=2, **FINE).final["x"]
        ends = [projected(x, h, round(3 / h), project=project) for h in (0.1, 0.05, 0.025)]
        errors = [float(np.abs(end - flow).max()) for end in ends]
        yield Measurement(f"seed {seed}: order, of errors with steps .05 and .025", np.log2(errors[1] / errors[2]), 1.0, 0.1)
        yield Measurement(f"seed {seed}: order, with .1 and .05", np.log2(errors[0] / errors[1]), 1.0, 0.1)
        if project:
            for h, error, want in zip((0.1, 0.05, 0.025), errors, ERRORS[seed], strict=True):
                yield Measurement(f"seed {seed}: error of steps of {h:g}", error, want, 6e-5)
        yield deviation(f"seed {seed}: length of tokens, steps of .1", (ends[0] ** 2).sum(axis=1), 1.0, 1e-12)


VALUES, TIME = np.array([[1.2, 0.3, 0.1], [0.3, 0.7, -0.2], [0.1, -0.2, 0.9]]), 1.5


def power(left: bool) -> Iterable[Measurement]:
    """exp(tV) of particles.rescaled, V symmetric, beside Phi exp(t Lambda) Phi^T; left: Phi in the place of Phi^T, as in the program."""
    run = odesim.integrate("particles.rescaled", params={"V": VALUES}, sizes={"n": 4, "d": 3}, span=(0, TIME), save=2, **FINE)
    values, Phi = np.linalg.eigh(VALUES)
    yield deviation(
        "exp(tV), over its largest entry", run.final["E"] / 8, (Phi * np.exp(TIME * values)) @ (Phi if left else Phi.T) / 8, 1e-8
    )


def unscaled() -> Iterable[Measurement]:
    """exp(tV) z_i beside the tokens x_i themselves, x_i' = sum_j A_ij V x_j, by another integrator; and exp(tV)."""
    yield from power(False)
    start = np.random.default_rng(0).uniform(-1, 1, (10, 3))

    def slopes(t: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(10, 3)
        A = np.exp(x @ x.T - (x @ x.T).max(axis=1, keepdims=True))
        return np.asarray(A / A.sum(axis=1, keepdims=True) @ x @ VALUES.T).ravel()

    x = solve_ivp(slopes, (0, TIME), start.ravel(), method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1].reshape(10, 3)
    run = odesim.integrate("particles.rescaled", params={"V": VALUES, "z0": start}, span=(0, TIME), save=2, **FINE)
    yield deviation("tokens, over their size", run.final["z"] @ run.final["E"].T / np.abs(x).max(), x / np.abs(x).max(), 1e-7)


STEPS = (
    Claim(
        "particles.stages",
        Source("geshkovski2023emergence", "published code", "four stages of Runge and Kutta, attention held fixed"),
        "the published step and particles.rescaled, ten tokens in the plane, to t = 1",
        "four stages of Runge and Kutta: a step of order 4",
        lambda: order_of(published_step, 4.0),
        "the next order of the step",
        fails=True,
        corrected=Statement(
            "it is Euler's, of order 1: all tokens move by the stage of one, and differences do not change",
            euler,
            "rounding; the next order of the step; half a unit of the last recorded digit",
        ),
    ),
    Claim(
        "particles.exponential",
        Source("geshkovski2023emergence", "published code", "exp(tV) by the eigenvectors Phi of a symmetric V"),
        "particles.rescaled, a symmetric V in three dimensions, four and ten tokens, to t = 1.5",
        "exp(tV) = Phi exp(t Lambda) Phi",
        lambda: power(True),
        "10 times the relative tolerance of the run",
        fails=True,
        corrected=Statement(
            "it is Phi exp(t Lambda) Phi^T, and exp(tV) z_i are the tokens of x_i' = sum_j A_ij V x_j",
            unscaled,
            "100 and 1000 times the relative tolerance 1e-10 of the runs",
        ),
    ),
    Claim(
        "particles.projected_steps",
        Source("geshkovski2023mathematical", "published code", "Euler steps of .1"),
        "Euler steps of .1, .05 and .025 beside particles.sphere, 64 tokens in three dimensions, beta = 1, to t = 3, three starts",
        "Euler steps keep tokens on the sphere and follow the flow, with errors of order 1",
        lambda: sphere_steps(project=True),
        "the next order of the step; rounding; half a unit of the last recorded digit",
        when="tokens are scaled back to length 1 after each step",
        otherwise=lambda: sphere_steps(project=False),
    ),
)
