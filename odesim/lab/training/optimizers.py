"""SGD, momentum, Adam and AdamW in torch's conventions, the sign of the gradient, and Muon; in place, on named arrays of any library."""

from collections.abc import Mapping
from dataclasses import asdict
from math import cos, isfinite, pi, sqrt
from numbers import Integral, Real
from typing import Any

import numpy as np

from odesim.base.arrays import Array, array_namespace
from odesim.base.errors import ParamError, no_such
from odesim.lab.training.task import Optimizer, Params, Setting

OPTIMIZERS = ("adam", "adamw", "momentum", "muon", "sgd", "sign")
SGD = (Setting("optimizer", "sgd", "how it descends", choices=OPTIMIZERS), Setting("momentum", 0.0, "of sgd", low=0.0, high=1.0))
ADAM = Setting("optimizer", "adam", "how it descends", choices=("adam", "adamw", "sgd"))
COSINE = Setting("cosine", 0, "updates in which the rate falls to 0 as a cosine does, where it stays; 0: a constant rate", low=0)
CLIP = Setting("clip", 0.0, "largest norm of the gradient, a longer one is scaled to it; 0: any", low=0.0)


def adam(rate: float) -> tuple[Setting, ...]:
    """The settings of a task that descends by Adam at this rate."""
    return ADAM, Setting("lr", rate, "learning rate", low=0.0), SGD[1], COSINE


def descent(rate: float, doc: str = "learning rate", *, group: str = "all") -> tuple[Setting, ...]:
    """The settings of a task that descends at this rate, of one group of parameters."""
    return Setting("eta", rate, doc, low=0.0, open_low=True, rate_of=group), *SGD


