"""The JoMA block with hand-written gradients, its attentions, activations and signals, its law of the logits, and its observables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.base.errors import ParamError, counted, no_such
from odesim.lab.networks.layers import Activation
from odesim.lab.networks.measures import entropy, normalised_correlation, stable_rank
from odesim.lab.training.network import InitialLaw, draw_start
from odesim.lab.training.task import Batch, Observable, Params

# The attentions of the JoMA block, forward and backward: linear, exp, softmax (tian2023joma, section 3).
#
# x (R, N, Mc) counts the contextual tokens of a sample, s (R, N, Mc) are the logits of its query over the temperature.


@dataclass(frozen=True)
class Attention:
    """An attention: forward(x, s) -> b (R, N, Mc), and back(p, x, b) -> dJ/ds (R, N, Mc) for p = dJ/db (R, N, Mc)."""

    forward: Callable[[Array, Array], Array]
    back: Callable[[Array, Array, Array], Array]


def softmax(x: Array, s: Array) -> Array:
    """Softmax attention b = x exp(s) / sum x exp(s)."""
    xp = array_namespace(s)
    present = xp.where(x > 0, s, xp.full_like(s, -xp.inf))  # absent tokens must not make the others underflow
    weights = x * xp.exp(present - present.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


ATTENTIONS = {
    "linear": Attention(lambda x, s: x * s, lambda p, x, b: x * p),
    "exp": Attention(lambda x, s: x * array_namespace(s).exp(s), lambda p, x, b: b * p),
    "softmax": Attention(softmax, lambda p, x, b: b * (p - (b * p).sum(axis=-1, keepdims=True))),
}


ACTIVATIONS: dict[str, Activation] = {
    "identity": lambda u: (u, array_namespace(u).ones_like(u)),
    "relu": lambda u: (u * (u > 0), (u > 0).astype(u.dtype)),
    "softplus": lambda u: (array_namespace(u).logaddexp(u, u * 0), 0.5 + 0.5 * array_namespace(u).tanh(0.5 * u)),
    "square": lambda u: (u * u, 2 * u),
}


# The losses above the nodes h (R, N, K): each (R, N), with its gradient (R, N, K). top: the matrix A (C, K) above h, None for the identity.


def fixed(h: Array, top: Array | None, batch: Batch) -> tuple[Array, Array]:
    """-sum_k G h with G = batch["signal"] (R, N, K): the back-propagated signal is G, independent of h; top is not used."""
    G = batch["signal"]
    return -(G * h).sum(axis=-1), -G


def ce(h: Array, top: Array | None, batch: Batch) -> tuple[Array, Array]:
    """-ln softmax(A h)[label], with batch["label"] (R, N)."""
    xp = array_namespace(h)
    scores = h if top is None else h @ top.T  # (R, N, C)
    scores = scores - scores.max(axis=-1, keepdims=True)
    p = xp.exp(scores)
    total = p.sum(axis=-1, keepdims=True)
    onehot = (batch["label"][..., None] == xp.arange(p.shape[-1])).astype(h.dtype)
    loss = xp.log(total[..., 0]) - (onehot * scores).sum(axis=-1)
    back = p / total - onehot  # (R, N, C)
    return loss, back if top is None else back @ top


def mse(h: Array, top: Array | None, batch: Batch) -> tuple[Array, Array]:
    """|A h - y|^2 / 2 with y = batch["target"] (R, N, C)."""
    back = (h if top is None else h @ top.T) - batch["target"]  # (R, N, C)
    return 0.5 * (back * back).sum(axis=-1), back if top is None else back @ top


SIGNALS = {"fixed": fixed, "ce": ce, "mse": mse}


# Attention logits of the JoMA block as functions of its MLP weights (tian2023joma, Theorem 1).
#
# With r = eta_z / eta_w and temperature T, gradient flow keeps, token by token,
#     linear   sum_m z_m^2 - r sum_k v_k^2,      exp   sum_m z_m - r / (2 T) sum_k v_k^2,
# exactly, for every phi, loss and data, if the embeddings are orthonormal; with several queries only the sums over m. The theorem
# is stated for T = 1, r = 1 and one query. For softmax it is an approximation: z moves by r / (2 T) (sum_k v_k^2 - |V|_F^2 b) with
# b the mean attention at the start. Its direction stays good, but its size is wrong by far once the attention has moved.


def invariant(attention: str, V: Array, Z: Array, ratio: float, temperature: float) -> Array:
    """The invariant (R, Mc) of the gradient flow, from V (R, Mc, K) and Z (R, Mc, Mq), for linear or exp attention."""
    squares = ratio * (V * V).sum(axis=-1)
    return (Z * Z).sum(axis=-1) - squares if attention == "linear" else Z.sum(axis=-1) - squares / (2 * temperature)


@dataclass(frozen=True, eq=False)
class ReducedLogits:
    """The logits of one query as a function of V. V (R, Mc, K), z and mean attention (R, Mc): values at the start."""

    attention: str
    ratio: float
    temperature: float
    V: Array
    z: Array
    mean: Array

    def main_term(self, V: Array) -> Array:
        """The main term r / (2 T) sum_k v_k^2 (R, Mc)."""
        return self.ratio / (2 * self.temperature) * (V * V).sum(axis=-1)

    def softmax_term(self, V: Array) -> Array:
        """The term -r / (2 T) |V|_F^2 b (R, Mc) of softmax."""
        return -self.main_term(V).sum(axis=-1, keepdims=True) * array_namespace(V).asarray(self.mean)

    def logits(self, V: Array) -> Array:
        """The logits z (R, Mc) at V (R, Mc, K); for linear attention valid while z keeps its sign."""
        xp = array_namespace(V)
        V0, z0 = xp.asarray(self.V), xp.asarray(self.z)
        if self.attention == "linear":
            square = z0 * z0 + self.ratio * ((V * V).sum(axis=-1) - (V0 * V0).sum(axis=-1))
            return xp.sign(z0) * xp.sqrt(xp.maximum(square, 0))
        moved = self.main_term(V) - self.main_term(V0)
        return z0 + moved + (self.softmax_term(V) - self.softmax_term(V0) if self.attention == "softmax" else 0)


# The JoMA block with hand-written gradients: attention over contextual tokens, a residual query, one MLP layer.
#
# A sample n has counts x (Mc,) of its contextual tokens and a query m. With orthonormal embeddings U = [U_C, u_1 .. u_Mq],
#     b = attention(x, z_m / T),  f = U_C b + u_m,  h_k = phi(w_k . f) = phi(b . V[:, k] + Xi[m, k]),
# and a loss of h that sends the signal g = -dloss/dh back. The logits Z are free parameters: there are no keys and queries.
#
# Coordinates: V = U_C^T W, Xi = U_q^T W and Z; or, given the embeddings, W (d, K) and Z. With orthonormal embeddings both are
# one flow; others only W can have. Source: tian2023joma, sections 2 and 3. z_m carries the weight of the samples with query m.

GROUPS = {"V": "w", "Xi": "w", "W": "w", "Z": "z"}


@dataclass(frozen=True, eq=False)
class JomaBlock:
    """The JoMA block as a Model. Its batch: x (R, N, Mc), query (R, N), weights pi (R, N), and the data of its signal, one of SIGNALS.

    shape: (Mc, Mq, K). top: the fixed matrix A (C, K) above h, None for the identity. embeddings (d, Mc + Mq): None for the
    coordinates (V, Xi, Z). scale: standard deviation of initial values. Raises ParamError.
    """

    shape: tuple[int, int, int]
    attention: str = "softmax"
    temperature: float = 1.0
    phi: str = "identity"
    signal: str = "ce"
    top: Array | None = None
    embeddings: Array | None = None
    scale: float = 0.01
    observables: tuple[Observable, ...] = ()
    name: str = "joma"

    def __post_init__(self) -> None:
        for what, table in (("attention", ATTENTIONS), ("phi", ACTIVATIONS), ("signal", SIGNALS)):
            if getattr(self, what) not in table:
                raise ParamError(no_such(what, getattr(self, what), table))
        if not self.temperature > 0:
            raise ParamError(f"temperature must be above 0, not {self.temperature}")
        columns = self.shape[0] + self.shape[1]
        if self.embeddings is not None and self.embeddings.shape[1:] != (columns,):
            raise ParamError(f"embeddings must have {counted(columns, 'column')}, one a token, not the shape {self.embeddings.shape}")

    @property
    def groups(self) -> Mapping[str, str]:
        """{parameter: group}: V and Xi, or W, in group w; Z in group z."""
        return {name: GROUPS[name] for name in (("V", "Xi", "Z") if self.embeddings is None else ("W", "Z"))}

    def initial(self, rngs: Sequence[Generator], dtype: str) -> Params:
        """Initial parameters, normal with deviation scale: Z (R, Mc, Mq), then W (R, d, K), or V (R, Mc, K) and Xi (R, Mq, K) as its rows.

        Both coordinates thus start at the same point if embeddings are unit vectors.
        """
        Mc, Mq, K = self.shape
        rows = Mc + Mq if self.embeddings is None else len(self.embeddings)
        shapes = {"Z": (Mc, Mq), "W": (rows, K)}
        Z, W = draw_start({name: InitialLaw(shape, "normal", self.scale) for name, shape in shapes.items()}, rngs, dtype).values()
        return {"W": W, "Z": Z} if self.embeddings is not None else {"V": W[:, :Mc].copy(), "Xi": W[:, Mc:].copy(), "Z": Z}

    def nodes(self, params: Params) -> tuple[Array, Array]:
        """V (R, Mc, K) and Xi (R, Mq, K), from the parameters in either coordinates."""
        if self.embeddings is None:
            return params["V"], params["Xi"]
        W = params["W"]
        both = array_namespace(W).asarray(self.embeddings.T, W.dtype) @ W  # (R, Mc + Mq, K)
        return both[:, : self.shape[0]], both[:, self.shape[0] :]

    def attend(self, Z: Array, batch: Batch) -> Array:
        """The attention b (R, N, Mc) of all samples."""
        s = query_indicators(batch["query"], Z) @ Z.swapaxes(1, 2) / self.temperature  # (R, N, Mc)
        return ATTENTIONS[self.attention].forward(batch["x"], s)

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """Loss (R,), weighted by pi, and its gradient by parameter (R, ...)."""
        xp, batch = array_namespace(params["Z"]), on_same_device(params["Z"], batch)
        V, Xi = self.nodes(params)  # (R, Mc, K), (R, Mq, K)
        x, pi, Z = batch["x"], batch["pi"], params["Z"]  # (R, N, Mc), (R, N), (R, Mc, Mq)
        queries = query_indicators(batch["query"], Z)  # (R, N, Mq)

        b = self.attend(Z, batch)  # (R, N, Mc)
        u = b @ V + queries @ Xi  # (R, N, K)
        top = None if self.top is None else xp.asarray(self.top, V.dtype)
        h, slope = ACTIVATIONS[self.phi](u)
        losses, dh = SIGNALS[self.signal](h, top, batch)  # (R, N), (R, N, K)

        du = pi[..., None] * dh * slope  # (R, N, K)
        dV = b.swapaxes(1, 2) @ du  # (R, Mc, K)
        dXi = queries.swapaxes(1, 2) @ du  # (R, Mq, K)
        db = du @ V.swapaxes(1, 2)  # (R, N, Mc)
        ds = ATTENTIONS[self.attention].back(db, x, b)  # (R, N, Mc)
        dZ = ds.swapaxes(1, 2) @ queries / self.temperature  # (R, Mc, Mq)
        loss = (pi * losses).sum(axis=-1)
        if self.embeddings is None:
            return loss, {"V": dV, "Xi": dXi, "Z": dZ}
        return loss, {"W": xp.asarray(self.embeddings, dV.dtype) @ xp.concatenate([dV, dXi], axis=1), "Z": dZ}  # (R, d, K)


def query_indicators(query: Array, Z: Array) -> Array:
    """Indicators (R, N, Mq), 1 where sample n has query m, from query (R, N), in the dtype of Z (R, Mc, Mq)."""
    return (query[..., None] == array_namespace(query).arange(Z.shape[2])).astype(Z.dtype)


def equal_cosines(d: int, columns: int, cosine: float) -> Array:
    """Embeddings (d, columns) of length 1 with the same cosine between any two; unit vectors for cosine 0.

    Raises ParamError if no such vectors exist: d < columns, or a cosine outside (-1 / (columns - 1), 1).
    """
    if d < columns:
        raise ParamError(f"d must be at least {columns}, the number of tokens, not {d}")
    lowest = -1 / max(columns - 1, 1)
    if not lowest < cosine < 1:
        raise ParamError(f"cosine must lie between {lowest:.4g} and 1 for {columns} embeddings, not {cosine:g}")
    apart, along = np.sqrt(1 - cosine), np.sqrt(1 + (columns - 1) * cosine)  # roots of the Gram matrix's eigenvalues
    return np.eye(d, columns) * apart + (np.arange(d)[:, None] < columns) * (along - apart) / columns


def joma_observables(block: JomaBlock, data: Batch, start: Params, ratio: float) -> tuple[Observable, ...]:
    """The observables of a block trained on one batch with one query, from the parameters `start`. ratio: eta_z / eta_w.

    Softmax has NC_first and NC_second, the other attentions the invariant.
    """
    mean = (data["pi"][..., None] * block.attend(start["Z"], data)).sum(axis=1)  # of the attention at the start, (R, Mc)
    reduced = ReducedLogits(block.attention, ratio, block.temperature, block.nodes(start)[0], start["Z"][..., 0], mean)

    def V(params: Params) -> Array:
        return block.nodes(params)[0]

    def beside(name: str, logits: Callable[[Array], Array], doc: str) -> Observable:
        return Observable(name, lambda params: normalised_correlation(logits(V(params)), params["Z"][..., 0]), (), doc)

    def attention(params: Params) -> Array:
        return block.attend(params["Z"], on_same_device(params["Z"], data))

    def mean_entropy(params: Params) -> Array:
        size = abs(attention(params))  # (R, N, Mc)
        total = size.sum(axis=-1, keepdims=True)
        return (array_namespace(size).asarray(data["pi"]) * entropy(size / (total + (total == 0)))).sum(axis=-1)

    def kept(params: Params) -> Array:
        return invariant(block.attention, V(params), params["Z"], ratio, block.temperature)

    shared = (
        Observable("V", V, ("token", "node"), "weights of the nodes over the contextual tokens"),
        Observable("Xi", lambda p: block.nodes(p)[1], ("query", "node"), "weights of the nodes over the query tokens", costly=True),
        Observable("z", lambda params: params["Z"], ("token", "query"), "attention logits"),
        beside("NC", reduced.logits, "normalised correlation of z with the logits that the theorem makes of V"),
        Observable("stable_rank_V", lambda params: stable_rank(V(params)), (), "|V|_F^2 / |V|_2^2"),
        Observable("attention", attention, ("n", "l"), "attention of each sample", costly=True),
        Observable("entropy", mean_entropy, (), "entropy of a sample's attention, its shares of |b|; mean over the samples"),
    )
    if block.attention != "softmax":
        law = "z^2 - r |v|^2" if block.attention == "linear" else "z - r |v|^2 / (2 T)"
        return (*shared, Observable("invariant", kept, ("token",), f"{law}, r = eta_z / eta_w: gradient flow keeps it"))
    first = beside("NC_first", reduced.main_term, "the same with |v|^2 / (2 T) of each token alone")
    return (*shared, first, beside("NC_second", reduced.softmax_term, "the same with -|V|^2 b / (2 T) alone"))
