"""The committee, a two-layer student sum_k v_k g(w_k . x / sqrt N), with hand-written gradients of its squared error.

Source: Saad and Solla 1995; Goldt et al. 2019, arXiv 1906.08632. One step of plain descent at rate eta moves w_k by
eta / sqrt N (y - student) v_k g'(u_k) x, with u_k = w_k . x / sqrt N, and at rate eta_v / N it moves v_k by eta_v / N (y - student) g(u_k).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_host, on_same_device
from odesim.base.errors import ParamError
from odesim.reference.committee.activations import ACTIVATIONS, generalisation_error
from odesim.reference.protocols import Batch, Observable, Params

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
    activation: str = "erf"

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
            W = np.stack([self.R @ teacher + root @ free_directions(teacher, w) for teacher, w in zip(self.teacher, W, strict=True)])
        return {"W": W.astype(dtype), "v": np.tile(self.v, (len(rngs), 1)).astype(dtype)}

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """The loss (R,), the mean of (student - y)^2 / 2 over the batch, and its gradient {W: (R, K, N), v: (R, K)}."""
        W, v, batch = params["W"], params["v"], on_same_device(params["W"], batch)
        x, g = batch["x"], ACTIVATIONS[self.activation]
        B, N = x.shape[1:]
        u = x @ W.swapaxes(1, 2) * N**-0.5  # (R, B, K)
        h = g.value(u)  # (R, B, K)
        miss = (h * v[:, None]).sum(axis=2) - batch["y"]  # (R, B)
        back = miss[..., None] * (1 / B)  # (R, B, 1)
        du = back * v[:, None] * g.slope(u)  # (R, B, K)
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
        return generalisation_error(overlaps, np.hstack([v, np.tile(-self.A, (len(v), 1))]), self.activation).astype(v.dtype)


def free_root(Q: Array, R: Array) -> Array:
    """A root (K, K) of Q - R R^T, what the student has outside the teacher's space. Raises ParamError where there is none."""
    values, vectors = np.linalg.eigh(Q - R @ R.T)
    if values[0] < -ROUNDING * max(1.0, values[-1]):
        raise ParamError(f"no student has these overlaps: Q - R R^T has the eigenvalue {values[0]:.3g}, below 0")
    root: Array = vectors * np.sqrt(np.maximum(values, 0))
    return root


def free_directions(teacher: Array, normal: Array) -> Array:
    """Rows (K, N) of length sqrt N at right angles to each other and to those of the teacher (M, N), from normal numbers (K, N)."""
    M, N = teacher.shape
    basis = np.linalg.qr(np.concatenate([teacher, normal]).T)[0].T  # (M + K, N)
    return basis[M:] * N**0.5
