"""Memory of training with Adam, GaLore and LoRA, in elements: weights, moments and projections, without gradients."""

from dataclasses import dataclass


def adam(m: int, n: int) -> int:
    """A weight (m, n) and its two moments."""
    return 3 * m * n


def galore(m: int, n: int, r: int) -> int:
    """A weight (m, n), one projection of its shorter side to r, two moments of what is projected."""
    short, long = sorted((m, n))
    return m * n + short * r + 2 * long * r


def lora(m: int, n: int, r: int) -> int:
    """A weight (m, n), factors (m, r) and (r, n), and their moments."""
    return m * n + 3 * (m + n) * r


def break_even(m: int, n: int) -> float:
    """The rank below which GaLore takes less than Adam: 2 m n / (m + 2 n), with m the shorter side."""
    short, long = sorted((m, n))
    return 2 * short * long / (short + 2 * long)


@dataclass(frozen=True)
class Llama:
    """Sizes of a LLaMA; embedding and head are not tied."""

    hidden: int
    intermediate: int
    heads: int
    layers: int
    vocabulary: int = 32_000

    @property
    def embeddings(self) -> int:
        """Elements of embedding and head."""
        return 2 * self.vocabulary * self.hidden

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Shapes of the matrices of all layers: q, k, v, o, then gate, up, down."""
        return self.layers * (4 * [(self.hidden, self.hidden)] + 3 * [(self.hidden, self.intermediate)])

    @property
    def norms(self) -> int:
        """Elements of the norms: two in each layer, one at the end."""
        return (2 * self.layers + 1) * self.hidden

    @property
    def parameters(self) -> int:
        """Elements of all weights."""
        return self.embeddings + self.norms + sum(m * n for m, n in self.matrices)

    def adam(self) -> int:
        """Elements with Adam."""
        return 3 * self.parameters

    def galore(self, r: int) -> int:
        """Elements with GaLore on the matrices of the layers, Adam on the rest."""
        return 3 * (self.embeddings + self.norms) + sum(galore(m, n, r) for m, n in self.matrices)

    def bytes(self, method: str, r: int = 0, *, gradients: bool = True) -> int:
        """Bytes of training with weights of 16 bits, without activations.

        method: "adam" (moments of 16 bits), "adam8" (of 8 bits), "galore" and "galore8" with rank r: projections of 16 bits, Adam of as
        many bits as theirs on embeddings, head and norms. gradients: all, or the largest matrix's alone, applied layer by layer.
        """
        of_moment, P = 1 if method.endswith("8") else 2, self.parameters
        matrix = max(self.vocabulary * self.hidden, *(m * n for m, n in self.matrices))
        kept = 2 * P + 2 * (P if gradients else matrix)
        if method.startswith("adam"):
            return kept + 2 * of_moment * P
        low = sum(2 * of_moment * max(shape) * r + 2 * min(shape) * r for shape in self.matrices)
        return kept + 2 * of_moment * (self.embeddings + self.norms) + low
