"""A forward pass of the transformer: its outputs, and what each layer made of the tokens."""

from dataclasses import dataclass

from odesim.base.arrays import Array
from odesim.reference.protocols import Batch
from odesim.reference.transformer.layers.block import Tape
from odesim.reference.transformer.layers.layer_norm import NormTape


@dataclass(frozen=True)
class ForwardPass:
    """A forward pass, N = B * T: outputs (R, B, P, C), the stream of rows (R, N, d) before block 0, 1, ..., and after the last.

    tapes: one a block, with attention weights a (R, B, H, T, T) and activations hidden (R, N, mlp). batch: where the parameters are.
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
        """Attention weights (R, B, H, T, T) of each layer: query before key."""
        return tuple(tape.a for tape in self.tapes)

    @property
    def hidden(self) -> tuple[Array, ...]:
        """Activations (R, B, T, mlp) of each layer; none where mlp is 0."""
        return tuple(tape.hidden.reshape(*self.shape, -1) for tape in self.tapes if tape.hidden is not None)
