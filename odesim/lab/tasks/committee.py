"""The task committee: a two-layer student learns a two-layer teacher from a stream of examples.

Source: Saad and Solla 1995; Goldt et al. 2019, arXiv 1906.08632, whose program is `sgoldt/nn2pp`. The teacher is
sum_m A_m g(w*_m . x / sqrt N) with orthogonal w*_m of length sqrt N, the student sum_k v_k g(w_k . x / sqrt N) with g(u) = erf(u / sqrt 2).
Each step takes a new x of independent normal numbers, whose label has noise of deviation sigma, at rate eta_W / sqrt N for the first layer
and eta_v / N for the second. Time is steps / N: as N grows, e_g, Q, R and v follow classics.committee, with deviations of order N^(-1/2).

init=overlaps: every seed starts at the same Q, R and v exactly. init=normal: normal weights of deviation init_scale.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.special import erf

from odesim.base.arrays import Array, array_namespace, on_host, on_same_device, shaped
from odesim.base.errors import ParamError
from odesim.lab.training.optimizers import SGD
from odesim.lab.training.randomness import AT_ONCE, DATA, InBlocks, generators
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings, Stream, pair_of


def says(u: Array) -> Array:
    """g(u) = erf(u / sqrt 2), computed on the host: a step has few fields, and cupy's own is in another module."""
    return array_namespace(u).asarray(erf(on_host(u) * np.asarray(0.5**0.5, u.dtype)))


def generalisation_error(overlaps: Array, weights: Array) -> Array:
    """Half the mean square (...,) of sum_a weights_a g(field_a), of fields with these overlaps (..., n, n) and weights (..., n).

    With the student's second layer and minus the teacher's as weights it is e_g = E (student - teacher)^2 / 2. E g(a) g(b) is that of Saad
    and Solla 1995.
    """
    variances = np.diagonal(overlaps, axis1=-2, axis2=-1)  # (..., n)
    means = 2 / np.pi * np.arcsin(overlaps / np.sqrt((1 + variances[..., :, None]) * (1 + variances[..., None, :])))  # (..., n, n)
    return 0.5 * (weights[..., :, None] * means * weights[..., None, :]).sum(axis=(-2, -1))


# The committee, a two-layer student sum_k v_k g(w_k . x / sqrt N), with hand-written gradients of its squared error.
#
# Source: Saad and Solla 1995; Goldt et al. 2019, arXiv 1906.08632. One step of plain descent at rate eta moves w_k by
# eta / sqrt N (y - student) v_k g'(u_k) x, with u_k = w_k . x / sqrt N. At rate eta_v / N it moves v_k by eta_v / N (y - student) g(u_k).

ROUNDING = 1e-12  # below which an eigenvalue of Q - R R^T is 0


