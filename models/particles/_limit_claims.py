"""What is stated of attention without normalisation, and of the limits of tokens that grow, by the spectrum of V; of steps in depth."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial import ConvexHull
from scipy.special import iv

import odesim
from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.symbolic import Source

# What is stated of steps in depth: published programs of attention without and on the sphere, their order, and what exp(tV) is.

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


PAPER, END = "geshkovski2023emergence", 10.0
LATE = (5.0, 7.0)  # attention is hard from the first on; up to the last, distances are far above the tolerance of the run
GIVEN: dict[str, Any] = {"span": (0, END), "save": [0, *LATE, END], "rtol": 1e-6, "atol": 1e-8, "backend": "numpy"}
SIMPLE = np.array([[1.0, 0.3, 0.2], [0.4, 0.3, -0.2], [0.1, 0.3, 0.2]])  # eigenvalues 1.168 and .166 +- .255i


def tokens(seed: int, d: int, **params: Any) -> Any:
    """A run of twenty tokens in d dimensions, uniform from -5 to 5, to t = 10."""
    z0 = np.random.default_rng(seed).uniform(-5, 5, (20, d))
    return odesim.integrate("particles.rescaled", params={"z0": z0, **params}, sizes={"n": 20, "d": d}, **GIVEN)


def shrinks(first: float, last: float) -> float:
    """The rate at which a distance shrinks between the two late times."""
    return float(np.log(abs(first / last)) / (LATE[1] - LATE[0]))


def polytope(sign: float) -> Iterable[Measurement]:
    """Twenty tokens in the plane, V = I, Q^T K = sign I, two draws: the area of their hull, and the farthest from its boundary."""
    for seed in range(2):
        start, *late, z = tokens(seed, 2, Q=sign * np.eye(2)).y["z"]
        hull = ConvexHull(z)
        inside, *before = (-(each @ hull.equations[:, :2].T + hull.equations[:, 2]).max(axis=1).min() for each in (z, *late))
        yield Measurement(f"seed {seed}: area of the hull, of that at the start", hull.volume / ConvexHull(start).volume, 0.5, 0.0, ">=")
        size = np.linalg.norm(start, axis=1).max()
        yield Measurement(f"seed {seed}: farthest from the boundary, over exp(-t) |z|", inside * np.exp(END) / size, 2.0, 0.0, "<=")
        yield Measurement(f"seed {seed}: rate at which the farthest nears it", shrinks(*before), 1.0, 0.02)


def hyperplanes(V: np.ndarray) -> Iterable[Measurement]:
    """Twenty tokens in space, two draws: how far they are from three planes, and the tokens of the first of them.

    The component u along the left eigenvector of the largest eigenvalue lambda of V has u_i' = lambda sum_j A_ij (u_j - u_i): its largest
    never grows, and what has u > 0 attends to it in the end. The planes are those of the largest u, of 0 and of the least.
    """
    values, vectors = np.linalg.eig(V.T)
    top = np.argmax(values.real)
    for seed in range(2):
        start, *_, z = tokens(seed, 3, V=V).y["z"]
        before, u = start @ vectors[:, top].real, z @ vectors[:, top].real
        width, upper = np.ptp(before), u > 0
        apart = np.abs(u[:, None] - [u.max(), 0, u.min()]).min(axis=1).max() / width * np.exp(values[top].real * END)
        yield Measurement(f"seed {seed}: farthest token, over exp(-lambda t) of the width", apart, 10.0, 0.0, "<=")
        yield Measurement(f"seed {seed}: growth of the largest u, over the width", (u.max() - before.max()) / width, 0.0, 1e-6, "<=")
        yield Measurement(f"seed {seed}: tokens of the smaller half", min(upper.sum(), (~upper).sum()), 1, 0.0, ">=")
        yield Measurement(
            f"seed {seed}: width of a half, of all at the start", np.ptp(z[upper], axis=0).max() / np.ptp(start), 0.1, 0.0, ">="
        )


def boolean(Q: float) -> Iterable[Measurement]:
    """Twenty numbers of both signs, V = 1, K = 1, two draws: the least of all rows' largest attention, and its rank."""
    for seed in (1, 3):
        run = tokens(seed, 1, Q=np.array([[Q]]))
        A, late = run.observables["attention"][-1], run.y["z"][1:3, :, 0]
        yield Measurement(f"seed {seed}: least of the rows' largest attention", A.max(axis=1).min(), 1.0, 1e-6)
        yield Measurement(f"seed {seed}: rank", np.linalg.matrix_rank(A, tol=1e-6), 2, 0.0, "<=")
        apart = [np.minimum(z.max() - z, z - z.min()).max() for z in late]
        yield Measurement(f"seed {seed}: rate at which the farthest number nears the largest or the least", shrinks(*apart), 1.0, 0.02)


