"""Attention logits of the JoMA block as functions of its MLP weights (tian2023joma, Theorem 1).

With r = eta_z / eta_w and temperature T, gradient flow keeps, token by token,
    linear   sum_m z_m^2 - r sum_k v_k^2,      exp   sum_m z_m - r / (2 T) sum_k v_k^2,
exactly, for every phi, loss and data, if the embeddings are orthonormal; with several queries only the sums over m. The theorem
is stated for T = 1, r = 1 and one query. For softmax it is an approximation: z moves by r / (2 T) (sum_k v_k^2 - |V|_F^2 b) with
b the mean attention at the start. Its direction stays good, but its size is wrong by far once the attention has moved.
"""

from dataclasses import dataclass

from odesim.base.arrays import Array, array_namespace


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