@dataclass(frozen=True, eq=False)
class Committee:
    """The student as a Model. Its batch: x (R, B, N) and y (R, B), what the teacher says of x.

    teacher (R, M, N): orthogonal rows of length sqrt N; A (M,): its second layer. v (K,): the student's at the start. Q (K, K), R (K, M):
    overlaps at the start, exact in every seed; None for normal weights of deviation `scale`.
    """

    teacher: Array
    A: Array
    v: Array
    Q: Array | None = None
    R: Array | None = None
    scale: float = 0.5

    name = "committee"
    groups = MappingProxyType({"W": "W", "v": "v"})

    @property
    def observables(self) -> tuple[Observable, ...]:
        """e_g, the overlaps Q and R, and v, under the names and axes of classics.committee."""
        return (
            Observable("e_g", self.error, (), "generalisation error E (student - teacher)^2 / 2, from the overlaps"),
            Observable("Q", lambda params: self.overlaps(params)[0], ("i", "k"), "overlaps w_i . w_k / N of students"),
            Observable("R", lambda params: self.overlaps(params)[1], ("i", "m"), "overlaps of students with teachers"),
            Observable("v", lambda params: params["v"], ("i",), "second layer of the student"),
        )

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """W (R, K, N) and v (R, K): W of the given overlaps with the seed's teacher and free directions, or normal."""
        K, N = len(self.v), self.teacher.shape[2]
        W = np.stack([rng.standard_normal((K, N)) for rng in rngs])
        if self.Q is None or self.R is None:
            W *= self.scale
        else:
            root = free_root(self.Q, self.R)  # (K, K)
            pairs = zip(self.teacher, W, strict=True)
            W = np.stack([self.R @ teacher + root @ orthogonal(np.concatenate([teacher, w]).T)[len(teacher) :] for teacher, w in pairs])
        return {"W": W.astype(dtype), "v": np.tile(self.v, (len(rngs), 1)).astype(dtype)}

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,), the mean of (student - y)^2 / 2 over the batch, and its gradient {W: (R, K, N), v: (R, K)}."""
        W, v, batch = params["W"], params["v"], on_same_device(params["W"], batch)
        x = batch["x"]
        B, N = x.shape[1:]
        u = x @ W.swapaxes(1, 2) * N**-0.5  # (R, B, K)
        h = says(u)  # (R, B, K)
        miss = (h * v[:, None]).sum(axis=2) - batch["y"]  # (R, B)
        back = miss[..., None] * (1 / B)  # (R, B, 1)
        du = back * v[:, None] * ((2 / np.pi) ** 0.5 * array_namespace(u).exp(-0.5 * u * u))  # (R, B, K)
        dW = du.swapaxes(1, 2) * N**-0.5 @ x  # (R, K, N)
        return 0.5 * (miss * miss).mean(axis=1), {"W": dW, "v": (back * h).sum(axis=1)}

    def overlaps(self, params: Params) -> tuple[Array, Array]:
        """Q (R, K, K), to the last bit symmetric, and R (R, K, M), in numpy."""
        W = params["W"]
        N, teacher = W.shape[2], array_namespace(W).asarray(self.teacher, dtype=W.dtype)
        Q, R = (on_host(W @ other.swapaxes(1, 2)) / np.asarray(N, W.dtype) for other in (W, teacher))
        return (Q + Q.swapaxes(1, 2)) / 2, R

    def error(self, params: Params) -> Array:
        """e_g (R,) of the student, in numpy."""
        (Q, R), v = self.overlaps(params), on_host(params["v"])
        T = self.teacher @ self.teacher.swapaxes(1, 2) / self.teacher.shape[2]  # (R, M, M)
        overlaps = np.block([[Q, R], [R.swapaxes(1, 2), T]])
        return generalisation_error(overlaps, np.hstack([v, np.tile(-self.A, (len(v), 1))])).astype(v.dtype)


def free_root(Q: Array, R: Array) -> Array:
    """A root (K, K) of Q - R R^T, what the student has outside the teacher's space. Raises ParamError where there is none."""
    values, vectors = np.linalg.eigh(Q - R @ R.T)
    if values[0] < -ROUNDING * max(1.0, values[-1]):
        raise ParamError(f"no student has these overlaps: Q - R R^T has the eigenvalue {values[0]:.3g}, below 0")
    return vectors * np.sqrt(np.maximum(values, 0))


# Gaussian inputs and what a two-layer teacher sum_m A_m g(w_m . x / sqrt N) says of them, with noise; fresh in every iteration.


def orthogonal(normal: Array) -> Array:
    """Rows (n, N) of length sqrt N at right angles, each in the space of so many first columns of normal (N, n)."""
    return np.linalg.qr(normal)[0].T * len(normal) ** 0.5


