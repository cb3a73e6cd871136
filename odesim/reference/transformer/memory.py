"""What the training of a transformer takes in memory, from its sizes alone."""

from collections.abc import Mapping

from odesim.reference.transformer.architecture import Architecture


def transformer_memory(made: Architecture, *, seeds: int, batch: int, length: int, read: int = 1) -> Mapping[str, int]:
    """{what takes memory: how many numbers, about}: sequences of `length` places, the outputs of `read` of them."""
    width, layers, mlp, outputs = made.width, made.layers, made.mlp, made.classes
    matrices = layers * (4 * width * width + 2 * width * mlp)
    tables = width * (made.vocabulary + outputs)
    # a block keeps its rows, queries, keys, values, what was attended, two norms, and the MLP's nodes before and after
    pass_ = layers * (length * (10 * width + 3 * mlp) + 2 * made.heads * length * length) + read * 3 * outputs
    return {
        "the parameters, their gradients and the optimizer": 5 * seeds * (matrices + tables),
        "what a step computes": seeds * batch * pass_,
        "the cosines of all pairs of embeddings": 2 * seeds * made.vocabulary**2,
    }
