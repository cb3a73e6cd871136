"""Memory that the training of a transformer takes, from its sizes."""

from collections.abc import Mapping

from odesim.lab.networks.architecture import Architecture


def transformer_memory(made: Architecture, *, seeds: int, batch: int, length: int, read: int = 1) -> Mapping[str, int]:
    """{what takes memory: approximate number of numbers} for sequences of `length` tokens, with outputs at `read` positions."""
    width, layers, mlp, outputs = made.width, made.layers, made.mlp, made.classes
    matrices = layers * (4 * width * width + 2 * width * mlp)
    tables = width * (made.vocabulary + outputs)
    # a block stores rows, queries, keys, values, attended rows, two norms, MLP nodes before and after activation
    pass_ = layers * (length * (10 * width + 3 * mlp) + 2 * made.heads * length * length) + read * 3 * outputs
    return {
        "the parameters, their gradients and the optimizer": 5 * seeds * (matrices + tables),
        "what a step computes": seeds * batch * pass_,
        "the cosines of all pairs of embeddings": 2 * seeds * made.vocabulary**2,
    }
