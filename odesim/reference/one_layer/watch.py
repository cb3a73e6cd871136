"""Observables of the one-layer model in infinite contexts, with names and definitions of scan_snap.full."""

from collections.abc import Callable
from typing import Any

from odesim.base.arrays import Array, array_namespace
from odesim.lab.training.protocols import Observable, Params


def entropies(c: Array) -> Array:
    """Entropy (..., K) of shares c (..., K, S) normalised over S, with 0 ln 0 = 0; 0 where all shares are 0."""
    xp = array_namespace(c)
    total = c.sum(axis=-1)  # (..., K)
    # sum x ln x of x = c / total, without ln 0 and division by 0
    inner = (c * xp.log(xp.where(c > 0, c, 1))).sum(axis=-1)  # (..., K)
    safe_total = xp.where(total > 0, total, 1)
    return xp.log(safe_total) - inner / safe_total


def distinct_attention(c: Array, P: Array) -> Array:
    """c (..., K, S) at tokens that only one class of P (K, S) has, 0 elsewhere."""
    is_distinct = (P > 0) & ((P > 0).sum(axis=0) == 1)
    return c * array_namespace(c).asarray(is_distinct)


def one_layer_observables(model: Any) -> tuple[Observable, ...]:
    """The observables of a YZ model; c is 0 at rows of queries."""
    P = model.wide_P

    def of_attention(f: Callable[[Array], Array]) -> Callable[[Params], Array]:
        return lambda params: f(model.attention(params))

    return (
        Observable("c", of_attention(lambda c: c), ("n", "l"), "attention of each class in infinite contexts"),
        Observable("entropy", of_attention(entropies), ("n",), "entropy of c"),
        Observable(
            "entropy_distinct",
            of_attention(lambda c: entropies(distinct_attention(c, P)).mean(axis=-1)),
            (),
            "entropy of c over each class's distinct tokens, normalised, on average over classes",
        ),
        Observable("Y", lambda params: params["Y"].copy(), ("l", "j"), "decoder"),
        Observable("Z", lambda params: params["Z"].copy(), ("m", "l"), "attention logits"),
        Observable("loss_population", model.population_loss, (), "loss in infinite contexts"),
    )