def settings_in_use(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The settings {name: value} of an Optimizer that the optimizer of that name uses."""
    unused = ("momentum",) if str(spec["name"]).startswith("adam") else ("betas", "eps")
    return {name: value for name, value in spec.items() if name not in unused}


def stored_settings(spec: Optimizer) -> dict[str, Any]:
    """The settings {name: value} that a run keeps; a run without cosine or clip does not name it."""
    return {name: value for name, value in asdict(spec).items() if name not in ("cosine", "clip") or value}


def check_optimizer(spec: Optimizer) -> None:
    """Raises ParamError if the name is not in OPTIMIZERS or a number is out of range."""
    if spec.name not in OPTIMIZERS:
        raise ParamError(no_such("optimizer", spec.name, OPTIMIZERS))
    for group, rate in spec.rates.items():
        if isinstance(rate, bool) or not isinstance(rate, Real):
            raise ParamError(f"the learning rate of {group} must be a number, not {rate!r}")
    numbers = {f"the learning rate of {group}": rate for group, rate in spec.rates.items()}
    numbers |= {name: getattr(spec, name) for name in ("momentum", "eps", "clip", "weight_decay")}
    for name, value in numbers.items():
        if not (isfinite(value) and value >= 0):
            raise ParamError(f"{name} must be finite and at least 0, not {value}")
    if spec.name == "momentum" and spec.momentum == 0:
        raise ParamError("the optimizer 'momentum' needs a momentum above 0; without one it is 'sgd'")
    if isinstance(spec.cosine, bool) or not isinstance(spec.cosine, Integral) or spec.cosine < 0:
        raise ParamError(f"cosine must be a number of updates, 0 for constant rates, not {spec.cosine!r}")
    for value in spec.betas:
        if not 0 <= value < 1:
            raise ParamError(f"betas must lie in [0, 1), not {value}")


def clipped(grads: Mapping[str, Array], most: float) -> Mapping[str, Array]:
    """Gradients {name: (R, ...)}, each seed's scaled by most / (norm + 1e-6) where its norm over all parameters is above; 0: as they are.

    The form of torch's clip_grad_norm_.
    """
    if not most:
        return grads
    rows = [g.reshape(len(g), -1) for g in grads.values()]
    squares: Any = sum((row * row).sum(axis=1) for row in rows)
    xp = array_namespace(squares)
    scale = xp.minimum(most / (xp.sqrt(squares) + 1e-6), 1).astype(squares.dtype)  # (R,)
    return {name: g * scale.reshape(-1, *(1,) * (g.ndim - 1)) for name, g in grads.items()}


def make_optimizer(spec: Optimizer, groups: Mapping[str, str], params: Params) -> "Sgd":
    """The optimizer for params {name: (R, ...)}. groups {parameter: group}; spec.rates has the learning rate of each group.

    Raises ParamError for an unknown name or group, or an invalid number.
    """
    check_optimizer(spec)
    for name in spec.rates:
        if name not in groups.values():
            raise ParamError(no_such("group of parameters", name, set(groups.values())))
    for name in params:
        if groups.get(name) not in spec.rates:
            raise ParamError(f"no learning rate for the parameter {name!r} (group {groups.get(name)!r}); there is one for {[*spec.rates]}")
    rates = {name: float(spec.rates[groups[name]]) for name in params}
    return KINDS.get(spec.name, Sgd)(spec, rates, params)


class Sgd:
    """SGD with momentum: v <- momentum v + (g + decay w);  w <- w - rate v. rates {parameter: learning rate}."""

    # torch's form, in which the published logs are. Sutskever et al. 2013 and TensorFlow put the rate into v: the two agree for a constant
    # rate, but where the rate falls torch's old steps shrink with it. torch also starts with v = g, as v = 0 does here.

    decoupled = False  # whether rate decay w is taken from the weights, in place of a part of the gradient

    def __init__(self, spec: Optimizer, rates: Mapping[str, float], params: Params) -> None:
        self.spec, self.rates, self.decay = spec, rates, float(spec.weight_decay)
        self.work, self.step = zeros_like(params), np.zeros((), np.int64)
        self.m, self.v = self.moments(params)

    def moments(self, params: Params) -> tuple[Params, Params]:
        """m and v at the start, {} where it has none."""
        return {}, zeros_like(params) if self.spec.momentum else {}

    def update(self, params: Params, grads: Mapping[str, Array]) -> None:
        """Makes one descent step: changes params {name: (R, ...)} in place; grads are not changed."""
        share, grads = share_of_rate(self.spec, int(self.step)), clipped(grads, self.spec.clip)
        self.step += 1
        for name, rate in self.rates.items():
            w, g, work = params[name], grads[name], self.work[name]
            xp = array_namespace(w)
            if self.decay and self.decoupled:
                w *= 1 - share * rate * self.decay
            elif self.decay:
                xp.multiply(w, self.decay, out=work)
                work += g
                g = work
            xp.multiply(self.direction(g, self.v.get(name)), share * rate, out=work)
            w -= work

    def direction(self, g: Array, v: Array | None) -> Array:
        """What a step goes along: g (R, ...), or the velocity v (R, ...) if there is one, which is moved on."""
        if v is None:
            return g
        v *= self.spec.momentum
        v += g
        return v

    def state(self) -> dict[str, Array]:
        """{name: array}: everything that the next update depends on, not copied."""
        step = {"step": self.step} if self.m or self.spec.cosine else {}
        return step | {f"{letter}.{name}": a for letter, arrays in (("m", self.m), ("v", self.v)) for name, a in arrays.items()}

    def load(self, state: Mapping[str, Array]) -> None:
        """Copies a state from state() of another one. Raises ParamError if names, shapes or types differ."""
        copy_arrays(self.state(), state, "this state is of another optimizer or model")


class Sign(Sgd):
    """The sign of the gradient, or of its velocity: w <- w - rate sign(v); rate decay w is taken from the weights before.

    Bernstein et al. 2018, arXiv 1802.04434: signSGD, and Signum with momentum, whose factor 1 - momentum changes no sign.
    """

    decoupled = True

    def direction(self, g: Array, v: Array | None) -> Array:
        along = super().direction(g, v)
        return array_namespace(along).sign(along)


class Muon(Sgd):
    """Muon: v <- momentum v + (1 - momentum) g, looked ahead as by Nesterov, made nearly orthogonal; rate decay w is taken before.

    Matrices alone have singular values: of more axes the later ones are one, a vector is a matrix of one row, whose length a step changes.
    """

    # of Jordan's program muon.py at KellerJordan/Muon: the step of a high matrix is the root of rows over columns longer. There other
    # arrays, embeddings and outputs are left to Adam; here all go one way, so that a training has one optimizer. No bfloat16.

    decoupled = True

    def direction(self, g: Array, v: Array | None) -> Array:
        beta = self.spec.momentum
        if v is not None:
            v *= beta
            v += (1 - beta) * g
            g = (1 - beta) * g + beta * v
        return nearly_orthogonal(g.reshape(len(g), g.shape[1] if g.ndim > 2 else 1, -1)).reshape(g.shape)


QUINTIC = (3.4445, -4.7750, 2.0315)


def nearly_orthogonal(G: Array) -> Array:
    """Matrices (R, rows, columns) with the singular vectors of G and values of .68 to 1.13, for those above 1/100 of the norm.

    Five times X <- a X + (b X X^T + c (X X^T)^2) X from G / |G|; then times the root of rows over columns, if that is above 1.
    """
    a, b, c = QUINTIC
    xp, (_, rows, columns) = array_namespace(G), G.shape
    X = G.swapaxes(1, 2) if rows > columns else G
    X = X / (xp.sqrt((X * X).sum(axis=(1, 2)))[:, None, None] + 1e-7)
    for _ in range(5):
        A = X @ X.swapaxes(1, 2)
        X = a * X + (b * A + c * (A @ A)) @ X
    X = X * max(1, rows / columns) ** 0.5
    return X.swapaxes(1, 2) if rows > columns else X


class Adam(Sgd):
    """Adam and AdamW: w <- w - rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps), m and v running means of g and g^2.

    adam adds decay w to the gradient, adamw takes rate decay w from the weights before the step.
    """

    # eps is added after the bias correction of v, as torch does. Kingma and Ba's second form (TensorFlow's) adds it before, which makes
    # it sqrt(1 - b2^t) times as large: in the first steps of small gradients the two differ visibly.

    def moments(self, params: Params) -> tuple[Params, Params]:
        return zeros_like(params), zeros_like(params)

    def update(self, params: Params, grads: Mapping[str, Array]) -> None:
        self.step += 1
        t, (b1, b2), eps = int(self.step), self.spec.betas, float(self.spec.eps)
        bias, root, share = 1 - b1**t, sqrt(1 - b2**t), share_of_rate(self.spec, t - 1)
        grads = clipped(grads, self.spec.clip)
        for name, full in self.rates.items():
            rate = share * full
            w, g, m, v, work = params[name], grads[name], self.m[name], self.v[name], self.work[name]
            xp = array_namespace(w)
            if self.decay and self.spec.name == "adamw":
                w *= 1 - rate * self.decay
            elif self.decay:
                g = g + self.decay * w
            m *= b1
            xp.multiply(g, 1 - b1, out=work)
            m += work
            v *= b2
            xp.multiply(g, g, out=work)
            work *= 1 - b2
            v += work
            xp.sqrt(v, out=work)
            work /= root
            work += eps
            xp.divide(m, work, out=work)
            work *= rate / bias
            w -= work


KINDS = {"adam": Adam, "adamw": Adam, "muon": Muon, "sign": Sign}
"""The others are Sgd."""


def share_of_rate(spec: Optimizer, t: int) -> float:
    """The share of its rates that update t = 0, 1, ... takes (Loshchilov and Hutter 2017, arXiv 1608.03983, eq. 5, without restarts)."""
    return 1.0 if spec.cosine == 0 else (1 + cos(pi * min(t, spec.cosine) / spec.cosine)) / 2


def zeros_like(params: Params) -> Params:
    """{name: zeros} in the shapes, types and library of params."""
    return {name: array_namespace(w).zeros_like(w) for name, w in params.items()}


def copy_arrays(arrays: Mapping[str, Array], stored: Mapping[str, Array], sentence: str) -> None:
    """Copies stored {name: array} into arrays. Raises ParamError, which begins with the sentence, if names, shapes or types differ."""
    shapes, stored_shapes = ({name: (a.shape, str(a.dtype)) for name, a in side.items()} for side in (arrays, stored))
    if shapes != stored_shapes:
        raise ParamError(f"{sentence}: it has {stored_shapes}, not {shapes}")
    for name, a in arrays.items():
        a[...] = array_namespace(a).asarray(stored[name])
