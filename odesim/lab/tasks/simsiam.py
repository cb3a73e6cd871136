"""The task simsiam: a linear network learns from two noisy views of its inputs, without negative pairs.

Source: Tian, Chen and Ganguli 2021, arXiv 2102.06810. Inputs x are N(0, I), a view is x + noise of variance sigma2. A predictor W_p on the
network W of one view is to be what the target says of the other: mean |W_p W x_1 - target x_2|^2 / 2, whose gradient does not go through
the target. This is W itself, or for beta > 0 W_a, which follows by a moving average (BYOL). With predictor=set W_p does not learn: it has
the singular vectors of W, and the values w + eps max(w) (DirectPred).

In the mean over views a step is one of self_supervised.simsiam, byol or no_stop. From given p and s the modes are those of the first axes,
in which the matrices are diagonal at the start: the views have no directions of their own. A batch moves each mode by noise of order
sqrt(eta / batch), and couples them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device, shaped
from odesim.base.errors import ParamError
from odesim.lab.networks.measures import norm
from odesim.lab.training.network import InitialLaw, Network
from odesim.lab.training.optimizers import descent
from odesim.lab.training.randomness import Drawn
from odesim.lab.training.task import Batch, Experiment, Observable, Params, ReferenceTask, Setting, Settings, TrainingFacts, pair_of


def draw_views(n1: int, sigma2: float, dtype: str, rng: Generator, count: int) -> Batch:
    """Two views of inputs of one seed: one and two (count, n1)."""
    x, *noise = rng.standard_normal((3, count, n1))
    return {name: (x + sigma2**0.5 * e).astype(dtype) for name, e in zip(("one", "two"), noise, strict=True)}


@dataclass(frozen=True, eq=False)
class Predicting(Network):
    """W and W_a (n2, n1) and W_p (n2, n2) as a Model. Its batch: that of draw_views, with a leading axis of seeds.

    laws: of W and W_p; W_a is W at the start. eps: of a predictor that is set, None for one that learns. beta: of the moving average, 0 for
    none. stop: whether the target has no gradient.
    """

    laws: Mapping[str, InitialLaw]
    alpha: float
    decay: float
    beta: float
    eps: float | None
    stop: bool

    name = "linear"
    groups = dict.fromkeys(("W", "W_p", "W_a"), "all")  # type: ignore[assignment]

    @property
    def observables(self) -> tuple[Observable, ...]:
        """Matrices and modes under the names of self_supervised.*."""
        n2, learns = ("k", "l"), self.eps is None

        def singular(params: Params) -> Array:
            return array_namespace(params["W"]).linalg.svd(params["W"], compute_uv=False)

        of_modes = (
            Observable("p", lambda params: diagonal(params["W_p"]), ("j",), "diagonal of W_p"),
            Observable("s", lambda params: diagonal(gram(params["W"])), ("j",), "diagonal of F"),
            Observable("asymmetry", lambda params: norm(params["W_p"] - params["W_p"].swapaxes(1, 2), (1, 2)), (), "norm of W_p - W_p^T"),
            Observable("commutator", self.commutator, (), "norm of F W_p - W_p F"),
            Observable.parameter("W_p", n2, "predictor"),
        )
        average = (
            Observable.parameter("W_a", ("k", "j"), "weights of the target"),
            Observable("tau", self.follows, ("j",), "diagonal of W_a W^T, over that of F"),
        )
        return (
            Observable.parameter("W", ("k", "j"), "weights"),
            Observable("F", lambda params: gram(params["W"]), n2, "W W^T"),
            *(of_modes if learns else (Observable("w", singular, ("j",), "singular values of W, the largest first"),)),
            *(average if self.beta else ()),
        )

    def initial(self, rngs: Sequence[Generator], dtype: str = "float64") -> Params:
        """W and W_p (R, ...), drawn in this order, and W_a = W."""
        params = super().initial(rngs, dtype)
        if self.eps is not None:
            del params["W_p"]
        return params | ({"W_a": params["W"].copy()} if self.beta else {})

    def predictor(self, params: Params) -> Array:
        """W_p (R, n2, n2): what is learned, or as it is set."""
        if self.eps is None:
            return params["W_p"]
        U, w, _ = array_namespace(params["W"]).linalg.svd(params["W"], full_matrices=False)
        values = w + self.eps * w.max(axis=1)[:, None]
        return (U * values[:, None]) @ U.swapaxes(1, 2)

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """Loss (R,), decay included, and what it moves by parameter (R, ...): alpha is a factor of the predictor's gradient."""
        W, batch = params["W"], on_same_device(params["W"], batch)
        W_p, target = self.predictor(params), params.get("W_a", W)
        one, two = batch["one"], batch["two"]
        count = one.shape[1]
        read = one @ W.swapaxes(1, 2)  # (R, B, n2)
        off = read @ W_p.swapaxes(1, 2) - two @ target.swapaxes(1, 2)  # (R, B, n2)
        back = (off * (1 / count)).swapaxes(1, 2)  # (R, n2, B)
        moves = {"W": W_p.swapaxes(1, 2) @ (back @ one) + self.decay * W}
        if not self.stop:
            moves["W"] = moves["W"] - back @ two
        loss = 0.5 * ((off * off).sum(axis=2).mean(axis=1) + self.decay * (W * W).sum(axis=(1, 2)))
        if self.eps is None:
            moves["W_p"] = self.alpha * (back @ read) + self.decay * W_p
            loss = loss + 0.5 * self.decay / self.alpha * (W_p * W_p).sum(axis=(1, 2))
        if self.beta:
            moves["W_a"] = self.beta * (target - W)
        return loss, moves

    def commutator(self, params: Params) -> Array:
        """|F W_p - W_p F| (R,)."""
        F, W_p = gram(params["W"]), params["W_p"]
        return norm(F @ W_p - W_p @ F, (1, 2))

    def follows(self, params: Params) -> Array:
        """tau (R, n2): 1 where W is 0."""
        s = diagonal(gram(params["W"]))
        tiny = np.finfo(s.dtype).tiny
        return (diagonal(params["W_a"] @ params["W"].swapaxes(1, 2)) + tiny) / (s + tiny)