LIMITS = (
    Claim(
        "particles.polytope",
        Source(PAPER, "Section 3", "V = I"),
        "particles.rescaled, twenty tokens in the plane, Q^T K = I and -I, to t = 10, two draws",
        "rescaled tokens end on the boundary of a convex polytope with an inside",
        lambda: polytope(1.0),
        "none: half of the hull; a token goes to one that leads it as exp(-t), from 2 |z| away at most; at a rate of 1 to 2 %",
        when="Q^T K is positive",
        otherwise=lambda: polytope(-1.0),
    ),
    Claim(
        "particles.hyperplanes",
        Source(PAPER, "Section 4", "V with a simple, positive largest eigenvalue lambda; that two of three planes are left is ours"),
        "particles.rescaled, twenty tokens in space, a V with eigenvalues 1.168 and .166 +- .255i, and V = I, to t = 10, two draws",
        "rescaled tokens end on at most three parallel hyperplanes: those of the largest and the least component, and through 0",
        lambda: hyperplanes(SIMPLE),
        "ten times exp(-lambda t): attention is soft for a time of 2 / lambda at first; the relative tolerance of the run",
        when="the largest eigenvalue of V is simple",
        otherwise=lambda: hyperplanes(np.eye(3)),
    ),
    Claim(
        "particles.boolean",
        Source(PAPER, "Section 2", "d = 1"),
        "particles.rescaled, twenty numbers of both signs, V = K = 1, Q = 1 and -1, to t = 10, two draws",
        "attention becomes a matrix of ones and zeros of rank 1 or 2",
        lambda: boolean(1.0),
        "exp(-exp(t)) of soft attention, below rounding; a number nears its leader at a rate of 1, to 2 %",
        when="queries and keys have one sign",
        otherwise=lambda: boolean(-1.0),
    ),
)


MATHEMATICAL = "geshkovski2023mathematical"


def on_circle(theta: np.ndarray) -> np.ndarray:
    """Tokens (n, 2) at these angles."""
    return np.stack([np.cos(theta), np.sin(theta)], axis=1)


def equations() -> Iterable[Measurement]:
    """Slopes of inner products at the start beside the equations for equal products, two clusters, and a wave on the circle."""
    short: dict[str, Any] = {"span": (0, 1e-4), "save": [0, 1e-4], **FINE}
    for gamma, beta in ((0.0, 1.0), (0.3, 4.0), (-0.15, 2.0)):
        values, vectors = np.linalg.eigh((1 - gamma) * np.eye(6) + gamma)
        run = odesim.integrate("particles.unnormalised", params={"beta": beta, "x0": vectors * np.sqrt(values)}, **short)
        slope = float(np.diff(run.observables["product"][:, 0, 1])[0] / 1e-4)
        want = 2 / 6 * np.exp(beta * gamma) * (1 - gamma) * (5 * gamma + 1)
        yield Measurement(f"equal products {gamma:g}, beta = {beta:g}: slope over formula", slope / want, 1.0, 0.01)
    x = np.repeat([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]], [7, 3], axis=0)
    run = odesim.integrate("particles.unnormalised", params={"beta": 3, "x0": x}, **short)
    slope = float(np.diff(run.observables["product"][:, 0, 9])[0] / 1e-4)
    yield Measurement("two clusters: slope over formula", slope / ((1 - 0.36) * np.exp(3 * 0.6)), 1.0, 0.01)
    even = 2 * np.pi * np.arange(256) / 256
    for k in (1, 3):
        start = even + 1e-6 * np.sin(k * even)
        run = odesim.integrate("particles.unnormalised", params={"beta": 4, "x0": on_circle(start)}, span=(0, 0.1), save=[0, 0.1], **FINE)
        wave = np.sin(k * even)
        end = np.unwrap(np.arctan2(run.final["x"][:, 1], run.final["x"][:, 0]))
        rate = float(np.log((end - even) @ wave / ((start - even) @ wave)) / 0.1)
        yield Measurement(f"wave of {k} crests, beta = 4: rate over formula", rate / float(k**2 * iv(k, 4) / 4), 1.0, 1e-3)


def last_rate() -> Iterable[Measurement]:
    """How fast the last differences fall, beta = 1: exp(beta) for each tangent component, twice that for inner products."""
    run = odesim.integrate("particles.unnormalised", params={"beta": 1}, span=(0, 6), save=[0, 5, 6], **FINE)
    least = 1 - run.observables["product"].min(axis=(1, 2))
    yield Measurement("rate of 1 - product over 2e", np.log(least[1] / least[2]) / (2 * np.e), 1.0, least[1])


AREAS = {0: 75.1658, 1: 70.4633, 2: 68.6374, 3: 67.8957, 5: 67.4567}  # by another integrator


def hull() -> Iterable[Measurement]:
    """The area of the convex hull of twenty tokens in the plane, V = I, at 26 times to t = 5."""
    run = odesim.integrate("particles.rescaled", span=(0, 5), save=26, **FINE)
    areas = np.array([ConvexHull(z).volume for z in run.y["z"]])
    yield Measurement("largest growth of the area", np.diff(areas).max(), 0.0, 1e-8, "<=")
    for t, want in AREAS.items():
        yield Measurement(f"area at t = {t}", areas[5 * t], want, 6e-5)


OTHERS = (
    Claim(
        "particles.unnormalised_equations",
        Source(MATHEMATICAL, "eq. USA", "equal products, two clusters, the circle"),
        "particles.unnormalised from equal products, two clusters, even tokens on a circle",
        "products: 2/n exp(beta g)(1-g)((n-1)g+1); clusters: (1-r^2) exp(beta r); mode k: k^2 I_k(beta)/beta",
        equations,
        "the next order of a step of 1e-4 times rates to 50, of a wave of 1e-6 over .1",
    ),
    Claim(
        "particles.last_rate",
        Source(MATHEMATICAL, "eq. USA", "near one cluster"),
        "particles.unnormalised, beta = 1, to t = 6",
        "the last differences fall as exp(-exp(beta) t)",
        last_rate,
        "the next order, 1 - product itself, 2e-6 at t = 5",
    ),
    Claim(
        "particles.hull",
        Source("geshkovski2023emergence", "Section 3", "V = I"),
        "particles.rescaled, twenty tokens in the plane, to t = 5",
        "the convex hull of the rescaled tokens never grows",
        hull,
        "100 times the tolerance of the run; half a unit of the last recorded digit",
    ),
)
