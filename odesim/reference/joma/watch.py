"""Observables of the JoMA block: V, z, stable rank, entropy, and the correlation of z with the logits of the theorem."""

from odesim.base.arrays import Array, on_same_device
from odesim.lab.networks.joma import JomaBlock, ReducedLogits, invariant
from odesim.lab.networks.measures import entropy, normalised_correlation, stable_rank
from odesim.lab.training.protocols import Batch, Observable, Params


def joma_observables(block: JomaBlock, data: Batch, start: Params, ratio: float) -> tuple[Observable, ...]:
    """The observables of a block trained on one batch with one query, from the parameters `start`. ratio: eta_z / eta_w.

    Softmax has NC_first and NC_second, the other attentions the invariant.
    """
    V0, z0 = block.nodes(start)[0], start["Z"][..., 0]
    reduced = ReducedLogits(block.attention, ratio, block.temperature, V0, z0, mean_attention(block, start["Z"], data))

    def V(params: Params) -> Array:
        return block.nodes(params)[0]

    def NC(params: Params) -> Array:
        return normalised_correlation(reduced.logits(V(params)), params["Z"][..., 0])

    def NC_first(params: Params) -> Array:
        return normalised_correlation(reduced.main_term(V(params)), params["Z"][..., 0])

    def NC_second(params: Params) -> Array:
        return normalised_correlation(reduced.softmax_term(V(params)), params["Z"][..., 0])

    def mean_entropy(params: Params) -> Array:
        moved = on_same_device(params["Z"], data)
        b = block.attend(params["Z"], moved)  # (R, N, Mc)
        total = abs(b).sum(axis=-1, keepdims=True)
        return (moved["pi"] * entropy(abs(b) / (total + (total == 0)))).sum(axis=-1)

    def invariant_of(params: Params) -> Array:
        return invariant(block.attention, V(params), params["Z"], ratio, block.temperature)

    def attention(params: Params) -> Array:
        return block.attend(params["Z"], on_same_device(params["Z"], data))

    shared = (
        Observable("V", V, ("token", "node"), "weights of the nodes over the contextual tokens"),
        Observable(
            "Xi", lambda params: block.nodes(params)[1], ("query", "node"), "weights of the nodes over the query tokens", costly=True
        ),
        Observable("z", lambda params: params["Z"], ("token", "query"), "attention logits"),
        Observable("NC", NC, (), "normalised correlation of z with the logits that the theorem makes of V"),
        Observable("stable_rank_V", lambda params: stable_rank(V(params)), (), "|V|_F^2 / |V|_2^2"),
        Observable("attention", attention, ("n", "l"), "attention of each sample", costly=True),
        Observable("entropy", mean_entropy, (), "entropy of a sample's attention, its shares of |b|; mean over the samples"),
    )
    if block.attention != "softmax":
        law = "z^2 - r |v|^2" if block.attention == "linear" else "z - r |v|^2 / (2 T)"
        return (*shared, Observable("invariant", invariant_of, ("token",), f"{law}, r = eta_z / eta_w: gradient flow keeps it"))
    return (
        *shared,
        Observable("NC_first", NC_first, (), "the same with |v|^2 / (2 T) of each token alone"),
        Observable("NC_second", NC_second, (), "the same with -|V|^2 b / (2 T) alone"),
    )


def mean_attention(block: JomaBlock, Z: Array, data: Batch) -> Array:
    """The mean attention sum_n pi_n b_n (R, Mc)."""
    return (data["pi"][..., None] * block.attend(Z, data)).sum(axis=1)
