"""What can be watched of the one-layer model, all of it in infinite contexts; names and definitions as in scan_snap.full."""

from collections.abc import Callable
from typing import Any

from odesim.base.arrays import Array, array_namespace
from odesim.reference.protocols import Observable, Params


def entropies(c: Array) -> Array:
    """Entropy (..., K) of shares c (..., K, S) normalised over S: 0 ln 0 is 0, and so is the entropy of no shares at all."""
    xp = array_namespace(c)
    total = c.sum(axis=-1)  # (..., K)
    # the sum of x ln x over the total, without a 0 in a logarithm or below a line
    inner = (c * xp.log(xp.where(c > 0, c, 1))).sum(axis=-1)  # (..., K)
    some = xp.where(total > 0, total, 1)
    return xp.log(some) - inner / some


def distinct_attention(c: Array, P: Array) -> Array:
    """c (..., K, S) at tokens that one class of P (K, S) alone has, 0 elsewhere."""
    own = (P > 0) & ((P > 0).sum(axis=0) == 1)
    return c * array_namespace(c).asarray(own)


def one_layer_observables(model: Any) -> tuple[Observable, ...]:
    """Those of a YZ model; where queries have rows of their own, c has them too, and there it is 0."""
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
