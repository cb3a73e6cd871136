"""The workloads of many small systems: members, right-hand sides, exact results.

W1 and W1s: v' = (mu - v) exp(v^2/2), 4 components, mu ~ U(.5, 2.5), v0 = 0.01 abs(N(0, 1)), t in [0, 10], the end or 100 points kept.
W2: Lorenz, sigma = 10, beta = 8/3, rho = linspace(0, 21, N), from (1, 0, 0), t in [0, 1]; W2f: the same with steps of 1e-3.
W4r: Robertson's reactions, each rate times U(.5, 2), to t = 1e5; errors relative, above 1e-8. W4j: W1 with mu ~ U(.5, 5), whose time
scales lie 2.7e5 apart. Both kept at 5 times.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

ROBERTSON = (0.04, 3e7, 1e4)  # rates of the three reactions (Robertson 1966)
STEP = 1e-3  # of W2f


@dataclass(frozen=True)
class Work:
    """Members to integrate over [0, end]. params (N, P) and start (N, D) are each member's own; times (T,) are kept."""

    name: str
    system: str  # joma, lorenz or robertson
    tolerance: float  # relative
    end: float
    params: np.ndarray
    start: np.ndarray
    times: np.ndarray
    small: float = 1.0  # the absolute tolerance is this times the relative one
    floor: float | None = None  # errors are relative to what is larger than this; None: absolute
    events: bool = False  # the times at which a component is half its resting value are looked for and kept

    @property
    def grid(self) -> bool:
        """Whether more times than the end are saved."""
        return len(self.times) > 1

    @property
    def absolute(self) -> float:
        """The absolute tolerance."""
        return self.tolerance * self.small

    def stride(self, most: int) -> int:
        """The stride with which about `most` members are spread evenly over all."""
        return max(1, len(self.start) // most)

    def every(self, stride: int) -> "Work":
        """Each stride-th member only: a range of the parameters is covered by few members as by all."""
        return replace(self, params=np.ascontiguousarray(self.params[::stride]), start=np.ascontiguousarray(self.start[::stride]))

    def error(self, values: np.ndarray, exact: np.ndarray) -> float:
        """The largest error of values (..., T, D) against exact ones; inf if one is NaN."""
        off = np.abs(values - exact)
        if self.floor is not None:
            off = off / np.maximum(np.abs(exact), self.floor)
        return float(np.max(np.where(np.isnan(off), np.inf, off)))


def make_work(name: str, members: int) -> Work:
    """The Work of this name with this number of members."""
    if name.startswith("W2"):
        start = np.tile([1.0, 0.0, 0.0], (members, 1))
        return Work(name, "lorenz", 1e-8, 1.0, np.linspace(0, 21, members)[:, None], start, np.array([1.0]))
    rng = np.random.default_rng(0)
    if name == "W4r":
        rates, start = ROBERTSON * rng.uniform(0.5, 2, (members, 3)), np.tile([1.0, 0.0, 0.0], (members, 1))
        return Work(name, "robertson", 1e-6, 1e5, rates, start, np.logspace(1, 5, 5), small=1e-6, floor=1e-8)
    params, start = rng.uniform(0.5, 5.0 if name == "W4j" else 2.5, (members, 4)), np.abs(rng.normal(size=(members, 4))) * 0.01
    times = {"W1s": np.linspace(0, 10, 100), "W4j": np.array([0.1, 0.5, 1, 2, 10])}.get(name, np.array([10.0]))
    return Work(name, "joma", 1e-9 if name == "W1-9" else 1e-6, 10.0, params, start, times, events=name == "W1e")


def right_side(system: str, exp: Callable[[Any], Any], stack: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """f(t, y, p) of arrays (D,), for a library's exp and its way to make an array of a list."""

    def joma(t: Any, v: Any, mu: Any) -> Any:
        return (mu - v) * exp(v * v / 2)

    def lorenz(t: Any, y: Any, rho: Any) -> Any:
        return stack([10.0 * (y[1] - y[0]), y[0] * (rho[0] - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    def robertson(t: Any, y: Any, k: Any) -> Any:
        first, second, third = k[0] * y[0], k[1] * y[1] * y[1], k[2] * y[1] * y[2]
        return stack([third - first, first - second - third, second])

    return {"joma": joma, "lorenz": lorenz, "robertson": robertson}[system]


def jacobian(system: str) -> Callable[..., np.ndarray]:
    """df/dy (D, D) of the stiff ones: f(t, y, p) in numpy."""

    def joma(t: float, v: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return np.diag(((mu - v) * v - 1) * np.exp(v * v / 2))

    def robertson(t: float, y: np.ndarray, k: np.ndarray) -> np.ndarray:
        a, b, c = 2 * k[1] * y[1], k[2] * y[2], k[2] * y[1]
        return np.array([[-k[0], b, c], [k[0], -a - b, -c], [0, a, 0]])

    return {"joma": joma, "robertson": robertson}[system]


def scipy_run(work: Work, i: int, method: str, rtol: float, atol: float) -> Any:
    """scipy's solution of member i at the times kept; the implicit methods have the Jacobian of a stiff work."""
    from scipy.integrate import solve_ivp

    right, p = right_side(work.system, np.exp, np.array), work.params[i]
    options: dict[str, Any] = {"method": method, "t_eval": work.times, "rtol": rtol, "atol": atol}
    if method in ("Radau", "BDF", "LSODA") and work.system != "lorenz":
        slopes = jacobian(work.system)
        options["jac"] = lambda t, y: slopes(t, y, p)
    with np.errstate(over="ignore", invalid="ignore"):  # a trial step that is too long is rejected
        return solve_ivp(lambda t, y: right(t, y, p), (0.0, work.end), work.start[i], **options)


def exact(work: Work) -> np.ndarray:
    """States (N, T, D) at the times kept: W4j by separation of variables, W4r by scipy's Radau at 1e-10, which agrees with 1e-12 to
    some 1e-9, the others by DOP853 at 1e-13, itself exact to some 1e-11."""
    if work.name == "W4j":
        return solve_by_separation(work)
    method, rtol, atol = ("Radau", 1e-10, 1e-16) if work.system == "robertson" else ("DOP853", 1e-13, 1e-13)
    return np.array([scipy_run(work, i, method, rtol, atol).y.T for i in range(len(work.start))])


def solve_by_separation(work: Work) -> np.ndarray:
    """v (N, T, D) of v' = (mu - v) exp(v^2/2): with v = mu - (mu - v0) exp(-L), t = int_0^L exp(-u(l)^2/2) dl, by Gauss and bisection.

    At L = 40 v is mu to the last bit.
    """
    x, weight = np.polynomial.legendre.leggauss(120)
    mu, gap = work.params[:, None, :, None], (work.params - work.start)[:, None, :, None]

    def time(L: np.ndarray) -> np.ndarray:
        u = mu - gap * np.exp(-L[..., None] * (x + 1) / 2)
        return L / 2 * (weight * np.exp(-u * u / 2)).sum(axis=-1)

    t = work.times[:, None]
    low = np.zeros((len(work.start), len(work.times), work.start.shape[1]))
    high = np.full_like(low, 40.0)
    for _ in range(54):  # halvings of 40 to the last bit
        middle = (low + high) / 2
        early = time(middle) < t
        low, high = np.where(early, middle, low), np.where(early, high, middle)
    return mu[..., 0] - gap[..., 0] * np.exp(-high)
