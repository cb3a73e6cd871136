"""The task in_context: linear attention learns regression in context, from prompts of N pairs that are drawn anew.

Source: Zhang, Singh, Latham and Saxe 2025, arXiv 2501.16265. A prompt has inputs x_1 .. x_N and x_q ~ N(0, diag(lam)) and labels
y_n = w . x_n of a task w ~ N(0, I) of its own. Head h attends from x_q to x_n with the score (k_h . x_n)(q_h . x_q) / N and reads v_h y_n;
with weights=merged the score is x_n^T U_h x_q / N. The loss is the mean of (prediction - w . x_q)^2, without a factor 1/2.

In the mean over prompts descent is that of in_context.separate and in_context.merged; what a batch adds is noise of order
sqrt(eta / batch). The published program divides by N only where lengths vary: elsewhere its W is N times smaller than here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device, shaped
from odesim.base.errors import ParamError
from odesim.lab.training.network import InitialLaw, Network
from odesim.lab.training.optimizers import descent
from odesim.lab.training.randomness import Drawn
from odesim.lab.training.task import Batch, Experiment, Observable, Pair, Params, ReferenceTask, Setting, Settings, pair_of


def draw_prompts(lam: Array, N: int, dtype: str, rng: Generator, count: int) -> Batch:
    """Prompts of one seed: x (count, N, D), y (count, N), query (count, D) and target (count,)."""
    D = len(lam)
    x, query = (rng.standard_normal((count, *shape, D)) * lam**0.5 for shape in ((N,), ()))
    w = rng.standard_normal((count, D))
    arrays = {"x": x, "y": (x @ w[..., None])[..., 0], "query": query, "target": (query * w).sum(axis=1)}
    return {name: a.astype(dtype) for name, a in arrays.items()}


# Linear attention of H heads with hand-written gradients of its squared error.


@dataclass(frozen=True, eq=False)
class LinearAttention(Network):
    """Heads with v (H,) and k, q (H, D), or U (H, D, D), as a Model. Its batch: that of draw_prompts, with a leading axis of seeds.

    lam (D,): variances of the inputs. N: pairs of a prompt.
    """

    laws: Mapping[str, InitialLaw]
    lam: Array
    N: int

    name = "linear_attention"

    @property
    def observables(self) -> tuple[Observable, ...]:
        """The weights, the loss in the mean over prompts and what is learned, under the names of in_context.separate and merged."""
        axes = {"v": ("h",), "k": ("h", "a"), "q": ("h", "a"), "U": ("h", "a", "b")}
        return (
            Observable("loss_population", self.population_loss, (), "loss in the mean over prompts"),
            Observable("share", self.share, ("a",), "W_aa over its optimum 1 / Gamma_a"),
            Observable("W", self.product, ("a", "b"), "the prediction is beta^T W x_q, beta the mean of y_n x_n"),
            *(Observable.parameter(name, axes[name], "weights of heads") for name in self.laws),
        )

    @property
    def Gamma(self) -> Array:
        """(1 + 1/N) lam + tr / N (D,)."""
        return self.lam + (self.lam + self.lam.sum()) / self.N

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """Loss (R,) and its gradient by parameter (R, ...)."""
        xp, v, batch = array_namespace(params["v"]), params["v"], on_same_device(params["v"], batch)
        x, y, query = batch["x"], batch["y"], batch["query"]
        count, N = y.shape[1:]
        beta = (y[:, :, None] @ x)[:, :, 0] * (1 / N)  # (R, B, D)
        if "U" in params:
            by_query = xp.einsum("rhab,rnb->rhna", params["U"], query)  # (R, H, B, D)
            heads = (by_query * beta[:, None]).sum(axis=3)  # (R, H, B)
        else:
            read = params["k"] @ beta.swapaxes(1, 2)  # (R, H, B): scores times labels, summed over the prompt
            by_query = params["q"] @ query.swapaxes(1, 2)  # (R, H, B)
            heads = read * by_query
        off = (v[:, :, None] * heads).sum(axis=1) - batch["target"]  # (R, B)
        back = off * (2 / count)
        gradient = {"v": (heads * back[:, None]).sum(axis=2)}
        if "U" in params:
            G = (beta * back[..., None]).swapaxes(1, 2) @ query  # (R, D, D)
            gradient["U"] = v[:, :, None, None] * G[:, None]
        else:
            weighted = v[:, :, None] * back[:, None]  # (R, H, B)
            gradient |= {"k": (weighted * by_query) @ beta, "q": (weighted * read) @ query}
        return (off * off).mean(axis=1), gradient

    def product(self, params: Params) -> Array:
        """W (R, D, D)."""
        xp = array_namespace(params["v"])
        if "U" in params:
            W: Array = xp.einsum("rh,rhab->rab", params["v"], params["U"])
        else:
            W = (params["v"][..., None] * params["k"]).swapaxes(1, 2) @ params["q"]
        return W

    def share(self, params: Params) -> Array:
        """W_aa Gamma_a (R, D)."""
        W = self.product(params)
        xp = array_namespace(W)
        return xp.einsum("raa->ra", W) * xp.asarray(self.Gamma, dtype=W.dtype)

    def population_loss(self, params: Params) -> Array:
        """tr - 2 sum_a lam_a^2 W_aa + sum_ab Gamma_a lam_a W_ab^2 lam_b (R,)."""
        W = self.product(params)
        xp = array_namespace(W)
        lam, second = (xp.asarray(a, dtype=W.dtype) for a in (self.lam, self.Gamma * self.lam))
        gain = (lam * lam * xp.einsum("raa->ra", W)).sum(axis=1)
        return lam.sum() - 2 * gain + (second[:, None] * W * W * lam).sum(axis=(1, 2))


KINDS = {"separate": ("v", "k", "q"), "merged": ("v", "U")}
RANKS = {"v": 1, "k": 2, "q": 2, "U": 3}

SETTINGS = (
    Setting("D", 4, "dimension of the inputs", low=1),
    Setting("N", 31, "pairs of input and label in a prompt", low=1),
    Setting("H", 5, "heads", low=1),
    Setting("lam", None, "variances of the inputs (D,); equal steps down from .4", low=0.0, open_low=True, rank=1),
    Setting("weights", "separate", "of a head: a key and a query, or one matrix", choices=tuple(KINDS)),
    Setting("init_scale", 0.1, "deviation of normal weights at the start", low=0.0),
    Setting("v", None, "outputs of heads at the start (H,); normal", rank=1),
    Setting("k", None, "keys at the start (H, D); normal"),
    Setting("q", None, "queries at the start (H, D); normal"),
    Setting("U", None, "merged matrices at the start (H, D, D); normal", rank=3),
    Setting("batch", 128, "prompts of a step", low=1),
    *descent(0.05),
)


def memory(values: Settings, seeds: int, model: str) -> Mapping[str, int]:
    """{what takes memory: number of numbers} of a training: prompts and what a step computes, weights."""
    N, D, H, batch = (values[name] for name in ("N", "D", "H", "batch"))
    merged = values["weights"] == "merged"
    return {
        "the prompts": (seeds + 2) * batch * (N + 2) * (D + 1),
        "the heads": seeds * batch * H * (2 * D if merged else 5),
        "the weights": seeds * 4 * H * (D * D if merged else 2 * D + 1),
    }


def make(values: Settings, seeds: tuple[int, ...], model: str, dtype: str) -> Experiment:
    """The experiment. Raises ParamError: an array of another shape, weights at the start that the heads do not have."""
    D, H, kind = values["D"], values["H"], values["weights"]
    lam = shaped("lam", values["lam"], 0.4 * (1 - np.arange(D) / D), f"D={D}")
    shapes = {name: (H,) + (D,) * (RANKS[name] - 1) for name in KINDS[kind]}
    given = {name: values[name] for name in RANKS if values[name] is not None}
    for name in given:
        if name not in shapes:
            raise ParamError(f"{name}: heads with weights={kind} have {', '.join(shapes)}")
        given[name] = shaped(name, given[name], np.empty(shapes[name]), f"H={H} and D={D}")
    laws = {name: InitialLaw(shape, "normal", float(values["init_scale"]), given.get(name)) for name, shape in shapes.items()}
    return Experiment(
        model=LinearAttention(laws, lam, values["N"]),
        stream=Drawn(seeds, partial(draw_prompts, lam, values["N"], dtype), batch=values["batch"]),
        steps=2000,
        exact={"lam": lam},
        theory={f"in_context.{kind}": {"lam": lam, "N": values["N"]}},
    )


def pair(kind: str) -> Pair:
    """How in_context.separate or in_context.merged describes the task."""
    requirements, links = {"weights": (kind,), "momentum": (0,)}, ("loss=loss_population", "share", "W", *KINDS[kind])
    return pair_of(*links, step="all", start=KINDS[kind], requirements=requirements, example={"weights": kind})


DOC = "linear attention learns regression from prompts that are drawn anew (zhang2025training)"
PAIRS = {f"in_context.{kind}": pair(kind) for kind in KINDS}
TASK = ReferenceTask("in_context", DOC, SETTINGS, make, memory, ("linear_attention",), PAIRS)