def examples(seeds: Sequence[int], teacher: Array, A: Array, *, batch: int, sigma: float, dtype: str) -> Stream:
    """A Stream {"x": (R, batch, N), "y": (R, batch)}: x iid normal, y the teacher's output with noise of deviation sigma."""
    N = teacher.shape[2]
    rows = max(1, AT_ONCE // (batch * N))

    def of_seed(rng: Generator, r: int) -> Batch:
        x = rng.standard_normal((rows, batch, N))
        fields = x.reshape(-1, N) @ teacher[r].T * N**-0.5  # (iterations * batch, M)
        y = says(fields) @ A + sigma * rng.standard_normal(len(fields))
        return {"x": x.astype(dtype), "y": y.reshape(rows, batch).astype(dtype)}

    return InBlocks(seeds, rows, of_seed)


INITS = ("overlaps", "normal")
TIME = 20  # of a training by default, in steps / N


def starts(values: Mapping[str, Any]) -> dict[str, Array]:
    """Q (K, K), R (K, M), v (K,) and A (M,): given, or as in classics.committee. Raises ParamError for a wrong shape or an asymmetric Q."""
    K, M = values["K"], values["M"]
    i = np.arange(K)
    default = {"Q": np.diag(0.25 - 0.09 * i / K), "R": 1e-3 * np.eye(K, M) / (1 + i)[:, None], "v": np.ones(K), "A": np.ones(M)}
    arrays = {name: shaped(name, values[name], right, f"K={K} and M={M}") for name, right in default.items()}
    if not np.allclose(arrays["Q"], arrays["Q"].T, rtol=1e-12):
        raise ParamError("Q is symmetric: the overlap of two students is that of the two the other way round")
    return arrays


SETTINGS = (
    Setting("N", 500, "dimension of the inputs", low=1, high=10**6),
    Setting("K", 2, "students, units of the first layer", low=1),
    Setting("M", 2, "teachers", low=1),
    Setting("eta_W", 1.5, "learning rate of the first layer, over sqrt N; eta of classics.committee", low=0.0),
    Setting("eta_v", 0.0, "of the second, over N; eta_2 of classics.committee", low=0.0),
    Setting("sigma", 0.0, "standard deviation of label noise", low=0.0),
    Setting("A", None, "second layer of the teacher (M,); ones", rank=1),
    Setting("init", "overlaps", "given Q and R, or normal weights", choices=INITS),
    Setting("Q", None, "overlaps of students at the start (K, K); .25 - .09 i / K in the diagonal"),
    Setting("R", None, "with teachers (K, M); .001 / (1 + i) in the diagonal"),
    Setting("v", None, "second layer of the student at the start (K,); ones", rank=1),
    Setting("init_scale", 0.5, "deviation of normal weights", low=0.0),
    Setting("batch", 1, "examples of a step", low=1),
    *SGD,
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: teachers, weights with gradients, the inputs drawn at once."""
    N, K, M = values["N"], values["K"], values["M"]
    return {
        "the teachers": seeds * N * 3 * M,
        "the weights and their gradients": seeds * K * 5 * N,
        "the inputs": seeds * 2 * (max(AT_ONCE, values["batch"] * N) + 2 * values["batch"] * K),
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: a wrong shape, overlaps that no student has, too small a dimension."""
    N, K, M = (values[name] for name in "NKM")
    if N < K + M:
        raise ParamError(f"N must be at least K + M = {K + M}, for students and teachers apart, not {N}")
    for name in ("Q", "R"):
        if values["init"] == "normal" and values[name] is not None:
            raise ParamError(f"{name} is the overlap at the start, which init=normal draws; it needs init=overlaps")
    overlaps = starts(values)
    free_root(overlaps["Q"], overlaps["R"])  # raises
    teacher = np.stack([orthogonal(rng.standard_normal((N, M))) for rng in generators(seeds, DATA)])
    start: dict[str, Any] = {name: overlaps[name] for name in ("Q", "R")} if values["init"] == "overlaps" else {}
    network = Committee(teacher, overlaps["A"], overlaps["v"], scale=values["init_scale"], **start)
    stream = examples(seeds, teacher, overlaps["A"], batch=values["batch"], sigma=float(values["sigma"]), dtype=dtype)
    theory = {"eta": values["eta_W"], "eta_2": values["eta_v"], "sigma": values["sigma"], "A": overlaps["A"], "T": np.eye(M)}
    return Experiment(
        model=network,
        stream=stream,
        rates={"W": values["eta_W"], "v": values["eta_v"] / N},
        steps=TIME * N,
        exact={"A": overlaps["A"], "T": np.eye(M)},
        theory={"classics.committee": theory},
    )


DOC = "a two-layer student learns a two-layer teacher online (Saad and Solla 1995; goldt2019dynamics)"
PAIRS = {
    # each seed has its own start: exact overlaps differ by rounding, normal weights by chance
    "classics.committee": pair_of(
        *("e_g", "Q", "R", "v"),
        step=lambda facts: 1 / facts.config["N"],
        linear=False,
        start="QRv",
        requirements={"batch": (1,), "momentum": (0,)},
    )
}
TASK = ReferenceTask("committee", DOC, SETTINGS, make, memory, ("committee",), PAIRS)
