"""The JoMA block with hand-written gradients: attention over contextual tokens, a residual query, one MLP layer.

A sample n has counts x (Mc,) of its contextual tokens and a query m. With orthonormal embeddings U = [U_C, u_1 .. u_Mq],
    b = attention(x, z_m / T),  f = U_C b + u_m,  h_k = phi(w_k . f) = phi(b . V[:, k] + Xi[m, k]),
and a loss of h that sends the signal g = -dloss/dh back. The logits Z are free parameters: there are no keys and queries.

Coordinates: V = U_C^T W, Xi = U_q^T W and Z; or, given the embeddings, W (d, K) and Z. With orthonormal embeddings both are
one flow; others only W can have. Source: tian2023joma, sections 2 and 3. z_m carries the weight of the samples with query m.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from odesim.base.arrays import Array, array_namespace, on_same_device
from odesim.base.errors import ParamError, counted, no_such
from odesim.reference.joma.attention import ATTENTIONS
from odesim.reference.joma.heads import ACTIVATIONS, SIGNALS
from odesim.reference.protocols import Batch, Observable, Params

GROUPS = {"V": "w", "Xi": "w", "W": "w", "Z": "z"}


@dataclass(frozen=True, eq=False)
class JomaBlock:
    """The JoMA block as a Model. Its batch: x (R, N, Mc), query (R, N), weights pi (R, N), and the data of its signal (heads.py).

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
        for what, word, table in (
            ("attention", self.attention, ATTENTIONS),
            ("phi", self.phi, ACTIVATIONS),
            ("signal", self.signal, SIGNALS),
        ):
            if word not in table:
                raise ParamError(no_such(what, word, table))
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
        Z = np.stack([rng.standard_normal((Mc, Mq)) for rng in rngs])
        W = np.stack([rng.standard_normal((rows, K)) for rng in rngs])
        Z, W = (self.scale * Z).astype(dtype), (self.scale * W).astype(dtype)
        return {"W": W, "Z": Z} if self.embeddings is not None else {"V": W[:, :Mc].copy(), "Xi": W[:, Mc:].copy(), "Z": Z}

    def nodes(self, params: Params) -> tuple[Array, Array]:
        """V (R, Mc, K) and Xi (R, Mq, K), from the parameters in either coordinates."""
        if self.embeddings is None:
            return params["V"], params["Xi"]
        W = params["W"]
        both = array_namespace(W).asarray(self.embeddings.T, W.dtype) @ W  # (R, Mc + Mq, K)
        return both[:, : self.shape[0]], both[:, self.shape[0] :]

    def nodes_back(self, dV: Array, dXi: Array) -> Params:
        """Gradients of the parameters in group w, from those of V (R, Mc, K) and Xi (R, Mq, K)."""
        if self.embeddings is None:
            return {"V": dV, "Xi": dXi}
        xp = array_namespace(dV)
        return {"W": xp.asarray(self.embeddings, dV.dtype) @ xp.concatenate([dV, dXi], axis=1)}  # (R, d, K)

    def attend(self, Z: Array, batch: Batch) -> Array:
        """The attention b (R, N, Mc) of all samples."""
        s = query_indicators(batch["query"], Z) @ Z.swapaxes(1, 2) / self.temperature  # (R, N, Mc)
        return ATTENTIONS[self.attention].forward(batch["x"], s)

    def loss_and_gradients(self, params: Params, batch: Batch) -> tuple[Array, Params]:
        """Loss (R,), weighted by pi, and its gradient by parameter (R, ...)."""
        xp, batch = array_namespace(params["Z"]), on_same_device(params["Z"], batch)
        phi = ACTIVATIONS[self.phi]
        V, Xi = self.nodes(params)  # (R, Mc, K), (R, Mq, K)
        x, pi, Z = batch["x"], batch["pi"], params["Z"]  # (R, N, Mc), (R, N), (R, Mc, Mq)
        queries = query_indicators(batch["query"], Z)  # (R, N, Mq)

        b = self.attend(Z, batch)  # (R, N, Mc)
        u = b @ V + queries @ Xi  # (R, N, K)
        top = None if self.top is None else xp.asarray(self.top, V.dtype)
        losses, dh = SIGNALS[self.signal](phi.value(u), top, batch)  # (R, N), (R, N, K)

        du = pi[..., None] * dh * phi.slope(u)  # (R, N, K)
        dV = b.swapaxes(1, 2) @ du  # (R, Mc, K)
        dXi = queries.swapaxes(1, 2) @ du  # (R, Mq, K)
        db = du @ V.swapaxes(1, 2)  # (R, N, Mc)
        ds = ATTENTIONS[self.attention].back(db, x, b)  # (R, N, Mc)
        dZ = ds.swapaxes(1, 2) @ queries / self.temperature  # (R, Mc, Mq)
        return (pi * losses).sum(axis=-1), {**self.nodes_back(dV, dXi), "Z": dZ}


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
