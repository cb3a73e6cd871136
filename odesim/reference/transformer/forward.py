"""The record of a forward pass of the transformer: outputs, and the intermediate results for the backward pass."""

from dataclasses import dataclass

from odesim.base.arrays import Array
from odesim.lab.networks.layers import NormTape
from odesim.lab.networks.transformer import Tape
from odesim.lab.training.protocols import Batch


@dataclass(frozen=True)
class ForwardPass:
    """A forward pass: outputs (R, B, P, C), rows (R, N, d) before block 0, 1, ... and after the last, with N = B * T.

    tapes: one for each block, with attention weights a (R, B, H, T, T) and activations hidden (R, N, mlp). normed: of the layer norm
    before the head. read: the rows that the head reads. shape: (R, B, T). batch: on the device of the parameters.
    """

    outputs: Array
    streams: tuple[Array, ...]
    tapes: tuple[Tape, ...]
    normed: NormTape | None
    read: Array
    shape: tuple[int, int, int]
    batch: Batch

    @property
    def attention(self) -> tuple[Array, ...]:
        """Attention weights (R, B, H, T, T) of each layer, query axis before key axis."""
        return tuple(tape.a for tape in self.tapes)

    @property
    def hidden(self) -> tuple[Array, ...]:
        """MLP activations (R, B, T, mlp) of each layer; empty if mlp is 0."""
        return tuple(tape.hidden.reshape(*self.shape, -1) for tape in self.tapes if tape.hidden is not None)