def gram(W: Array) -> Array:
    """W W^T (R, n2, n2)."""
    return W @ W.swapaxes(1, 2)


def diagonal(A: Array) -> Array:
    """(R, n) of matrices (R, n, n)."""
    return array_namespace(A).einsum("rjj->rj", A).copy()


SETTINGS = (
    Setting("n1", 5, "dimension of the inputs", low=1),
    Setting("n2", 3, "of the representation, n1 at most", low=1),
    Setting("p", None, "eigenvalues of the predictor at the start (n2,); normal", rank=1),
    Setting("s", None, "of F = W W^T (n2,); normal weights", low=0.0, rank=1),
    Setting("init_scale", 0.3, "deviation of normal weights", low=0.0, open_low=True),
    Setting("sigma2", 0.1, "variance of the noise of a view", low=0.0),
    Setting("decay", 0.04, "weight decay, eta of self_supervised", low=0.0),
    Setting("alpha", 1.0, "learning rate of the predictor, over eta", low=0.0, open_low=True),
    Setting("beta", 0.0, "of the moving average, over eta; 0: no average", low=0.0),
    Setting("stop", True, "no gradient goes through the target"),
    Setting("predictor", "trained", "or set from W", choices=("trained", "set")),
    Setting("eps", 0.1, "of a predictor that is set", low=0.0),
    Setting("batch", 64, "inputs of a step, two views each", low=1),
    *descent(0.01),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: views and what a step computes, weights."""
    n1, n2, batch = (values[name] for name in ("n1", "n2", "batch"))
    return {"the views": (2 * seeds + 6) * batch * n1 + 4 * seeds * batch * n2, "the weights": 12 * seeds * n2 * (n1 + n2)}


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: more rows than columns, a wrong number of modes, p of a predictor that is set."""
    n1, n2, learns = values["n1"], values["n2"], values["predictor"] == "trained"
    if n2 > n1:
        raise ParamError(f"n2 is {n2}, and the inputs have n1={n1} dimensions: a representation has no more of them")
    start = {name: shaped(name, values[name], np.empty(n2), f"n2={n2}") for name in ("p", "s") if values[name] is not None}
    if not learns and "p" in start:
        raise ParamError("p is of a predictor at the start, and predictor=set takes it from W")
    matrices = {"W": np.sqrt(start["s"])[:, None] * np.eye(n2, n1)} if "s" in start else {}
    matrices |= {"W_p": np.diag(start["p"])} if "p" in start else {}
    shapes = {"W": (n2, n1), "W_p": (n2, n2)}
    laws = {name: InitialLaw(shape, "normal", values["init_scale"], matrices.get(name)) for name, shape in shapes.items()}
    alpha, decay, beta, sigma2, eps = (float(values[name]) for name in ("alpha", "decay", "beta", "sigma2", "eps"))
    params = {"alpha": alpha, "eta": decay, "sigma2": sigma2}
    for_each = {
        **{name: {**params, "beta": beta} for name in ("self_supervised.byol", "self_supervised.modes_ema")},
        "self_supervised.direct_pred": {"eta": decay, "sigma2": sigma2, "eps": eps},
    }
    return Experiment(
        model=Predicting(laws, alpha, decay, beta, None if learns else eps, values["stop"]),
        stream=Drawn(seeds, partial(draw_views, n1, sigma2, dtype), batch=values["batch"]),
        theory={name: for_each.get(name, params) for name in PAIRS},
    )


def without_modes(facts: TrainingFacts) -> list[str]:
    """Phrases where a start has no modes."""
    return [f"{name} is left out" for name in ("p", "s") if facts.config[name] is None]


def averaged(facts: TrainingFacts) -> list[str]:
    """A phrase where there is no moving average."""
    return [] if facts.config["beta"] else ["beta is 0: there is no moving average"]


MATRICES, ALIGNED, MODES = ("F", "W", "W_p"), ("asymmetry", "commutator"), ("p", "s")
OF_MODES = {"p": np.array([0.05, 0.3, 0.6]), "s": np.array([0.5, 0.3, 0.7])}
FITS = {"predictor": ("trained",), "stop": (True,), "momentum": (0,)}
ALONE = {**FITS, "beta": (0.0,)}
OF_WEIGHTS: Mapping[str, Any] = {"step": "all", "start": ("W", "W_p")}

DOC = "a linear network learns from two views, with a predictor (tian2021understanding)"
PAIRS = {
    "self_supervised.simsiam": pair_of(*ALIGNED, *MATRICES, **OF_WEIGHTS, requirements=ALONE),
    "self_supervised.modes": pair_of(
        *MODES, step="all", linear=False, start=MODES, requirements=ALONE, other_misfits=without_modes, example=OF_MODES
    ),
    "self_supervised.modes_ema": pair_of(
        *MODES,
        "tau",
        step="all",
        linear=False,
        start=(*MODES, "tau"),
        requirements=FITS,
        other_misfits=lambda facts: without_modes(facts) + averaged(facts),
        example={**OF_MODES, "beta": 0.4},
    ),
    "self_supervised.byol": pair_of(
        *ALIGNED, *MATRICES, "W_a", step="all", start=("W", "W_p", "W_a"), requirements=FITS, other_misfits=averaged, example={"beta": 0.4}
    ),
    "self_supervised.no_stop": pair_of(*MATRICES, **OF_WEIGHTS, requirements={**ALONE, "stop": (False,)}, example={"stop": False}),
    # a batch makes of equal singular values unequal ones, and their order is by size
    "self_supervised.direct_pred": pair_of(
        "w", step="all", linear=False, start="w", requirements={**ALONE, "predictor": ("set",)}, example={"predictor": "set"}
    ),
}
TASK = ReferenceTask("simsiam", DOC, SETTINGS, make, memory, ("linear",), PAIRS)
