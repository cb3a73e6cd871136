"""What the GaLore paper states of memory, and what follows from the sizes of the models."""

from collections.abc import Iterable

from odesim.lab.claims import Claim, Measurement, Statement, deviation
from odesim.models.galore._memory import Llama, adam, break_even, galore, lora
from odesim.symbolic import Source

PAPER = "zhao2024galore"
BYTES, GIB = 2, 2**30
SIZES = {
    "60M": Llama(512, 1376, 8, 8),
    "130M": Llama(768, 2048, 12, 12),
    "350M": Llama(1024, 2736, 16, 24),
    "1B": Llama(2048, 5461, 32, 24),
}
RANK = {"60M": 128, "130M": 256, "350M": 256, "1B": 512}
TABLE = {  # millions of parameters; GB with Adam, with GaLore
    "60M": (58.1, 0.348, 0.280),
    "130M": (134.1, 0.805, 0.611),
    "350M": (368.0, 2.208, 1.389),
    "1B": (1339.1, 8.034, 4.763),
}
PRINTED = {"60M": (0.36, 0.24), "130M": (0.76, 0.52), "350M": (2.06, 1.22), "1B": (7.80, 4.38)}


def table() -> Iterable[Measurement]:
    """Memory of four models: by the formulas, and beside the printed numbers."""
    for name, model in SIZES.items():
        both = [BYTES * elements for elements in (model.adam(), model.galore(RANK[name]))]
        yield deviation(f"parameters of {name} / 1e6", model.parameters / 1e6, TABLE[name][0], 0.051)
        yield deviation(f"GB of {name}, Adam and GaLore", [x / 1e9 for x in both], TABLE[name][1:], 5.1e-4)
        yield deviation(f"GiB of {name} / printed", [x / GIB for x in both], PRINTED[name], 0.1, relative=True)


def rank(m: int, n: int, r: int) -> Iterable[Measurement]:
    """Elements of GaLore over those of Adam and of LoRA."""
    yield Measurement(f"GaLore / Adam, {m} x {n}, r = {r}", galore(m, n, r) / adam(m, n), 1.0, 1e-12, "<=")
    yield Measurement(f"GaLore / LoRA, {m} x {n}, r = {r}", galore(m, n, r) / lora(m, n, r), 1.0, 1e-12, "<=")


def billion(heads: int, layers: int) -> Iterable[Measurement]:
    """What is left of the hidden size in heads, and the parameters."""
    model = Llama(2048, 5461, heads, layers)
    yield Measurement("hidden size modulo heads", model.hidden % model.heads, 0.0)
    yield Measurement("parameters / 1e6", model.parameters / 1e6, 1339.1, 0.051)


def other_depth() -> Iterable[Measurement]:
    """The parameters with as many layers as the row has heads."""
    yield Measurement("parameters with 32 layers / 1e9", Llama(2048, 5461, 32, 32).parameters / 1e9, 1.74, 5.1e-3)


LIMIT = int(break_even(2048, 5461))

MEMORY = (
    Claim(
        "galore.memory",
        Source(
            PAPER,
            "memory of pre-training LLaMA",
            "vocabulary 32000, embeddings and norms by Adam, 2 bytes each; their accounting is not stated",
        ),
        "formulas alone: weights, moments and projections of LLaMA of 60M to 1B parameters",
        printed=Statement(
            "memory with Adam and with GaLore, .36 and .24 GB for 60M to 7.80 and 4.38 GB for 1B",
            table,
            "half a unit of the last digit of an independent script; 10 % of the printed numbers, read as GiB",
        ),
        models=("galore.parametric_gradient",),
    ),
    Claim(
        "galore.memory_rank",
        Source(PAPER, "table of memory", "one weight of 2048 x 5461"),
        "formulas alone",
        printed=Statement(
            "GaLore takes mn + mr + 2nr elements, less than Adam and LoRA",
            lambda: rank(2048, 5461, LIMIT),
            "rounding of a quotient",
            when="r < 2mn / (m + 2n), here 1724",
            otherwise=lambda: rank(2048, 5461, LIMIT + 1),
        ),
        models=("galore.parametric_gradient",),
    ),
    Claim(
        "galore.sizes",
        Source(PAPER, "sizes of LLaMA 1B", "the row as on the slides of a talk"),
        "formulas alone: hidden 2048, intermediate 5461, vocabulary 32000",
        printed=Statement(
            "LLaMA 1B has 24 heads and 32 layers", lambda: billion(24, 32), "none: whole numbers; a printed digit", fails=True
        ),
        corrected=Statement(
            "it has 32 heads and 24 layers: 1339.1 million parameters; 32 layers make 1.74 billion",
            lambda: (*billion(32, 24), *other_depth()),
            "half a unit of the printed digit",
        ),
        models=("galore.parametric_gradient",),
    ),
)
