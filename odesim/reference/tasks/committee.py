"""The task committee: a two-layer student learns a two-layer teacher from a stream of examples.

Source: Saad and Solla 1995; Goldt et al. 2019, arXiv 1906.08632, whose program is `sgoldt/nn2pp`. The teacher is
sum_m A_m g(w*_m . x / sqrt N) with orthogonal w*_m of length sqrt N, the student sum_k v_k g(w_k . x / sqrt N) with g(u) = erf(u / sqrt 2).
Each step takes a new x of independent normal numbers, whose label has noise of deviation sigma, at rate eta_W / sqrt N for the first layer
and eta_v / N for the second. Time is steps / N: as N grows, e_g, Q, R and v follow classics.committee, with deviations of order N^(-1/2).

init=overlaps: every seed starts at the same Q, R and v exactly. init=normal: normal weights of deviation init_scale.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odesim.base.arrays import Array, check_dtype
from odesim.base.errors import ParamError, no_such
from odesim.reference.committee.activations import ACTIVATIONS
from odesim.reference.committee.model import Committee, free_root
from odesim.reference.data.teacher import BLOCK, TeacherBatches, orthogonal_teachers
from odesim.reference.protocols import Experiment, Optimizer, Setting
from odesim.reference.training.optimizers import OPTIMIZERS

INITS = ("overlaps", "normal")
TIME = 20  # of a training by default, in steps / N
ARRAYS = ("Q", "R", "v", "A")


def starts(values: Mapping[str, Any]) -> dict[str, Array]:
    """Q (K, K), R (K, M), v (K,) and A (M,): given, or as in classics.committee. Raises ParamError for a wrong shape or an asymmetric Q."""
    K, M = values["K"], values["M"]
    i = np.arange(K)
    default = {"Q": np.diag(0.25 - 0.09 * i / K), "R": 1e-3 * np.eye(K, M) / (1 + i)[:, None], "v": np.ones(K), "A": np.ones(M)}
    found = {name: right if values[name] is None else np.array(values[name], float) for name, right in default.items()}
    for name, right in default.items():
        if found[name].shape != right.shape:
            raise ParamError(f"{name} has the shape {right.shape} with K={K} and M={M}, not {found[name].shape}")
    if not np.allclose(found["Q"], found["Q"].T, rtol=1e-12):
        raise ParamError("Q is symmetric: the overlap of two students is that of the two the other way round")
    return found


@dataclass(frozen=True)
class CommitteeTask:
    """The task committee: online learning of a teacher."""

    name: str = "committee"
    doc: str = "a two-layer student learns a two-layer teacher online (Saad and Solla 1995; goldt2019dynamics)"
    models: tuple[str, ...] = ("committee",)
    settings: tuple[Setting, ...] = (
        Setting("N", 500, "dimension of the inputs", low=1, high=10**6),
        Setting("K", 2, "students, units of the first layer", low=1),
        Setting("M", 2, "teachers", low=1),
        Setting("eta_W", 1.5, "learning rate of the first layer, over sqrt N; eta of classics.committee", low=0.0),
        Setting("eta_v", 0.0, "of the second, over N; eta_2 of classics.committee", low=0.0),
        Setting("sigma", 0.0, "standard deviation of label noise", low=0.0),
        Setting("A", None, "second layer of the teacher (M,); ones", rank=1),
        Setting("activation", "erf", "of both: erf(u / sqrt 2), or another", choices=tuple(ACTIVATIONS)),
        Setting("init", "overlaps", "given Q and R, or normal weights", choices=INITS),
        Setting("Q", None, "overlaps of students at the start (K, K); .25 - .09 i / K in the diagonal"),
        Setting("R", None, "with teachers (K, M); .001 / (1 + i) in the diagonal"),
        Setting("v", None, "second layer of the student at the start (K,); ones", rank=1),
        Setting("init_scale", 0.5, "deviation of normal weights", low=0.0),
        Setting("batch", 1, "examples of a step", low=1),
        Setting("optimizer", "sgd", "how it descends", choices=OPTIMIZERS),
        Setting("momentum", 0.0, "of sgd", low=0.0, high=1.0),
    )

    def memory(self, values: Mapping[str, Any], seeds: int, model: str | None = None) -> Mapping[str, int]:
        """{what takes memory: number of numbers} of a training: teachers, weights with gradients, the inputs drawn at once."""
        N, K, M = values["N"], values["K"], values["M"]
        return {
            "the teachers": seeds * N * 3 * M,
            "the weights and their gradients": seeds * K * 5 * N,
            "the inputs": seeds * 2 * (max(BLOCK, values["batch"] * N) + 2 * values["batch"] * K),
        }

    def make(self, values: Mapping[str, Any], *, seeds: Sequence[int], model: str | None = None, dtype: str = "float64") -> Experiment:
        """The experiment. Raises ParamError: a wrong shape, overlaps that no student has, too small a dimension."""
        if model not in (None, *self.models):
            raise ParamError(no_such("model", str(model), self.models, self.name))
        check_dtype(dtype)
        N, K, M, activation = (values[name] for name in ("N", "K", "M", "activation"))
        if N < K + M:
            raise ParamError(f"N must be at least K + M = {K + M}, for students and teachers apart, not {N}")
        for name in ("Q", "R"):
            if values["init"] == "normal" and values[name] is not None:
                raise ParamError(f"{name} is the overlap at the start, which init=normal draws; it needs init=overlaps")
        given = starts(values)
        free_root(given["Q"], given["R"])  # raises
        teacher = orthogonal_teachers(seeds, M, N)
        start: dict[str, Any] = {name: given[name] for name in ("Q", "R")} if values["init"] == "overlaps" else {}
        network = Committee(teacher, given["A"], given["v"], scale=values["init_scale"], activation=activation, **start)
        stream = TeacherBatches(seeds, teacher, given["A"], activation, batch=values["batch"], sigma=float(values["sigma"]), dtype=dtype)
        described = (activation, values["batch"], values["optimizer"], values["momentum"]) == ("erf", 1, "sgd", 0)
        theory = {"eta": values["eta_W"], "eta_2": values["eta_v"], "sigma": values["sigma"], "A": given["A"], "T": np.eye(M)}
        return Experiment(
            task=self.name,
            config={name: np.asarray(a).tolist() if name in ARRAYS and a is not None else a for name, a in values.items()},
            seeds=tuple(seeds),
            model=network,
            stream=stream,
            optimizer=Optimizer(values["optimizer"], {"W": values["eta_W"], "v": values["eta_v"] / N}, momentum=values["momentum"]),
            steps=TIME * N,
            vocabulary=N,
            exact={"A": given["A"], "T": np.eye(M)},
            theory={"classics.committee": theory} if described else {},
        )


TASK = CommitteeTask()
