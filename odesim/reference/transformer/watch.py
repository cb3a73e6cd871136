"""Observables of a transformer: entropy of attention, cosines of embeddings, stable ranks of matrices."""

from collections.abc import Callable

from odesim.base.arrays import Array, array_namespace
from odesim.lab.networks.architecture import Architecture
from odesim.lab.networks.measures import entropy, stable_rank
from odesim.lab.networks.transformer import ForwardPass
from odesim.lab.training.protocols import Batch, Observable, Params

Forward = Callable[[Params, Batch], ForwardPass]

MANY_TOKENS = 1000  # vocabulary for which all pairs of embeddings cost more than a gradient step


def attention_entropies(run: ForwardPass) -> Array:
    """The entropy (R, L, H) of the attention weights of each layer and head, averaged over samples and queries without padding.

    A key that represents n identical ones (log_weight ln n) counts as n keys; samples are weighted by `weight`.
    """
    batch = run.batch
    xp = array_namespace(run.outputs)
    R, B, T = run.shape
    queries = xp.ones((R, B, T), run.outputs.dtype)
    if "padding" in batch:
        queries *= ~batch["padding"]
    if "weight" in batch:
        queries *= batch["weight"][:, :, None]
    queries /= queries.sum(axis=(1, 2), keepdims=True)
    layers = []
    for a in run.attention:
        h = entropy(a)  # (R, B, H, T)
        if "log_weight" in batch:
            keys = xp.maximum(batch["log_weight"], -1e30).astype(a.dtype)  # -inf * 0 is no number
            h = h + (a @ keys[:, :, None, :, None])[..., 0]
        layers.append((h * queries[:, :, None]).sum(axis=(1, 3)))
    return xp.stack(layers, axis=1)


def embedding_cosines(params: Params) -> tuple[Array, Array]:
    """(mean, largest) absolute cosine (R,) of pairs of different rows of the embedding (R, V, d); 0 for rows of zeros."""
    E = params["embedding"]
    xp = array_namespace(E)
    V = E.shape[1]
    lengths = xp.sqrt((E * E).sum(axis=2, keepdims=True))  # (R, V, 1)
    unit = E / xp.where(lengths > 0.0, lengths, 1.0)
    cosine = xp.abs(unit @ unit.swapaxes(1, 2))  # (R, V, V)
    cosine *= 1.0 - xp.eye(V, dtype=E.dtype)
    flat = cosine.reshape(len(E), -1)
    return flat.sum(axis=1) / max(V * (V - 1), 1), flat.max(axis=1)


def transformer_observables(model: Architecture, forward: Forward, batch: Batch | None) -> tuple[Observable, ...]:
    """The observables of a transformer; those that need data only if a batch is given."""
    matrices = [name for name, start in model.starts().items() if len(start.shape) == 2]
    is_costly = model.vocabulary > MANY_TOKENS

    def ranks(params: Params) -> Array:
        xp = array_namespace(params["embedding"])
        return xp.stack([stable_rank(params[name]) for name in matrices], axis=1)

    result = [
        Observable("embedding_cosine", lambda p: embedding_cosines(p)[0], (), "mean |cosine| of two tokens' embeddings", costly=is_costly),
        Observable("embedding_cosine_max", lambda p: embedding_cosines(p)[1], (), "largest |cosine| of two embeddings", costly=is_costly),
        Observable("stable_rank", ranks, ("matrix",), f"|W|_F^2 / |W|_2^2 of {', '.join(matrices)}", costly=True),
    ]
    if batch is not None and model.layers:
        doc, each = "entropy of the attention, mean over queries and heads", "entropy of each head's attention, mean over queries"
        result[:0] = [
            Observable("attention_entropy", lambda p: attention_entropies(forward(p, batch)).mean(axis=2), ("layer",), doc),
            Observable("attention_entropy_heads", lambda p: attention_entropies(forward(p, batch)), ("layer", "head"), each, costly=True),
        ]
    return tuple(result)
